/* Sockets that a library of the transports holds and does not show. */
#ifndef MC_TRANSPORT_SOCKETS_H
#define MC_TRANSPORT_SOCKETS_H

/* Shuts down all stream sockets that an epoll descriptor watches, and those of epoll descriptors that it
 * watches: what would send or receive there fails instead. Found in /proc; nothing happens without. */
void mc_sockets_shut(int epoll);

#endif
