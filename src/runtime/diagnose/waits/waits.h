/*
 * What a rank waits for, as a record that can be printed, sent and compared: of a fixed size and
 * without pointers.
 *
 * A waiting thread publishes it where it looks for dead peers (progress/failure.h): at most ten times
 * a second, after its polls. So calls that do not wait for long cost nothing, and a record tells its age. Any other
 * thread of the process may copy it at any time.
 */
#ifndef MC_DIAGNOSE_WAITS_H
#define MC_DIAGNOSE_WAITS_H

#include "runtime/handle/wait.h"

/* Requests and meshes of a record; more are counted, but not described. */
enum { MC_WAITS_REQUESTS = 6, MC_WAITS_MESHES = 16 };
/* The longest text of a wait; of one without its strategy. */
enum { MC_WAIT_TEXT = 480, MC_WAIT_SHORT_TEXT = 256 };
/* A record that was not refreshed for so long says that nobody waits in the library. */
enum { MC_WAITS_FRESH_MS = 1000 };

/* A mesh of the process: the job's first, or another. */
typedef struct {
    uint32_t id, n_calls, n_persistent; /* operation numbers taken */
    uint32_t digest; /* 16 bits, of the call asked for, if it is one of the last; 0: not known */
} mc_waits_mesh_t;

/* A call on device memory, which no request serves. */
typedef struct {
    uint32_t mesh, number;
    int32_t is_persistent, collective, datatype, op, root; /* as in mc_wait_t */
    uint32_t digest;                                       /* 0: there is none */
    uint64_t count;
} mc_waits_launch_t;

typedef struct mc_waits {
    int32_t rank, known_as; /* in the job's first mesh: mesh rank, the caller's number */
    int32_t size, pid;
    char host[MC_WAIT_HOST];
    mc_wait_place_t place;
    int64_t looked_ms; /* since a thread last waited in the library; -1: none did */
    int32_t broken;    /* status of the job's failure; else 0 */
    int32_t n_meshes, n;
    int32_t n_more; /* requests that run and are not described */
    mc_waits_mesh_t mesh[MC_WAITS_MESHES];
    mc_waits_launch_t launch; /* of the number that was asked for, if it is one of the last */
    mc_wait_t wait[MC_WAITS_REQUESTS]; /* the oldest first; those of a mesh that has failed stay */
    /* What it waited for when it was last seen, long ago: has_last. It has not ended, but whether the rank has left the
     * library since, or only got no core, is not known. */
    int32_t has_last;
    mc_wait_t last;
} mc_waits_t;

/* Copies what any thread waits for on the meshes of a job. Any thread may call it while the job exists.
 * `number`: whose digest is wanted. */
struct mc_job;
void mc_waits_copy(const struct mc_job *job, uint32_t number, mc_waits_t *copy);

/* The same of other ranks (ask.c): their monitors answer, whatever their programs do. From now on this rank's does; to
 * call before it starts. */
void mc_waits_answer(struct mc_job *job);
/* Where job->can_ask; `rank` is a mesh rank. ERR_TRANSPORT, without a text: it has not answered in these seconds. */
int mc_waits_ask_for(const struct mc_job *job, int32_t rank, uint32_t number, double seconds,
                     mc_waits_t *copy);
/* For a moment only, as others wait; and then for the news that it has failed. Takes so many seconds at most. */
#define MC_WAITS_ASK_SECONDS 1.0
int mc_waits_ask(const struct mc_job *job, int32_t rank, uint32_t number, mc_waits_t *copy);

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
/* ", sum, root 3", without what is -1 */
void mc_wait_print_op(int32_t op, int32_t root, mc_text_t *text);
/* "rank 5 in box 1" */
void mc_wait_print_rank(int32_t known_as, const mc_wait_place_t *place, mc_text_t *text);

#endif
