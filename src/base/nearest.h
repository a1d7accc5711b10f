/* Which known word is meant by one that nobody knows: "did you mean …?". */
#ifndef MC_NEAREST_H
#define MC_NEAREST_H

#include "base/base.h"

typedef struct {
    const char *word; /* `n` letters */
    size_t n, least;
    const char *found; /* the nearest of those tried; NULL: none is near enough */
} mc_nearest_t;

/* Seeks the known word that is the fewest slips away: letters put in, left out, replaced, or swapped with the next one.
 * One with more slips than 1 and a fifth of the letters is another word. */
static inline mc_nearest_t mc_nearest(const char *word, size_t n)
{
    return (mc_nearest_t){.word = word, .n = n, .least = n / 5 + 2};
}
/* Tries a known word, which must stay. None of several that are equally near is found: each may be meant. */
void mc_nearest_try(mc_nearest_t *nearest, const char *known);
/* Returns `status` with "WHAT 'WORD': did you mean FOUND?", or with "WHAT 'WORD'; INSTEAD" where nothing was found. */
int mc_nearest_fail(const mc_nearest_t *nearest, int status, const char *what, const char *instead);

#endif
