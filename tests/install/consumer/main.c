#include <meshcoll/env.h>

#include <stdio.h>

/* Without a launcher: one rank. */
int main(void)
{
    meshcoll_t *mesh;
    float x = 1;
    int status = meshcoll_create_env(NULL, &mesh);
    if (!status) {
        status = meshcoll_allreduce(mesh, &x, &x, 1, MESHCOLL_FLOAT32, MESHCOLL_SUM);
        meshcoll_destroy(mesh);
    }
    printf("%s %s\n", meshcoll_version(), meshcoll_status_string(status));
    return status != 0;
}
