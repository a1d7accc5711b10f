/* The end of a run over two transports. */
#include "runtime/execute/executor.h"
#include "support/fake_wire.h"

#include <criterion/criterion.h>
#include <string.h>

enum { BLOCK = KIB };

/* What flushes come to, by transport; how many were dropped. */
static struct {
    wire_t other;
    int begins[2], ends[2], dropped;
} end;

static int which(const mc_transport_t *t)
{
    return t == &end.other.transport;
}

static int begin_flush(mc_transport_t *t, bool must, void **flush)
{
    (void)must;
    *flush = &end;
    return end.begins[which(t)];
}

static int flushed(mc_transport_t *t, void *flush)
{
    cr_assert_eq(flush, &end);
    return end.ends[which(t)];
}

static void drop_flush(mc_transport_t *t, void *flush)
{
    (void)t;
    cr_assert_eq(flush, &end);
    end.dropped++;
}

static const mc_transport_ops_t ops = {.send = wire_send,
                                       .recv = wire_recv,
                                       .flush = begin_flush,
                                       .flushed = flushed,
                                       .drop_flush = drop_flush};

/* Its run, up to where all messages have come. */
static int run(rank_t *r)
{
    memset(&end, 0, sizeof end);
    rank_open(r, &(opened_t){MESHCOLL_ALLTOALL, "alltoall:pairwise(x)", 0, BLOCK, 1, false, 0});
    r->wire.transport.ops = &ops;
    end.other.transport = r->wire.transport;
    for (int32_t i = 0; i < RANKS - 1; i += 2)
        r->wire.peer[i].transport = &end.other.transport;
    rank_bind(r, BLOCK, true);
    rank_start(r);
    int status = MESHCOLL_IN_PROGRESS;
    end.begins[0] = end.begins[1] = end.ends[0] = end.ends[1] = MESHCOLL_IN_PROGRESS;
    for (int32_t from = 1; from < RANKS; from++)
        status = come(r, (from % 2 ? end.other : r->wire).message[from]);
    return status;
}

Test(flush, ends_when_all_transports_have)
{
    static rank_t r;
    cr_assert_eq(run(&r), MESHCOLL_IN_PROGRESS);
    end.ends[0] = MESHCOLL_OK;
    cr_expect_eq(mc_executor_advance(&r.executor), MESHCOLL_IN_PROGRESS);
    end.ends[1] = MESHCOLL_OK;
    cr_expect_eq(mc_executor_advance(&r.executor), MESHCOLL_OK);
    cr_expect_eq(end.dropped, 0);
    rank_close(&r);
}

Test(flush, one_that_fails_leaves_none_behind)
{
    static rank_t r;
    for (int failing = 0; failing < 2; failing++) {
        cr_assert_eq(run(&r), MESHCOLL_IN_PROGRESS);
        end.ends[failing] = MESHCOLL_ERR_TRANSPORT;
        cr_expect_eq(mc_executor_advance(&r.executor), MESHCOLL_ERR_TRANSPORT);
        cr_expect_eq(mc_executor_advance(&r.executor), MESHCOLL_ERR_TRANSPORT);
        cr_expect_eq(end.dropped, 1, "transport %d fails", failing);
        rank_close(&r);
    }
}
