#include "runtime/bootstrap/rival.h"

#include "base/descriptor.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A name without a file: it ends with its process. */
static socklen_t name_of(const mc_job_t *job, struct sockaddr_un *at)
{
    enum { DIGEST = 16 };
    unsigned char digest[MC_SHA256_BYTES];
    mc_sha256_t sha;
    mc_sha256_init(&sha);
    mc_sha256_add(&sha, job->id, sizeof job->id);
    mc_sha256_add(&sha, job->host, strlen(job->host));
    mc_sha256_end(&sha, digest);
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = 1 + snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "meshcoll-job-%u-",
                         (unsigned)geteuid());
    for (int i = 0; i < DIGEST; i++)
        n += snprintf(at->sun_path + n, sizeof at->sun_path - (size_t)n, "%02x", digest[i]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
}

/* A child of fork may hold a name of a process that has ended, or of this one. */
static int judge(int fd)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) || who.uid != geteuid() ||
        who.pid == getpid() || (kill(who.pid, 0) && errno == ESRCH))
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "processes %d and %d are both rank 0 of a job with the same variables, so that "
                   "nobody knows whose the other ranks are: give each job a MASTER_PORT, a "
                   "TORCHELASTIC_RUN_ID or a MESHCOLL_SECRET of its own",
                   (int)getpid(), (int)who.pid);
}

int mc_rival_claim(const mc_job_t *job, int *fd)
{
    struct sockaddr_un at;
    *fd = -1;
    if (job->secret_bytes > 0)
        return MESHCOLL_OK;
    const socklen_t bytes = name_of(job, &at);
    const int made = mc_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (made < 0)
        return MESHCOLL_OK;
    int status = MESHCOLL_OK;
    if (bind(made, (struct sockaddr *)&at, bytes) == 0 && listen(made, 1) == 0) {
        *fd = made;
        return MESHCOLL_OK;
    }
    if (errno == EADDRINUSE && connect(made, (struct sockaddr *)&at, bytes) == 0)
        status = judge(made);
    close(made);
    return status;
}

int mc_rival_hear(int fd)
{
    const int made = mc_descriptor(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
    const int status = made < 0 ? MESHCOLL_OK : judge(made);
    if (made >= 0)
        close(made);
    return status;
}
