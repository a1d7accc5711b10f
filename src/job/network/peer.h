/* Who is at the other end of a connection, as the kernel says. */
#ifndef MC_HANDSHAKE_PEER_H
#define MC_HANDSHAKE_PEER_H

typedef enum {
    MC_PEER_OURS,     /* a process of the same user, or of root, of this network namespace */
    MC_PEER_STRANGER, /* of another user */
    MC_PEER_REMOTE,   /* of no socket in this network namespace */
    MC_PEER_UNKNOWN,  /* the kernel does not tell */
} mc_peer_t;

/* Of a connected TCP socket, which both sides have accepted. */
mc_peer_t mc_peer_find(int fd);

#endif
