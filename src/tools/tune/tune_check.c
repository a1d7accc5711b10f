#include "tools/tune/tune_check.h"

#include "tools/common/tool.h"

#include <mpi.h>
#include <stdlib.h>

void mc_tune_die(const char *what)
{
    fprintf(stderr, "meshcoll tune: %s: %s\n", what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, MC_EXIT_FAILED);
    exit(MC_EXIT_FAILED);
}

void mc_tune_check(int status, const char *what)
{
    if (status != MESHCOLL_OK)
        mc_tune_die(what);
}

void *mc_tune_allocate(size_t bytes)
{
    void *const memory = calloc(1, bytes);
    if (!memory)
        mc_tune_check(mc_fail_memory("the vectors"), "memory");
    return memory;
}
