/* UCX's transports: which complete a send without its receiver, by their names; and what they bind to. */
#include "transport/ucx.h"
#include "transport/ucx_names.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

Test(ucx, tcp_is_known_in_lists)
{
    static const char *const yes[] = {"tcp,self", "self,tcp@eth0", "rc,tcp",
                                      "all",      "^sm",           "^sm,ib"};
    static const char *const no[] = {"sysv,self", "rc,self@tcp", "^tcp", "^sm,tcp", "tcp_x", ""};
    for (size_t i = 0; i < MC_COUNT(yes); i++)
        cr_expect(mc_ucx_has_tcp(yes[i]), "%s", yes[i]);
    for (size_t i = 0; i < MC_COUNT(no); i++)
        cr_expect_not(mc_ucx_has_tcp(no[i]), "%s", no[i]);
}

Test(ucx, tcp_streams_and_rdma_does_not)
{
    static const char *const yes[] = {"tcp,self",
                                      "self,tcp",
                                      "^sm",
                                      "^sm@eth0",
                                      "tcp,cuda_copy,cuda_ipc",
                                      "tcp,self@eth0",
                                      "self,tcp@mlx5_0:1,rc"};
    static const char *const no[] = {"rc,tcp",    "tcp,rc_x",   "ud_verbs,tcp,self",
                                     "ib",        "shm,memory", "^tcp",
                                     "self,tcpx", "",           "self@tcp"};
    const bool rdma = access("/sys/class/infiniband", F_OK) == 0; /* that TCP may go over */
    for (size_t i = 0; i < MC_COUNT(yes); i++)
        cr_expect_eq(mc_ucx_streams(yes[i]), !rdma, "%s", yes[i]);
    for (size_t i = 0; i < MC_COUNT(no); i++)
        cr_expect_not(mc_ucx_streams(no[i]), "%s", no[i]);
}

enum { DESCRIPTORS = 1024 };

/* Sockets of this process that listen, and how many of them at an address of the loopback interface. */
static int count_listening(int *on_loopback)
{
    int n = 0;
    *on_loopback = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct sockaddr_storage at;
        socklen_t length = sizeof at, one = sizeof(int);
        int listens = 0;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &one) || !listens ||
            getsockname(fd, (struct sockaddr *)&at, &length) || at.ss_family == AF_UNIX)
            continue;
        n++;
        if (at.ss_family == AF_INET)
            *on_loopback +=
                ntohl(((struct sockaddr_in *)&at)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return n;
}

static int open_on(const char *tls, mc_transport_t **t)
{
    return mc_ucx_create(&(mc_ucx_params_t){.tls = tls, .dim = "box"}, t);
}

Test(ucx, listens_on_the_devices_that_are_named)
{
    mc_transport_t *t;
    int before, after;
    const int n = count_listening(&before);
    cr_assert_eq(open_on("tcp,self@lo", &t), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(count_listening(&after), n + 1, "one port, of one interface");
    cr_expect_eq(after, before + 1, "its address is the interface's");
    t->ops->close(t);
    cr_expect_eq(count_listening(&after), n);
}

/* UCX itself would warn, and listen on nothing or on the others. */
Test(ucx, refuses_a_device_that_is_not_there)
{
    static const char *const lists[] = {"tcp,self@nosuch0", "tcp,self@lo,nosuch0", "tcp,self@",
                                        "tcp,self@lo,", "tcp@../net/lo"};
    for (size_t i = 0; i < MC_COUNT(lists); i++) {
        mc_transport_t *t = NULL;
        cr_expect_eq(open_on(lists[i], &t), MESHCOLL_ERR_TRANSPORT, "%s", lists[i]);
        cr_expect_not_null(
            strstr(meshcoll_last_error(), "dimension box: there is no network device"), "%s: %s",
            lists[i], meshcoll_last_error());
        cr_expect_null(t);
    }
}

Test(ucx, refuses_a_device_of_the_environment_that_is_not_there)
{
    static const char *const lists[] = {"nosuch0", "nosuch0:1", "lo,nosuch0", "lo,", "../net/lo"};
    for (size_t i = 0; i < MC_COUNT(lists); i++) {
        mc_transport_t *t = NULL;
        setenv("UCX_NET_DEVICES", lists[i], 1);
        cr_expect_eq(open_on("tcp,self", &t), MESHCOLL_ERR_TRANSPORT, "%s", lists[i]);
        cr_expect_not_null(strstr(meshcoll_last_error(), "which UCX_NET_DEVICES names"), "%s: %s",
                           lists[i], meshcoll_last_error());
        cr_expect_null(t);
    }
}

Test(ucx, an_empty_list_of_devices_leaves_no_network)
{
    mc_transport_t *t = NULL;
    setenv("UCX_NET_DEVICES", "", 1);
    cr_expect_eq(open_on("tcp,self", &t), MESHCOLL_ERR_TRANSPORT);
    cr_expect_not_null(strstr(meshcoll_last_error(), "UCX_NET_DEVICES is empty"), "%s",
                       meshcoll_last_error());
    cr_expect_null(t);
}

/* Memory needs none. */
Test(ucx, takes_any_list_of_devices_for_memory)
{
    static const char *const lists[] = {"", "nosuch0"};
    for (size_t i = 0; i < MC_COUNT(lists); i++) {
        mc_transport_t *t = NULL;
        setenv("UCX_NET_DEVICES", lists[i], 1);
        cr_assert_eq(open_on("sysv,self", &t), MESHCOLL_OK, "%s", meshcoll_last_error());
        t->ops->close(t);
    }
}

/* All of them, some, and a list that a dimension's own devices replace. */
Test(ucx, takes_the_devices_of_the_environment)
{
    static const struct {
        const char *list, *tls;
    } given[] = {{"all", "tcp,self"}, {"lo", "tcp,self"}, {"nosuch0", "tcp,self@lo"}};
    for (size_t i = 0; i < MC_COUNT(given); i++) {
        mc_transport_t *t = NULL;
        setenv("UCX_NET_DEVICES", given[i].list, 1);
        cr_assert_eq(open_on(given[i].tls, &t), MESHCOLL_OK, "%s: %s", given[i].list,
                     meshcoll_last_error());
        t->ops->close(t);
    }
}

typedef struct {
    mc_transport_t *transport;
    mc_peer_t *peer;
    mc_io_queue_t finished;
    mc_io_t sent, got;
    char out, in;
    mc_span_t from, to;
    int n_left;
} side_t;

static void exchange_byte(side_t *side)
{
    const mc_transport_ops_t *const ops = side->transport->ops;
    const uint64_t tag = mc_tag(0, 1, 0);
    side->from = (mc_span_t){&side->out, 1};
    side->to = (mc_span_t){&side->in, 1};
    side->sent.finished = side->got.finished = &side->finished;
    const mc_message_t sends = {.tag = tag, .span = &side->from, .n_spans = 1, .bytes = 1};
    const mc_message_t receives = {.tag = tag, .span = &side->to, .n_spans = 1, .bytes = 1};
    const int sent = ops->send(side->peer, &sends, &side->sent);
    const int got = ops->recv(side->peer, &receives, &side->got);
    cr_assert(sent >= 0 && got >= 0, "%s", meshcoll_last_error());
    side->n_left = (sent == MESHCOLL_IN_PROGRESS) + (got == MESHCOLL_IN_PROGRESS);
}

static void progress(side_t *side)
{
    side->transport->ops->progress(side->transport);
    while (mc_io_pop(&side->finished))
        side->n_left--;
}

/* A peer that has what it needs may leave: nothing that it would have to answer is in flight. Where UCX finds two
 * interfaces, it would still be connecting through the second. */
Test(ucx, a_flush_needs_no_answer_of_a_peer, .timeout = 60)
{
    enum { TURNS = 20, POLLS = 200 * 1000 };
    for (int turn = 0; turn < TURNS; turn++) {
        side_t a = {.out = 'a'}, b = {.out = 'b'};
        cr_assert_eq(open_on("tcp,self", &a.transport), MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_assert_eq(open_on("tcp,self", &b.transport), MESHCOLL_OK, "%s", meshcoll_last_error());
        const mc_transport_ops_t *const ops = a.transport->ops;
        cr_assert_eq(ops->connect(a.transport, 1, b.transport->address, &a.peer), MESHCOLL_OK);
        cr_assert_eq(ops->connect(b.transport, 0, a.transport->address, &b.peer), MESHCOLL_OK);
        exchange_byte(&a);
        exchange_byte(&b);
        while (a.n_left > 0 || b.n_left > 0) {
            progress(&a);
            if (b.n_left > 0)
                progress(&b);
        }
        int status = ops->flush(a.transport);
        for (int i = 0; i < POLLS && status == MESHCOLL_IN_PROGRESS; i++) {
            progress(&a);
            status = ops->flushed(a.transport);
        }
        cr_assert_eq(status, MESHCOLL_OK, "turn %d: the flush waits for the peer", turn);
        ops->close(a.transport);
        ops->close(b.transport);
    }
}

/* An RDMA device does not make TCP take any interface. */
Test(ucx, tcp_alone_takes_the_interfaces_that_lead_to_others)
{
    static const char machine[] = "( mount --make-rprivate / && mount -t sysfs sysfs /sys && mount "
                                  "-t tmpfs tmpfs /sys/class && "
                                  "mkdir /sys/class/infiniband && ln -s ../devices/virtual/net "
                                  "/sys/class/net ) >/dev/null 2>&1";
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 || system(machine) != 0) /* NOLINT */
        cr_skip_test("needs root and namespaces");
    cr_expect_str_eq(mc_ucx_devices("tcp,self", "lo"), "lo");
    cr_expect_str_empty(mc_ucx_devices("^sm", "lo"));
    cr_expect_str_empty(mc_ucx_devices("rc,tcp,self", "lo"));
    cr_expect_str_empty(mc_ucx_devices("tcp,self", "nosuch0"));
}
