/* Where other ranks come in: a listener, and the greetings under way on it. Who is no rank of this job is refused with a
 * line on stderr. */
#ifndef MC_HANDSHAKE_DOOR_H
#define MC_HANDSHAKE_DOOR_H

#include "job/handshake/handshake.h"

#include <poll.h>

/* Greetings under way; of more, the oldest is dropped, and tries again. */
enum { MC_VISITORS = 64, MC_DOOR_WATCHED = 8, MC_DOOR_SPARES = 16 };

typedef struct {
    int fd;
    char name[MC_WIRE_NAME]; /* its address */
    double deadline;
    mc_challenge_t challenge;
    mc_hello_t hello;
    size_t got;
} mc_visitor_t;

typedef struct {
    const mc_self_t *self;
    int listener;
    int n, n_lines;
    bool forgives; /* says nothing of those who leave without a word: ranks do that when they end */
    unsigned said; /* bits of mc_answer_code_t: of those that try again and again, told once */
    int n_spares, spare[MC_DOOR_SPARES]; /* descriptors, reserved for those who come */
    mc_visitor_t visitor[MC_VISITORS];
} mc_door_t;

void mc_door_open(mc_door_t *door, const mc_self_t *self, int listener);
/* Reserves so many descriptors, MC_DOOR_SPARES at most, for when the process has no others left; 0 or an errno. */
int mc_door_reserve(mc_door_t *door, int n);
/* Frees one of them; false: there is none. */
bool mc_door_spend(mc_door_t *door);
/* Closes the listener and all greetings. */
void mc_door_close(mc_door_t *door);

/* Waits for the next rank of this job. 0: *visitor is one, to be answered and then the caller's;
 * ECANCELED: an event of a watched socket, `*which` says of which; ETIMEDOUT; or an errno. */
int mc_door_wait(mc_door_t *door, double deadline, const struct pollfd *watched, int n_watched,
                 int *which, mc_visitor_t *visitor);
/* Answers with a reason, writes the line and closes the connection. */
void mc_door_refuse(mc_door_t *door, const mc_visitor_t *visitor, mc_answer_code_t code);

#endif
