/* A trace in Chrome's trace format. */
#ifndef BENCH_TRACE_FILE_H
#define BENCH_TRACE_FILE_H

#include "trace.h"

void trace_write(const bench_t *bench, const meta_t *meta, const trace_t *trace, const char *path);

#endif
