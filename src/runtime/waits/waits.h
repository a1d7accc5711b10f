/*
 * What a rank waits for, as a record that can be printed, sent and compared: of a fixed size and
 * without pointers.
 *
 * A waiting thread publishes it where it looks for dead peers (progress/failure.h): at most ten times
 * a second, after its polls and yields. So calls that do not wait for long cost nothing, and a record
 * tells its age. Any other thread of the process may copy it at any time.
 */
#ifndef MC_WAITS_WAITS_H
#define MC_WAITS_WAITS_H

#include "base/base.h"

/* Requests and meshes of a record; more are counted, but not described. */
enum { MC_WAITS_REQUESTS = 6, MC_WAITS_MESHES = 16 };
enum {
    MC_WAIT_MESH = 32,
    MC_WAIT_STRATEGY = 96,
    MC_WAIT_PHASE = 48,
    MC_WAIT_HOST = 40,
    MC_WAIT_PLACE = 16
};
/* The longest text of a wait; of one without its strategy. */
enum { MC_WAIT_TEXT = 480, MC_WAIT_SHORT_TEXT = 256 };
/* A record that was not refreshed for so long says that nobody waits in the library. */
enum { MC_WAITS_FRESH_MS = 1000 };

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
    MC_AWAITS_WORK,     /* nothing: it is at work itself */
    MC_AWAITS_RECEIVE,  /* a message */
    MC_AWAITS_SEND,     /* that the peer takes a message */
    MC_AWAITS_CREDIT,   /* that the peer asks for a message, or confirms one */
    MC_AWAITS_GREETING, /* the peer's end of a new connection */
    MC_AWAITS_COUNTS,   /* an alltoallv: the sizes of the blocks that pass this rank */
    MC_AWAITS_FLUSH,    /* that the network takes what was sent */
    MC_AWAITS_ALL       /* that all ranks have destroyed their meshes */
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
    int32_t collective;    /* meshcoll_collective_t */
    int32_t datatype;      /* meshcoll_datatype_t */
    int32_t op, root; /* meshcoll_op_t, MESHCOLL_OPS: a user's; the caller's number; -1: none */
    uint32_t digest;  /* of the call (handle/digest.h); 0: of the library's own */
    int32_t tag;      /* of a tagged message; MESHCOLL_ANY_TAG */
    uint64_t count, bytes; /* the caller's elements, 0: not known yet; bytes of these */
    uint64_t message;      /* bytes of the message that it waits for */
    int32_t phase, phases; /* from 0 on; 0 phases: it is in none */
    uint32_t step, steps;  /* from 0 on; 0 steps: it is at none */
    int32_t peer;          /* mesh rank of the root mesh; -1: none, or any */
    int32_t known_as;      /* the caller's number of the peer in the root mesh */
    mc_wait_place_t place; /* of the peer */
    int32_t in_part;       /* the caller's number of the peer in a sub-mesh; -1: it is none */
    int64_t waited_ms;     /* in the library, in this run */
    int64_t still_ms;      /* since its last progress */
    int64_t age_ms;        /* of this record */
    char mesh_text[MC_WAIT_MESH];
    char strategy[MC_WAIT_STRATEGY], phase_text[MC_WAIT_PHASE]; /* cut to fit */
} mc_wait_t;

/* A mesh of the process: the root mesh, or a sub-mesh. */
typedef struct {
    uint32_t id, n_calls, n_persistent; /* operation numbers taken */
    int32_t broken;                     /* status of its failure; else 0 */
    uint32_t
        digest; /* 16 bits, of the call that was asked for, if it is one of the last; 0: not known */
} mc_waits_mesh_t;

typedef struct mc_waits {
    int32_t rank, known_as; /* in the root mesh: mesh rank, the caller's number */
    int32_t size, pid;
    char host[MC_WAIT_HOST];
    mc_wait_place_t place;
    int64_t looked_ms; /* since a thread last waited in the library; -1: none did */
    int32_t n_meshes, n;
    int32_t n_more; /* requests that run and are not described */
    mc_waits_mesh_t mesh[MC_WAITS_MESHES];
    mc_wait_t wait[MC_WAITS_REQUESTS]; /* the oldest first; those of a mesh that has failed stay */
    /* What it waited for when it was last seen, long ago: has_last. It has not ended, but whether the rank has left the
     * library since, or only got no core, is not known. */
    int32_t has_last;
    mc_wait_t last;
} mc_waits_t;

/* Copies what any thread waits for on the meshes of a job. Any thread may call it while the job exists.
 * `number`: whose digest is wanted. false: there is nothing to copy. */
struct mc_job;
bool mc_waits_copy(const struct mc_job *job, uint32_t number, mc_waits_t *copy);

/* Are these the same call of a mesh by its number, whatever each asks for? */
bool mc_wait_same_call(const mc_wait_t *a, const mc_wait_t *b);

/* Is a record that another process has sent in range? */
bool mc_waits_are_sound(const mc_waits_t *w, int32_t size);

/* Appends a sentence without its full stop: "allreduce of 8 MiB (call 12), …: receives 64 KiB from
 * rank 5 in box 1, for 3.2 s". The short form leaves out strategy and phase. */
typedef enum { MC_WAIT_LONG, MC_WAIT_SHORT } mc_wait_form_t;
void mc_wait_print(const mc_wait_t *w, mc_wait_form_t form, mc_text_t *text);
/* The same without the time. */
void mc_wait_print_what(const mc_wait_t *w, mc_wait_form_t form, mc_text_t *text);
/* "allreduce of 2 float32, 8 B (call 12)" */
void mc_wait_print_call(const mc_wait_t *w, mc_text_t *text);
/* The same with its operation and root: "…, sum, root 3" */
void mc_wait_print_asked(const mc_wait_t *w, mc_text_t *text);
/* "rank 5 in box 1" */
void mc_wait_print_rank(int32_t known_as, const mc_wait_place_t *place, mc_text_t *text);

#endif
