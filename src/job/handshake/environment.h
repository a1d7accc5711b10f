/*
 * What the environment tells of a job: this rank, how many there are, where rank 0 listens, the secret.
 */
#ifndef MC_HANDSHAKE_ENVIRONMENT_H
#define MC_HANDSHAKE_ENVIRONMENT_H

#include "base/system/ports.h"
#include "job/handshake/sha256.h"

enum {
    MC_ENVIRONMENT_HOST = 256,
    MC_ENVIRONMENT_SECRET = 4096,
    MC_ENVIRONMENT_PORTS = MC_PORTS_MEET
};

typedef struct {
    int32_t rank, size;
    char host[MC_ENVIRONMENT_HOST]; /* a name or address; "" for a job of one rank */
    bool only_there; /* ranks listen at that address, and where they reach it; else anywhere */
    /* Rank 0 listens on the first of these ports that is free; the others try all. */
    uint16_t port;
    int32_t n_ports;
    unsigned char id[MC_SHA256_BYTES]; /* equal on all ranks of one job */
    char secret[MC_ENVIRONMENT_SECRET];
    size_t secret_bytes;
    double timeout; /* seconds */
} mc_environment_t;

/* Without a launcher, a job of one rank. ERR_INVALID_ARG names the variable that is missing or
 * wrong. */
int mc_environment_read(mc_environment_t *job);
/* With what rank 0 has drawn, the id of this start of the job. */
void mc_environment_start(mc_environment_t *job, const void *drawn, size_t bytes);
/* Frees what mc_environment_read filled, its secret wiped; NULL is allowed. */
void mc_environment_free(mc_environment_t *job);
/* The first host of a list as Slurm writes them: "node[01-04,7],other". false: it is none, or has more than
 * MC_ENVIRONMENT_HOST - 1 characters. */
bool mc_environment_first_host(const char *list, char host[MC_ENVIRONMENT_HOST]);

#endif
