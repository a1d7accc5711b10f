#include "transport/shm_memory.h"

#include "base/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

_Static_assert(sizeof(mc_shm_slot_t) == MC_SHM_SLOT_BYTES, "a slot is two cache lines");
_Static_assert(sizeof(mc_span_t) == sizeof(struct iovec), "spans are the kernel's scatter lists");

static int fail_errno(const char *what)
{
    return mc_fail(MESHCOLL_ERR_TRANSPORT, "shared memory: %s: %s", what, strerror(errno));
}

static size_t segment_bytes(int32_t n)
{
    return sizeof(mc_shm_segment_t) + (size_t)n * sizeof(mc_shm_channel_t);
}

static int map(int fd, int32_t n, mc_shm_mapping_t *mapping)
{
    const size_t bytes = segment_bytes(n);
    void *const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return fail_errno("mapping a segment");
    *mapping = (mc_shm_mapping_t){.segment = at, .bytes = bytes};
    return MESHCOLL_OK;
}

int mc_shm_memory_create(int32_t n, mc_shm_mapping_t *mapping, mc_shm_address_t *address)
{
    uint64_t cookie;
    mc_shm_mapping_t fresh;
    if (getrandom(&cookie, sizeof cookie, 0) != (ssize_t)sizeof cookie)
        return fail_errno("a random number");
    const int fd = memfd_create("meshcoll", MFD_CLOEXEC);
    if (fd < 0)
        return fail_errno("a memory file");
    int status = MESHCOLL_OK;
    if (ftruncate(fd, (off_t)segment_bytes(n)) != 0)
        status = fail_errno("its size");
    if (!status)
        status = map(fd, n, &fresh);
    if (status) {
        close(fd);
        return status;
    }
    /* where only parents may trace their children (Yama), ranks allow each other to read them */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    fresh.segment->cookie = cookie;
    *mapping = fresh;
    *address = (mc_shm_address_t){
        .cookie = cookie, .at = (uintptr_t)fresh.segment, .pid = getpid(), .fd = fd};
    return MESHCOLL_OK;
}

enum { PATH_TEXT = 64 };

static void print_path(const mc_shm_address_t *address, char path[PATH_TEXT])
{
    snprintf(path, PATH_TEXT, "/proc/%d/fd/%d", (int)address->pid, address->fd);
}

bool mc_shm_memory_is_there(const mc_shm_address_t *address)
{
    char path[PATH_TEXT];
    struct stat s;
    print_path(address, path);
    return lstat(path, &s) == 0 ||
           errno != ENOENT; /* of a process that nobody has waited for too */
}

int mc_shm_memory_open(const mc_shm_address_t *address, int32_t n, mc_shm_mapping_t *mapping)
{
    char path[PATH_TEXT];
    mc_shm_mapping_t opened;
    print_path(address, path);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(path);
    const int status = map(fd, n, &opened);
    close(fd);
    if (status)
        return status;
    if (opened.segment->cookie != address->cookie) {
        mc_shm_memory_close(&opened);
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "shared memory: %s is not the segment expected",
                       path);
    }
    *mapping = opened;
    return MESHCOLL_OK;
}

void mc_shm_memory_close(const mc_shm_mapping_t *mapping)
{
    if (mapping->segment)
        munmap(mapping->segment, mapping->bytes);
}

bool mc_shm_memory_readable(const mc_shm_address_t *address)
{
    uint64_t cookie = 0;
    const struct iovec here = {&cookie, sizeof cookie};
    const struct iovec there = {(void *)(uintptr_t)address->at, sizeof cookie}; /* NOLINT */
    return process_vm_readv(address->pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof cookie &&
           cookie == address->cookie;
}

/* Bells ----------------------------------------------------------------------------------------- */

/* In the abstract namespace, which leaves no file behind; its length. */
static socklen_t bell_name(const mc_shm_address_t *address, struct sockaddr_un *name)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "meshcoll-%016llx",
                           (unsigned long long)address->cookie);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int mc_shm_bell_open(const mc_shm_address_t *address, int *fd)
{
    struct sockaddr_un name;
    const socklen_t length = bell_name(address, &name);
    const int bell = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bell < 0)
        return fail_errno("a socket");
    if (bind(bell, (const struct sockaddr *)&name, length) != 0) {
        close(bell);
        return fail_errno("a socket's name");
    }
    *fd = bell;
    return MESHCOLL_OK;
}

/* A bell that cannot be rung wakes by itself: sleeps are short (runtime/progress.h). */
void mc_shm_bell_ring(int fd, const mc_shm_address_t *address)
{
    struct sockaddr_un name;
    const socklen_t length = bell_name(address, &name);
    (void)!sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&name, length);
}

void mc_shm_bell_quiet(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0)
        ;
}

/* Probing --------------------------------------------------------------------------------------- */

static mc_shm_access_t access_to(const mc_shm_address_t *address)
{
    mc_shm_mapping_t mapping;
    if (address->pid == 0 || mc_shm_memory_open(address, 0, &mapping))
        return MC_SHM_NONE;
    mc_shm_memory_close(&mapping);
    return mc_shm_memory_readable(address) ? MC_SHM_READ : MC_SHM_COPY;
}

int mc_shm_probe(const meshcoll_oob_t *oob, const int32_t *machine, mc_shm_access_t *access)
{
    mc_shm_mapping_t mapping = {0};
    mc_shm_address_t mine = {0};
    void *address = NULL, *found = NULL;
    /* a rank that cannot make one says so by an address without a process */
    if (mc_shm_memory_create(0, &mapping, &mine))
        mine = (mc_shm_address_t){0};
    int status = mc_gather(oob, MESHCOLL_OK, &mine, sizeof mine, &address);
    if (!status) {
        const mc_shm_address_t *const first = address;
        const int32_t own = (int32_t)access_to(&first[machine[oob->rank]]);
        status = mc_gather(oob, MESHCOLL_OK, &own, sizeof own, &found);
    }
    mc_shm_memory_close(&mapping);
    if (mine.pid)
        close(mine.fd);
    int32_t least = MC_SHM_READ;
    for (int32_t r = 0; !status && r < oob->size; r++)
        least = ((const int32_t *)found)[r] < least ? ((const int32_t *)found)[r] : least;
    free(found);
    free(address);
    if (!status)
        *access = (mc_shm_access_t)least;
    return status;
}
