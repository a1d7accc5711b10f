#include "runtime/bootstrap/resolve.h"

#include <netdb.h>
#include <string.h>

int mc_resolve(const char *host, mc_addresses_t *found)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    const struct addrinfo any = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int failed = getaddrinfo(host, NULL, &hints, &list);
    if (failed) /* ::1 where only the loopback has IPv6 */
        failed = getaddrinfo(host, NULL, &any, &list);
    if (failed)
        return failed;
    *found = (mc_addresses_t){.n = 0};
    for (const struct addrinfo *a = list; a && found->n < MC_ADDRESSES; a = a->ai_next)
        if (a->ai_addrlen <= sizeof found->at[0])
            memcpy(&found->at[found->n++], a->ai_addr, a->ai_addrlen);
    freeaddrinfo(list);
    return found->n > 0 ? 0 : EAI_NONAME;
}
