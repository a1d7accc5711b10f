/* Worker processes with a shared list of items. The crash of a worker is reported. */
#include "tools/verify/verify_command.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    const mc_verify_job_t *job;
    mc_verify_result_t *shared;
    mc_verify_at_t *current;
    double deadline;
    uint32_t number; /* of the strategy, through the item */
    bool failed, late;
} worker_t;

static void report_failure(mc_verify_result_t *shared, const mc_verify_at_t *current,
                           const char *message)
{
    if (atomic_flag_test_and_set(&shared->failing))
        return; /* another one was first */
    shared->failure = *current;
    snprintf(shared->message, sizeof shared->message, "%s", message);
    atomic_store(&shared->failed, true);
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
    status = mc_verify(&world, &options, in_flight);
    mc_plans_free(&plans);
    return status;
}

static void count_world(worker_t *w, uint32_t in_flight)
{
    mc_verify_count_t *const count = &w->shared->count[w->current->item];
    if (in_flight > count->in_flight) {
        count->in_flight = in_flight;
        count->strategy = w->current->strategy;
        count->root = w->current->root;
    }
    count->worlds++;
    atomic_fetch_add(&w->shared->worlds, 1);
}

/* Every root of a strategy. */
static bool verify_strategy(worker_t *w, const mc_strategy_t *strategy)
{
    const mc_verify_item_t *const item = &w->job->item[w->current->item];
    int32_t few[MC_ALL_ROOTS];
    const int32_t *const root = w->job->root ? w->job->root : few;
    const int32_t n =
        w->job->root ? w->job->n_roots : mc_verify_roots(item->collective, &item->mesh->mesh, few);
    w->current->strategy = *strategy;
    for (int32_t i = 0; i < n; i++) {
        w->late = mc_now() > w->deadline;
        if (w->late || atomic_load(&w->shared->failed))
            return false;
        w->current->root = root[i];
        uint32_t in_flight;
        if (verify_world(w->job, &item->mesh->mesh, strategy, root[i], &in_flight)) {
            w->failed = true;
            report_failure(w->shared, w->current, meshcoll_last_error());
            return false;
        }
        count_world(w, in_flight);
    }
    w->shared->count[w->current->item].strategies++;
    return true;
}

static bool verify_both(void *context, const mc_strategy_t *strategy)
{
    enum { SEGMENTS = 3, SIDES_SEGMENTS = 4 };
    worker_t *const w = context;
    const mc_verify_item_t *const item = &w->job->item[w->current->item];
    mc_strategy_t cut = *strategy;
    if (w->number++ % item->stripes != item->stripe)
        return true;
    cut.segments = mc_strategy_sides(strategy) > 1 ? SIDES_SEGMENTS : SEGMENTS;
    return verify_strategy(w, strategy) && (!item->mesh->segments || verify_strategy(w, &cut));
}

static void verify_item(worker_t *w)
{
    const mc_verify_item_t *const item = &w->job->item[w->current->item];
    int status = MESHCOLL_OK;
    w->number = 0;
    if (w->job->strategy)
        verify_strategy(w, w->job->strategy);
    else
        status = mc_verify_each(item->collective, item->mesh, verify_both, w);
    const bool whole = !w->failed && !w->late && !atomic_load(&w->shared->failed);
    if (status)
        report_failure(w->shared, w->current, meshcoll_last_error());
    w->shared->count[w->current->item].done = whole && !status;
}

static void work(const mc_verify_job_t *job, mc_verify_result_t *shared, int32_t number,
                 double deadline)
{
    worker_t w = {
        .job = job, .shared = shared, .current = &shared->current[number], .deadline = deadline};
    while (!w.failed && !w.late && !atomic_load(&shared->failed)) {
        const size_t item = atomic_fetch_add(&shared->next, 1);
        if (item >= job->n)
            break;
        *w.current = (mc_verify_at_t){.item = item};
        verify_item(&w);
    }
}

/* Parent ----------------------------------------------------------------------------------------- */

/* Items under way count for the strategies they have behind them. */
static double part_done(const mc_verify_job_t *job, const mc_verify_result_t *shared)
{
    double all = 0, done = 0;
    for (size_t i = 0; i < job->n; i++) {
        const mc_verify_item_t *const item = &job->item[i];
        const mc_verify_count_t *const count = &shared->count[i];
        const double part = (double)count->strategies / ((double)item->strategies + 1);
        all += item->weight;
        done += item->weight * (count->done ? 1 : fmin(part, 1));
    }
    return all > 0 ? done / all : 0;
}

static void print_progress(const mc_verify_job_t *job, mc_verify_result_t *shared, double elapsed)
{
    enum { WIDTH = 30 };
    char bar[WIDTH + 1];
    const double part = part_done(job, shared);
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < part * WIDTH ? '#' : '.';
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3.0f %%  %s worlds  %.0f s", bar, 100 * part,
            mc_print_count(atomic_load(&shared->worlds)).text, elapsed);
    if (part > 0.02)
        fprintf(stderr, ", about %.0f s to go ", elapsed / part - elapsed);
    fflush(stderr);
}

static void clear_progress(void)
{
    fprintf(stderr, "\r%78s\r", "");
}

/* A worker that dies leaves what it was at. */
static void note_end(mc_verify_result_t *shared, int32_t number, int how)
{
    char message[128];
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return;
    if (WIFSIGNALED(how))
        snprintf(message, sizeof message, "the process died of signal %d (%s)", WTERMSIG(how),
                 strsignal(WTERMSIG(how)));
    else
        snprintf(message, sizeof message, "the process ended with status %d", WEXITSTATUS(how));
    report_failure(shared, &shared->current[number], message);
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

static void wait_for(const mc_verify_job_t *job, mc_verify_result_t *shared, const pid_t *pid,
                     int32_t n, double deadline)
{
    bool cut = false;
    const double start = mc_now();
    const bool shown = isatty(STDERR_FILENO);
    bool gone[MC_VERIFY_JOBS] = {false};
    for (int32_t left = n; left > 0;) {
        for (int32_t i = 0; i < n; i++) {
            int how;
            if (gone[i] || waitpid(pid[i], &how, WNOHANG) != pid[i])
                continue;
            gone[i] = true;
            left--;
            if (!cut || !WIFSIGNALED(how) || WTERMSIG(how) != SIGKILL)
                note_end(shared, i, how);
        }
        cut = cut || cut_short(pid, gone, n, deadline);
        const double elapsed = mc_now() - start;
        if (shown && elapsed > 0.5)
            print_progress(job, shared, elapsed);
        usleep(elapsed > 0.5 ? 100000 : 2000);
    }
    if (shown && mc_now() - start > 0.5)
        clear_progress();
}

static int run_workers(const mc_verify_job_t *job, mc_verify_result_t *shared, double deadline)
{
    pid_t pid[MC_VERIFY_JOBS];
    int32_t n = 0;
    fflush(stdout);
    for (; n < job->jobs && n < MC_VERIFY_JOBS; n++) {
        pid[n] = fork();
        if (pid[n] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* does not outlive a parent that is killed */
            work(job, shared, n, deadline);
            _exit(0);
        }
        if (pid[n] < 0)
            break;
    }
    if (n == 0)
        return mc_fail(MESHCOLL_ERR_NO_MEMORY, "no process could be started: %s", strerror(errno));
    wait_for(job, shared, pid, n, deadline);
    return MESHCOLL_OK;
}

int mc_verify_run(const mc_verify_job_t *job, mc_verify_result_t **result)
{
    const double start = mc_now();
    const double deadline = job->seconds > 0 ? start + job->seconds : INFINITY;
    const size_t bytes = sizeof **result + job->n * sizeof(mc_verify_count_t);
    mc_verify_result_t *const shared =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return mc_fail_memory("the workers of a verification");
    atomic_flag_clear(&shared->failing);
    const int status = run_workers(job, shared, deadline);
    shared->elapsed = mc_now() - start;
    *result = shared;
    return status;
}
