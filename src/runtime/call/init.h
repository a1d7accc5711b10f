/* Makes persistent requests. */
#ifndef MC_CALL_INIT_H
#define MC_CALL_INIT_H

#include "runtime/call/start.h"

int mc_request_init(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier,
                    meshcoll_request_t **request);

/* The same of a checked call on host memory that has its numbers. */
int mc_init_checked(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request);

#endif
