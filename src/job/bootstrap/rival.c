#include "job/bootstrap/seek.h"

#include "base/system/descriptor.h"
#include "base/system/process.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

/* *fd: listens at the name of the job, which is without a file, so that it ends with its process; or is connected to who
 * has it. Else an errno. */
static int open_name(const mc_environment_t *env, bool listens, int *fd)
{
    enum { SHOWN = 16 };
    unsigned char digest[MC_DIGEST];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(digest, env->self.job, sizeof digest);
    if (mc_digest_extend(digest, env->host, strlen(env->host)))
        return EIO;
    mc_text_t text = mc_text(at.sun_path + 1, sizeof at.sun_path - 1);
    mc_text_add(&text, "meshcoll-job-%u-", (unsigned)geteuid());
    for (int i = 0; i < SHOWN; i++)
        mc_text_add(&text, "%02x", digest[i]);
    const struct sockaddr *const name = (const struct sockaddr *)&at;
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + text.length);
    int made = mc_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (made >= 0 &&
        !(listens ? bind(made, name, bytes) || listen(made, 1) : connect(made, name, bytes))) {
        *fd = made;
        return 0;
    }
    const int failed = errno;
    mc_descriptor_close(&made);
    return failed;
}

int mc_rival_claim(const mc_environment_t *env, int *fd)
{
    pid_t pid;
    int holder;
    *fd = -1;
    if (env->self.has_secret || open_name(env, true, fd) != EADDRINUSE ||
        open_name(env, false, &holder))
        return MESHCOLL_OK;
    const int status = judge(holder, &pid);
    close(holder);
    if (!status)
        return MESHCOLL_OK;
    /* a child of fork may still have the name of a process that has ended, but not so if that ended just now */
    if (mc_process_has_ended(pid) && open_name(env, true, fd))
        return MESHCOLL_OK;
    mc_descriptor_close(fd);
    return status;
}

int mc_rival_accept(int fd)
{
    pid_t pid;
    int made = mc_descriptor(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
    const int status = made < 0 ? MESHCOLL_OK : judge(made, &pid);
    mc_descriptor_close(&made);
    return status;
}
