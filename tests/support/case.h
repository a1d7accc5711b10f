/*
 * One collective on one rank: buffers filled with what rank and place say, guarded, and checked
 * against the plain definition. Values are such that the result is exact in any type and order.
 */
#ifndef MC_TEST_CASE_H
#define MC_TEST_CASE_H

#include "support/element.h"

#include <meshcoll/meshcoll.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    meshcoll_collective_t collective;
    meshcoll_datatype_t datatype;
    meshcoll_op_t op;
    size_t count;
    int root;
    bool in_place;
    bool bare;      /* buffers a rank does not use are NULL, else there and to be left alone */
    bool on_device; /* a single rank's result is its input, of logical operations too */
} mc_case_t;

/* Bytes before and behind each buffer that nobody may write. */
enum { MC_CASE_GUARD = 64 };

typedef struct {
    int rank, size;
    void *in, *out;  /* to hand to the call */
    char *memory[2]; /* of in and out, guards around them */
    size_t bytes[2]; /* without the guards */
    bool uses_in, uses_out;
} mc_case_rank_t;

/* What a rank holds of the vector. */
typedef enum { MC_SHARE_NOTHING, MC_SHARE_BLOCK, MC_SHARE_WHOLE } mc_share_t;

mc_share_t mc_case_share_in(const mc_case_t *c, int rank);
mc_share_t mc_case_share_out(const mc_case_t *c, int rank);
bool mc_case_has_blocks(meshcoll_collective_t collective);
bool mc_case_is_rooted(meshcoll_collective_t collective);
bool mc_case_reduces(meshcoll_collective_t collective);

/* Element i of what a rank gives, exact in its type; `i` may start anywhere. */
mc_number_t mc_case_value(const mc_case_t *c, int rank, int size, size_t i);
/* x over a number of ranks, as the type divides. */
double mc_case_divided(meshcoll_datatype_t type, double x, int by);

/* 0, or -1 without memory. */
int mc_case_open(const mc_case_t *c, int rank, int size, mc_case_rank_t *r);
/* Writes inputs and guards anew, to run it again. */
void mc_case_fill(const mc_case_t *c, mc_case_rank_t *r);
/* 0, or -1 with one line in `why`. */
int mc_case_check(const mc_case_t *c, const mc_case_rank_t *r, char *why, size_t capacity);
void mc_case_close(mc_case_rank_t *r);

meshcoll_args_t mc_case_args(const mc_case_t *c, const mc_case_rank_t *r, const char *strategy);
/* Runs it on a mesh, as a persistent request or not. 0, or -1 with one line in `why`. */
int mc_case_run(meshcoll_t *mesh, const mc_case_t *c, bool persistent, char *why, size_t capacity);
/* All collectives with three counts; prints the first that fails. */
bool mc_case_run_all(meshcoll_t *mesh, bool persistent);
/* "allreduce int32 sum count 7 root 0 in place" */
const char *mc_case_print(const mc_case_t *c, char *buffer, size_t capacity);

#endif
