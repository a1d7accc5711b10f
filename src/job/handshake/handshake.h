/*
 * The greeting on each connection of the bootstrap. The side that listens sends a challenge; the other answers with who
 * it is; the first says whether it may stay. Both prove by an HMAC over both nonces that they know the job's secret. An
 * empty secret proves nothing, but greetings of other programs, versions and jobs are still told apart.
 */
#ifndef MC_HANDSHAKE_HANDSHAKE_H
#define MC_HANDSHAKE_HANDSHAKE_H

#include "job/network/wire.h"

/* MC_ENDPOINTS: one of each family, which every rank may be reached by. */
enum { MC_NONCE = 16, MC_DIGEST = 32, MC_HANDSHAKE_SECONDS = 5, MC_ENDPOINTS = 2 };

typedef struct {
    uint64_t magic;
    uint32_t version, unused;
    unsigned char nonce[MC_NONCE];
} mc_challenge_t;

/* Of monitors (job/monitor): ASK: it only asks; SURVIVE: it joins the survivors of its mesh. */
typedef enum { MC_HELLO_JOIN, MC_HELLO_CHILD, MC_HELLO_ASK, MC_HELLO_SURVIVE } mc_hello_kind_t;

typedef struct {
    uint64_t magic;
    uint32_t version, kind;
    unsigned char job[MC_DIGEST], nonce[MC_NONCE];
    int32_t rank, size;
    uint32_t generation; /* how many meshes this process created from its environment before */
    int32_t index;       /* of a child: its node in the tree; between monitors: the rank it seeks */
    mc_endpoint_t listens[MC_ENDPOINTS]; /* family 0: none */
    unsigned char mac[MC_DIGEST];
} mc_hello_t;

typedef enum {
    MC_ANSWER_OK,
    MC_ANSWER_LATER, /* not yet: try again */
    MC_ANSWER_OTHER_JOB,
    MC_ANSWER_VERSION,
    MC_ANSWER_SECRET,
    MC_ANSWER_SIZE,
    MC_ANSWER_RANK,
    MC_ANSWER_TWICE,
    MC_ANSWER_USER,
    MC_ANSWERS
} mc_answer_code_t;

typedef struct {
    uint64_t magic;
    uint32_t code;
    int32_t index;                      /* the joining rank's node in the tree */
    mc_endpoint_t parent[MC_ENDPOINTS]; /* no family: the other end of this connection */
    int32_t parent_rank, size;
    unsigned char
        start[MC_NONCE]; /* drawn by rank 0: with the job's id, that of this start of it */
    unsigned char mac[MC_DIGEST];
} mc_answer_t;

/* Who this process is. */
typedef struct {
    int32_t rank, size;
    uint32_t generation; /* how many meshes this process created from its environment before */
    bool has_secret;
    unsigned char job[MC_DIGEST]; /* equal on all ranks of one job */
    unsigned char key[MC_DIGEST]; /* made of the job's secret; 0: it has none */
} mc_self_t;

/* Makes the SHA-256 of a digest and what follows it. ERR_IO: libcrypto refuses. */
int mc_digest_extend(unsigned char digest[MC_DIGEST], const void *data, size_t bytes);

/* Why a rank was refused: "its secret differs", … */
const char *mc_answer_text(uint32_t code);

/* Is another user of this machine at the other end, and no secret would tell? */
bool mc_handshake_is_stranger(const mc_self_t *self, int fd);

/* The side that listens. */
int mc_handshake_challenge(int fd, mc_challenge_t *challenge);
/* Is it a greeting? Its first 8 bytes tell. */
bool mc_handshake_greets(const mc_hello_t *hello);
/* Is a whole greeting that of a rank of this job? Size, rank and generation are left to the caller. LATER: libcrypto
 * refuses, as the process ends. */
mc_answer_code_t mc_handshake_judge(const mc_self_t *self, const mc_challenge_t *challenge,
                                    const mc_hello_t *hello);
/* Sends the answer; its magic and mac are filled in. */
int mc_handshake_answer(const mc_self_t *self, int fd, const mc_challenge_t *challenge,
                        const mc_hello_t *hello, mc_answer_t *answer);

/* Fills in the mac of a message. 0, or EIO: libcrypto refuses. */
int mc_handshake_sign_hello(const mc_self_t *self, const mc_challenge_t *challenge,
                            mc_hello_t *hello);
int mc_handshake_sign_answer(const mc_self_t *self, const mc_challenge_t *challenge,
                             const mc_hello_t *hello, mc_answer_t *answer);

/* The side that connected, step by step: is it a challenge, then who this process is. `hello` has kind, index and
 * listens. EPROTO: it is none; ENOEXEC: of another version. */
int mc_handshake_hello(const mc_self_t *self, const mc_challenge_t *challenge, mc_hello_t *hello);
/* What mc_handshake makes of an answer that has arrived. An answer of another process may have its code changed to
 * MC_ANSWER_SECRET; EPROTO: it is none, or names a place that the tree of hello->size ranks does not have. */
int mc_handshake_accepted(const mc_self_t *self, const mc_challenge_t *challenge,
                          const mc_hello_t *hello, mc_answer_t *answer);
/* All of it. EUSERS: another user's process listens. 0: *answer is from a process that
 * knows the secret, or refuses; EPROTO: no greeting; else an errno. */
int mc_handshake(const mc_self_t *self, int fd, mc_hello_t *hello, double deadline,
                 mc_answer_t *answer);

#endif
