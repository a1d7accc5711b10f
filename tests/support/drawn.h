/* A call drawn from a seed, for differential tests: the same on all ranks, but for what a rank may
 * choose alone. */
#ifndef MC_TEST_DRAWN_H
#define MC_TEST_DRAWN_H

#include "compose/strategy/strategy.h"
#include "support/case.h"
#include "support/random.h"
#include "support/strategies.h"

enum { MC_DRAWN_RANKS = 64 };

/* Those by name are the collective's own functions, as meshcoll_ibcast, which take no strategy. */
typedef enum {
    MC_BLOCKING,
    MC_BEGUN,
    MC_BEGUN_BY_NAME,
    MC_PERSISTENT,
    MC_PERSISTENT_BY_NAME,
    MC_HOWS
} mc_how_t;

typedef struct {
    mc_case_t c; /* `count`: with unequal blocks the most elements one has */
    bool unequal;
    mc_how_t how;
    uint64_t salt;
    char strategy[MC_STRATEGY_TEXT + 32]; /* "": the planner's */
} mc_drawn_t;

/* One side's blocks at this rank, in elements. */
typedef struct {
    size_t counts[MC_DRAWN_RANKS], displs[MC_DRAWN_RANKS];
    bool packed; /* displs are what NULL says */
} mc_table_t;

/* Where a rank's data of one call lie. */
typedef struct {
    mc_table_t table[2];          /* of in and out; made, if not used, without blocks too */
    size_t elements[2], shift[2]; /* of each buffer, and unused ones before it */
    int buffer[2];                /* in and out lie in this one, */
    size_t at[2];                 /* from this element on */
    size_t own[2];                /* elements, gaps included; 0 where the rank uses none */
} mc_drawn_layout_t;

/* `sample`: the mesh's, by collective. */
void mc_draw(mc_random_t *r, int size, const mc_sample_t sample[MESHCOLL_COLLECTIVES],
             mc_drawn_t *d);
void mc_draw_layout(const mc_drawn_t *d, int rank, int size, mc_drawn_layout_t *l);
const char *mc_drawn_print(const mc_drawn_t *d, char *buffer, size_t capacity);

#endif
