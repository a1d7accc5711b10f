/*
 * MESHCOLL_EXPLAIN: what rank 0 says of a few calls when the mesh is destroyed, and any rank when
 * asked. The arguments are parts of lines that the report must have, in this order.
 */
#include <meshcoll/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 3, LARGE = 50000, TIMES = 5, ROOM = 1 << 16 };
static int rank;

static void check(int status, const char *what)
{
    if (!status)
        return;
    printf("rank %d: %s: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void run(meshcoll_t *mesh, float *in, float *out)
{
    for (int i = 0; i < TIMES; i++) {
        check(meshcoll_allreduce(mesh, in, out, SMALL, MESHCOLL_FLOAT32, MESHCOLL_SUM), "small");
        check(meshcoll_allreduce(mesh, in, out, LARGE, MESHCOLL_FLOAT32, MESHCOLL_SUM), "large");
        check(meshcoll_barrier(mesh), "barrier");
    }
    check(meshcoll_set_strategy(mesh, MESHCOLL_BCAST, "flat-mst"), "force");
    check(meshcoll_bcast(mesh, in, out, SMALL, MESHCOLL_FLOAT32, 1), "bcast");
}

static void expect_parts(const char *report, char **part)
{
    const char *at = report;
    for (; *part; part++) {
        const char *const found = strstr(at, *part);
        if (!found) {
            printf("rank %d: expected \"%s\" after what came before it in:\n%s", rank, *part,
                   report);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        at = found + strlen(*part);
    }
}

static void expect_file(const char *path, char **part)
{
    static char report[ROOM];
    FILE *const file = fopen(path, "r");
    const size_t n = file ? fread(report, 1, sizeof report - 1, file) : 0;
    if (!file || n == 0) {
        printf("nothing was written to %s\n", path);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fclose(file);
    report[n] = '\0';
    expect_parts(report, part);
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/meshcoll-explained-XXXXXX", setting[64], *text;
    meshcoll_t *mesh;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && mkstemp(path) < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    snprintf(setting, sizeof setting, "factor:1.0001,%s", path);
    if (rank == 0 && argc > 1)
        setenv("MESHCOLL_EXPLAIN", setting, 1);
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh), "create");
    float *const in = calloc(LARGE, sizeof *in), *const out = calloc(LARGE, sizeof *out);
    run(mesh, in, out);
    check(meshcoll_explain(mesh, &text), "explain");
    if (argc > 1)
        expect_parts(text, argv + 1);
    free(text);
    meshcoll_destroy(mesh);
    if (rank == 0 && argc > 1)
        expect_file(path, argv + 1);
    remove(path);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
