#include "transport/shm/shm_link.h"

#include "transport/shm/bytes/shm_read.h"

#include <unistd.h>

/* PART: bytes written before readers see them, so that they copy while the rest is written. LEAST: the bytes of
 * the ring at first; every LAPS it grows to twice as many, so that memory is touched as it is needed. CACHE: the bytes of
 * a core's, where they are unknown. */
enum { PART = 1 << 14, UNIT = 4096, LEAST = 128 << 10, LAPS = 2, CACHE = 1 << 20 };
_Static_assert(PART % MC_PIECE_UNIT == 0, "elements are not cut");

static void forget_read(mc_shm_poster_t *p, mc_shm_board_t *board)
{
    while (p->n > 0 && atomic_load_explicit(&board->post[p->first % MC_SHM_POSTS].left,
                                            memory_order_acquire) == 0) {
        p->first++;
        p->n--;
    }
}

/* Lines that both ends have in their caches are slow to write again, those that have left them are not. Of ranks that
 * share a core the next finds in the cache what the last one wrote (docs/lab-notes/one-box.md). */
void mc_shm_poster_init(mc_shm_poster_t *p, size_t room, bool oversubscribed)
{
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const size_t both = 2 * (size_t)(cache > 0 ? cache : CACHE),
                 wide = oversubscribed ? LEAST : both;
    *p = (mc_shm_poster_t){.room = room, .most = wide < room ? wide : room};
    p->ring = p->most < LEAST ? p->most : LEAST;
}

/* Offset with room for `bytes`, after the newest post or before the oldest; the board's size: none. The ring goes on also
 * where all has been read, as it could start again. */
static size_t room_for(const mc_shm_poster_t *p, size_t bytes)
{
    const size_t oldest = p->n > 0 ? p->at[p->first % MC_SHM_POSTS] : p->room;
    if (p->n == MC_SHM_POSTS)
        return p->room;
    if (p->n > 0 && p->end <= oldest)
        return bytes <= oldest - p->end ? p->end : p->room;
    if (p->end + bytes <= p->ring)
        return p->end;
    if (bytes <= oldest)
        return 0;
    return p->end + bytes <= p->room ? p->end : p->room;
}

static void begin_lap(mc_shm_poster_t *p)
{
    if (++p->laps < LAPS || p->ring == p->most)
        return;
    p->laps = 0;
    p->ring = 2 * p->ring < p->most ? 2 * p->ring : p->most;
}

static uint64_t operation_of(const mc_message_t *m)
{
    return m->tag >> (MC_TAG_KIND_BITS + MC_TAG_SEQ_BITS);
}

/* Is it the next send of the newest post, still unwritten? */
static bool goes_on(const mc_shm_poster_t *p, const mc_message_t *m)
{
    return p->readers > 0 && p->more == m->more + 1 && p->message.bytes == m->bytes &&
           p->message.span->at == m->span->at && operation_of(&p->message) == operation_of(m);
}

bool mc_shm_post(mc_shm_poster_t *p, mc_shm_board_t *board, const mc_message_t *m, bool pushed)
{
    if (goes_on(p, m)) {
        p->readers++;
        p->more--;
        atomic_fetch_add_explicit(&board->post[(p->first + p->n - 1) % MC_SHM_POSTS].left, 1,
                                  memory_order_relaxed);
        return true;
    }
    if (!pushed)
        return false;
    mc_shm_post_write(p, board);
    forget_read(p, board);
    const size_t at = room_for(p, m->bytes);
    if (at == p->room)
        return false;
    const uint32_t i = (p->first + p->n++) % MC_SHM_POSTS;
    p->at[i] = at;
    if (at == 0)
        begin_lap(p);
    p->end = at + (m->bytes + UNIT - 1) / UNIT * UNIT;
    p->readers = 1;
    p->more = m->more;
    p->message = *m;
    atomic_store_explicit(&board->post[i].left, 2, memory_order_relaxed);
    atomic_store_explicit(&board->post[i].filled, 0, memory_order_relaxed);
    return true;
}

void mc_shm_post_told(const mc_shm_poster_t *p, uint64_t word[3])
{
    const uint32_t i = (p->first + p->n - 1) % MC_SHM_POSTS;
    word[0] = 0;
    word[1] = p->at[i];
    word[2] = i;
}

uint32_t mc_shm_post_write(mc_shm_poster_t *p, mc_shm_board_t *board)
{
    const uint32_t i = (p->first + p->n - 1) % MC_SHM_POSTS;
    mc_io_t from = {.message = p->message};
    uint32_t n = 0;
    if (p->readers == 0)
        return 0;
    while (from.done < from.message.bytes) {
        const size_t left = from.message.bytes - from.done, part = left < PART ? left : PART;
        mc_shm_move(&from, board->data + p->at[i] + from.done, part, false);
        from.done += part;
        atomic_store_explicit(&board->post[i].filled, from.done, memory_order_release);
    }
    p->readers = 0;
    atomic_fetch_sub_explicit(&board->post[i].left, 1, memory_order_release);
    for (mc_io_t *io; (io = mc_io_pop(&p->waiting)); n++)
        mc_io_finish(io, MESHCOLL_OK);
    return n + 1;
}

bool mc_shm_post_read(mc_shm_board_t *board, mc_io_t *io)
{
    const mc_shm_post_t *const post = &board->post[io->offer[2]];
    for (size_t n; io->done < io->message.bytes;) {
        n = atomic_load_explicit(&post->filled, memory_order_acquire) - io->done;
        if (n == 0)
            return false;
        mc_shm_take(io, board->data + io->offer[1] + io->done, n);
    }
    mc_shm_post_leave(board, io);
    return true;
}

void mc_shm_post_leave(mc_shm_board_t *board, const mc_io_t *io)
{
    atomic_fetch_sub_explicit(&board->post[io->offer[2]].left, 1, memory_order_release);
}
