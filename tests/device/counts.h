/* Counts of messages, which wrap, and the digests of calls in them. Each returns whether it passed. */
#ifndef MC_TEST_COUNTS_H
#define MC_TEST_COUNTS_H

#include <stdbool.h>

bool mc_counts_ll_wrap(void);
bool mc_counts_wrap(void);
bool mc_counts_differ(void);

#endif
