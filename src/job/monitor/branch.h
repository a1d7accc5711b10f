/* Connections between monitors, and the messages on them. */
#ifndef MC_MONITOR_BRANCH_H
#define MC_MONITOR_BRANCH_H

#include "base/base.h"

/* LEAVES: the sender closes its mesh; what follows is no failure. READY and GO: a barrier, up and down the
 * tree. TORN: a connection of the tree could not be made. */
typedef enum {
    MC_FRAME_LEAVES = 0x6d636d30,
    MC_FRAME_READY,
    MC_FRAME_GO,
    MC_FRAME_TORN,
    MC_FRAME_NEWS,
    MC_FRAME_QUESTION,
    MC_FRAME_ANSWER
} mc_frame_kind_t;

enum { MC_FRAME_MOST = 3584 };

typedef struct {
    uint32_t kind;
    uint32_t bytes; /* that follow, MC_FRAME_MOST at most */
} mc_frame_t;

typedef struct mc_branch mc_monitor_branch_t;
struct mc_branch {
    mc_monitor_branch_t *next;
    int fd;
    int32_t rank; /* at the other end */
    bool asks;    /* it only asks, so that its end is no failure */
    bool left;    /* it has said so */
    size_t got;
    _Alignas(8) unsigned char in[sizeof(mc_frame_t) + MC_FRAME_MOST];
};

/* A host that is gone without a word is noticed after so many seconds, not before, and at the latest after half as long
 * again. */
void mc_branch_keep_alive(int fd, double seconds);

/* Sends a frame; what does not leave at once within a second is an error. 0 or an errno. */
int mc_branch_send(int fd, uint32_t kind, const void *data, size_t bytes);

/* Reads on, without waiting. 0: *frame is the next one, whose bytes lie behind it, until the next call; EAGAIN: there is
 * none yet; ESHUTDOWN: the other end has closed; ECONNRESET: it knows the connection no more; EPROTO: it sent something else; or an errno. */
int mc_branch_read(mc_monitor_branch_t *branch, const mc_frame_t **frame);

#endif
