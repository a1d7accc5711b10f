/*
 * The progress hook of meshes over MPI. MPI need not move messages outside of its own calls, so a
 * rank that waits in meshcoll for a rank that waits in MPI_Recv for its message would wait for
 * ever. Any call that looks for a message moves all of them.
 *
 * The hook is called by a thread of the program, at times that the program does not choose. That is
 * allowed with MPI_THREAD_MULTIPLE, and otherwise in the main thread alone; with
 * MPI_THREAD_SERIALIZED another thread may be in MPI at the time, so there is no hook.
 */
#ifndef MC_MPI_HOOK_H
#define MC_MPI_HOOK_H

#include <meshcoll/mpi.h>

#include <stddef.h>
#include <string.h>

static inline int mc_mpi_progress(void *context)
{
    int finalized = 1, allowed = context != NULL, found;
    if (PMPI_Finalized(&finalized) != MPI_SUCCESS || finalized)
        return 0;
    if (!allowed)
        PMPI_Is_thread_main(&allowed);
    if (allowed)
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    return 0; /* MPI does not tell whether anything has moved */
}

/* Adds the hook to a copy of the parameters, unless they have one or are of a version without. */
static inline meshcoll_params_t mc_mpi_params(const meshcoll_params_t *params)
{
    static char any_thread;
    meshcoll_params_t p = {.size = sizeof p};
    int level = MPI_THREAD_SERIALIZED;
    if (params) {
        const size_t n = params->size < sizeof p ? params->size : sizeof p;
        memcpy(&p, params, n);
        p.size = n; /* that of the copy: a later version of the struct is larger */
    }
    PMPI_Query_thread(&level);
    const int knows = p.size >= offsetof(meshcoll_params_t, hook_context) + sizeof p.hook_context;
    if (!knows || p.hook || level == MPI_THREAD_SERIALIZED)
        return p;
    p.hook = mc_mpi_progress;
    p.hook_context = level == MPI_THREAD_MULTIPLE ? &any_thread : NULL;
    return p;
}

#endif
