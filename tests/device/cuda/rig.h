/* Ranks that are processes with a GPU of the fake each, and cases on its memory. */
#ifndef MC_TEST_RIG_H
#define MC_TEST_RIG_H

#include "fake.h"
#include "support/case.h"
#include "support/processes.h"

#include <stdio.h>
#include <stdlib.h>

/* Ends the process, and so its test, with a line. */
#define NEED(good)                                                                          \
    do {                                                                                    \
        if (!(good)) {                                                                      \
            printf("%s:%d: rank %d: not so: %s; %s\n", __FILE__, __LINE__, rig_rank, #good, \
                   meshcoll_last_error());                                                  \
            fflush(stdout);                                                                 \
            _Exit(1);                                                                       \
        }                                                                                   \
    } while (0)
extern int rig_rank;

/* Of a test: what the ranks' environment and mesh are. */
typedef struct {
    const char *mesh;                    /* "gpu=4" */
    const char *blocks, *slot, *ll_slot; /* MESHCOLL_GPU_…; NULL: the default */
    const char *executor;                /* MESHCOLL_GPU_EXECUTOR; NULL: the default */
    const char *libcuda;                 /* instead of the fake; NULL: that */
    const char *timeout, *check, *progress, *explain;
    /* a character for each rank, the same on one machine; NULL: all are on one. By host names, or in
     * the lab's boxes (MC_RIG_BOXES: their processes' ids) */
    const char *machines;
    int gpus;        /* that ranks take in turn; 0: as many as ranks */
    int dies;        /* rank + 1 of one that ends by SIGKILL; 0: none */
    bool tidy;       /* nothing of the driver's memory may be left when the mesh is destroyed, */
    unsigned leaves; /* but for so many pieces, which are the test's own */
} rig_t;
/* Not 0: the tests run on so many GPUs, by the stream executor. */
extern int rig_streams;

/* May this process give its ranks machines of their own? */
bool rig_can_part(void);
#define RIG_CANNOT_PART "this needs the right to set host names (CAP_SYS_ADMIN)"
/* Of a test that cannot run here: prints the line, and has the program end so. */
bool rig_skip(const char *why);

/* Runs `rank` in a process for each rank, with its mesh. Did all end well? */
bool rig_run(const rig_t *rig, void (*rank)(meshcoll_t *mesh));

/* Waits for all ranks of the test. */
void rig_meet(void);

/* A case's buffers and their mirrors on the GPU. */
typedef struct {
    mc_case_t c;
    mc_case_rank_t host;
    mc_cu_address_t mirror[2];
    bool moved;           /* the second one is memory of the test's */
    meshcoll_args_t args; /* with addresses there */
} rig_case_t;

void rig_open(meshcoll_t *mesh, const mc_case_t *c, const char *strategy, rig_case_t *r);
/* Has its output, between its guards, lie at `at`, and in place its input too. Not of a call in place
 * whose output is a block. */
void rig_move(rig_case_t *r, mc_cu_address_t at);
/* Fills the mirrors anew, by operations of the stream. */
void rig_fill(rig_case_t *r, mc_cu_stream_t stream);
/* Copies the mirrors back and checks them; false: prints one line. */
bool rig_check(rig_case_t *r, mc_cu_stream_t stream);
void rig_close(rig_case_t *r);

/* A case from beginning to end, enqueued. */
bool rig_enqueue(meshcoll_t *mesh, const mc_case_t *c, const char *strategy, mc_cu_stream_t stream);
/* Does one sum of 500 int32 come out right? */
bool rig_works(meshcoll_t *mesh);
/* A call in place on 100 int32 in device memory, the same for all. */
meshcoll_args_t rig_call(meshcoll_collective_t collective);
void rig_call_free(void);

/* Calls of all collectives, those from number `first` on; test_calls.c. */
void rig_turns(meshcoll_t *mesh, unsigned first, unsigned n);
mc_cu_stream_t rig_new_stream(void);
/* Does meshcoll_last_error() have these words? Else prints it. */
bool rig_says(const char *words);
/* Until the mesh has failed, or long enough; test_faults.c. */
int rig_await_error(meshcoll_t *mesh);

/* The tests: each returns whether it passed. */
/* clang-format off */
#define RIG_TESTS(X)                                                                            \
    X(collectives) X(strategies) X(host_memory) X(types) X(in_flight) X(ordered) X(persistent)  \
    X(blocking) X(kinds) X(unequal_blocks) X(captured) X(capture_mode) X(no_context) X(many_programs) X(parts) X(known_calls) X(guards)        \
    X(late) X(aborted) X(cannot_open) X(cannot_share) X(cannot_launch) X(one_gpu) X(no_libcuda) X(old_libcuda)  \
    X(no_kernels) X(disagree) X(refused) X(stale) X(stale_captured) X(stale_start) X(differ) X(far_differ) X(progress_thread) X(nothing_left) X(any_order)                     \
    X(streams) X(slow) X(queue_full) X(gave_up) X(killed) X(executor)                              \
    X(registered) X(registered_late) X(registered_captured) X(cannot_register)                     \
    X(learned) X(late_times) X(learned_captured) X(learned_bits) X(explained) X(counted) X(staged) X(staged_ends) X(staged_fails) X(scaled) X(passing)      \
    X(far_collectives) X(far_ragged) X(far_3d) X(far_types) X(far_strategies) X(far_unequal)    \
    X(far_long) X(far_in_flight) X(far_mixed) X(far_parts) X(far_blocking) X(far_persistent)    \
    X(far_threads) X(far_idle) X(far_launch_blocking) X(far_captured) X(far_late) X(far_aborted) X(far_killed)         \
    X(far_refused) X(far_cannot_open) X(far_cannot_launch) X(far_left) X(far_mismatch)            \
    X(far_streams) X(far_lab) X(far_explained) X(far_registered)                                            \
    X(tracks) X(far_tracks)                                                                     \
    X(far_direct) X(far_direct_ordered) X(far_direct_one_end) X(far_direct_cannot)              \
    X(far_direct_full) X(far_direct_fails) X(far_direct_setting)
/* clang-format on */
#define RIG_DECLARE(name) bool test_##name(void);
RIG_TESTS(RIG_DECLARE)
#undef RIG_DECLARE

/* The image that mc_cuda_image gives; NULL: none, as of a library built without nvcc. */
extern const void *rig_image;

#endif
