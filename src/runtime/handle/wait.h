/* What a request waits for, as a record that can be printed, sent and compared: of a fixed size and without pointers. */
#ifndef MC_HANDLE_WAIT_H
#define MC_HANDLE_WAIT_H

#include "base/base.h"

enum {
    MC_WAIT_MESH = 32,
    MC_WAIT_STRATEGY = 96,
    MC_WAIT_PHASE = 48,
    MC_WAIT_HOST = 40,
    MC_WAIT_PLACE = 16
};

/* What the caller has called. */
typedef enum {
    MC_WAIT_COLLECTIVE,
    MC_WAIT_BARRIER,
    MC_WAIT_COUNTS,
    MC_WAIT_SEND,
    MC_WAIT_RECV,
    MC_WAIT_DESTROY, /* of the last mesh of a job */
    MC_WAIT_LEAD     /* the barrier of a lead: the library's own */
} mc_wait_kind_t;

/* What it needs to continue. */
typedef enum {
    MC_AWAITS_WORK,      /* nothing: it is at work itself */
    MC_AWAITS_RECEIVE,   /* a message */
    MC_AWAITS_SEND,      /* that the peer takes a message */
    MC_AWAITS_CREDIT,    /* that the peer asks for a message, or confirms one */
    MC_AWAITS_GREETING,  /* the peer's end of a new connection */
    MC_AWAITS_COUNTS,    /* an alltoallv: the sizes of the blocks that pass this rank */
    MC_AWAITS_AGREEMENT, /* that ranks compare the call, or have learned which strategy it takes */
    MC_AWAITS_FLUSH,     /* that the network takes what was sent */
    MC_AWAITS_ALL        /* that all ranks have destroyed their meshes */
} mc_awaited_t;

/* Where a rank is: "box" 1. The outermost dimension of its mesh; where there is one dimension, its
 * machine. */
typedef struct {
    char name[MC_WAIT_PLACE]; /* "": all ranks are in one place */
    int32_t at;
} mc_wait_place_t;

typedef struct mc_wait {
    int32_t kind, awaits;  /* mc_wait_kind_t, mc_awaited_t */
    uint32_t mesh;         /* id of the mesh, the same on all its ranks */
    uint32_t number;       /* of calls, or of persistent operations: of its own */
    int32_t is_persistent; /* else a call */
    int32_t on_device;     /* its buffers are device memory */
    int32_t collective;    /* meshcoll_collective_t */
    int32_t datatype;      /* meshcoll_datatype_t */
    int32_t op, root; /* meshcoll_op_t, MESHCOLL_OPS: a user's; the caller's number; -1: none */
    uint32_t digest;  /* of the call (handle/digest.h); 0: of the library's own */
    int32_t tag;      /* of a tagged message; MESHCOLL_ANY_TAG */
    uint64_t count, bytes; /* the caller's elements, 0: not known yet; bytes of these */
    uint64_t message;      /* bytes of the message that it waits for */
    int32_t phase, phases; /* from 0 on; 0 phases: it is in none */
    uint32_t step, steps;  /* from 0 on; 0 steps: it is at none */
    int32_t peer;          /* rank of the job; -1: none, or any */
    int32_t known_as;      /* the caller's number of the peer in the job's first mesh */
    mc_wait_place_t place; /* of the peer */
    int32_t in_part;       /* the caller's number of the peer in a sub-mesh; -1: it is none */
    int64_t waited_ms;     /* in the library, in this run */
    int64_t still_ms;      /* since its last progress */
    int64_t age_ms;        /* of this record */
    char mesh_text[MC_WAIT_MESH];
    char strategy[MC_WAIT_STRATEGY], phase_text[MC_WAIT_PHASE]; /* cut to fit */
} mc_wait_t;

#endif
