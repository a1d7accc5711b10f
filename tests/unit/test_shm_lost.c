/* Ends of the shared-memory transport of which one fails, is stopped, or can no longer be read. */
#include "support/shm_pair.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* From now on this process may read and write no process's memory, as under a filter that a program loads late. */
static void forbid_reads(int error)
{
    const struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {MC_COUNT(code), (struct sock_filter *)code};
    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

enum { TURN_BYTES = 1 << 20, LONG_BYTES = 8 << 20 };

/* A message that is cut off in the middle of the reads of its receiver, from spans to spans. */
static void lose_reads(uint32_t from, uint32_t to, int helps, int error)
{
    mc_span_t out[64], in[64];
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char *const a = pattern(LONG_BYTES, 1), *const b = pattern(LONG_BYTES, 2);
    const mc_message_t send = {42, out, cut(a, LONG_BYTES, from, out), LONG_BYTES, 0, false, false};
    const mc_message_t recv = {42, in, cut(b, LONG_BYTES, to, in), LONG_BYTES, 0, false, false};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &send, &sent), MESHCOLL_IN_PROGRESS);
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &recv, &received), MESHCOLL_IN_PROGRESS);
    p.t[1]->ops->progress(p.t[1]);
    for (int i = 0; i < helps; i++)
        p.t[0]->ops->progress(p.t[0]);
    cr_assert_eq(memcmp(a, b, TURN_BYTES / 2), 0, "it is read");
    cr_assert_neq(b[LONG_BYTES / 2], a[LONG_BYTES / 2], "not all of it");
    forbid_reads(error);
    finish(&p, 1, 1);
    cr_expect_arr_eq(a, b, LONG_BYTES);
    move_sizes(&p);
    free(a);
    free(b);
    close_pair(&p);
}

Test(shm_lost, copies_once_its_peers_memory_cannot_be_read)
{
    lose_reads(17, 3, 0, EPERM);
}

Test(shm_lost, copies_the_rest_of_a_message_that_both_ends_moved)
{
    lose_reads(1, 1, 3, EPERM);
}

Test(shm_lost, copies_where_memory_is_said_not_to_be_there)
{
    lose_reads(1, 2, 0, EFAULT);
}

Test(shm_lost, copies_all_sizes_both_ways_where_neither_may_read_the_other)
{
    pair_t p = open_pair(MC_SHM_READ);
    forbid_reads(EPERM);
    move_sizes(&p);
    reverse(&p);
    move_sizes(&p);
    close_pair(&p);
}

Test(shm_lost, sums_the_rest_from_pieces)
{
    pair_t p = open_pair(MC_SHM_READ);
    summed_t got = {0}, wanted = {0};
    unsigned char *const a = pattern(LONG_BYTES, 3);
    const mc_span_t out = {a, LONG_BYTES};
    const mc_message_t m = {1, &out, 1, LONG_BYTES, 0, false, false};
    const mc_consumer_t consumer = {sum_up, &got};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[1]->ops->recv_reduce(p.peer[1], &m, &consumer, &received),
                 MESHCOLL_IN_PROGRESS);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &m, &sent), MESHCOLL_IN_PROGRESS);
    p.t[1]->ops->progress(p.t[1]);
    cr_assert(got.bytes > 0 && got.bytes < LONG_BYTES);
    forbid_reads(EPERM);
    finish(&p, 1, 1);
    sum_up(&wanted, NULL, a, LONG_BYTES);
    cr_expect_eq(got.bytes, wanted.bytes);
    cr_expect_eq(got.sum, wanted.sum);
    free(a);
    close_pair(&p);
}

/* A sender that is stopped in the middle of its part keeps nobody in the call that failed; the buffer is the caller's
 * again when it has gone on. */
Test(shm_lost, a_receiver_that_fails_does_not_wait_for_a_stopped_sender, .timeout = 20)
{
    enum { HELP = 1 << 18 };
    pair_t p = open_pair(MC_SHM_READ);
    mc_shm_share_t *const share = &((mc_shm_link_t *)p.peer[0])->in->share;
    unsigned char *const a = pattern(LONG_BYTES, 1), *const b = pattern(LONG_BYTES, 2);
    const mc_span_t out = {a, LONG_BYTES}, in = {b, LONG_BYTES};
    mc_message_t m = {.tag = 42, .span = &out, .n_spans = 1, .bytes = LONG_BYTES};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &m, &sent), MESHCOLL_IN_PROGRESS);
    m.span = &in;
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &m, &received), MESHCOLL_IN_PROGRESS);
    p.t[1]->ops->progress(p.t[1]);
    p.t[0]->ops->progress(p.t[0]);
    p.t[0]->ops->progress(p.t[0]);
    cr_assert_eq(atomic_fetch_sub(&share->given, HELP), HELP, "as though it were at it");
    p.t[1]->ops->abandon(p.t[1], "the time limit");
    cr_expect_eq(p.t[1]->ops->writer(p.t[1]), 4);
    cr_expect_eq(p.t[0]->ops->writer(p.t[0]), -1);
    atomic_fetch_add(&share->given, HELP);
    cr_expect_eq(p.t[1]->ops->writer(p.t[1]), -1);
    close_pair(&p);
    free(a);
    free(b);
}

/* What a rank offered may be changed by its caller once it has failed, and is not read as though it were the message. */
Test(shm_lost, an_offer_ends_with_its_senders_mesh)
{
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char *const a = pattern(MOST, 1), *const b = pattern(MOST, 2);
    const mc_span_t out = {a, MOST}, in = {b, MOST};
    mc_message_t m = {.tag = 42, .span = &out, .n_spans = 1, .bytes = MOST};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &m, &sent), MESHCOLL_IN_PROGRESS);
    p.t[0]->ops->abandon(p.t[0], "no memory for scratch");
    memset(a, 0x5a, MOST);
    m.span = &in;
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &m, &received), MESHCOLL_IN_PROGRESS);
    for (int i = 0; i < 8; i++)
        p.t[1]->ops->progress(p.t[1]);
    cr_assert_eq(mc_io_pop(&p.finished[1]), &received);
    cr_expect_eq(received.status, MESHCOLL_ERR_PEER);
    cr_expect_not_null(strstr(meshcoll_last_error(), "rank 4 failed: no memory for scratch"), "%s",
                       meshcoll_last_error());
    close_pair(&p);
    free(a);
    free(b);
}

Test(shm_lost, who_waits_for_a_rank_that_failed_is_told)
{
    pair_t p = open_pair(MC_SHM_READ);
    char byte = 0;
    const mc_span_t in = {&byte, 1};
    const mc_message_t m = {.tag = 42, .span = &in, .n_spans = 1, .bytes = 1};
    mc_io_t received = io_of(&p, 1);
    p.t[0]->ops->abandon(p.t[0], "it was asked for too much");
    cr_expect_eq(p.t[1]->ops->check(p.t[1]), MESHCOLL_OK, "nobody waits");
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &m, &received), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(p.t[1]->ops->check(p.t[1]), MESHCOLL_ERR_PEER);
    cr_expect_not_null(strstr(meshcoll_last_error(), "rank 4 failed: it was asked for too much"),
                       "%s", meshcoll_last_error());
    close_pair(&p);
}

/* A caller's buffer is its own again when a call has failed, also where the sender was writing to it. */
Test(shm_lost, a_sender_that_helps_writes_nothing_after_its_receivers_mesh_failed)
{
    enum { BYTES = 8 << 20 };
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char *const a = pattern(BYTES, 1), *const b = pattern(BYTES, 2);
    const mc_span_t out = {a, BYTES}, in = {b, BYTES};
    mc_message_t m = {.tag = 42, .span = &out, .n_spans = 1, .bytes = BYTES};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &m, &sent), MESHCOLL_IN_PROGRESS);
    m.span = &in;
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &m, &received), MESHCOLL_IN_PROGRESS);
    p.t[1]->ops->progress(p.t[1]); /* asks for help */
    p.t[0]->ops->progress(p.t[0]);
    p.t[0]->ops->progress(p.t[0]);
    cr_assert_eq(b[BYTES - 1], a[BYTES - 1], "it helps");
    cr_assert_neq(b[BYTES / 2], a[BYTES / 2]);
    p.t[1]->ops->abandon(p.t[1], "something");
    memset(b, 0x5a, BYTES);
    for (int i = 0; i < 64; i++)
        p.t[0]->ops->progress(p.t[0]);
    for (size_t i = 0; i < BYTES; i++)
        cr_assert_eq(b[i], 0x5a, "byte %zu was written", i);
    close_pair(&p);
    free(a);
    free(b);
}
