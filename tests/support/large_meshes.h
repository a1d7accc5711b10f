/* Texts of meshes up to the largest. */
#ifndef MC_TESTS_SUPPORT_LARGE_MESHES_H
#define MC_TESTS_SUPPORT_LARGE_MESHES_H

/* Primes, powers, and what is neither; a line, many lines, boxes of unequal sizes. */
static const char *const meshes[] = {"a=2",
                                     "a=4194304",
                                     "a=4194301",
                                     "a=2,b=2097143",
                                     "a=2039,b=2053",
                                     "box=1398101,gpu=3",
                                     "a=127,box=131,gpu=251",
                                     "rack=2,box=3,gpu=5",
                                     "a=161,b=161,c=161",
                                     "box=8+8+4",
                                     "box=2047x2+1x2048",
                                     "box=2097151+2097153",
                                     "box=4+3+4194297"};

#endif
