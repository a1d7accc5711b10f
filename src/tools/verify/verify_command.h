/* meshcoll verify: what is verified, and by which processes. */
#ifndef MC_TOOLS_VERIFY_H
#define MC_TOOLS_VERIFY_H

#include "plan/verify/verify.h"
#include "tools/common/show.h"

#include <stdatomic.h>

/* Which strategies of a mesh. */
typedef enum {
    MC_BREADTH_EVERY, /* every path with every algorithm in every phase */
    MC_BREADTH_COVER, /* every path, every algorithm in every phase once */
    MC_BREADTH_SAMPLE /* named ones, composite algorithms, and some paths */
} mc_breadth_t;

typedef struct {
    mc_mesh_t mesh;
    mc_breadth_t breadth;
    bool segments; /* also in three segments */
} mc_verify_mesh_t;

typedef struct {
    mc_verify_mesh_t *mesh;
    uint32_t n, capacity;
} mc_verify_meshes_t;

void mc_verify_meshes_free(mc_verify_meshes_t *meshes);
/* The breadth for a mesh of this size in a list. */
int mc_verify_meshes_add(mc_verify_meshes_t *meshes, const mc_mesh_t *mesh);
/* All meshes of one dimension (dims[1]), two (dims[2]) up to `max_ranks` ranks; some of three. */
int mc_verify_meshes_all(mc_verify_meshes_t *meshes, const bool dims[4], int32_t max_ranks);

/* Calls `each` for the strategies of a mesh until it returns false. */
int mc_verify_each(meshcoll_collective_t collective, const mc_verify_mesh_t *mesh,
                   bool (*each)(void *context, const mc_strategy_t *strategy), void *context);

/* The roots that are verified: all ranks up to 16, else first, middle and last. */
enum { MC_ALL_ROOTS = 16 };
int32_t mc_verify_roots(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                        int32_t root[MC_ALL_ROOTS]);

/* All strategies of a collective on a mesh, or a share of them: those with number `stripe` modulo
 * `stripes`. */
typedef struct {
    meshcoll_collective_t collective;
    const mc_verify_mesh_t *mesh;
    uint32_t stripe, stripes;
    double weight;       /* roughly the work */
    uint64_t strategies; /* roughly how many, those with segments apart */
} mc_verify_item_t;

enum { MC_VERIFY_JOBS = 256 }; /* the most processes */

typedef struct {
    const mc_verify_item_t *item;
    size_t n;
    const mc_strategy_t *strategy; /* only this one, else NULL */
    const int32_t *root;           /* only these, else NULL */
    int32_t n_roots;
    int32_t jobs, seconds; /* seconds: 0 for no limit */
    mc_verify_options_t options;
} mc_verify_job_t;

/* What is done of an item. */
typedef struct {
    uint64_t strategies, worlds;
    bool done;
    /* the most messages in flight that a world needs in program order, and the first that does; 0:
     * no world is done */
    uint32_t in_flight;
    mc_strategy_t strategy;
    int32_t root;
} mc_verify_count_t;

/* A strategy and a root of an item. */
typedef struct {
    size_t item;
    mc_strategy_t strategy;
    int32_t root;
} mc_verify_at_t;

/* The result, in memory that all processes share. */
typedef struct {
    atomic_size_t next;
    atomic_bool failed;
    atomic_flag failing;
    atomic_ullong worlds;
    char message[512]; /* what the verifier said */
    mc_verify_at_t failure;
    mc_verify_at_t current[MC_VERIFY_JOBS]; /* by process: reported if it crashes */
    double elapsed;
    mc_verify_count_t count[]; /* by item */
} mc_verify_result_t;

/* Shares the items among processes. A world that fails is no error of this function. The result stays until the
 * process ends. */
int mc_verify_run(const mc_verify_job_t *job, mc_verify_result_t **result);

/* Prints what came out, `in_all` with a line for all collectives together. Returns the exit status
 * of the command, or an error. */
int mc_verify_report(const mc_verify_job_t *job, const mc_verify_result_t *result, bool in_all,
                     bool json);

#endif
