#include "support/drawn.h"

#include <stdio.h>
#include <string.h>

/* Often at the edge, else of any order of magnitude up to 128 KiB in all. */
static size_t draw_count(mc_random_t *r, size_t element_bytes)
{
    static const size_t edge[] = {0, 1, 2, 3};
    if (mc_random_below(r, 5) == 0)
        return edge[mc_random_below(r, sizeof edge / sizeof *edge)];
    const size_t most = (size_t)1 << (4 + mc_random_below(r, 14));
    return mc_random_below(r, most) / element_bytes | mc_random_below(r, 2);
}

/* A text that says its segments keeps them; those of two sides take turns. */
static void draw_strategy(mc_random_t *r, const mc_sample_t *sample, mc_drawn_t *d)
{
    d->strategy[0] = '\0';
    if (sample->n == 0 || mc_random_below(r, 4) == 0)
        return;
    const char *const text = sample->text[mc_random_below(r, (size_t)sample->n)];
    const size_t segments = (1 + mc_random_below(r, 5)) * (strchr(text, '|') ? 2 : 1);
    const bool said = strstr(text, "segments=");
    if (said || mc_random_below(r, 3) == 0)
        snprintf(d->strategy, sizeof d->strategy, "%s", text);
    else
        snprintf(d->strategy, sizeof d->strategy, "%s segments=%zu", text, segments);
}

void mc_draw(mc_random_t *r, int size, const mc_sample_t sample[MESHCOLL_COLLECTIVES],
             mc_drawn_t *d)
{
    mc_case_t *const c = &d->c;
    *c = (mc_case_t){.op = MESHCOLL_SUM};
    c->collective = (meshcoll_collective_t)mc_random_below(r, MESHCOLL_COLLECTIVES);
    c->datatype = (meshcoll_datatype_t)mc_random_below(r, MESHCOLL_DATATYPES);
    if (mc_case_reduces(c->collective))
        c->op = mc_element_op(c->datatype, (int)mc_random_below(r, 1 << 16));
    if (mc_case_is_rooted(c->collective))
        c->root = (int)mc_random_below(r, (size_t)size);
    c->in_place = mc_random_below(r, 3) == 0;
    c->bare = mc_random_below(r, 2) == 0;
    c->count = draw_count(r, meshcoll_datatype_size(c->datatype));
    const bool blocks = mc_case_has_blocks(c->collective);
    if (blocks)
        c->count = (c->count + (size_t)size - 1) / (size_t)size;
    d->unequal = blocks && mc_random_below(r, 2) == 0;
    d->how = (mc_how_t)mc_random_below(r, MC_HOWS);
    d->salt = mc_random_below(r, 1 << 20);
    draw_strategy(r, &sample[c->collective], d);
    /* an alltoallv takes three exchanges at most */
    if (c->collective == MESHCOLL_ALLTOALL && d->unequal && strstr(d->strategy, "bruck"))
        d->strategy[0] = '\0';
}

/* Elements of the block that goes from one rank to another; elsewhere than in an alltoall `to` is 0. In
 * place as many come back. */
static size_t block_of(const mc_drawn_t *d, int from, int to)
{
    if (!d->unequal)
        return d->c.count;
    const bool turned = d->c.in_place && to > from;
    const int key = turned ? to * MC_DRAWN_RANKS + from : from * MC_DRAWN_RANKS + to;
    mc_random_t r = mc_random_of(d->salt, (uint64_t)key);
    return mc_random_below(&r, 4) == 0 ? 0 : mc_random_below(&r, d->c.count + 1);
}

static void draw_counts(const mc_drawn_t *d, int rank, int size, mc_table_t table[2])
{
    const bool exchange = d->c.collective == MESHCOLL_ALLTOALL;
    for (int r = 0; r < size; r++) {
        table[0].counts[r] = exchange ? block_of(d, rank, r) : block_of(d, r, 0);
        table[1].counts[r] = exchange ? block_of(d, r, rank) : block_of(d, r, 0);
    }
}

/* Back to back in order, or in any order and with gaps. Returns the elements up to the end. */
static size_t draw_displs(mc_random_t *r, int size, bool packed, mc_table_t *t)
{
    int order[MC_DRAWN_RANKS];
    size_t end = 0;
    t->packed = packed;
    for (int i = 0; i < size; i++) {
        const size_t j = packed ? (size_t)i : mc_random_below(r, (size_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < size; i++) {
        end += packed || mc_random_below(r, 2) ? 0 : mc_random_below(r, 5);
        t->displs[order[i]] = end;
        end += t->counts[order[i]];
    }
    return end;
}

/* In place: this rank's block of the other buffer, or all of it. */
static void place(const mc_drawn_t *d, int rank, mc_drawn_layout_t *l)
{
    for (int k = 0; k < 2; k++) {
        l->buffer[k] = k;
        l->at[k] = l->shift[k];
    }
    const mc_share_t in = mc_case_share_in(&d->c, rank), out = mc_case_share_out(&d->c, rank);
    if (!d->c.in_place || in == MC_SHARE_NOTHING || out == MC_SHARE_NOTHING)
        return;
    const int inner = out == MC_SHARE_BLOCK ? 1 : 0, outer = 1 - inner;
    const bool block = in == MC_SHARE_BLOCK || out == MC_SHARE_BLOCK;
    l->buffer[inner] = outer;
    l->at[inner] = l->shift[outer] + (block ? l->table[outer].displs[rank] : 0);
}

void mc_draw_layout(const mc_drawn_t *d, int rank, int size, mc_drawn_layout_t *l)
{
    const mc_share_t share[2] = {mc_case_share_in(&d->c, rank), mc_case_share_out(&d->c, rank)};
    /* reduce_scatterv takes no displs; of the others each rank has its own */
    const bool plain = !d->unequal || d->c.collective == MESHCOLL_REDUCE_SCATTER;
    mc_random_t r = mc_random_of(d->salt, (uint64_t)(1 << 20) + (uint64_t)rank);
    draw_counts(d, rank, size, l->table);
    for (int k = 0; k < 2; k++) {
        const bool packed = plain || mc_random_below(&r, 3) == 0;
        const size_t end = draw_displs(&r, size, packed, &l->table[k]);
        const bool whole = share[k] == MC_SHARE_WHOLE && mc_case_has_blocks(d->c.collective);
        const size_t block = l->table[k].counts[rank];
        if (k == 1 && d->c.in_place && d->c.collective == MESHCOLL_ALLTOALL) {
            l->table[1] = l->table[0];
            l->elements[1] = l->elements[0];
        } else {
            l->elements[k] = whole ? end : share[k] == MC_SHARE_BLOCK ? block : d->c.count;
        }
        l->own[k] = share[k] == MC_SHARE_NOTHING ? 0 : l->elements[k];
        l->shift[k] = mc_random_below(&r, 4);
    }
    place(d, rank, l);
}

const char *mc_drawn_print(const mc_drawn_t *d, char *buffer, size_t capacity)
{
    static const char *const how[] = {"blocking", "begun", "begun by name", "persistent",
                                      "persistent by name"};
    char what[160];
    snprintf(buffer, capacity, "%s%s, %s, %s", mc_case_print(&d->c, what, sizeof what),
             d->unequal ? " at most, unequal blocks" : "", how[d->how],
             d->strategy[0] ? d->strategy : "the planner's");
    return buffer;
}
