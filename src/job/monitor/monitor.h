/*
 * The monitor of a process: a thread that learns of other processes' ends and failures, and tells them
 * of this one's, whatever its own program does meanwhile. Between the processes of a mesh it keeps a
 * tree of TCP connections, within machines first, then between them. A connection that ends without a
 * farewell is a process that ended; one that does not answer the kernel's probes is a machine or a
 * network that is down. News go along the tree; where a process is missing, each part of the tree has a
 * neighbour of it. The thread sleeps otherwise. Ranks are the caller's.
 *
 * Who connects proves by an HMAC that it knows the secret which rank 0 draws for each mesh
 * (job/handshake/handshake.h).
 */
#ifndef MC_MONITOR_MONITOR_H
#define MC_MONITOR_MONITOR_H

#include "job/handshake/handshake.h"
#include "job/monitor/news.h"
#include "job/network/network.h"

/* How the monitors of processes reach each other: where each listens, and in which order its addresses
 * are tried. */
enum { MC_CONTACT_HOST = 40 };

/* Of a rank; plain memory. */
typedef struct {
    mc_network_t network; /* no addresses: it cannot be reached */
    uint16_t port, unused;
    int32_t pid;
    char host[MC_CONTACT_HOST];
} mc_contact_t;

/* Listens at all addresses; `network` NULL: on the loopback interface only. Returns 0 or an errno. */
int mc_contact_open(const mc_network_t *network, int *listener, mc_contact_t *own);

/* Connects to a rank within these seconds: to its addresses, the likeliest first, and to the next ones while those
 * before them do not answer. Returns 0, or the errno of the last attempt; `accept` says whether a connection leads to
 * the right process, and returns such an errno. */
typedef int (*mc_contact_accept_t)(void *context, int fd);
int mc_contact_connect(const mc_contact_t *own, const mc_contact_t *to, double seconds,
                       mc_contact_accept_t accept, void *context, int *fd);

/* Does the process listen still? Of one that has reset a connection: as it ended, or as its kernel gave that up. Takes
 * up to half a second. */
bool mc_contact_lives(const mc_contact_t *own, const mc_contact_t *of);

typedef struct mc_monitor mc_monitor_t;

typedef struct {
    unsigned char at[MC_DIGEST];
} mc_monitor_secret_t;

/* "off", or the seconds after which a silent machine counts as down; NULL: the default. ERR_PARSE. 0
 * stands for off. */
int mc_monitor_parse(const char *text, double *seconds);

/* Draws a secret. */
int mc_monitor_draw(mc_monitor_secret_t *secret);

/* Makes one for a mesh of `size` ranks that listens, but neither connects nor answers yet; `network`: this
 * process's; NULL: all ranks are in its namespace. `silence`: see mc_monitor_parse. Where it is off or fails, which
 * a line on stderr says, *contact tells that, and the monitor has a board only. ERR_NO_MEMORY; ERR_TRANSPORT: there
 * are no descriptors left. */
int mc_monitor_open(int32_t size, const mc_network_t *network, double silence,
                    mc_monitor_t **monitor, mc_contact_t *contact);

typedef struct {
    int32_t rank;
    const mc_contact_t *contact; /* by rank, `stride` bytes apart; copied */
    size_t stride;
    const int32_t *machine; /* by rank: the lowest rank on its machine; copied */
    mc_monitor_secret_t secret;
} mc_monitor_params_t;

/* Connects it, where all ranks have one: returns whether they do. */
bool mc_monitor_start(mc_monitor_t *monitor, const mc_monitor_params_t *params);
/* Waits, for a moment only, until all ranks are connected, or the mesh has failed: who ends from then on is missed at
 * once. */
void mc_monitor_join(mc_monitor_t *monitor);
/* Takes leave of the others and frees it; NULL is allowed. */
void mc_monitor_close(mc_monitor_t *monitor);

/* A barrier of all ranks, once: waits in it for so many ms. OK; IN_PROGRESS: call it again; ERR_UNSUPPORTED: there
 * are no monitors on all ranks, or not all are connected, as every rank finds out sooner or later; another error:
 * the mesh failed, here or elsewhere. */
int mc_monitor_barrier(mc_monitor_t *monitor, int ms);
/* Is the tree complete? From then on it does not tear while all processes live. */
bool mc_monitor_is_joined(mc_monitor_t *monitor);

mc_news_board_t *mc_monitor_board(mc_monitor_t *monitor);
/* Posts news and passes them on to all. Returns from fatal ones once they have left this process, so that
 * it may end, after a second at most. News that are not new are dropped. Any thread. */
void mc_monitor_broadcast(mc_monitor_t *monitor, const mc_news_t *news);

/* Answers questions of other ranks, in the monitor's thread: writes at most `room` bytes to `out` and
 * returns how many. Set before the start. */
typedef size_t (*mc_monitor_answer_t)(void *context, uint32_t question, void *out, size_t room);
void mc_monitor_answers(mc_monitor_t *monitor, mc_monitor_answer_t answer, void *context);
/* Asks a rank, and waits for the answer: `room` is at most MC_FRAME_MOST. Any thread but the monitor's.
 * Returns 0, or an errno: it does not answer, or not within these seconds. */
int mc_monitor_ask(const mc_monitor_t *monitor, int32_t rank, uint32_t question, double seconds,
                   void *answer, size_t room, size_t *bytes);
/* Where a rank's process is; NULL: there is no such rank. */
const mc_contact_t *mc_monitor_contact(const mc_monitor_t *monitor, int32_t rank);
/* This rank. */
int32_t mc_monitor_rank(const mc_monitor_t *monitor);

/* The rank that a rank connects to in the tree; -1: none. */
int32_t mc_monitor_parent(const int32_t *machine, int32_t size, int32_t rank);

/*
 * The ranks that are left of a failed mesh. They join the lowest of them, which waits until every rank has joined or does
 * not answer any more, and then tells each its number. Its connections to them carry an out-of-band allgather, with
 * which a new mesh is created.
 */
typedef struct mc_survivors mc_survivors_t;

/* Waits for the other survivors of the ranks that are `member`, for `seconds` at most: who lives and does not come
 * in time is left out. ERR_TRANSPORT, ERR_UNSUPPORTED where there are no monitors, ERR_NO_MEMORY. */
int mc_survivors_gather(mc_monitor_t *monitor, const bool *member, double seconds,
                        mc_survivors_t **survivors);
/* Their allgather; the survivors are its context. */
meshcoll_oob_t mc_survivors_oob(mc_survivors_t *survivors);
/* Takes a void *, as it frees the context of a mesh. */
void mc_survivors_free(void *survivors);

#endif
