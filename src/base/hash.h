/*
 * Entries by a key of 64 bits, of which many may have the same: they are taken in the order in which they came.
 * Adding and taking cost the same for any number of entries. Zeros are an empty one; it must not be moved.
 */
#ifndef MC_BASE_HASH_H
#define MC_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FNV-1a of bytes, which goes on from the hash of others or from the start. */
#define MC_FNV_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t mc_fnv(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *const at = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The head of an entry. */
typedef struct mc_hashed {
    struct mc_hashed *next;
    uint64_t key;
} mc_hashed_t;

typedef struct {
    mc_hashed_t *first, *last;
} mc_hashed_list_t;

typedef struct {
    mc_hashed_list_t one,
        *list; /* `list`: as many as `mask` + 1; NULL: `one` alone, while there are few */
    uint32_t mask, n;
} mc_hash_t;

/* Entries of a list on average before there are more lists. */
enum { MC_HASH_FEW = 8 };
void mc_hash_grow(mc_hash_t *m);
/* Frees no entry. */
void mc_hash_free(mc_hash_t *m);

static inline mc_hashed_list_t *mc_hash_list(mc_hash_t *m, uint64_t key)
{
    if (!m->list)
        return &m->one;
    return &m->list[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & m->mask];
}

static inline void mc_hash_append(mc_hashed_list_t *list, mc_hashed_t *e)
{
    e->next = NULL;
    *(list->first ? &list->last->next : &list->first) = e;
    list->last = e;
}

static inline void mc_hash_add(mc_hash_t *m, mc_hashed_t *e, uint64_t key)
{
    e->key = key;
    mc_hash_append(mc_hash_list(m, key), e);
    if (m->n++ / MC_HASH_FEW > m->mask)
        mc_hash_grow(m);
}

/* Removes the entry behind `before`, the first where that is NULL. */
static inline mc_hashed_t *mc_hash_remove(mc_hash_t *m, mc_hashed_list_t *list, mc_hashed_t *before)
{
    mc_hashed_t **const at = before ? &before->next : &list->first;
    mc_hashed_t *const e = *at;
    *at = e->next;
    if (list->last == e)
        list->last = before;
    m->n--;
    return e;
}

static inline mc_hashed_t *mc_hash_first(mc_hash_t *m, uint64_t key)
{
    mc_hashed_t *e = mc_hash_list(m, key)->first;
    while (e && e->key != key)
        e = e->next;
    return e;
}

/* Removes the oldest entry of that key, mostly the first of its list; NULL: there is none. */
static inline mc_hashed_t *mc_hash_take(mc_hash_t *m, uint64_t key)
{
    mc_hashed_list_t *const list = mc_hash_list(m, key);
    mc_hashed_t *before = NULL;
    for (mc_hashed_t *e = list->first; e; before = e, e = e->next)
        if (e->key == key)
            return mc_hash_remove(m, list, before);
    return NULL;
}

/* Finds one for whose key `is` holds (NULL: any), the oldest of that key; NULL: there is none. It looks at all. */
mc_hashed_t *mc_hash_find(const mc_hash_t *m, bool (*is)(const mc_hashed_t *e, const void *context),
                          const void *context);
static inline mc_hashed_t *mc_hash_take_any(mc_hash_t *m)
{
    const mc_hashed_t *const e = mc_hash_find(m, NULL, NULL);
    return e ? mc_hash_take(m, e->key) : NULL;
}

#endif
