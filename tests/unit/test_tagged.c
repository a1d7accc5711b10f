/* Tagged messages among ranks of one process, step by step: which message a receive matches, what
 * waits at the sender, and headers that no sender writes. */
#include "runtime/message/transfer.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 3, MANY = 4 * MC_MESSAGE_WINDOW, TURNS = 200 };

static meshcoll_t *rank[RANKS];

static void world_open(void)
{
    cr_assert_eq(mc_inproc_create("x=3", NULL, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
}

static void world_close(void)
{
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
}

static meshcoll_request_t *send_to(int from, int to, int tag, const void *at, size_t n)
{
    meshcoll_request_t *r = NULL;
    cr_assert_eq(meshcoll_send_begin(rank[from], at, n, MESHCOLL_UINT8, to, tag, &r), MESHCOLL_OK,
                 "%s", meshcoll_last_error());
    return r;
}

static meshcoll_request_t *recv_from(int to, int from, int tag, void *at, size_t n,
                                     meshcoll_received_t *got)
{
    meshcoll_request_t *r = NULL;
    cr_assert_eq(meshcoll_recv_begin(rank[to], at, n, MESHCOLL_UINT8, from, tag, got, &r),
                 MESHCOLL_OK, "%s", meshcoll_last_error());
    return r;
}

/* Ranks in turn; returns how many requests are complete. Entries that are become NULL. */
static int run(meshcoll_request_t **request, int n)
{
    int done = 0;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < n; i++)
            if (request[i] && meshcoll_test(request[i]) == MESHCOLL_OK) {
                request[i] = NULL;
                done++;
            }
    return done;
}

Test(tagged, the_first_receive_that_fits_gets_the_first_message_that_fits)
{
    char a = 1, b = 2, c = 3, got[5] = {0};
    meshcoll_received_t what[5] = {{0}};
    meshcoll_request_t *r[8];
    world_open();
    r[0] = recv_from(0, 2, 7, &got[0], 1, &what[0]);
    r[1] = recv_from(0, MESHCOLL_ANY_SOURCE, 7, &got[1], 1, &what[1]);
    r[2] = recv_from(0, 1, MESHCOLL_ANY_TAG, &got[2], 1, &what[2]);
    r[3] = send_to(1, 0, 9, &a, 1); /* only the third takes it */
    r[4] = send_to(1, 0, 7, &b, 1); /* the second, before the third, which is complete */
    r[5] = send_to(2, 0, 8, &c, 1); /* none */
    cr_assert_eq(run(r, 6), 5);
    cr_assert_not_null(r[0]);
    cr_assert(got[1] == 2 && what[1].source == 1 && what[1].tag == 7);
    cr_assert(got[2] == 1 && what[2].source == 1 && what[2].tag == 9);
    r[1] = recv_from(0, MESHCOLL_ANY_SOURCE, MESHCOLL_ANY_TAG, &got[3], 1, &what[3]);
    r[2] = send_to(2, 0, 7, &a, 1);
    cr_assert_eq(run(r, 3), 3);
    cr_assert(got[3] == 3 && what[3].source == 2 && what[3].tag == 8);
    cr_assert(got[0] == 1 && what[0].source == 2 && what[0].bytes == 1);
    world_close();
}

/* The receiver hears, and wants another rank's message: a window is sent ahead, no more. */
Test(tagged, a_window_is_sent_ahead)
{
    static char out[MANY][200], in[MANY][200];
    static meshcoll_request_t *send[MANY + 1], *recv[MANY];
    char other;
    world_open();
    for (int i = 0; i < MANY; i++) {
        memset(out[i], i, sizeof out[i]);
        send[i] = send_to(0, 1, 3, out[i], sizeof out[i]);
    }
    send[MANY] = recv_from(1, 2, 3, &other, 1, NULL);
    cr_assert_eq(run(send, MANY + 1), MC_MESSAGE_WINDOW);
    for (int i = 0; i < MANY; i++)
        recv[i] = recv_from(1, 0, 3, in[i], sizeof in[i], NULL);
    for (int again = 0; again < 10; again++) {
        run(send, MANY + 1);
        run(recv, MANY);
    }
    for (int i = 0; i < MANY; i++) {
        cr_assert(!send[i] && !recv[i], "message %d", i);
        cr_assert(in[i][0] == (char)i && in[i][199] == (char)i);
    }
    cr_assert_not_null(send[MANY]);
    world_close();
}

/* What was extended for a receive is taken back as its messages are matched. */
Test(tagged, a_window_is_extended_for_a_receive_behind_it)
{
    static char out[MANY];
    static meshcoll_request_t *r[MANY + 1];
    char got;
    world_open();
    for (int i = 0; i < MANY; i++) {
        out[i] = (char)i;
        r[i] = send_to(0, 1, i, &out[i], 1);
    }
    r[MANY] = recv_from(1, MESHCOLL_ANY_SOURCE, MANY - 1, &got, 1, NULL);
    cr_assert_eq(run(r, MANY + 1), MANY + 1);
    cr_assert_eq(got, (char)(MANY - 1));
    for (int i = 0; i < MANY - 1; i++) {
        r[0] = recv_from(1, 0, i, &got, 1, NULL);
        cr_assert_eq(run(r, 1), 1);
        cr_assert_eq(got, (char)i);
    }
    for (int i = 0; i < MANY; i++)
        r[i] = send_to(0, 1, i, &out[i], 1);
    r[MANY] = recv_from(1, 2, 0, &got, 1, NULL); /* so that rank 1 makes progress */
    cr_assert_eq(run(r, MANY + 1), MC_MESSAGE_WINDOW);
    world_close();
}

Test(tagged, bytes_are_counted)
{
    static char out[3 * MC_MESSAGE_EAGER], in[sizeof out];
    meshcoll_request_t *r[6];
    world_open();
    r[0] = send_to(0, 1, 1, out, 10);
    r[1] = send_to(0, 1, 2, out, 1000);
    r[2] = send_to(0, 1, 3, out, sizeof out);
    for (int i = 0; i < 3; i++)
        r[3 + i] = recv_from(1, 0, 1 + i, in, sizeof in, NULL);
    cr_assert_eq(run(r, 6), 6);
    cr_assert_eq(meshcoll_bytes_sent(rank[0], 0), 1010 + sizeof out);
    cr_assert_eq(meshcoll_bytes_sent(rank[1], 0), 0);
    world_close();
}

/* Rank 0 writes a header by hand; rank 1 must end its mesh with a sentence. */
static void expect_refused(const mc_header_t *header, const char *why)
{
    char x = 0;
    mc_header_t copy = *header;
    mc_io_queue_t finished = {0};
    mc_io_t io = {.finished = &finished};
    mc_peer_t *peer;
    world_open();
    meshcoll_request_t *r = recv_from(1, 0, 5, &x, 1, NULL);
    mc_transport_t *const t = rank[0]->transport[0];
    cr_assert_eq(t->ops->connect(t, 1, NULL, &peer), MESHCOLL_OK);
    const mc_span_t span = {&copy, sizeof copy};
    const mc_message_t m = {
        .tag = mc_tag(0, MC_TAG_MESSAGE, 0), .span = &span, .n_spans = 1, .bytes = sizeof copy};
    cr_assert_geq(t->ops->send(peer, &m, &io), 0);
    int status = MESHCOLL_IN_PROGRESS;
    for (int turn = 0; turn < TURNS && status == MESHCOLL_IN_PROGRESS; turn++)
        status = meshcoll_test(r);
    cr_assert_eq(status, MESHCOLL_ERR_TRANSPORT);
    cr_assert(strstr(meshcoll_last_error(), why), "\"%s\" in \"%s\"", why, meshcoll_last_error());
    world_close();
}

Test(tagged, headers_that_make_no_sense_are_refused)
{
    expect_refused(&(mc_header_t){.kind = MC_HEADER_CREDIT + 1}, "makes no sense");
    expect_refused(&(mc_header_t){.kind = MC_HEADER_EAGER, .tag = -1}, "makes no sense");
    expect_refused(&(mc_header_t){.kind = MC_HEADER_OFFER, .bytes = SIZE_MAX}, "makes no sense");
    expect_refused(&(mc_header_t){.kind = MC_HEADER_EAGER, .bytes = MC_MESSAGE_EAGER + 1},
                   "announces more than it may");
    expect_refused(&(mc_header_t){.kind = MC_HEADER_READY, .id = 1}, "was not offered");
    expect_refused(&(mc_header_t){.kind = MC_HEADER_CREDIT, .credits = MC_MESSAGE_CREDITS},
                   "expected 1048544 at most");
}

/* Callbacks ------------------------------------------------------------------------------------- */

typedef struct {
    meshcoll_t *mesh;
    int n_calls, status, blocking;
    char why[256];
    bool blocks, frees;
} called_t;

static void called(void *context, meshcoll_request_t *request, int status)
{
    called_t *const c = context;
    char byte = 0;
    c->n_calls++;
    c->status = status;
    snprintf(c->why, sizeof c->why, "%s", status < 0 ? meshcoll_last_error() : "");
    if (c->blocks)
        c->blocking = meshcoll_recv(c->mesh, &byte, 1, MESHCOLL_UINT8, 1, 77, NULL);
    if (c->frees)
        meshcoll_free(request);
}

/* What one call completes, in passing, is called for before that call returns. */
Test(tagged, a_blocking_call_calls_the_callbacks_of_what_it_completes)
{
    char a = 1, b = 2, first = 0, second = 0;
    called_t c = {0};
    world_open();
    meshcoll_request_t *const r = recv_from(0, 1, 1, &first, 1, NULL);
    cr_assert_eq(meshcoll_set_callback(r, called, &c), MESHCOLL_OK);
    meshcoll_request_t *sent[] = {send_to(1, 0, 1, &a, 1), send_to(1, 0, 2, &b, 1)};
    cr_assert_eq(c.n_calls, 0);
    cr_assert_eq(meshcoll_recv(rank[0], &second, 1, MESHCOLL_UINT8, 1, 2, NULL), MESHCOLL_OK);
    cr_expect(second == 2 && first == 1);
    cr_expect_eq(c.n_calls, 1);
    cr_expect_eq(meshcoll_wait(r), MESHCOLL_OK);
    cr_assert_eq(run(sent, 2), 2);
    world_close();
}

Test(tagged, a_callback_must_not_block_in_a_message)
{
    char a = 1, got = 0;
    called_t c = {.blocks = true};
    world_open();
    c.mesh = rank[0];
    meshcoll_request_t *r[] = {recv_from(0, 1, 1, &got, 1, NULL), send_to(1, 0, 1, &a, 1)};
    cr_assert_eq(meshcoll_set_callback(r[0], called, &c), MESHCOLL_OK);
    cr_assert_eq(run(r, 2), 2);
    cr_expect_eq(c.n_calls, 1);
    cr_expect_eq(c.blocking, MESHCOLL_ERR_INVALID_ARG);
    world_close();
}

/* The error is the request's own: the mesh goes on, and so does the memory of a request freed in its callback. */
Test(tagged, a_callback_learns_why_its_message_was_truncated)
{
    char out[8] = {0}, in[4];
    called_t c = {.frees = true};
    world_open();
    for (int i = 0; i < 3; i++) {
        meshcoll_request_t *const r = recv_from(0, 1, 5, in, sizeof in, NULL);
        cr_assert_eq(meshcoll_set_callback(r, called, &c), MESHCOLL_OK);
        meshcoll_request_t *sent[] = {send_to(1, 0, 5, out, sizeof out)};
        cr_assert_eq(run(sent, 1), 1); /* progresses all ranks of this thread */
        cr_assert_eq(c.n_calls, i + 1);
        cr_expect_eq(c.status, MESHCOLL_ERR_TRUNCATED);
        cr_expect(strstr(c.why, "longer than its buffer of 4"), "%s", c.why);
    }
    world_close();
}

/* Freed while it runs, it is released when it ends, truncated or not. */
Test(tagged, a_truncated_receive_that_was_freed_is_released)
{
    char out[8] = {0}, in[4];
    called_t c = {0};
    world_open();
    meshcoll_request_t *const r = recv_from(0, 1, 5, in, sizeof in, NULL);
    cr_assert_eq(meshcoll_set_callback(r, called, &c), MESHCOLL_OK);
    meshcoll_free(r);
    meshcoll_request_t *sent[] = {send_to(1, 0, 5, out, sizeof out)};
    cr_assert_eq(run(sent, 1), 1);
    cr_assert_eq(c.n_calls, 1);
    meshcoll_request_t *const next = recv_from(0, 1, 6, in, sizeof in, NULL);
    cr_expect_eq(next, r, "a spare one is used first");
    world_close();
}

/* The only event is that of a message to itself, which the send has completed. */
Test(tagged, a_wait_for_any_learns_of_a_message_to_itself, .timeout = 20)
{
    char out = 3, in = 0, other;
    int at = -1;
    world_open();
    meshcoll_request_t *r[] = {recv_from(0, 1, 1, &other, 1, NULL),
                               recv_from(0, 0, 2, &in, 1, NULL)};
    meshcoll_request_t *sent[] = {send_to(0, 0, 2, &out, 1)};
    cr_assert_eq(meshcoll_waitany(2, r, &at), MESHCOLL_OK);
    cr_expect(at == 1 && in == 3);
    meshcoll_request_t *last[] = {r[0], sent[0], send_to(1, 0, 1, &out, 1)};
    cr_assert_eq(run(last, 3), 3);
    world_close();
}
