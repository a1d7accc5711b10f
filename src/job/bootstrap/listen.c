/* Where rank 0 listens. */
#include "job/bootstrap/seek.h"
#include "job/network/network.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

static int fail_listen(const mc_environment_t *env, int error)
{
    const char *const why = error == EADDRNOTAVAIL
                                ? "it is not an address of the host on which rank 0 runs"
                                : strerror(error);
    const char *const host = env->only_there ? env->host : "any address";
    if (env->n_ports == 1)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank 0 cannot listen on %s, port %u: %s", host,
                       (unsigned)env->port, why);
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "rank 0 cannot listen on %s, ports %u to %u: %s; MESHCOLL_MASTER_ADDR and "
                   "MESHCOLL_MASTER_PORT choose others",
                   host, (unsigned)env->port, (unsigned)(env->port + env->n_ports - 1), why);
}

static int listen_on(const mc_environment_t *env, const mc_addresses_t *a, uint16_t port,
                     int *listener)
{
    int failed = EADDRNOTAVAIL;
    if (!env->only_there)
        return mc_wire_listen_anywhere(port, listener);
    for (int i = 0; i < a->n && failed == EADDRNOTAVAIL; i++) {
        mc_endpoint_t at = a->at[i];
        at.port = port;
        failed = mc_wire_listen(&at, listener);
    }
    return failed;
}

int mc_seek_listen(const mc_environment_t *env, int *listener)
{
    mc_addresses_t a = {.n = 0};
    int failed = env->only_there ? mc_resolve(env->host, &a) : 0;
    if (failed)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank 0's address '%s' is not known: %s", env->host,
                       gai_strerror(failed));
    for (int32_t p = 0; p < env->n_ports; p++) {
        failed = listen_on(env, &a, (uint16_t)(env->port + p), listener);
        if (!failed)
            return MESHCOLL_OK;
    }
    return fail_listen(env, failed);
}

void mc_seek_where(int listener, mc_text_t *text)
{
    static const mc_endpoint_t any;
    char name[MC_WIRE_NAME];
    mc_network_t own;
    mc_endpoint_t e;
    if (mc_wire_own(listener, &e))
        return;
    if (memcmp(e.at, any.at, sizeof e.at) != 0)
        own = (mc_network_t){.n = 1, .at = {e}};
    else
        mc_network_find(0, NULL, &own);
    for (uint32_t i = 0; i < own.n; i++) {
        own.at[i].port = e.port;
        if (e.family == 6 || own.at[i].family == e.family)
            mc_text_add(text, "%s%s", text->length ? ", " : "", mc_wire_print(&own.at[i], name));
    }
    if (text->length == 0)
        mc_text_add(text, "port %u of its loopback address only", (unsigned)e.port);
}
