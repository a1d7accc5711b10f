/*
 * Exchanges over the caller's out-of-band allgather, before any transport exists. A rank that has
 * failed still takes part: the others would wait for it.
 */
#ifndef MC_BASE_GATHER_H
#define MC_BASE_GATHER_H

#include "base/base.h"

/* Returns OK where all ranks pass OK, else an error on every rank: this rank's own, or the status
 * of the lowest rank that failed. Collective. */
int mc_agree(const meshcoll_oob_t *oob, int status);

/* Gathers `bytes` bytes of each rank into *all, by rank, which is the caller's to free. Where a
 * rank passes an error or has no memory, nothing is gathered and all ranks return an error.
 * Collective. */
int mc_gather(const meshcoll_oob_t *oob, int status, const void *mine, size_t bytes, void **all);

/* Rounds of records that carry their rank's status, so that no round is needed for it alone. Memory
 * for all of them is allocated before the first: a rank without it can still report that. */
enum { MC_ROUND_ROOM = 4096, MC_ROUND_FIRST = 512, MC_ROUND_FEW = 32 << 10, MC_ROUND_SPARES = 8 };
typedef struct {
    const meshcoll_oob_t *oob;
    char *own; /* this rank's record, to fill: its status in 4 bytes first. NULL: no room at all */
    char *all; /* all ranks' records, by rank */
    size_t room;            /* bytes that a record may have */
    char *memory;           /* of both; NULL: none, and the first round reports it */
    struct mc_spare *spare; /* instead of it, of MC_ROUND_SPARES that a process has */
} mc_rounds_t;

/* The first record has at most MC_ROUND_FIRST bytes. */
void mc_rounds_open(mc_rounds_t *rounds, const meshcoll_oob_t *oob);
void mc_rounds_close(mc_rounds_t *rounds);
/* Makes room for records of `bytes`, the same on all ranks. Only above MC_ROUND_ROOM that takes a
 * round of its own, in which ranks agree that they have the memory. Collective. */
int mc_rounds_reserve(mc_rounds_t *rounds, int status, size_t bytes);
/* Exchanges records of `bytes`; returns as mc_agree. Collective. */
int mc_round(mc_rounds_t *rounds, int status, size_t bytes);

#endif
