#include "job/bootstrap/seek.h"

#include "base/system/descriptor.h"
#include "base/system/process.h"
#include "job/environment/launcher.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6)
            found->at[found->n++] = mc_wire_endpoint(a->ai_addr);
    freeaddrinfo(list);
    return found->n > 0 ? 0 : EAI_NONAME;
}

static void add(const char *host, mc_addresses_t *found)
{
    mc_addresses_t its;
    if (found->n < MC_ADDRESSES && !mc_resolve(host, &its))
        found->at[found->n++] = its.at[0];
}

void mc_resolve_known(mc_addresses_t *found)
{
    const char *const launched = mc_variable("SLURM_LAUNCH_NODE_IPADDR");
    add("127.0.0.1", found);
    if (launched)
        add(launched, found);
}

static void ask_slurm(mc_names_t *lacking, mc_addresses_t *found)
{
    mc_slurm_ask(lacking);
    for (int i = 0; i < lacking->n; i++)
        add(lacking->host[i], found);
    mc_resolve_known(found);
    found->asked_slurm = true;
}

static int resolve_all(const mc_names_t *names, mc_addresses_t *found)
{
    mc_names_t lacking = {.n = 0};
    mc_addresses_t one;
    int failed = EAI_NONAME;
    *found = (mc_addresses_t){.n = 0};
    for (int i = 0; i < names->n; i++) {
        const int its = mc_resolve(names->host[i], &one);
        if (its) {
            failed = its;
            strcpy(lacking.host[lacking.n++], names->host[i]);
            continue;
        }
        for (int k = 0; k < one.n && k < MC_ADDRESSES / names->n; k++)
            found->at[found->n++] = one.at[k];
    }
    if (names->of_slurm && lacking.n > 0)
        ask_slurm(&lacking, found);
    return found->n > 0 ? 0 : failed;
}

struct mc_lookup {
    atomic_int owners; /* its thread, and who waits: the last one frees it */
    atomic_bool done;
    int event, failed;
    mc_names_t names;
    mc_addresses_t found;
};

static void leave(mc_lookup_t *lookup)
{
    if (atomic_fetch_sub(&lookup->owners, 1) != 1)
        return;
    close(lookup->event);
    free(lookup);
}

static void *look_up(void *context)
{
    mc_lookup_t *const l = context;
    l->failed = resolve_all(&l->names, &l->found);
    atomic_store(&l->done, true);
    (void)eventfd_write(l->event, 1);
    leave(l);
    return NULL;
}

mc_lookup_t *mc_lookup_begin(const mc_names_t *names)
{
    mc_lookup_t *const l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->names = *names;
    atomic_init(&l->owners, 2);
    l->event = mc_descriptor(eventfd(0, EFD_CLOEXEC));
    pthread_t thread;
    if (l->event < 0 || mc_thread_start(&thread, look_up, l)) {
        mc_descriptor_close(&l->event);
        free(l);
        return NULL;
    }
    pthread_detach(thread);
    return l;
}

int mc_lookup_event(const mc_lookup_t *lookup)
{
    return lookup->event;
}

bool mc_lookup_done(mc_lookup_t *lookup, int *failed, mc_addresses_t *found)
{
    if (!atomic_load(&lookup->done))
        return false;
    *failed = lookup->failed;
    if (!lookup->failed)
        *found = lookup->found;
    leave(lookup);
    return true;
}

void mc_lookup_drop(mc_lookup_t *lookup)
{
    if (lookup)
        leave(lookup);
}
