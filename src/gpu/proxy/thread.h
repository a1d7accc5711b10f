/* The proxy's thread. */
#ifndef MC_PROXY_THREAD_H
#define MC_PROXY_THREAD_H

#include "gpu/proxy/state.h"

/* With all signals blocked. ERR_NO_MEMORY. */
int mc_proxy_thread_start(mc_proxy_t *proxy);
/* Waits for its end. */
void mc_proxy_thread_stop(mc_proxy_t *proxy);

/* Wakes it where it sleeps; the lock is held. */
void mc_proxy_wake(mc_proxy_t *proxy);

#endif
