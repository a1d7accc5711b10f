#include "calls/flight.h"

#include "base/base.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

typedef struct {
    meshcoll_t *mesh;
    int n, turns;
    double *in, *out;
    meshcoll_request_t **request; /* of calls n; of messages n receives, then n sends */
} flight_t;

typedef struct {
    const char *name;
    int (*begin)(const flight_t *f);
    int requests; /* for each of n */
} kind_t;

static int begin_calls(const flight_t *f)
{
    int status = MESHCOLL_OK;
    for (int i = 0; i < f->n && !status; i++)
        status = meshcoll_iallreduce(f->mesh, &f->in[i], &f->out[i], 1, MESHCOLL_FLOAT64,
                                     MESHCOLL_SUM, &f->request[i]);
    return status;
}

/* Receives are posted from the last tag to the first, and sent from the first on. */
static int begin_messages(const flight_t *f)
{
    const int p = meshcoll_size(f->mesh), rank = meshcoll_rank(f->mesh);
    int status = MESHCOLL_OK;
    for (int i = 0; i < f->n && !status; i++)
        status = meshcoll_recv_begin(f->mesh, &f->out[i], 1, MESHCOLL_FLOAT64, (rank + p - 1) % p,
                                     f->n - 1 - i, NULL, &f->request[i]);
    for (int i = 0; i < f->n && !status; i++)
        status = meshcoll_send_begin(f->mesh, &f->in[i], 1, MESHCOLL_FLOAT64, (rank + 1) % p, i,
                                     &f->request[f->n + i]);
    return status;
}

static const kind_t kinds[] = {{"allreduce", begin_calls, 1}, {"messages", begin_messages, 2}};

static int compare(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* us of a request, of the slowest rank. */
static double median_of(double *times, const flight_t *f, const kind_t *k)
{
    MPI_Allreduce(MPI_IN_PLACE, times, f->turns, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(times, (size_t)f->turns, sizeof *times, compare);
    return times[f->turns / 2] / f->n / k->requests * 1e6;
}

static int measure(const flight_t *f, const kind_t *k, double *begun, double *ended)
{
    int status = MESHCOLL_OK;
    for (int turn = -1; turn < f->turns && !status; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = mc_now();
        status = k->begin(f);
        const double between = mc_now();
        if (!status)
            status = meshcoll_waitall(f->n * k->requests, f->request);
        const double end = mc_now();
        if (turn >= 0) {
            begun[turn] = between - start;
            ended[turn] = end - start;
        }
    }
    return status;
}

static int measure_kind(const flight_t *f, const kind_t *k)
{
    double *const begun = calloc(2 * (size_t)f->turns, sizeof *begun), *const ended =
                                                                           begun + f->turns;
    const int status = begun ? measure(f, k, begun, ended) : mc_fail_memory("times");
    if (!status) {
        const double begin = median_of(begun, f, k), end = median_of(ended, f, k);
        if (meshcoll_rank(f->mesh) == 0)
            printf("%-10s %9d %10.2f %10.2f\n", k->name, f->n, begin, end);
    }
    free(begun);
    return status;
}

static int measure_number(flight_t *f)
{
    int status = MESHCOLL_OK;
    f->in = calloc((size_t)f->n, sizeof *f->in);
    f->out = calloc((size_t)f->n, sizeof *f->out);
    f->request = calloc(2 * (size_t)f->n, sizeof(meshcoll_request_t *));
    if (!f->in || !f->out || !f->request)
        status = mc_fail_memory("buffers");
    for (size_t k = 0; k < MC_COUNT(kinds) && !status; k++)
        status = measure_kind(f, &kinds[k]);
    free(f->request);
    free(f->out);
    free(f->in);
    return status;
}

int flight_measure(meshcoll_t *mesh, const char *list, int turns)
{
    int status = MESHCOLL_OK;
    if (meshcoll_rank(mesh) == 0)
        printf("%-10s %9s %10s %10s\n", "what", "in flight", "begin", "to the end");
    for (const char *at = list; *at && !status; at += strcspn(at, ","), at += *at == ',') {
        flight_t f = {.mesh = mesh, .n = (int)strtol(at, NULL, 10), .turns = turns};
        status = f.n < 1 || f.n > MOST
                     ? mc_fail(MESHCOLL_ERR_INVALID_ARG,
                               "--in-flight: expected numbers from 1 to %d, got \"%s\"", MOST, at)
                     : measure_number(&f);
    }
    return status;
}
