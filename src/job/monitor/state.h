/* A monitor from inside: its thread's state. */
#ifndef MC_MONITOR_STATE_H
#define MC_MONITOR_STATE_H

#include "job/handshake/door.h"
#include "job/monitor/branch.h"
#include "job/monitor/monitor.h"

struct mc_monitor {
    mc_news_board_t board;
    mc_self_t self;
    mc_contact_t own, *contact;
    int32_t *machine;
    double silence;
    int listener, epoll, wake;
    mc_door_t door;
    mc_monitor_branch_t *branches;
    mc_monitor_answer_t answer;
    void *answer_context;
    int watched;
    void (*ready)(void *context);
    void *ready_context;
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
    bool told_torn, sent_ready;
    bool has_joined; /* the first barrier, that of the tree itself, is over */
    double look_at;  /* for children that have not come */
    pthread_mutex_t lock;
    pthread_cond_t told;
    /* Under the lock: */
    uint32_t n_told;      /* news of the board that were passed on */
    bool started;         /* the thread may begin */
    bool joined;          /* the tree is complete */
    bool waits, released; /* this rank is in the barrier; all are */
    bool torn;            /* the tree is not complete, so that there is no barrier */
    int *survivor;        /* connections of those that have joined, by rank; -1: not there */
    bool gathered;        /* no more may join */
    mc_monitor_t *next_open;
};

#endif
