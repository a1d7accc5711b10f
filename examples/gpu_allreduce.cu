/*
 * Sums a vector in GPU memory over all processes of a job, in a CUDA stream: one process per GPU of a machine, or
 * several.
 *
 *   nvcc gpu_allreduce.cu $(pkg-config --cflags --libs meshcoll) -o gpu_allreduce
 *   meshcoll run -n 4 ./gpu_allreduce
 */
#include <cuda_runtime.h>
#include <meshcoll/env.h>

#include <stdio.h>
#include <stdlib.h>
#include <vector>

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, meshcoll_last_error());
    exit(1);
}

int main()
{
    const size_t n = 1 << 20;
    meshcoll_t *mesh;
    cudaStream_t stream;
    float *x;

    check(meshcoll_create_env(NULL, &mesh) == MESHCOLL_OK, "create");
    const int rank = meshcoll_rank(mesh), size = meshcoll_size(mesh);
    int gpus = 0;
    check(cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0, "a GPU");
    check(cudaSetDevice(rank % gpus) == cudaSuccess, "cudaSetDevice");
    check(cudaStreamCreate(&stream) == cudaSuccess, "cudaStreamCreate");
    check(cudaMalloc(&x, n * sizeof *x) == cudaSuccess, "cudaMalloc");

    std::vector<float> host(n, (float)(rank + 1));
    cudaMemcpyAsync(x, host.data(), n * sizeof *x, cudaMemcpyHostToDevice, stream);
    meshcoll_args_t args = {};
    args.size = sizeof args;
    args.collective = MESHCOLL_ALLREDUCE;
    args.in = args.out = x;
    args.count = n;
    args.datatype = MESHCOLL_FLOAT32;
    args.op = MESHCOLL_SUM;
    check(meshcoll_enqueue(mesh, &args, stream) == MESHCOLL_OK, "enqueue");
    cudaMemcpyAsync(host.data(), x, n * sizeof *x, cudaMemcpyDeviceToHost, stream);
    check(cudaStreamSynchronize(stream) == cudaSuccess, "synchronize");
    check(meshcoll_async_error(mesh) == MESHCOLL_OK, "the allreduce");

    size_t wrong = 0;
    for (float value : host)
        wrong += value != (float)(size * (size + 1) / 2);
    printf("rank %d of %d: %zu of %zu elements are wrong\n", rank, size, wrong, n);
    cudaFree(x);
    meshcoll_destroy(mesh);
    return wrong != 0;
}
