/*
 * Files in memory that processes of a machine map. Their size is sealed: who maps one cannot be made to touch pages that
 * do not exist. Peers open one as a descriptor of the process that made it, /proc/PID/fd/N, or by
 * pidfd_getfd where there is no /proc, so nothing is left behind however a process ends.
 */
#ifndef MC_BASE_SEALED_H
#define MC_BASE_SEALED_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t dev, ino; /* which identify a file on this kernel */
    int32_t pid, fd;
} mc_sealed_t;

/* A file of zeros, mapped. The caller closes file->fd. ERR_TRANSPORT, also where it would be longer than files of this
 * process may be. */
int mc_sealed_make(const char *name, size_t bytes, mc_sealed_t *file, void **at);
/* Maps another process's. Refuses any other file before it opens it for access. ERR_TRANSPORT. */
int mc_sealed_map(const mc_sealed_t *file, size_t bytes, void **at);

#endif
