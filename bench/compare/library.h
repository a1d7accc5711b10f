/*
 * The library that a peer program measures: library_mpi.c is any MPI, library_meshcoll.c is
 * meshcoll. Everything else in the program is the same for all of them. float32, sum, root 0.
 */
#ifndef COMPARE_LIBRARY_H
#define COMPARE_LIBRARY_H

#include <stdbool.h>
#include <stdio.h>

typedef enum {
    BCAST,
    REDUCE,
    SCATTER,
    GATHER,
    ALLGATHER,
    REDUCE_SCATTER,
    ALLREDUCE,
    ALLTOALL,
    BARRIER,
    KINDS
} kind_t;

/* One operation. `in` or `out` is NULL where this rank has none; bcast has one buffer, `in` at the
 * root and `out` elsewhere. */
typedef struct {
    kind_t kind;
    int count; /* of the whole vector, or of a block where ranks hold blocks */
    float *in, *out;
} call_t;

/* After MPI_Init. `mesh` may be NULL; an MPI has no use for it. */
void library_open(const char *mesh);
void library_close(void);
void library_version(char *text, int room);

/* library_run blocks. With `persistent`, the request is made here and library_run starts it and
 * waits; until library_done. Ends the program where the library has no such request. */
void library_prepare(const call_t *call, bool persistent);
void library_run(const call_t *call);
void library_done(void);
/* What the library tells of the prepared request, as members of a JSON object, or nothing. */
void library_print(FILE *to);

/* What the program itself needs between operations. */
void library_barrier(void);
void library_share(char *one); /* rank 0's, to all */

/* In peer.c: one line on standard error, then the whole program ends. */
_Noreturn void die(const char *what, const char *text);

#endif
