#include "compose/price/pieces.h"

double mc_pieces_message(const mc_phase_cost_t *cost, const mc_links_t *links)
{
    double most = 0;
    for (int32_t d = 0; d < links->ndims; d++) {
        const mc_term_t *const once = &cost->once.dim[d];
        const double volume = mc_ratio_value(once->volume);
        if (!links->dim[d].pulled && once->messages > 0 && volume / once->messages > most)
            most = volume / once->messages;
    }
    return most;
}

/* Does one rank send to several, or several to one, with no message in the other direction? Credits pace
 * such a phase (runtime/execute/credit.h). */
static bool has_credits(int32_t algorithm, int32_t len)
{
    return mc_algorithm_senders(algorithm, len) > 1 || mc_algorithm_receivers(algorithm, len) > 1;
}

/* Size of a phase's largest message over the mean. Each round of a tree that scatters or gathers slices
 * moves half of them, and one round does so in one message. */
static double largest_over_mean(const mc_stream_t *stream, const mc_mesh_t *mesh, int32_t algorithm,
                                mc_dims_t dims)
{
    int32_t boxes = 1;
    for (int32_t d = dims.first; d < dims.first + dims.count; d++)
        boxes *= d <= stream->wire ? mesh->dim[d].extent : 1;
    const int32_t senders = mc_algorithm_senders(algorithm, boxes),
                  receivers = mc_algorithm_receivers(algorithm, boxes),
                  rounds = senders > receivers ? senders : receivers;
    return mc_algorithms[algorithm].slices && rounds > 1 ? (boxes - 1.0) / rounds : 1;
}

/* The largest message, in bytes, that pacing allows in a phase, computed as the executor computes it from
 * the plan; 0: the phase is not paced. `bytes`: size of the largest message in one segment. */
static size_t piece_of(const mc_stream_t *stream, const mc_mesh_t *mesh, int32_t algorithm,
                       mc_dims_t dims, const mc_placement_t state[MC_MAX_DIMS], double bytes)
{
    const int32_t len = mc_dims_extent(mesh, dims);
    const unsigned single = mc_algorithm_single(algorithm, mesh, dims);
    const int32_t crowd =
        mc_mesh_crowd(mesh, stream->wire, mc_placements_rooted(mesh, state) | single) *
        (stream->beside > 0 ? stream->beside : 1);
    /* in a long chain the next rank acknowledges what it has received */
    const bool is_chain = bytes > (double)stream->window && mc_algorithm_passes_on(algorithm, len);
    const bool all_send = !mc_moves[mc_algorithms[algorithm].collective].rooted;
    if (all_send || is_chain)
        return mc_hold_piece(stream->window, crowd);
    return has_credits(algorithm, len) ? mc_hold_credited(stream->window, crowd) : 0;
}

uint32_t mc_pieces_needed(const mc_stream_t *stream, const mc_mesh_t *mesh, int32_t algorithm,
                          mc_dims_t dims, const mc_placement_t state[MC_MAX_DIMS], double bytes)
{
    uint32_t needed = 1;
    if (stream->wire < 0 || bytes == 0)
        return needed;
    const double most = bytes * largest_over_mean(stream, mesh, algorithm, dims);
    const size_t paced = piece_of(stream, mesh, algorithm, dims, state, most);
    const double piece = (double)(paced > stream->least ? paced : stream->least);
    while (paced > 0 && most / needed > piece && needed < MC_MAX_PIECES)
        needed *= 2;
    return needed;
}
