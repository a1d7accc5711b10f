#include "plan/pairs.h"

#include "plan/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The lines of a pair's source and destination; line i has places [i * places, (i + 1) * places).
 * `now` describes the part of SCRATCH written last, `next` the one being received into. */
typedef struct {
    int32_t from, to;
} ends_t;

struct mc_pairs {
    mc_pairs_way_t way;
    mc_layout_t layout; /* of a part of SCRATCH: two innermost dimensions, source and destination */
    int32_t places, n_lines, line, me;
    ends_t *now, *next; /* by the line in the chunk's number; one allocation */
    int32_t *len;       /* ranks of each line */
    uint64_t *empty;    /* by chunk of SCRATCH, a bit each; set until it is written; NULL: none */
    bool brought, came; /* its blocks are in SCRATCH; the blocks for it are in OUT */
};

static void start_segment(mc_pairs_t *p)
{
    for (int32_t line = 0; line < p->n_lines; line++)
        p->now[line] = p->next[line] = (ends_t){p->line, line};
    p->brought = p->came = false;
}

static int32_t length_of(const mc_mesh_t *mesh, int32_t line, int32_t places)
{
    int32_t len = places;
    while (len > 0 && mc_mesh_rank_at(mesh, line * places + len - 1) < 0)
        len--;
    return len;
}

static int fail_chunks(int32_t places, uint64_t chunks)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "an alltoall that gathers along lines of %d ranks would have %llu chunks of "
                   "scratch, more than a plan can number; a smaller innermost dimension, or one "
                   "that does not gather, has fewer",
                   places, (unsigned long long)chunks);
}

static int init_layout(const mc_layout_t *vector, mc_layout_t *layout)
{
    mc_mesh_t mesh = vector->mesh;
    bool cut[MC_MAX_DIMS];
    int32_t order[MC_MAX_DIMS];
    assert(mesh.ndims < MC_MAX_DIMS && vector->sides == 1);
    mesh.ragged = NULL;
    mesh.dim[mesh.ndims] = mesh.dim[mc_mesh_inner(&mesh)];
    const int64_t pairs = (int64_t)mc_mesh_places(&vector->mesh) * mesh.dim[mesh.ndims++].extent;
    if (pairs > INT32_MAX)
        return fail_chunks(mesh.dim[mesh.ndims - 1].extent, (uint64_t)pairs);
    mesh.size = (int32_t)pairs;
    for (int32_t d = 0; d < mesh.ndims; d++) {
        cut[d] = true;
        order[d] = d;
    }
    return mc_layout_init(&mesh, cut, order, vector->segments, layout);
}

int mc_pairs_init(mc_builder_t *b)
{
    const mc_mesh_t *const mesh = &b->head.layout.mesh;
    const int32_t place = mc_mesh_place(mesh, b->head.rank);
    mc_pairs_t *const p = calloc(1, sizeof *p);
    if (!p)
        return mc_fail_memory("an alltoall's pairs");
    p->places = mesh->dim[mc_mesh_inner(mesh)].extent;
    p->n_lines = mc_mesh_places(mesh) / p->places;
    p->line = place / p->places;
    p->me = place % p->places;
    p->now = malloc(2 * (size_t)p->n_lines * sizeof *p->now);
    p->len = malloc((size_t)p->n_lines * sizeof *p->len);
    int status = p->now && p->len ? init_layout(&b->head.layout, &p->layout)
                                  : mc_fail_memory("an alltoall's pairs");
    if (status) {
        mc_pairs_free(p);
        return status;
    }
    p->next = p->now + p->n_lines;
    for (int32_t line = 0; line < p->n_lines; line++)
        p->len[line] = length_of(mesh, line, p->places);
    start_segment(p);
    b->pairs = p;
    b->head.depth = (uint32_t)p->places;
    return MESHCOLL_OK;
}

void mc_pairs_free(mc_pairs_t *p)
{
    if (!p)
        return;
    free(p->empty);
    free(p->len);
    free(p->now);
    free(p);
}

/* Allocates the parts, once phases are counted: one for gathering, and one per exchange. */
static int init_parts(mc_builder_t *b)
{
    const uint64_t chunks = (uint64_t)mc_plan_part(&b->head) * ((uint64_t)b->turns + 1);
    if (chunks > UINT32_MAX)
        return fail_chunks(b->pairs->places, chunks);
    const size_t bytes = (size_t)(chunks / 64 + 1) * sizeof *b->pairs->empty;
    b->head.parts = (uint32_t)b->turns + 1;
    b->head.n_scratch = (uint32_t)chunks;
    if (!b->head.layout.mesh.ragged)
        return MESHCOLL_OK;
    b->head.empty = b->pairs->empty = malloc(bytes);
    if (!b->pairs->empty)
        return mc_fail_memory("an alltoall's pairs");
    memset(b->pairs->empty, 0xff, bytes);
    return MESHCOLL_OK;
}

/* Steps ------------------------------------------------------------------------------------------ */

/* The parts a step reads and writes; `shift`: the peer's line less this rank's. */
typedef struct {
    mc_builder_t *b;
    mc_op_t op;
    int32_t peer, shift;
    uint32_t src, dst;
} job_t;

/* A block at the peer corresponds to one here, seen from `shift` lines further: its source is
 * `shift` lines more, its destination as many less. */
static void note_ends(mc_pairs_t *p, int32_t line, int32_t shift)
{
    p->next[line] = (ends_t){p->now[line].from + shift, p->now[line].to - shift};
}

static void note_pair(const mc_pairs_t *p, uint32_t chunk, uint32_t at)
{
    const uint32_t n = (uint32_t)p->places;
    const ends_t ends = p->next[chunk % p->layout.per_segment / (n * n)];
    const bool there =
        (int32_t)(chunk / n % n) < p->len[ends.from] && (int32_t)(chunk % n) < p->len[ends.to];
    if (there)
        p->empty[at / 64] &= ~(UINT64_C(1) << at % 64);
}

static void note_written(const job_t *job, mc_range_t r)
{
    mc_pairs_t *const p = job->b->pairs;
    const uint32_t part = mc_plan_part(&job->b->head), n = (uint32_t)p->places;
    for (uint32_t k = 0; k < mc_range_chunks(r) && p->empty && !job->b->status; k++) {
        const uint32_t chunk = mc_range_chunk(r, k);
        if (job->shift)
            note_ends(p, (int32_t)(chunk % p->layout.per_segment / (n * n)), job->shift);
        note_pair(p, chunk, job->dst * part + chunk);
    }
}

static void add_range(void *context, mc_range_t r)
{
    const job_t *const job = context;
    const uint32_t part = mc_plan_part(&job->b->head);
    mc_step_t step = mc_step_of(job->op, job->peer, MC_SCRATCH, MC_SCRATCH, r);
    step.first += mc_op_reads(job->op) ? job->src * part : 0;
    step.to += mc_op_writes(job->op) ? job->dst * part : 0;
    mc_append(job->b, step);
    if (mc_op_writes(job->op))
        note_written(job, r);
}

static void add_tile(mc_builder_t *b, mc_op_t op, int32_t place, mc_tile_t v, uint32_t src,
                     uint32_t dst)
{
    const mc_pairs_t *const p = b->pairs;
    job_t job = {.b = b, .op = op, .peer = mc_towards(b, place).peer, .src = src, .dst = dst};
    if (p->way == MC_PAIRS_EXCHANGE && op == MC_OP_RECV)
        job.shift = place / p->places - p->line;
    mc_tile_ranges(&p->layout, &v, add_range, &job);
}

/* Adds a step over a whole segment of the user's buffer. */
static void add_whole(mc_builder_t *b, mc_op_t op, int32_t place, mc_buffer_t buffer,
                      uint32_t segment)
{
    const uint32_t n = b->head.layout.per_segment;
    const mc_range_t all = {.first = segment * n, .run = n, .nrun = 1};
    mc_append(b, mc_step_of(op, mc_towards(b, place).peer, buffer, buffer, all));
}

/* Returns the chunk of a pair: of `line`, from place `from` of its line and for place `to`. */
static uint32_t pair_at(const mc_pairs_t *p, uint32_t segment, int32_t line, int32_t from,
                        int32_t to)
{
    return segment * p->layout.per_segment + (uint32_t)((line * p->places + from) * p->places + to);
}

/* Copies this rank's blocks to SCRATCH, line by line. */
static void bring(mc_builder_t *b, uint32_t segment)
{
    mc_pairs_t *const p = b->pairs;
    const job_t job = {.b = b, .dst = 0};
    for (int32_t line = 0; line < p->n_lines && !p->brought; line++) {
        const mc_range_t to = {
            .first = pair_at(p, segment, line, p->me, 0), .run = (uint32_t)p->len[line], .nrun = 1};
        mc_step_t step = mc_step_of(MC_OP_COPY, -1, MC_IN, MC_SCRATCH, to);
        step.first = segment * b->head.layout.per_segment + (uint32_t)(line * p->places);
        mc_append(b, step);
        note_written(&job, to);
    }
    p->brought = true;
}

/* Copies the blocks for this rank to OUT; they are not contiguous. */
static void bring_out(mc_builder_t *b, uint32_t segment)
{
    const mc_pairs_t *const p = b->pairs;
    const uint32_t last = (b->head.parts - 1) * mc_plan_part(&b->head);
    for (int32_t line = 0; line < p->n_lines; line++)
        for (int32_t from = 0; from < p->len[line]; from++) {
            const uint32_t home = (uint32_t)(line * p->places + from);
            const mc_range_t one = {
                .first = last + pair_at(p, segment, line, from, p->me), .run = 1, .nrun = 1};
            mc_step_t step = mc_step_of(MC_OP_COPY, -1, MC_SCRATCH, MC_OUT, one);
            step.to = segment * b->head.layout.per_segment + home;
            mc_append(b, step);
        }
}

/* Calls ------------------------------------------------------------------------------------------ */

void mc_pairs_begin(mc_builder_t *b, mc_pairs_way_t way)
{
    mc_pairs_t *const p = b->pairs;
    p->way = way;
    for (int32_t line = 0; line < p->n_lines && way == MC_PAIRS_SCATTER; line++)
        p->now[line] = p->next[line] = (ends_t){line, p->line};
}

/* Cuts a tile by destination instead of source: the tile of a scatter rather than a gather. */
static mc_tile_t by_receiver(const mc_builder_t *b, mc_tile_t v)
{
    v.cut.first = b->head.layout.mesh.ndims;
    return v;
}

void mc_pairs_send(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    const mc_pairs_t *const p = b->pairs;
    if (b->counting)
        return;
    if (p->way == MC_PAIRS_SCATTER) {
        add_tile(b, MC_OP_SEND, peer, by_receiver(b, v), b->head.parts - 1, 0);
    } else if (v.len == 1) { /* its own blocks only */
        add_whole(b, MC_OP_SEND, peer, MC_IN, v.segment);
    } else {
        bring(b, v.segment);
        add_tile(b, MC_OP_SEND, peer, v, 0, 0);
    }
}

void mc_pairs_recv(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    mc_pairs_t *const p = b->pairs;
    if (b->counting)
        return;
    if (p->way == MC_PAIRS_GATHER) {
        add_tile(b, MC_OP_RECV, peer, v, 0, 0);
    } else if (v.len == 1) {
        add_whole(b, MC_OP_RECV, peer, MC_OUT, v.segment);
        p->came = true;
    } else {
        add_tile(b, MC_OP_RECV, peer, by_receiver(b, v), 0, b->head.parts - 1);
    }
}

void mc_pairs_give(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    bring(b, v.segment);
    add_tile(b, MC_OP_SEND, peer, v, (uint32_t)b->turn, 0);
}

void mc_pairs_take(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    add_tile(b, MC_OP_RECV, peer, v, 0, (uint32_t)b->turn + 1);
}

void mc_pairs_keep(mc_builder_t *b, mc_tile_t v)
{
    bring(b, v.segment);
    add_tile(b, MC_OP_COPY, -1, v, (uint32_t)b->turn, (uint32_t)b->turn + 1);
}

void mc_pairs_turn(mc_builder_t *b)
{
    memcpy(b->pairs->now, b->pairs->next, (size_t)b->pairs->n_lines * sizeof *b->pairs->now);
}

void mc_pairs_settle(mc_builder_t *b, uint32_t segment)
{
    if (b->counting) {
        const int status = init_parts(b);
        b->status = b->status ? b->status : status;
    } else if (!b->pairs->came && !b->status) {
        bring_out(b, segment);
    }
    start_segment(b->pairs);
}
