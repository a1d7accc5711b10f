/* A message that both its ends move, in one process, which writes its own memory. */
#include "transport/shm/shm_link.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 5000000, SHORT = 32768 };

static mc_shm_piece_t piece;

typedef struct {
    mc_shm_share_t share;
    unsigned char *from, *to;
    size_t bytes, read;
    mc_span_t span;
    mc_io_t sending;
    mc_shm_helped_t helped;
} shared_t;

static shared_t begin(size_t bytes)
{
    shared_t s = {.bytes = bytes, .from = malloc(bytes), .to = calloc(bytes, 1)};
    cr_assert(s.from && s.to && mc_shm_can_share(bytes, false));
    for (size_t i = 0; i < bytes; i++)
        s.from[i] = (unsigned char)(1 + (i + i / 255) % 255);
    return s;
}

/* Of a sharing whose number is the channel's next. */
static void ask(shared_t *s)
{
    s->span = (mc_span_t){s->from, s->bytes};
    s->sending.message = (mc_message_t){.span = &s->span, .n_spans = 1, .bytes = s->bytes};
    s->helped = (mc_shm_helped_t){&s->sending, (uintptr_t)s->to, mc_shm_share_begin(&s->share)};
}

static size_t read_on(shared_t *s, size_t most)
{
    const size_t n = mc_shm_share_front(&s->share, s->bytes, most);
    for (size_t i = s->read; i < s->read + n; i++)
        cr_assert_eq(s->to[i], 0, "byte %zu comes twice", i);
    memcpy(s->to + s->read, s->from + s->read, n);
    s->read += n;
    return n;
}

static void end(const shared_t *s)
{
    cr_assert_eq(memcmp(s->to, s->from, s->bytes), 0);
    free(s->from);
    free(s->to);
}

Test(shm_share, is_for_larger_messages_where_ranks_share_cores)
{
    cr_assert(mc_shm_can_share(256 << 10, false));
    cr_assert_not(mc_shm_can_share(256 << 10, true));
    cr_assert(mc_shm_can_share(1 << 20, true));
}

Test(shm_share, both_ends_move_each_byte_once)
{
    static const size_t sizes[] = {SHORT, SHORT + 1, 1000000, MOST};
    for (size_t i = 0; i < MC_COUNT(sizes); i++)
        for (unsigned writes = 0; writes <= 3; writes++) {
            shared_t s = begin(sizes[i]);
            ask(&s);
            size_t n = 1;
            while (n > 0) {
                for (unsigned k = 0; k < writes && s.helped.io; k++)
                    mc_shm_share_help(&s.share, getpid(), &s.helped, &piece);
                n = read_on(&s, 1 << 20);
            }
            cr_expect(writes == 0 ? s.read == s.bytes : s.read < s.bytes, "%zu bytes, %zu read",
                      s.bytes, s.read);
            cr_expect_eq(mc_shm_share_rest(&s.share, s.bytes - s.read), MC_SHM_SHARE_DONE);
            end(&s);
        }
}

Test(shm_share, what_is_taken_must_have_been_written)
{
    shared_t s = begin(MOST);
    ask(&s);
    while (mc_shm_share_help(&s.share, getpid(), &s.helped, &piece))
        ;
    cr_expect_null(s.helped.io);
    cr_expect_eq(mc_shm_share_front(&s.share, s.bytes, MOST), 0);
    cr_expect_eq(mc_shm_share_rest(&s.share, s.bytes), MC_SHM_SHARE_DONE);
    cr_expect_eq(mc_shm_share_rest(&s.share, s.bytes - 4096), MC_SHM_SHARE_OPEN);
    end(&s);
}

/* The word that its message was read may be on its way yet when the next is shared. */
Test(shm_share, a_late_sender_writes_nothing_of_the_next_message)
{
    shared_t s = begin(MOST);
    ask(&s);
    mc_shm_share_begin(&s.share);
    cr_expect_eq(mc_shm_share_help(&s.share, getpid(), &s.helped, &piece), 0);
    cr_expect_null(s.helped.io);
    while (read_on(&s, 1 << 20) > 0)
        ;
    cr_expect_eq(s.read, s.bytes);
    end(&s);
}

Test(shm_share, a_reader_that_stops_knows_what_its_sender_writes_yet)
{
    static const size_t sizes[] = {SHORT + 1, MOST};
    for (size_t i = 0; i < MC_COUNT(sizes); i++)
        for (int writes = 0; writes <= 2; writes++) {
            shared_t s = begin(sizes[i]);
            ask(&s);
            for (int k = 0; k < writes; k++)
                mc_shm_share_help(&s.share, getpid(), &s.helped, &piece);
            read_on(&s, 4096);
            const size_t rest = mc_shm_share_stop(&s.share, s.bytes);
            cr_expect_eq(mc_shm_share_rest(&s.share, rest), MC_SHM_SHARE_DONE);
            cr_expect_eq(rest > 0, writes > 0);
            cr_expect_eq(memcmp(s.to + s.bytes - rest, s.from + s.bytes - rest, rest), 0);
            cr_expect_eq(mc_shm_share_help(&s.share, getpid(), &s.helped, &piece), 0);
            free(s.from);
            free(s.to);
        }
}

Test(shm_share, a_sender_that_cannot_write_says_so)
{
    shared_t s = begin(MOST);
    ask(&s);
    s.helped.to = 0;
    cr_expect_eq(mc_shm_share_help(&s.share, getpid(), &s.helped, &piece), 1);
    cr_expect_null(s.helped.io);
    while (read_on(&s, 1 << 20) > 0)
        ;
    cr_expect_lt(s.read, s.bytes);
    cr_expect_eq(mc_shm_share_rest(&s.share, s.bytes - s.read), MC_SHM_SHARE_REFUSED);
    free(s.from);
    free(s.to);
}
