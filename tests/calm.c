/* Part of each test program: links are those that the test gives, and none are measured when it creates meshes, unless
 * the environment says so. */
#include <stdlib.h>

__attribute__((constructor)) static void calibrate_nothing(void)
{
    setenv("MESHCOLL_CALIBRATE", "off", 0);
}
