/*
 * What gpu/kernel/block.h needs, on a host: a block is a thread, or several that meet at a barrier. Stores of
 * words may give the core away in between, so that many interleavings are seen.
 */
#ifndef MC_TEST_ON_HOST_H
#define MC_TEST_ON_HOST_H

#include "gpu/program/format.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MC_DEVICE_FN static inline __attribute__((__unused__))
#define MC_UNROLL
#define MC_ROLLED

/* Where the threads of a block meet. `any` stays set: a block ends when a thread has said so. `ptx` is for the
 * translated kernels, which use nothing else of it. */
struct ptx_block;
typedef struct {
    pthread_barrier_t barrier;
    int any;
    mc_device_table_t table;
    struct ptx_block *ptx;
} mc_meet_t;

typedef struct {
    uint32_t index, count;
    mc_meet_t *meet;
} mc_thread_t;

MC_DEVICE_FN mc_device_table_t *mc_table(mc_thread_t thread)
{
    return &thread.meet->table;
}

typedef struct {
    uint32_t part[4];
} mc_word_t;

/* A thread gives its core away after so many stores of words, or sleeps before one; 0: never. */
extern uint32_t mc_host_yields;
extern _Thread_local uint32_t mc_host_naps, mc_host_stores;

MC_DEVICE_FN mc_word_t mc_load_word(const char *at)
{
    mc_word_t word;
    memcpy(&word, at, sizeof word);
    return word;
}
MC_DEVICE_FN void mc_store_word(char *at, mc_word_t word)
{
    mc_host_stores++;
    if (mc_host_naps && mc_host_stores % mc_host_naps == 0)
        usleep(1000);
    memcpy(at, &word, sizeof word);
    if (mc_host_yields && mc_host_stores % mc_host_yields == 0)
        sched_yield();
}

/* Two times 8 bytes, each of them at once. */
typedef struct {
    uint64_t a, b;
} mc_pair_t;
typedef uint64_t mc_eight_t __attribute__((__may_alias__));

MC_DEVICE_FN mc_pair_t mc_load_pair(const char *at)
{
    const mc_eight_t *const half = (const mc_eight_t *)(const void *)at;
    return (mc_pair_t){__atomic_load_n(half, __ATOMIC_RELAXED),
                       __atomic_load_n(half + 1, __ATOMIC_RELAXED)};
}
MC_DEVICE_FN void mc_store_pair(char *at, mc_pair_t pair)
{
    mc_eight_t *const half = (mc_eight_t *)(void *)at;
    mc_host_stores++;
    if (mc_host_naps && mc_host_stores % mc_host_naps == 0)
        usleep(1000);
    __atomic_store_n(half, pair.a, __ATOMIC_RELAXED);
    if (mc_host_yields && mc_host_stores % mc_host_yields == 0)
        sched_yield();
    __atomic_store_n(half + 1, pair.b, __ATOMIC_RELAXED);
}

MC_DEVICE_FN uint64_t mc_acquire(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}
MC_DEVICE_FN void mc_release(uint64_t *counter, uint64_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELEASE);
}
MC_DEVICE_FN void mc_post(uint64_t *counter, uint64_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}
MC_DEVICE_FN void mc_mark(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
MC_DEVICE_FN uint32_t mc_poll(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

MC_DEVICE_FN void mc_notify(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

MC_DEVICE_FN uint64_t mc_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
MC_DEVICE_FN void mc_pause(void)
{
    sched_yield();
}

MC_DEVICE_FN void mc_barrier(mc_thread_t thread)
{
    if (thread.count > 1)
        pthread_barrier_wait(&thread.meet->barrier);
}
MC_DEVICE_FN int mc_barrier_any(mc_thread_t thread, int said)
{
    if (thread.count == 1)
        return said;
    if (said)
        __atomic_store_n(&thread.meet->any, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&thread.meet->barrier);
    return __atomic_load_n(&thread.meet->any, __ATOMIC_RELAXED);
}

#endif
