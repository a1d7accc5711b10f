/* Events by time, for the event loop: those of one instant are a list, and a heap has the instants; internal to
 * src/simulate. Functions are inline, as the loop spends its time here. */
#ifndef MC_SIMULATE_QUEUE_H
#define MC_SIMULATE_QUEUE_H

#include "base/base.h"

#include <stdlib.h>

/* Pairs of numbers. Zeros are an empty one. */
typedef struct {
    uint32_t actor, step;
} mc_event_t;
typedef struct {
    mc_event_t *at;
    uint32_t n, capacity;
} mc_event_list_t;

typedef struct {
    int64_t time; /* negative: unused */
    mc_event_list_t events;
    uint32_t unused; /* + 1: the next unused one */
} mc_instant_t;

enum { MC_RECENT_BITS = 8 };
typedef struct {
    mc_instant_t *instant;
    struct {
        int64_t time;
        uint32_t instant;
    } * heap; /* of four children; two instants may have the same time */
    uint32_t n, capacity, n_heap, heap_capacity, unused;
    uint32_t recent[1 << MC_RECENT_BITS]; /* by a hash of their time, to find them again */
    bool failed;                          /* no memory */
} mc_queue_t;

static inline void mc_event_push(mc_event_list_t *list, uint32_t actor, uint32_t step, bool *failed)
{
    if (list->n == list->capacity) {
        mc_event_t *const grown = mc_grown(list->at, list->n, &list->capacity, sizeof *grown);
        if (!grown) {
            *failed = true;
            return;
        }
        list->at = grown;
    }
    list->at[list->n++] = (mc_event_t){actor, step};
}

static inline bool mc_queue_grow(mc_queue_t *q)
{
    void *const heap = mc_grown(q->heap, q->n_heap, &q->heap_capacity, sizeof *q->heap);
    q->heap = heap ? heap : q->heap;
    if (q->unused)
        return heap;
    mc_instant_t *const grown = mc_grown(q->instant, q->n, &q->capacity, sizeof *grown);
    q->instant = grown ? grown : q->instant;
    if (!grown)
        return false;
    grown[q->n] = (mc_instant_t){.time = -1};
    q->unused = ++q->n;
    return heap;
}

static inline void mc_queue_add(mc_queue_t *q, int64_t time, uint32_t actor, uint32_t step)
{
    const uint64_t hash = (uint64_t)time * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t *const recent = &q->recent[hash >> (64 - MC_RECENT_BITS)];
    if (*recent >= q->n || q->instant[*recent].time != time) {
        if (!mc_queue_grow(q)) {
            q->failed = true;
            return;
        }
        uint32_t at = q->n_heap++;
        for (; at > 0 && q->heap[(at - 1) / 4].time > time; at = (at - 1) / 4)
            q->heap[at] = q->heap[(at - 1) / 4];
        *recent = q->unused - 1;
        q->unused = q->instant[*recent].unused;
        q->instant[*recent].time = q->heap[at].time = time;
        q->heap[at].instant = *recent;
    }
    mc_event_push(&q->instant[*recent].events, actor, step, &q->failed);
}

/* Takes the first instant: its events go to `events`, whose memory the queue takes in return. */
static inline void mc_queue_take(mc_queue_t *q, mc_event_list_t *events)
{
    const uint32_t first = q->heap[0].instant, last = --q->n_heap;
    const mc_event_list_t taken = q->instant[first].events;
    uint32_t at = 0;
    for (;;) {
        uint32_t least = 4 * at + 1;
        for (uint32_t k = least + 1; k < 4 * at + 5 && k < last; k++)
            least = q->heap[k].time < q->heap[least].time ? k : least;
        if (least >= last || q->heap[least].time >= q->heap[last].time)
            break;
        q->heap[at] = q->heap[least];
        at = least;
    }
    q->heap[at] = q->heap[last];
    events->n = 0;
    q->instant[first] = (mc_instant_t){-1, *events, q->unused};
    q->unused = first + 1;
    *events = taken;
}

static inline void mc_queue_free(mc_queue_t *q)
{
    for (uint32_t i = 0; i < q->n; i++)
        free(q->instant[i].events.at);
    free(q->instant);
    free(q->heap);
}

#endif
