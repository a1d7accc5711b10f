/*
 * Which networks lead to all ranks. The one by which they have met does; of others only numbers are known, which two
 * networks may share: cards that lead to a management controller, ports without a cable. Each rank connects to the next
 * one of another namespace, so that a network in several parts is torn somewhere on the ring; and where one connection
 * fails, no rank uses that network, as each uses the addresses that the others tell.
 */
#include "runtime/create/rounds.h"

#include "base/system/descriptor.h"
#include "base/system/log.h"
#include "job/network/probe.h"

#include <string.h>

/* Of both rounds. */
typedef struct {
    int32_t status;
    uint32_t
        told; /* the port at which a rank listens, 0: none; then a bit for each network that leads on from it */
} record_t;

static const record_t *record_of(const mc_making_t *m, int32_t rank)
{
    return (const record_t *)m->rounds.all + rank;
}

static int tell(mc_making_t *m, uint32_t told)
{
    const record_t mine = {.told = told};
    memcpy(m->rounds.own, &mine, sizeof mine);
    return mc_round(&m->rounds, MESHCOLL_OK, sizeof mine);
}

static void say_unreached(const mc_making_t *m, const mc_endpoint_t *own, int32_t next,
                          const mc_endpoint_t *to)
{
    char from[MC_WIRE_NAME], at[MC_WIRE_NAME];
    mc_log(MC_LOG_INFO,
           "the network of %s is not used: rank %d reached rank %d at %s by no packet within %g s; "
           "MESHCOLL_NET_DEVICES names the interfaces to use",
           mc_wire_print(own, from), m->creation->oob.rank, next, mc_wire_print(to, at),
           MC_PROBE_SECONDS);
}

/* A bit for each of them that leads to the next rank. */
static uint32_t try_all(const mc_making_t *m, const mc_networks_t *networks, int32_t next)
{
    mc_endpoint_t to[MC_NETWORK_ADDRESSES];
    const uint32_t port = record_of(m, next)->told;
    for (int32_t i = 0; i < m->n_also; i++) {
        to[i] = *mc_network_in(mc_network_of(networks, next), &m->also[i]);
        to[i].port = (uint16_t)port;
    }
    const uint32_t answered = port ? mc_probe_all(to, m->n_also) : 0;
    for (int32_t i = 0; i < m->n_also; i++)
        if (!(answered >> i & 1))
            say_unreached(
                m, mc_network_in(mc_network_of(networks, m->creation->oob.rank), &m->also[i]), next,
                &to[i]);
    return answered;
}

static void keep_proven(mc_making_t *m)
{
    uint32_t proven = ~UINT32_C(0);
    int32_t n = 0;
    for (int32_t r = 0; r < m->creation->oob.size; r++)
        proven &= record_of(m, r)->told;
    for (int32_t i = 0; i < m->n_also; i++)
        if (proven >> i & 1)
            m->also[n++] = m->also[i];
    m->n_also = n;
}

int mc_making_probe(mc_making_t *m)
{
    const mc_networks_t networks = mc_making_networks(m);
    const int32_t n = networks.n, rank = m->creation->oob.rank, next = (rank + 1) % n;
    const uint64_t space = mc_network_of(&networks, rank)->space;
    int listener = -1;
    m->n_also = mc_network_common(&networks, m->also);
    if (m->n_also == 0)
        return MESHCOLL_OK;
    const bool is_sought = mc_network_of(&networks, (rank + n - 1) % n)->space != space;
    int status = tell(m, is_sought ? mc_probe_listen(&listener) : 0);
    if (!status) {
        const bool seeks = mc_network_of(&networks, next)->space != space;
        status = tell(m, seeks ? try_all(m, &networks, next) : ~UINT32_C(0));
    }
    if (!status)
        keep_proven(m);
    mc_descriptor_close(&listener);
    return status;
}
