#include "transport/ucx.h"

#include "base/system/descriptor.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <ucs/sys/sock.h>

/* Making --------------------------------------------------------------------------------------- */

/*
 * UCX makes sockets long after a mesh was created, and accepts connections in a thread of its own. Where the program
 * has closed one of 0 to 2 by then, the next socket would take its number. So these two functions stand in for UCX's
 * own of the same name, which they call, and move what those made above 2. UCX's libraries find them here because the
 * dynamic linker looks in this library before those that it needs; not so where UCX was loaded earlier.
 */
#define STANDS_IN __attribute__((visibility("default")))

static atomic_bool stands_in;

bool mc_sockets_are_moved(void)
{
    return atomic_load(&stands_in);
}

/* UCX's own, which lies behind the one here. */
static void find_own(const char *name, void *function, size_t bytes)
{
    void *const found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, bytes);
    atomic_store(&stands_in, true);
}

static ucs_status_t moved(ucs_status_t status, int *fd)
{
    if (status == UCS_OK)
        *fd = mc_descriptor(*fd);
    return status == UCS_OK && *fd < 0 ? UCS_ERR_IO_ERROR : status;
}

STANDS_IN ucs_status_t ucs_socket_create(int domain, int type, int *fd)
{
    ucs_status_t (*own)(int, int, int *);
    find_own("ucs_socket_create", &own, sizeof own);
    return own ? moved(own(domain, type, fd), fd) : UCS_ERR_UNSUPPORTED;
}

STANDS_IN ucs_status_t ucs_socket_accept(int listener, struct sockaddr *address, socklen_t *bytes,
                                         int *fd)
{
    ucs_status_t (*own)(int, struct sockaddr *, socklen_t *, int *);
    find_own("ucs_socket_accept", &own, sizeof own);
    return own ? moved(own(listener, address, bytes, fd), fd) : UCS_ERR_UNSUPPORTED;
}

/* Shutting down -------------------------------------------------------------------------------- */

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
