/* The blocking call that an operation's arguments stand for, v-variants included. */
#ifndef MC_TEST_CALL_H
#define MC_TEST_CALL_H

#include <meshcoll/meshcoll.h>

/* `strategy` is left out: these calls take none. */
int mc_call(meshcoll_t *mesh, const meshcoll_args_t *a);

#endif
