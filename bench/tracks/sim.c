#include "sim.h"

#include <math.h>
#include <stdlib.h>

/* Messages of one rank to another in a track: when each has arrived, and when it was taken. */
typedef struct {
    double *arrived, *taken;
    uint32_t sent, received, capacity;
} lane_t;

typedef struct {
    double now;
    uint32_t at, pass;
} walker_t;

typedef struct {
    const sim_t *sim;
    int32_t n;
    walker_t walker[SIM_RANKS][MC_DEVICE_TRACKS];
    double *mark[SIM_RANKS][MC_DEVICE_TRACKS]; /* when each was set, those of all passes */
    uint32_t marks[SIM_RANKS][MC_DEVICE_TRACKS];
    double inside[SIM_RANKS], outside[SIM_RANKS]; /* when the NVLinks and the NIC are free */
    lane_t lane[MC_DEVICE_TRACKS][SIM_RANKS][SIM_RANKS];
} world_t;

static uint32_t track_of(const mc_device_run_t *r)
{
    return (uint32_t)r->flags >> MC_DEVICE_TRACK_SHIFT;
}

static bool grow(lane_t *l)
{
    if (l->sent < l->capacity)
        return true;
    const uint32_t capacity = l->capacity ? 2 * l->capacity : 64;
    double *const arrived = realloc(l->arrived, capacity * sizeof *arrived);
    l->arrived = arrived ? arrived : l->arrived;
    double *const taken = realloc(l->taken, capacity * sizeof *taken);
    l->taken = taken ? taken : l->taken;
    if (arrived && taken)
        l->capacity = capacity;
    return arrived && taken;
}

/* One message of a step, or a local run: runs [at, end). */
typedef struct {
    const mc_device_run_t *run;
    uint32_t end;
    double bytes; /* in a pass */
    lane_t *lane; /* NULL: no message */
    const mc_link_t *link;
    bool sends, far;
} part_t;

static part_t part_of(world_t *w, int32_t rank, uint32_t at)
{
    const sim_t *const s = w->sim;
    const mc_device_program_t *const p = s->program[rank];
    part_t part = {.run = &p->run[at], .end = at, .sends = p->run[at].op == MC_DEVICE_SEND};
    do
        part.bytes += (double)p->run[part.end].n * (double)p->run[part.end].bytes / s->passes;
    while (p->run[part.end++].flags & MC_DEVICE_MORE);
    if (part.run->op > MC_DEVICE_RECV_REDUCE)
        return part;
    const int32_t peer = p->peer[part.run->lane / 2];
    const int32_t level = mc_mesh_level(s->mesh, rank, peer);
    lane_t(*const lanes)[SIM_RANKS] = w->lane[track_of(part.run)];
    part.lane = part.sends ? &lanes[rank][peer] : &lanes[peer][rank];
    part.link = &s->links->dim[level];
    part.far = !mc_dim_is_inside(&s->mesh->dim[level]);
    return part;
}

/* When the wait for it ends; infinite: not yet known. */
static double ready(const part_t *part)
{
    const lane_t *const l = part->lane;
    if (!l)
        return 0;
    if (!part->sends)
        return l->received < l->sent ? l->arrived[l->received] : INFINITY;
    if (l->sent < MC_DEVICE_SLOTS)
        return 0;
    return l->sent - MC_DEVICE_SLOTS < l->received ? l->taken[l->sent - MC_DEVICE_SLOTS] : INFINITY;
}

/* When the walker has done it; NAN: no memory. */
static double move(world_t *w, int32_t rank, const part_t *part, double now)
{
    const sim_t *const s = w->sim;
    if (!part->lane)
        return now + 2 * part->bytes / s->memory;
    if (!part->sends) {
        const double slot = part->far ? s->slots : s->memory;
        const int accesses = part->run->op == MC_DEVICE_RECV ? 1 : 2;
        now += part->link->gap + part->bytes / slot + accesses * part->bytes / s->memory;
        part->lane->taken[part->lane->received++] = now + part->link->alpha;
        return now;
    }
    if (!grow(part->lane))
        return NAN;
    now += part->link->gap;
    double *const wire = part->far ? &w->outside[rank] : &w->inside[rank];
    if (part->far)
        now += part->bytes / s->slots;
    *wire = fmax(now, *wire) + part->bytes * part->link->beta;
    if (!part->far)
        now = *wire; /* the block writes over the link itself */
    part->lane->arrived[part->lane->sent++] = *wire + part->link->alpha;
    return now;
}

/* A mark or a wait for one. */
static bool order(world_t *w, int32_t rank, const mc_device_run_t *r, walker_t *k)
{
    const mc_device_program_t *const p = w->sim->program[rank];
    double *const mark = w->mark[rank][r->lane];
    if (r->op == MC_DEVICE_MARK) {
        mark[w->marks[rank][r->lane]++] = k->now;
        return true;
    }
    const uint32_t needed = k->pass * p->marks[r->lane] + r->n;
    if (w->marks[rank][r->lane] < needed)
        return false;
    k->now = fmax(k->now, mark[needed - 1]);
    return true;
}

/* A track's next step; false: it waits. */
static bool step(world_t *w, int32_t rank, walker_t *k)
{
    const mc_device_program_t *const p = w->sim->program[rank];
    double now = k->now;
    uint32_t end = k->at;
    bool joins = true;
    while (joins) {
        const part_t part = part_of(w, rank, end);
        now = fmax(now, ready(&part));
        end = part.end;
        joins = p->run[end - 1].flags & MC_DEVICE_JOIN;
    }
    if (isinf(now))
        return false;
    for (uint32_t at = k->at; at < end;) {
        const part_t part = part_of(w, rank, at);
        now = move(w, rank, &part, now);
        at = part.end;
    }
    k->now = now;
    k->at = end;
    return true;
}

static bool walk(world_t *w, int32_t rank, uint32_t track)
{
    const mc_device_program_t *const p = w->sim->program[rank];
    walker_t *const k = &w->walker[rank][track];
    bool any = false;
    for (; k->pass < w->sim->passes; k->pass++, k->at = 0)
        while (k->at < p->n_runs) {
            const mc_device_run_t *const r = &p->run[k->at];
            if (track_of(r) != track || r->op >= MC_DEVICE_MARK) {
                if (track_of(r) == track && !order(w, rank, r, k))
                    return any;
                k->at++;
            } else if (!step(w, rank, k)) {
                return any;
            }
            any = true;
        }
    return any;
}

static double end_of(const world_t *w)
{
    double end = 0;
    for (int32_t r = 0; r < w->n; r++)
        for (uint32_t t = 0; t < w->sim->program[r]->tracks; t++) {
            const walker_t *const k = &w->walker[r][t];
            if (k->pass < w->sim->passes || isnan(k->now))
                return -1;
            end = fmax(end, k->now);
        }
    return end;
}

static void close_world(world_t *w)
{
    for (int32_t a = 0; a < w->n; a++)
        for (uint32_t t = 0; t < MC_DEVICE_TRACKS; t++) {
            free(w->mark[a][t]);
            for (int32_t b = 0; b < w->n; b++) {
                free(w->lane[t][a][b].arrived);
                free(w->lane[t][a][b].taken);
            }
        }
    free(w);
}

double sim_run(const sim_t *sim)
{
    world_t *const w = calloc(1, sizeof *w);
    double end = -1;
    bool any = w != NULL;
    if (!w)
        return end;
    w->sim = sim;
    w->n = sim->mesh->size;
    for (int32_t r = 0; r < w->n; r++)
        for (uint32_t t = 0; t < MC_DEVICE_TRACKS; t++) {
            const size_t marks = (size_t)sim->passes * sim->program[r]->marks[t] + 1;
            w->mark[r][t] = calloc(marks, sizeof(double));
            any = any && w->mark[r][t];
        }
    while (any) {
        any = false;
        for (int32_t r = 0; r < w->n; r++)
            for (uint32_t t = 0; t < sim->program[r]->tracks; t++)
                any = walk(w, r, t) || any;
    }
    end = end_of(w);
    close_world(w);
    return end;
}
