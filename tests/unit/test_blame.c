/* What ranks wait for, as text; what the rank does that is waited for, and whom a report blames, among made-up ranks
 * and among ranks of one process of which one makes no call; time limits. */
#include "runtime/diagnose/status/status.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/diagnose/waits/verdict.h"
#include "runtime/jobs/jobs.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Text ------------------------------------------------------------------------------------------- */

static mc_wait_t allreduce(void)
{
    return (mc_wait_t){.kind = MC_WAIT_COLLECTIVE,
                       .awaits = MC_AWAITS_RECEIVE,
                       .number = 11,
                       .collective = MESHCOLL_ALLREDUCE,
                       .datatype = MESHCOLL_FLOAT32,
                       .count = 2 << 20,
                       .bytes = 8 << 20,
                       .message = 64 << 10,
                       .phase = 1,
                       .phases = 3,
                       .step = 13,
                       .steps = 40,
                       .peer = 6,
                       .known_as = 5,
                       .place = {"box", 1},
                       .in_part = -1,
                       .still_ms = 3200,
                       .mesh_text = "gpu=4",
                       .strategy = "scatter:ring(box) segments=8",
                       .phase_text = "allreduce:ring(gpu)"};
}

static void expect_text(const mc_wait_t *w, mc_wait_form_t form, const char *expected)
{
    char buffer[MC_WAIT_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_wait_print(w, form, &text);
    cr_expect_str_eq(buffer, expected, "got: %s", buffer);
}

Test(wait_text, of_a_collective)
{
    mc_wait_t w = allreduce();
    expect_text(
        &w, MC_WAIT_LONG,
        "allreduce of 2097152 float32, 8 MiB (call 11), scatter:ring(box) segments=8: phase 2 "
        "of 3 allreduce:ring(gpu), step 14 of 40: receives 64 KiB from rank 5 in box 1, for "
        "3.2 s");
    w.mesh = 7;
    w.in_part = 2;
    w.awaits = MC_AWAITS_CREDIT;
    expect_text(
        &w, MC_WAIT_SHORT,
        "allreduce of 2097152 float32, 8 MiB (call 11 on gpu=4): phase 2 of 3 "
        "allreduce:ring(gpu), step 14 of 40: may send 64 KiB when asked or confirmed by rank 5 "
        "in box 1 (rank 2 of gpu=4), for 3.2 s");
}

Test(wait_text, of_what_has_no_step)
{
    mc_wait_t w = allreduce();
    w.steps = w.phases = w.count = 0;
    w.awaits = MC_AWAITS_GREETING;
    w.place.name[0] = '\0';
    expect_text(&w, MC_WAIT_SHORT, "allreduce (call 11): connects to rank 5, for 3.2 s");
    w.kind = MC_WAIT_BARRIER;
    w.awaits = MC_AWAITS_FLUSH;
    w.is_persistent = true;
    w.number = 0;
    expect_text(
        &w, MC_WAIT_SHORT,
        "barrier (persistent operation 0): waits until the network has taken what was sent, "
        "for 3.2 s");
    w.kind = MC_WAIT_LEAD;
    w.is_persistent = false;
    expect_text(&w, MC_WAIT_SHORT,
                "barrier of the library, between calls: waits until the network has taken what was "
                "sent, for 3.2 s");
}

Test(wait_text, of_tagged_messages)
{
    mc_wait_t w = {.kind = MC_WAIT_RECV,
                   .awaits = MC_AWAITS_RECEIVE,
                   .bytes = 64,
                   .tag = MESHCOLL_ANY_TAG,
                   .peer = -1,
                   .in_part = -1};
    expect_text(&w, MC_WAIT_LONG,
                "receive of at most 64 B from any rank, any tag: is not sent, for 0.0 s");
    w.kind = MC_WAIT_SEND;
    w.awaits = MC_AWAITS_SEND;
    w.peer = w.known_as = 3;
    w.tag = 9;
    expect_text(&w, MC_WAIT_LONG, "send of 64 B to rank 3, tag 9: is not received, for 0.0 s");
}

/* A buffer too short cuts the text, and a record with nonsense in it is printed anyway. */
Test(wait_text, is_cut_to_fit)
{
    char buffer[16];
    mc_wait_t w;
    mc_text_t text = mc_text(buffer, sizeof buffer);
    memset(&w, 0x7f, sizeof w);
    mc_wait_print(&w, MC_WAIT_LONG, &text);
    cr_expect_eq(strlen(buffer), sizeof buffer - 1);
}

/* Made-up ranks ---------------------------------------------------------------------------------- */

enum { FAKES = 8 };

typedef struct {
    mc_waits_t rank[FAKES];
    bool silent[FAKES];
} fakes_t;

static void set_wait(fakes_t *f, int rank, int peer)
{
    f->rank[rank].n = 1;
    f->rank[rank].wait[0] = allreduce();
    f->rank[rank].wait[0].peer = f->rank[rank].wait[0].known_as = peer;
    f->rank[rank].wait[0].place = (mc_wait_place_t){"box", peer / 4};
}

/* Ranks have made 12 calls, and do not wait. */
static void fakes_init(fakes_t *f)
{
    memset(f, 0, sizeof *f);
    for (int32_t r = 0; r < FAKES; r++)
        f->rank[r] = (mc_waits_t){
            .rank = r, .known_as = r, .looked_ms = 3200, .n_meshes = 1, .mesh = {{.n_calls = 12}}};
}

/* What rank 0 says of the rank that it waits for. */
static mc_verdict_kind_t says(const fakes_t *f, const char *expected)
{
    char buffer[MC_WAIT_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const mc_wait_t *const wait = &f->rank[0].wait[0];
    const mc_verdict_t v = mc_verdict_of(wait, f->silent[wait->peer] ? NULL : &f->rank[wait->peer]);
    mc_verdict_print(&v, &text);
    cr_expect_str_eq(buffer, expected, "got: %s", buffer);
    return v.kind;
}

/* Whom a report of all ranks blames: what stands behind "cause: ". */
static void report_blames(const fakes_t *f, const char *expected)
{
    char *text = NULL;
    size_t bytes;
    mc_status_rank_t rank[FAKES];
    FILE *const out = open_memstream(&text, &bytes);
    for (int r = 0; r < FAKES; r++)
        rank[r] = (mc_status_rank_t){.answered = !f->silent[r], .waits = f->rank[r]};
    cr_assert(out && mc_status_print(&(mc_status_t){.n = FAKES, .rank = rank}, out) == MESHCOLL_OK);
    fclose(out);
    const char *const cause = strstr(text, "\ncause: ");
    cr_assert(cause, "%s", text);
    cr_expect_str_eq(cause + strlen("\ncause: "), expected, "got: %s", cause);
    free(text);
}

Test(verdict, names_the_rank_that_has_not_made_the_call)
{
    fakes_t f;
    fakes_init(&f);
    set_wait(&f, 0, 5);
    f.rank[5].mesh[0].n_calls = 11;
    cr_expect_eq(says(&f, "rank 5 in box 1 has not made allreduce of 2097152 float32, 8 MiB (call "
                          "11): it has not been waiting in the library for 3.2 s"),
                 MC_PEER_AWAY);
    f.rank[5].mesh[0].n_calls = 12;
    f.rank[5].looked_ms = -1;
    cr_expect_eq(says(&f, "rank 5 in box 1 has made a call of this number, but does not progress "
                          "allreduce of 2097152 float32, 8 MiB (call 11): it is not waiting in the "
                          "library"),
                 MC_PEER_AWAY);
}

Test(verdict, of_a_rank_that_waits_too)
{
    fakes_t f;
    fakes_init(&f);
    set_wait(&f, 0, 3);
    set_wait(&f, 3, 5);
    f.rank[3].wait[0].number = 10;
    cr_expect_eq(says(&f, "rank 3 in box 0 waits too: allreduce of 2097152 float32, 8 MiB (call "
                          "10): phase 2 of 3 allreduce:ring(gpu), step 14 of 40: receives 64 KiB "
                          "from rank 5 in box 1, for 3.2 s"),
                 MC_PEER_WAITS);
}

Test(verdict, names_a_rank_at_work_and_one_that_failed_or_is_silent)
{
    fakes_t f;
    fakes_init(&f);
    set_wait(&f, 0, 3);
    set_wait(&f, 3, -1);
    f.rank[3].wait[0].awaits = MC_AWAITS_WORK;
    cr_expect_eq(
        says(&f,
             "rank 3 in box 0 waits for no rank: allreduce of 2097152 float32, 8 MiB (call 11): "
             "phase 2 of 3 allreduce:ring(gpu), step 14 of 40: is at work itself, for 3.2 s"),
        MC_PEER_BUSY);
    f.rank[3].n = 0;
    f.rank[3].broken = MESHCOLL_ERR_TIMEOUT;
    cr_expect_eq(says(&f, "rank 3 in box 0 has failed: a peer was waited for too long"),
                 MC_PEER_FAILED);
    f.silent[3] = true;
    cr_expect_eq(
        says(&f, "rank 3 in box 0 does not answer: it is stopped, has ended or cannot be reached"),
        MC_PEER_SILENT);
}

static int ask_fake(const void *context, int32_t rank, mc_waits_t *answer)
{
    const fakes_t *const f = context;
    *answer = f->rank[rank];
    return f->silent[rank] ? MESHCOLL_ERR_TRANSPORT : 0;
}

/* Through ranks that wait, too, as far as may be asked. */
Test(verdict, is_found_at_the_end_of_the_waits)
{
    fakes_t f;
    const mc_peer_query_t query = {ask_fake, &f};
    fakes_init(&f);
    set_wait(&f, 0, 3);
    set_wait(&f, 3, 5);
    f.silent[5] = true;
    mc_verdict_t v = mc_verdict_find(&query, &f.rank[0].wait[0], FAKES, 60);
    cr_expect(v.kind == MC_PEER_SILENT && v.wait.peer == 5);
    v = mc_verdict_find(&query, &f.rank[0].wait[0], 0, 60);
    cr_expect(v.kind == MC_PEER_WAITS && v.wait.peer == 3);
    set_wait(&f, 5, 3);
    f.silent[5] = false;
    v = mc_verdict_find(&query, &f.rank[0].wait[0], FAKES, 60);
    cr_expect_eq(v.kind, MC_PEER_WAITS, "they wait for one another");
}

/* Call numbers wrap; no mesh of that id: the split was not made. */
Test(verdict, compares_numbers_that_wrap)
{
    fakes_t f;
    fakes_init(&f);
    set_wait(&f, 0, 3);
    mc_wait_t *const wait = &f.rank[0].wait[0];
    wait->number = MC_TAG_CALLS - 1;
    f.rank[3].mesh[0].n_calls = MC_TAG_CALLS + 5;
    cr_expect_eq(mc_verdict_of(wait, &f.rank[3]).made, MC_CALL_MADE);
    wait->number = 6;
    cr_expect_eq(mc_verdict_of(wait, &f.rank[3]).made, MC_CALL_NOT_MADE);
    wait->number = 1;
    wait->mesh = 99;
    cr_expect_eq(mc_verdict_of(wait, &f.rank[3]).made, MC_CALL_NOT_MADE);
}

/* A rank that polls and gets no core: 0 waits for 3, which was seen last to wait for 5. */
Test(blame, of_a_rank_that_was_not_seen_for_long)
{
    static const char late[] = "rank 3 in box 0 was last seen in the library 3.2 s ago, where it "
                               "waited for rank 5 in box 1; why it is late is not known";
    char line[sizeof late + 1];
    fakes_t f;
    fakes_init(&f);
    set_wait(&f, 0, 3);
    set_wait(&f, 3, 5);
    f.rank[3].n = 0;
    f.rank[3].has_last = 1;
    f.rank[3].last = f.rank[3].wait[0];
    snprintf(line, sizeof line, "%s\n", late);
    cr_expect_eq(says(&f, late), MC_PEER_LATE);
    report_blames(&f, line);
    f.silent[5] = true;
    report_blames(&f, "rank 5 in box 1 does not answer: it is stopped, has ended or cannot be "
                      "reached\n");
    /* and so on, without an end */
    f.silent[5] = false;
    f.rank[5].has_last = 1;
    f.rank[5].last = f.rank[3].last;
    f.rank[5].last.peer = f.rank[5].last.known_as = 3;
    report_blames(&f, line);
}

/* A rank that is late because it waits in an earlier call is not to blame. */
Test(blame, follows_a_rank_that_waits_in_another_call)
{
    fakes_t f;
    fakes_init(&f);
    set_wait(&f, 0, 3);
    set_wait(&f, 3, 5);
    f.rank[3].mesh[0].n_calls = 11;
    f.rank[3].wait[0].number = 10;
    f.silent[5] = true;
    report_blames(&f, "rank 5 in box 1 does not answer: it is stopped, has ended or cannot be "
                      "reached\n");
}

Test(blame, says_that_ranks_wait_for_one_another)
{
    fakes_t f;
    fakes_init(&f);
    set_wait(&f, 0, 5);
    set_wait(&f, 3, 5);
    set_wait(&f, 5, 6);
    set_wait(&f, 6, 3);
    report_blames(&f, "ranks wait for one another: rank 3 for 5, 5 for 6, 6 for 3; all ranks must "
                      "make the same calls in the same order\n");
}

/* The rank is in one more call. */
static void add_wait(fakes_t *f, int rank, uint32_t number, int peer)
{
    const mc_waits_t before = f->rank[rank];
    set_wait(f, rank, peer);
    f->rank[rank].wait[0].number = number;
    f->rank[rank].n += before.n;
    memcpy(&f->rank[rank].wait[1], before.wait, (size_t)before.n * sizeof before.wait[0]);
}

/* Ranks are in two calls, and those that wait for one another do not come before all of these. */
Test(blame, follows_ranks_through_several_calls, .timeout = 20)
{
    enum { FIRST = 2, SECOND, THIRD, LAST };
    fakes_t f;
    fakes_init(&f);
    for (int r = 0; r < 4; r++) {
        add_wait(&f, r, SECOND, r + 1);
        add_wait(&f, r, FIRST, r + 1);
    }
    add_wait(&f, 4, FIRST, 5);
    add_wait(&f, 4, THIRD, 6);
    add_wait(&f, 5, SECOND, 0);
    add_wait(&f, 6, LAST, 7);
    add_wait(&f, 7, LAST, 6);
    report_blames(&f, "ranks wait for one another: rank 6 for 7, 7 for 6; all ranks must make the "
                      "same calls in the same order\n");
    f.silent[7] = true;
    report_blames(&f, "rank 7 in box 1 does not answer: it is stopped, has ended or cannot be "
                      "reached\n");
}

/* Ranks of one process --------------------------------------------------------------------------- */

enum { RANKS = 6, COUNT = 600, TURNS = 400 };

static meshcoll_t *rank[RANKS];
static float in[RANKS][COUNT * RANKS], out[RANKS][COUNT * RANKS];

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void begin(int r, const meshcoll_args_t *call, meshcoll_request_t **request)
{
    meshcoll_args_t a = *call;
    a.size = sizeof a;
    a.in = in[r];
    a.out = out[r];
    a.count = COUNT;
    a.datatype = MESHCOLL_FLOAT32;
    cr_assert_eq(meshcoll_begin(rank[r], &a, request), MESHCOLL_OK, "%s", meshcoll_last_error());
}

/* All ranks but one make the call, and get as far as they can. Whoever waits for the missing one says so, and each
 * other rank that waits does it for one that waits, too. */
static void miss(const meshcoll_args_t *call, int missing, meshcoll_request_t **request)
{
    int waiting = 0, found = 0;
    for (int r = 0; r < RANKS; r++)
        if (r != missing)
            begin(r, call, &request[r]);
    for (int turn = 0; turn < TURNS; turn++)
        for (int r = 0; r < RANKS; r++)
            if (request[r] && meshcoll_test(request[r]) == MESHCOLL_OK)
                request[r] = NULL;
    mc_waits_t seen[RANKS];
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(mc_limits_poll(rank[r]->job, now_ms()), MESHCOLL_OK);
        mc_waits_copy(rank[r]->job, 0, &seen[r]);
    }
    for (int r = 0; r < RANKS; r++) {
        if (!request[r])
            continue;
        waiting++;
        cr_assert_eq(seen[r].n, 1);
        const int32_t peer = seen[r].wait[0].peer;
        const mc_verdict_t v = mc_verdict_of(&seen[r].wait[0], &seen[peer]);
        found += peer == missing;
        cr_expect(peer == missing ? v.kind == MC_PEER_AWAY && v.made == MC_CALL_NOT_MADE
                                  : v.kind == MC_PEER_WAITS,
                  "%s: rank %d of those without %d waits for %d (%d)", call->strategy, r, missing,
                  peer, (int)v.kind);
    }
    cr_expect(waiting > 0 && found > 0, "%s without rank %d", call->strategy, missing);
}

static void miss_each(const char *mesh, meshcoll_collective_t collective, const char *strategy)
{
    for (int missing = 0; missing < RANKS; missing++) {
        const meshcoll_args_t call = {.collective = collective, .strategy = strategy};
        cr_assert_eq(mc_inproc_create(mesh, NULL, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
        meshcoll_request_t *request[RANKS] = {NULL};
        miss(&call, missing, request);
        for (int r = 0; r < RANKS; r++)
            meshcoll_destroy(rank[r]);
        for (int r = 0; r < RANKS; r++)
            meshcoll_free(request[r]);
    }
}

Test(blame, finds_the_missing_one_of_ranks_that_run)
{
    static const struct {
        const char *mesh, *strategy;
        meshcoll_collective_t collective;
    } cases[] = {
        {"x=6", "reduce:mst(x) bcast:mst(x)", MESHCOLL_ALLREDUCE},
        {"x=6", "reduce_scatter:ring(x) allgather:ring(x) segments=3", MESHCOLL_ALLREDUCE},
        {"x=6", "reduce_scatter:fullmesh(x) allgather:bruck(x)", MESHCOLL_ALLREDUCE},
        {"x=6", "alltoall:pairwise(x)", MESHCOLL_ALLTOALL},
        {"box=2,gpu=3",
         "reduce_scatter:ring(gpu) allreduce:ring(box) allgather:ring(gpu) segments=4",
         MESHCOLL_ALLREDUCE},
        {"box=3,gpu=2", "alltoall:pairwise(gpu) alltoall:pairwise(box)", MESHCOLL_ALLTOALL},
        {"box=3,gpu=2", "allgather:ring(box) allgather:ring(gpu)", MESHCOLL_ALLGATHER},
    };
    for (size_t i = 0; i < MC_COUNT(cases); i++)
        miss_each(cases[i].mesh, cases[i].collective, cases[i].strategy);
}

/* Time limits ------------------------------------------------------------------------------------ */

static meshcoll_request_t *receive_nothing(void)
{
    static char byte;
    meshcoll_request_t *r;
    cr_assert_eq(mc_inproc_create("x=6", NULL, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_eq(meshcoll_recv_begin(rank[0], &byte, 1, MESHCOLL_UINT8, 3, 7, NULL, &r),
                 MESHCOLL_OK);
    return r;
}

static void close_ranks(meshcoll_request_t *r)
{
    for (int i = 0; i < RANKS; i++)
        meshcoll_destroy(rank[i]);
    meshcoll_free(r);
}

/* The clock is the test's: a look every 100 ms. */
Test(limits, count_from_the_first_look)
{
    int64_t now = 5000;
    meshcoll_request_t *const r = receive_nothing();
    cr_assert_eq(meshcoll_set_timeout(rank[0], 1), MESHCOLL_OK);
    for (; now < 6000; now += 100)
        cr_assert_eq(mc_limits_poll(rank[0]->job, now), MESHCOLL_OK, "at %d", (int)now);
    cr_assert_eq(mc_limits_poll(rank[0]->job, now), MESHCOLL_ERR_TIMEOUT);
    cr_assert_str_eq(
        meshcoll_last_error(),
        "rank 3 was waited for too long; time limit of 1 s: receive of at most 1 B from "
        "rank 3, tag 7: is not sent, for 1.0 s");
    close_ranks(r);
}

/* A rank that was elsewhere for hours, or stopped, looks before it gives up. */
Test(limits, count_only_time_in_the_library)
{
    meshcoll_request_t *const r = receive_nothing();
    cr_assert_eq(meshcoll_set_timeout(rank[0], 2), MESHCOLL_OK);
    cr_assert_eq(mc_limits_poll(rank[0]->job, 1000), MESHCOLL_OK);
    cr_assert_eq(mc_limits_poll(rank[0]->job, 1000000), MESHCOLL_OK);
    cr_assert_eq(mc_limits_poll(rank[0]->job, 2000000), MESHCOLL_OK);
    cr_assert_eq(mc_limits_poll(rank[0]->job, 3000000), MESHCOLL_OK);
    cr_assert_eq(mc_limits_poll(rank[0]->job, 4000000), MESHCOLL_ERR_TIMEOUT);
    close_ranks(r);
}

Test(limits, of_a_request_hold_instead_of_the_mesh_s)
{
    meshcoll_request_t *const r = receive_nothing();
    cr_assert_eq(meshcoll_set_timeout(rank[0], 0.1), MESHCOLL_OK);
    cr_assert_eq(meshcoll_set_request_timeout(r, 0), MESHCOLL_OK);
    for (int64_t now = 1000; now < 100000; now += 100)
        cr_assert_eq(mc_limits_poll(rank[0]->job, now), MESHCOLL_OK);
    cr_assert_eq(meshcoll_set_request_timeout(r, 99.2), MESHCOLL_OK);
    cr_assert_eq(mc_limits_poll(rank[0]->job, 100000), MESHCOLL_OK);
    cr_assert_eq(mc_limits_poll(rank[0]->job, 100300), MESHCOLL_ERR_TIMEOUT);
    close_ranks(r);
}

Test(limits, are_numbers_of_seconds)
{
    meshcoll_t *one[1];
    meshcoll_params_t params = {.size = sizeof params, .timeout = "1.5"};
    cr_assert_eq(mc_inproc_create("x=1", &params, one), MESHCOLL_OK);
    cr_expect_eq(one[0]->timeout_ms, 1500);
    cr_expect_eq(meshcoll_set_timeout(one[0], -1), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_set_timeout(NULL, 1), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_set_request_timeout(NULL, 1), MESHCOLL_ERR_INVALID_ARG);
    meshcoll_destroy(one[0]);
    static const char *const wrong[] = {"", "soon", "3 s", "-1", "nan"};
    for (size_t i = 0; i < MC_COUNT(wrong); i++) {
        params.timeout = wrong[i];
        cr_expect_eq(mc_inproc_create("x=1", &params, one), MESHCOLL_ERR_PARSE, "'%s'", wrong[i]);
    }
    params.timeout = "0";
    cr_assert_eq(mc_inproc_create("x=1", &params, one), MESHCOLL_OK);
    cr_expect_eq(one[0]->timeout_ms, 0);
    meshcoll_destroy(one[0]);
    params.timeout = NULL;
    cr_assert_eq(mc_inproc_create("x=1", &params, one), MESHCOLL_OK);
    cr_expect_eq(one[0]->timeout_ms, 1800000);
    meshcoll_destroy(one[0]);
}

/* What was looked at long ago and has not ended is told as that; what has ended is not. */
Test(blame, of_old_records)
{
    enum { LONG_MS = 2 * MC_WAITS_FRESH_MS };
    meshcoll_request_t *r[2];
    mc_waits_t seen;
    const meshcoll_args_t call = {.collective = MESHCOLL_ALLREDUCE};
    cr_assert_eq(mc_inproc_create("x=2", NULL, rank), MESHCOLL_OK);
    begin(0, &call, &r[0]);
    cr_assert_eq(mc_limits_poll(rank[0]->job, now_ms() - LONG_MS), MESHCOLL_OK);
    mc_waits_copy(rank[0]->job, 0, &seen);
    cr_expect_eq(seen.n, 0);
    cr_expect(seen.has_last && seen.last.peer == 1);
    begin(1, &call, &r[1]);
    for (int left = 2; left > 0;) {
        left = 0;
        for (int i = 0; i < 2; i++) {
            if (r[i] && meshcoll_test(r[i]) == MESHCOLL_OK)
                r[i] = NULL;
            left += r[i] != NULL;
        }
    }
    mc_waits_copy(rank[0]->job, 0, &seen);
    cr_expect_eq(seen.n, 0);
    cr_expect_not(seen.has_last);
    for (int i = 0; i < 2; i++)
        meshcoll_destroy(rank[i]);
}

static bool has_mesh(const mc_job_t *job, const meshcoll_t *h)
{
    mc_waits_t seen;
    bool found = false;
    mc_waits_copy(job, 0, &seen);
    for (int32_t i = 0; i < seen.n_meshes; i++)
        found = found || seen.mesh[i].id == mc_wait_part(h);
    return found;
}

/* A mesh for which there is no room is in the record as soon as there is. */
Test(blame, of_more_meshes_than_a_record_has)
{
    enum { MESHES = MC_WAITS_MESHES + 2 };
    static meshcoll_t mesh[MESHES];
    static mc_job_t job;
    cr_assert_eq(mc_waits_open(&job), MESHCOLL_OK);
    for (uint32_t i = 0; i < MESHES; i++) {
        mesh[i].job = &job;
        mesh[i].context = (mc_context_t){.number = i, .creation = i};
        mc_job_add(&mesh[i]);
    }
    cr_expect(has_mesh(&job, &mesh[MC_WAITS_MESHES - 1]));
    cr_expect_not(has_mesh(&job, &mesh[MESHES - 1]));
    for (int i = 0; i < 2; i++) {
        mc_waits_leave(&mesh[i]);
        mesh[i].entry.state = MC_MESH_CLOSED;
        cr_expect_not(has_mesh(&job, &mesh[i]));
    }
    for (int i = 2; i < MESHES; i++)
        cr_expect(has_mesh(&job, &mesh[i]), "%d", i);
    mc_waits_close(&job);
}
