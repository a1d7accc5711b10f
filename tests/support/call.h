/* The public function that an operation's arguments stand for, v-variants included. */
#ifndef MC_TEST_CALL_H
#define MC_TEST_CALL_H

#include <meshcoll/meshcoll.h>

/* meshcoll_bcast, …; `strategy` is left out: these calls take none. */
int mc_call(meshcoll_t *mesh, const meshcoll_args_t *a);
/* meshcoll_ibcast, … */
int mc_call_begin(meshcoll_t *mesh, const meshcoll_args_t *a, meshcoll_request_t **request);
/* meshcoll_bcast_init, … */
int mc_call_init(meshcoll_t *mesh, const meshcoll_args_t *a, meshcoll_request_t **request);

#endif
