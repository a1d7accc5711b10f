#include "compose/strategy/strategy.h"

#include <string.h>

enum { PHASE_TEXT = 192 };

static void begin(const mc_strategy_t *s, const mc_mesh_t *mesh, mc_placement_t state[MC_MAX_DIMS])
{
    for (int32_t d = 0; d < mesh->ndims; d++)
        state[d] = mc_moves[s->collective].from;
}

static const mc_move_t *move_of(const mc_phase_t *phase)
{
    return &mc_moves[mc_algorithms[phase->algorithm].collective];
}

void mc_strategy_state(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t i,
                       mc_placement_t state[MC_MAX_DIMS])
{
    begin(s, mesh, state);
    for (int32_t p = i >= s->second ? s->second : 0; p < i; p++)
        for (int32_t d = s->phase[p].dims.first;
             d < s->phase[p].dims.first + s->phase[p].dims.count; d++)
            state[d] = mc_move_ends(s->collective, move_of(&s->phase[p]));
}

bool mc_strategy_alike(const mc_strategy_t *a, const mc_strategy_t *b, bool algorithms)
{
    bool alike = a->n_phases == b->n_phases && a->second == b->second;
    for (int32_t i = 0; alike && i < a->n_phases; i++) {
        const mc_phase_t *const p = &a->phase[i], *const q = &b->phase[i];
        alike = p->dims.first == q->dims.first && p->dims.count == q->dims.count &&
                (algorithms ? p->algorithm == q->algorithm : move_of(p) == move_of(q));
    }
    return alike;
}

bool mc_strategy_equal(const mc_strategy_t *a, const mc_strategy_t *b)
{
    return a->collective == b->collective && a->segments == b->segments &&
           mc_strategy_alike(a, b, true);
}

static void print_phase(const mc_phase_t *phase, const mc_mesh_t *mesh, mc_text_t *text)
{
    mc_text_add(text, "%s:%s(", move_of(phase)->name, mc_algorithms[phase->algorithm].name);
    mc_dims_print(mesh, phase->dims, text);
    mc_text_add(text, ")");
}

void mc_strategy_print(const mc_strategy_t *s, const mc_mesh_t *mesh, mc_text_t *text)
{
    for (int32_t i = 0; i < s->n_phases; i++) {
        if (i > 0)
            mc_text_add(text, i == s->second ? " | " : " ");
        print_phase(&s->phase[i], mesh, text);
    }
    if (s->segments != (uint32_t)mc_strategy_sides(s))
        mc_text_add(text, "%ssegments=%u", s->n_phases ? " " : "", s->segments);
}

void mc_strategy_print_phase(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t phase,
                             mc_text_t *text)
{
    mc_strategy_t one = {.collective = strategy->collective, .segments = 1, .n_phases = 1};
    one.phase[0] = strategy->phase[phase];
    mc_strategy_print(&one, mesh, text);
}

/* What the check knows of one dimension: its placement, and those so far, a bit each. */
typedef struct {
    mc_placement_t now;
    unsigned been;
} walk_t;

/* Names a side for error messages: "", or for a strategy of two sides "on the second side, ". */
static const char *side_name(const mc_strategy_t *s, int32_t side)
{
    static const char *const name[] = {"on the first side, ", "on the second side, "};
    return mc_strategy_sides(s) == 1 ? "" : name[side];
}

/* Names a phase for error messages: "on the second side, phase 2, bcast:mst(box),". Returns `buffer`. */
static const char *name_phase(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t i,
                              char buffer[PHASE_TEXT])
{
    const int32_t side = s->second > 0 && i >= s->second ? 1 : 0;
    mc_text_t text = mc_text(buffer, PHASE_TEXT);
    mc_text_add(&text, "%sphase %d, ", side_name(s, side), i - mc_side_first(s, side) + 1);
    print_phase(&s->phase[i], mesh, &text);
    mc_text_add(&text, ",");
    return buffer;
}

static int check_move(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t i, int32_t d,
                      walk_t *w)
{
    const mc_move_t *const move = move_of(&s->phase[i]);
    const mc_placement_t from = mc_move_starts(s->collective, move);
    const mc_placement_t to = mc_move_ends(s->collective, move);
    char phase[PHASE_TEXT];
    if (w->now != from)
        return mc_fail(MESHCOLL_ERR_STRATEGY, "%s starts from %s, but %s is %s there",
                       name_phase(s, mesh, i, phase), mc_placement_name(move->from),
                       mesh->dim[d].name, mc_placement_name(w->now));
    if (w->been & 1u << to)
        return mc_fail(MESHCOLL_ERR_STRATEGY, "%s takes %s back to %s, a state that it has left",
                       name_phase(s, mesh, i, phase), mesh->dim[d].name, mc_placement_name(to));
    w->now = to;
    w->been |= 1u << to;
    return MESHCOLL_OK;
}

static int check_shape(const mc_strategy_t *s, const mc_mesh_t *mesh)
{
    if ((unsigned)s->collective >= MESHCOLL_COLLECTIVES)
        return mc_fail(MESHCOLL_ERR_STRATEGY, "there is no collective %d", s->collective);
    if (s->segments < 1)
        return mc_fail(MESHCOLL_ERR_STRATEGY, "a strategy has at least one segment");
    if (s->second < 0 || s->second > s->n_phases)
        return mc_fail(MESHCOLL_ERR_STRATEGY, "the second side starts after the last phase");
    for (int32_t side = 0; side < mc_strategy_sides(s); side++) {
        const int32_t n = mc_side_end(s, side) - mc_side_first(s, side);
        if (n < 0 || n > MC_MAX_PHASES)
            return mc_fail(MESHCOLL_ERR_STRATEGY,
                           "a side of a strategy has at most %d phases, not %d", MC_MAX_PHASES, n);
    }
    if (s->collective == MESHCOLL_ALLTOALL && mc_strategy_sides(s) > 1)
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "an alltoall cannot have two sides: its chunks keep the order of the "
                       "caller's blocks");
    if (s->segments % (uint32_t)mc_strategy_sides(s) != 0)
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "two sides share the segments, so there is an even number of them, "
                       "segments=2 at least; got %u",
                       s->segments);
    for (int32_t i = 0; i < s->n_phases; i++) {
        const mc_phase_t *const p = &s->phase[i];
        if (p->algorithm < 0 || p->algorithm >= mc_n_algorithms || p->dims.first < 0 ||
            p->dims.count < 1 || p->dims.first + p->dims.count > mesh->ndims)
            return mc_fail(MESHCOLL_ERR_STRATEGY, "phase %d has no algorithm or no dimension",
                           i + 1);
    }
    return MESHCOLL_OK;
}

static int check_side(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t side)
{
    walk_t walk[MC_MAX_DIMS];
    int status = MESHCOLL_OK;
    const mc_move_t *const whole = &mc_moves[s->collective];
    for (int32_t d = 0; d < mesh->ndims; d++)
        walk[d] = (walk_t){whole->from, 1u << whole->from};
    for (int32_t i = mc_side_first(s, side); i < mc_side_end(s, side); i++)
        for (int32_t d = 0; d < mesh->ndims && !status; d++)
            if (mc_dims_has(s->phase[i].dims, d) && mesh->dim[d].extent > 1)
                status = check_move(s, mesh, i, d, &walk[d]);
    for (int32_t d = 0; d < mesh->ndims && !status; d++)
        if (mesh->dim[d].extent > 1 && walk[d].now != whole->to)
            status =
                mc_fail(MESHCOLL_ERR_STRATEGY, "%s%s must end with %s in state %s, but it is %s",
                        side_name(s, side), whole->name, mesh->dim[d].name,
                        mc_placement_name(whole->to), mc_placement_name(walk[d].now));
    return status;
}

static int check_side_order(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t side)
{
    const int32_t end = mc_moves[s->collective].reduces ? mc_side_end(s, side) : 0;
    int32_t unreduced = mesh->ndims - 1; /* the innermost */
    for (int32_t i = mc_side_first(s, side); i < end; i++) {
        const mc_phase_t *const p = &s->phase[i];
        const int32_t last = p->dims.first + p->dims.count - 1;
        char phase[PHASE_TEXT];
        if (!move_of(p)->reduces || mc_dims_extent(mesh, p->dims) == 1)
            continue;
        if (!mc_algorithms[p->algorithm].keeps_order)
            return mc_fail(MESHCOLL_ERR_STRATEGY, "%s does not reduce in the order of ranks",
                           name_phase(s, mesh, i, phase));
        while (unreduced > last && mesh->dim[unreduced].extent == 1)
            unreduced--;
        if (unreduced > last)
            return mc_fail(MESHCOLL_ERR_STRATEGY,
                           "%s comes before %s is reduced: to keep the order of ranks, reduce "
                           "from the innermost dimension outwards",
                           name_phase(s, mesh, i, phase), mesh->dim[unreduced].name);
        unreduced = p->dims.first - 1;
    }
    return MESHCOLL_OK;
}

/* The leader of a ragged mesh trades places with the first rank of its fold line, which breaks the order
 * of ranks along fold. */
static int check_leader(const mc_strategy_t *s, const mc_mesh_t *mesh)
{
    if (!mesh->ragged || !mc_moves[s->collective].reduces || !mc_mesh_leader_moved(mesh) ||
        mc_strategy_is_flat(s, mesh))
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_STRATEGY,
                   "root %d is not the first of its line along fold: then only a strategy on one "
                   "line of all ranks keeps the order of ranks, as in reduce:mst",
                   mesh->leader);
}

int mc_strategy_check_order(const mc_strategy_t *s, const mc_mesh_t *mesh)
{
    int status = check_leader(s, mesh);
    for (int32_t side = 0; side < mc_strategy_sides(s) && !status; side++)
        status = check_side_order(s, mesh, side);
    return status;
}

/* Says why phase `i` does not fit the aligned tree; MC_NUMBERED: because of its algorithm. */
static int fail_aligned(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t i, mc_numbered_t why,
                        const mc_numbering_t *numbering)
{
    char buffer[PHASE_TEXT];
    const char *const phase = name_phase(s, mesh, i, buffer);
    if (why == MC_NUMBERED_FLAT && mesh->ragged)
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "%s does not go along all ranks: between boxes of unequal sizes the "
                       "aligned tree needs one line of all ranks",
                       phase);
    switch (why) {
    case MC_NUMBERED:
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "%s does not bracket %d ranks as the aligned tree does", phase,
                       mc_dims_extent(mesh, s->phase[i].dims));
    case MC_NUMBERED_BLOCK:
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "%s adds up blocks of %d ranks, but the aligned tree has only blocks "
                       "of powers of two",
                       phase, mc_numbering_block(numbering, mesh, s->phase[i].dims));
    case MC_NUMBERED_EARLY:
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "%s comes before the reduction of a dimension whose ranks are closer "
                       "in the communicator's order",
                       phase);
    default:
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "%s does not follow the communicator's order of ranks", phase);
    }
}

static int check_side_aligned(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t side,
                              const mc_numbering_t *numbering)
{
    const int32_t end = mc_moves[s->collective].reduces ? mc_side_end(s, side) : 0;
    uint32_t reduced = 0;
    for (int32_t i = mc_side_first(s, side); i < end; i++) {
        const mc_phase_t *const p = &s->phase[i];
        const int32_t len = mc_dims_extent(mesh, p->dims);
        if (numbering->flat && len > 1 && len < mesh->size)
            return fail_aligned(s, mesh, i, MC_NUMBERED_FLAT, numbering);
        if (!move_of(p)->reduces || len == 1)
            continue;
        const mc_numbered_t why = mc_numbering_check(numbering, mesh, p->dims, reduced);
        if (why != MC_NUMBERED || !mc_algorithm_aligned(p->algorithm, len))
            return fail_aligned(s, mesh, i, why, numbering);
        for (int32_t d = p->dims.first; d < p->dims.first + p->dims.count; d++)
            reduced |= UINT32_C(1) << d;
    }
    return MESHCOLL_OK;
}

int mc_strategy_check_aligned(const mc_strategy_t *s, const mc_mesh_t *mesh,
                              const mc_numbering_t *numbering)
{
    int status = MESHCOLL_OK;
    for (int32_t side = 0; side < mc_strategy_sides(s) && !status; side++)
        status = check_side_aligned(s, mesh, side, numbering);
    return status;
}

bool mc_strategy_is_flat(const mc_strategy_t *s, const mc_mesh_t *mesh)
{
    bool flat = true;
    for (int32_t i = 0; i < s->n_phases; i++)
        flat = flat && s->phase[i].dims.count == mesh->ndims;
    return flat;
}

mc_strategy_t mc_strategy_pair(const mc_strategy_t *a, const mc_strategy_t *b)
{
    mc_strategy_t pair = *a;
    pair.second = a->n_phases;
    pair.segments = 2;
    for (int32_t i = 0; i < b->n_phases; i++)
        pair.phase[pair.n_phases++] = b->phase[i];
    return pair;
}

mc_strategy_t mc_strategy_flat(const mc_strategy_t *s)
{
    mc_strategy_t flat = *s;
    for (int32_t i = 0; i < s->n_phases; i++)
        flat.phase[i].dims = (mc_dims_t){0, 1};
    return flat;
}

bool mc_strategy_gathers(const mc_strategy_t *s)
{
    bool gathers = false;
    for (int32_t i = 0; i < s->n_phases && s->collective == MESHCOLL_ALLTOALL; i++)
        gathers = gathers || mc_algorithms[s->phase[i].algorithm].collective != s->collective;
    return gathers;
}

/* Why a phase along fold is refused, or NULL. Fold lines differ in length, so their slices differ in size;
 * a scatter or gather moves ranks' own blocks instead. */
static const char *fold_reason(const mc_phase_t *phase)
{
    const mc_algorithm_t *const a = &mc_algorithms[phase->algorithm];
    const bool blocks = a->collective == MESHCOLL_SCATTER || a->collective == MESHCOLL_GATHER;
    if (phase->dims.count > 1)
        return "merges fold with other dimensions: on boxes of unequal sizes either every phase "
               "merges all dimensions, or none merges fold";
    return a->slices && !blocks ? "cuts fold into slices, but its lines differ in length: use "
                                  "mst, chain or star there"
                                : NULL;
}

/* Why a phase is refused on a ragged mesh, or NULL. Only at fold 0 do the lines of the other dimensions
 * exist in all boxes. */
static const char *ragged_reason(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t i)
{
    mc_placement_t state[MC_MAX_DIMS];
    const mc_phase_t *const phase = &s->phase[i];
    mc_strategy_state(s, mesh, i, state);
    if (mc_dims_has(phase->dims, MC_RAGGED_FOLD))
        return fold_reason(phase);
    if (mc_dims_extent(mesh, phase->dims) > 1 && state[MC_RAGGED_FOLD] != MC_ROOT)
        return "runs while fold is not in state root: on boxes of unequal sizes, first collect at "
               "fold 0, as in reduce:mst(fold), and distribute from there last, as in "
               "bcast:mst(fold)";
    return NULL;
}

/* Why a phase of an alltoall that gathers is refused, or NULL. Chunks in SCRATCH are pairs of places of
 * the innermost dimension, so no phase may move blocks within a rank. */
static const char *gather_reason(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t i)
{
    mc_placement_t state[MC_MAX_DIMS];
    const mc_phase_t *const phase = &s->phase[i];
    const mc_algorithm_t *const a = &mc_algorithms[phase->algorithm];
    const int32_t inner = mc_mesh_inner(mesh);
    mc_strategy_state(s, mesh, i, state);
    if (mesh->ndims == MC_MAX_DIMS)
        return "is part of an alltoall that gathers, which has at most five dimensions";
    if (a->collective != MESHCOLL_ALLTOALL)
        return phase->dims.first == inner
                   ? NULL
                   : "is not along the innermost dimension alone: an alltoall "
                     "gathers and scatters there only";
    if (mc_dims_extent(mesh, phase->dims) > 1 && state[inner] != MC_ROOT)
        return "runs while the innermost dimension is not in state root: an alltoall that gathers "
               "does so in its first phase, and scatters in its last";
    return mc_algorithm_exchanges_pairs(phase->algorithm)
               ? NULL
               : "moves blocks within a rank, but an alltoall that gathers keeps them by pairs of "
                 "ranks: take pairwise or digits";
}

/* Fails with the reason why the first phase that has one is refused. */
static int check_phases(const mc_strategy_t *s, const mc_mesh_t *mesh,
                        const char *(*reason)(const mc_strategy_t *s, const mc_mesh_t *mesh,
                                              int32_t i))
{
    for (int32_t i = 0; i < s->n_phases; i++) {
        const char *const why = reason(s, mesh, i);
        char phase[PHASE_TEXT];
        mc_text_t text = mc_text(phase, sizeof phase);
        if (!why)
            continue;
        print_phase(&s->phase[i], mesh, &text);
        return mc_fail(MESHCOLL_ERR_STRATEGY, "phase %d, %s, %s", i + 1, phase, why);
    }
    return MESHCOLL_OK;
}

static int check_gathers(const mc_strategy_t *s, const mc_mesh_t *mesh)
{
    if (mesh->dim[mc_mesh_inner(mesh)].extent == mesh->size)
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "an alltoall that gathers needs several lines, whose first ranks exchange "
                       "for the others; take pairwise, digits or bruck on one line");
    return check_phases(s, mesh, gather_reason);
}

/* Along a dimension of extent 1 all placements are equal, so phases may leave it out or include it. */
int mc_strategy_check(const mc_strategy_t *s, const mc_mesh_t *mesh)
{
    int status = check_shape(s, mesh);
    for (int32_t side = 0; !status && side < mc_strategy_sides(s); side++)
        status = check_side(s, mesh, side);
    if (!status && mesh->ragged && !mc_strategy_is_flat(s, mesh))
        status = check_phases(s, mesh, ragged_reason);
    return !status && mc_strategy_gathers(s) ? check_gathers(s, mesh) : status;
}

/* For each dimension: is it cut into slices on this side, the first phase that cuts it, and the first
 * phase that joins the slices. */
typedef struct {
    bool cut[MC_MAX_DIMS];
    int32_t cut_at[MC_MAX_DIMS], joined_at[MC_MAX_DIMS];
} cuts_t;

static cuts_t find_cuts(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t side)
{
    cuts_t c = {0};
    const int32_t first = mc_side_first(s, side), end = mc_side_end(s, side);
    const mc_move_t *const whole = &mc_moves[s->collective];
    for (int32_t d = 0; d < mesh->ndims; d++) {
        c.cut[d] = whole->from == MC_SHARD || whole->to == MC_SHARD;
        c.cut_at[d] = whole->from == MC_SHARD ? -1 : end;
        c.joined_at[d] = end;
        for (int32_t i = end - 1; i >= first; i--) {
            if (!mc_dims_has(s->phase[i].dims, d) || !mc_algorithms[s->phase[i].algorithm].slices)
                continue;
            c.cut[d] = true;
            if (move_of(&s->phase[i])->from != MC_SHARD && c.cut_at[d] >= 0)
                c.cut_at[d] = i;
            if (move_of(&s->phase[i])->to != MC_SHARD)
                c.joined_at[d] = i;
        }
    }
    return c;
}

static bool outside(const cuts_t *c, int32_t a, int32_t b)
{
    if (c->cut_at[a] != c->cut_at[b])
        return c->cut_at[a] < c->cut_at[b];
    return c->joined_at[a] > c->joined_at[b];
}

/* The dimension that is cut first and joined last is outermost, so that the tile a rank owns is always one
 * run of chunks. Merged lines need the mesh's order. An alltoall cuts all dimensions throughout, and keeps
 * the order of the user's blocks. */
static void find_order(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t side, const cuts_t *c,
                       int32_t order[MC_MAX_DIMS])
{
    bool merged = s->collective == MESHCOLL_ALLTOALL;
    for (int32_t i = mc_side_first(s, side); i < mc_side_end(s, side); i++)
        merged = merged || s->phase[i].dims.count > 1;
    for (int32_t d = 0; d < mesh->ndims; d++) {
        int32_t at = d;
        for (; at > 0 && !merged && outside(c, d, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
}

int mc_strategy_layout(const mc_strategy_t *s, const mc_mesh_t *mesh, mc_layout_t *layout)
{
    int32_t order[MC_MAX_SIDES][MC_MAX_DIMS] = {{0}};
    bool cut[MC_MAX_DIMS] = {false}; /* by either side: segments have equally many chunks */
    mc_layout_t l;
    for (int32_t side = 0; side < mc_strategy_sides(s); side++) {
        const cuts_t cuts = find_cuts(s, mesh, side);
        find_order(s, mesh, side, &cuts, order[side]);
        for (int32_t d = 0; d < mesh->ndims; d++)
            cut[d] = cut[d] || cuts.cut[d];
    }
    const int status = mc_layout_init(mesh, cut, order[0], s->segments, &l);
    if (status)
        return status;
    if (mc_strategy_sides(s) > 1)
        mc_layout_add_side(&l, order[1]);
    *layout = l;
    return MESHCOLL_OK;
}
