/* Has the library kernels for GPUs, where it was built with them? */
#include "gpu/cuda/driver.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const uint32_t magic = 0xba55ed50; /* a fat binary begins with it */
    const void *const image = mc_cuda_image();
    uint32_t begins = 0;
    if (!image) {
        printf("skipped: the library was built without kernels for GPUs\n");
        return 77;
    }
    memcpy(&begins, image, sizeof begins);
    printf("the image begins with %x, expected %x\n", begins, magic);
    return begins != magic;
}
