/* Where rank 0 listens. */
#include "runtime/bootstrap/resolve.h"
#include "runtime/bootstrap/seek.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

static int fail_listen(const mc_job_t *job, int error)
{
    const char *const why = error == EADDRNOTAVAIL
                                ? "it is no address of the host on which rank 0 runs"
                                : strerror(error);
    const char *const host = job->only_there ? job->host : "any address";
    if (job->n_ports == 1)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank 0 cannot listen on %s, port %u: %s", host,
                       (unsigned)job->port, why);
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "rank 0 cannot listen on %s, ports %u to %u: %s; MESHCOLL_MASTER_ADDR and "
                   "MESHCOLL_MASTER_PORT choose others",
                   host, (unsigned)job->port, (unsigned)(job->port + job->n_ports - 1), why);
}

static int listen_on(const mc_job_t *job, const mc_addresses_t *a, uint16_t port, int *listener)
{
    int failed = EADDRNOTAVAIL;
    if (!job->only_there)
        return mc_wire_listen_anywhere(port, listener);
    for (int i = 0; i < a->n && failed == EADDRNOTAVAIL; i++) {
        struct sockaddr_storage at = a->at[i];
        mc_wire_set_port(&at, port);
        failed = mc_wire_listen(&at, listener);
    }
    return failed;
}

int mc_seek_listen(const mc_job_t *job, int *listener)
{
    mc_addresses_t a = {.n = 0};
    int failed = job->only_there ? mc_resolve(job->host, &a) : 0;
    if (failed)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank 0's address '%s' is not known: %s", job->host,
                       gai_strerror(failed));
    for (int32_t p = 0; p < job->n_ports; p++) {
        failed = listen_on(job, &a, (uint16_t)(job->port + p), listener);
        if (!failed)
            return MESHCOLL_OK;
    }
    return fail_listen(job, failed);
}

static void add_address(const struct sockaddr *own, uint16_t port, mc_text_t *text)
{
    char name[MC_WIRE_NAME];
    struct sockaddr_storage at = {0};
    memcpy(&at, own,
           own->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    mc_wire_set_port(&at, port);
    mc_text_add(text, "%s%s", text->length ? ", " : "", mc_wire_print(&at, name));
}

void mc_seek_where(int listener, mc_text_t *text)
{
    struct ifaddrs *all = NULL;
    struct sockaddr_storage own;
    mc_endpoint_t e;
    if (mc_wire_listening(listener, &e) || mc_wire_own_address(listener, &own))
        return;
    static const mc_endpoint_t any;
    if (memcmp(e.at, any.at, sizeof e.at) != 0) {
        add_address((const struct sockaddr *)&own, e.port, text);
    } else if (getifaddrs(&all) == 0) {
        for (const struct ifaddrs *a = all; a; a = a->ifa_next)
            if (a->ifa_addr && !(a->ifa_flags & IFF_LOOPBACK) &&
                (a->ifa_addr->sa_family == AF_INET ||
                 (a->ifa_addr->sa_family == AF_INET6 && e.family == 6)))
                add_address(a->ifa_addr, e.port, text);
        freeifaddrs(all);
    }
    if (text->length == 0)
        mc_text_add(text, "port %u of its loopback address only", (unsigned)e.port);
}
