/* Creates a mesh with the caller's allgather. */
#include "runtime/create/tuned.h"
#include "runtime/place/places.h"

#include <stdlib.h>

int meshcoll_create_oob(const meshcoll_oob_t *oob, const meshcoll_params_t *params,
                        meshcoll_t **mesh)
{
    if (!oob || !mesh || !oob->allgather || oob->size < 1 || oob->rank < 0 ||
        oob->rank >= oob->size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_create_oob: expected an allgather, a rank from 0 to size - 1 and "
                       "a pointer to a mesh");
    mc_place_t *place = NULL;
    int status = mc_places_gather(oob, &place);
    if (!status) {
        const mc_creation_t creation = {.oob = *oob, .place = place, .params = params};
        status = mc_tuned_create(&creation, mesh);
    }
    free(place);
    return status;
}
