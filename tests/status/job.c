/* A rank of a job for tests of meshcoll status: all but the last rank wait in an allreduce, and the last one does what
 * the argument says: "sleeps", outside the library, until it is told by a signal to end. Prints "ready" before. */
#include <meshcoll/env.h>

#include <stdio.h>
#include <unistd.h>

enum { COUNT = 2, CALLS = 2 };

int main(void)
{
    double in[COUNT] = {1, 2}, out[COUNT];
    meshcoll_t *mesh;
    int status = meshcoll_create_env(NULL, &mesh);
    for (int i = 0; i < CALLS && !status; i++)
        status = meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_FLOAT64, MESHCOLL_SUM);
    if (status) {
        fprintf(stderr, "%s\n", meshcoll_last_error());
        return 1;
    }
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    if (meshcoll_rank(mesh) == meshcoll_size(mesh) - 1)
        pause();
    status = meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_FLOAT64, MESHCOLL_SUM);
    fprintf(stderr, "%s\n", meshcoll_last_error());
    return status != MESHCOLL_OK;
}
