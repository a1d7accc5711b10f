/* Numbers from a seed, the same on every machine: splitmix64 (Steele, Lea, Flood 2014). */
#ifndef MC_TEST_RANDOM_H
#define MC_TEST_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t state;
} mc_random_t;

static inline uint64_t mc_random_next(mc_random_t *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Below n > 0; even enough for small n. */
static inline size_t mc_random_below(mc_random_t *r, size_t n)
{
    return (size_t)(mc_random_next(r) % n);
}

/* The k-th generator of a seed: none draws what another does. */
static inline mc_random_t mc_random_of(uint64_t seed, uint64_t k)
{
    mc_random_t r = {seed};
    r.state = mc_random_next(&r) + k * 0xd1342543de82ef95u;
    r.state = mc_random_next(&r);
    return r;
}

#endif
