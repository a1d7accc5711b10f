#include "transport/ucx.h"

#include "base/system/descriptor.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

/* UCX: the worker's descriptor watches one of each interface. */
enum { DEPTH = 4 };

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t n = sizeof type;
    return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) && type == SOCK_STREAM;
}

/* Of an epoll descriptor the file has a line for each one that it watches (proc(5)). */
static void shut(int fd, int depth)
{
    char path[40], line[256];
    int watched;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *const info =
        depth > 0 ? mc_descriptor_stream(open(path, O_RDONLY | O_CLOEXEC), "r") : NULL;
    while (info && fgets(line, sizeof line, info)) {
        if (sscanf(line, "tfd: %d", &watched) != 1)
            continue;
        if (is_stream(watched))
            (void)shutdown(watched, SHUT_RDWR);
        else
            shut(watched, depth - 1);
    }
    if (info)
        fclose(info);
}

void mc_sockets_shut(int epoll)
{
    if (epoll >= 0)
        shut(epoll, DEPTH);
}
