#include "transport/shm/shm_memory.h"

#include "base/system/descriptor.h"
#include "base/system/process.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
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

/* Shape ---------------------------------------------------------------------------------------- */

/* The most bytes of all pages and of all boards of a machine, and the slots for each page where pages are few.
 * So 128 ranks that all talk hold 82 MiB of channels, and up to 16 ranks have channels of full size. */
enum { ALL_PAGES = 64 << 20, ALL_BOARDS = 64 << 20, SLOTS_FOR_PAGE = 8 };

mc_shm_shape_t mc_shm_shape(int32_t n)
{
    const size_t ranks = (size_t)n;
    mc_shm_shape_t s = {.pages = MC_SHM_SLOTS, .board = MC_SHM_BOARD};
    while (s.pages > 1 && ranks * ranks * s.pages > ALL_PAGES / MC_SHM_PAGE)
        s.pages /= 2;
    while (s.board > MC_SHM_EAGER && ranks * s.board > ALL_BOARDS)
        s.board /= 2;
    s.slots = s.pages < MC_SHM_SLOTS / SLOTS_FOR_PAGE ? SLOTS_FOR_PAGE * s.pages : MC_SHM_SLOTS;
    return s;
}

static size_t pages_bytes(const mc_shm_shape_t *s)
{
    return (size_t)s->pages * MC_SHM_PAGE;
}

static size_t channel_bytes(const mc_shm_shape_t *s)
{
    return sizeof(mc_shm_channel_t) + s->slots * sizeof(mc_shm_slot_t);
}

static size_t pages_at(const mc_shm_shape_t *s)
{
    return sizeof(mc_shm_segment_t) + offsetof(mc_shm_board_t, data) + s->board;
}

char *mc_shm_pages(mc_shm_segment_t *segment, int32_t n, int32_t i)
{
    const mc_shm_shape_t s = mc_shm_shape(n);
    return (char *)segment + pages_at(&s) + (size_t)i * pages_bytes(&s);
}

mc_shm_channel_t *mc_shm_channel(mc_shm_segment_t *segment, int32_t n, int32_t i)
{
    const mc_shm_shape_t s = mc_shm_shape(n);
    return (mc_shm_channel_t *)(mc_shm_pages(segment, n, n) + (size_t)i * channel_bytes(&s));
}

static size_t segment_bytes(int32_t n)
{
    const mc_shm_shape_t s = mc_shm_shape(n);
    return pages_at(&s) + (size_t)n * (pages_bytes(&s) + channel_bytes(&s));
}

/* In another PID namespace its PID names another process. Where there is no /proc, zeros: the file's identity decides. */
static mc_shm_pids_t find_pids(void)
{
    struct stat s;
    return stat("/proc/self/ns/pid", &s) ? (mc_shm_pids_t){0} : (mc_shm_pids_t){s.st_dev, s.st_ino};
}

/* Permission to read --------------------------------------------------------------------------- */

static pthread_mutex_t readable_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_readable;

/* Without Yama prctl fails, and is not needed. */
static void add_readable(int n)
{
    pthread_mutex_lock(&readable_lock);
    const bool was = n_readable > 0;
    n_readable += n;
    if (was != (n_readable > 0))
        prctl(PR_SET_PTRACER, was ? 0 : PR_SET_PTRACER_ANY, 0, 0, 0);
    pthread_mutex_unlock(&readable_lock);
}

/* Creating and opening ------------------------------------------------------------------------- */

int mc_shm_memory_create(int32_t n, bool readable, mc_shm_mapping_t *mapping,
                         mc_shm_address_t *address)
{
    mc_shm_address_t a = {0};
    void *at;
    if (getrandom(&a.cookie, sizeof a.cookie, 0) != (ssize_t)sizeof a.cookie)
        return fail_errno("cannot get a random number");
    a.pids = find_pids();
    const int status = mc_sealed_make("meshcoll", segment_bytes(n), &a.file, &at);
    if (status)
        return status;
    a.at = (uintptr_t)at;
    *mapping = (mc_shm_mapping_t){.segment = at, .bytes = segment_bytes(n), .readable = readable};
    mapping->segment->magic = MC_SHM_MAGIC;
    mapping->segment->cookie = a.cookie;
    if (readable)
        add_readable(1);
    *address = a;
    return MESHCOLL_OK;
}

bool mc_shm_memory_is_there(const mc_shm_address_t *address)
{
    const int pid = address->file.pid;
    char path[64];
    struct stat s;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, address->file.fd);
    if (lstat(path, &s) == 0)
        return true;
    const bool none = errno == ENOENT;
    snprintf(path, sizeof path, "/proc/%d/fd/.", pid);
    /* closed by exec, or by a process that has the number now; /proc may hide processes that live (hidepid) */
    if (none && lstat(path, &s) == 0)
        return false;
    return !mc_process_has_ended(pid);
}

int mc_shm_memory_open(const mc_shm_address_t *address, int32_t n, mc_shm_mapping_t *mapping)
{
    const mc_shm_pids_t pids = find_pids();
    void *at;
    if (pids.dev != address->pids.dev || pids.ino != address->pids.ino)
        return mc_fail(MESHCOLL_ERR_TRANSPORT,
                       "shared memory: process %d is in another PID namespace",
                       (int)address->file.pid);
    const int status = mc_sealed_map(&address->file, segment_bytes(n), &at);
    if (status)
        return status;
    const mc_shm_mapping_t opened = {.segment = at, .bytes = segment_bytes(n)};
    if (opened.segment->magic != MC_SHM_MAGIC || opened.segment->cookie != address->cookie) {
        mc_shm_memory_close(&opened);
        return mc_fail(MESHCOLL_ERR_TRANSPORT,
                       "shared memory: descriptor %d of process %d is not the segment expected",
                       (int)address->file.fd, (int)address->file.pid);
    }
    *mapping = opened;
    return MESHCOLL_OK;
}

void mc_shm_memory_close(const mc_shm_mapping_t *mapping)
{
    if (!mapping->segment)
        return;
    if (mapping->readable)
        add_readable(-1);
    munmap(mapping->segment, mapping->bytes);
}

void mc_shm_memory_forbid(mc_shm_mapping_t *mapping)
{
    if (mapping->readable)
        add_readable(-1);
    mapping->readable = false;
}

bool mc_shm_memory_readable(const mc_shm_address_t *address)
{
    uint64_t cookie = 0;
    const struct iovec here = {&cookie, sizeof cookie};
    const uint64_t at = address->at + offsetof(mc_shm_segment_t, cookie);
    const struct iovec there = {(void *)(uintptr_t)at, sizeof cookie}; /* NOLINT */
    return process_vm_readv(address->file.pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof cookie &&
           cookie == address->cookie;
}

/* Wake-up sockets ------------------------------------------------------------------------------ */

/* In the abstract namespace, which leaves no file behind. Returns the name's length. */
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
    const int bell = mc_descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (bell < 0)
        return fail_errno("cannot create a socket");
    if (bind(bell, (const struct sockaddr *)&name, length) != 0) {
        close(bell);
        return fail_errno("cannot bind a socket");
    }
    *fd = bell;
    return MESHCOLL_OK;
}

/* A failure is harmless: sleeps are short (runtime/progress/progress.h). */
void mc_shm_bell_ring(int fd, const mc_shm_address_t *address)
{
    struct sockaddr_un name;
    const socklen_t length = bell_name(address, &name);
    (void)!sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&name, length);
}

/* Any process of the network namespace can ring, so the number of datagrams read at once is
 * bounded. The rest wakes this rank once more. */
void mc_shm_bell_quiet(int fd)
{
    enum { MOST = 64 };
    char byte;
    for (int n = 0; n < MOST && recv(fd, &byte, 1, MSG_DONTWAIT) >= 0; n++)
        ;
}
