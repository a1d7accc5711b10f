#include "transport/shm/shm_link.h"

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif

/* LEAST: the smallest part worth a system call. OVERSUBSCRIBED: the same where ranks share cores; other
 * ranks have work for the sender's core then, so its help pays for larger messages only. MOST:
 * what a sender writes before its progress turns to other work. */
enum { UNIT = 4096, LEAST = 1 << 14, OVERSUBSCRIBED = 1 << 18, MOST = 1 << 18 };
enum { PAGES_BITS = 24, NUMBER_BITS = 16 };
static const uint64_t PAGES = (UINT64_C(1) << PAGES_BITS) - 1, REFUSED = UINT64_MAX;

/* Bytes of a message that one end has claimed. */
typedef struct {
    size_t at, bytes;
} part_t;

bool mc_shm_can_share(size_t bytes, bool oversubscribed)
{
    return bytes >= 2 * (size_t)(oversubscribed ? OVERSUBSCRIBED : LEAST) && bytes / UNIT < PAGES;
}

uint64_t mc_shm_share_begin(mc_shm_share_t *share)
{
    const uint64_t before = atomic_load_explicit(&share->claimed, memory_order_relaxed);
    const uint64_t number = ((before >> 2 * PAGES_BITS) + 1) & ((1 << NUMBER_BITS) - 1);
    atomic_store_explicit(&share->given, 0, memory_order_relaxed);
    atomic_store_explicit(&share->claimed, number << 2 * PAGES_BITS, memory_order_release);
    return number;
}

/* Half of the pages that are left, within limits; 0 if the channel shares another message by
 * now. */
static uint64_t pages_of(uint64_t claimed, uint64_t number, size_t bytes, size_t most)
{
    const uint64_t all = (bytes + UNIT - 1) / UNIT;
    const uint64_t left = all - (claimed & PAGES) - (claimed >> PAGES_BITS & PAGES);
    if (claimed >> 2 * PAGES_BITS != number)
        return 0;
    uint64_t pages = (left + 1) / 2;
    pages = pages < LEAST / UNIT ? LEAST / UNIT : pages;
    pages = pages > most / UNIT ? most / UNIT : pages;
    return pages < left ? pages : left;
}

static part_t take(mc_shm_share_t *share, uint64_t number, size_t bytes, size_t most, bool back)
{
    uint64_t claimed = atomic_load_explicit(&share->claimed, memory_order_acquire), pages;
    do {
        pages = pages_of(claimed, number, bytes, most);
        if (pages == 0)
            return (part_t){0, 0};
    } while (!atomic_compare_exchange_weak_explicit(&share->claimed, &claimed,
                                                    claimed + (back ? pages << PAGES_BITS : pages),
                                                    memory_order_acq_rel, memory_order_acquire));
    const uint64_t all = (bytes + UNIT - 1) / UNIT;
    const uint64_t first = back ? all - (claimed >> PAGES_BITS & PAGES) - pages : claimed & PAGES;
    const size_t at = first * UNIT, end = (first + pages) * UNIT;
    return (part_t){at, (end < bytes ? end : bytes) - at};
}

size_t mc_shm_share_front(mc_shm_share_t *share, size_t bytes, size_t most)
{
    const uint64_t claimed = atomic_load_explicit(&share->claimed, memory_order_relaxed);
    return take(share, claimed >> 2 * PAGES_BITS, bytes, most, false).bytes;
}

/* The sender claims from the end of the message backwards, so only its first part may end within
 * a page. */
size_t mc_shm_share_stop(mc_shm_share_t *share, size_t bytes)
{
    while (mc_shm_share_front(share, bytes, SIZE_MAX) > 0)
        ;
    const uint64_t claimed = atomic_load_explicit(&share->claimed, memory_order_relaxed);
    const size_t front = (size_t)(claimed & PAGES) * UNIT;
    return front < bytes ? bytes - front : 0;
}

mc_shm_rest_t mc_shm_share_rest(const mc_shm_share_t *share, size_t rest)
{
    const uint64_t given = atomic_load_explicit(&share->given, memory_order_acquire);
    if (given == REFUSED)
        return MC_SHM_SHARE_REFUSED;
    return given == rest ? MC_SHM_SHARE_DONE : MC_SHM_SHARE_OPEN;
}

void mc_shm_share_note(const mc_io_t *io)
{
#ifdef VALGRIND_MAKE_MEM_DEFINED
    const size_t left = io->message.bytes - io->done;
    if (left > 0)
        VALGRIND_MAKE_MEM_DEFINED((char *)io->message.span->at + io->at, left);
#else
    (void)io;
#endif
}

uint32_t mc_shm_share_help(mc_shm_share_t *share, pid_t pid, mc_shm_helped_t *helped,
                           mc_shm_piece_t *piece)
{
    const mc_message_t *const m = &helped->io->message;
    const part_t part = take(share, helped->number, m->bytes, MOST, true);
    if (part.bytes == 0) {
        helped->io = NULL;
        return 0;
    }
    if (mc_shm_write(pid, helped->to + part.at, (const char *)m->span->at + part.at, part.bytes,
                     piece)) {
        atomic_fetch_add_explicit(&share->given, part.bytes, memory_order_release);
        return 1;
    }
    helped->io = NULL;
    atomic_store_explicit(&share->given, REFUSED, memory_order_release);
    return 1;
}
