/* Six ranks of one process, on a mesh of two dimensions, for a test that has one world at a time. */
#ifndef MC_SUPPORT_SIX_H
#define MC_SUPPORT_SIX_H

#include "support/inproc.h"

#include <criterion/criterion.h>

enum { RANKS = 6 };

static meshcoll_t *rank[RANKS];

static void world_open(void)
{
    cr_assert_eq(mc_inproc_create("box=3,gpu=2", NULL, rank), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
}

static void world_close(void)
{
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
}

#endif
