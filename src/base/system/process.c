#include "base/system/process.h"

#include "base/system/descriptor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int mc_thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

bool mc_process_has_ended(pid_t pid)
{
    const int fd = mc_descriptor((int)syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) /* no such process, no such call, or no descriptors left */
        return errno == ESRCH || (kill(pid, 0) != 0 && errno == ESRCH);
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    const bool ended = poll(&watched, 1, 0) == 1;
    close(fd);
    return ended;
}
