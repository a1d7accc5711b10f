#include "base/hash.h"

#include <stdlib.h>

/* Fewer allocations than with twice as many lists each time. */
enum { TIMES = 8 };

/* Without memory the lists become longer. */
void mc_hash_grow(mc_hash_t *m)
{
    const uint32_t mask = (m->mask + 1) * TIMES - 1;
    mc_hashed_list_t *const list = calloc((size_t)mask + 1, sizeof *list);
    const mc_hash_t old = *m;
    if (!list)
        return;
    m->list = list;
    m->mask = mask;
    m->one = (mc_hashed_list_t){0};
    for (uint32_t i = 0; i <= old.mask; i++)
        for (mc_hashed_t *e = (old.list ? old.list[i] : old.one).first, *next; e; e = next) {
            next = e->next;
            mc_hash_append(mc_hash_list(m, e->key), e);
        }
    free(old.list);
}

void mc_hash_free(mc_hash_t *m)
{
    free(m->list);
    *m = (mc_hash_t){0};
}

mc_hashed_t *mc_hash_find(const mc_hash_t *m, bool (*is)(const mc_hashed_t *e, const void *context),
                          const void *context)
{
    const mc_hashed_list_t *const list = m->list ? m->list : &m->one;
    for (uint32_t i = 0; i <= m->mask; i++)
        for (mc_hashed_t *e = list[i].first; e; e = e->next)
            if (!is || is(e, context))
                return e;
    return NULL;
}
