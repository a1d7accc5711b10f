#include "base/system/sealed.h"

#include "base/base.h"
#include "base/system/descriptor.h"
#include "base/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, PATH_TEXT = 64 };

static int fail_errno(const char *what)
{
    return mc_fail(MESHCOLL_ERR_TRANSPORT, "shared memory: %s: %s", what, strerror(errno));
}

static int fail_other(const char *path)
{
    return mc_fail(MESHCOLL_ERR_TRANSPORT, "shared memory: %s is not the segment expected", path);
}

static int map(int fd, size_t bytes, void **at)
{
    void *const mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return fail_errno("cannot map a memory file");
    *at = mapped;
    return MESHCOLL_OK;
}

static int fail_limit(size_t bytes)
{
    return mc_fail(
        MESHCOLL_ERR_TRANSPORT,
        "shared memory: a memory file of %zu KiB is needed, and files of this process may "
        "have %llu KiB: raise the limit (ulimit -f)",
        bytes >> 10, (unsigned long long)mc_file_most() >> 10);
}

int mc_sealed_make(const char *name, size_t bytes, mc_sealed_t *file, void **at)
{
    struct stat s;
    if (bytes > mc_file_most())
        return fail_limit(bytes);
    int fd = mc_descriptor(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const bool made = fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 &&
                      fcntl(fd, F_ADD_SEALS, SEALS) == 0 && fstat(fd, &s) == 0;
    const int status = made ? map(fd, bytes, at) : fail_errno("cannot make a memory file");
    if (status)
        mc_descriptor_close(&fd);
    else
        *file = (mc_sealed_t){s.st_dev, s.st_ino, getpid(), fd};
    return status;
}

/* The descriptor's number may name another file by now. */
static int check(int fd, const char *path, const mc_sealed_t *file, size_t bytes)
{
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0)
        return fail_errno(path);
    return S_ISREG(s.st_mode) && s.st_dev == file->dev && s.st_ino == file->ino &&
                   s.st_size == (off_t)bytes
               ? MESHCOLL_OK
               : fail_other(path);
}

/* To open a FIFO or a device may have effects: it is looked at through O_PATH first. */
static int open_named(int named, const char *path, const mc_sealed_t *file, size_t bytes, int *fd)
{
    char name[PATH_TEXT];
    if (check(named, path, file, bytes))
        return MESHCOLL_ERR_TRANSPORT;
    snprintf(name, sizeof name, "/proc/self/fd/%d", named);
    *fd = mc_descriptor(open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    return *fd < 0 ? fail_errno(path) : MESHCOLL_OK;
}

/* The process's own descriptor, which needs no /proc, but the right to trace the process. */
static int copy_descriptor(const char *path, const mc_sealed_t *file, size_t bytes, int *fd)
{
    const int process = mc_descriptor((int)syscall(SYS_pidfd_open, file->pid, 0));
    *fd = process < 0 ? -1 : mc_descriptor((int)syscall(SYS_pidfd_getfd, process, file->fd, 0));
    const int status = check(*fd, path, file, bytes);
    if (process >= 0)
        close(process);
    return status;
}

int mc_sealed_map(const mc_sealed_t *file, size_t bytes, void **at)
{
    char path[PATH_TEXT];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)file->pid, file->fd);
    int fd = -1, named = mc_descriptor(open(path, O_PATH | O_CLOEXEC));
    int status = named < 0 && errno == ENOENT ? copy_descriptor(path, file, bytes, &fd)
                                              : open_named(named, path, file, bytes, &fd);
    if (!status) {
        const int seals = fcntl(fd, F_GET_SEALS);
        status = seals >= 0 && (seals & SEALS) == SEALS ? map(fd, bytes, at) : fail_other(path);
    }
    mc_descriptor_close(&fd);
    mc_descriptor_close(&named);
    return status;
}
