/* The kernels, compiled for GPUs: what cuModuleLoadData takes. */
#ifndef MC_CUDA_IMAGE_H
#define MC_CUDA_IMAGE_H

/* NULL: the library was built without nvcc. */
const void *mc_cuda_image(void);

#endif
