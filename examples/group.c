/*
 * Sums many small vectors at once, such as the gradients of a network's biases. The calls of a
 * group are started together, and small ones are packed into one operation where the link model
 * says that this is cheaper.
 *   meshcoll run -n 4 group
 */
#include <meshcoll/env.h>

#include <stdio.h>
#include <time.h>

enum { VECTORS = 64, MOST = 100 };

static float gradient[VECTORS][MOST];

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int check(int status, const char *what)
{
    if (status)
        fprintf(stderr, "%s: %s (%s)\n", what, meshcoll_last_error(),
                meshcoll_status_string(status));
    return status;
}

/* Vectors differ in length; each has the same length on all ranks. */
static size_t count_of(int vector)
{
    return (size_t)(1 + vector * 17 % MOST);
}

static void fill(int rank)
{
    for (int v = 0; v < VECTORS; v++)
        for (size_t i = 0; i < count_of(v); i++)
            gradient[v][i] = (float)(rank + v);
}

static int sum_all(meshcoll_t *mesh)
{
    int status = MESHCOLL_OK;
    for (int v = 0; v < VECTORS && !status; v++)
        status = check(meshcoll_allreduce(mesh, gradient[v], gradient[v], count_of(v),
                                          MESHCOLL_FLOAT32, MESHCOLL_SUM),
                       "meshcoll_allreduce");
    return status;
}

/* Returns the seconds of one round; negative when something failed. */
static double run(meshcoll_t *mesh, int grouped)
{
    fill(meshcoll_rank(mesh));
    if (meshcoll_barrier(mesh))
        return -1;
    const double begin = now();
    int status = grouped ? check(meshcoll_group_begin(mesh), "meshcoll_group_begin") : MESHCOLL_OK;
    if (!status)
        status = sum_all(mesh);
    if (grouped && !status)
        status = check(meshcoll_group_end(mesh), "meshcoll_group_end");
    const double seconds = now() - begin;
    const int size = meshcoll_size(mesh);
    for (int v = 0; v < VECTORS && !status; v++)
        status = gradient[v][0] != (float)(size * v + size * (size - 1) / 2);
    return status ? -1 : seconds;
}

int main(void)
{
    meshcoll_t *mesh;
    double alone = -1, grouped = -1;
    if (!check(meshcoll_create_env(NULL, &mesh), "meshcoll_create_env")) {
        /* the first round includes planning */
        for (int round = 0; round < 2 && (round == 0 || (alone >= 0 && grouped >= 0)); round++) {
            alone = run(mesh, 0);
            grouped = alone < 0 ? -1 : run(mesh, 1);
        }
        if (grouped >= 0 && meshcoll_rank(mesh) == 0)
            printf("%d sums one by one: %.0f us, as a group: %.0f us\n", VECTORS, 1e6 * alone,
                   1e6 * grouped);
        meshcoll_destroy(mesh);
    }
    return grouped < 0;
}
