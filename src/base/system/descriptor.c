#include "base/system/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int mc_descriptor(int made)
{
    if (made < 0 || made > STDERR_FILENO)
        return made;
    const int moved = fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
    close(made);
    errno = error;
    return moved;
}

void mc_descriptor_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

FILE *mc_descriptor_stream(int made, const char *mode)
{
    const int fd = mc_descriptor(made);
    FILE *const stream = fd >= 0 ? fdopen(fd, mode) : NULL;
    const int error = errno;
    if (fd >= 0 && !stream)
        close(fd);
    errno = error;
    return stream;
}

void mc_descriptor_fill(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}
