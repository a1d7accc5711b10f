#include "runtime/create/rounds.h"

#include "job/monitor/monitor.h"
#include "runtime/create/calibrated.h"
#include "runtime/create/tuned.h"
#include "runtime/diagnose/status/status.h"
#include "runtime/jobs/jobs.h"
#include "runtime/place/places.h"
#include "runtime/place/topology.h"
#include "runtime/progress/threads.h"

#include <stdlib.h>
#include <string.h>

/* The first round's record. */
typedef struct mc_facts {
    int32_t status, unused;
    uint64_t settings_most; /* bytes; only rank 0's counts */
    mc_home_t home;
    mc_shm_published_t published;
    mc_monitor_secret_t secret; /* only rank 0's counts */
    mc_job_id_t id;             /* of a new job; only rank 0's counts */
    mc_job_offer_t offer[MC_JOBS_OFFERED];
} facts_t;
_Static_assert(sizeof(facts_t) <= MC_ROUND_FIRST, "the first record is small");

/* The others' records, without what follows them. */
typedef struct {
    int32_t status;
    int32_t copies;  /* an mc_shm_access_t */
    int64_t learned; /* bytes of what earlier jobs have learned, on rank 0; then the settings */
} second_t;
typedef struct {
    int32_t status;
    uint32_t digest; /* mc_handle_digest(); 0: it failed */
    mc_addresses_summary_t addresses;
} third_t;
typedef struct {
    int32_t status;
    int32_t reads;
    mc_contact_t contact; /* then the addresses */
} fourth_t;
_Static_assert(sizeof(fourth_t) % 8 == 0, "addresses are aligned");

static size_t rounded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* Room for all that the rounds need and that does not depend on what ranks tell. */
static int allocate(mc_making_t *m)
{
    const size_t n = (size_t)m->creation->oob.size;
    m->facts = calloc(n, sizeof *m->facts);
    m->place = calloc(n, sizeof *m->place);
    m->machine = calloc(n, sizeof *m->machine);
    m->scratch = calloc(n, sizeof *m->scratch);
    m->home = malloc(sizeof *m->home);
    return m->facts && m->place && m->machine && m->scratch && m->home
               ? MESHCOLL_OK
               : mc_fail_memory("the places of all ranks");
}

void mc_making_open(mc_making_t *making, const mc_creation_t *creation)
{
    *making = (mc_making_t){.creation = creation};
    mc_rounds_open(&making->rounds, &creation->oob);
    making->status = allocate(making);
    if (!making->status)
        making->status = mc_settings_read(creation->params, &making->settings);
    if (creation->finds_mesh)
        making->settings.mesh = making->settings.order = NULL;
}

void mc_making_close(mc_making_t *making)
{
    if (making->has_probe)
        mc_shm_probe_close(&making->probe);
    free(making->key);
    free(making->learned);
    free(making->home);
    mc_settings_free(&making->settings);
    mc_rounds_close(&making->rounds);
    free(making->scratch);
    free(making->machine);
    free(making->place);
    free(making->facts);
}

/* Rounds --------------------------------------------------------------------------------------- */

static bool looks_up_links(const mc_making_t *m)
{
    return m->creation->tuned && m->creation->oob.rank == 0;
}

static void *record_at(const mc_making_t *m, int32_t rank, size_t bytes)
{
    return m->rounds.all + (size_t)rank * bytes;
}

static int draw(mc_job_id_t *id)
{
    mc_monitor_secret_t random;
    const int status = mc_monitor_draw(&random);
    if (!status)
        memcpy(id, &random, sizeof *id);
    return status;
}

/* Where this process runs, and memory for others to try. */
static void probe(mc_making_t *m, facts_t *mine)
{
    mc_location_find(&mine->home.location);
    mc_network_find(mine->home.location.network, m->creation->reached, &mine->home.network);
    if (!m->has_probe)
        mc_shm_probe_open(&m->probe);
    m->has_probe = true;
    mine->published = m->probe.published;
}

static bool offers(const facts_t *facts)
{
    return facts->offer[0].id.at[0] || facts->offer[0].id.at[1];
}

int mc_making_places(mc_making_t *m, bool joins)
{
    const int32_t n = m->creation->oob.size;
    facts_t mine = {.status = MESHCOLL_OK};
    const bool in_job = joins && mc_jobs_offer(mine.offer, &mine.home);
    if (!in_job)
        probe(m, &mine);
    if (!m->status)
        mine.settings_most = mc_settings_bytes(&m->settings);
    if (!m->status && looks_up_links(m))
        mine.settings_most +=
            mc_tuned_most(&m->settings) + (in_job ? 0 : mc_calibrated_most(&m->settings));
    if (!m->status)
        m->status = mc_monitor_draw(&mine.secret);
    if (!m->status)
        m->status = draw(&mine.id);
    if (!m->rounds.own)
        return mc_fail_memory("the data of all ranks");
    memcpy(m->rounds.own, &mine, sizeof mine);
    const int status = mc_round(&m->rounds, m->status, sizeof mine);
    if (status)
        return status;
    memcpy(m->facts, m->rounds.all, (size_t)n * sizeof *m->facts);
    if (m->home)
        *m->home = mine.home;
    if (m->creation->place)
        memcpy(m->place, m->creation->place, (size_t)n * sizeof *m->place);
    else
        mc_places_of(&m->facts->home.location, sizeof *m->facts, n, m->scratch, m->place);
    m->any_offers = false;
    for (int32_t r = 0; r < n; r++) {
        m->machine[r] = m->place[r].machine;
        m->any_offers = m->any_offers || offers(&m->facts[r]);
    }
    m->crowd =
        mc_cores_crowd(&m->facts->home.location.cores, sizeof *m->facts, n, m->creation->oob.rank);
    mc_topology_warn(m->machine[m->creation->oob.rank] == m->creation->oob.rank);
    return MESHCOLL_OK;
}

mc_networks_t mc_making_networks(const mc_making_t *m)
{
    return (mc_networks_t){
        .first = &m->facts->home.network, .stride = sizeof *m->facts, .n = m->creation->oob.size};
}

_Static_assert((int)MC_DEVICES_TEXT == (int)MC_NETWORK_DEVICES, "lists of devices fit");
void mc_making_devices(const mc_making_t *m, char devices[MC_DEVICES_TEXT])
{
    const mc_networks_t networks = mc_making_networks(m);
    mc_network_devices(&networks, m->creation->oob.rank, m->also, m->n_also, devices);
}

static mc_shm_ranks_t neighbours(const mc_making_t *m)
{
    return (mc_shm_ranks_t){.machine = m->machine,
                            .n = m->creation->oob.size,
                            .rank = m->creation->oob.rank,
                            .published = &m->facts->published,
                            .stride = sizeof *m->facts};
}

static int use_calibrated(mc_making_t *m)
{
    char devices[MC_DEVICES_TEXT];
    mc_making_devices(m, devices);
    return mc_calibrated_use(m, devices);
}

/* What rank 0 tells decides how much memory the next round takes. All ranks see the same number, and so refuse it
 * together. */
static int check_facts(const mc_making_t *m)
{
    if (m->facts[0].settings_most <= MC_SETTINGS_MOST)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "rank 0 announces settings of %llu bytes; expected %d at most: do all ranks use "
                   "the same version of meshcoll?",
                   (unsigned long long)m->facts[0].settings_most, MC_SETTINGS_MOST);
}

static void find_copies(mc_making_t *m, size_t record)
{
    m->copies = MC_SHM_COPY;
    for (int32_t r = 0; r < m->creation->oob.size; r++) {
        const second_t *const s = record_at(m, r, record);
        m->copies = (mc_shm_access_t)s->copies < m->copies ? (mc_shm_access_t)s->copies : m->copies;
    }
}

int mc_making_settings(mc_making_t *m)
{
    const meshcoll_oob_t *const oob = &m->creation->oob;
    if (check_facts(m))
        return MESHCOLL_ERR_TRANSPORT;
    const size_t most = m->facts[0].settings_most, record = rounded(sizeof(second_t) + most);
    const bool given = m->settings.links;
    int status = MESHCOLL_OK;
    if (looks_up_links(m))
        status = mc_tuned_use(&m->settings, m->place, oob->size, most);
    /* those who join a job have its links */
    if (!status && looks_up_links(m) && !m->any_offers && !given)
        status = use_calibrated(m);
    const mc_shm_ranks_t ranks = neighbours(m);
    const second_t mine = {.copies =
                               m->any_offers ? MC_SHM_COPY : (int32_t)mc_shm_probe_copies(&ranks),
                           .learned = m->learned ? (int64_t)strlen(m->learned) + 1 : 0};
    status = mc_rounds_reserve(&m->rounds, status, record);
    if (record > m->rounds.room)
        return status;
    memset(m->rounds.own, 0, record);
    memcpy(m->rounds.own, &mine, sizeof mine);
    if (!status && oob->rank == 0)
        mc_settings_pack(&m->settings, m->rounds.own + sizeof mine);
    status = mc_round(&m->rounds, status, record);
    if (status)
        return status;
    find_copies(m, record);
    m->learned_bytes = ((const second_t *)record_at(m, 0, record))->learned;
    m->status = mc_settings_unpack(&m->settings, m->rounds.all + sizeof mine, most);
    if (!m->status)
        m->status = mc_calibrate_read(m->settings.calibrate, &m->calibrate);
    return MESHCOLL_OK;
}

int mc_making_lengths(mc_making_t *m, int status, mc_addresses_summary_t *addresses)
{
    const third_t mine = {.digest = status ? 0 : mc_handle_digest(m->handle),
                          .addresses = *addresses};
    memcpy(m->rounds.own, &mine, sizeof mine);
    status = mc_round(&m->rounds, status, sizeof mine);
    for (int32_t r = 0; !status && r < m->creation->oob.size; r++) {
        const third_t *const t = record_at(m, r, sizeof mine);
        if (t->addresses.bytes > addresses->bytes)
            addresses->bytes = t->addresses.bytes;
        addresses->streams &= t->addresses.streams;
    }
    m->differs = !status && mine.digest != ((const third_t *)m->rounds.all)->digest;
    return status ? status : mc_addresses_check_bytes(addresses->bytes);
}

/* The handle takes over the records' memory, without their heads. What was the heads' leaves room behind
 * the addresses for the barrier of its destruction (close.c). */
static void take_addresses(mc_making_t *m, size_t bytes)
{
    const size_t n = (size_t)m->creation->oob.size, record = sizeof(fourth_t) + bytes;
    char *const memory = m->rounds.memory;
    for (size_t r = 0; r < n; r++)
        memmove(memory + r * bytes, m->rounds.all + r * record + sizeof(fourth_t), bytes);
    char *const fitted = realloc(memory, n * (bytes + 1));
    m->handle->job->connections.addresses = fitted ? fitted : memory;
    m->handle->job->connections.address_stride = bytes;
    m->rounds.memory = NULL;
}

static bool is_one_network(const mc_making_t *m)
{
    for (int32_t r = 1; r < m->creation->oob.size; r++)
        if (m->facts[r].home.network.space != m->facts[0].home.network.space)
            return false;
    return true;
}

/* Opens this rank's monitor, for the others to find. */
static int open_monitor(const mc_making_t *m, mc_contact_t *contact)
{
    mc_job_t *const job = m->handle->job;
    mc_monitor_t *monitor;
    double silence;
    int status = mc_monitor_parse(m->settings.monitor, &silence);
    if (!status)
        status = mc_monitor_open(m->creation->oob.size,
                                 is_one_network(m) ? NULL
                                                   : &m->facts[m->creation->oob.rank].home.network,
                                 silence, &monitor, contact);
    if (status)
        return status;
    mc_job_lock(job); /* there may be a progress thread */
    job->monitor = monitor;
    job->failure.alarm = &mc_monitor_board(monitor)->has_fatal;
    mc_job_unlock(job);
    return MESHCOLL_OK;
}

/* Ranks ask each other what they wait for, and others on this machine may ask them. */
static void start_monitor(const mc_making_t *m, size_t record)
{
    const meshcoll_oob_t *const oob = &m->creation->oob;
    const mc_monitor_params_t params = {
        .rank = oob->rank,
        .contact = &((const fourth_t *)record_at(m, 0, record))->contact,
        .stride = record,
        .machine = m->machine,
        .secret = m->facts[0].secret,
    };
    mc_job_t *const job = m->handle->job;
    mc_waits_answer(job);
    const bool works = mc_monitor_start(job->monitor, &params);
    mc_job_lock(job); /* there may be a progress thread */
    job->can_ask = works;
    mc_job_unlock(job);
    if (works)
        mc_status_open(job);
}

const mc_job_id_t *mc_making_id(const mc_making_t *m)
{
    return &m->facts[0].id;
}

const mc_job_offer_t *mc_making_offered(const mc_making_t *m, int32_t rank)
{
    return m->facts[rank].offer;
}

int mc_making_addresses(mc_making_t *m, const mc_addresses_summary_t *addresses, bool *reads)
{
    const mc_shm_ranks_t ranks = neighbours(m);
    const size_t record = sizeof(fourth_t) + addresses->bytes;
    fourth_t mine = {.reads = *reads && mc_shm_probe_reads(&ranks) == MC_SHM_READ};
    const int opened = open_monitor(m, &mine.contact);
    int status = mc_rounds_reserve(&m->rounds, MESHCOLL_OK, record);
    if (status)
        return status;
    memset(m->rounds.own, 0, record);
    memcpy(m->rounds.own, &mine, sizeof mine);
    mc_addresses_pack(m->handle->job, m->rounds.own + sizeof mine);
    status = mc_round(&m->rounds, opened, record);
    if (status)
        return status;
    /* before any rank can have the mesh, which ends with its monitor */
    for (int32_t r = 0; r < m->creation->oob.size; r++)
        mc_addresses_hold(m->handle->job, mc_mesh_rank_of(&m->handle->order, r),
                          (const char *)record_at(m, r, record) + sizeof mine, addresses->bytes);
    start_monitor(m, record);
    for (int32_t r = 0; r < m->creation->oob.size; r++)
        *reads &= ((const fourth_t *)record_at(m, r, record))->reads == 1;
    take_addresses(m, addresses->bytes);
    return mc_addresses_check(m->handle->job);
}
