/* Closes a mesh handle. */
#ifndef MC_CREATE_CLOSE_H
#define MC_CREATE_CLOSE_H

#include "runtime/handle/handle.h"

/* Closes and frees the handle and its sub-meshes, once no peer sends to it any more. NULL is
 * allowed. */
void mc_handle_close(meshcoll_t *h);
/* Frees the handle alone. No operation may be in flight on it. */
void mc_handle_free(meshcoll_t *h);

#endif
