/* The checks of a call's arguments and of the kind of its memory, and what follows for reproducible sums. */
#ifndef MC_CALL_ARGS_H
#define MC_CALL_ARGS_H

#include "runtime/handle/handle.h"

/* The counts of a call that needs a table of them and was passed NULL. */
extern const size_t mc_no_counts[1];
/* Checks the arguments `given` of a call. *args receives them with defaults for what is not given,
 * and with the root as a mesh rank. ERR_INVALID_ARG otherwise. */
int mc_args_check(const meshcoll_t *h, const meshcoll_args_t *given, meshcoll_args_t *args);

/* The bytes of the input and output buffers that this rank uses, and the offset of its block in the
 * larger one. */
typedef struct {
    size_t in, out, block;
} mc_needs_t;
/* Of arguments as the caller gave them, checked. */
mc_needs_t mc_args_needs(const meshcoll_t *h, const meshcoll_args_t *a);

/* Of the whole vector, of checked arguments; of an alltoallv the mean of what this rank sends and receives. */
uint64_t mc_args_bytes(const meshcoll_t *h, const meshcoll_args_t *a);

/* Sets the counts of a call with counts at the root only, on another rank, in its operands: those of
 * this rank's block, and 0 for the others, which no step of this rank touches. They are the
 * handle's, until the next such call. Leaves other calls alone. `args` must be checked. */
int mc_args_own_counts(meshcoll_t *h, const meshcoll_args_t *args, mc_operands_t *operands);

/* Replaces the tables of a call on n ranks by copies in `table`, which has room for as many: the caller may take back
 * its own when the call has returned. */
void mc_args_own_tables(meshcoll_args_t *args, size_t n, size_t *table);

/* Returns the numbering over which a call's sums must follow the aligned tree to be reproducible;
 * NULL: any order will do. `args` must be checked. */
const mc_numbering_t *mc_args_aligned(const meshcoll_t *h, const meshcoll_args_t *args);
/* Must the call be planned over the communicator's ranks? So it is where no strategy over mesh
 * ranks follows the aligned tree, or keeps the order of an operation that does not commute. The
 * plan is then made as if mesh ranks were in the communicator's order, and its ranks are translated
 * when it is wired. */
bool mc_plans_by_comm(const meshcoll_t *h, const meshcoll_args_t *args);

/* Is a checked call on device memory, and on which? Looks at the buffers that this rank uses. Managed memory counts as
 * either, and as the host's if both are managed. `host_only`: what does not take device memory; NULL: the call does.
 * ERR_INVALID_ARG where one buffer is device memory and the other the host's; ERR_UNSUPPORTED where the library is
 * built without GPUs. */
int mc_call_memory(const meshcoll_t *h, mc_call_t *call, const char *host_only);
/* For a call in a stream: both must be memory that the GPU uses, managed memory too. */
int mc_call_memory_need(const meshcoll_t *h, mc_call_t *call);

/* A call that is planned when its caller may have taken back its tables and its operation. */
typedef struct {
    mc_call_t call;
    size_t *tables; /* its counts and displs; NULL: it has none */
    bool has_op;    /* the user's operation is its own */
} mc_kept_call_t;

/* Fills in `kept`, which is zero. */
int mc_call_keep(const meshcoll_t *h, const mc_call_t *call, mc_kept_call_t *kept);
void mc_call_unkeep(mc_kept_call_t *kept);

/* "device memory" */
const char *mc_memory_kind_name(mc_memory_kind_t kind);

#endif
