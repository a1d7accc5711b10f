/* --flat mpi: the MPI library, loaded when it is asked for. */
#include "bench.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

/* MPI's components look for libmpi's symbols among those of the program: RTLD_GLOBAL. */
static int load(const own_mpi_t **mpi)
{
    void *const library = dlopen("meshcoll-bench-mpi.so", RTLD_NOW | RTLD_GLOBAL);
    own_mpi_find_t find = NULL;
    if (library)
        *(void **)&find = dlsym(library, OWN_MPI_SYMBOL);
    if (!find)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "--flat mpi: this meshcoll-bench was built without MPI, or lies apart from "
                       "meshcoll-bench-mpi.so: %s",
                       dlerror());
    *mpi = find();
    return MESHCOLL_OK;
}

static int check_types(const bench_t *bench, const own_mpi_t *mpi)
{
    const options_t *const o = &bench->options;
    const char *lacks = NULL;
    if (!mpi->has_datatype(o->datatype))
        lacks = meshcoll_datatype_name(o->datatype);
    else if (collective_reduces(o->collective) && !mpi->has_op(o->op))
        lacks = meshcoll_op_name(o->op);
    return lacks
               ? mc_fail(MESHCOLL_ERR_INVALID_ARG, "--flat mpi: MPI has no %s; leave it out", lacks)
               : MESHCOLL_OK;
}

static int start(bench_t *bench, const own_mpi_t *mpi)
{
    int rank, size;
    if (!mpi->open(&rank, &size, bench->mpi_version))
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "--flat mpi: MPI does not start; run it under mpirun");
    bench->mpi = mpi;
    if (rank != bench->rank || size != bench->size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--flat mpi: MPI says rank %d of %d where the launcher says %d of %d: start "
                       "it under this MPI's mpirun",
                       rank, size, bench->rank, bench->size);
    return MESHCOLL_OK;
}

int mpi_open(bench_t *bench)
{
    const own_mpi_t *mpi = NULL;
    int status = load(&mpi);
    if (!status)
        status = check_types(bench, mpi);
    status = ranks_agree(bench, status);
    return status ? status : ranks_agree(bench, start(bench, mpi));
}

void mpi_close(bench_t *bench)
{
    if (bench->mpi)
        bench->mpi->close();
    bench->mpi = NULL;
}

bool mpi_fits(const bench_t *bench, size_t whole)
{
    return !bench->options.flat_mpi || whole <= INT_MAX;
}

view_t mpi_view(const bench_t *bench, const view_t *view)
{
    const options_t *const o = &bench->options;
    view_t mine = *view;
    if (o->collective == MESHCOLL_BCAST && !o->in_place && bench->rank == o->root)
        mine.out.at = NULL;
    if (o->collective == MESHCOLL_REDUCE_SCATTER && o->in_place)
        mine.out.at = view->in.at;
    return mine;
}

void mpi_run(const bench_t *bench, const view_t *view)
{
    const options_t *const o = &bench->options;
    const own_mpi_call_t call = {.collective = o->collective,
                                 .datatype = o->datatype,
                                 .op = o->op,
                                 .root = o->root,
                                 .in_place = o->in_place,
                                 .barrier = o->barrier,
                                 .count = view->count,
                                 .in = view->in.at,
                                 .out = view->out.at};
    bench->mpi->run(&call);
}
