/*
 * Sealing: dependencies from the order in which steps read and write chunks, and the ordinals of the
 * messages between each pair of ranks. Chunks that no step tells apart are one cell.
 */
#include "plan/builder.h"

#include <stdlib.h>
#include <string.h>

/* IN and OUT are one memory in place, so they are one space always. */
enum { USER_SPACE, SCRATCH_SPACE, SPACES };
static const uint32_t NONE = UINT32_MAX;

typedef struct {
    mc_bitmap_t bound; /* chunks at which a cell starts */
    uint32_t *before;  /* per word of `bound`: cells that start before it */
    uint32_t *writer;  /* per cell: the step that wrote it last */
    uint32_t *readers; /* per cell: first of a list in `pool` of the steps that read it since */
} space_t;

typedef struct {
    uint32_t step, next;
} reader_t;

typedef struct {
    uint32_t from, to;
} edge_t;

typedef struct {
    int32_t peer;
    uint32_t sent, received;
} traffic_t;

typedef struct {
    space_t space[SPACES];
    reader_t *pool;
    uint32_t n_pool, pool_capacity;
    edge_t *edge;
    uint32_t n_edges, edge_capacity;
    uint32_t *mark;     /* per step: 1 + the last step it got an edge to */
    traffic_t *traffic; /* open addressing, peer < 0 where empty */
    uint32_t traffic_capacity, n_peers;
    uint32_t *seq; /* per step: its message's ordinal */
} sealing_t;

static int space_index(uint8_t buffer)
{
    return buffer == MC_SCRATCH ? SCRATCH_SPACE : USER_SPACE;
}

/* Room for one more element; doubles. */
static int grow(void **array, uint32_t *capacity, uint32_t n, size_t size)
{
    if (n < *capacity)
        return MESHCOLL_OK;
    const uint32_t wanted = *capacity ? 2 * *capacity : 64;
    void *const grown = realloc(*array, wanted * size);
    if (!grown)
        return mc_fail_memory("sealing a plan");
    *array = grown;
    *capacity = wanted;
    return MESHCOLL_OK;
}

static void bound_range(mc_bitmap_t *bound, mc_range_t r)
{
    for (uint32_t i = 0; i < r.nrun; i++) {
        const uint32_t first = r.first + i * r.stride;
        mc_bitmap_set(bound, first, 1);
        if (first + r.run < bound->bits)
            mc_bitmap_set(bound, first + r.run, 1);
    }
}

static uint32_t cell_of(const space_t *space, uint32_t chunk)
{
    const uint64_t upto = space->bound.word[chunk / 64] & (~UINT64_C(0) >> (63 - chunk % 64));
    return space->before[chunk / 64] + (uint32_t)__builtin_popcountll(upto) - 1;
}

static int space_init(space_t *space, uint32_t chunks)
{
    const int status = mc_bitmap_init(&space->bound, chunks);
    if (status)
        return status;
    mc_bitmap_set(&space->bound, 0, 1);
    return MESHCOLL_OK;
}

/* Once all bounds are set. */
static int space_number_cells(space_t *space)
{
    const uint32_t words = space->bound.bits / 64 + 1;
    space->before = malloc(words * sizeof *space->before);
    if (!space->before)
        return mc_fail_memory("sealing a plan");
    uint32_t cells = 0;
    for (uint32_t w = 0; w < words; w++) {
        space->before[w] = cells;
        cells += (uint32_t)__builtin_popcountll(space->bound.word[w]);
    }
    space->writer = malloc(cells * sizeof *space->writer);
    space->readers = malloc(cells * sizeof *space->readers);
    if (!space->writer || !space->readers)
        return mc_fail_memory("sealing a plan");
    memset(space->writer, 0xff, cells * sizeof *space->writer);
    memset(space->readers, 0xff, cells * sizeof *space->readers);
    return MESHCOLL_OK;
}

static void sealing_free(sealing_t *s)
{
    for (int i = 0; i < SPACES; i++) {
        mc_bitmap_free(&s->space[i].bound);
        free(s->space[i].before);
        free(s->space[i].writer);
        free(s->space[i].readers);
    }
    free(s->pool);
    free(s->edge);
    free(s->mark);
    free(s->traffic);
    free(s->seq);
}

static int check_range(const mc_plan_t *head, uint8_t buffer, mc_range_t r)
{
    const uint64_t end = (uint64_t)r.first + (uint64_t)(r.nrun - 1) * r.stride + r.run;
    const uint64_t chunks = (uint64_t)head->n_chunks * (buffer == MC_SCRATCH ? 2 : 1);
    if (buffer >= MC_BUFFERS || r.run == 0 || r.nrun == 0 || end > chunks)
        return mc_fail(MESHCOLL_ERR_PLAN, "rank %d: chunks up to %llu of %llu in buffer %u",
                       head->rank, (unsigned long long)end, (unsigned long long)chunks, buffer);
    return MESHCOLL_OK;
}

static int set_bounds(sealing_t *s, const mc_plan_t *head, const mc_step_t *step, uint32_t n)
{
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        const mc_op_t op = (mc_op_t)step[i].op;
        const mc_range_t from = mc_step_from(&step[i]), to = mc_step_to(&step[i]);
        if (op >= MC_OPS)
            return mc_fail(MESHCOLL_ERR_PLAN, "rank %d: step %u has no op", head->rank, i);
        if (mc_op_reads(op)) {
            status = check_range(head, step[i].src, from);
            if (!status)
                bound_range(&s->space[space_index(step[i].src)].bound, from);
        }
        if (mc_op_writes(op) && !status) {
            status = check_range(head, step[i].dst, to);
            if (!status)
                bound_range(&s->space[space_index(step[i].dst)].bound, to);
        }
    }
    return status;
}

static int add_edge(sealing_t *s, uint32_t from, uint32_t to)
{
    if (from == to || s->mark[from] == to + 1)
        return MESHCOLL_OK;
    const int status = grow((void **)&s->edge, &s->edge_capacity, s->n_edges, sizeof *s->edge);
    if (status)
        return status;
    s->mark[from] = to + 1;
    s->edge[s->n_edges++] = (edge_t){from, to};
    return MESHCOLL_OK;
}

static int read_cell(sealing_t *s, space_t *space, uint32_t cell, uint32_t step)
{
    int status = grow((void **)&s->pool, &s->pool_capacity, s->n_pool, sizeof *s->pool);
    if (!status && space->writer[cell] != NONE)
        status = add_edge(s, space->writer[cell], step);
    if (status)
        return status;
    s->pool[s->n_pool] = (reader_t){.step = step, .next = space->readers[cell]};
    space->readers[cell] = s->n_pool++;
    return MESHCOLL_OK;
}

static int write_cell(sealing_t *s, space_t *space, uint32_t cell, uint32_t step)
{
    int status = MESHCOLL_OK;
    if (space->readers[cell] == NONE && space->writer[cell] != NONE)
        status = add_edge(s, space->writer[cell], step);
    for (uint32_t r = space->readers[cell]; r != NONE && !status; r = s->pool[r].next)
        status = add_edge(s, s->pool[r].step, step);
    space->writer[cell] = step;
    space->readers[cell] = NONE;
    return status;
}

static int each_cell(sealing_t *s, uint8_t buffer, mc_range_t r, uint32_t step,
                     int (*each)(sealing_t *, space_t *, uint32_t cell, uint32_t step))
{
    space_t *const space = &s->space[space_index(buffer)];
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < r.nrun; i++) {
        const uint32_t first = r.first + i * r.stride;
        const uint32_t last = cell_of(space, first + r.run - 1);
        for (uint32_t cell = cell_of(space, first); cell <= last && !status; cell++)
            status = each(s, space, cell, step);
    }
    return status;
}

static int derive_edges(sealing_t *s, const mc_step_t *step, uint32_t n)
{
    s->mark = calloc((size_t)n + 1, sizeof *s->mark);
    if (!s->mark)
        return mc_fail_memory("sealing a plan");
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        const mc_op_t op = (mc_op_t)step[i].op;
        if (mc_op_reads(op))
            status = each_cell(s, step[i].src, mc_step_from(&step[i]), i, read_cell);
        if (mc_op_adds(op) && !status)
            status = each_cell(s, step[i].dst, mc_step_to(&step[i]), i, read_cell);
        if (mc_op_writes(op) && !status)
            status = each_cell(s, step[i].dst, mc_step_to(&step[i]), i, write_cell);
    }
    return status;
}

static traffic_t *find_traffic(const sealing_t *s, int32_t peer)
{
    uint32_t at = (uint32_t)peer * UINT32_C(2654435761) & (s->traffic_capacity - 1);
    while (s->traffic[at].peer >= 0 && s->traffic[at].peer != peer)
        at = (at + 1) & (s->traffic_capacity - 1);
    return &s->traffic[at];
}

/* Keeps at least half of the table empty. */
static int reserve_traffic(sealing_t *s)
{
    if (2 * (s->n_peers + 1) <= s->traffic_capacity)
        return MESHCOLL_OK;
    const uint32_t capacity = s->traffic_capacity ? 2 * s->traffic_capacity : 16;
    traffic_t *const old = s->traffic;
    const uint32_t old_capacity = s->traffic_capacity;
    traffic_t *const fresh = malloc(capacity * sizeof *fresh);
    if (!fresh)
        return mc_fail_memory("sealing a plan");
    for (uint32_t i = 0; i < capacity; i++)
        fresh[i] = (traffic_t){.peer = -1};
    s->traffic = fresh;
    s->traffic_capacity = capacity;
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].peer >= 0)
            *find_traffic(s, old[i].peer) = old[i];
    free(old);
    return MESHCOLL_OK;
}

/* The ordinal of each message among those to, or from, its peer. */
static int number_messages(sealing_t *s, const mc_plan_t *head, const mc_step_t *step, uint32_t n)
{
    uint32_t *const seq = s->seq = calloc((size_t)n + 1, sizeof *seq);
    if (!seq)
        return mc_fail_memory("sealing a plan");
    for (uint32_t i = 0; i < n; i++) {
        const mc_op_t op = (mc_op_t)step[i].op;
        if (!mc_op_sends(op) && !mc_op_receives(op))
            continue;
        if (step[i].peer < 0 || step[i].peer >= head->layout.mesh.size)
            return mc_fail(MESHCOLL_ERR_PLAN, "rank %d: step %u has peer %d of %d ranks",
                           head->rank, i, step[i].peer, head->layout.mesh.size);
        const int status = reserve_traffic(s);
        if (status)
            return status;
        traffic_t *const t = find_traffic(s, step[i].peer);
        if (t->peer < 0) {
            *t = (traffic_t){.peer = step[i].peer};
            s->n_peers++;
        }
        seq[i] = mc_op_sends(op) ? t->sent++ : t->received++;
    }
    return MESHCOLL_OK;
}

static int by_rank(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void fill_peers(const sealing_t *s, int32_t *peer)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->traffic_capacity; i++)
        if (s->traffic[i].peer >= 0)
            peer[n++] = s->traffic[i].peer;
    qsort(peer, n, sizeof *peer, by_rank);
}

/* Edges come with ascending targets, so each step's successors do too. */
static void fill_edges(const sealing_t *s, uint32_t n_steps, uint32_t *succ_off, uint32_t *succ,
                       uint32_t *n_pred)
{
    memset(succ_off, 0, ((size_t)n_steps + 1) * sizeof *succ_off);
    memset(n_pred, 0, (size_t)n_steps * sizeof *n_pred);
    for (uint32_t e = 0; e < s->n_edges; e++) {
        succ_off[s->edge[e].from]++;
        n_pred[s->edge[e].to]++;
    }
    uint32_t end = 0;
    for (uint32_t i = 0; i <= n_steps; i++) {
        end += succ_off[i];
        succ_off[i] = end;
    }
    for (uint32_t e = s->n_edges; e-- > 0;)
        succ[--succ_off[s->edge[e].from]] = s->edge[e].to;
}

static void find_scratch(mc_plan_t *plan)
{
    uint32_t lo = UINT32_MAX, hi = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        const uint32_t span = (s->nrun - 1) * s->stride + s->run;
        if (mc_op_reads((mc_op_t)s->op) && s->src == MC_SCRATCH) {
            lo = s->first < lo ? s->first : lo;
            hi = s->first + span > hi ? s->first + span : hi;
        }
        if (mc_op_writes((mc_op_t)s->op) && s->dst == MC_SCRATCH) {
            lo = s->to < lo ? s->to : lo;
            hi = s->to + span > hi ? s->to + span : hi;
        }
    }
    plan->scratch_first = hi ? lo : 0;
    plan->n_scratch = hi ? hi - lo : 0;
}

static int freeze(const sealing_t *s, const mc_plan_t *head, const mc_step_t *step, uint32_t n,
                  mc_plan_t **out)
{
    const size_t step_bytes = (size_t)n * sizeof *step;
    const size_t words = (size_t)n + 1 + s->n_edges + n + s->n_peers;
    const size_t bytes = sizeof(mc_plan_t) + step_bytes + words * sizeof(uint32_t);
    mc_plan_t *const plan = malloc(bytes);
    if (!plan)
        return mc_fail_memory("a plan");
    mc_step_t *const steps = (mc_step_t *)(plan + 1);
    uint32_t *const succ_off = (uint32_t *)((char *)steps + step_bytes);
    uint32_t *const succ = succ_off + n + 1, *const n_pred = succ + s->n_edges;
    int32_t *const peer = (int32_t *)(n_pred + n);
    *plan = *head;
    if (n > 0)
        memcpy(steps, step, step_bytes);
    plan->n_steps = n;
    plan->step = steps;
    for (uint32_t i = 0; i < n; i++)
        steps[i].seq = s->seq[i];
    fill_edges(s, n, succ_off, succ, n_pred);
    fill_peers(s, peer);
    plan->n_edges = s->n_edges;
    plan->n_peers = s->n_peers;
    plan->succ_off = succ_off;
    plan->succ = succ;
    plan->n_pred = n_pred;
    plan->peer = peer;
    plan->bytes = bytes;
    find_scratch(plan);
    *out = plan;
    return MESHCOLL_OK;
}

int mc_seal_steps(const mc_plan_t *head, const mc_step_t *step, uint32_t n_steps, mc_plan_t **plan)
{
    sealing_t s = {0};
    int status = space_init(&s.space[USER_SPACE], head->n_chunks);
    if (!status)
        status = space_init(&s.space[SCRATCH_SPACE], 2 * head->n_chunks);
    if (!status)
        status = set_bounds(&s, head, step, n_steps);
    for (int i = 0; i < SPACES && !status; i++)
        status = space_number_cells(&s.space[i]);
    if (!status)
        status = derive_edges(&s, step, n_steps);
    if (!status)
        status = number_messages(&s, head, step, n_steps);
    if (!status)
        status = freeze(&s, head, step, n_steps, plan);
    sealing_free(&s);
    return status;
}
