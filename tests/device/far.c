#include "far.h"

#include "support/inproc.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Receives advance in each LATE-th turn only; of two ranks as seldom as VERY_LATE, in seconds, and not at first: then
 * sends wait for them, and the kernel comes to slots that are still to be sent. */
enum { RANKS = 8, LATE = 3 };
#define VERY_LATE 0.005
/* Seconds in which what is left must come when the kernels have ended. */
#define SOON 5.0

struct mc_far {
    int ranks;
    char machine[RANKS + 1];
    mc_transport_t *transport[RANKS];
    mc_io_queue_t finished[RANKS];
    mc_route_t *route[RANKS][RANKS][2]; /* from, to, receives; NULL: on one machine */
    pthread_t thread;
    _Atomic bool ends;
    bool good;
};

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, meshcoll_last_error());
    exit(2);
}

static mc_route_t *make(mc_far_t *far, int from, int to, bool receives, uint32_t blocks,
                        uint32_t most)
{
    const int own = receives ? to : from, other = receives ? from : to;
    mc_route_params_t params = {.receives = receives,
                                .blocks = blocks,
                                .slot_bytes = most,
                                .own_tag = mc_tag(own, 0, 0),
                                .peers_tag = mc_tag(other, 0, 0)};
    mc_route_t *route;
    mc_peer_t *peer;
    need(posix_memalign(&params.host, 64, mc_route_host_bytes(blocks, most, true)) == 0, "memory");
    memset(params.host, 0, mc_route_host_bytes(blocks, most, true));
    params.device = (uintptr_t)params.host;
    need(mc_route_make(&params, &route) == MESHCOLL_OK, "a route");
    mc_transport_t *const t = far->transport[own];
    need(t->ops->connect(t, other, NULL, &peer) == MESHCOLL_OK, "a connection");
    mc_route_connect(route, peer, &far->finished[own]);
    return route;
}

mc_far_t *mc_far_open(int ranks, const char *machines, uint32_t blocks, uint32_t most_slot_bytes)
{
    mc_far_t *const far = calloc(1, sizeof *far);
    need(far && ranks <= RANKS && strlen(machines) == (size_t)ranks, "machines");
    far->ranks = ranks;
    snprintf(far->machine, sizeof far->machine, "%s", machines);
    need(mc_inproc_hub(ranks, far->transport) == MESHCOLL_OK, "a hub");
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            for (int receives = 0; receives < 2 && mc_far_joins(far, a, b); receives++)
                far->route[a][b][receives] = make(far, a, b, receives, blocks, most_slot_bytes);
    return far;
}

/* Calls `use` for each route. */
static void each(mc_far_t *far, void (*use)(mc_route_t *route, void *context), void *context)
{
    for (int a = 0; a < far->ranks; a++)
        for (int b = 0; b < far->ranks; b++)
            for (int receives = 0; receives < 2; receives++)
                if (far->route[a][b][receives])
                    use(far->route[a][b][receives], context);
}

static void free_route(mc_route_t *route, void *context)
{
    (void)context;
    free(route->params.host);
    mc_route_free(route);
}

void mc_far_close(mc_far_t *far)
{
    for (int r = 0; r < far->ranks; r++)
        far->transport[r]->ops->close(far->transport[r]);
    each(far, free_route, NULL);
    free(far);
}

bool mc_far_joins(const mc_far_t *far, int a, int b)
{
    return far->machine[a] != far->machine[b];
}

mc_device_lane_t mc_far_lane(const mc_far_t *far, int from, int to, bool receives, uint32_t block,
                             uint64_t *count)
{
    return mc_route_lane(far->route[from][to][receives], block, count);
}

static void set_slot(mc_route_t *route, void *bytes)
{
    route->params.slot_bytes = *(const uint32_t *)bytes;
}

void mc_far_settle(mc_far_t *far, uint32_t slot_bytes)
{
    each(far, set_slot, &slot_bytes);
}

void mc_far_give(mc_far_t *far, int rank, mc_device_program_t *program,
                 const mc_device_call_t *call)
{
    for (uint32_t lane = 0; lane < 2 * program->n_peers; lane++) {
        const int peer = program->peer[lane / 2];
        const bool receives = lane % 2;
        mc_route_t *const route =
            far->route[receives ? peer : rank][receives ? rank : peer][receives];
        mc_route_launch_t *launch;
        if (!route)
            continue;
        need(route->n_posted == 0 || !mc_route_is_quiet(route) || route->spare || route->spent,
             "what an earlier launch had");
        need(mc_route_launch(route, program, lane, call, call->digest, &launch) == MESHCOLL_OK,
             "a launch");
        mc_route_give(launch);
    }
}

/* The proxy --------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t number, moved;
    bool receives; /* advance in this turn */
    int status;
    bool quiet;
} turn_t;

static void advance(mc_route_t *route, void *context)
{
    turn_t *const turn = context;
    if (turn->status == MESHCOLL_OK && (!route->params.receives || turn->receives))
        turn->status = mc_route_advance(route, &turn->moved);
    turn->quiet = turn->quiet && mc_route_is_quiet(route);
}

static void *move(void *argument)
{
    mc_far_t *const far = argument;
    double end = 0, next = mc_now() + VERY_LATE;
    bool ends;
    turn_t turn = {0};
    do {
        ends = far->ends;
        turn = (turn_t){.number = turn.number + 1,
                        .receives = far->ranks == 2 ? mc_now() >= next : turn.number % LATE == 0,
                        .quiet = true};
        next = turn.receives ? mc_now() + VERY_LATE : next;
        for (int r = 0; r < far->ranks && !turn.status; r++) {
            turn.moved += far->transport[r]->ops->progress(far->transport[r]);
            turn.status = mc_route_finish(&far->finished[r]);
        }
        each(far, advance, &turn);
        if (turn.moved == 0)
            sched_yield();
        if (ends && end == 0)
            end = mc_now() + SOON;
    } while (turn.status == MESHCOLL_OK && !(ends && (turn.quiet || mc_now() > end)));
    far->good = turn.status == MESHCOLL_OK && turn.quiet;
    if (!far->good)
        printf("a proxy: %s\n", turn.status ? meshcoll_last_error() : "messages are left");
    return NULL;
}

void mc_far_start(mc_far_t *far)
{
    far->ends = false;
    need(pthread_create(&far->thread, NULL, move, far) == 0, "a thread");
}

bool mc_far_stop(mc_far_t *far)
{
    far->ends = true;
    pthread_join(far->thread, NULL);
    return far->good;
}
