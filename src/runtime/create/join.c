/*
 * A mesh of processes that all are in one live job of this one takes part in that job: it shares transports,
 * connections, threads and monitor with the meshes that are there, and has its own mesh, order, links and settings.
 * All ranks tell their jobs in the first round of the creation. One more round agrees on a context
 * (handle/family.h), or that some rank cannot: its job is just ending, or was made with other transports, threads,
 * monitor or strategies.
 */
#include "runtime/create/calibrated.h"
#include "runtime/create/rounds.h"

#include "runtime/jobs/jobs.h"
#include "runtime/progress/threads.h"

#include <stdlib.h>
#include <string.h>

typedef enum { JOINS, JOINS_NOT } answer_t;
typedef struct {
    int32_t status;
    int32_t answer;
    uint32_t creation, unused;
    uint64_t free; /* a bit per context of a word */
} note_t;

/* The job ------------------------------------------------------------------------------------------ */

/* This rank's offer of a job; NULL: it has none. */
static const mc_job_offer_t *find_offer(const mc_making_t *m, int32_t rank, const mc_job_id_t *id)
{
    const mc_job_offer_t *const offer = mc_making_offered(m, rank);
    for (int i = 0; i < MC_JOBS_OFFERED; i++)
        if (memcmp(&offer[i].id, id, sizeof *id) == 0)
            return &offer[i];
    return NULL;
}

static bool all_offer(const mc_making_t *m, const mc_job_id_t *id)
{
    int32_t r = 0;
    while (r < m->creation->oob.size && find_offer(m, r, id))
        r++;
    return r == m->creation->oob.size;
}

/* The first of rank 0's that all are in; NULL: there is none. */
static const mc_job_id_t *find_job(const mc_making_t *m)
{
    const mc_job_id_t none = {{0}};
    const mc_job_offer_t *const offer = mc_making_offered(m, 0);
    for (int i = 0; i < MC_JOBS_OFFERED; i++)
        if (memcmp(&offer[i].id, &none, sizeof none) != 0 && all_offer(m, &offer[i].id))
            return &offer[i].id;
    return NULL;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* What belongs to the job, or is remembered with its settings. */
static bool has_settings(const mc_job_t *job, const mc_settings_t *s)
{
    bool same = is_same(job->settings.transports, s->transports) &&
                is_same(job->settings.monitor, s->monitor) &&
                is_same(job->settings.progress, s->progress) &&
                is_same(job->settings.threads, s->threads);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        same = same && is_same(job->settings.strategy[c], s->strategy[c]);
    return same;
}

/* The handle --------------------------------------------------------------------------------------- */

static int open_handle(mc_making_t *m, mc_job_t *job, meshcoll_t **handle)
{
    meshcoll_t *h = NULL;
    int32_t *const job_rank = malloc((size_t)m->creation->oob.size * sizeof *job_rank);
    int status = mc_handle_open_placed(m, job, &h);
    for (int32_t r = 0; !status && job_rank && r < h->mesh.size; r++)
        job_rank[r] = find_offer(m, mc_comm_rank_of(&h->order, r), &job->entry.id)->rank;
    if (h)
        *handle = h;
    if (status) {
        free(job_rank);
        return status;
    }
    status = mc_ranks_set(h, job_rank);
    return status || m->settings.links ? status : mc_calibrated_share(&m->settings, h);
}

/* Agreement ---------------------------------------------------------------------------------------- */

/* Reserves a word of contexts for this creation, unless another one that is under way has it. */
static uint64_t reserve(mc_job_t *job, uint32_t word, note_t *note)
{
    mc_job_lock(job);
    mc_family_t *const f = job->family;
    const uint64_t mine = ~f->reserved & UINT64_C(1) << word;
    note->answer = JOINS;
    note->creation = f->latest;
    note->free = mine ? ~f->used[word] : 0;
    f->reserved |= mine;
    mc_job_unlock(job);
    return mine;
}

static void merge(const mc_making_t *m, note_t *all)
{
    *all = *(const note_t *)m->rounds.all;
    for (int32_t r = 1; r < m->creation->oob.size; r++) {
        const note_t *const from = (const note_t *)m->rounds.all + r;
        all->answer = from->answer > all->answer ? from->answer : all->answer;
        if (mc_creation_before(all->creation, from->creation))
            all->creation = from->creation;
        all->free &= from->free;
    }
}

static void enter(meshcoll_t *h, uint32_t context, uint32_t creation)
{
    mc_job_t *const job = h->job;
    mc_creation_note(job->family, creation);
    mc_context_take(job->family, context);
    h->context.number = context;
    h->context.creation = creation;
    mc_job_add(h);
}

/* `h`: NULL where this rank cannot join. Leaves whether it was found that the mesh is in the job, with the smallest
 * context of the word that is free on all. */
static int go_round(mc_making_t *m, meshcoll_t *h, uint32_t word, int status, note_t *all)
{
    note_t own = {.answer = JOINS_NOT};
    const uint64_t mine = h && !status ? reserve(h->job, word, &own) : 0;
    memcpy(m->rounds.own, &own, sizeof own);
    status = mc_round(&m->rounds, status, sizeof own);
    if (!status)
        merge(m, all);
    if (!h)
        return status;
    mc_job_lock(h->job);
    if (!status && all->answer == JOINS && all->free)
        enter(h, 64 * word + (uint32_t)__builtin_ctzll(all->free), mc_creation_next(all->creation));
    h->job->family->reserved &= ~mine;
    mc_job_unlock(h->job);
    return status;
}

/* `job`: NULL where this rank cannot join. Creations under way begin at different words; where all are taken, the mesh
 * makes a job of its own. */
static int join(mc_making_t *m, mc_job_t *job, meshcoll_t **handle)
{
    meshcoll_t *h = NULL;
    note_t all = {.answer = JOINS};
    const uint32_t first = (uint32_t)(mc_making_id(m)->at[0] % MC_CONTEXT_WORDS);
    int status = m->status;
    if (job && !status) {
        mc_job_lock(job);
        status = mc_family_open(job);
        mc_job_unlock(job);
    }
    if (job && !status)
        status = open_handle(m, job, &h);
    uint32_t i = 0;
    do
        status = go_round(m, h, (first + i) % MC_CONTEXT_WORDS, status, &all);
    while (!status && all.answer == JOINS && !all.free && ++i < MC_CONTEXT_WORDS);
    if (!status && all.answer == JOINS && all.free)
        *handle = h;
    else if (h)
        mc_handle_free(h);
    return status;
}

int mc_making_join(mc_making_t *m, meshcoll_t **handle)
{
    const mc_job_id_t *const id = find_job(m);
    if (!id)
        return MESHCOLL_OK;
    mc_job_t *const job = mc_jobs_hold(find_offer(m, m->creation->oob.rank, id));
    const bool fits = job && has_settings(job, &m->settings);
    if (fits) {
        mc_job_lock(job);
        mc_handles_sweep(job);
        mc_job_unlock(job);
    }
    const int status = join(m, fits ? job : NULL, handle);
    if (job)
        mc_jobs_release(job);
    return status;
}
