/*
 * The aligned tree: a bracketing of a sum over n ranks that depends on n alone, so that every
 * strategy that follows it yields the same bits. The left operand is the largest power of two below
 * n: 7 ranks are ((0 1)(2 3))((4 5)6). It is the tree of a binary counter, and the hash tree of RFC
 * 6962 (2013), §2.1.
 *
 * Its nodes of 2^k ranks start at multiples of 2^k. With boxes of 2^k ranks each it is therefore
 * the tree over boxes of the trees inside them; with boxes of other sizes it is not.
 */
#ifndef MC_MESH_ALIGNED_H
#define MC_MESH_ALIGNED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool mc_is_power(int32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* Returns the ranks of the left operand of a sum over n > 1 ranks. */
static inline int32_t mc_aligned_left(int32_t n)
{
    int32_t left = 1;
    while (left < n - left)
        left *= 2;
    return left;
}

#endif
