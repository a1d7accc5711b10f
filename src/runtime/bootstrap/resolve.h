/* From names to addresses. */
#ifndef MC_BOOTSTRAP_RESOLVE_H
#define MC_BOOTSTRAP_RESOLVE_H

#include "runtime/handshake/wire.h"

enum { MC_ADDRESSES = 16 };

typedef struct {
    struct sockaddr_storage at[MC_ADDRESSES];
    int n;
} mc_addresses_t;

/* 0, or an error of gai_strerror. */
int mc_resolve(const char *host, mc_addresses_t *found);

#endif
