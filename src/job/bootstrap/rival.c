#include "job/bootstrap/seek.h"

#include "base/system/descriptor.h"
#include "base/system/process.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A name without a file: it ends with its process. */
static int find_name(const mc_environment_t *env, struct sockaddr_un *at, socklen_t *bytes)
{
    enum { SHOWN = 16 };
    unsigned char digest[MC_DIGEST];
    memcpy(digest, env->self.job, sizeof digest);
    const int status = mc_digest_extend(digest, env->host, strlen(env->host));
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    mc_text_t text = mc_text(at->sun_path + 1, sizeof at->sun_path - 1);
    mc_text_add(&text, "meshcoll-job-%u-", (unsigned)geteuid());
    for (int i = 0; i < SHOWN; i++)
        mc_text_add(&text, "%02x", digest[i]);
    *bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + text.length);
    return status;
}

static int judge(int fd, pid_t *pid)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) || who.uid != geteuid() ||
        who.pid == getpid())
        return MESHCOLL_OK;
    *pid = who.pid;
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "processes %d and %d are both rank 0 of a job with the same variables, so that "
                   "nobody knows whose the other ranks are: give each job a MASTER_PORT, a "
                   "TORCHELASTIC_RUN_ID or a MESHCOLL_SECRET of its own",
                   (int)getpid(), (int)who.pid);
}

/* *fd: listens at the name; else an errno. */
static int take_name(const mc_environment_t *env, int *fd)
{
    struct sockaddr_un at;
    socklen_t bytes;
    if (find_name(env, &at, &bytes))
        return EIO;
    int made = mc_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (made >= 0 && bind(made, (struct sockaddr *)&at, bytes) == 0 && listen(made, 1) == 0) {
        *fd = made;
        return 0;
    }
    const int failed = errno;
    mc_descriptor_close(&made);
    return failed;
}

/* The process that has the name. */
static int meet(const mc_environment_t *env, pid_t *pid)
{
    struct sockaddr_un at;
    socklen_t bytes;
    if (find_name(env, &at, &bytes))
        return MESHCOLL_OK;
    int made = mc_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const bool met = made >= 0 && connect(made, (struct sockaddr *)&at, bytes) == 0;
    const int status = met ? judge(made, pid) : MESHCOLL_OK;
    mc_descriptor_close(&made);
    return status;
}

int mc_rival_claim(const mc_environment_t *env, int *fd)
{
    pid_t pid;
    *fd = -1;
    if (env->self.has_secret || take_name(env, fd) != EADDRINUSE || !meet(env, &pid))
        return MESHCOLL_OK;
    /* a child of fork may still have the name of a process that has ended, but not so if that ended just now */
    const int left = mc_process_has_ended(pid) ? take_name(env, fd) : 0;
    if (left)
        return MESHCOLL_OK;
    mc_descriptor_close(fd);
    return MESHCOLL_ERR_TRANSPORT;
}

int mc_rival_accept(int fd)
{
    pid_t pid;
    int made = mc_descriptor(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
    const int status = made < 0 ? MESHCOLL_OK : judge(made, &pid);
    mc_descriptor_close(&made);
    return status;
}
