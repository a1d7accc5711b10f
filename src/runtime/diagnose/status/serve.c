#include "runtime/diagnose/status/status.h"

#include "base/system/descriptor.h"
#include "base/system/process.h"
#include "job/monitor/monitor.h"
#include "job/network/wire.h"
#include "runtime/diagnose/status/name.h"
#include "runtime/diagnose/waits/requests.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One client at a time is told; a few more may wait. A client that does not read its text in time is dropped. RETRY_MS:
 * after a failed accept, as of a process that has no descriptors left. */
enum { WAITING = 8, SEND_SECONDS = 2, RETRY_MS = 100 };
/* Ranks that are asked at once, and for how long each. */
enum { ASKERS = 16, ASK_SECONDS = 2 };

typedef struct mc_server {
    const mc_job_t *job;
    int listener;
    _Atomic bool stop;
    pthread_t thread;
} server_t;

/* All ranks ------------------------------------------------------------------------------------- */

typedef struct {
    const server_t *server;
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
                      .pid = contact->pid,
                      .place = mc_wait_place(job, rank)};
    memcpy(w->host, contact->host, strnlen(contact->host, sizeof w->host - 1));
}

static void *gather(void *context)
{
    gathering_t *const g = context;
    const mc_job_t *const job = g->server->job;
    for (int32_t r; (r = atomic_fetch_add(&g->next, 1)) < job->mesh.size;) {
        mc_status_rank_t *const at = &g->rank[r];
        introduce(job, r, &at->waits);
        at->answered = !atomic_load(&g->server->stop) &&
                       !mc_waits_ask_for(job, at->waits.rank, 0, ASK_SECONDS, &at->waits);
    }
    return NULL;
}

static void gather_all(const server_t *s, mc_status_rank_t *rank)
{
    gathering_t g = {.server = s, .rank = rank};
    pthread_t helper[ASKERS - 1];
    int n = 0;
    while (n < ASKERS - 1 && n + 1 < s->job->mesh.size &&
           !pthread_create(&helper[n], NULL, gather, &g))
        n++;
    (void)gather(&g);
    while (n > 0)
        pthread_join(helper[--n], NULL);
}

/* Clients ---------------------------------------------------------------------------------------- */

static int let_in(const server_t *s)
{
    return mc_descriptor(accept4(s->listener, NULL, NULL, SOCK_CLOEXEC));
}

static bool is_allowed(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* NULL: no memory. */
static char *write_text(const server_t *s, size_t *bytes)
{
    const int32_t n = s->job->mesh.size;
    mc_status_rank_t *const rank = calloc((size_t)n, sizeof *rank);
    char *text = NULL;
    FILE *const out = rank ? open_memstream(&text, bytes) : NULL;
    if (out) {
        const mc_status_t status = {.n = n, .rank = rank};
        gather_all(s, rank);
        (void)mc_status_print(&status, out);
        fclose(out);
    }
    free(rank);
    return text;
}

/* Ranks that do not answer take long: clients that came meanwhile are told the same. */
static void tell(const server_t *s, int fd)
{
    struct pollfd more = {.fd = s->listener, .events = POLLIN};
    size_t bytes = 0;
    char *const text = is_allowed(fd) ? write_text(s, &bytes) : NULL;
    for (int i = 0; fd >= 0; i++) {
        if (text && is_allowed(fd))
            (void)mc_wire_send(fd, text, bytes, mc_now() + SEND_SECONDS);
        close(fd);
        fd = text && i < WAITING && poll(&more, 1, 0) > 0 ? let_in(s) : -1;
    }
    free(text);
}

/* In a thread of its own: the monitor's must not wait for other ranks. */
static void *serve(void *context)
{
    const server_t *const s = context;
    while (!atomic_load(&s->stop)) {
        const int fd = let_in(s);
        if (fd >= 0)
            tell(s, fd);
        else if (!atomic_load(&s->stop))
            (void)poll(NULL, 0, RETRY_MS);
    }
    return NULL;
}

/* Opening and closing ------------------------------------------------------------------------------- */

/* Binds the first name that no other mesh of the process has; -1: there is none. */
static int listen_to(void)
{
    struct sockaddr_un address;
    int fd = mc_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (int i = 0; fd >= 0 && i < MC_STATUS_SOCKETS; i++) {
        const socklen_t n = mc_status_name((int)getpid(), i, &address);
        if (!bind(fd, (struct sockaddr *)&address, n) && !listen(fd, WAITING))
            return fd;
    }
    mc_descriptor_close(&fd);
    return -1;
}

void mc_status_open(mc_job_t *job)
{
    server_t *const s = calloc(1, sizeof *s);
    if (!s)
        return;
    s->job = job;
    s->listener = listen_to();
    if (s->listener >= 0 && !mc_thread_start(&s->thread, serve, s)) {
        job->server = s;
        return;
    }
    mc_descriptor_close(&s->listener);
    free(s);
}

void mc_status_close(mc_job_t *job)
{
    server_t *const s = job->server;
    if (!s)
        return;
    atomic_store(&s->stop, true);
    shutdown(s->listener, SHUT_RDWR); /* ends its accept */
    pthread_join(s->thread, NULL);
    close(s->listener);
    free(s);
    job->server = NULL;
}
