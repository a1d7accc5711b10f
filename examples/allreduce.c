/*
 * Sums a vector over all ranks of a job, as a training step sums gradients. Any launcher starts it:
 *   meshcoll run -n 8 allreduce                             # finds the boxes itself
 *   MESHCOLL_MESH=box=2,gpu=4 meshcoll run -n 8 allreduce   # or is given the mesh
 *   torchrun --no-python --nproc-per-node 8 allreduce
 *   mpirun -n 8 allreduce
 */
#include <meshcoll/env.h>

#include <stdio.h>
#include <stdlib.h>

static int check(int status, const char *what)
{
    if (status)
        fprintf(stderr, "%s: %s (%s)\n", what, meshcoll_last_error(),
                meshcoll_status_string(status));
    return status;
}

static int sum_gradients(meshcoll_t *mesh)
{
    enum { COUNT = 1000000 };
    float *const gradient = malloc(COUNT * sizeof *gradient);
    if (!gradient)
        return MESHCOLL_ERR_NO_MEMORY;
    for (int i = 0; i < COUNT; i++)
        gradient[i] = (float)(meshcoll_rank(mesh) + i % 7);
    const int status =
        check(meshcoll_allreduce(mesh, gradient, gradient, COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM),
              "meshcoll_allreduce");
    if (!status && meshcoll_rank(mesh) == 0)
        printf("%d ranks as %s: sum of element 0 is %g\n", meshcoll_size(mesh),
               meshcoll_mesh_text(mesh), (double)gradient[0]);
    free(gradient);
    return status;
}

int main(void)
{
    meshcoll_t *mesh;
    int status = check(meshcoll_create_env(NULL, &mesh), "meshcoll_create_env");
    if (!status) {
        status = sum_gradients(mesh);
        meshcoll_destroy(mesh);
    }
    return status ? 1 : 0;
}
