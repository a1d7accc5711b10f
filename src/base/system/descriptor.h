/*
 * Descriptors that the library makes lie above 2: a daemon may have closed 0 to 2, and what it then writes to stdout or
 * stderr must not land in a segment or a connection. scripts/check-style.sh looks that each is passed through here.
 */
#ifndef MC_BASE_DESCRIPTOR_H
#define MC_BASE_DESCRIPTOR_H

#include <stdio.h>

/* Returns `made`, which is close-on-exec, or a duplicate above 2 in its place. -1, with errno, for -1. */
int mc_descriptor(int made);
/* Closes it, if it is one, and sets it to -1. */
void mc_descriptor_close(int *fd);
/* The stream of `made`, which it takes over, moved as well; NULL, with errno. */
FILE *mc_descriptor_stream(int made, const char *mode);
/* Opens /dev/null at those of 0 to 2 that are closed, for good: for libraries that make descriptors of their own. */
void mc_descriptor_fill(void);

#endif
