/* Closes and frees mesh handles. */
#ifndef MC_CREATE_CLOSE_H
#define MC_CREATE_CLOSE_H

#include "runtime/handle/handle.h"

/* Frees a handle from which nothing was made and on which nothing is in flight, as of a creation that
 * failed. Of a root it closes what the family shares, and frees what was made from it. */
void mc_handle_free(meshcoll_t *h);
/* Frees those that were destroyed while something was in flight on them that is now complete. The caller
 * holds the lock. */
void mc_handles_sweep(meshcoll_t *root);

#endif
