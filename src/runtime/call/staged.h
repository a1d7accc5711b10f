/* Calls on device memory that run on the host (gpu/launch/stage.h). The caller holds the lock. */
#ifndef MC_CALL_STAGED_H
#define MC_CALL_STAGED_H

#include "runtime/call/start.h"
#include "runtime/check/kinds.h"

/* Runs a checked call to its end. */
int mc_staged_call_run(meshcoll_t *h, const mc_asked_t *asked, const mc_call_memory_t *memory);
/* Gives a persistent request, made of arguments on the host, the memory that these lie in. */
void mc_staged_keep(meshcoll_request_t *request, struct mc_stage *stage);
/* For a call in a stream that has no kernel: ERR_UNSUPPORTED with a sentence. */
int mc_staged_refuse(const meshcoll_args_t *args);

#endif
