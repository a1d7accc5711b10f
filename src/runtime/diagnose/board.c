#include "runtime/diagnose/board.h"

#include "runtime/diagnose/blame.h"
#include "runtime/diagnose/describe.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A wait of the board. Its times are those of this machine's clock, in ms. */
typedef struct {
    mc_wait_t wait;
    int64_t at, moved;
    const meshcoll_request_t *of;
    bool stays; /* it has failed */
} entry_t;

typedef struct mc_board {
    pthread_mutex_t lock;
    int64_t looked;                          /* 0: nobody has looked */
    const meshcoll_t *mesh[MC_WAITS_MESHES]; /* more are left out */
    int32_t broken[MC_WAITS_MESHES];         /* by mesh: the status of its failure; else 0 */
    int32_t n_meshes, n, n_more;
    entry_t entry[MC_WAITS_REQUESTS];
} board_t;

/* Meshes ----------------------------------------------------------------------------------------- */

static void add_mesh(board_t *b, const meshcoll_t *h)
{
    pthread_mutex_lock(&b->lock);
    if (b->n_meshes < MC_WAITS_MESHES) {
        b->broken[b->n_meshes] = MESHCOLL_OK;
        b->mesh[b->n_meshes++] = h;
    }
    pthread_mutex_unlock(&b->lock);
}

int mc_waits_open(mc_job_t *job)
{
    board_t *const b = calloc(1, sizeof *b);
    if (!b)
        return mc_fail_memory("a record of waits");
    pthread_mutex_init(&b->lock, NULL);
    job->board = b;
    return MESHCOLL_OK;
}

void mc_waits_close(mc_job_t *job)
{
    pthread_mutex_destroy(&job->board->lock);
    free(job->board);
    job->board = NULL;
}

void mc_waits_join(const meshcoll_t *h)
{
    add_mesh(h->job->board, h);
}

/* Removes the entries that do not stay. */
static void remove_entries(board_t *b)
{
    int32_t n = 0;
    for (int32_t i = 0; i < b->n; i++)
        if (b->entry[i].stays)
            b->entry[n++] = b->entry[i];
    b->n = n;
}

static void remove_mesh(board_t *b, const meshcoll_t *h)
{
    int32_t i = 0;
    while (i < b->n_meshes && b->mesh[i] != h)
        i++;
    if (i == b->n_meshes)
        return;
    b->n_meshes--;
    for (; i < b->n_meshes; i++) {
        b->mesh[i] = b->mesh[i + 1];
        b->broken[i] = b->broken[i + 1];
    }
}

void mc_waits_leave(const meshcoll_t *h)
{
    board_t *const b = h->job->board;
    pthread_mutex_lock(&b->lock);
    remove_mesh(b, h);
    pthread_mutex_unlock(&b->lock);
}

/* Time limits ------------------------------------------------------------------------------------ */

/* Between two looks at most this share of a limit counts as waiting: a rank that was elsewhere for
 * long, or stopped, looks several times for what has come meanwhile before its limit is over. */
enum { LIMIT_LOOKS = 4 };

/* Longer limits are none: they would overflow. */
enum { MOST_SECONDS = 1 << 30 };

int mc_timeout_ms(double seconds, int64_t *ms)
{
    if (!(seconds >= 0))
        return MESHCOLL_ERR_INVALID_ARG;
    *ms = seconds > MOST_SECONDS ? 0 : (int64_t)(seconds * 1000 + 0.999);
    return MESHCOLL_OK;
}

int64_t mc_waits_limit(const meshcoll_request_t *r)
{
    return r->limit_ms == 0 ? r->mesh->timeout_ms : r->limit_ms < 0 ? 0 : r->limit_ms;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Counts the time since the last look at a running request. */
static void watch(meshcoll_request_t *r, int64_t now)
{
    mc_watched_t *const w = &r->watched;
    const uint64_t mark = mc_wait_mark(r);
    const int64_t limit = mc_waits_limit(r);
    if (w->looked == 0)
        *w = (mc_watched_t){.looked = now, .moved = now, .mark = mark};
    int64_t passed = smaller(now - w->looked, MC_WAITS_FRESH_MS);
    if (limit > 0)
        passed = smaller(passed, limit / LIMIT_LOOKS + 1);
    /* nobody waits for the barrier of a lead but runs that its lead holds back */
    w->waited = r->lead && !r->lead->shut ? 0 : w->waited + passed;
    w->moved = mark == w->mark ? w->moved : now;
    w->mark = mark;
    w->looked = now;
}

/* Greetings serve other requests, which name the connection that they wait for. */
static bool is_watched(const meshcoll_request_t *r)
{
    return (r->plan || r->describe) && r->status == MESHCOLL_IN_PROGRESS;
}

/* What this rank knows: the peer that it waits for itself. */
static void print_peer(const mc_wait_t *wait, mc_text_t *text)
{
    if (wait->peer >= 0)
        mc_wait_print_rank(wait->known_as, &wait->place, text);
    else
        mc_text_add(text, "%s", wait->awaits == MC_AWAITS_RECEIVE ? "a message" : "this rank");
    mc_text_add(text, " was waited for too long");
}

__attribute__((noinline)) static bool find_blame(const mc_job_t *job, const meshcoll_request_t *r,
                                                 mc_wait_t *wait, mc_blame_t *blame)
{
    mc_waits_t self;
    if (!job->ask.rank || !mc_waits_copy(job, 0, &self))
        return false;
    if (wait->kind == MC_WAIT_DESTROY)
        mc_wait_set_root_peer(r->mesh, mc_blame_find_absent(&self, &job->ask), wait);
    return mc_blame_find(&self, wait, &job->ask, blame);
}

/* The rank to blame comes first: texts that pass on this one may cut its end. */
static int fail_late(const mc_job_t *job, const meshcoll_request_t *r)
{
    char what[MC_WAIT_TEXT];
    mc_blame_t blame;
    mc_text_t text = mc_text(what, sizeof what);
    mc_wait_t wait;
    mc_wait_describe(r, &wait);
    wait.still_ms = r->watched.looked - r->watched.moved;
    if (find_blame(job, r, &wait, &blame))
        mc_blame_print(&blame, &text);
    else
        print_peer(&wait, &text);
    mc_text_add(&text, "; time limit of %.3g s: ", (double)mc_waits_limit(r) / 1000);
    mc_wait_print(&wait, MC_WAIT_SHORT, &text);
    return mc_fail(MESHCOLL_ERR_TIMEOUT, "%s", what);
}

/* Publishing ------------------------------------------------------------------------------------- */

static void publish(const mc_job_t *job, const meshcoll_request_t *r, int64_t now)
{
    board_t *const b = job->board;
    if (b->n == MC_WAITS_REQUESTS) {
        b->n_more++;
        return;
    }
    entry_t *const e = &b->entry[b->n++];
    *e = (entry_t){.at = now, .moved = r->watched.moved, .of = r};
    mc_wait_describe(r, &e->wait);
    e->wait.waited_ms = r->watched.waited;
}

static void publish_all(const mc_job_t *job, int64_t now)
{
    board_t *const b = job->board;
    pthread_mutex_lock(&b->lock);
    remove_entries(b);
    b->looked = now;
    b->n_more = 0;
    for (const meshcoll_request_t *r = mc_request_in_flight(job->running.first); r;
         r = mc_request_next(r))
        if (is_watched(r))
            publish(job, r, now);
    pthread_mutex_unlock(&b->lock);
}

int mc_waits_look(mc_job_t *job, int64_t now)
{
    const meshcoll_request_t *late = NULL;
    for (meshcoll_request_t *r = mc_request_in_flight(job->running.first); r;
         r = mc_request_next(r)) {
        if (!is_watched(r))
            continue;
        watch(r, now);
        if (!late && mc_waits_limit(r) > 0 && r->watched.waited >= mc_waits_limit(r))
            late = r;
    }
    publish_all(job, now);
    return late ? fail_late(job, late) : MESHCOLL_OK;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool is_fresh(const entry_t *e, int64_t now)
{
    return e->stays || now - e->at <= MC_WAITS_FRESH_MS;
}

/* All fail as one. */
static void mark_broken(board_t *b, int status)
{
    for (int32_t i = 0; i < b->n_meshes; i++)
        b->broken[i] = status;
}

void mc_waits_break(const mc_job_t *job)
{
    board_t *const b = job->board;
    const int64_t now = now_ms();
    pthread_mutex_lock(&b->lock);
    mark_broken(b, job->broken);
    for (int32_t i = 0; i < b->n; i++)
        b->entry[i].stays = is_fresh(&b->entry[i], now);
    pthread_mutex_unlock(&b->lock);
}

void mc_waits_forget(const meshcoll_request_t *ended)
{
    board_t *const b = ended->mesh->job->board;
    int32_t n = 0;
    pthread_mutex_lock(&b->lock);
    for (int32_t i = 0; i < b->n; i++)
        if (b->entry[i].stays || b->entry[i].of != ended)
            b->entry[n++] = b->entry[i];
    b->n = n;
    pthread_mutex_unlock(&b->lock);
}

/* Copying ---------------------------------------------------------------------------------------- */

/* The digest of a call, if it is one of the last that were made; 0: not known. */
static uint32_t digest_of(const meshcoll_t *h, uint32_t n_calls, uint32_t number)
{
    const uint64_t made =
        atomic_load_explicit(&h->made[number % MC_MADE_CALLS], memory_order_relaxed);
    const uint32_t back = (n_calls - 1 - number) % MC_TAG_CALLS;
    const uint32_t more = (uint32_t)(made >> 32) - (n_calls - back);
    const bool is_it = number == (uint16_t)(made >> 16) && more < MC_MADE_CALLS;
    return back < MC_MADE_CALLS && is_it ? (uint16_t)made : 0;
}

static void copy_meshes(const board_t *b, uint32_t number, mc_waits_t *copy)
{
    for (int32_t i = 0; i < b->n_meshes; i++) {
        const meshcoll_t *const h = b->mesh[i];
        const uint32_t n_calls = atomic_load_explicit(&h->n_calls, memory_order_relaxed);
        copy->mesh[copy->n_meshes++] = (mc_waits_mesh_t){
            .id = mc_wait_part(h),
            .n_calls = n_calls,
            .digest = digest_of(h, n_calls, number),
            .n_persistent = atomic_load_explicit(&h->n_persistent, memory_order_relaxed),
            .broken = b->broken[i]};
    }
}

static void copy_entries(const board_t *b, int64_t now, mc_waits_t *copy)
{
    for (int32_t i = 0; i < b->n; i++) {
        const entry_t *const e = &b->entry[i];
        if (!is_fresh(e, now)) {
            if (!copy->has_last && e->wait.peer >= 0)
                copy->last = e->wait;
            copy->has_last = copy->has_last || e->wait.peer >= 0;
            continue;
        }
        mc_wait_t *const w = &copy->wait[copy->n++];
        *w = e->wait;
        w->still_ms = (e->stays ? e->at : now) - e->moved;
        w->age_ms = now - e->at;
    }
    copy->n_more = copy->n == MC_WAITS_REQUESTS ? b->n_more : 0;
}

bool mc_waits_copy(const mc_job_t *job, uint32_t number, mc_waits_t *copy)
{
    const int64_t now = now_ms();
    board_t *const b = job->board;
    *copy = (mc_waits_t){.rank = job->rank,
                         .known_as = mc_comm_rank_of(&job->order, job->rank),
                         .size = job->mesh.size,
                         .pid = (int32_t)getpid(),
                         .place = mc_wait_place(job, job->rank)};
    if (gethostname(copy->host, sizeof copy->host - 1))
        memcpy(copy->host, "?", 2);
    pthread_mutex_lock(&b->lock);
    copy->looked_ms = b->looked ? now - b->looked : -1;
    copy_meshes(b, number, copy);
    copy_entries(b, now, copy);
    pthread_mutex_unlock(&b->lock);
    return true;
}
