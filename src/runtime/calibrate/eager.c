#include "runtime/calibrate/eager.h"

#include "transport/shm/shm_memory.h"

#include <math.h>

/* FILL: bytes sent until a rank uses all of its board (shm_board.c), as programs do in the end. */
enum { LEAST = 4 << 10, TURNS = 3, RUNS = 6, FILL = 4 << 20 };

void mc_eager_set(mc_transport_t *transport, size_t bytes)
{
    if (transport)
        transport->eager = bytes;
}

static bool is_late(const mc_exchanges_t *e)
{
    return !(*e->now < e->end);
}

/* Both ways take turns. */
static int compare(const mc_exchanges_t *e, size_t bytes, bool *copied)
{
    double least[2] = {INFINITY, INFINITY};
    int status = MESHCOLL_OK;
    for (int i = 0; i < 2 * TURNS && !status; i++) {
        double seconds = 0;
        mc_eager_set(e->transport, i % 2 ? bytes : 0);
        status = e->run(e->context, bytes, RUNS, &seconds);
        least[i % 2] = fmin(least[i % 2], seconds);
    }
    *copied = least[1] <= least[0];
    return status;
}

/* First writes to shared memory take a multiple of later ones. */
static int fill_boards(const mc_exchanges_t *e, size_t bytes)
{
    double seconds;
    mc_eager_set(e->transport, bytes);
    return e->run(e->context, bytes, (int32_t)(FILL / bytes) / (e->ranks - 1), &seconds);
}

static int find(const mc_exchanges_t *e, double *found)
{
    const size_t first = MC_SHM_EAGER < e->most ? MC_SHM_EAGER : e->most / LEAST * LEAST;
    size_t bytes = first;
    bool copied = false;
    int status = bytes > LEAST ? fill_boards(e, bytes) : MESHCOLL_OK;
    if (status || bytes <= LEAST || is_late(e))
        return status;
    while (!status && !copied && bytes > LEAST) {
        status = compare(e, bytes, &copied);
        bytes = copied ? bytes : bytes / 2;
    }
    for (copied = copied && bytes == first;
         !status && copied && 2 * bytes <= e->most && !is_late(e);) {
        status = compare(e, 2 * bytes, &copied);
        bytes = copied ? 2 * bytes : bytes;
    }
    if (!status)
        *found = (double)bytes;
    return status;
}

int mc_eager_find(const mc_exchanges_t *e, double *found)
{
    const int status = find(e, found);
    mc_eager_set(e->transport, 0);
    return status;
}
