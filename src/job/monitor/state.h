/* A monitor from inside: its thread's state. */
#ifndef MC_MONITOR_STATE_H
#define MC_MONITOR_STATE_H

#include "job/handshake/acceptor.h"
#include "job/monitor/branch.h"
#include "job/monitor/monitor.h"

struct mc_monitor {
    mc_news_board_t board;
    mc_self_t self;
    mc_contact_t own, *contact;
    int32_t *machine;
    double silence;
    int epoll, wake;
    mc_acceptor_t acceptor;
    mc_monitor_branch_t *branches;
    mc_monitor_answer_t answer;
    void *answer_context;
    bool has_thread;
    _Atomic bool stop;
    bool fatal_told; /* by the thread alone: what it has passed on */
    uint32_t next_refusal;
    pthread_t thread;
    /* Of the thread alone: the tree, and its barrier. */
    int32_t parent; /* -1: none */
    uint32_t n_children, n_met, n_ready;
    double began;         /* when children could come */
    double lingers_until; /* when it ends without them; 0: it was not told to end */
    bool sent_ready;
    double check_at; /* for children that have not come */
    pthread_mutex_t lock;
    pthread_cond_t told;
    /* Under the lock: */
    uint32_t n_told;      /* news of the board that were passed on */
    bool started;         /* the thread may begin */
    bool joined;          /* the tree is complete: its first barrier is over */
    bool waits, released; /* this rank is in the barrier; all are */
    bool torn;            /* the tree is not complete, so that there is no barrier */
    int greeting;         /* the connection to its parent while that has not let it in; -1: none */
    int *survivor;        /* connections of those that have joined, by rank; -1: not there */
    bool gathered;        /* no more may join */
    mc_monitor_t *next_open;
};

/* Connections, in the monitor's thread (reach.c) ------------------------------------------------- */

/* Connects to a rank's monitor, each attempt within these seconds. Any thread. Returns 0 or an errno. */
int mc_reach_connect(const mc_monitor_t *m, int32_t rank, mc_hello_kind_t kind, double seconds,
                     int *fd);
/* The most connections that a monitor has in the tree of so many ranks. */
int mc_reach_most(int32_t size);
/* Finds its place in the tree, before the thread begins. */
void mc_reach_place(mc_monitor_t *m);
/* The others in the monitor's thread. Until when it may sleep. */
double mc_reach_until(const mc_monitor_t *m);
/* Has the mesh failed before all children came to be told? They come within moments of the creation. */
bool mc_reach_is_missed(mc_monitor_t *m);
/* Looks whether all children have come in time, and moves the barrier on. */
void mc_reach_check(mc_monitor_t *m);
/* Connects to this rank's parent in the tree, if it has one; says on stderr
 * where it cannot. */
void mc_reach_parent(mc_monitor_t *m);
/* Another process of the mesh has come: a child in the tree, or one that asks. */
void mc_reach_admit(mc_monitor_t *m, const mc_pending_t *pending);

/* What it receives on them and passes on, in its thread (relay.c) ------------------------------- */

/* Takes over a connection; 0 or an errno. */
int mc_relay_add(mc_monitor_t *m, int fd, int32_t rank, bool asks);
void mc_relay_remove(mc_monitor_t *m, mc_monitor_branch_t *branch);
/* Is a rank connected that does more than ask? */
bool mc_relay_has(const mc_monitor_t *m, int32_t rank);
/* Handles all that has arrived. */
void mc_relay_read(mc_monitor_t *m);
/* A rank has ended that was never connected. */
void mc_relay_miss(mc_monitor_t *m, int32_t rank);
/* Passes on what is on the board and was not passed on. */
void mc_relay_pass_on(mc_monitor_t *m);
/* Sends a frame without data to this rank's parent in the tree. */
void mc_relay_up(const mc_monitor_t *m, uint32_t kind);
/* The barrier is complete: lets this rank and all below it go on. */
void mc_relay_release(mc_monitor_t *m);
/* The tree is not complete: tells all that can be told. */
void mc_relay_tear(mc_monitor_t *m);
/* Tells all that this rank leaves. */
void mc_relay_leave(const mc_monitor_t *m);

#endif
