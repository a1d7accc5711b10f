#include "runtime/request/numbers.h"

enum { HALF = 1 << (MC_TAG_OPERATION_BITS - 1) };

uint32_t mc_next_call(meshcoll_t *h)
{
    return h->n_calls++ % HALF;
}

uint32_t mc_next_persistent(meshcoll_t *h)
{
    return HALF + h->n_persistent++ % (MC_TAG_GREETING - HALF);
}
