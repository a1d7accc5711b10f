#include "bench.h"

#include <meshcoll/env.h>

#include <stdarg.h>
#include <stdlib.h>

void die(const char *format, ...)
{
    int rank = 0;
    (void)meshcoll_env(&rank, NULL);
    va_list args;
    va_start(args, format);
    fprintf(stderr, "meshcoll-bench: rank %d: ", rank);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(EXIT_WRONG); /* of which launcher and monitors tell the others */
}
