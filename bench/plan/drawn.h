/* What choices from cold cost where each dimension's links are drawn from those that tune found. */
#ifndef BENCH_DRAWN_H
#define BENCH_DRAWN_H

#include <stdbool.h>

/* Prints for each mesh how many choices are above its target, and the slowest; *met: none is. */
int drawn_run(int repetitions, bool *met);

#endif
