/* Messages to several ranks through their sender's board: three ends of the transport in one process. */
#include "runtime/execute/executor.h"
#include "support/plans.h"
#include "support/strategies.h"
#include "transport/shm/shm.h"
#include "transport/shm/shm_link.h"
#include "transport/shm/shm_memory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READERS = 2, RANKS = READERS + 1, BYTES = 300000, MANY = 15 };
_Static_assert(BYTES *MANY > MC_SHM_BOARD, "they do not all have room");

typedef struct {
    mc_transport_t *t[RANKS]; /* the sender first */
    mc_peer_t *to[READERS], *from[READERS];
    mc_io_queue_t finished[RANKS];
    unsigned char *sent, *got[READERS][MANY];
    mc_span_t span[READERS][MANY], out;
    mc_io_t sending[READERS][MANY], receiving[READERS][MANY];
    int left; /* to be finished */
} trio_t;

static void open_trio(trio_t *p, mc_shm_access_t access)
{
    memset(p, 0, sizeof *p);
    for (int32_t r = 0; r < RANKS; r++) {
        const mc_shm_params_t params = {.dim = "gpu", .n = RANKS, .rank = r, .access = access};
        cr_assert_eq(mc_shm_create(&params, &p->t[r]), MESHCOLL_OK, "%s", meshcoll_last_error());
    }
    for (int32_t r = 0; r < READERS; r++) {
        cr_assert_eq(p->t[0]->ops->connect(p->t[0], r + 1, p->t[r + 1]->address, &p->to[r]), 0);
        cr_assert_eq(p->t[r + 1]->ops->connect(p->t[r + 1], 0, p->t[0]->address, &p->from[r]), 0);
        for (int i = 0; i < MANY; i++)
            p->got[r][i] = calloc(BYTES, 1);
    }
    p->sent = malloc(BYTES);
}

static void close_trio(trio_t *p)
{
    for (int r = 0; r < RANKS; r++)
        p->t[r]->ops->close(p->t[r]);
    for (int i = 0; i < READERS * MANY; i++)
        free(p->got[i / MANY][i % MANY]);
    free(p->sent);
}

static void fill(trio_t *p, int i)
{
    for (size_t k = 0; k < BYTES; k++)
        p->sent[k] = (unsigned char)(k * 7 + k / 255 + (size_t)i);
}

/* Message i, to reader r, with so many more to come. */
static int send_or_push(trio_t *p, int i, int r, uint32_t more, bool pushed)
{
    mc_io_t *const io = &p->sending[r][i];
    p->out = (mc_span_t){p->sent, BYTES};
    *io = (mc_io_t){.finished = &p->finished[0]};
    const mc_message_t m = {mc_tag(0, 1, (uint32_t)i), &p->out, 1, BYTES, more, pushed, false};
    const int status = p->t[0]->ops->send(p->to[r], &m, io);
    cr_assert_geq(status, 0);
    p->left += status == MESHCOLL_IN_PROGRESS;
    return status;
}

static int send(trio_t *p, int i, int r, uint32_t more)
{
    return send_or_push(p, i, r, more, false);
}

static void receive(trio_t *p, int i, int r)
{
    mc_io_t *const io = &p->receiving[r][i];
    p->span[r][i] = (mc_span_t){p->got[r][i], BYTES};
    *io = (mc_io_t){.finished = &p->finished[r + 1]};
    const mc_message_t m = {mc_tag(0, 1, (uint32_t)i), &p->span[r][i], 1, BYTES, 0, false, false};
    const int status = p->t[r + 1]->ops->recv(p->from[r], &m, io);
    cr_assert_geq(status, 0);
    p->left += status == MESHCOLL_IN_PROGRESS;
}

static void take_finished(trio_t *p, int r)
{
    for (mc_io_t *io; (io = mc_io_pop(&p->finished[r])); p->left--)
        cr_assert_eq(io->status, MESHCOLL_OK, "%s", meshcoll_last_error());
}

static void finish(trio_t *p)
{
    for (int turn = 0; turn < 1000 && p->left > 0; turn++)
        for (int r = 0; r < RANKS; r++) {
            p->t[r]->ops->progress(p->t[r]);
            take_finished(p, r);
        }
    cr_assert_eq(p->left, 0);
}

static void check(trio_t *p, int i)
{
    fill(p, i);
    for (int r = 0; r < READERS; r++)
        cr_assert_eq(memcmp(p->got[r][i], p->sent, BYTES), 0, "message %d of reader %d", i, r);
}

/* The sender is done with its bytes before anybody has read them. */
static void written_once(mc_shm_access_t access)
{
    static trio_t p;
    open_trio(&p, access);
    for (int again = 0; again < 20; again++) { /* places are used again */
        fill(&p, 0);
        cr_assert_eq(send(&p, 0, 0, 1), MESHCOLL_IN_PROGRESS);
        cr_assert_eq(send(&p, 0, 1, 0), MESHCOLL_OK);
        take_finished(&p, 0);
        cr_assert_eq(p.left, 0);
        memset(p.sent, 0, BYTES);
        for (int r = 0; r < READERS; r++) {
            memset(p.got[r][0], 0, BYTES);
            receive(&p, 0, r);
        }
        finish(&p);
        check(&p, 0);
    }
    close_trio(&p);
}

Test(shm_board, a_message_to_several_is_written_once)
{
    written_once(MC_SHM_READ);
    written_once(MC_SHM_COPY);
}

Test(shm_board, a_message_that_is_pushed_is_over_at_once)
{
    static trio_t p;
    open_trio(&p, MC_SHM_READ);
    fill(&p, 0);
    for (int r = 0; r < READERS; r++)
        cr_assert_eq(send_or_push(&p, 0, r, 0, true), MESHCOLL_OK);
    memset(p.sent, 0, BYTES);
    for (int r = 0; r < READERS; r++)
        receive(&p, 0, r);
    finish(&p);
    check(&p, 0);
    close_trio(&p);
}

/* A second send that never comes keeps nobody waiting, nor does it join what has been written. */
Test(shm_board, sends_that_come_late_go_by_themselves)
{
    static trio_t p;
    open_trio(&p, MC_SHM_READ);
    fill(&p, 0);
    cr_assert_eq(send(&p, 0, 0, 1), MESHCOLL_IN_PROGRESS);
    receive(&p, 0, 0);
    finish(&p);
    fill(&p, 1);
    cr_assert_eq(send(&p, 0, 1, 0), MESHCOLL_IN_PROGRESS, "its receiver reads it");
    receive(&p, 0, 1);
    finish(&p);
    cr_assert_eq(memcmp(p.got[1][0], p.sent, BYTES), 0);
    fill(&p, 0);
    cr_assert_eq(memcmp(p.got[0][0], p.sent, BYTES), 0);
    close_trio(&p);
}

/* Nobody has read anything when the board is full: what has no room there is read from its sender's memory. */
static void more_than_the_board_holds(mc_shm_access_t access)
{
    static trio_t p;
    int posted = 0;
    open_trio(&p, access);
    fill(&p, 0);
    for (int i = 0; i < MANY; i++) {
        send(&p, i, 0, 1);
        posted += send(&p, i, 1, 0) == MESHCOLL_OK;
    }
    cr_assert_eq(posted, MC_SHM_BOARD / BYTES);
    for (int i = MANY - 1; i >= 0; i--)
        for (int r = 0; r < READERS; r++)
            receive(&p, i, r);
    finish(&p);
    for (int i = 0; i < MANY; i++)
        for (int r = 0; r < READERS; r++)
            cr_assert_eq(memcmp(p.got[r][i], p.sent, BYTES), 0, "message %d of %d", i, r);
    close_trio(&p);
}

Test(shm_board, what_has_no_room_goes_another_way)
{
    more_than_the_board_holds(MC_SHM_READ);
    more_than_the_board_holds(MC_SHM_COPY);
}

/* Which sends are alike --------------------------------------------------------------------------- */

/* Of a rank, its sends: how many alike follow, p where it is pushed. */
static void check_alike(meshcoll_collective_t collective, const char *text, int rank,
                        bool oversubscribed, const char *wanted)
{
    static plans_t p;
    char got[64] = "";
    plans_of(&p, &(case_t){"gpu=4", collective, 0, text});
    const mc_plan_t *const plan = p.plan[rank];
    mc_task_t *const task = calloc(plan->n_steps, sizeof *task);
    mc_hints_find(plan, oversubscribed, task);
    for (uint32_t t = 0; t < plan->n_steps; t++)
        if (mc_op_sends((mc_op_t)plan->step[t].op))
            snprintf(got + strlen(got), 8, "%u%s", task[t].message.more,
                     task[t].message.pushed ? "p" : "");
    cr_expect_str_eq(got, wanted, "%s: %s", text, got);
    free(task);
    plans_free(&p);
}

Test(shm_board, sends_are_alike_where_nothing_is_written_between)
{
    check_alike(MESHCOLL_BCAST, "bcast:star(gpu)", 0, true, "210");
    check_alike(MESHCOLL_BCAST, "bcast:star(gpu) segments=2", 0, true, "210210");
    check_alike(MESHCOLL_ALLGATHER, "allgather:fullmesh(gpu)", 0, true, "210");
    check_alike(MESHCOLL_SCATTER, "scatter:star(gpu)", 0, false, "000");
    check_alike(MESHCOLL_SCATTER, "scatter:mst(gpu)", 0, true, "00");
    check_alike(MESHCOLL_BCAST, "bcast:mst(gpu)", 0, true, "10");
    check_alike(MESHCOLL_ALLGATHER, "allgather:ring(gpu)", 0, true, "000");
    check_alike(MESHCOLL_ALLREDUCE, "allreduce:doubling(gpu)", 0, false, "0p0p");
}

Test(shm_board, who_waits_for_a_busy_receiver_pushes)
{
    for (int oversubscribed = 0; oversubscribed < 2; oversubscribed++) {
        check_alike(MESHCOLL_REDUCE, "reduce:star(gpu)", 1, oversubscribed, "0p");
        check_alike(MESHCOLL_GATHER, "gather:star(gpu)", 1, oversubscribed,
                    oversubscribed ? "0p" : "0");
        check_alike(MESHCOLL_REDUCE_SCATTER, "reduce_scatter:fullmesh(gpu)", 1, oversubscribed,
                    "0p0p0p");
        check_alike(MESHCOLL_ALLTOALL, "alltoall:pairwise(gpu)", 1, oversubscribed, "000");
    }
}

/* Where messages lie ------------------------------------------------------------------------------ */

static mc_shm_board_t board;
static char bytes[MC_SHM_BOARD];

static mc_message_t message_of(const mc_span_t *span, uint32_t more)
{
    return (mc_message_t){
        .tag = mc_tag(0, 1, 0), .span = span, .n_spans = 1, .bytes = span->bytes, .more = more};
}

/* Whose receive has another length does without it, before it is written too; its place is free again all the same. */
Test(shm_board, a_reader_may_leave_before_it_is_written)
{
    mc_shm_poster_t poster;
    mc_shm_poster_init(&poster, MC_SHM_BOARD, false);
    const mc_span_t all = {bytes, sizeof bytes};
    const mc_message_t first = message_of(&all, 1), second = message_of(&all, 0);
    cr_assert(mc_shm_post(&poster, &board, &first, true));
    cr_assert(mc_shm_post(&poster, &board, &second, true));
    mc_io_t left = {0}, reads = {.message = second};
    mc_shm_post_told(&poster, left.offer);
    mc_shm_post_told(&poster, reads.offer);
    mc_shm_post_leave(&board, &left);
    cr_assert_eq(mc_shm_post_write(&poster, &board), 1);
    cr_expect_not(mc_shm_post(&poster, &board, &first, true), "one has still to read it");
    cr_assert(mc_shm_post_read(&board, &reads));
    cr_expect(mc_shm_post(&poster, &board, &first, true));
}

/* Lines that both ends hold in their caches are slow to write again, unless ranks share a core. */
static void check_ring(size_t room, bool oversubscribed, size_t grows_to)
{
    enum { MESSAGE = 48 << 10, MESSAGES = 1000 };
    mc_shm_poster_t poster;
    mc_shm_poster_init(&poster, room, oversubscribed);
    const mc_span_t span = {bytes, MESSAGE};
    const mc_message_t m = message_of(&span, 0);
    size_t end = 0, last = SIZE_MAX;
    for (int i = 0; i < MESSAGES; i++) {
        mc_io_t reads = {.message = m};
        cr_assert(mc_shm_post(&poster, &board, &m, true));
        mc_shm_post_told(&poster, reads.offer);
        cr_assert_eq(mc_shm_post_write(&poster, &board), 1);
        cr_assert(mc_shm_post_read(&board, &reads));
        cr_assert_neq(reads.offer[1], last, "message %d lies where the one before lay", i);
        last = reads.offer[1];
        end = last + MESSAGE > end ? last + MESSAGE : end;
    }
    cr_expect_leq(end, grows_to);
    cr_expect_gt(end, grows_to - MESSAGE - 4096, "%zu of %zu bytes are used", end, grows_to);
}

Test(shm_board, is_a_ring_that_grows)
{
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const size_t both = 2 * (size_t)(cache > 0 ? cache : 1 << 20);
    check_ring(MC_SHM_BOARD, false, both < MC_SHM_BOARD ? both : MC_SHM_BOARD);
    check_ring(256 << 10, false, 256 << 10);
    check_ring(MC_SHM_BOARD, true, 128 << 10);
}
