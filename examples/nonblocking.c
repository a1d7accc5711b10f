/*
 * Overlaps communication with computation: nonblocking calls sum the gradients of each layer while
 * the program computes those of the next one. A progress thread moves messages all the time;
 * without it they move only while the program is in meshcoll.
 *   meshcoll run -n 4 nonblocking
 *   MESHCOLL_PROGRESS=none meshcoll run -n 4 nonblocking
 */
#include <meshcoll/env.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LAYERS = 6, COUNT = 200000, WORK = 20 };

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int check(int status, const char *what)
{
    if (status < 0)
        fprintf(stderr, "%s: %s (%s)\n", what, meshcoll_last_error(),
                meshcoll_status_string(status));
    return status;
}

/* Stands in for the backward pass of one layer. */
static void compute(float *gradient, int rank, int layer)
{
    for (int i = 0; i < COUNT; i++) {
        float x = (float)(rank + layer);
        for (int k = 0; k < WORK; k++)
            x = 0.5F * (x + (float)(rank + layer));
        gradient[i] = x;
    }
}

static int train(meshcoll_t *mesh, float *gradient)
{
    meshcoll_request_t *request[LAYERS] = {NULL};
    const int rank = meshcoll_rank(mesh), size = meshcoll_size(mesh);
    int status = MESHCOLL_OK, wrong = 0;
    const double begin = now();
    for (int layer = 0; layer < LAYERS && !status; layer++) {
        float *const mine = gradient + (size_t)layer * COUNT;
        compute(mine, rank, layer);
        status = check(meshcoll_iallreduce(mesh, mine, mine, COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM,
                                           &request[layer]),
                       "meshcoll_iallreduce");
    }
    if (!status)
        status = check(meshcoll_waitall(LAYERS, request), "meshcoll_waitall");
    for (int layer = 0; layer < LAYERS && !status; layer++) {
        const float wanted = (float)(size * layer + size * (size - 1) / 2);
        wrong += gradient[(size_t)layer * COUNT + COUNT / 2] != wanted;
    }
    if (!status && rank == 0)
        printf("%d layers on %s in %.1f ms, %d wrong\n", LAYERS, meshcoll_mesh_text(mesh),
               1e3 * (now() - begin), wrong);
    return status || wrong ? 1 : 0;
}

int main(void)
{
    meshcoll_t *mesh;
    const meshcoll_params_t params = {.size = sizeof params,
                                      .progress = getenv("MESHCOLL_PROGRESS") ? NULL : "thread"};
    float *const gradient = malloc(sizeof *gradient * LAYERS * COUNT);
    int failed = !gradient || check(meshcoll_create_env(&params, &mesh), "create") < 0;
    if (!failed) {
        failed = train(mesh, gradient);
        meshcoll_destroy(mesh);
    }
    free(gradient);
    return failed;
}
