#include "transport/shm/shm_share.h"

#include <sys/uio.h>

/* LEAST: what is worth a call of the kernel beside its bytes. 2 ranks on 2 cores moved 32 KiB in 2.9 us from pieces of 16
 * KiB or 8, else in 5.4; of 8 a broadcast of 16 KiB among 4 took 9.7 us for 6.9. CROWDED: where ranks share cores others than
 * the sender have work for its core, and each call is lost: 8 ranks on 2 cores scattered 1 MiB in 51 us not shared and 61
 * shared, 4 ranks in 47 and 58, but 8 MiB in 538 and 455. MOST: what a sender writes between two
 * looks at everything else, some 20 us. */
enum { UNIT = 4096, LEAST = 1 << 14, CROWDED = 1 << 18, MOST = 1 << 18 };
enum { PAGES_BITS = 24, NUMBER_BITS = 16 };
static const uint64_t PAGES = (UINT64_C(1) << PAGES_BITS) - 1, REFUSED = UINT64_MAX;

/* Bytes of a message that one end has taken. */
typedef struct {
    size_t at, bytes;
} part_t;

bool mc_shm_can_share(size_t bytes, bool crowded)
{
    return bytes >= 2 * (size_t)(crowded ? CROWDED : LEAST) && bytes / UNIT < PAGES;
}

uint64_t mc_shm_share_begin(mc_shm_share_t *share)
{
    const uint64_t before = atomic_load_explicit(&share->claimed, memory_order_relaxed);
    const uint64_t number = ((before >> 2 * PAGES_BITS) + 1) & ((1 << NUMBER_BITS) - 1);
    atomic_store_explicit(&share->given, 0, memory_order_relaxed);
    atomic_store_explicit(&share->claimed, number << 2 * PAGES_BITS, memory_order_release);
    return number;
}

/* Half of the pages that are left, within limits; none where it is another message's by now. */
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

/* The sender's parts come one behind the other from the end: of them only the last page may be a short one. */
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

uint32_t mc_shm_share_help(mc_shm_share_t *share, pid_t pid, mc_shm_helped_t *helped)
{
    const mc_message_t *const m = &helped->io->message;
    const part_t part = take(share, helped->number, m->bytes, MOST, true);
    if (part.bytes == 0) {
        helped->io = NULL;
        return 0;
    }
    const struct iovec here = {(char *)m->span->at + part.at, part.bytes};
    const struct iovec there = {(void *)(uintptr_t)(helped->to + part.at), part.bytes}; /* NOLINT */
    if (process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)part.bytes) {
        atomic_fetch_add_explicit(&share->given, part.bytes, memory_order_release);
        return 1;
    }
    helped->io = NULL;
    atomic_store_explicit(&share->given, REFUSED, memory_order_release);
    return 1;
}
