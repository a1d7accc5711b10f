/* Huge pages for the buffers of persistent requests. */
#ifndef MC_RUNTIME_HUGE_H
#define MC_RUNTIME_HUGE_H

#include "runtime/execute/executor.h"

/*
 * Asks the kernel to move the bytes that a bound executor accesses into huge pages (MADV_COLLAPSE,
 * Linux 6.1), where peers read them through the kernel: it looks up every page of another process's
 * memory that it copies. Contents are preserved. Only huge pages that lie entirely within a buffer
 * are affected, so that neighbouring memory is not. The time it takes (docs/lab-notes/constants.md)
 * pays off for requests that are started often. Best effort: nothing changes where huge pages are
 * not available, or excluded by madvise(MADV_NOHUGEPAGE) for a buffer, prctl(PR_SET_THP_DISABLE)
 * for a process, or `never` in /sys/kernel/mm/transparent_hugepage/enabled for a machine.
 */
void mc_huge_pages(const mc_executor_t *x);

#endif
