/*
 * What ranks exchange while they create a mesh, in four rounds of the out-of-band allgather:
 *   1 where each rank runs, a segment for others to try, how long its settings are, its jobs
 *   2 rank 0's settings, whether each rank can open the others' segments
 *   3 how long each rank's addresses are; ranks now permit reads of their memory
 *   4 the addresses, and whether the rank can read the others' memory
 * Where ranks of several network namespaces have addresses in more subnets than that by which they have met, two short
 * rounds follow the first (networks.c). Where all of them are in one job already, one round follows the second instead
 * (join.c); where only some are, and in others, the first two are repeated.
 * Each record carries its rank's status. A rank that failed takes part until the end of the round
 * that reports it.
 */
#ifndef MC_CREATE_ROUNDS_H
#define MC_CREATE_ROUNDS_H

#include "base/gather.h"
#include "job/network/network.h"
#include "runtime/connect/connections.h"
#include "runtime/create/create.h"
#include "runtime/jobs/jobs.h"
#include "transport/shm/shm_memory.h"

struct mc_facts; /* what a rank tells in the first round */

typedef struct {
    const mc_creation_t *creation;
    mc_rounds_t rounds;
    int status; /* of this rank, for the next round to report */
    mc_settings_t settings;
    struct mc_facts *facts; /* by rank */
    mc_place_t *place;      /* by rank */
    int32_t *machine, *scratch;
    mc_home_t *home;
    mc_subnet_t also[MC_NETWORK_ADDRESSES]; /* by which ranks reach each other too */
    int32_t n_also;
    double calibrate;      /* seconds to measure links for, where none are given; 0: not at all */
    char *key;             /* of what is kept of this cluster, on rank 0; NULL: nothing is */
    char *learned;         /* kept of calls on these links, on rank 0; NULL: nothing */
    int64_t learned_bytes; /* of it, with its end, on all ranks; 0: nothing */
    mc_shm_probe_t probe;
    bool has_probe, any_offers; /* any_offers: some rank is in a job already */
    mc_shm_access_t copies;     /* the least access of any rank, COPY at most */
    double crowd;               /* ranks to a core of this rank's */
    bool differs;               /* from rank 0, in what MESHCOLL_LOG tells of a rank */
    meshcoll_t *handle;         /* NULL until it is opened */
} mc_making_t;

void mc_making_open(mc_making_t *making, const mc_creation_t *creation);
/* Frees all but the handle. */
void mc_making_close(mc_making_t *making);

/* The rounds. Each returns the status on which all ranks agree. Collective. */
/* `joins`: ranks offer the jobs that they are in; who does tells where it runs as it knows it from them, and nothing of
 * its memory. */
int mc_making_places(mc_making_t *making, bool joins);
int mc_making_settings(mc_making_t *making);
/* After the first, where several networks may lead to all ranks: tries those by which they have not met (networks.c). */
int mc_making_probe(mc_making_t *making);
/* After that: the network devices that lead to ranks of other network namespaces; "": not known. */
void mc_making_devices(const mc_making_t *making, char devices[MC_DEVICES_TEXT]);
/* After the first: the networks of all ranks. */
mc_networks_t mc_making_networks(const mc_making_t *making);
/* The id of this creation, the same on all ranks. */
const mc_job_id_t *mc_making_id(const mc_making_t *making);
/* The jobs that a rank offers to make the mesh of: MC_JOBS_OFFERED. */
const struct mc_job_offer *mc_making_offered(const mc_making_t *making, int32_t rank);
/* Opens the handle of this rank where it was found to be, without transports, in a job; NULL: in one of its own. */
int mc_handle_open_placed(const mc_making_t *making, mc_job_t *job, meshcoll_t **handle);
/* Joins a job (join.c). Collective. OK with *handle NULL: they are in no job, or cannot all join it. */
int mc_making_join(mc_making_t *making, meshcoll_t **handle);
/* Of a mesh that was made: what MESHCOLL_LOG asks for, and variables that mean nothing (tell.c). Not collective. */
void mc_making_tell(const mc_making_t *making);
/* Of what it tells of this rank; equal to rank 0's where nothing differs. */
uint32_t mc_handle_digest(const meshcoll_t *h);
/* `status`: of opening the handle. Leaves in *addresses what holds for all ranks. */
int mc_making_lengths(mc_making_t *making, int status, mc_addresses_summary_t *addresses);
/* `*reads`: do the ranks want to read each other's memory? Leaves whether they may. */
int mc_making_addresses(mc_making_t *making, const mc_addresses_summary_t *addresses, bool *reads);

#endif
