/* Monitors of several ranks, all in this process: the tree, news, questions, the barrier, and a rank that ends. */
#include "job/monitor/monitor.h"
#include "job/monitor/state.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 30 };
#define SECONDS 10.0

static void check_tree(const int32_t *machine, int32_t size)
{
    for (int32_t r = 0; r < size; r++) {
        const int32_t parent = mc_monitor_parent(machine, size, r);
        int32_t steps = 0;
        for (int32_t at = r; at != 0; at = mc_monitor_parent(machine, size, at), steps++)
            cr_assert(at > 0 && at < size && steps < size, "rank %d", r);
        if (machine[r] != r) /* the leaders join the machines */
            cr_expect_eq(machine[parent], machine[r], "rank %d, parent %d", r, parent);
        else if (r > 0)
            cr_expect_eq(machine[parent], parent);
    }
}

Test(monitor, the_tree_joins_all_ranks)
{
    for (int32_t per = 1; per <= 12; per++) {
        int32_t blocks[RANKS], dealt[RANKS];
        for (int32_t r = 0; r < RANKS; r++) {
            blocks[r] = r / per * per;
            dealt[r] = r % per;
        }
        check_tree(blocks, RANKS);
        check_tree(dealt, RANKS);
    }
}

Test(monitor, a_setting_is_off_or_seconds)
{
    double seconds;
    cr_expect(!mc_monitor_parse(NULL, &seconds) && seconds > 0);
    cr_expect(!mc_monitor_parse("off", &seconds) && seconds == 0);
    cr_expect(!mc_monitor_parse("2.5", &seconds) && seconds == 2.5);
    static const char *const wrong[] = {"", "on", "1", "-3", "4s", "nan", "1e9"};
    for (size_t i = 0; i < MC_COUNT(wrong); i++)
        cr_expect_eq(mc_monitor_parse(wrong[i], &seconds), MESHCOLL_ERR_PARSE, "%s", wrong[i]);
}

/* A job ---------------------------------------------------------------------------------------- */

typedef struct {
    mc_monitor_t *monitor[RANKS];
    mc_contact_t contact[RANKS];
    int32_t machine[RANKS];
} job_t;

static size_t answer(void *context, uint32_t question, void *out, size_t room)
{
    const int32_t told[2] = {*(const int32_t *)context, (int32_t)question};
    cr_assert_geq(room, sizeof told);
    memcpy(out, told, sizeof told);
    return sizeof told;
}

/* `lost`: a rank whose monitor nobody reaches; -1: none. */
static void start_without(job_t *job, int32_t per_machine, int32_t lost)
{
    static int32_t rank[RANKS];
    mc_monitor_secret_t secret;
    cr_assert_eq(mc_monitor_draw(&secret), MESHCOLL_OK);
    for (int32_t r = 0; r < RANKS; r++) {
        rank[r] = r;
        job->machine[r] = r / per_machine * per_machine;
        cr_assert_eq(mc_monitor_open(RANKS, NULL, 4, &job->monitor[r], &job->contact[r]),
                     MESHCOLL_OK);
        mc_monitor_answers(job->monitor[r], answer, &rank[r]);
    }
    if (lost >= 0)
        job->contact[lost].port = 1; /* nobody listens there */
    for (int32_t r = 0; r < RANKS; r++) {
        const mc_monitor_params_t params = {.rank = r,
                                            .contact = job->contact,
                                            .stride = sizeof job->contact[0],
                                            .machine = job->machine,
                                            .secret = secret};
        mc_monitor_start(job->monitor[r], &params);
    }
}

static void start(job_t *job, int32_t per_machine)
{
    start_without(job, per_machine, -1);
}

static void *meet(void *monitor)
{
    return mc_monitor_barrier(monitor, 10000) == MESHCOLL_OK ? monitor : NULL;
}

static void close_all(job_t *job)
{
    for (int32_t r = 0; r < RANKS; r++)
        mc_monitor_close(job->monitor[r]);
}

Test(monitor, all_meet_in_the_barrier, .timeout = 60)
{
    job_t job;
    pthread_t thread[RANKS];
    start(&job, 7);
    for (int r = 1; r < RANKS; r++)
        cr_assert_eq(pthread_create(&thread[r], NULL, meet, job.monitor[r]), 0);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    cr_expect_eq(mc_monitor_barrier(job.monitor[0], 10000), MESHCOLL_OK);
    for (int r = 1; r < RANKS; r++) {
        void *met;
        pthread_join(thread[r], &met);
        cr_expect_eq(met, job.monitor[r]);
    }
    close_all(&job);
}

/* By its limit the barrier would end with another status. */
static void *miss(void *monitor)
{
    return mc_monitor_barrier(monitor, 25000) == MESHCOLL_ERR_UNSUPPORTED ? monitor : NULL;
}

/* They have 30 s where a child may still come. */
Test(monitor, nobody_waits_for_who_was_never_reached, .timeout = 60)
{
    job_t job;
    pthread_t thread[RANKS];
    start_without(&job, 7, 0);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(pthread_create(&thread[r], NULL, miss, job.monitor[r]), 0);
    for (int r = 0; r < RANKS; r++) {
        void *missed;
        pthread_join(thread[r], &missed);
        cr_expect_eq(missed, job.monitor[r]);
    }
    /* the others have each other */
    const mc_news_t news = {.kind = MC_NEWS_FATAL, .status = MESHCOLL_ERR_ABORTED, .rank = 8};
    mc_news_t heard = {.rank = -1};
    mc_monitor_broadcast(job.monitor[8], &news);
    cr_expect(mc_news_await(mc_monitor_board(job.monitor[10]), 10, &heard));
    cr_expect_eq(heard.rank, 8);
    close_all(&job);
}

Test(monitor, news_reach_all_and_the_first_counts, .timeout = 60)
{
    job_t job;
    mc_news_t heard, news = {.kind = MC_NEWS_FATAL, .status = MESHCOLL_ERR_ABORTED, .rank = 17};
    start(&job, 4);
    snprintf(news.text, sizeof news.text, "rank 17 aborted the mesh");
    mc_monitor_broadcast(job.monitor[17], &news);
    for (int r = 0; r < RANKS; r++) {
        cr_assert(mc_news_await(mc_monitor_board(job.monitor[r]), SECONDS, &heard), "rank %d", r);
        cr_expect(heard.rank == 17 && heard.status == MESHCOLL_ERR_ABORTED);
        cr_expect_str_eq(heard.text, news.text);
    }
    news.rank = 3;
    mc_monitor_broadcast(job.monitor[3], &news);
    cr_assert(mc_news_fatal(mc_monitor_board(job.monitor[3]), &heard));
    cr_expect_eq(heard.rank, 17);
    cr_expect_eq(mc_monitor_barrier(job.monitor[5], 10000), MESHCOLL_ERR_ABORTED,
                 "nobody is waited for");
    close_all(&job);
}

Test(monitor, refusals_reach_all_once, .timeout = 60)
{
    job_t job;
    mc_news_t heard, news = {.kind = MC_NEWS_REFUSED, .status = MESHCOLL_ERR_PEER, .made = 5};
    start(&job, 8);
    for (int32_t r = 0; r < RANKS; r += 9) {
        news.rank = r;
        mc_monitor_broadcast(job.monitor[r], &news);
    }
    for (int r = 0; r < RANKS; r++) {
        const double end = mc_now() + SECONDS;
        uint32_t next = 0;
        while (!mc_news_refusal(mc_monitor_board(job.monitor[r]), &next, &heard) && mc_now() < end)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        cr_expect(heard.made == 5 && next == 1, "rank %d", r);
        cr_expect_not(mc_news_refusal(mc_monitor_board(job.monitor[r]), &next, &heard));
        cr_expect_not(mc_news_fatal(mc_monitor_board(job.monitor[r]), &heard));
    }
    close_all(&job);
}

Test(monitor, any_rank_can_be_asked, .timeout = 60)
{
    job_t job;
    int32_t told[2];
    size_t bytes;
    start(&job, 10);
    for (int32_t r = 0; r < RANKS; r += 7) {
        cr_assert_eq(mc_monitor_ask(job.monitor[(r + 11) % RANKS], r, 42, SECONDS, told,
                                    sizeof told, &bytes),
                     0);
        cr_expect(bytes == sizeof told && told[0] == r && told[1] == 42);
    }
    cr_expect_neq(mc_monitor_ask(job.monitor[0], RANKS, 0, 1, told, sizeof told, &bytes), 0);
    close_all(&job);
}

/* An early farewell is no failure; and who has the wrong secret comes in nowhere. */
Test(monitor, strangers_are_refused, .timeout = 60)
{
    job_t job;
    int32_t told[2];
    size_t bytes;
    mc_monitor_t *stranger;
    mc_contact_t contact;
    const mc_monitor_secret_t wrong = {{1}};
    start(&job, RANKS);
    cr_assert_eq(mc_monitor_open(RANKS, NULL, 4, &stranger, &contact), MESHCOLL_OK);
    const mc_monitor_params_t params = {.rank = 1,
                                        .contact = job.contact,
                                        .stride = sizeof job.contact[0],
                                        .machine = job.machine,
                                        .secret = wrong};
    mc_monitor_start(stranger, &params);
    cr_expect_neq(mc_monitor_ask(stranger, 2, 0, 1, told, sizeof told, &bytes), 0);
    cr_expect_eq(mc_monitor_ask(job.monitor[1], 2, 0, SECONDS, told, sizeof told, &bytes), 0);
    mc_monitor_close(stranger);
    for (int32_t r = 0; r < RANKS; r++) {
        mc_news_t news;
        cr_expect_not(mc_news_fatal(mc_monitor_board(job.monitor[r]), &news), "%s", news.text);
    }
    close_all(&job);
}

/* Its parent is stopped: the kernel has taken the connection, and nobody answers. */
Test(monitor, who_closes_does_not_wait_for_a_parent_that_is_silent, .timeout = 60)
{
    mc_monitor_t *monitor;
    mc_contact_t contact[2];
    mc_endpoint_t bound;
    mc_monitor_secret_t secret;
    const int32_t machine[2] = {0, 0};
    int listener;
    cr_assert_eq(mc_monitor_draw(&secret), MESHCOLL_OK);
    cr_assert_eq(mc_monitor_open(2, NULL, 4, &monitor, &contact[1]), MESHCOLL_OK);
    contact[0] = contact[1];
    cr_assert(!mc_wire_listen_free(&contact[1].network.at[0], &listener) &&
              !mc_wire_own(listener, &bound));
    contact[0].port = bound.port;
    cr_assert(mc_monitor_start(monitor, &(mc_monitor_params_t){.rank = 1,
                                                               .contact = contact,
                                                               .stride = sizeof contact[0],
                                                               .machine = machine,
                                                               .secret = secret}));
    struct pollfd comes = {.fd = listener, .events = POLLIN};
    cr_assert_eq(poll(&comes, 1, 10000), 1);
    const double before = mc_now();
    mc_monitor_close(monitor);
    cr_expect_lt(mc_now() - before, 4);
    close(listener);
}

/* A network that is down for less than the limit is no failure: the kernel's last look at it may be a while back. */
Test(monitor, a_silence_below_the_limit_is_none)
{
    static const int seconds[] = {2, 4, 9, 60, 3600};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    for (size_t i = 0; i < MC_COUNT(seconds); i++) {
        int idle = 0, step = 0;
        unsigned limit = 0;
        socklen_t n = sizeof idle;
        mc_branch_keep_alive(fd, seconds[i]);
        cr_assert(!getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &n) &&
                  !getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, &n) &&
                  !getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &n));
        cr_expect_geq(limit, 1000 * (unsigned)(seconds[i] + idle + step), "%d s", seconds[i]);
        cr_expect_leq(limit, 2000 * (unsigned)seconds[i], "%d s", seconds[i]);
    }
    close(fd);
}

/* As where one kernel has given up a network that comes back. */
Test(monitor, a_process_that_lives_was_not_killed, .timeout = 60)
{
    job_t job;
    mc_news_t news;
    pthread_t thread[RANKS];
    const struct sockaddr none = {.sa_family = AF_UNSPEC};
    start(&job, RANKS);
    for (int32_t r = 0; r < RANKS; r++)
        cr_assert_eq(pthread_create(&thread[r], NULL, meet, job.monitor[r]), 0);
    for (int32_t r = 0; r < RANKS; r++)
        pthread_join(thread[r], NULL);
    /* resets a connection to a child; both ends live */
    cr_assert_eq(connect(job.monitor[0]->branches->fd, &none, sizeof none), 0);
    for (int32_t r = 0; r < RANKS; r++) {
        cr_assert(mc_news_await(mc_monitor_board(job.monitor[r]), SECONDS, &news), "rank %d", r);
        cr_expect_null(strstr(news.text, "killed"), "rank %d: %s", r, news.text);
    }
    close_all(&job);
}
