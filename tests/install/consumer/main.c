#include <meshcoll/env.h>

#include <stdio.h>
#include <string.h>

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
    char header[32];
    snprintf(header, sizeof header, "%d.%d.%d", MESHCOLL_VERSION_CODE / 10000,
             MESHCOLL_VERSION_CODE / 100 % 100, MESHCOLL_VERSION_CODE % 100);
    if (strcmp(header, meshcoll_version()) != 0)
        printf("the headers are of %s\n", header);
    printf("%s %s\n", meshcoll_version(), meshcoll_status_string(status));
    return status != 0;
}
