#include "runtime/diagnose/status/serve.h"

#include "base/system/descriptor.h"
#include "job/monitor/monitor.h"
#include "runtime/diagnose/status/ask.h"
#include "runtime/diagnose/status/name.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

/* One client at a time is told; a few more may wait. A client that does not read is dropped. */
enum { WAITING = 8, SEND_SECONDS = 2 };

typedef struct mc_serve {
    const mc_job_t *job;
    int listener, client;
    int spare; /* a descriptor to send a client away with when the process has no other left */
    pthread_mutex_t lock;
    bool has_thread, is_done; /* the thread that tells a client: there is one; it is about to end */
    _Atomic bool stop;
    pthread_t thread;
} serve_t;

/* A client --------------------------------------------------------------------------------------- */

static bool is_allowed(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void send_all(int fd, const char *text, size_t bytes)
{
    const struct timeval patience = {.tv_sec = SEND_SECONDS};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    for (ssize_t n; bytes > 0 && (n = send(fd, text, bytes, MSG_NOSIGNAL)) > 0; bytes -= (size_t)n)
        text += n;
}

static void serve(const serve_t *s, int fd)
{
    const int32_t n = s->job->mesh.size;
    mc_status_rank_t *const rank = calloc((size_t)n, sizeof *rank);
    char *text = NULL;
    size_t bytes = 0;
    FILE *const out = rank ? open_memstream(&text, &bytes) : NULL;
    if (out) {
        const mc_status_t status = {.n = n, .rank = rank};
        mc_status_gather(s->job, &s->stop, rank);
        (void)mc_status_print(&status, out);
        fclose(out);
        send_all(fd, text, bytes);
    }
    free(text);
    free(rank);
}

/* In a thread of its own: the monitor's must not wait for other ranks. */
static void *run(void *context)
{
    serve_t *const s = context;
    serve(s, s->client);
    close(s->client);
    pthread_mutex_lock(&s->lock);
    s->is_done = true;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void join(serve_t *s)
{
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    s->has_thread = s->is_done = false;
}

/* Any descriptor. */
static int spare(void)
{
    return mc_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

/* Else the client would stay, and the monitor's thread would be called for it without end. */
static void send_away(serve_t *s)
{
    if (s->spare >= 0)
        close(s->spare);
    const int fd = mc_descriptor(accept4(s->listener, NULL, NULL, SOCK_CLOEXEC));
    if (fd >= 0)
        close(fd);
    s->spare = spare();
    if (fd < 0 && s->spare < 0) { /* other threads took it: no client is let in any more */
        close(s->listener);
        s->listener = -1;
    }
}

/* In the monitor's thread. While one client is told, others are sent away. */
static void ready(void *context)
{
    serve_t *const s = context;
    static const char busy[] = "another meshcoll status is asking this process: try again\n";
    const int fd = mc_descriptor(accept4(s->listener, NULL, NULL, SOCK_CLOEXEC));
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        send_away(s);
    if (fd < 0)
        return;
    pthread_mutex_lock(&s->lock);
    const bool idle = !atomic_load(&s->stop) && (!s->has_thread || s->is_done);
    bool taken = false;
    if (idle && is_allowed(fd)) {
        join(s);
        s->client = fd;
        taken = s->has_thread = !pthread_create(&s->thread, NULL, run, s);
    } else if (!idle && is_allowed(fd)) {
        (void)!send(fd, busy, sizeof busy - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    pthread_mutex_unlock(&s->lock);
    if (!taken)
        close(fd);
}

/* Opening and closing ------------------------------------------------------------------------------- */

/* Binds the first name that no other mesh of the process has; -1: there is none. */
static int listen_to(void)
{
    struct sockaddr_un address;
    const int fd = mc_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    for (int i = 0; fd >= 0 && i < MC_STATUS_SOCKETS; i++) {
        const socklen_t n = mc_status_name((int)getpid(), i, &address);
        if (!bind(fd, (struct sockaddr *)&address, n) && !listen(fd, WAITING))
            return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

void mc_serve_open(mc_job_t *job)
{
    serve_t *const s = calloc(1, sizeof *s);
    if (!s)
        return;
    s->job = job;
    s->listener = listen_to();
    s->spare = spare();
    pthread_mutex_init(&s->lock, NULL);
    job->serve = s;
    if (s->listener >= 0)
        mc_monitor_watch(job->monitor, s->listener, ready, s);
}

void mc_serve_stop(mc_job_t *job)
{
    serve_t *const s = job->serve;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stop, true);
    pthread_mutex_unlock(&s->lock);
    join(s);
}

void mc_serve_close(mc_job_t *job)
{
    serve_t *const s = job->serve;
    if (!s)
        return;
    if (s->listener >= 0)
        close(s->listener);
    if (s->spare >= 0)
        close(s->spare);
    pthread_mutex_destroy(&s->lock);
    free(s);
    job->serve = NULL;
}
