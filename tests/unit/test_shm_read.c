/* Reads and writes of a process's memory, its own, where the kernel's copies may stall and where not. */
#include "transport/shm/bytes/shm_copy.h"
#include "transport/shm/bytes/shm_read.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAGE = 4096, MOST = 300001, ROOM = MOST + 3 * PAGE, SPANS = 40 };

static mc_shm_piece_t piece;
static unsigned char *from, *to; /* pages */

static void fill(void)
{
    from = aligned_alloc(PAGE, ROOM / PAGE * PAGE + PAGE);
    to = aligned_alloc(PAGE, ROOM / PAGE * PAGE + PAGE);
    cr_assert(from && to);
    for (size_t i = 0; i < ROOM; i++) {
        from[i] = (unsigned char)(i * 31 + i / 251);
        to[i] = 0xee;
    }
}

static void expect_copied(size_t at, size_t there, size_t n, const char *what)
{
    cr_assert_eq(memcmp(to + at, from + there, n), 0, "%s: %zu bytes from %zu to %zu", what, n,
                 there, at);
    cr_expect(at == 0 || to[at - 1] == 0xee, "%s: %zu bytes at %zu", what, n, at);
    cr_expect_eq(to[at + n], 0xee, "%s: %zu bytes at %zu", what, n, at);
    free(from);
    free(to);
}

/* Cuts n bytes at `at` into k spans. */
static void cut(unsigned char *at, size_t n, uint32_t k, mc_span_t *span)
{
    for (uint32_t i = 0; i < k; i++, at += span[i - 1].bytes)
        span[i] = (mc_span_t){at, i + 1 < k ? n / k : n - n / k * (k - 1)};
}

static void take(void *context, mc_io_t *io, const void *data, size_t bytes)
{
    cr_expect_leq(bytes, (size_t)MC_SHM_PIECE_BYTES);
    memcpy((char *)context + io->done, data, bytes);
}

/* A message of n bytes in `offered` spans, read to `own` ones; 0: by a consumer. */
static void read_all(size_t at, size_t there, size_t n, uint32_t offered, uint32_t own)
{
    mc_span_t in[SPANS], out[SPANS];
    fill();
    cut(to + at, n, own, in);
    cut(from + there, n, offered, out);
    mc_io_t io = {.message = {.span = own ? in : NULL, .n_spans = own, .bytes = n}};
    if (!own)
        io.consumer = (mc_consumer_t){take, to + at};
    io.offer[1] = (uintptr_t)(offered > 1 ? (void *)out : out->at);
    io.offer[2] = offered > 1 ? offered : 0;
    for (size_t before = 0; io.done < n; before = io.done) {
        const ssize_t got = mc_shm_read(getpid(), &io, 1 << 17, &piece);
        cr_assert_gt(got, 0);
        cr_assert_leq(got, 1 << 17);
        cr_assert_eq(io.done, before + (size_t)got);
    }
    expect_copied(at, there, n, own ? "read" : "consumed");
}

static const size_t offsets[] = {0, 1, 16, 31, 32, 4080}, sizes[] = {1000, 65536, 65600, MOST};

Test(shm_read, from_anywhere_to_anywhere)
{
    static const uint32_t spans[] = {1, 3, SPANS};
    mc_shm_copy_init();
    for (size_t i = 0; i < MC_COUNT(offsets); i++)
        for (size_t k = 0; k < MC_COUNT(sizes); k++)
            for (size_t s = 0; s < MC_COUNT(spans); s++) {
                const size_t at = offsets[i], there = offsets[(i + s) % MC_COUNT(offsets)];
                read_all(at, there, sizes[k], spans[s], 1);
                read_all(at, there, sizes[k], 1, spans[s]);
                read_all(at, there, sizes[k], spans[s], spans[s]);
                read_all(at, there, sizes[k], spans[s], 0);
            }
}

Test(shm_read, writes_from_anywhere_to_anywhere)
{
    for (size_t i = 0; i < MC_COUNT(offsets); i++)
        for (size_t k = 0; k < MC_COUNT(sizes); k++)
            for (size_t there = 0; there < 64; there += 16) {
                fill();
                cr_assert(mc_shm_write(getpid(), (uintptr_t)to + offsets[i], from + there, sizes[k],
                                       &piece));
                expect_copied(offsets[i], there, sizes[k], "written");
            }
}

Test(shm_read, what_cannot_be_written_is_told)
{
    fill();
    cr_expect_not(mc_shm_write(getpid(), 16, from, PAGE, &piece));
    cr_expect_not(mc_shm_write(getpid(), 16, from + 1, PAGE, &piece));
    free(from);
    free(to);
}
