/*
 * The aligned tree: one way to put brackets round a sum of n ranks that depends on nothing but n, so
 * that whoever adds up gets the same bits. The left operand is the largest power of two of ranks
 * that leaves some for the right one: 7 ranks are ((0 1)(2 3))((4 5)6). It is what a binary counter
 * makes, and the tree of hashes of RFC 6962 (2013), §2.1.
 *
 * Its nodes of 2^k ranks start at multiples of 2^k. So the tree over boxes of 2^k ranks each is the
 * tree over boxes, of the trees inside them; for boxes of other sizes it is not.
 */
#ifndef MC_MESH_ALIGNED_H
#define MC_MESH_ALIGNED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool mc_is_power(int32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* Ranks of the left operand, where n > 1 are added up. */
static inline int32_t mc_aligned_left(int32_t n)
{
    int32_t left = 1;
    while (left < n - left)
        left *= 2;
    return left;
}

#endif
