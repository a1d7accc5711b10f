/*
 * What the C text that translate.py makes of the kernels' PTX needs: a thread of a block, its registers' arithmetic
 * where C's differs, and accesses to memory.
 *
 * Memory is as weak as PTX allows between blocks. A block has a buffer of stores that leave in any order, and a
 * cache that keeps what was read before: a store is seen by others no sooner than a release of its block, or by
 * chance, and a load may yield what an earlier one found until the block acquires. So a kernel that releases before it
 * has written, or reads what it has not acquired, computes wrong results here, as it may on a GPU.
 */
#ifndef MC_TEST_PTX_H
#define MC_TEST_PTX_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes of shared memory that a block has. */
enum { PTX_SHARED = 512 };

typedef struct ptx_block ptx_block_t;

typedef struct {
    uint32_t tid, ntid, ctaid, nctaid;
    ptx_block_t *block;
} ptx_thread_t;

/* The first of `threads` threads makes the block in *slot, which is NULL before, and the last one that leaves ends it:
 * then all that it stored is in memory, and *slot is NULL again. The blocks of a program draw different chances, which
 * are the same in each run of it. A block that only polls keeps its last stores from others for `stay` nanoseconds. */
ptx_block_t *ptx_join(ptx_block_t **slot, uint32_t threads, uint64_t stay);
void ptx_leave(ptx_block_t **slot);

/* Waits for all threads of the block; returns whether any of them said so. */
bool ptx_barrier(ptx_thread_t *self, bool said);

uint64_t ptx_clock(void);

/* Of n values of `size` bytes each, in a row. An access that is not aligned to its n * size bytes, or outside the
 * shared memory, ends the program with a sentence. */
void ptx_load_weak(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n);
void ptx_load_relaxed(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n);
void ptx_load_acquire(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n);
void ptx_load_shared(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n);
void ptx_load_param(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n);
void ptx_store_weak(ptx_thread_t *self, uint64_t at, const void *from, uint32_t size, uint32_t n);
void ptx_store_relaxed(ptx_thread_t *self, uint64_t at, const void *from, uint32_t size,
                       uint32_t n);
void ptx_store_release(ptx_thread_t *self, uint64_t at, const void *from, uint32_t size,
                       uint32_t n);
void ptx_store_shared(ptx_thread_t *self, uint64_t at, const void *from, uint32_t size, uint32_t n);

static inline float ptx_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline double ptx_double(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}
static inline uint32_t ptx_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}
static inline uint64_t ptx_bits64(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* Shifts by the width and more leave nothing but the sign; a quotient by zero has all bits set. */
#define PTX_SHIFTS(bits)                                                        \
    static inline uint##bits##_t ptx_shl_b##bits(uint##bits##_t a, uint32_t by) \
    {                                                                           \
        return by < (bits) ? (uint##bits##_t)(a << by) : 0;                     \
    }                                                                           \
    static inline uint##bits##_t ptx_shr_u##bits(uint##bits##_t a, uint32_t by) \
    {                                                                           \
        return by < (bits) ? (uint##bits##_t)(a >> by) : 0;                     \
    }                                                                           \
    static inline int##bits##_t ptx_shr_s##bits(int##bits##_t a, uint32_t by)   \
    {                                                                           \
        return (int##bits##_t)(a >> (by < (bits) ? by : (bits)-1));             \
    }
PTX_SHIFTS(16)
PTX_SHIFTS(32)
PTX_SHIFTS(64)
#define PTX_QUOTIENTS(bits)                                                          \
    static inline uint##bits##_t ptx_div_u##bits(uint##bits##_t a, uint##bits##_t b) \
    {                                                                                \
        return b ? a / b : (uint##bits##_t) - 1;                                     \
    }                                                                                \
    static inline uint##bits##_t ptx_rem_u##bits(uint##bits##_t a, uint##bits##_t b) \
    {                                                                                \
        return b ? a % b : a;                                                        \
    }                                                                                \
    static inline int##bits##_t ptx_div_s##bits(int##bits##_t a, int##bits##_t b)    \
    {                                                                                \
        return b == -1 ? (int##bits##_t)(0 - (uint##bits##_t)a) : b ? a / b : -1;    \
    }
PTX_QUOTIENTS(32)
PTX_QUOTIENTS(64)

/* Four bytes of the eight of b above a, each by a nibble of c; its highest bit takes the byte's sign alone. */
static inline uint32_t ptx_prmt(uint32_t a, uint32_t b, uint32_t c)
{
    const uint64_t both = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t choice = c >> (4 * i) & 15;
        uint32_t byte = (uint32_t)(both >> (8 * (choice & 7))) & 255;
        if (choice & 8)
            byte = byte & 128 ? 255 : 0;
        result |= byte << (8 * i);
    }
    return result;
}
/* The low `bits` bits of a, at bit `at` of b. */
static inline uint32_t ptx_bfi(uint32_t a, uint32_t b, uint32_t at, uint32_t bits)
{
    const uint64_t mask = ((uint64_t)1 << (bits & 255 & 63)) - 1;
    const uint32_t in = bits >= 32 ? UINT32_MAX : (uint32_t)mask;
    if (at >= 32)
        return b;
    return (b & ~(in << at)) | (a & in) << at;
}

#endif
