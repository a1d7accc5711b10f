#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>

void die(const char *format, ...)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    va_list args;
    va_start(args, format);
    fprintf(stderr, "meshcoll-bench: rank %d: ", rank);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    MPI_Abort(MPI_COMM_WORLD, EXIT_WRONG);
    abort();
}
