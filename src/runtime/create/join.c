#include "runtime/create/join.h"

#include "runtime/create/close.h"
#include "runtime/create/jobs.h"
#include "runtime/create/open.h"
#include "runtime/progress/threads.h"
#include "runtime/waits/board.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BETWEEN_NS = 200 * 1000 };

/* BUSY: another creation of this rank offers the contexts. */
typedef enum { JOINS, BUSY, JOINS_NOT } answer_t;
typedef struct {
    int32_t status;
    int32_t answer;
    uint32_t creation, unused;
    uint64_t free[MC_CONTEXT_WORDS]; /* a bit per context */
} note_t;
_Static_assert(sizeof(note_t) <= MC_ROUND_ROOM, "it needs no round of its own");

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
static bool has_settings(const mc_shared_t *job, const mc_settings_t *s)
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

static int open_handle(const mc_making_t *m, mc_shared_t *job, meshcoll_t **handle)
{
    meshcoll_t *h = NULL;
    int32_t *const root_rank = malloc((size_t)m->creation->oob.size * sizeof *root_rank);
    int status = mc_handle_open_placed(m, job, &h);
    for (int32_t r = 0; !status && root_rank && r < h->mesh.size; r++)
        root_rank[r] = find_offer(m, mc_comm_rank_of(&h->order, r), &job->id)->rank;
    if (h)
        *handle = h;
    if (status) {
        free(root_rank);
        return status;
    }
    return mc_handle_seat(h, root_rank);
}

/* Agreement ---------------------------------------------------------------------------------------- */

/* What this rank offers. */
static void offer(mc_shared_t *job, const mc_creating_t *creating, note_t *note)
{
    mc_shared_lock(job);
    mc_family_t *const f = job->family;
    const bool offers = mc_creating_may_offer(f, creating);
    note->answer = offers ? JOINS : BUSY;
    note->creation = f->latest;
    for (int w = 0; w < MC_CONTEXT_WORDS && offers; w++)
        note->free[w] = ~f->used[w];
    f->offered = f->offered || offers;
    mc_shared_unlock(job);
}

static void merge(const mc_making_t *m, note_t *all)
{
    *all = *(const note_t *)m->rounds.all;
    for (int32_t r = 1; r < m->creation->oob.size; r++) {
        const note_t *const from = (const note_t *)m->rounds.all + r;
        all->answer = from->answer > all->answer ? from->answer : all->answer;
        if (mc_creation_before(all->creation, from->creation))
            all->creation = from->creation;
        for (int w = 0; w < MC_CONTEXT_WORDS; w++)
            all->free[w] &= from->free[w];
    }
}

static int exchange(mc_making_t *m, mc_shared_t *job, const mc_creating_t *creating, int status,
                    note_t *all)
{
    note_t own = {.answer = JOINS_NOT};
    if (job && !status)
        offer(job, creating, &own);
    memcpy(m->rounds.own, &own, sizeof own);
    const int agreed = mc_round(&m->rounds, status, sizeof own);
    if (own.answer == JOINS) {
        mc_shared_lock(job);
        job->family->offered = false;
        mc_shared_unlock(job);
    }
    if (!agreed)
        merge(m, all);
    return agreed;
}

/* The smallest context that is free on all; 0: there is none. */
static uint32_t choose(const note_t *all)
{
    int w = 0;
    while (w < MC_CONTEXT_WORDS && !all->free[w])
        w++;
    return w < MC_CONTEXT_WORDS ? (uint32_t)(64 * w + __builtin_ctzll(all->free[w])) : 0;
}

static void enter(meshcoll_t *h, uint32_t context, uint32_t creation)
{
    mc_shared_t *const job = h->job;
    mc_shared_lock(job);
    mc_creation_note(job->family, creation);
    mc_context_take(job->family, context);
    h->context = context;
    h->creation = creation;
    h->sibling = job->meshes;
    job->meshes = h;
    mc_waits_join(h);
    mc_shared_unlock(job);
}

static void enlist(mc_shared_t *job, mc_creating_t *creating, bool enters)
{
    mc_shared_lock(job);
    if (enters)
        mc_creating_enter(job->family, creating);
    else
        mc_creating_leave(job->family, creating);
    mc_shared_unlock(job);
}

/* `job`: NULL where this rank cannot join. */
static int join(mc_making_t *m, mc_shared_t *job, meshcoll_t **handle)
{
    meshcoll_t *h = NULL;
    note_t all = {.answer = JOINS_NOT};
    int status = m->status;
    if (job && !status)
        status = mc_family_open(job);
    if (job && !status)
        status = open_handle(m, job, &h);
    mc_creating_t creating = {.tag = INT32_MIN, .members = mc_making_number(m)};
    if (job && !status)
        enlist(job, &creating, true);
    const bool listed = job && !status;
    while (!(status = exchange(m, job, &creating, status, &all)) && all.answer == BUSY)
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_NS}, NULL);
    if (listed)
        enlist(job, &creating, false);
    const uint32_t context = status || all.answer != JOINS ? 0 : choose(&all);
    if (context > 0) {
        enter(h, context, mc_creation_next(all.creation));
        *handle = h;
    } else if (h) {
        mc_handle_free(h);
    }
    return status;
}

int mc_making_join(mc_making_t *m, meshcoll_t **handle)
{
    const mc_job_id_t *const id = find_job(m);
    if (!id)
        return MESHCOLL_OK;
    mc_shared_t *const job = mc_jobs_hold(find_offer(m, m->creation->oob.rank, id));
    const bool fits = job && has_settings(job, &m->settings);
    if (fits) {
        mc_shared_lock(job);
        mc_handles_sweep(job);
        mc_shared_unlock(job);
    }
    const int status = join(m, fits ? job : NULL, handle);
    if (job)
        mc_jobs_release(job);
    return status;
}
