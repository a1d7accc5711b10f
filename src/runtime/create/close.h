/* Closing a mesh. */
#ifndef MC_CREATE_CLOSE_H
#define MC_CREATE_CLOSE_H

#include "runtime/handle/handle.h"

/* Closes and frees it with its sub-meshes, when nobody sends to it any more; NULL is allowed. */
void mc_handle_close(meshcoll_t *h);
/* The handle alone, of which nothing is under way. */
void mc_handle_free(meshcoll_t *h);

#endif
