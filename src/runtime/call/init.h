/* Makes persistent requests. */
#ifndef MC_CALL_INIT_H
#define MC_CALL_INIT_H

#include "runtime/handle/request.h"

int mc_request_init(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier,
                    meshcoll_request_t **request);

#endif
