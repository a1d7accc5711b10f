#include "compose/pace/limits.h"

mc_pacing_t mc_pacing_of(const mc_links_t *links, const mc_mesh_t *mesh, int32_t wire)
{
    const double most = (double)(UINT64_C(1) << 48); /* no limit, and sums do not overflow */
    if (wire < 0)
        return (mc_pacing_t){.wire = wire};
    const double window = mc_links_window(links, mesh, wire);
    return (mc_pacing_t){.wire = wire,
                         .window = (size_t)(window < most ? window : most),
                         .least = mc_links_least(links, wire)};
}

double mc_pacing_mean(const mc_phase_cost_t *cost, const mc_links_t *links)
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

/* Does one rank send to several, or several to one, with no message in the other direction? */
static bool has_credits(int32_t algorithm, int32_t len)
{
    return mc_algorithm_senders(algorithm, len) > 1 || mc_algorithm_receivers(algorithm, len) > 1;
}

/* Size of a phase's largest message over the mean. Each round of a tree that scatters or gathers slices
 * moves half of them, and one round does so in one message. */
static double largest_over_mean(const mc_pacing_t *pacing, const mc_mesh_t *mesh, int32_t algorithm,
                                mc_dims_t dims)
{
    int32_t boxes = 1;
    for (int32_t d = dims.first; d < dims.first + dims.count; d++)
        boxes *= d <= pacing->wire ? mesh->dim[d].extent : 1;
    const int32_t senders = mc_algorithm_senders(algorithm, boxes),
                  receivers = mc_algorithm_receivers(algorithm, boxes),
                  rounds = senders > receivers ? senders : receivers;
    return mc_algorithms[algorithm].slices && rounds > 1 ? (boxes - 1.0) / rounds : 1;
}

/* The largest message, in bytes, that pacing allows in a phase; 0: the phase is not paced. `bytes`: size of
 * the largest message in one segment. */
static size_t allowed(const mc_pacing_t *pacing, const mc_mesh_t *mesh, int32_t algorithm,
                      mc_dims_t dims, const mc_placement_t state[MC_MAX_DIMS], double bytes)
{
    const int32_t len = mc_dims_extent(mesh, dims);
    const unsigned single =
        mc_placements_rooted(mesh, state) | mc_algorithm_single(algorithm, mesh, dims);
    const int32_t ranks = mc_pacing_ranks(pacing, mesh, single);
    /* a chain has credits only if it carries more than a window */
    const bool is_chain = bytes > (double)pacing->window && mc_algorithm_passes_on(algorithm, len);
    const bool all_send = !mc_moves[mc_algorithms[algorithm].collective].rooted;
    if (all_send || is_chain)
        return mc_pacing_message(pacing->window, ranks);
    const bool is_pair = len == 2 && mc_pacing_pairs(all_send, ranks) &&
                         bytes > (double)mc_pacing_share(pacing->window, ranks);
    return is_pair || has_credits(algorithm, len) ? mc_pacing_credited(pacing->window, ranks) : 0;
}

uint32_t mc_pacing_segments(const mc_pacing_t *pacing, const mc_mesh_t *mesh, int32_t algorithm,
                            mc_dims_t dims, const mc_placement_t state[MC_MAX_DIMS], double bytes)
{
    uint32_t needed = 1;
    if (pacing->wire < 0 || bytes == 0)
        return needed;
    const double largest = bytes * largest_over_mean(pacing, mesh, algorithm, dims);
    const size_t paced = allowed(pacing, mesh, algorithm, dims, state, largest);
    const double most = (double)(paced > pacing->least ? paced : pacing->least);
    while (paced > 0 && largest / needed > most && needed < MC_PACE_SEGMENTS)
        needed *= 2;
    return needed;
}
