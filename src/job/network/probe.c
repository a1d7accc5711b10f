#include "job/network/probe.h"

#include "base/system/descriptor.h"

#include <poll.h>

uint16_t mc_probe_listen(int *listener)
{
    mc_endpoint_t own = {.port = 0};
    *listener = -1;
    if (mc_wire_listen_free(NULL, listener) || mc_wire_own(*listener, &own))
        mc_descriptor_close(listener);
    return *listener < 0 ? 0 : own.port;
}

uint32_t mc_probe_all(const mc_endpoint_t *to, int32_t n)
{
    enum { MOST = 32 };
    struct pollfd p[MOST];
    uint32_t answered = 0;
    int32_t left = 0;
    const double end = mc_now() + MC_PROBE_SECONDS;
    n = n < MOST ? n : MOST;
    for (int32_t i = 0; i < n; i++) {
        p[i] = (struct pollfd){.fd = -1, .events = POLLOUT};
        left += mc_wire_begin_connect(&to[i], &p[i].fd) == 0;
    }
    while (left > 0 && mc_now() < end) {
        if (poll(p, (nfds_t)n, 1 + (int)(1e3 * (end - mc_now()))) < 0)
            continue;
        for (int32_t i = 0; i < n; i++) {
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            answered |= (uint32_t)(mc_wire_connected(p[i].fd) == 0) << i;
            mc_descriptor_close(&p[i].fd);
            left--;
        }
    }
    for (int32_t i = 0; i < n; i++)
        mc_descriptor_close(&p[i].fd);
    return answered;
}
