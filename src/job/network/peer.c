#include "job/network/peer.h"

#include "base/system/descriptor.h"
#include "job/network/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
} question_t;

typedef union {
    struct nlmsghdr head;
    char bytes[1024];
} reply_t;

static void set_end(const mc_endpoint_t *e, __be16 *port, __be32 at[4])
{
    *port = htons(e->port);
    memcpy(at, e->at, sizeof e->at);
}

/* For the peer's socket, whose ends are this socket's the other way round, or for this one. */
static int make_question(int fd, bool own, question_t *q)
{
    mc_endpoint_t here, there;
    int failed = mc_wire_own(fd, &here);
    if (!failed)
        failed = mc_wire_other(fd, &there);
    if (failed)
        return failed;
    *q = (question_t){.head = {.nlmsg_len = sizeof *q,
                               .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                               .nlmsg_flags = NLM_F_REQUEST}};
    q->body.sdiag_family = here.family == 6 ? AF_INET6 : AF_INET;
    q->body.sdiag_protocol = IPPROTO_TCP;
    q->body.idiag_states = ~0U;
    set_end(own ? &here : &there, &q->body.id.idiag_sport, q->body.id.idiag_src);
    set_end(own ? &there : &here, &q->body.id.idiag_dport, q->body.id.idiag_dst);
    q->body.id.idiag_cookie[0] = q->body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return 0;
}

/* A socket without an inode is of no process any more. */
static mc_peer_t read_reply(const reply_t *r, ssize_t bytes)
{
    if (bytes >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) &&
        r->head.nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *const e = NLMSG_DATA(&r->head);
        return e->error == -ENOENT ? MC_PEER_REMOTE : MC_PEER_UNKNOWN;
    }
    if (bytes < (ssize_t)NLMSG_LENGTH(sizeof(struct inet_diag_msg)) ||
        r->head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return MC_PEER_UNKNOWN;
    const struct inet_diag_msg *const m = NLMSG_DATA(&r->head);
    const bool ours = m->idiag_uid == geteuid() || m->idiag_uid == 0;
    return ours && m->idiag_inode ? MC_PEER_OURS : MC_PEER_STRANGER;
}

static mc_peer_t look_up(int netlink, int fd, bool own)
{
    question_t q;
    reply_t r;
    if (make_question(fd, own, &q) || send(netlink, &q, sizeof q, 0) != (ssize_t)sizeof q)
        return MC_PEER_UNKNOWN;
    return read_reply(&r, recv(netlink, &r, sizeof r, 0));
}

mc_peer_t mc_peer_find(int fd)
{
    const int netlink =
        mc_descriptor(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (netlink < 0)
        return MC_PEER_UNKNOWN;
    mc_peer_t peer = look_up(netlink, fd, false);
    /* without tcp_diag the kernel does not find this process's own socket either */
    if (peer == MC_PEER_REMOTE && look_up(netlink, fd, true) == MC_PEER_REMOTE)
        peer = MC_PEER_UNKNOWN;
    close(netlink);
    return peer;
}
