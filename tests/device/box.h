/*
 * A box of GPUs on the host: ranks x blocks as threads, which run the kernels' text on lanes in this
 * process's memory. A call is lowered from a strategy, run, and checked against values computed directly.
 */
#ifndef MC_TEST_BOX_H
#define MC_TEST_BOX_H

#include "far.h"
#include "gpu/launch/price.h"
#include "gpu/program/program.h"
#include "host_walk.h"
#include "support/case.h"

enum {
    MC_BOX_RANKS = 8,
    MC_BOX_BLOCKS = 4,
    MC_BOX_THREADS = MC_DEVICE_THREADS,
    MC_BOX_SLOT = 1 << 16
};
enum { MC_BOX_KINDS = 2 }; /* of lanes: messages with flags beside their data, and in it */

/* The counters of a lane, of one block. */
typedef struct {
    uint64_t flag, credit, sent, taken;
    uint64_t begun, opened[2]; /* launches with direct messages; at its ends */
} mc_box_lane_t;

/* Lanes serve one call after another and are never reset, unless one failed. */
typedef struct {
    mc_mesh_t mesh;
    char text[MC_MESH_TEXT];
    char *memory; /* of the slots, which begin as 0 */
    char *slots;
    mc_box_lane_t lane[MC_BOX_KINDS][MC_BOX_RANKS][MC_BOX_RANKS][MC_BOX_BLOCKS]; /* from, to */
    mc_device_track_t track[MC_BOX_RANKS][MC_BOX_BLOCKS];
    uint32_t blocks;   /* of the last call */
    uint32_t calls;    /* so far; each has a digest of its own */
    mc_far_t *far;     /* lanes between machines; NULL: there is one machine */
    unsigned n_direct; /* messages of programs so far that went straight to OUT */
} mc_box_t;
enum {
    MC_BOX_LANE = MC_DEVICE_SLOTS * MC_BOX_SLOT, /* bytes of a lane's slots */
    MC_BOX_BYTES = MC_BOX_KINDS * MC_BOX_RANKS * MC_BOX_RANKS * MC_BOX_BLOCKS * MC_BOX_LANE
};

/* How a call runs. Zeros are defaults: one block of one thread, slots as small as they can be, 20 s. */
typedef struct {
    uint32_t blocks, threads, slot_bytes;
    bool ll;         /* flags in the data */
    bool registered; /* OUT is mapped by all ranks: messages may be direct; not of LL */
    bool spoils;     /* a rank that begins late writes to its OUT before */
    uint32_t yields; /* mc_host_yields */
    uint32_t naps;   /* mc_host_naps, of the threads of a block but the first */
    unsigned delay[MC_BOX_RANKS]; /* microseconds before a rank begins */
    int absent;                   /* rank + 1 of one that never begins; 0: none */
    int differs;                  /* rank + 1 of one whose call has another digest; 0: none */
    unsigned abort_after;         /* microseconds until the abort word is set; 0: never */
    uint64_t limit;               /* nanoseconds of a wait */
} mc_box_how_t;

typedef struct {
    mc_plan_t *plan;
    mc_binding_t binding;
    mc_device_program_t *program;
    mc_case_rank_t buffers;
    char *scratch;
    mc_device_call_t call;
    mc_device_lane_t *end; /* of lanes: lane * blocks + block */
    mc_device_report_t report[MC_BOX_BLOCKS];
} mc_box_rank_t;

typedef struct {
    mc_box_t *box;
    mc_case_t c;
    mc_box_how_t how;
    char name[MC_MESH_TEXT + 4096];
    mc_device_tracks_t tracks;
    uint32_t abort_word;
    bool lost; /* not all messages went between machines */
    mc_box_rank_t rank[MC_BOX_RANKS];
} mc_box_run_t;

/* Seconds after which a call hangs, and the process is ended by SIGALRM; 0: none. */
extern unsigned mc_box_seconds;

/* All of these end the program with a sentence if something does not work that is not tested. */
mc_box_t *mc_box_open(const char *mesh);
/* On several machines: see mc_far_open. */
mc_box_t *mc_box_open_far(const char *mesh, const char *machines);
void mc_box_reset(mc_box_t *box);
char *mc_box_slots(const mc_box_t *box, bool ll, int from, int to, uint32_t block);
void mc_box_close(mc_box_t *box);

mc_box_run_t *mc_box_run_open(mc_box_t *box, const mc_case_t *c, const char *strategy,
                              const mc_box_how_t *how);
void mc_box_run(mc_box_run_t *run);
/* Is every block done, and every result right? Otherwise prints one line. */
bool mc_box_run_check(const mc_box_run_t *run);
void mc_box_run_close(mc_box_run_t *run);
/* That of a rank's call. */
uint32_t mc_box_digest(const mc_box_run_t *run, int rank);

/* Opens, runs, checks and closes. */
bool mc_box_case(mc_box_t *box, const mc_case_t *c, const char *strategy, const mc_box_how_t *how);

#endif
