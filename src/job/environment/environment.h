/*
 * What the environment tells of a job: this rank, how many there are, where rank 0 listens, the secret.
 */
#ifndef MC_BOOTSTRAP_ENVIRONMENT_H
#define MC_BOOTSTRAP_ENVIRONMENT_H

#include "base/system/ports.h"
#include "job/handshake/handshake.h"

enum { MC_ENVIRONMENT_HOST = 256, MC_ENVIRONMENT_PORTS = MC_PORTS_MEET };

typedef struct {
    mc_self_t self;
    char host[MC_ENVIRONMENT_HOST]; /* a name or address; "" for a job of one rank */
    const char
        *hosts; /* Slurm's list, of the environment: rank 0 is on one of them; NULL: on `host` */
    bool is_address; /* not a name */
    bool only_there; /* ranks listen at that address, and where they reach it; else anywhere */
    /* Rank 0 listens on the first of these ports that is free; the others try all. */
    uint16_t port;
    int32_t n_ports;
    double timeout; /* seconds */
    /* Asked a few times a second while this rank waits for others to join: an error, with its sentence, ends that.
     * NULL: nothing does. */
    int (*check)(void);
} mc_environment_t;

/* Without a launcher, a job of one rank. ERR_INVALID_ARG names the variable that is missing or wrong. */
int mc_environment_read(mc_environment_t *environment);
/* Host `i` of a list as Slurm writes them: "node[01-04,7],other". false: it has fewer, is no such list, or the host has
 * more than MC_ENVIRONMENT_HOST - 1 characters. */
bool mc_hosts_get(const char *list, uint64_t i, char host[MC_ENVIRONMENT_HOST]);
/* May it be in a name or an address of a host? */
bool mc_hosts_letter(char c);

#endif
