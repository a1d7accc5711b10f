#include "support/call.h"

#define NOTHING()
#define PLACE()   , meshcoll_request_t **request
#define REQUEST() , request

/* The functions meshcoll_<I><collective><INIT>, which take PLACES() last. */
#define WAY(name, I, INIT, PLACES, LAST)                                                          \
    static int name##_blocks(meshcoll_t *mesh, const meshcoll_args_t *a PLACES())                 \
    {                                                                                             \
        switch (a->collective) {                                                                  \
        case MESHCOLL_SCATTER:                                                                    \
            return meshcoll_##I##scatterv##INIT(mesh, a->in, a->counts, a->displs, a->out,        \
                                                a->count, a->datatype, a->root LAST());           \
        case MESHCOLL_GATHER:                                                                     \
            return meshcoll_##I##gatherv##INIT(mesh, a->in, a->count, a->out, a->counts,          \
                                               a->displs, a->datatype, a->root LAST());           \
        case MESHCOLL_ALLGATHER:                                                                  \
            return meshcoll_##I##allgatherv##INIT(mesh, a->in, a->count, a->out, a->counts,       \
                                                  a->displs, a->datatype LAST());                 \
        case MESHCOLL_REDUCE_SCATTER:                                                             \
            return meshcoll_##I##reduce_scatterv##INIT(mesh, a->in, a->out, a->counts,            \
                                                       a->datatype, a->op LAST());                \
        case MESHCOLL_ALLTOALL:                                                                   \
            return meshcoll_##I##alltoallv##INIT(mesh, a->in, a->in_counts, a->in_displs, a->out, \
                                                 a->counts, a->displs, a->datatype LAST());       \
        default:                                                                                  \
            return MESHCOLL_ERR_INVALID_ARG;                                                      \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    int name(meshcoll_t *mesh, const meshcoll_args_t *a PLACES())                                 \
    {                                                                                             \
        if (a->counts)                                                                            \
            return name##_blocks(mesh, a LAST());                                                 \
        switch (a->collective) {                                                                  \
        case MESHCOLL_BCAST:                                                                      \
            return meshcoll_##I##bcast##INIT(mesh, a->in, a->out, a->count, a->datatype,          \
                                             a->root LAST());                                     \
        case MESHCOLL_REDUCE:                                                                     \
            return meshcoll_##I##reduce##INIT(mesh, a->in, a->out, a->count, a->datatype, a->op,  \
                                              a->root LAST());                                    \
        case MESHCOLL_SCATTER:                                                                    \
            return meshcoll_##I##scatter##INIT(mesh, a->in, a->out, a->count, a->datatype,        \
                                               a->root LAST());                                   \
        case MESHCOLL_GATHER:                                                                     \
            return meshcoll_##I##gather##INIT(mesh, a->in, a->out, a->count, a->datatype,         \
                                              a->root LAST());                                    \
        case MESHCOLL_ALLGATHER:                                                                  \
            return meshcoll_##I##allgather##INIT(mesh, a->in, a->out, a->count,                   \
                                                 a->datatype LAST());                             \
        case MESHCOLL_REDUCE_SCATTER:                                                             \
            return meshcoll_##I##reduce_scatter##INIT(mesh, a->in, a->out, a->count, a->datatype, \
                                                      a->op LAST());                              \
        case MESHCOLL_ALLTOALL:                                                                   \
            return meshcoll_##I##alltoall##INIT(mesh, a->in, a->out, a->count,                    \
                                                a->datatype LAST());                              \
        default:                                                                                  \
            return meshcoll_##I##allreduce##INIT(mesh, a->in, a->out, a->count, a->datatype,      \
                                                 a->op LAST());                                   \
        }                                                                                         \
    }

WAY(mc_call, , , NOTHING, NOTHING)
WAY(mc_call_begin, i, , PLACE, REQUEST)
WAY(mc_call_init, , _init, PLACE, REQUEST)
