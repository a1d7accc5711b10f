/*
 * One rank of a job in which something goes wrong. usage: fault_job SCENARIO VICTIM, with torchrun's variables. It prints
 *
 *     ready                       it has met the others
 *     took KIND CALL STRATEGY     `slower`: from this call of the kind on, another one than before
 *     fault SECONDS               CLOCK_MONOTONIC at the fault, by the rank that makes it
 *     ended STATUS SECONDS TEXT   its call ended, and the error's sentence
 *     destroyed SECONDS           how long meshcoll_destroy took
 *     refused STATUS SECONDS TEXT it got no mesh
 *
 * run.py starts the ranks and judges what they print.
 */
#include <meshcoll/env.h>
#include <meshcoll/meshcoll.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    COUNT = 1 << 18,
    SMALL = 10,
    AFTER_MS = 150,
    IDLE_MS = 400,
    LATE_MS = 3500,
    CHILD_MS = 60000
};

static int rank, size, victim;
static const char *scenario;
static float in[COUNT], out[COUNT];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void nap(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* Writes down that the fault happens now. */
static void mark(void)
{
    dprintf(STDOUT_FILENO, "fault %.6f\n", now());
}

/* Faults of a process ---------------------------------------------------------------------------- */

/* What befalls the victim, in a thread of its own, in the middle of what it does. */
static void *befall(void *mesh)
{
    nap(AFTER_MS);
    mark();
    if (is("abort"))
        abort();
    if (is("exit"))
        _exit(0);
    if (is("meshabort"))
        meshcoll_abort(mesh, "the test wants it");
    else
        raise(is("stop") ? SIGSTOP : SIGKILL);
    return NULL;
}

static void *befall_soon(void *ms)
{
    nap(*(const int *)ms);
    mark();
    raise(is("halt") ? SIGSTOP : SIGKILL);
    return NULL;
}

/* The victim dies, or is stopped, while the mesh is made. */
static void die_soon(void)
{
    static int ms;
    const char *const text = getenv("FAULT_MS");
    pthread_t thread;
    ms = text ? atoi(text) : 0;
    if (pthread_create(&thread, NULL, befall_soon, &ms) == 0)
        pthread_detach(thread);
}

/* A child that outlives its parent, with all that it has inherited. */
static void bear_child(void)
{
    if (fork() == 0) {
        nap(CHILD_MS);
        _exit(0);
    }
}

static void strike(meshcoll_t *mesh)
{
    pthread_t thread;
    if (is("fork"))
        bear_child();
    if (pthread_create(&thread, NULL, befall, mesh) == 0)
        pthread_detach(thread);
}

/* Calls ------------------------------------------------------------------------------------------ */

static int call(meshcoll_t *mesh)
{
    return is("bcast") ? meshcoll_bcast(mesh, in, rank == 0 ? in : out, COUNT, MESHCOLL_FLOAT32, 0)
                       : meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM);
}

static int call_until_it_fails(meshcoll_t *mesh)
{
    int status = 0;
    while (!status)
        status = call(mesh);
    return status;
}

static int sum(meshcoll_t *mesh, const float *from, size_t count, meshcoll_datatype_t type,
               meshcoll_op_t op)
{
    return meshcoll_allreduce(mesh, from, out, count, type, op);
}

/* The victim's first call is refused; the others wait in it. */
static int refused(meshcoll_t *mesh)
{
    if (rank == victim) {
        mark();
        (void)sum(mesh, NULL, SMALL, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    }
    return sum(mesh, in, SMALL, MESHCOLL_FLOAT32, MESHCOLL_SUM);
}

static bool differs(void)
{
    return is("op") || is("datatype") || is("root") || is("count") || is("collective");
}

/* The victim asks for something else than the others. */
static int differ(meshcoll_t *mesh)
{
    const bool odd = rank == victim;
    mark();
    if (is("count"))
        return sum(mesh, in, odd ? 2 * SMALL : SMALL, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    if (is("op"))
        return sum(mesh, in, SMALL, MESHCOLL_FLOAT32, odd ? MESHCOLL_MAX : MESHCOLL_SUM);
    if (is("datatype"))
        return sum(mesh, in, SMALL, odd ? MESHCOLL_INT32 : MESHCOLL_FLOAT32, MESHCOLL_SUM);
    if (is("root"))
        return meshcoll_bcast(mesh, in, out, SMALL, MESHCOLL_FLOAT32, odd);
    return odd ? meshcoll_bcast(mesh, in, out, SMALL, MESHCOLL_FLOAT32, 0)
               : sum(mesh, in, SMALL, MESHCOLL_FLOAT32, MESHCOLL_SUM);
}

/* The victim comes to the call when the others have given up. */
static int be_late(meshcoll_t *mesh)
{
    if (rank == victim) {
        mark();
        nap(LATE_MS);
    }
    return call(mesh);
}

/* The victim stays out of the call at which ranks begin to combine what 40 calls of a kind took (docs/calling.md), and is
 * killed there; the others, whom the root's calls do not hold up, wait for it some calls later. */
static int agree(meshcoll_t *mesh)
{
    enum { TIMED = 40 };
    int status = 0;
    for (int i = 0; !status && !(rank == victim && i == TIMED); i++)
        status = meshcoll_bcast(mesh, in, out, SMALL, MESHCOLL_FLOAT32, 0);
    if (rank == victim && !status) {
        strike(mesh);
        nap(IDLE_MS);
    }
    return status;
}

/* Calls of KINDS in turn, of which stdin says when the second part may begin: on another network. */
enum { KINDS = 5, FAST_CALLS = 560, SLOW_CALLS = 260, MOST_COUNT = 1 << 16, TEXT = 512 };

static meshcoll_args_t mixed(int kind, int32_t *from, int32_t *to)
{
    static const meshcoll_collective_t collective[KINDS] = {
        MESHCOLL_ALLREDUCE, MESHCOLL_BCAST, MESHCOLL_ALLTOALL, MESHCOLL_ALLGATHER, MESHCOLL_REDUCE};
    static const size_t count[KINDS] = {MOST_COUNT, 4096, 2048, 2, 1024};
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = collective[kind],
                             .in = from,
                             .out = to,
                             .count = count[kind],
                             .datatype = MESHCOLL_INT32,
                             .op = MESHCOLL_SUM};
}

/* Each rank's elements are rank + salt. */
static bool is_right(const meshcoll_args_t *a, int salt, const int32_t *to)
{
    const int32_t all = size * (size - 1) / 2 + size * salt;
    const size_t last = a->count - 1, end = (size_t)size * a->count - 1;
    switch (a->collective) {
    case MESHCOLL_ALLREDUCE:
        return to[0] == all && to[last] == all;
    case MESHCOLL_REDUCE:
        return rank > 0 || (to[0] == all && to[last] == all);
    case MESHCOLL_BCAST:
        return to[0] == salt && to[last] == salt;
    default:
        return to[0] == salt && to[last] == salt && to[end] == salt + size - 1;
    }
}

static int call_mixed(meshcoll_t *mesh, int n)
{
    static int32_t from[2 * MOST_COUNT], to[2 * MOST_COUNT];
    static char taken[KINDS][TEXT];
    meshcoll_request_t *request;
    const int kind = n % KINDS;
    const meshcoll_args_t a = mixed(kind, from, to);
    for (int i = 0; i < 2 * MOST_COUNT; i++)
        from[i] = rank + n;
    int status = meshcoll_begin(mesh, &a, &request);
    if (status)
        return status;
    if (strcmp(taken[kind], meshcoll_request_strategy(request)) != 0) {
        snprintf(taken[kind], TEXT, "%s", meshcoll_request_strategy(request));
        dprintf(STDOUT_FILENO, "took %d %d %s\n", kind, n / KINDS, taken[kind]);
    }
    status = meshcoll_wait(request);
    if (!status && !is_right(&a, n, to))
        dprintf(STDOUT_FILENO, "call %d of kind %d has a wrong result\n", n / KINDS, kind);
    return status;
}

static int slow_down(meshcoll_t *mesh)
{
    int status = 0;
    char go;
    for (int n = 0; n < KINDS * (FAST_CALLS + SLOW_CALLS) && !status; n++) {
        if (n == KINDS * FAST_CALLS) {
            dprintf(STDOUT_FILENO, "fast\n");
            if (read(STDIN_FILENO, &go, 1) != 1)
                return -1;
        }
        status = call_mixed(mesh, n);
    }
    return status;
}

/* The victim dies before it takes part, or while others wait for it. */
static int make_further(void)
{
    meshcoll_t *mesh;
    if (rank == victim)
        nap(IDLE_MS);
    const int status = meshcoll_create_env(NULL, &mesh);
    if (!status)
        meshcoll_destroy(mesh);
    return status;
}

static int play(meshcoll_t *mesh)
{
    if (differs()) { /* where calls are compared, not at the connections' greetings alone */
        const int met = getenv("MESHCOLL_CHECK") ? meshcoll_barrier(mesh) : 0;
        const int status = met ? met : differ(mesh);
        return status ? status
                      : meshcoll_barrier(mesh); /* a root may be done before the others meet */
    }
    if (is("early") && rank == victim) {
        mark();
        raise(SIGKILL);
    }
    const int status = meshcoll_barrier(mesh);
    dprintf(STDOUT_FILENO, "ready\n");
    if (status || is("none") || is("descriptors"))
        return status;
    if (is("refused"))
        return refused(mesh);
    if (is("late"))
        return be_late(mesh);
    if (is("agreement"))
        return agree(mesh);
    if (is("slower"))
        return slow_down(mesh);
    /* made by run.py, or before */
    const bool from_outside = is("link") || is("box") || is("scan") || is("halt");
    if (rank == victim && !from_outside)
        strike(mesh);
    if (is("idle"))
        nap(IDLE_MS);
    if (is("further"))
        return make_further();
    return call_until_it_fails(mesh);
}

/* A few descriptors more than there are now. */
static int have_few_descriptors(void)
{
    const char *const text = getenv("FAULT_DESCRIPTORS");
    const rlim_t n = text ? (rlim_t)atoi(text) : 16;
    return setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = n, .rlim_max = n});
}

int main(int argc, char **argv)
{
    meshcoll_t *mesh;
    if (argc != 3)
        return 2;
    scenario = argv[1];
    victim = atoi(argv[2]);
    int status = meshcoll_env(&rank, &size);
    if (is("descriptors") && rank == victim && have_few_descriptors())
        return 2;
    if ((is("creation") || is("halt")) && rank == victim)
        die_soon();
    if (!status)
        status = meshcoll_create_env(NULL, &mesh);
    if (status) {
        dprintf(STDOUT_FILENO, "refused %d %.6f %s\n", status, now(), meshcoll_last_error());
        return 0;
    }
    status = play(mesh);
    const double end = now();
    dprintf(STDOUT_FILENO, "ended %d %.6f %s\n", status, end, status ? meshcoll_last_error() : "");
    meshcoll_destroy(mesh);
    dprintf(STDOUT_FILENO, "destroyed %.3f\n", now() - end);
    return 0;
}
