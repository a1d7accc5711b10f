/* Messages that their receiver asks for, or says to have: which, when, and that small ones go without. */
#include "runtime/execute/pace.h"
#include "support/fake_wire.h"

/* Of a star. */
static void open_in(rank_t *r, meshcoll_collective_t collective, int32_t rank, size_t block,
                    int32_t concurrent, bool streams)
{
    const bool gathers = collective == MESHCOLL_GATHER;
    rank_open(r, &(opened_t){collective, gathers ? "gather:star(x)" : "scatter:star(x)", rank,
                             block, concurrent, streams, 0});
}

static void open_rank(rank_t *r, int32_t rank, size_t block, int32_t concurrent, bool streams)
{
    open_in(r, MESHCOLL_GATHER, rank, block, concurrent, streams);
}

/* Of blocks of 32 KiB four may be on their way, each one that comes makes room for one: also where one overtakes
 * another, and again at the next start. `gone`: how many have been let go, `to` whom. */
static void expect_four_at_once(rank_t *r, mc_io_t *const *comes, const uint32_t *gone,
                                const int32_t *to)
{
    for (int again = 0; again < 2; again++) {
        cr_expect_eq(rank_start(r), MESHCOLL_IN_PROGRESS);
        cr_expect_eq(*gone, 4);
        come(r, comes[2]);
        cr_expect_eq(*gone, 5);
        come(r, comes[1]);
        come(r, comes[3]);
        cr_expect_eq(*gone, 7);
        for (int32_t other = 4; other < RANKS - 1; other++)
            cr_expect_eq(come(r, comes[other]), MESHCOLL_IN_PROGRESS);
        cr_expect_eq(come(r, comes[RANKS - 1]), MESHCOLL_OK);
        cr_expect_eq(*gone, 7);
        unsigned seen = 0;
        for (int32_t i = 0; i < RANKS - 1; i++)
            seen |= 1u << to[i];
        cr_expect_eq(seen, (1u << RANKS) - 2);
    }
}

Test(credit, the_root_asks_for_what_there_is_room_for)
{
    static rank_t r;
    open_rank(&r, 0, 32 * KIB, 1, true);
    expect_four_at_once(&r, r.wire.message, &r.wire.n_asked, r.wire.asked);
    rank_close(&r);
}

/* One at least, however large, and however many share the port. */
Test(credit, one_is_always_asked_for)
{
    static rank_t r;
    open_rank(&r, 0, 256 * KIB, 64, true);
    rank_start(&r);
    for (int32_t from = 1; from < RANKS; from++) {
        cr_expect_eq(r.wire.n_asked, (uint32_t)from);
        come(&r, r.wire.message[from]);
    }
    rank_close(&r);
}

Test(credit, ranks_that_share_a_port_share_what_may_come)
{
    static rank_t r;
    open_rank(&r, 0, 32 * KIB, MC_LINK_WINDOW / (64 * KIB), true);
    rank_start(&r);
    cr_expect_eq(r.wire.n_asked, 2);
    rank_close(&r);
}

/* All of them at once, where the wire holds that. */
Test(credit, a_wider_window_asks_for_more)
{
    static rank_t r;
    rank_open(&r, &(opened_t){MESHCOLL_GATHER, "gather:star(x)", 0, 32 * KIB, 1, true, 384 * KIB});
    rank_start(&r);
    cr_expect_eq(r.wire.n_asked, 6);
    rank_close(&r);
}

Test(credit, a_sender_waits_until_it_is_asked)
{
    static rank_t r;
    open_rank(&r, 3, 32 * KIB, 1, true);
    for (int again = 0; again < 2; again++) {
        cr_expect_eq(rank_start(&r), MESHCOLL_IN_PROGRESS);
        cr_expect_eq(r.wire.n_sent, 0);
        cr_expect_eq(come(&r, r.wire.credit[0]), MESHCOLL_OK);
        cr_expect_eq(r.wire.n_sent, 1);
    }
    rank_close(&r);
}

static void expect_sent_at_once(size_t block, bool streams)
{
    static rank_t r;
    open_rank(&r, 3, block, 1, streams);
    cr_expect_eq(rank_start(&r), MESHCOLL_OK);
    cr_expect_eq(r.wire.n_sent, 1);
    rank_close(&r);
    open_rank(&r, 0, block, 1, streams);
    rank_start(&r);
    cr_expect_eq(r.wire.n_asked, 0);
    rank_close(&r);
}

/* All seven may send these at once. */
Test(credit, small_messages_go_unasked)
{
    expect_sent_at_once(16 * KIB, true);
}

/* Where a send waits for its receiver, that is enough. */
Test(credit, only_what_streams_is_asked_for)
{
    expect_sent_at_once(32 * KIB, false);
}

Test(credit, the_root_hears_what_has_come)
{
    static rank_t r;
    open_in(&r, MESHCOLL_SCATTER, 0, 32 * KIB, 1, true);
    expect_four_at_once(&r, r.wire.credit, &r.wire.n_sent, r.wire.sent_to);
    rank_close(&r);
}

Test(credit, a_receiver_says_what_has_come)
{
    static rank_t r;
    open_in(&r, MESHCOLL_SCATTER, 3, 32 * KIB, 1, true);
    cr_expect_eq(rank_start(&r), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(r.wire.n_asked, 0);
    cr_expect_eq(come(&r, r.wire.message[0]), MESHCOLL_OK);
    cr_expect_eq(r.wire.n_asked, 1);
    rank_close(&r);
}

Test(credit, of_little_nobody_hears)
{
    static rank_t r;
    open_in(&r, MESHCOLL_SCATTER, 0, 16 * KIB, 1, true);
    cr_expect_eq(rank_start(&r), MESHCOLL_OK);
    cr_expect_eq(r.wire.n_sent, 7);
    rank_close(&r);
}

static void open_chain(rank_t *r, int32_t rank, size_t bytes)
{
    rank_open(r, &(opened_t){MESHCOLL_BCAST, "bcast:chain(x) segments=8", rank, bytes, 1, true, 0});
}

/* From its next rank nothing else comes back; two of 64 KiB may be on their way. */
Test(credit, a_chain_hears_what_has_come)
{
    static rank_t r;
    open_chain(&r, 0, 512 * KIB);
    for (int again = 0; again < 2; again++) {
        cr_expect_eq(rank_start(&r), MESHCOLL_IN_PROGRESS);
        for (uint32_t sent = 2; sent < 8; sent++) {
            cr_expect_eq(r.wire.n_sent, sent);
            come(&r, r.wire.credit[1]);
        }
        cr_expect_eq(r.wire.n_sent, 8);
        cr_expect_eq(come(&r, r.wire.credit[1]), MESHCOLL_IN_PROGRESS);
        cr_expect_eq(come(&r, r.wire.credit[1]), MESHCOLL_OK);
    }
    rank_close(&r);
}

Test(credit, who_passes_on_says_what_has_come)
{
    static rank_t r;
    open_chain(&r, 3, 512 * KIB);
    cr_expect_eq(rank_start(&r), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(r.wire.n_asked, 0);
    come(&r, r.wire.message[2]);
    cr_expect_eq(r.wire.n_asked, 1);
    rank_close(&r);
}

Test(credit, a_chain_of_little_hears_nothing)
{
    static rank_t r;
    open_chain(&r, 0, 256 * KIB);
    cr_expect_eq(rank_start(&r), MESHCOLL_OK);
    cr_expect_eq(r.wire.n_sent, 8);
    rank_close(&r);
}

/* A tree on a line of two: rank 0 to rank 1, while `concurrent` - 1 others use its port. */
static void open_pair(rank_t *r, int32_t rank, size_t bytes, int32_t concurrent)
{
    rank_open_on(
        r, "x=2",
        &(opened_t){MESHCOLL_BCAST, "bcast:mst(x) segments=8", rank, bytes, concurrent, true, 0});
}

/* Each of four may have 64 KiB in flight. */
Test(credit, pairs_that_share_a_port_say_what_has_come)
{
    static rank_t r;
    open_pair(&r, 0, 256 * KIB, 4);
    cr_expect_eq(rank_start(&r), MESHCOLL_IN_PROGRESS);
    for (uint32_t sent = 2; sent < 8; sent++) {
        cr_expect_eq(r.wire.n_sent, sent);
        come(&r, r.wire.credit[1]);
    }
    cr_expect_eq(r.wire.n_sent, 8);
    rank_close(&r);
    open_pair(&r, 1, 256 * KIB, 4);
    cr_expect_eq(rank_start(&r), MESHCOLL_IN_PROGRESS);
    come(&r, r.wire.message[0]);
    cr_expect_eq(r.wire.n_asked, 1);
    rank_close(&r);
}

Test(credit, a_pair_alone_or_with_little_hears_nothing)
{
    static rank_t r;
    open_pair(&r, 0, 512 * KIB, 1);
    (void)rank_start(&r); /* its own copy may take more turns */
    cr_expect_eq(r.wire.n_sent, 8);
    cr_expect_null(r.wire.credit[1]);
    rank_close(&r);
    open_pair(&r, 0, 64 * KIB, 4);
    (void)rank_start(&r); /* its own copy may take more turns */
    cr_expect_eq(r.wire.n_sent, 8);
    cr_expect_null(r.wire.credit[1]);
    rank_close(&r);
}
