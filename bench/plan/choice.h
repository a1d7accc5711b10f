/* What a choice from cold costs, with this rank's sealed plan for it. */
#ifndef BENCH_CHOICE_H
#define BENCH_CHOICE_H

#include <stdbool.h>

/* Prints a row per mesh, links and collective; *met: all rows with a target are below it. */
int choice_run(int repetitions, bool *met);

#endif
