/* The memory of operations that are run again and again, in huge pages. */
#ifndef MC_RUNTIME_HUGE_H
#define MC_RUNTIME_HUGE_H

#include "runtime/execute/executor.h"

/*
 * Asks the kernel to put the bytes that a bound executor moves into huge pages (MADV_COLLAPSE, Linux 6.1), where peers
 * read them through the kernel: it looks up every page of what it reads for somebody else. What is in them stays, and
 * memory beside them is not touched: of each range only the huge pages that lie in it whole. It takes 0.3 to 3 ms a MiB, so it is for
 * requests that are started often. Where it cannot be had nothing changes: madvise(MADV_NOHUGEPAGE) keeps a buffer out,
 * prctl(PR_SET_THP_DISABLE) a process, and `never` in /sys/kernel/mm/transparent_hugepage/enabled a machine.
 */
void mc_huge_pages(const mc_executor_t *x);

#endif
