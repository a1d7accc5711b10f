#include "base/system/sealed.h"

#include "base/base.h"
#include "base/system/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

int mc_sealed_make(const char *name, size_t bytes, mc_sealed_t *file, void **at)
{
    struct stat s;
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

/* The descriptor's number may name another file by now, and to open a FIFO or a device may have effects: it is looked
 * at through O_PATH first. */
static int open_named(int named, const char *path, const mc_sealed_t *file, size_t bytes, int *fd)
{
    char name[PATH_TEXT];
    struct stat s;
    if (named < 0 || fstat(named, &s) != 0)
        return fail_errno(path);
    if (!S_ISREG(s.st_mode) || s.st_dev != file->dev || s.st_ino != file->ino ||
        s.st_size != (off_t)bytes)
        return fail_other(path);
    snprintf(name, sizeof name, "/proc/self/fd/%d", named);
    *fd = mc_descriptor(open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    return *fd < 0 ? fail_errno(path) : MESHCOLL_OK;
}

int mc_sealed_map(const mc_sealed_t *file, size_t bytes, void **at)
{
    char path[PATH_TEXT];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)file->pid, file->fd);
    int fd = -1, named = mc_descriptor(open(path, O_PATH | O_CLOEXEC));
    int status = open_named(named, path, file, bytes, &fd);
    if (!status) {
        const int seals = fcntl(fd, F_GET_SEALS);
        status = seals >= 0 && (seals & SEALS) == SEALS ? map(fd, bytes, at) : fail_other(path);
    }
    mc_descriptor_close(&fd);
    mc_descriptor_close(&named);
    return status;
}
