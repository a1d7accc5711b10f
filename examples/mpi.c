/*
 * Sums a vector over the ranks of an MPI communicator: here over those of each half of the job. Link it with
 * meshcoll-mpi.
 *   mpirun -n 8 mpi
 */
#include <meshcoll/mpi.h>

#include <stdio.h>

static int check(int status, const char *what)
{
    if (status)
        fprintf(stderr, "%s: %s (%s)\n", what, meshcoll_last_error(),
                meshcoll_status_string(status));
    return status;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Comm half;
    meshcoll_t *mesh;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    double x = rank, sum = -1;
    int status = check(meshcoll_create(half, NULL, &mesh), "meshcoll_create");
    if (!status) {
        status = check(meshcoll_allreduce(mesh, &x, &sum, 1, MESHCOLL_FLOAT64, MESHCOLL_SUM),
                       "meshcoll_allreduce");
        if (!status && meshcoll_rank(mesh) == 0)
            printf("the ranks of %s from rank %d on sum up to %g\n", meshcoll_mesh_text(mesh), rank,
                   sum);
        meshcoll_destroy(mesh);
    }
    const int first = rank < size / 2 ? 0 : size / 2, end = rank < size / 2 ? size / 2 : size;
    const int right = sum == (end - first) * (first + end - 1) / 2.0;
    MPI_Comm_free(&half);
    MPI_Finalize();
    return !status && right ? 0 : 1;
}
