/*
 * Repeats the same operation in each step of a loop: it is planned and bound once, then started as
 * often as needed. Between meshcoll_allreduce_init and the last wait nothing is planned or
 * allocated.
 *   meshcoll run -n 4 persistent
 */
#include <meshcoll/env.h>

#include <math.h>
#include <stdio.h>

enum { STEPS = 100 };

static int check(int status, const char *what)
{
    if (status)
        fprintf(stderr, "%s: %s (%s)\n", what, meshcoll_last_error(),
                meshcoll_status_string(status));
    return status;
}

/* Newton's method for the square root of the sum over the ranks; every step needs that sum. */
static int iterate(meshcoll_request_t *sum, const double *all, double *x)
{
    int status = MESHCOLL_OK;
    *x = 1;
    for (int step = 0; step < STEPS && !status; step++) {
        status = check(meshcoll_start(sum), "meshcoll_start");
        /* the program may compute here */
        if (!status)
            status = check(meshcoll_wait(sum), "meshcoll_wait");
        if (!status)
            *x = 0.5 * (*x + *all / *x);
    }
    return status;
}

static int run(meshcoll_t *mesh)
{
    const int rank = meshcoll_rank(mesh), size = meshcoll_size(mesh);
    double mine = rank + 1, all = 0, x = 0;
    meshcoll_request_t *sum;
    int status =
        check(meshcoll_allreduce_init(mesh, &mine, &all, 1, MESHCOLL_FLOAT64, MESHCOLL_SUM, &sum),
              "meshcoll_allreduce_init");
    if (status)
        return status;
    status = iterate(sum, &all, &x);
    if (!status && rank == 0)
        printf("%d sums by %s, predicted %.1f us each: root of %g is %.6f\n", STEPS,
               meshcoll_request_strategy(sum), 1e6 * meshcoll_request_predicted(sum), all, x);
    meshcoll_free(sum);
    return status || fabs(x * x - size * (size + 1) / 2.0) > 1e-9 ? 1 : 0;
}

int main(void)
{
    meshcoll_t *mesh;
    int status = check(meshcoll_create_env(NULL, &mesh), "meshcoll_create_env");
    if (!status) {
        status = run(mesh);
        meshcoll_destroy(mesh);
    }
    return status ? 1 : 0;
}
