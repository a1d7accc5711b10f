/*
 * One rank of a job in which something goes wrong: usage: fault_job SCENARIO VICTIM. It prints one line: its status, the
 * seconds since the fault (the victim writes the time into the file FAULT_TIME), and the error's sentence.
 */
#include <meshcoll/env.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 18, AFTER_MS = 150 };

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

/* Writes down when the fault happens, which is now. */
static void mark(void)
{
    FILE *const file = fopen(getenv("FAULT_TIME"), "w");
    if (file) {
        fprintf(file, "%.6f\n", now());
        fclose(file);
    }
}

static double marked(void)
{
    double at = 0;
    FILE *const file = fopen(getenv("FAULT_TIME"), "r");
    if (file && fscanf(file, "%lf", &at) != 1)
        at = 0;
    if (file)
        fclose(file);
    return at;
}

/* What befalls the victim, in a thread of its own, in the middle of what it does. */
static void *befall(void *mesh)
{
    nap(AFTER_MS);
    mark();
    if (is("abort"))
        abort();
    if (is("stop"))
        raise(SIGSTOP);
    if (is("meshabort"))
        meshcoll_abort(mesh, "the test wants it");
    else
        raise(SIGKILL);
    return NULL;
}

static void strike(meshcoll_t *mesh)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, befall, mesh) == 0)
        pthread_detach(thread);
}

/* Calls until one fails. */
static int call_on(meshcoll_t *mesh)
{
    int status = 0;
    while (!status)
        status = is("bcast") || is("bcastroot")
                     ? meshcoll_bcast(mesh, in, rank == 0 ? in : out, COUNT, MESHCOLL_FLOAT32, 0)
                     : meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    return status;
}

static int refused(meshcoll_t *mesh)
{
    if (rank != victim)
        return meshcoll_allreduce(mesh, in, out, 10, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    mark();
    (void)meshcoll_allreduce(mesh, NULL, out, 10, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    return meshcoll_allreduce(mesh, in, out, 10, MESHCOLL_FLOAT32, MESHCOLL_SUM);
}

static int differ(meshcoll_t *mesh)
{
    const bool odd = rank == victim;
    mark();
    if (is("count"))
        return meshcoll_allreduce(mesh, in, out, odd ? 20 : 10, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    if (is("op"))
        return meshcoll_allreduce(mesh, in, out, 10, MESHCOLL_FLOAT32,
                                  odd ? MESHCOLL_MAX : MESHCOLL_SUM);
    if (is("datatype"))
        return meshcoll_allreduce(mesh, in, out, 10, odd ? MESHCOLL_INT32 : MESHCOLL_FLOAT32,
                                  MESHCOLL_SUM);
    if (is("root"))
        return meshcoll_bcast(mesh, in, out, 10, MESHCOLL_FLOAT32, odd ? 1 : 0);
    if (odd)
        return meshcoll_bcast(mesh, in, out, 10, MESHCOLL_FLOAT32, 0);
    return meshcoll_allreduce(mesh, in, out, 10, MESHCOLL_FLOAT32, MESHCOLL_SUM);
}

static int run(meshcoll_t *mesh)
{
    const bool differs =
        is("count") || is("op") || is("datatype") || is("root") || is("collective");
    int status = differs ? 0 : meshcoll_barrier(mesh);
    if (status || is("none"))
        return status;
    if (differs)
        return differ(mesh);
    if (is("refused"))
        return refused(mesh);
    if (is("link")) { /* which the caller cuts, and marks */
        while (marked() == 0 && !status)
            status = call_on(mesh);
        return status;
    }
    if (rank == victim)
        strike(mesh);
    if (is("idle") || (is("late") && rank == victim)) {
        nap(is("idle") ? 1000 : 6000);
        if (is("late"))
            mark();
    }
    return call_on(mesh);
}

int main(int argc, char **argv)
{
    meshcoll_t *mesh;
    if (argc != 3)
        return 2;
    scenario = argv[1];
    victim = atoi(argv[2]);
    int status = meshcoll_env(&rank, &size);
    if (!status)
        status = meshcoll_create_env(NULL, &mesh);
    if (status) {
        printf("rank %d: not created: %s\n", rank, meshcoll_last_error());
        return 3;
    }
    status = run(mesh);
    const double end = now(), at = marked();
    printf("rank %d: %d %.2f %s\n", rank, status, at > 0 ? end - at : -1.0,
           status ? meshcoll_last_error() : "");
    meshcoll_destroy(mesh);
    printf("rank %d: destroyed %.2f\n", rank, now() - end);
    return 0;
}
