#include "transport/shm/bytes/shm_read.h"

#include "transport/shm/bytes/shm_copy.h"

#include <errno.h>
#include <sys/uio.h>

/* Entries of a scatter list passed to the kernel per call. */
enum { MOST_SPANS = 16 };

/* The next bytes of the message that lie together, n at most; moves on behind them. */
static mc_span_t next_part(mc_io_t *io, size_t n)
{
    const mc_span_t s = *io->message.span;
    const size_t left = s.bytes - io->at;
    const mc_span_t part = {(char *)s.at + io->at, left < n ? left : n};
    io->at += part.bytes;
    if (part.bytes == left) {
        io->message.span++;
        io->at = 0;
    }
    return part;
}

void mc_shm_move(mc_io_t *io, char *data, size_t n, bool out)
{
    while (n > 0) {
        const mc_span_t part = next_part(io, n);
        if (out)
            mc_shm_copy(part.at, data, part.bytes);
        else
            mc_shm_copy(data, part.at, part.bytes);
        data += part.bytes;
        n -= part.bytes;
    }
}

void mc_shm_skip(mc_io_t *io, size_t n)
{
    io->done += n;
    while (n > 0)
        n -= next_part(io, n).bytes;
}

void mc_shm_take(mc_io_t *io, const char *data, size_t n)
{
    if (io->consumer.take)
        io->consumer.take(io->consumer.context, io, data, n);
    else
        mc_shm_move(io, (char *)data, n, true);
    io->done += n;
}

/* A position in a list of spans. */
typedef struct {
    const mc_span_t *span;
    uint32_t n;
    size_t at; /* bytes done of the first span */
} cursor_t;

/* What one system call moves. */
typedef struct {
    struct iovec v[MOST_SPANS];
    uint32_t n;
    size_t bytes;
} pieces_t;

/* The next pieces, of at most `most` bytes together. */
static pieces_t cut(cursor_t *c, size_t most)
{
    pieces_t p = {.n = 0};
    while (c->n > 0 && p.bytes < most && p.n < MOST_SPANS) {
        const size_t left = c->span->bytes - c->at;
        const size_t part = left < most - p.bytes ? left : most - p.bytes;
        p.v[p.n++] = (struct iovec){(char *)c->span->at + c->at, part};
        p.bytes += part;
        c->at += part;
        if (part == left) {
            c->span++;
            c->n--;
            c->at = 0;
        }
    }
    return p;
}

/* Error of a call that moved `got` bytes: 0 or an errno. A short transfer meets unmapped memory
 * and sets no errno. */
static int error_of(ssize_t got, size_t wanted)
{
    if (got == (ssize_t)wanted)
        return 0;
    return got < 0 ? errno : EFAULT;
}

/* Finds the peer's next spans. A list of spans lies in the peer's memory and is read into `list`
 * first. Returns 0 or an errno. */
static int peer_spans(pid_t pid, const mc_io_t *io, mc_span_t list[MOST_SPANS], cursor_t *c)
{
    const uint64_t n = io->offer[2];
    *c = (cursor_t){.span = list, .n = 1};
    if (n == 0) {
        list[0] = (mc_span_t){(char *)(uintptr_t)io->offer[1] + io->done, /* NOLINT */
                              io->message.bytes - io->done};
        return 0;
    }
    c->n = n < MOST_SPANS ? (uint32_t)n : MOST_SPANS;
    c->at = io->offer_at;
    const size_t bytes = c->n * sizeof list[0];
    const struct iovec here = {list, bytes};
    const struct iovec there = {(void *)(uintptr_t)io->offer[1], bytes}; /* NOLINT */
    return error_of(process_vm_readv(pid, &here, 1, &there, 1, 0), bytes);
}

static void move_peer_spans(mc_io_t *io, const mc_span_t *list, const cursor_t *c)
{
    const uint64_t passed = (uint64_t)(c->span - list);
    if (io->offer[2] == 0)
        return;
    io->offer[1] += passed * sizeof *list;
    io->offer[2] -= passed;
    io->offer_at = c->at;
}

/* The piece's place for a copy from or to `other`, with which the kernel's copy does not stall. */
static char *place_in(mc_shm_piece_t *piece, const void *other)
{
    char *const at = piece->data;
    return mc_shm_stalls(at, other) || mc_shm_stalls(other, at) ? at + MC_SHM_ASIDE : at;
}

static cursor_t own_spans(const mc_io_t *io)
{
    return (cursor_t){io->message.span, io->message.n_spans, io->at};
}

static void move_own_spans(mc_io_t *io, const cursor_t *c)
{
    io->message.span = c->span;
    io->message.n_spans = c->n;
    io->at = c->at;
}

/* Where a copy to the spans would stall, the piece is copied there, which does not. */
static void spread(const pieces_t *own, const char *data)
{
    for (uint32_t i = 0; i < own->n; data += own->v[i++].iov_len)
        mc_shm_copy(own->v[i].iov_base, data, own->v[i].iov_len);
}

ssize_t mc_shm_read(pid_t pid, mc_io_t *io, size_t most, mc_shm_piece_t *piece)
{
    mc_span_t list[MOST_SPANS];
    cursor_t there, here = own_spans(io);
    errno = peer_spans(pid, io, list, &there);
    if (errno)
        return -1;
    const char *const from = (const char *)there.span->at + there.at;
    const bool takes = io->consumer.take;
    const bool by_piece = takes || mc_shm_stalls((const char *)io->message.span->at + io->at, from);
    cursor_t ahead = there;
    const size_t bytes =
        cut(&ahead, by_piece && most > MC_SHM_PIECE_BYTES ? MC_SHM_PIECE_BYTES : most).bytes;
    char *const data = by_piece ? place_in(piece, from) : NULL;
    const pieces_t own =
        takes ? (pieces_t){.v = {{data, bytes}}, .n = 1, .bytes = bytes} : cut(&here, bytes);
    const pieces_t peers = cut(&there, own.bytes);
    const struct iovec whole = {data, own.bytes};
    const ssize_t got =
        process_vm_readv(pid, by_piece ? &whole : own.v, by_piece ? 1 : own.n, peers.v, peers.n, 0);
    errno = error_of(got, own.bytes);
    if (errno)
        return -1;
    move_peer_spans(io, list, &there);
    move_own_spans(io, &here);
    if (takes)
        io->consumer.take(io->consumer.context, io, data, own.bytes);
    else if (by_piece)
        spread(&own, data);
    io->done += own.bytes;
    return got;
}

static bool write_all(pid_t pid, uint64_t to, const void *from, size_t n)
{
    const struct iovec here = {(void *)(uintptr_t)from, n}; /* NOLINT */
    const struct iovec there = {(void *)(uintptr_t)to, n};  /* NOLINT */
    return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

bool mc_shm_write(pid_t pid, uint64_t to, const void *from, size_t n, mc_shm_piece_t *piece)
{
    const void *const target = (const void *)(uintptr_t)to; /* NOLINT */
    if (!mc_shm_stalls(target, from))
        return write_all(pid, to, from, n);
    char *const data = place_in(piece, target);
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < MC_SHM_PIECE_BYTES ? n - at : MC_SHM_PIECE_BYTES;
        mc_shm_copy(data, (const char *)from + at, part);
        if (!write_all(pid, to + at, data, part))
            return false;
    }
    return true;
}
