/* Launching programs in streams, and learning how they fare. */
#ifndef MC_LAUNCH_LAUNCH_H
#define MC_LAUNCH_LAUNCH_H

#include "gpu/launch/programs.h"

/* Where a call runs. */
typedef struct {
    const void *in;
    void *out;
    mc_cu_stream_t stream;
    uint32_t number;            /* of the call's operation */
    int32_t candidate;          /* of what its calls learn */
    const mc_choice_key_t *key; /* of a call that is timed for that; NULL: it is not */
    struct mc_record *record;   /* of a mesh that records: the call's (times.h) */
} mc_gpu_place_t;

/* Is the stream captured? */
int mc_gpu_captures(const meshcoll_t *h, mc_cu_stream_t stream, bool *captured);
/* Launches it behind the mesh's earlier calls. */
int mc_gpu_launch(meshcoll_t *h, mc_gpu_program_t *program, const mc_gpu_place_t *place);
/* The same in a stream of the library's, whatever that of the place is, and waits until it is
 * complete. */
int mc_gpu_run(meshcoll_t *h, mc_gpu_program_t *program, mc_gpu_place_t place);

/* IN_PROGRESS: launches that were not captured are not all complete; OK; or what went wrong in any
 * launch so far, with which the mesh fails. */
int mc_gpu_state(meshcoll_t *h);
/* Waits for those that are not complete. */
void mc_gpu_await(meshcoll_t *h);
/* Then for the proxy: until ranks of other machines have taken what these launches sent. Ends where the mesh fails,
 * or its time limit is over. */
void mc_gpu_settle(meshcoll_t *h);

#endif
