/* Files that users name: read as a whole, and locked while they are written anew. */
#ifndef MC_BASE_FILE_H
#define MC_BASE_FILE_H

#include "base/base.h"

enum { MC_FILE_BYTES = 16 << 20, MC_FILE_PATH = 1024 };

/*
 * The bytes of a regular file, for the caller to free; *text is NULL where there is none. Anything else (a FIFO, a device,
 * a folder) is refused at once, as it could block or never end, and so is what is larger than MC_FILE_BYTES: ERR_IO.
 */
int mc_file_read(const char *path, char **text, size_t *bytes);

/* A file beside `path`, PATH.lock, that one process at a time has; gone when it is left. The kernel gives up the lock of who
 * dies, and a file that is left behind holds nobody up. */
typedef struct {
    char path[MC_FILE_PATH + 8];
    int fd;
} mc_file_lock_t;

/* Waits for `seconds` at most: ERR_IO then. */
int mc_file_lock(const char *path, double seconds, mc_file_lock_t *lock);
void mc_file_unlock(mc_file_lock_t *lock);

#endif
