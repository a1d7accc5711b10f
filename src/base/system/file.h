/* Files that users name: read whole, replaced whole, or locked while they are rewritten. */
#ifndef MC_BASE_FILE_H
#define MC_BASE_FILE_H

#include "base/base.h"

#include <stdio.h>
#include <sys/types.h>

enum { MC_FILE_BYTES = 16 << 20, MC_FILE_PATH = 1024 };

/*
 * Reads a regular file, without the byte order mark that editors put before UTF-8. *text is the
 * caller's to free, and not NUL-terminated; it is NULL where there is no such file. ERR_IO for anything else (a FIFO, a device, a folder), which could block
 * or never end, and for more than MC_FILE_BYTES.
 */
int mc_file_read(const char *path, char **text, size_t *bytes);

/* Reads the start of a file of /proc or /sys, with a NUL behind it; "" where it cannot be read. Allocates nothing. */
void mc_file_read_start(const char *path, char *text, size_t room);

/* The most bytes that a file of this process may have (ulimit -f): a longer one ends it by SIGXFSZ. */
uint64_t mc_file_most(void);

/* A file that takes the place of another when it is whole: a full disk, or the end of the process, leaves what was there. */
typedef struct {
    FILE *stream;
    char path[MC_FILE_PATH + 8];
    bool named; /* path is its name; else it has none until it is closed */
} mc_fresh_t;

/* Opens one beside `path`. False, with errno. */
bool mc_fresh_open(const char *path, mc_fresh_t *fresh);
/* Closes it and gives it the name `path`; removes it where it is not whole or could not be written: false, with errno. */
bool mc_fresh_close(mc_fresh_t *fresh, bool whole, mode_t mode, const char *path);
/* The mode of a file that open() makes: mkstemp is stricter than the user's umask. */
mode_t mc_file_mode(void);

/* A file that is written for the user. What is there stays until the new one is whole. A link, a device or another
 * user's file is written in place, and so is one that no file can lie beside. */
typedef struct {
    FILE *stream;
    const char *path;
    bool beside;
    mode_t mode;
    mc_fresh_t fresh;
} mc_output_t;

/* ERR_IO with its reason. `status`: of what was written; an error discards it, and is returned. */
int mc_output_open(const char *path, mc_output_t *output);
int mc_output_close(mc_output_t *output, int status);

/* A lock file PATH.lock next to `path`, held by one process at a time and removed when it is
 * released. The kernel releases the lock of a process that dies, so that a lock file left behind
 * blocks nobody. */
typedef struct {
    char path[MC_FILE_PATH + 8];
    int fd;
} mc_file_lock_t;

/* Waits for `seconds` at most, then fails with ERR_IO. */
int mc_file_lock(const char *path, double seconds, mc_file_lock_t *lock);
void mc_file_unlock(mc_file_lock_t *lock);

#endif
