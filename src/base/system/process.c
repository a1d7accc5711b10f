#include "base/system/process.h"

#include "base/system/descriptor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

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
