#include "ptx.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* PENDING: stores that a block has under way; LINES: of its cache, of so many bytes each. */
enum { PENDING = 32, LINES = 4096, LINE = 16 };

typedef struct {
    uint64_t at;
    uint32_t size, n;
    unsigned char data[LINE];
} store_t;

struct ptx_block {
    pthread_mutex_t lock;
    pthread_cond_t all;
    uint32_t threads, left;
    uint32_t waiting, turn; /* at the barrier, and how often it has opened */
    bool said, any;
    uint32_t chance;
    uint64_t stored,
        stay; /* when the last store was made; nanoseconds after it until polls let stores leave */
    uint32_t n_pending;
    store_t pending[PENDING];
    uint64_t epoch; /* of loads since the last acquire, from 1 */
    struct {
        uint64_t at, epoch; /* the line's address, and when it was read */
        unsigned char kept[LINE];
    } line[LINES];
    _Alignas(16) unsigned char shared[PTX_SHARED];
};

static pthread_mutex_t joining = PTHREAD_MUTEX_INITIALIZER;

static void need(bool good, const char *what, uint64_t at, uint32_t bytes)
{
    if (good)
        return;
    fprintf(stderr, "an access of %u bytes at %#llx %s\n", bytes, (unsigned long long)at, what);
    _exit(1);
}

/* Of memory between blocks. */
static void need_place(uint64_t at, uint32_t bytes)
{
    need(at >= 4096, "is nowhere", at, bytes);
    need(at % bytes == 0, "is not aligned", at, bytes);
}

static uint32_t draw(ptx_block_t *b)
{
    b->chance ^= b->chance << 13;
    b->chance ^= b->chance >> 17;
    b->chance ^= b->chance << 5;
    return b->chance;
}

/* Memory, each value of it at once. -------------------------------------------------------------- */

static void read_memory(uint64_t at, void *to, uint32_t size, uint32_t n)
{
    const char *const from = (const char *)(uintptr_t)at;
    for (uint32_t i = 0; i < n; i++) {
        char *const v = (char *)to + i * size;
        const void *const p = from + i * size;
        if (size == 1)
            __atomic_load((const uint8_t *)p, (uint8_t *)(void *)v, __ATOMIC_RELAXED);
        else if (size == 2)
            __atomic_load((const uint16_t *)p, (uint16_t *)(void *)v, __ATOMIC_RELAXED);
        else if (size == 4)
            __atomic_load((const uint32_t *)p, (uint32_t *)(void *)v, __ATOMIC_RELAXED);
        else
            __atomic_load((const uint64_t *)p, (uint64_t *)(void *)v, __ATOMIC_RELAXED);
    }
}

static void write_memory(uint64_t at, const void *from, uint32_t size, uint32_t n, int order)
{
    char *const to = (char *)(uintptr_t)at;
    for (uint32_t i = 0; i < n; i++) {
        const char *const v = (const char *)from + i * size;
        void *const p = to + i * size;
        uint64_t value = 0;
        memcpy(&value, v, size);
        if (size == 1)
            __atomic_store_n((uint8_t *)p, (uint8_t)value, order);
        else if (size == 2)
            __atomic_store_n((uint16_t *)p, (uint16_t)value, order);
        else if (size == 4)
            __atomic_store_n((uint32_t *)p, (uint32_t)value, order);
        else
            __atomic_store_n((uint64_t *)p, value, order);
    }
}

/* Stores under way, and what is kept of loads; under the block's lock. ---------------------------- */

static void drain_one(ptx_block_t *b, uint32_t i)
{
    const store_t *const s = &b->pending[i];
    write_memory(s->at, s->data, s->size, s->n, __ATOMIC_RELAXED);
    b->pending[i] = b->pending[--b->n_pending];
}

static void drain(ptx_block_t *b)
{
    while (b->n_pending > 0)
        drain_one(b, draw(b) % b->n_pending);
}

/* What is stored to any of these bytes leaves; no two stores under way have a byte in common. */
static void drain_at(ptx_block_t *b, uint64_t at, uint32_t bytes)
{
    for (uint32_t i = 0; i < b->n_pending;) {
        const store_t *const s = &b->pending[i];
        if (s->at < at + bytes && at < s->at + s->size * s->n)
            drain_one(b, i);
        else
            i++;
    }
}

/* One of them leaves, mostly the last: what was stored first is then seen last. */
static void drain_any(ptx_block_t *b)
{
    drain_one(b, draw(b) % 256 ? b->n_pending - 1 : draw(b) % b->n_pending);
}

/* Forgets what was read of the line with this byte. */
static void forget(ptx_block_t *b, uint64_t at)
{
    if (b->line[at / LINE % LINES].at == at / LINE * LINE)
        b->line[at / LINE % LINES].epoch = 0;
}

static void store(ptx_thread_t *self, uint64_t at, const void *from, uint32_t size, uint32_t n)
{
    ptx_block_t *const b = self->block;
    need_place(at, size * n);
    pthread_mutex_lock(&b->lock);
    drain_at(b, at, size * n);
    if (b->n_pending == PENDING)
        drain_any(b);
    store_t *const s = &b->pending[b->n_pending++];
    *s = (store_t){.at = at, .size = size, .n = n};
    b->stored = b->stay ? ptx_clock() : 0;
    memcpy(s->data, from, (size_t)size * n);
    forget(b, at);
    pthread_mutex_unlock(&b->lock);
}

void ptx_store_weak(ptx_thread_t *self, uint64_t at, const void *from, uint32_t size, uint32_t n)
{
    store(self, at, from, size, n);
}

void ptx_store_relaxed(ptx_thread_t *self, uint64_t at, const void *from, uint32_t size, uint32_t n)
{
    store(self, at, from, size, n);
}

void ptx_store_release(ptx_thread_t *self, uint64_t at, const void *from, uint32_t size, uint32_t n)
{
    ptx_block_t *const b = self->block;
    need_place(at, size * n);
    pthread_mutex_lock(&b->lock);
    drain(b);
    forget(b, at);
    write_memory(at, from, size, n, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&b->lock);
}

void ptx_load_weak(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n)
{
    ptx_block_t *const b = self->block;
    const uint64_t line = at / LINE * LINE, place = at / LINE % LINES;
    need_place(at, size * n);
    pthread_mutex_lock(&b->lock);
    drain_at(b, line, LINE);
    if (b->line[place].at != line || b->line[place].epoch != b->epoch) {
        read_memory(line, b->line[place].kept, 8, 2);
        b->line[place].at = line;
        b->line[place].epoch = b->epoch;
    }
    memcpy(to, b->line[place].kept + at % LINE, (size_t)size * n);
    pthread_mutex_unlock(&b->lock);
}

/* Both are polls: another thread may run before the next. */
void ptx_load_relaxed(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n)
{
    ptx_block_t *const b = self->block;
    need_place(at, size * n);
    pthread_mutex_lock(&b->lock);
    drain_at(b, at, size * n);
    if (b->n_pending > 0 && ptx_clock() >= b->stored + b->stay)
        drain_any(b);
    pthread_mutex_unlock(&b->lock);
    read_memory(at, to, size, n);
    sched_yield();
}

void ptx_load_acquire(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n)
{
    ptx_block_t *const b = self->block;
    ptx_load_relaxed(self, at, to, size, n);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    pthread_mutex_lock(&b->lock);
    b->epoch++;
    pthread_mutex_unlock(&b->lock);
}

/* Shared memory and parameters. ------------------------------------------------------------------- */

static unsigned char *shared(ptx_thread_t *self, uint64_t at, uint32_t size, uint32_t n)
{
    need(at + size * n <= PTX_SHARED, "is outside the shared memory", at, size * n);
    need(at % (size * n) == 0, "of shared memory is not aligned", at, size * n);
    return self->block->shared + at;
}

void ptx_load_shared(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n)
{
    read_memory((uint64_t)(uintptr_t)shared(self, at, size, n), to, size, n);
}

void ptx_store_shared(ptx_thread_t *self, uint64_t at, const void *from, uint32_t size, uint32_t n)
{
    write_memory((uint64_t)(uintptr_t)shared(self, at, size, n), from, size, n, __ATOMIC_RELAXED);
}

void ptx_load_param(ptx_thread_t *self, uint64_t at, void *to, uint32_t size, uint32_t n)
{
    (void)self;
    need(at % (size * n) == 0, "of a parameter is not aligned", at, size * n);
    memcpy(to, (const char *)(uintptr_t)at, (size_t)size * n);
}

/* Blocks. ------------------------------------------------------------------------------------------ */

bool ptx_barrier(ptx_thread_t *self, bool said)
{
    ptx_block_t *const b = self->block;
    pthread_mutex_lock(&b->lock);
    const uint32_t turn = b->turn;
    b->said |= said;
    if (++b->waiting == b->threads) {
        b->any = b->said;
        b->said = false;
        b->waiting = 0;
        b->turn++;
        pthread_cond_broadcast(&b->all);
    }
    while (b->turn == turn)
        pthread_cond_wait(&b->all, &b->lock);
    const bool any = b->any;
    pthread_mutex_unlock(&b->lock);
    return any;
}

ptx_block_t *ptx_join(ptx_block_t **slot, uint32_t threads, uint64_t stay)
{
    static uint32_t blocks;
    pthread_mutex_lock(&joining);
    if (!*slot) {
        *slot = calloc(1, sizeof **slot);
        if (!*slot)
            _exit(2);
        pthread_mutex_init(&(*slot)->lock, NULL);
        pthread_cond_init(&(*slot)->all, NULL);
        (*slot)->threads = threads;
        (*slot)->stay = stay;
        (*slot)->epoch = 1;
        (*slot)->chance = 2654435769u * ++blocks | 1;
    }
    ptx_block_t *const b = *slot;
    pthread_mutex_unlock(&joining);
    return b;
}

void ptx_leave(ptx_block_t **slot)
{
    ptx_block_t *const b = *slot;
    pthread_mutex_lock(&b->lock);
    const bool last = ++b->left == b->threads;
    if (last)
        drain(b);
    pthread_mutex_unlock(&b->lock);
    if (!last)
        return;
    *slot = NULL;
    pthread_cond_destroy(&b->all);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

uint64_t ptx_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
