/* From names to addresses. */
#ifndef MC_BOOTSTRAP_RESOLVE_H
#define MC_BOOTSTRAP_RESOLVE_H

#include "job/network/wire.h"

enum { MC_ADDRESSES = 16 };

typedef struct {
    struct sockaddr_storage at[MC_ADDRESSES];
    int n;
} mc_addresses_t;

/* Is it one already? */
bool mc_resolve_is_address(const char *host);
/* 0, or an error of gai_strerror. */
int mc_resolve(const char *host, mc_addresses_t *found);

/* The same in a thread of its own, as a resolver waits for servers that do not answer, for as long as it likes. */
typedef struct mc_lookup mc_lookup_t;

/* NULL: out of memory or threads. */
mc_lookup_t *mc_lookup_begin(const char *host);
/* Ready for POLLIN when it has ended. */
int mc_lookup_event(const mc_lookup_t *lookup);
/* True: it has ended, and is freed; *failed and *found are set. */
bool mc_lookup_done(mc_lookup_t *lookup, int *failed, mc_addresses_t *found);
/* Its result is not wanted any more; NULL is allowed. */
void mc_lookup_drop(mc_lookup_t *lookup);

#endif
