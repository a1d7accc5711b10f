/* Worker processes with a shared list of items. The crash of a worker is reported. */
#include "tools/verify/verify.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 256 };

/* The current item of a worker, reported if it crashes. */
typedef struct {
    size_t item;
    mc_strategy_t strategy;
    int32_t root;
    bool busy;
} desk_t;

/* In memory that all processes share; `count` follows. */
typedef struct {
    atomic_size_t next;
    atomic_bool stop;
    atomic_flag failing;
    atomic_ullong worlds;
    char message[512];
    desk_t failure;
    desk_t desk[MAX_JOBS];
    mc_verify_count_t count[];
} board_t;

typedef struct {
    const mc_verify_job_t *job;
    board_t *board;
    desk_t *desk;
    double deadline;
    uint32_t number; /* of the strategy, through the item */
    bool failed, late;
} worker_t;

static size_t board_bytes(const mc_verify_job_t *job)
{
    return sizeof(board_t) + job->n * sizeof(mc_verify_count_t);
}

static void tell_failure(board_t *board, const desk_t *desk, const char *message)
{
    if (atomic_flag_test_and_set(&board->failing))
        return; /* another one was first */
    board->failure = *desk;
    snprintf(board->message, sizeof board->message, "%s", message);
    atomic_store(&board->stop, true);
}

static int verify_world(const mc_verify_job_t *job, const mc_mesh_t *mesh,
                        const mc_strategy_t *strategy, int32_t root, uint32_t *in_flight)
{
    mc_plans_t plans;
    int status = mc_plans_create(strategy, mesh, root, &plans);
    if (status)
        return status;
    const mc_world_t world = mc_plans_world(&plans);
    mc_verify_options_t options = job->options;
    const mc_mesh_t led = mc_mesh_led_by(mesh, mc_moves[strategy->collective].rooted ? root : 0);
    options.in_order = mc_strategy_check_order(strategy, &led) == MESHCOLL_OK;
    status = mc_verify_window(&world, &options, in_flight);
    mc_plans_free(&plans);
    return status;
}

static void count_world(worker_t *w, uint32_t in_flight)
{
    mc_verify_count_t *const count = &w->board->count[w->desk->item];
    if (in_flight > count->in_flight) {
        count->in_flight = in_flight;
        count->strategy = w->desk->strategy;
        count->root = w->desk->root;
    }
    count->worlds++;
    atomic_fetch_add(&w->board->worlds, 1);
}

/* Every root of a strategy. */
static bool verify_strategy(worker_t *w, const mc_strategy_t *strategy)
{
    const mc_verify_item_t *const item = &w->job->item[w->desk->item];
    int32_t few[MC_ALL_ROOTS];
    const int32_t *const root = w->job->root ? w->job->root : few;
    const int32_t n =
        w->job->root ? w->job->n_roots : mc_verify_roots(item->collective, &item->mesh->mesh, few);
    w->desk->strategy = *strategy;
    for (int32_t i = 0; i < n; i++) {
        w->late = mc_now() > w->deadline;
        if (w->late || atomic_load(&w->board->stop))
            return false;
        w->desk->root = root[i];
        uint32_t in_flight;
        if (verify_world(w->job, &item->mesh->mesh, strategy, root[i], &in_flight)) {
            w->failed = true;
            tell_failure(w->board, w->desk, meshcoll_last_error());
            return false;
        }
        count_world(w, in_flight);
    }
    w->board->count[w->desk->item].strategies++;
    return true;
}

static bool verify_both(void *context, const mc_strategy_t *strategy)
{
    enum { SEGMENTS = 3, SIDES_SEGMENTS = 4 };
    worker_t *const w = context;
    const mc_verify_item_t *const item = &w->job->item[w->desk->item];
    mc_strategy_t cut = *strategy;
    if (w->number++ % item->stripes != item->stripe)
        return true;
    cut.segments = mc_strategy_sides(strategy) > 1 ? SIDES_SEGMENTS : SEGMENTS;
    return verify_strategy(w, strategy) && (!item->mesh->segments || verify_strategy(w, &cut));
}

static void verify_item(worker_t *w)
{
    const mc_verify_item_t *const item = &w->job->item[w->desk->item];
    int status = MESHCOLL_OK;
    w->number = 0;
    if (w->job->strategy)
        verify_strategy(w, w->job->strategy);
    else
        status = mc_verify_each(item->collective, item->mesh, verify_both, w);
    const bool whole = !w->failed && !w->late && !atomic_load(&w->board->stop);
    if (status)
        tell_failure(w->board, w->desk, meshcoll_last_error());
    w->board->count[w->desk->item].done = whole && !status;
}

static void work(const mc_verify_job_t *job, board_t *board, int32_t desk, double deadline)
{
    worker_t w = {.job = job, .board = board, .desk = &board->desk[desk], .deadline = deadline};
    while (!w.failed && !w.late && !atomic_load(&board->stop)) {
        const size_t item = atomic_fetch_add(&board->next, 1);
        if (item >= job->n)
            break;
        *w.desk = (desk_t){.item = item, .busy = true};
        verify_item(&w);
        w.desk->busy = false;
    }
}

/* Parent ----------------------------------------------------------------------------------------- */

/* Items under way count for the strategies they have behind them. */
static double part_done(const mc_verify_job_t *job, const board_t *board)
{
    double all = 0, done = 0;
    for (size_t i = 0; i < job->n; i++) {
        const mc_verify_item_t *const item = &job->item[i];
        const mc_verify_count_t *const count = &board->count[i];
        const double part = (double)count->strategies / ((double)item->strategies + 1);
        all += item->weight;
        done += item->weight * (count->done ? 1 : fmin(part, 1));
    }
    return all > 0 ? done / all : 0;
}

static void print_progress(const mc_verify_job_t *job, board_t *board, double elapsed)
{
    enum { WIDTH = 30 };
    char bar[WIDTH + 1], count[MC_NUMBER_TEXT];
    const double part = part_done(job, board);
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < part * WIDTH ? '#' : '.';
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3.0f %%  %s worlds  %.0f s", bar, 100 * part,
            mc_print_count(atomic_load(&board->worlds), count, sizeof count), elapsed);
    if (part > 0.02)
        fprintf(stderr, ", about %.0f s to go ", elapsed / part - elapsed);
    fflush(stderr);
}

static void clear_progress(void)
{
    fprintf(stderr, "\r%78s\r", "");
}

/* A worker that dies leaves what it was at on its desk. */
static void note_end(board_t *board, int32_t desk, int how)
{
    char message[128];
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return;
    if (WIFSIGNALED(how))
        snprintf(message, sizeof message, "the process died of signal %d (%s)", WTERMSIG(how),
                 strsignal(WTERMSIG(how)));
    else
        snprintf(message, sizeof message, "the process ended with status %d", WEXITSTATUS(how));
    tell_failure(board, &board->desk[desk], message);
}

/* Workers look at the clock between worlds; a large one would let us wait. */
static bool cut_short(const pid_t *pid, const bool *gone, int32_t n, double deadline)
{
    const double grace = 0.5;
    if (mc_now() < deadline + grace)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!gone[i])
            kill(pid[i], SIGKILL);
    return true;
}

static void wait_for(const mc_verify_job_t *job, board_t *board, const pid_t *pid, int32_t n,
                     double deadline)
{
    bool cut = false;
    const double start = mc_now();
    const bool shown = isatty(STDERR_FILENO);
    bool gone[MAX_JOBS] = {false};
    for (int32_t left = n; left > 0;) {
        for (int32_t i = 0; i < n; i++) {
            int how;
            if (gone[i] || waitpid(pid[i], &how, WNOHANG) != pid[i])
                continue;
            gone[i] = true;
            left--;
            if (!cut || !WIFSIGNALED(how) || WTERMSIG(how) != SIGKILL)
                note_end(board, i, how);
        }
        cut = cut || cut_short(pid, gone, n, deadline);
        const double elapsed = mc_now() - start;
        if (shown && elapsed > 0.5)
            print_progress(job, board, elapsed);
        usleep(elapsed > 0.5 ? 100000 : 2000);
    }
    if (shown && mc_now() - start > 0.5)
        clear_progress();
}

static int run_workers(const mc_verify_job_t *job, board_t *board, double deadline)
{
    pid_t pid[MAX_JOBS];
    int32_t n = 0;
    fflush(stdout);
    for (; n < job->jobs && n < MAX_JOBS; n++) {
        pid[n] = fork();
        if (pid[n] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* does not outlive a parent that is killed */
            work(job, board, n, deadline);
            _exit(0);
        }
        if (pid[n] < 0)
            break;
    }
    if (n == 0)
        return mc_fail(MESHCOLL_ERR_NO_MEMORY, "no process could be started: %s", strerror(errno));
    wait_for(job, board, pid, n, deadline);
    return MESHCOLL_OK;
}

static int take_result(const mc_verify_job_t *job, board_t *board, mc_verify_result_t *result)
{
    mc_verify_result_t r = {.count = calloc(job->n + 1, sizeof *r.count)};
    if (!r.count)
        return mc_fail_memory("the counts of a verification");
    memcpy(r.count, board->count, job->n * sizeof *r.count);
    r.failed = atomic_load(&board->stop);
    if (r.failed) {
        memcpy(r.message, board->message, sizeof r.message);
        r.at = job->item[board->failure.item];
        r.strategy = board->failure.strategy;
        r.root = board->failure.root;
    }
    *result = r;
    return MESHCOLL_OK;
}

int mc_verify_run(const mc_verify_job_t *job, mc_verify_result_t *result)
{
    const double start = mc_now();
    const double deadline = job->seconds > 0 ? start + job->seconds : INFINITY;
    board_t *const board =
        mmap(NULL, board_bytes(job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return mc_fail_memory("the workers of a verification");
    atomic_flag_clear(&board->failing);
    int status = run_workers(job, board, deadline);
    if (!status)
        status = take_result(job, board, result);
    munmap(board, board_bytes(job));
    if (!status)
        result->elapsed = mc_now() - start;
    return status;
}

void mc_verify_result_free(mc_verify_result_t *result)
{
    free(result->count);
    *result = (mc_verify_result_t){0};
}
