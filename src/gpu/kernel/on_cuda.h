/* What gpu/kernel/block.h needs of a GPU. nvcc, sm_70 and above. */
#ifndef MC_KERNEL_ON_CUDA_H
#define MC_KERNEL_ON_CUDA_H

#include "gpu/program/format.h"

#define MC_DEVICE_FN static __device__ __forceinline__
#define MC_UNROLL    _Pragma("unroll")
#define MC_ROLLED    _Pragma("unroll 1")

typedef struct {
    uint32_t index, count;
    mc_device_table_t *table; /* shared memory of the block */
} mc_thread_t;

MC_DEVICE_FN mc_device_table_t *mc_table(mc_thread_t thread)
{
    return thread.table;
}

typedef uint4 mc_word_t;

/* Buffers, slots and counters lie in global memory, be it this device's, a peer's or the host's.
 * Generic accesses would do; these are told so, and cannot be moved past the barriers. */
MC_DEVICE_FN mc_word_t mc_load_word(const char *at)
{
    mc_word_t w;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
                 : "l"(__cvta_generic_to_global(at))
                 : "memory");
    return w;
}
MC_DEVICE_FN void mc_store_word(char *at, mc_word_t w)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(at)),
                 "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w)
                 : "memory");
}

/* Two times 8 bytes, each of them at once, whoever writes or reads them at the same time. */
typedef struct {
    uint64_t a, b;
} mc_pair_t;
MC_DEVICE_FN mc_pair_t mc_load_pair(const char *at)
{
    mc_pair_t pair;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(pair.a), "=l"(pair.b)
                 : "l"(__cvta_generic_to_global(at))
                 : "memory");
    return pair;
}
MC_DEVICE_FN void mc_store_pair(char *at, mc_pair_t pair)
{
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(at)),
                 "l"(pair.a), "l"(pair.b)
                 : "memory");
}

MC_DEVICE_FN uint64_t mc_acquire(const uint64_t *counter)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                 : "=l"(value)
                 : "l"(__cvta_generic_to_global(counter))
                 : "memory");
    return value;
}
MC_DEVICE_FN void mc_release(uint64_t *counter, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(counter)),
                 "l"(value)
                 : "memory");
}
/* Of what was read: no writes are waited for. Its values were looked at before the block's threads
 * met, so that they had been read; the memory model has no words for that order, and NCCL's LL
 * needs it, too. */
MC_DEVICE_FN void mc_post(uint64_t *counter, uint64_t value)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(counter)),
                 "l"(value)
                 : "memory");
}
MC_DEVICE_FN uint32_t mc_poll(const uint32_t *word)
{
    uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(__cvta_generic_to_global(word))
                 : "memory");
    return value;
}

MC_DEVICE_FN void mc_notify(uint32_t *word, uint32_t value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)),
                 "r"(value)
                 : "memory");
}

MC_DEVICE_FN void mc_mark(uint32_t *word, uint32_t value)
{
    *(volatile uint32_t *)word = value;
}

MC_DEVICE_FN uint64_t mc_clock(void)
{
    uint64_t nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
}
MC_DEVICE_FN void mc_pause(void)
{
}

MC_DEVICE_FN void mc_barrier(mc_thread_t thread)
{
    (void)thread;
    __syncthreads();
}
MC_DEVICE_FN int mc_barrier_any(mc_thread_t thread, int said)
{
    (void)thread;
    return __syncthreads_or(said);
}

#endif
