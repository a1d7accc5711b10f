#include "base/system/file.h"

#include "base/system/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    return S_ISFIFO(mode)   ? "a FIFO"
           : S_ISDIR(mode)  ? "a folder"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static int fail_kind(const char *path, mode_t mode)
{
    return mc_fail(MESHCOLL_ERR_IO, "%s cannot be read: expected a regular file, not %s", path,
                   kind_of(mode));
}

static int fail_size(const char *path)
{
    return mc_fail(MESHCOLL_ERR_IO, "%s cannot be read: it is larger than %d MiB", path,
                   MC_FILE_BYTES >> 20);
}

static int fail_read(const char *path)
{
    return mc_fail(MESHCOLL_ERR_IO, "%s cannot be read: %s", path, strerror(errno));
}

/* Reads one byte beyond the limit, to notice a file that grew since fstat(). */
static int read_all(int fd, const char *path, char *text, size_t *bytes)
{
    size_t n = 0;
    while (n <= MC_FILE_BYTES) {
        const ssize_t more = read(fd, text + n, (size_t)MC_FILE_BYTES + 1 - n);
        if (more < 0 && errno != EINTR)
            return fail_read(path);
        if (more == 0)
            break;
        n += more > 0 ? (size_t)more : 0;
    }
    if (n > MC_FILE_BYTES)
        return fail_size(path);
    *bytes = n;
    return MESHCOLL_OK;
}

static int read_open(int fd, const char *path, char **text, size_t *bytes)
{
    struct stat is;
    if (fstat(fd, &is))
        return fail_read(path);
    if (!S_ISREG(is.st_mode))
        return fail_kind(path, is.st_mode);
    if (is.st_size > MC_FILE_BYTES)
        return fail_size(path);
    char *const all = malloc((size_t)MC_FILE_BYTES + 1);
    if (!all)
        return mc_fail_memory("the text of a file");
    const int status = read_all(fd, path, all, bytes);
    if (status)
        free(all);
    else
        *text = all;
    return status;
}

int mc_file_read(const char *path, char **text, size_t *bytes)
{
    struct stat is;
    char *all = NULL;
    size_t n = 0;
    /* Do not open a device: opening can have side effects. O_NONBLOCK covers a FIFO that replaces
     * the file between stat() and open(). */
    const bool there = stat(path, &is) == 0;
    if (there && !S_ISREG(is.st_mode))
        return fail_kind(path, is.st_mode);
    const int fd = mc_descriptor(open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
        return fail_read(path);
    const int status = fd < 0 ? MESHCOLL_OK : read_open(fd, path, &all, &n);
    if (fd >= 0)
        close(fd);
    if (!status) {
        const size_t mark = n >= 3 && memcmp(all, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        if (mark)
            memmove(all, all + mark, n - mark);
        *text = all;
        *bytes = n - mark;
    }
    return status;
}

void mc_file_read_start(const char *path, char *text, size_t room)
{
    const int fd = mc_descriptor(open(path, O_RDONLY | O_CLOEXEC));
    const ssize_t n = fd < 0 ? 0 : read(fd, text, room - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

uint64_t mc_file_most(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) ? UINT64_MAX : limit.rlim_cur;
}

/* Replacing --------------------------------------------------------------------------------------- */

/* A file without a name in the folder of `path`, which vanishes with its process; -1: this file system has none, or no
 * /proc gives it a name later. */
static int open_unnamed(const char *path)
{
    char folder[MC_FILE_PATH];
    const char *const slash = strrchr(path, '/');
    const int n = slash ? snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path)
                        : snprintf(folder, sizeof folder, ".");
    return n >= (int)sizeof folder || access("/proc/self/fd", X_OK)
               ? -1
               : mc_descriptor(open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
}

/* Ends the text of `at` on "XXXXXX" with another one, which no file has. */
static bool give_name(int fd, char *at)
{
    enum { TRIES = 100, LETTERS = 6 };
    char self[64], *const end = at + strlen(at) - LETTERS;
    int failed = EEXIST;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    for (int i = 0; i < TRIES && failed == EEXIST; i++) {
        uint32_t number = 0;
        (void)!getrandom(&number, sizeof number, 0);
        snprintf(end, LETTERS + 1, "%06x", (unsigned)(number & 0xffffff));
        failed = linkat(AT_FDCWD, self, AT_FDCWD, at, AT_SYMLINK_FOLLOW) ? errno : 0;
    }
    errno = failed;
    return failed == 0;
}

bool mc_fresh_open(const char *path, mc_fresh_t *fresh)
{
    const int n = snprintf(fresh->path, sizeof fresh->path, "%s.XXXXXX", path);
    if (n >= (int)sizeof fresh->path) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = open_unnamed(path);
    fresh->named = fd < 0;
    if (fresh->named)
        fd = mc_descriptor(mkostemp(fresh->path, O_CLOEXEC));
    fresh->stream = fd < 0 ? NULL : mc_descriptor_stream(fd, "w");
    if (fd >= 0 && !fresh->stream && fresh->named)
        (void)unlink(fresh->path);
    return fresh->stream;
}

bool mc_fresh_close(mc_fresh_t *fresh, bool whole, mode_t mode, const char *path)
{
    whole = whole && fflush(fresh->stream) == 0 && !ferror(fresh->stream);
    if (whole)
        (void)fchmod(fileno(fresh->stream), mode); /* not every file system has modes */
    if (whole && !fresh->named)
        fresh->named = whole = give_name(fileno(fresh->stream), fresh->path);
    int why = errno;
    whole = fclose(fresh->stream) == 0 && whole && rename(fresh->path, path) == 0;
    why = fresh->named ? errno : why;
    if (!whole && fresh->named)
        (void)unlink(fresh->path);
    errno = why;
    return whole;
}

mode_t mc_file_mode(void)
{
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int fail_write(const char *path)
{
    return mc_fail(MESHCOLL_ERR_IO, "%s cannot be written: %s", path, strerror(errno));
}

int mc_output_open(const char *path, mc_output_t *output)
{
    struct stat is;
    if (strcmp(path, "-") == 0)
        return mc_fail(MESHCOLL_ERR_IO, "expected the name of a file; got \"-\"");
    const bool there = lstat(path, &is) == 0;
    const bool ours = !there || (S_ISREG(is.st_mode) && is.st_nlink == 1 &&
                                 is.st_uid == geteuid() && access(path, W_OK) == 0);
    *output = (mc_output_t){.path = path, .mode = there ? is.st_mode & 0777 : mc_file_mode()};
    output->beside = ours && mc_fresh_open(path, &output->fresh);
    if (output->beside)
        output->stream = output->fresh.stream;
    else
        output->stream =
            mc_descriptor_stream(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), "w");
    return output->stream ? MESHCOLL_OK : fail_write(path);
}

int mc_output_close(mc_output_t *output, int status)
{
    bool written = !ferror(output->stream);
    if (output->beside)
        written = mc_fresh_close(&output->fresh, !status, output->mode, output->path);
    else
        written = fclose(output->stream) == 0 && written;
    return status || written ? status : fail_write(output->path);
}

/* Locks ------------------------------------------------------------------------------------------ */

/* Another user's lock file may not be writable; flock() needs it open only for reading. */
static int open_lock(const char *path)
{
    const int flags = O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
    const int fd = mc_descriptor(open(path, O_RDWR | O_CREAT | flags, 0666));
    return fd < 0 && errno == EACCES ? mc_descriptor(open(path, O_RDONLY | flags)) : fd;
}

/* The last holder removes the lock file: is the locked one still the one at `path`? */
static bool is_still_there(int fd, const char *path)
{
    struct stat is, at;
    return fstat(fd, &is) == 0 && stat(path, &at) == 0 && is.st_dev == at.st_dev &&
           is.st_ino == at.st_ino;
}

/* Returns OK, IN_PROGRESS where another process holds the lock, or ERR_IO with errno set. */
static int try_lock(const char *path, int *fd)
{
    const int mine = open_lock(path);
    if (mine < 0)
        return MESHCOLL_ERR_IO;
    const int failed = flock(mine, LOCK_EX | LOCK_NB) ? errno : 0;
    if (!failed && is_still_there(mine, path)) {
        *fd = mine;
        return MESHCOLL_OK;
    }
    close(mine);
    errno = failed;
    return failed == 0 || failed == EWOULDBLOCK || failed == EINTR ? MESHCOLL_IN_PROGRESS
                                                                   : MESHCOLL_ERR_IO;
}

static int fail_lock(const char *path, int status, double seconds)
{
    if (status == MESHCOLL_IN_PROGRESS)
        return mc_fail(
            MESHCOLL_ERR_IO,
            "%s cannot be written: another process has held its lock, %s.lock, for %g s; "
            "end that process and try again",
            path, path, seconds);
    return mc_fail(MESHCOLL_ERR_IO, "%s cannot be written: its lock, %s.lock: %s", path, path,
                   strerror(errno));
}

int mc_file_lock(const char *path, double seconds, mc_file_lock_t *lock)
{
    enum { PAUSE = 2000000 }; /* ns between attempts: the holder only writes a small file */
    const struct timespec pause = {0, PAUSE};
    const double until = mc_now() + seconds;
    mc_file_lock_t mine = {.fd = -1};
    if (strlen(path) >= MC_FILE_PATH)
        return mc_fail(MESHCOLL_ERR_IO, "the path of a file to lock is longer than %d characters",
                       MC_FILE_PATH - 1);
    snprintf(mine.path, sizeof mine.path, "%s.lock", path);
    int status = try_lock(mine.path, &mine.fd);
    while (status == MESHCOLL_IN_PROGRESS && mc_now() < until) {
        nanosleep(&pause, NULL);
        status = try_lock(mine.path, &mine.fd);
    }
    if (status)
        return fail_lock(path, status, seconds);
    *lock = mine;
    return MESHCOLL_OK;
}

/* Remove the file before releasing it: a process that waits for this lock then finds it gone and
 * retries. */
void mc_file_unlock(mc_file_lock_t *lock)
{
    unlink(lock->path);
    close(lock->fd);
    lock->fd = -1;
}
