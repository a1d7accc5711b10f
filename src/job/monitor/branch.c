#include "job/monitor/branch.h"

#include "job/network/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

enum { SEND_SECONDS = 1, PROBES = 3 };

void mc_branch_keep_alive(int fd, double seconds)
{
    const int probes = PROBES, ms = (int)(1e3 * seconds), step = ms / 1000 / (PROBES + 1);
    const int interval = step > 0 ? step : 1, idle = ms / 1000 - PROBES * interval;
    const int first = idle > 0 ? idle : 1;
    /* the last packet may have come `first` before the host was gone, and the next probe goes `interval` after it is back */
    const unsigned limit = (unsigned)(ms + 1000 * (first + interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &first, sizeof first);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

int mc_branch_send(int fd, uint32_t kind, const void *data, size_t bytes)
{
    const mc_frame_t head = {.kind = kind, .bytes = (uint32_t)bytes};
    unsigned char frame[sizeof head + MC_FRAME_MOST];
    if (bytes > MC_FRAME_MOST)
        return EMSGSIZE;
    memcpy(frame, &head, sizeof head);
    if (bytes > 0)
        memcpy(frame + sizeof head, data, bytes);
    return mc_wire_send(fd, frame, sizeof head + bytes, mc_now() + SEND_SECONDS);
}

static bool is_frame(const mc_frame_t *frame)
{
    return frame->kind >= MC_FRAME_LEAVES && frame->kind <= MC_FRAME_ANSWER &&
           frame->bytes <= MC_FRAME_MOST;
}

/* How many bytes of the frame are known to be missing; at most what fits. */
static size_t missing(const mc_monitor_branch_t *b, const mc_frame_t *frame)
{
    const size_t head = sizeof *frame;
    return b->got < head ? head - b->got : head + frame->bytes - b->got;
}

int mc_branch_read(mc_monitor_branch_t *b, const mc_frame_t **frame)
{
    const mc_frame_t *const f = (const mc_frame_t *)b->in;
    for (;;) {
        const size_t n = missing(b, f);
        if (n == 0) {
            *frame = f;
            b->got = 0;
            return 0;
        }
        const ssize_t read = recv(b->fd, b->in + b->got, n, MSG_DONTWAIT);
        if (read == 0)
            return ESHUTDOWN;
        if (read < 0)
            return errno == EINTR ? EAGAIN : errno;
        b->got += (size_t)read;
        if (b->got >= sizeof *f && !is_frame(f))
            return EPROTO;
    }
}
