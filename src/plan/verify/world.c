/* The symbolic machine. Equal sums are stored once, so that equal values have equal numbers. */
#include "plan/verify/world.h"

#include "plan/verify/match.h"

#include <stdlib.h>
#include <string.h>

/* A sum of two values; `size` counts its leaves, `chunk` is their chunk, or MIXED. */
typedef struct {
    mc_value_t left, right;
    uint32_t size, chunk;
} sum_t;

/* A hash table entry: finds a sum by its operands, repeated here to save a memory access. */
typedef struct {
    mc_value_t left, right;
    uint32_t sum; /* its index + 1, 0 where the entry is empty */
} entry_t;

static const uint32_t MIXED = UINT32_MAX;

typedef struct {
    size_t out, scratch; /* where the rank's cells start */
    /* its home chunk in a segment of each side */
    uint32_t home[MC_MAX_SIDES];
} place_t;

struct mc_machine {
    const mc_plan_t *const *plan;
    int32_t n_ranks;
    bool in_place;
    uint32_t n_chunks, n_leaves;
    place_t *place; /* by rank */
    mc_value_t *cell;
    size_t n_cells;
    sum_t *sum; /* sum i is value n_leaves + 1 + i */
    uint32_t n_sums, sum_capacity;
    entry_t *table; /* open addressing */
    uint32_t table_capacity;
};

static uint32_t cells_of(const mc_plan_t *plan, mc_holds_t holds)
{
    if (holds == MC_HOLDS_WHOLE)
        return plan->n_chunks;
    return holds == MC_HOLDS_HOME ? plan->layout.segments : 0;
}

/* Assigns each rank its cells. */
static void lay_out(mc_machine_t *m)
{
    for (int32_t r = 0; r < m->n_ranks; r++) {
        const mc_plan_t *const plan = m->plan[r];
        m->place[r].out = m->n_cells;
        m->place[r].scratch = m->n_cells += cells_of(plan, plan->out);
        for (uint32_t side = 0; side < plan->layout.sides; side++)
            m->place[r].home[side] =
                mc_layout_home(&plan->layout, r, side) % plan->layout.per_segment;
        m->n_cells += plan->n_scratch;
    }
}

int mc_machine_create(const mc_world_t *world, bool in_place, mc_machine_t **machine)
{
    enum { TABLE = 1024 };
    const uint32_t n_chunks = world->plan[0]->n_chunks;
    const uint64_t n_leaves = (uint64_t)n_chunks * (uint64_t)world->n_ranks;
    if (n_leaves >= UINT32_MAX / 2)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "a world of %d ranks and %u chunks: at most 2^31 chunks in all are traced",
                       world->n_ranks, n_chunks);
    mc_machine_t *const m = calloc(1, sizeof *m);
    if (!m)
        return mc_fail_memory("the machine of a world");
    m->plan = world->plan;
    m->n_ranks = world->n_ranks;
    m->n_chunks = n_chunks;
    m->n_leaves = (uint32_t)n_leaves;
    m->place = calloc((size_t)m->n_ranks, sizeof *m->place);
    if (m->place)
        lay_out(m);
    m->cell = malloc((m->n_cells + 1) * sizeof *m->cell);
    m->table_capacity = TABLE;
    m->table = calloc(m->table_capacity, sizeof *m->table);
    if (!m->place || !m->cell || !m->table) {
        mc_machine_destroy(m);
        return mc_fail_memory("the machine of a world");
    }
    mc_machine_reset(m, in_place);
    *machine = m;
    return MESHCOLL_OK;
}

void mc_machine_destroy(mc_machine_t *m)
{
    if (!m)
        return;
    free(m->table);
    free(m->sum);
    free(m->cell);
    free(m->place);
    free(m);
}

/* Cells ------------------------------------------------------------------------------------------ */

static bool holds(const mc_machine_t *m, int32_t rank, mc_holds_t what, uint32_t chunk)
{
    const mc_layout_t *const l = &m->plan[rank]->layout;
    if (what == MC_HOLDS_HOME)
        return chunk < m->n_chunks &&
               chunk % l->per_segment ==
                   m->place[rank].home[mc_layout_side(l, chunk / l->per_segment)];
    return what == MC_HOLDS_WHOLE && chunk < m->n_chunks;
}

/* Returns the cell of a chunk that OUT holds. */
static size_t out_cell(const mc_machine_t *m, int32_t rank, uint32_t chunk)
{
    const mc_plan_t *const plan = m->plan[rank];
    const uint32_t at = plan->out == MC_HOLDS_WHOLE ? chunk : chunk / plan->layout.per_segment;
    return m->place[rank].out + at;
}

static bool in_scratch(const mc_plan_t *plan, uint32_t chunk)
{
    return chunk - plan->scratch_first < plan->n_scratch;
}

/* Returns the cell of a chunk of OUT or SCRATCH, or NULL where the rank has none. */
static mc_value_t *cell_of(const mc_machine_t *m, int32_t rank, uint8_t buffer, uint32_t chunk)
{
    const mc_plan_t *const plan = m->plan[rank];
    if (buffer == MC_OUT && holds(m, rank, plan->out, chunk))
        return &m->cell[out_cell(m, rank, chunk)];
    if (buffer == MC_SCRATCH && in_scratch(plan, chunk))
        return &m->cell[m->place[rank].scratch + (chunk - plan->scratch_first)];
    return NULL;
}

mc_value_t mc_machine_leaf(const mc_machine_t *m, int32_t rank, uint32_t chunk)
{
    return 1 + (uint32_t)rank * m->n_chunks + chunk;
}

mc_value_t mc_machine_value(const mc_machine_t *m, int32_t rank, mc_buffer_t buffer, uint32_t chunk)
{
    const mc_plan_t *const plan = m->plan[rank];
    const mc_value_t *cell = NULL;
    if (buffer != MC_IN)
        cell = cell_of(m, rank, (uint8_t)buffer, chunk);
    else if (!holds(m, rank, plan->in, chunk))
        return MC_NOTHING;
    else if (m->in_place && holds(m, rank, plan->out, chunk))
        cell = cell_of(m, rank, MC_OUT, chunk);
    else
        return mc_machine_leaf(m, rank, chunk);
    return cell ? *cell : MC_NOTHING;
}

/* Initialises the chunks that IN and OUT both hold to IN's values. */
static void share_buffers(mc_machine_t *m, int32_t rank)
{
    const mc_plan_t *const plan = m->plan[rank];
    const bool home_only = plan->in == MC_HOLDS_HOME || plan->out == MC_HOLDS_HOME;
    if (plan->in == MC_HOLDS_NONE || plan->out == MC_HOLDS_NONE)
        return;
    const uint32_t n = home_only ? plan->layout.segments : m->n_chunks;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t chunk = home_only ? mc_layout_home(&plan->layout, rank, i) : i;
        m->cell[out_cell(m, rank, chunk)] = mc_machine_leaf(m, rank, chunk);
    }
}

void mc_machine_reset(mc_machine_t *m, bool in_place)
{
    memset(m->cell, 0, m->n_cells * sizeof *m->cell);
    m->in_place = in_place;
    for (int32_t r = 0; in_place && r < m->n_ranks; r++)
        share_buffers(m, r);
}

/* Values ----------------------------------------------------------------------------------------- */

static const sum_t *sum_of(const mc_machine_t *m, mc_value_t value)
{
    return value > m->n_leaves ? &m->sum[value - m->n_leaves - 1] : NULL;
}

static uint32_t size_of(const mc_machine_t *m, mc_value_t value)
{
    const sum_t *const sum = sum_of(m, value);
    return sum ? sum->size : 1;
}

static uint32_t chunk_of(const mc_machine_t *m, mc_value_t value)
{
    const sum_t *const sum = sum_of(m, value);
    return sum ? sum->chunk : (value - 1) % m->n_chunks;
}

/* Returns the entry of this sum, or the empty one where it belongs. */
static entry_t *entry_of(const mc_machine_t *m, mc_value_t left, mc_value_t right)
{
    const uint64_t hash = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t at = (uint32_t)(hash >> 32);; at++) {
        entry_t *const entry = &m->table[at & (m->table_capacity - 1)];
        if (entry->sum == 0 || (entry->left == left && entry->right == right))
            return entry;
    }
}

/* Keeps at least half of the table empty, so that probing stays short. */
static int grow_table(mc_machine_t *m)
{
    if (2 * (m->n_sums + 1) <= m->table_capacity)
        return MESHCOLL_OK;
    const uint32_t capacity = 2 * m->table_capacity;
    entry_t *const table = calloc(capacity, sizeof *table);
    if (!table)
        return mc_fail_memory("the sums of a world");
    free(m->table);
    m->table = table;
    m->table_capacity = capacity;
    for (uint32_t i = 0; i < m->n_sums; i++)
        *entry_of(m, m->sum[i].left, m->sum[i].right) =
            (entry_t){.left = m->sum[i].left, .right = m->sum[i].right, .sum = i + 1};
    return MESHCOLL_OK;
}

static int grow_sums(mc_machine_t *m)
{
    const uint32_t most = UINT32_MAX / 4;
    if (m->n_sums >= most)
        return mc_fail(
            MESHCOLL_ERR_UNSUPPORTED,
            "the plans of all ranks make more than 2^30 different sums, and cannot be verified");
    sum_t *const sum = mc_grown(m->sum, m->n_sums, &m->sum_capacity, sizeof *sum);
    if (!sum)
        return mc_fail_memory("the sums of a world");
    m->sum = sum;
    return MESHCOLL_OK;
}

static int add(mc_machine_t *m, mc_value_t left, mc_value_t right, mc_value_t *value)
{
    int status = grow_table(m);
    if (!status)
        status = grow_sums(m);
    if (status)
        return status;
    entry_t *const entry = entry_of(m, left, right);
    if (entry->sum == 0) {
        const uint64_t size = (uint64_t)size_of(m, left) + size_of(m, right);
        const uint32_t chunk = chunk_of(m, left);
        m->sum[m->n_sums] = (sum_t){.left = left,
                                    .right = right,
                                    .size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
                                    .chunk = chunk == chunk_of(m, right) ? chunk : MIXED};
        *entry = (entry_t){.left = left, .right = right, .sum = ++m->n_sums};
    }
    *value = m->n_leaves + entry->sum;
    return MESHCOLL_OK;
}

uint32_t mc_value_ranks(const mc_machine_t *m, mc_value_t value, int32_t *ranks, uint32_t capacity,
                        uint32_t *n)
{
    *n = value == MC_NOTHING ? 0 : size_of(m, value);
    if (value == MC_NOTHING)
        return MIXED;
    const uint32_t room = *n < capacity ? *n : capacity;
    if (room > 0)
        ranks[0] = (int32_t)value;
    /* ranks[i] first holds a value: a sum leaves its left operand there and puts the right one
     * behind the left one's leaves */
    for (uint32_t i = 0; i < room; i++) {
        mc_value_t v = (mc_value_t)ranks[i];
        for (const sum_t *sum = sum_of(m, v); sum; sum = sum_of(m, v)) {
            const uint32_t left = size_of(m, sum->left);
            if (left < room - i)
                ranks[i + left] = (int32_t)sum->right;
            v = sum->left;
        }
        ranks[i] = (int32_t)((v - 1) / m->n_chunks);
    }
    return chunk_of(m, value);
}

bool mc_value_operands(const mc_machine_t *m, mc_value_t value, mc_value_t *left, mc_value_t *right)
{
    const sum_t *const sum = value == MC_NOTHING ? NULL : sum_of(m, value);
    if (!sum)
        return false;
    *left = sum->left;
    *right = sum->right;
    return true;
}

/* Steps ------------------------------------------------------------------------------------------ */

static int fail_chunk(const mc_machine_t *m, int32_t rank, uint32_t step, const char *what,
                      uint8_t buffer, uint32_t chunk, const char *why)
{
    return mc_fail_step(m->plan[rank], step, "%s %s[%u], %s%s", what,
                        mc_buffer_name((mc_buffer_t)buffer), chunk, why,
                        m->in_place ? " (in place)" : "");
}

/* Returns a chunk's value; an absent chunk that nobody wrote is one fixed leaf. It is empty, and
 * may be sent and copied along with its neighbours. */
static mc_value_t value_or_empty(const mc_machine_t *m, int32_t rank, uint8_t buffer,
                                 uint32_t chunk)
{
    const mc_value_t found = mc_machine_value(m, rank, (mc_buffer_t)buffer, chunk);
    const uint32_t n = m->n_chunks;
    if (found != MC_NOTHING || !mc_plan_absent(m->plan[rank], (mc_buffer_t)buffer, chunk))
        return found;
    return mc_machine_leaf(m, 0, chunk % n);
}

static int read_chunk(const mc_machine_t *m, int32_t rank, uint32_t step, uint8_t buffer,
                      uint32_t chunk, mc_value_t *value)
{
    const mc_value_t found = value_or_empty(m, rank, buffer, chunk);
    if (found == MC_NOTHING)
        return fail_chunk(m, rank, step, "reads", buffer, chunk,
                          buffer == MC_IN ? "which this rank does not hold"
                                          : "which nothing has written yet");
    *value = found;
    return MESHCOLL_OK;
}

static int write_chunk(const mc_machine_t *m, int32_t rank, uint32_t step, uint8_t buffer,
                       uint32_t chunk, mc_value_t value)
{
    mc_value_t *const cell = cell_of(m, rank, buffer, chunk);
    if (!cell)
        return fail_chunk(m, rank, step, "writes", buffer, chunk,
                          buffer == MC_IN ? "which is read only" : "which this rank does not hold");
    *cell = value;
    return MESHCOLL_OK;
}

/* Computes the value a step writes to one chunk; `message` is the received value. */
static int result_of(mc_machine_t *m, int32_t rank, uint32_t step, uint32_t from, uint32_t to,
                     mc_value_t message, mc_value_t *value)
{
    const mc_step_t *const s = &m->plan[rank]->step[step];
    mc_value_t left = MC_NOTHING, right = message;
    int status = MESHCOLL_OK;
    switch ((mc_op_t)s->op) {
    case MC_OP_RECV:
        *value = message;
        return MESHCOLL_OK;
    case MC_OP_COPY:
        return read_chunk(m, rank, step, s->src, from, value);
    case MC_OP_RECV_REDUCE:
        status = read_chunk(m, rank, step, s->src, from, &left);
        break;
    case MC_OP_REDUCE:
        status = read_chunk(m, rank, step, s->src, from, &left);
        if (!status)
            status = read_chunk(m, rank, step, s->dst, to, &right);
        break;
    case MC_OP_REDUCE_BEHIND:
        status = read_chunk(m, rank, step, s->dst, to, &left);
        if (!status)
            status = read_chunk(m, rank, step, s->src, from, &right);
        break;
    case MC_OP_SEND:
    case MC_OPS:
        return mc_fail_step(m->plan[rank], step, "writes nothing");
    }
    if (status)
        return status;
    return s->flags & MC_MESSAGE_FIRST ? add(m, right, left, value) : add(m, left, right, value);
}

/* Runs a step that writes, chunk by chunk. */
static int run_step(mc_machine_t *m, int32_t rank, uint32_t step, const mc_value_t *message)
{
    const mc_step_t *const s = &m->plan[rank]->step[step];
    int status = MESHCOLL_OK;
    for (uint32_t k = 0; k < s->run * s->nrun && !status; k++) {
        const uint32_t to = mc_range_chunk(mc_step_to(s), k);
        mc_value_t value = MC_NOTHING;
        status = result_of(m, rank, step, mc_range_chunk(mc_step_from(s), k), to,
                           message ? message[k] : MC_NOTHING, &value);
        if (!status)
            status = write_chunk(m, rank, step, s->dst, to, value);
    }
    return status;
}

int mc_machine_local(mc_machine_t *m, int32_t rank, uint32_t step)
{
    return run_step(m, rank, step, NULL);
}

int mc_machine_send(mc_machine_t *m, int32_t rank, uint32_t step, mc_value_t *message)
{
    const mc_step_t *const s = &m->plan[rank]->step[step];
    int status = MESHCOLL_OK;
    for (uint32_t k = 0; k < s->run * s->nrun && !status; k++)
        status = read_chunk(m, rank, step, s->src, mc_range_chunk(mc_step_from(s), k), &message[k]);
    return status;
}

int mc_machine_recv(mc_machine_t *m, int32_t rank, uint32_t step, const mc_value_t *message)
{
    return run_step(m, rank, step, message);
}
