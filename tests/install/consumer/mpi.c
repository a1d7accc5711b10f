#include <meshcoll/mpi.h>

#include <stdio.h>

/* As a singleton: one rank without mpirun. */
int main(int argc, char **argv)
{
    meshcoll_t *mesh;
    float x = 1;
    MPI_Init(&argc, &argv);
    int status = meshcoll_create(MPI_COMM_WORLD, NULL, &mesh);
    if (!status) {
        status = meshcoll_allreduce(mesh, &x, &x, 1, MESHCOLL_FLOAT32, MESHCOLL_SUM);
        meshcoll_destroy(mesh);
    }
    printf("%s %s\n", meshcoll_version(), meshcoll_status_string(status));
    MPI_Finalize();
    return status != 0;
}
