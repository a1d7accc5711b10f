/* Alone in its file, so that a test can give another image. */
#include "gpu/cuda/driver.h"

#include <stddef.h>

#ifdef MESHCOLL_KERNELS /* the file that cmake/Cuda.cmake has made */
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".hidden mc_cuda_fatbin\n"
        ".global mc_cuda_fatbin\n"
        "mc_cuda_fatbin:\n"
        ".incbin \"" MESHCOLL_KERNELS "\"\n"
        ".popsection\n");
extern const char mc_cuda_fatbin[];
#endif

const void *mc_cuda_image(void)
{
#ifdef MESHCOLL_KERNELS
    return mc_cuda_fatbin;
#else
    return NULL;
#endif
}
