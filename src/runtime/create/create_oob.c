/* Creates a mesh with the caller's allgather. */
#include "runtime/create/create.h"

int meshcoll_create_oob(const meshcoll_oob_t *oob, const meshcoll_params_t *params,
                        meshcoll_t **mesh)
{
    if (!oob || !mesh || !oob->allgather || oob->size < 1 || oob->rank < 0 ||
        oob->rank >= oob->size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_create_oob: expected an allgather, a rank from 0 to size - 1 and "
                       "a pointer to a mesh");
    const mc_creation_t creation = {.oob = *oob, .params = params, .tuned = true};
    return mc_handle_create(&creation, mesh);
}
