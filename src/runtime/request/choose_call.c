#include "runtime/request/choose_call.h"

#include "runtime/connect/connections.h"
#include "runtime/handle/args.h"

#include <string.h>

/* Of an alltoallv. A rank does not know the sizes of other ranks' blocks, so that ranks would choose differently; and
 * a strategy that passes blocks through other ranks must exchange the counts first. So pairwise, unless a strategy is
 * forced. */
static mc_choice_key_t key_of_exchange(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const bool forced = h->choice.is_forced[a->collective];
    return (mc_choice_key_t){.collective = a->collective,
                             .bytes = a->count * meshcoll_datatype_size(a->datatype),
                             .pacing.wire = -1,
                             .strategy = a->strategy ? a->strategy
                                         : forced    ? NULL
                                                     : "flat-pairwise"};
}

/* Where only the root knows the sizes of the blocks. What is forced for the mesh does not hold. */
static mc_choice_key_t key_of_star(const meshcoll_args_t *a)
{
    return (mc_choice_key_t){.collective = a->collective,
                             .root = a->root,
                             .bytes = meshcoll_datatype_size(a->datatype),
                             .pacing.wire = -1,
                             .strategy = a->strategy ? a->strategy : "flat-star"};
}

mc_choice_key_t mc_call_key(const meshcoll_t *h, const meshcoll_args_t *a, bool is_barrier)
{
    if (a->in_counts)
        return key_of_exchange(h, a);
    if (a->counts_at_root)
        return key_of_star(a);
    const bool has_blocks = mc_move_has_blocks(&mc_moves[a->collective]) && !a->counts;
    /* the aligned tree over the communicator's ranks keeps their order too */
    const mc_numbering_t *const aligned = mc_args_aligned(h, a);
    const bool in_order = !aligned && !mc_op_commutes(a->op);
    const bool one_line = in_order && h->order.comm_rank;
    return (mc_choice_key_t){.collective = a->collective,
                             .root = one_line ? mc_comm_rank_of(&h->order, a->root) : a->root,
                             .bytes = a->count * meshcoll_datatype_size(a->datatype) *
                                      (has_blocks ? (uint64_t)h->mesh.size : 1),
                             .strategy = a->strategy,
                             .unforced = is_barrier,
                             .in_order = in_order,
                             .one_line = one_line,
                             .pacing = mc_handle_pacing(h),
                             .aligned = aligned};
}

/* Does the root exchange each block with its rank, through no other? */
static int check_star(const meshcoll_t *h, const mc_strategy_t *s)
{
    bool star = mc_strategy_is_flat(s, &h->mesh);
    for (int32_t i = 0; i < s->n_phases; i++)
        star = star && strcmp(mc_algorithms[s->phase[i].algorithm].name, "star") == 0;
    if (star)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_STRATEGY,
                   "%s: where only the root has the counts, no other rank can pass a block on: "
                   "expected \"flat-star\", or %s:star along all dimensions",
                   meshcoll_collective_name(s->collective),
                   meshcoll_collective_name(s->collective));
}

int mc_call_choose(const meshcoll_t *h, const meshcoll_args_t *a, const mc_choice_key_t *key,
                   mc_ranked_t *best)
{
    mc_ranked_t chosen;
    int status = mc_choose(&h->choice, &h->mesh, &h->links, key, &chosen);
    if (!status && a->counts_at_root)
        status = check_star(h, &chosen.strategy);
    if (!status)
        *best = chosen;
    return status;
}
