/* Where other ranks come in: a listener, and the greetings under way on it. Who is no rank of this job is refused with a
 * line on stderr. */
#ifndef MC_HANDSHAKE_ACCEPTOR_H
#define MC_HANDSHAKE_ACCEPTOR_H

#include "job/handshake/handshake.h"

#include <poll.h>

/* Greetings under way; of more, the oldest is dropped, and tries again. */
enum { MC_ACCEPTOR_PENDING = 64, MC_ACCEPTOR_WATCHED = 8, MC_ACCEPTOR_SPARES = 16 };

typedef struct {
    int fd;
    char name[MC_WIRE_NAME]; /* its address */
    double deadline;
    mc_challenge_t challenge;
    mc_hello_t hello;
    size_t got;
} mc_pending_t;

typedef struct {
    const mc_self_t *self;
    int listener;
    int n, n_lines;
    bool forgives; /* says nothing of those who leave without a word: ranks do that when they end */
    unsigned said; /* bits of mc_answer_code_t: of those that try again and again, told once */
    int n_spares, spare[MC_ACCEPTOR_SPARES]; /* descriptors, reserved for those who come */
    mc_pending_t pending[MC_ACCEPTOR_PENDING];
} mc_acceptor_t;

void mc_acceptor_open(mc_acceptor_t *acceptor, const mc_self_t *self, int listener);
/* Reserves so many descriptors, MC_ACCEPTOR_SPARES at most, for when the process has no others left; 0 or an errno. */
int mc_acceptor_reserve(mc_acceptor_t *acceptor, int n);
/* Frees one of them; false: there is none. */
bool mc_acceptor_spend(mc_acceptor_t *acceptor);
/* Closes the listener and all greetings. */
void mc_acceptor_close(mc_acceptor_t *acceptor);

/* Waits for the next rank of this job. 0: *pending is one, to be answered and then the caller's;
 * ECANCELED: an event of a watched socket, `*which` says of which; ETIMEDOUT; or an errno. */
int mc_acceptor_wait(mc_acceptor_t *acceptor, double deadline, const struct pollfd *watched,
                     int n_watched, int *which, mc_pending_t *pending);
/* Answers with a reason, writes the line and closes the connection. */
void mc_acceptor_refuse(mc_acceptor_t *acceptor, const mc_pending_t *pending,
                        mc_answer_code_t code);

#endif
