/* The name of the socket on which a process tells what its job waits for. */
#ifndef MC_STATUS_NAME_H
#define MC_STATUS_NAME_H

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Meshes of a process that are no sub-meshes: each has a socket of its own. */
enum { MC_STATUS_SOCKETS = 8 };

/* Abstract, so that nothing of it is left when the process ends. It is known to all users of a machine: both
 * ends check who is at the other one. Returns the length of the address. */
static inline socklen_t mc_status_name(int pid, int mesh, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n =
        snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "meshcoll-%d-%d", pid, mesh);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

#endif
