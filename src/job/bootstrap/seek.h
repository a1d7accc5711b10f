/* How a rank finds rank 0: names and ports to addresses, listening on one port, and trying them all. */
#ifndef MC_BOOTSTRAP_SEEK_H
#define MC_BOOTSTRAP_SEEK_H

#include "job/environment/environment.h"

/* Rank 0 listens on the first port of the job that it can: on all its addresses, or on the job's only.
 * ERR_TRANSPORT. */
int mc_seek_listen(const mc_environment_t *env, int *listener);
/* "10.0.0.5:30500, [fd00::5]:30500": where others may reach a listener. */
void mc_seek_where(int listener, mc_text_t *text);

/* A rank that has registered. */
typedef struct {
    int fd; /* the connection to rank 0 */
    int listener;
    mc_answer_t answer;
    mc_endpoint_t to; /* rank 0's address, as this rank has reached it */
} mc_seek_t;

/* Registers with rank 0. ERR_TRANSPORT says what became of the last attempt. */
int mc_seek_rank0(const mc_environment_t *env, const mc_self_t *self, double deadline,
                  mc_seek_t *seek);
/* The connection to the parent, which may be that to rank 0. Ends the latter otherwise; also on
 * failure. */
int mc_seek_parent(const mc_self_t *self, mc_seek_t *seek, double deadline, int *fd);

/* Names and addresses (resolve.c) --------------------------------------------------------------- */

enum { MC_ADDRESSES = 16, MC_NAMES = 8 };

typedef struct {
    mc_endpoint_t at[MC_ADDRESSES];
    int n;
    bool asked_slurm; /* which is not to be asked often */
} mc_addresses_t;

typedef struct {
    char host[MC_NAMES][MC_ENVIRONMENT_HOST];
    int n;
    bool of_slurm; /* which may know addresses that no resolver does */
} mc_names_t;

/* 0, or an error of gai_strerror. */
int mc_resolve(const char *host, mc_addresses_t *found);
/* Adds this host's loopback, as rank 0 may be here, and the address of the host that started Slurm's step: no resolver
 * need be asked. */
void mc_resolve_known(mc_addresses_t *found);
/* Puts the addresses that scontrol has of nodes, whose names no resolver knows, in place of the names (slurm.c). */
void mc_slurm_ask(mc_names_t *names);

/* The addresses of names, each with an equal share of the room, by a thread of its own, as a resolver waits for servers
 * that do not answer, for as long as it likes. */
typedef struct mc_lookup mc_lookup_t;

/* NULL: out of memory or threads. */
mc_lookup_t *mc_lookup_begin(const mc_names_t *names);
/* Ready for POLLIN when it has ended. */
int mc_lookup_event(const mc_lookup_t *lookup);
/* True: it has ended, and is freed; *failed and *found are set. */
bool mc_lookup_done(mc_lookup_t *lookup, int *failed, mc_addresses_t *found);
/* Its result is not wanted any more; NULL is allowed. */
void mc_lookup_drop(mc_lookup_t *lookup);

/* Rivals (rival.c) ------------------------------------------------------------------------------ */

/* Two processes that are rank 0 of what looks like one job: without a secret, ranks of both would form meshes with
 * each other. While rank 0 waits for the others it holds a name, an abstract socket of its machine. */

/* *fd: the name, to be polled and closed; -1: there is none, as there is a secret. ERR_TRANSPORT names the other
 * process of this user that has it, and that now hears of this one. */
int mc_rival_claim(const mc_environment_t *env, int *fd);
/* Somebody has come to `fd`. ERR_TRANSPORT: another rank 0. */
int mc_rival_accept(int fd);

#endif
