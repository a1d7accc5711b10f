#include "runtime/diagnose/status/ask.h"

#include "job/monitor/branch.h"
#include "job/monitor/monitor.h"
#include "runtime/diagnose/waits/describe.h"

#include <pthread.h>
#include <string.h>

/* A question has a kind in its low bits, and the number of a call. */
enum { QUESTION_WAITS = 1, KIND_BITS = 8, ASKERS = 16 };
/* How long an answer may take: for a report, and for a rank whose time limit is over. */
#define REPORT_SECONDS 2.0
#define BLAME_SECONDS  0.75
/* How long the news of a rank may take that has failed and closed instead of answering. */
#define NEWS_SECONDS 0.25

_Static_assert(sizeof(mc_waits_t) <= MC_FRAME_MOST, "an answer has a record");

static size_t answer(void *context, uint32_t question, void *out, size_t room)
{
    const mc_job_t *const job = context;
    mc_waits_t w;
    if (question % (1 << KIND_BITS) != QUESTION_WAITS || room < sizeof w ||
        !mc_waits_copy(job, question >> KIND_BITS, &w))
        return 0;
    memcpy(out, &w, sizeof w);
    return sizeof w;
}

/* `rank` is a mesh rank. What another process sent is not trusted to be in range. */
static int ask_for(const mc_job_t *job, int32_t rank, uint32_t number, double seconds,
                   mc_waits_t *out)
{
    mc_waits_t w;
    size_t n = 0;
    if (rank == job->rank)
        return mc_waits_copy(job, number, out) ? 0 : MESHCOLL_ERR_TRANSPORT;
    const int failed =
        mc_monitor_ask(job->monitor, mc_comm_rank_of(&job->order, rank),
                       number << KIND_BITS | QUESTION_WAITS, seconds, &w, sizeof w, &n);
    if (failed || n != sizeof w || !mc_waits_are_sound(&w, job->mesh.size) || w.rank != rank)
        return MESHCOLL_ERR_TRANSPORT;
    *out = w;
    return 0;
}

static int ask(void *context, int32_t rank, uint32_t number, mc_waits_t *out)
{
    const mc_job_t *const job = context;
    mc_news_t news;
    const int failed = ask_for(job, rank, number, BLAME_SECONDS, out);
    if (failed)
        (void)mc_news_await(mc_monitor_board(job->monitor), NEWS_SECONDS, &news);
    return failed;
}

void mc_status_join(mc_job_t *job)
{
    mc_monitor_answers(job->monitor, answer, job);
    job->query = (mc_peer_query_t){ask, job};
}

/* All ranks ------------------------------------------------------------------------------------- */

typedef struct {
    const mc_job_t *job;
    const _Atomic bool *stop;
    mc_status_rank_t *rank;
    _Atomic int32_t next;
} gathering_t;

/* What is known of a rank that does not answer. */
static void introduce(const mc_job_t *job, int32_t known_as, mc_waits_t *w)
{
    const mc_contact_t *const contact = mc_monitor_contact(job->monitor, known_as);
    const int32_t rank = mc_mesh_rank_of(&job->order, known_as);
    *w = (mc_waits_t){.rank = rank,
                      .known_as = known_as,
                      .size = job->mesh.size,
                      .pid = contact ? contact->pid : 0,
                      .place = mc_wait_place(job, rank)};
    if (contact)
        memcpy(w->host, contact->host, strnlen(contact->host, sizeof w->host - 1));
}

static void *gather(void *context)
{
    gathering_t *const g = context;
    for (int32_t r; (r = atomic_fetch_add(&g->next, 1)) < g->job->mesh.size;) {
        mc_status_rank_t *const at = &g->rank[r];
        introduce(g->job, r, &at->waits);
        at->answered = !atomic_load(g->stop) &&
                       !ask_for(g->job, at->waits.rank, 0, REPORT_SECONDS, &at->waits);
    }
    return NULL;
}

void mc_status_gather(const mc_job_t *job, const _Atomic bool *stop, mc_status_rank_t *rank)
{
    gathering_t g = {.job = job, .stop = stop, .rank = rank};
    pthread_t helper[ASKERS - 1];
    int n = 0;
    while (n < ASKERS - 1 && n + 1 < job->mesh.size &&
           !pthread_create(&helper[n], NULL, gather, &g))
        n++;
    (void)gather(&g);
    while (n > 0)
        pthread_join(helper[--n], NULL);
}
