#include "job/monitor/branch.h"
#include "job/monitor/monitor.h"
#include "runtime/diagnose/waits/waits.h"
#include "runtime/handle/handle.h"

#include <string.h>

/* A question has a kind in its low bits, and the number of a call. */
enum { QUESTION_WAITS = 1, KIND_BITS = 8 };
/* How long an answer may take that a waiting rank asks for, and the news of a rank that has failed and closed
 * instead. */
#define BLAME_SECONDS 0.75
#define NEWS_SECONDS  (MC_WAITS_ASK_SECONDS - BLAME_SECONDS)

_Static_assert(sizeof(mc_waits_t) <= MC_FRAME_MOST, "an answer has a record");

static size_t answer(void *context, uint32_t question, void *out, size_t room)
{
    const mc_job_t *const job = context;
    if (question % (1 << KIND_BITS) != QUESTION_WAITS || room < sizeof(mc_waits_t))
        return 0;
    mc_waits_copy(job, question >> KIND_BITS, out);
    return sizeof(mc_waits_t);
}

void mc_waits_answer(mc_job_t *job)
{
    mc_monitor_answers(job->monitor, answer, job);
}

/* What another process sent is not trusted to be in range. */
int mc_waits_ask_for(const mc_job_t *job, int32_t rank, uint32_t number, double seconds,
                     mc_waits_t *out)
{
    mc_waits_t w;
    size_t n = 0;
    if (rank == job->rank) {
        mc_waits_copy(job, number, out);
        return MESHCOLL_OK;
    }
    const int failed =
        mc_monitor_ask(job->monitor, mc_comm_rank_of(&job->order, rank),
                       number << KIND_BITS | QUESTION_WAITS, seconds, &w, sizeof w, &n);
    if (failed || n != sizeof w || !mc_waits_are_sound(&w, job->mesh.size) || w.rank != rank)
        return MESHCOLL_ERR_TRANSPORT;
    *out = w;
    return MESHCOLL_OK;
}

int mc_waits_ask(const mc_job_t *job, int32_t rank, uint32_t number, mc_waits_t *out)
{
    mc_news_t news;
    const int failed = mc_waits_ask_for(job, rank, number, BLAME_SECONDS, out);
    if (failed)
        (void)mc_news_await(mc_monitor_board(job->monitor), NEWS_SECONDS, &news);
    return failed;
}
