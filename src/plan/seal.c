/*
 * Sealing: derives what steps wait for, and numbers the messages of each pair of ranks.
 *
 * Where no step accesses chunks of two segments, no step waits for one of another segment. Each
 * segment is then analysed alone, and one whose steps equal those of an earlier segment on other
 * chunks reuses its dependencies: of many segments, one is analysed.
 */
#include "plan/steps.h"

#include <stdlib.h>
#include <string.h>

/* A plan's steps by segment; a single segment where a step accesses two. */
typedef struct {
    uint32_t n, chunks; /* number of segments; chunks of one */
    uint32_t *first;    /* by segment, n + 1 entries: where its steps start in `of` */
    uint32_t *of;       /* step numbers by segment; NULL: all steps are in one segment */
    uint32_t *pattern;  /* by segment: its index in `known` */
    mc_pattern_t *known;
    uint32_t n_known;
} segments_t;

typedef struct {
    int32_t peer;
    uint32_t sent, received;
} traffic_t;

typedef struct {
    traffic_t *traffic; /* open addressing, peer < 0 where empty */
    uint32_t traffic_capacity, n_peers;
    uint32_t *seq; /* per step: the ordinal of its message */
} messages_t;

static int check_range(const mc_plan_t *head, uint8_t buffer, mc_range_t r)
{
    const uint64_t end = mc_range_end(r);
    const uint64_t chunks =
        buffer == MC_SCRATCH ? (uint64_t)mc_plan_part(head) * mc_plan_parts(head) : head->n_chunks;
    if (buffer >= MC_BUFFERS || r.run == 0 || r.nrun == 0 || end > chunks || !mc_range_fits(r))
        return mc_fail(MESHCOLL_ERR_PLAN, "rank %d: chunks up to %llu of %llu in buffer %u",
                       head->rank, (unsigned long long)end, (unsigned long long)chunks, buffer);
    return MESHCOLL_OK;
}

static int check_steps(const mc_plan_t *head, const mc_step_t *step, uint32_t n)
{
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        const mc_op_t op = (mc_op_t)step[i].op;
        if (op >= MC_OPS)
            return mc_fail(MESHCOLL_ERR_PLAN, "rank %d: step %u has no op", head->rank, i);
        if (mc_op_reads(op))
            status = check_range(head, step[i].src, mc_step_from(&step[i]));
        if (mc_op_writes(op) && !status)
            status = check_range(head, step[i].dst, mc_step_to(&step[i]));
    }
    return status;
}

/* Segments --------------------------------------------------------------------------------------- */

/* Returns the number a chunk would have if the segment that starts at `base` were the whole
 * plan. */
static uint32_t own_chunk(const mc_plan_t *head, uint32_t chunks, uint32_t base, uint32_t buffer,
                          uint32_t chunk)
{
    const uint32_t depth = mc_plan_depth(head), part = chunk / mc_plan_part(head);
    if (buffer != MC_SCRATCH)
        return chunk - base;
    return chunk - base * depth - part * (head->n_chunks - chunks) * depth;
}

static mc_step_t own_step(const mc_plan_t *head, uint32_t chunks, uint32_t base, mc_step_t s)
{
    const mc_op_t op = (mc_op_t)s.op;
    if (mc_op_reads(op))
        s.first = own_chunk(head, chunks, base, s.src, s.first);
    if (mc_op_writes(op))
        s.to = own_chunk(head, chunks, base, s.dst, s.to);
    s.seq = 0;
    return s;
}

/* Is the range inside the segment that starts at `base`, in one part of SCRATCH? */
static bool is_inside(const mc_plan_t *head, uint32_t chunks, uint32_t base, uint32_t buffer,
                      mc_range_t r)
{
    const uint32_t begin = mc_range_begin(r),
                   depth = buffer == MC_SCRATCH ? mc_plan_depth(head) : 1;
    const uint32_t part = begin / mc_plan_part(head) * mc_plan_part(head);
    const uint32_t first = (buffer == MC_SCRATCH ? part : 0) + base * depth;
    return begin >= first && mc_range_end(r) <= first + chunks * depth;
}

/* Returns the segment of all chunks the step accesses, or -1 where they are in several. */
static int64_t segment_of(const mc_plan_t *head, uint32_t chunks, const mc_step_t *s)
{
    const mc_op_t op = (mc_op_t)s->op;
    const uint32_t segment = mc_op_reads(op) ? mc_plan_segment(head, (mc_buffer_t)s->src, s->first)
                                             : mc_plan_segment(head, (mc_buffer_t)s->dst, s->to);
    const uint32_t base = segment * chunks;
    if ((mc_op_reads(op) && !is_inside(head, chunks, base, s->src, mc_step_from(s))) ||
        (mc_op_writes(op) && !is_inside(head, chunks, base, s->dst, mc_step_to(s))))
        return -1;
    return segment;
}

static void segments_free(segments_t *g)
{
    for (uint32_t k = 0; k < g->n_known; k++) {
        if (g->of) /* allocated by add_pattern */
            free((void *)g->known[k].step);
        mc_pattern_free(&g->known[k]);
    }
    free(g->known);
    free(g->pattern);
    free(g->of);
    free(g->first);
    *g = (segments_t){0};
}

/* Sorts the steps by segment, stably; false where a step accesses two. */
static bool sort_steps(segments_t *g, const mc_plan_t *head, const mc_step_t *step, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const int64_t segment = segment_of(head, g->chunks, &step[i]);
        if (segment < 0)
            return false;
        g->first[segment + 1]++;
    }
    for (uint32_t k = 0; k < g->n; k++)
        g->first[k + 1] += g->first[k];
    for (uint32_t i = 0; i < n; i++)
        g->of[g->first[segment_of(head, g->chunks, &step[i])]++] = i;
    for (uint32_t k = g->n; k > 0; k--)
        g->first[k] = g->first[k - 1];
    g->first[0] = 0;
    return true;
}

static int segments_create(const mc_plan_t *head, const mc_step_t *step, uint32_t n, segments_t *g)
{
    const mc_layout_t *const layout = &head->layout;
    const bool cut = layout->segments > 1 && layout->per_segment > 0 &&
                     mc_layout_chunks(layout) == head->n_chunks;
    *g = (segments_t){.n = cut ? layout->segments : 1};
    g->chunks = cut ? layout->per_segment : head->n_chunks;
    g->first = calloc((size_t)g->n + 1, sizeof *g->first);
    g->of = cut ? malloc(((size_t)n + 1) * sizeof *g->of) : NULL;
    g->pattern = calloc(g->n, sizeof *g->pattern);
    g->known = malloc(g->n * sizeof *g->known);
    if (!g->first || (cut && !g->of) || !g->pattern || !g->known)
        return mc_fail_memory("sealing a plan");
    if (cut && !sort_steps(g, head, step, n)) {
        free(g->of);
        g->of = NULL;
        g->n = 1;
        g->chunks = head->n_chunks;
    }
    if (!g->of)
        g->first[1] = n;
    return MESHCOLL_OK;
}

/* Does segment k have the steps of `p` on other chunks? */
static bool is_alike(const segments_t *g, const mc_plan_t *head, const mc_step_t *step, uint32_t k,
                     const mc_pattern_t *p)
{
    if (g->first[k + 1] - g->first[k] != p->n)
        return false;
    for (uint32_t i = 0; i < p->n; i++) {
        const mc_step_t s = own_step(head, g->chunks, k * g->chunks, step[g->of[g->first[k] + i]]);
        if (memcmp(&s, &p->step[i], sizeof s) != 0)
            return false;
    }
    return true;
}

static int add_pattern(segments_t *g, const mc_plan_t *head, const mc_step_t *step, uint32_t k)
{
    mc_pattern_t *const p = &g->known[g->n_known];
    *p = (mc_pattern_t){.step = step, .n = g->first[k + 1] - g->first[k]};
    g->pattern[k] = g->n_known++;
    if (g->of) {
        mc_step_t *const own = malloc(((size_t)p->n + 1) * sizeof *own);
        p->step = own;
        if (!own)
            return mc_fail_memory("sealing a plan");
        for (uint32_t i = 0; i < p->n; i++)
            own[i] = own_step(head, g->chunks, k * g->chunks, step[g->of[g->first[k] + i]]);
    }
    return mc_pattern_derive(p, g->chunks, g->chunks * mc_plan_depth(head) * mc_plan_parts(head));
}

/* Compares each segment with the previous one of its side only. */
static int find_patterns(segments_t *g, const mc_plan_t *head, const mc_step_t *step)
{
    const uint32_t sides = head->layout.sides ? head->layout.sides : 1;
    int status = MESHCOLL_OK;
    for (uint32_t k = 0; k < g->n && !status; k++) {
        const uint32_t before = k >= sides ? g->pattern[k - sides] : 0;
        if (k >= sides && is_alike(g, head, step, k, &g->known[before]))
            g->pattern[k] = before;
        else
            status = add_pattern(g, head, step, k);
    }
    return status;
}

static uint32_t count_edges(const segments_t *g)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n; k++)
        n += g->known[g->pattern[k]].n_edges;
    return n;
}

/* Returns the plan's number of a segment's step. */
static uint32_t step_number(const segments_t *g, uint32_t k, uint32_t i)
{
    return g->of ? g->of[g->first[k] + i] : i;
}

static void spread_edges(const segments_t *g, uint32_t n, uint32_t *succ_off, uint32_t *succ,
                         uint32_t *n_pred)
{
    for (uint32_t k = 0; k < g->n; k++) {
        const mc_pattern_t *const p = &g->known[g->pattern[k]];
        for (uint32_t i = 0; i < p->n; i++) {
            const uint32_t at = step_number(g, k, i);
            succ_off[at + 1] = p->succ_off[i + 1] - p->succ_off[i];
            n_pred[at] = p->n_pred[i];
        }
    }
    succ_off[0] = 0;
    for (uint32_t i = 0; i < n; i++)
        succ_off[i + 1] += succ_off[i];
    for (uint32_t k = 0; k < g->n; k++) {
        const mc_pattern_t *const p = &g->known[g->pattern[k]];
        for (uint32_t i = 0; i < p->n; i++) {
            uint32_t *to = succ + succ_off[step_number(g, k, i)];
            for (uint32_t e = p->succ_off[i]; e < p->succ_off[i + 1]; e++)
                *to++ = step_number(g, k, p->succ[e]);
        }
    }
}

/* Messages --------------------------------------------------------------------------------------- */

static traffic_t *find_traffic(const messages_t *s, int32_t peer)
{
    uint32_t at = (uint32_t)peer * UINT32_C(2654435761) & (s->traffic_capacity - 1);
    while (s->traffic[at].peer >= 0 && s->traffic[at].peer != peer)
        at = (at + 1) & (s->traffic_capacity - 1);
    return &s->traffic[at];
}

/* Keeps at least half of the table empty, so that probing stays short. */
static int reserve_traffic(messages_t *s)
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

/* Numbers each message among those to, or from, its peer. */
static int number_messages(messages_t *s, const mc_plan_t *head, const mc_step_t *step, uint32_t n)
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

static void fill_peers(const messages_t *s, int32_t *peer)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->traffic_capacity; i++)
        if (s->traffic[i].peer >= 0)
            peer[n++] = s->traffic[i].peer;
    qsort(peer, n, sizeof *peer, by_rank);
}

/* The plan --------------------------------------------------------------------------------------- */

static void widen(mc_range_t r, uint32_t *lo, uint32_t *hi)
{
    const uint32_t begin = mc_range_begin(r), end = (uint32_t)mc_range_end(r);
    *lo = begin < *lo ? begin : *lo;
    *hi = end > *hi ? end : *hi;
}

static void find_scratch(mc_plan_t *plan)
{
    uint32_t lo = UINT32_MAX, hi = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        if (mc_op_reads((mc_op_t)s->op) && s->src == MC_SCRATCH)
            widen(mc_step_from(s), &lo, &hi);
        if (mc_op_writes((mc_op_t)s->op) && s->dst == MC_SCRATCH)
            widen(mc_step_to(s), &lo, &hi);
    }
    plan->scratch_first = hi ? lo : 0;
    plan->n_scratch = hi ? hi - lo : 0;
}

/* Copies the bits of the chunks in use; only plans with pairs have them. */
static void copy_empty(const mc_plan_t *head, const mc_plan_t *plan, uint64_t *empty)
{
    memset(empty, 0, (plan->n_scratch / 64 + 1) * sizeof *empty);
    for (uint32_t i = 0; i < plan->n_scratch; i++)
        if (mc_plan_absent(head, MC_SCRATCH, plan->scratch_first + i))
            empty[i / 64] |= UINT64_C(1) << i % 64;
}

/* The arrays of a plan, behind its head. */
typedef struct {
    uint64_t *empty;
    mc_step_t *step;
    uint32_t *succ_off, *succ, *n_pred;
    int32_t *peer;
} parts_t;

/* One allocation: the head with the numbers of `found`, and its arrays, which are not filled yet. */
static mc_plan_t *allocate(const mc_plan_t *found, bool has_empty, parts_t *parts)
{
    const size_t n = found->n_steps;
    const size_t step_bytes = n * sizeof *found->step;
    const size_t words = n + 1 + found->n_edges + n + found->n_peers;
    const size_t empty_bytes = has_empty ? (found->n_scratch / 64 + 1) * sizeof *found->empty : 0;
    const size_t bytes = sizeof *found + empty_bytes + step_bytes + words * sizeof(uint32_t);
    mc_plan_t *const plan = malloc(bytes);
    if (!plan)
        return NULL;
    parts->empty = (uint64_t *)(plan + 1);
    parts->step = (mc_step_t *)((char *)parts->empty + empty_bytes);
    parts->succ_off = (uint32_t *)((char *)parts->step + step_bytes);
    parts->succ = parts->succ_off + n + 1;
    parts->n_pred = parts->succ + found->n_edges;
    parts->peer = (int32_t *)(parts->n_pred + n);
    *plan = *found;
    plan->empty = has_empty ? parts->empty : found->empty;
    plan->step = parts->step;
    plan->succ_off = parts->succ_off;
    plan->succ = parts->succ;
    plan->n_pred = parts->n_pred;
    plan->peer = parts->peer;
    plan->bytes = bytes;
    return plan;
}

static int freeze(const segments_t *g, const messages_t *m, const mc_plan_t *head,
                  const mc_step_t *step, uint32_t n, mc_plan_t **out)
{
    const uint32_t n_edges = count_edges(g);
    mc_plan_t found = *head;
    found.step = step;
    found.n_steps = n;
    found.n_edges = n_edges;
    found.n_peers = m->n_peers;
    find_scratch(&found);
    parts_t parts;
    mc_plan_t *const plan = allocate(&found, head->empty != NULL, &parts);
    if (!plan)
        return mc_fail_memory("a plan");
    if (head->empty)
        copy_empty(head, &found, parts.empty);
    if (n > 0)
        memcpy(parts.step, step, (size_t)n * sizeof *step);
    for (uint32_t i = 0; i < n; i++)
        parts.step[i].seq = m->seq[i];
    spread_edges(g, n, parts.succ_off, parts.succ, parts.n_pred);
    fill_peers(m, parts.peer);
    *out = plan;
    return MESHCOLL_OK;
}

int mc_seal_steps(const mc_plan_t *head, const mc_step_t *step, uint32_t n_steps, mc_plan_t **plan)
{
    messages_t m = {0};
    segments_t g = {0};
    int status = check_steps(head, step, n_steps);
    if (!status)
        status = segments_create(head, step, n_steps, &g);
    if (!status)
        status = find_patterns(&g, head, step);
    if (!status)
        status = number_messages(&m, head, step, n_steps);
    if (!status)
        status = freeze(&g, &m, head, step, n_steps, plan);
    free(m.traffic);
    free(m.seq);
    segments_free(&g);
    return status;
}
