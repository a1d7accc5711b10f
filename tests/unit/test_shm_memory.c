/* What a segment's address leads to is looked at before it is opened, mapped or read; whom this process lets read it. */
#include "transport/shm/shm.h"
#include "transport/shm/shm_memory.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* In place of the C library's: what was asked of the kernel. */
static int n_allowed, n_taken_back;
int prctl(int option, ...)
{
    unsigned long arg[4];
    va_list args;
    va_start(args, option);
    for (int i = 0; i < 4; i++)
        arg[i] = va_arg(args, unsigned long);
    va_end(args);
    if (option != PR_SET_PTRACER)
        return (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
    n_allowed += arg[0] == (unsigned long)PR_SET_PTRACER_ANY;
    n_taken_back += arg[0] == 0;
    return 0;
}

static int n_reads;
static bool refuses_reads;
ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n_here,
                         const struct iovec *there, unsigned long n_there, unsigned long flags)
{
    n_reads++;
    if (refuses_reads) {
        errno = EPERM;
        return -1;
    }
    return syscall(SYS_process_vm_readv, pid, here, n_here, there, n_there, flags);
}

static int n_rings; /* that are there yet */
ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    if (n_rings > 0)
        return n_rings-- > 0;
    return recvfrom(fd, to, bytes, flags, NULL, NULL);
}

typedef struct {
    mc_shm_mapping_t mapping;
    mc_shm_address_t address;
} segment_t;

static segment_t create_segment(void)
{
    segment_t s;
    cr_assert_eq(mc_shm_memory_create(1, true, &s.mapping, &s.address), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    return s;
}

static void close_segment(const segment_t *s)
{
    mc_shm_memory_close(&s->mapping);
    close(s->address.file.fd);
}

/* An address that says of another file that it is the segment. */
static mc_shm_address_t address_of(int fd)
{
    struct stat s, pids;
    cr_assert(fstat(fd, &s) == 0 && stat("/proc/self/ns/pid", &pids) == 0);
    return (mc_shm_address_t){.file = {s.st_dev, s.st_ino, getpid(), fd},
                              .pids = {pids.st_dev, pids.st_ino}};
}

static void expect_refused(const mc_shm_address_t *address, const char *says)
{
    mc_shm_mapping_t mapping;
    cr_expect_eq(mc_shm_memory_open(address, 1, &mapping), MESHCOLL_ERR_TRANSPORT, "%s", says);
    cr_expect_not_null(strstr(meshcoll_last_error(), says), "%s", meshcoll_last_error());
}

Test(shm_memory, opens_what_was_made)
{
    mc_shm_mapping_t mapping;
    const segment_t s = create_segment();
    cr_assert_eq(mc_shm_memory_open(&s.address, 1, &mapping), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    cr_expect_eq(mapping.segment->cookie, s.address.cookie);
    mc_shm_memory_close(&mapping);
    close_segment(&s);
}

Test(shm_memory, cannot_be_cut_short)
{
    const segment_t s = create_segment();
    cr_expect_neq(ftruncate(s.address.file.fd, 0), 0);
    cr_expect_neq(ftruncate(s.address.file.fd, (off_t)s.mapping.bytes + 4096), 0);
    cr_expect_neq(fcntl(s.address.file.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
    close_segment(&s);
}

Test(shm_memory, refuses_a_segment_for_other_ranks)
{
    mc_shm_mapping_t mapping;
    const segment_t s = create_segment();
    cr_expect_eq(mc_shm_memory_open(&s.address, 2, &mapping), MESHCOLL_ERR_TRANSPORT);
    mc_shm_address_t other = s.address;
    other.cookie++;
    expect_refused(&other, "is not the segment expected");
    other = s.address;
    other.file.ino++;
    expect_refused(&other, "is not the segment expected");
    close_segment(&s);
}

Test(shm_memory, refuses_a_process_of_another_pid_namespace)
{
    const segment_t s = create_segment();
    mc_shm_address_t other = s.address;
    other.pids.ino++;
    expect_refused(&other, "another PID namespace");
    close_segment(&s);
}

static int make_file(off_t bytes, bool sealed)
{
    const int fd = memfd_create("other", MFD_ALLOW_SEALING);
    cr_assert(fd >= 0 && ftruncate(fd, bytes) == 0);
    cr_assert(!sealed || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    return fd;
}

static void expect_file_refused(int fd, uint64_t cookie)
{
    mc_shm_address_t other = address_of(fd);
    other.cookie = cookie;
    expect_refused(&other, "is not the segment expected");
    close(fd);
}

/* Reading the first page of an empty file would end the process, and so would that of one that is cut short later. */
Test(shm_memory, refuses_files_of_another_size_or_kind)
{
    enum { HEAD = 64 };
    const segment_t s = create_segment();
    const off_t bytes = (off_t)s.mapping.bytes;
    expect_file_refused(make_file(0, true), 0);
    const int loose = make_file(bytes, false);
    cr_assert_eq(pwrite(loose, s.mapping.segment, HEAD, 0), HEAD);
    expect_file_refused(loose, s.address.cookie);
    expect_file_refused(make_file(bytes, true), 0); /* it has no magic number */
    expect_file_refused(open("/dev/null", O_RDWR), 0);
    close_segment(&s);
}

/* Its reader would see a writer come and go. */
Test(shm_memory, never_opens_a_fifo)
{
    char name[] = "/tmp/meshcoll-fifo-XXXXXX";
    cr_assert(mkdtemp(name));
    char path[64];
    snprintf(path, sizeof path, "%s/fifo", name);
    cr_assert_eq(mkfifo(path, 0600), 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    cr_assert_geq(reader, 0);
    const mc_shm_address_t other = address_of(reader);
    expect_refused(&other, "is not the segment expected");
    struct pollfd fd = {.fd = reader, .events = POLLIN};
    cr_expect_eq(poll(&fd, 1, 0), 0);
    close(reader);
    unlink(path);
    rmdir(name);
}

static mc_transport_t *create_transport(mc_shm_access_t access)
{
    mc_transport_t *t;
    const mc_shm_params_t params = {.dim = "gpu", .n = 1, .access = access};
    cr_assert_eq(mc_shm_create(&params, &t), MESHCOLL_OK, "%s", meshcoll_last_error());
    return t;
}

/* Whoever may read this process may do so while a transport is there that needs it. */
Test(shm_memory, takes_back_what_it_allowed)
{
    mc_transport_t *const copies = create_transport(MC_SHM_COPY);
    cr_expect_eq(n_allowed, 0);
    mc_transport_t *const one = create_transport(MC_SHM_READ);
    mc_transport_t *const two = create_transport(MC_SHM_READ);
    cr_expect_eq(n_allowed, 1);
    one->ops->close(one);
    cr_expect_eq(n_taken_back, 0);
    two->ops->close(two);
    cr_expect_eq(n_taken_back, 1);
    copies->ops->close(copies);
    cr_expect_eq(n_taken_back, 1);
}

typedef struct {
    mc_shm_probe_t probe;
    int32_t machine;
    mc_shm_ranks_t ranks;
} alone_t;

static void open_alone(alone_t *a)
{
    mc_shm_probe_open(&a->probe);
    a->machine = 0;
    a->ranks = (mc_shm_ranks_t){&a->machine, 1, 0, &a->probe.published, sizeof a->probe.published};
}

/* As MESHCOLL_TRANSPORTS=gpu=shm:copy promises. */
Test(shm_memory, who_copies_reads_nobody)
{
    alone_t a;
    open_alone(&a);
    cr_expect_eq(mc_shm_probe_copies(&a.ranks), MC_SHM_COPY);
    cr_expect_eq(n_allowed, 0);
    cr_expect_eq(n_reads, 0);
    cr_expect_eq(mc_shm_probe_reads(&a.ranks), MC_SHM_READ);
    cr_expect_eq(n_reads, 1);
    mc_shm_probe_close(&a.probe);
}

/* As by Yama's scope 2, or seccomp: what was allowed for nothing is taken back. */
Test(shm_memory, who_may_not_read_copies)
{
    alone_t a;
    refuses_reads = true;
    open_alone(&a);
    cr_expect_eq(mc_shm_probe_reads(&a.ranks), MC_SHM_COPY);
    mc_shm_probe_close(&a.probe);
    mc_transport_t *const t = create_transport(MC_SHM_READ);
    cr_expect(t->pulls && n_allowed == 1);
    mc_shm_lower(t);
    cr_expect(!t->pulls && n_taken_back == 1);
    t->ops->close(t);
    cr_expect_eq(n_taken_back, 1);
}

static void *create_and_close(void *unused)
{
    for (int i = 0; i < 50; i++) {
        const segment_t s = create_segment();
        close_segment(&s);
    }
    return unused;
}

Test(shm_memory, counts_across_threads)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, create_and_close, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    cr_expect_geq(n_allowed, 1);
    cr_expect_eq(n_allowed, n_taken_back);
}

/* Anybody can ring, as fast as this rank looks. */
Test(shm_memory, a_bell_that_does_not_stop_holds_nobody)
{
    enum { RINGS = 100000 };
    n_rings = RINGS;
    mc_shm_bell_quiet(-1);
    cr_expect_gt(n_rings, RINGS - 1000);
    n_rings = 0;
}

enum { NOBODY = 65534 };

/* A rank's process makes a segment, and waits to be told to end. */
static void be_peer(int to, int from)
{
    mc_shm_mapping_t mapping;
    mc_shm_address_t address;
    char byte;
    if (mc_shm_memory_create(1, true, &mapping, &address) ||
        write(to, &address, sizeof address) != (ssize_t)sizeof address)
        _exit(1);
    _exit(read(from, &byte, 1) == 1 ? 0 : 1);
}

/* Exit status: 0 where its child is there as long as it runs, and gone when it has ended, waited for or not. */
static int watch_peer(void)
{
    int up[2], down[2];
    mc_shm_address_t address;
    siginfo_t ended;
    if (geteuid() == 0 && setuid(NOBODY))
        return 1;
    if (prctl(PR_SET_DUMPABLE, 1) || pipe(up) || pipe(down))
        return 2;
    const pid_t peer = fork();
    if (peer == 0)
        be_peer(up[1], down[0]);
    if (peer < 0 || read(up[0], &address, sizeof address) != (ssize_t)sizeof address)
        return 3;
    if (!mc_shm_memory_is_there(&address))
        return 4;
    if (write(down[1], "", 1) != 1 || waitid(P_PID, (id_t)peer, &ended, WEXITED | WNOWAIT))
        return 5;
    if (mc_shm_memory_is_there(&address))
        return 6;
    return waitpid(peer, NULL, 0) == peer && !mc_shm_memory_is_there(&address) ? 0 : 7;
}

/* Not as root, who sees what others do not. */
Test(shm_memory, a_process_that_has_ended_is_gone_also_before_its_parent_waits)
{
    int how;
    const pid_t rank = fork();
    if (rank == 0)
        _exit(watch_peer());
    cr_assert_eq(waitpid(rank, &how, 0), rank);
    cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "exit status %d", WEXITSTATUS(how));
}

/* It would end the process by SIGXFSZ. */
Test(shm_memory, is_no_longer_than_files_may_be)
{
    mc_shm_mapping_t mapping;
    mc_shm_address_t address;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){5 << 20, RLIM_INFINITY}), 0);
    cr_assert_eq(mc_shm_memory_create(2, false, &mapping, &address), MESHCOLL_OK);
    cr_expect_eq(mc_shm_memory_create(16, false, &mapping, &address), MESHCOLL_ERR_TRANSPORT);
    cr_expect_not_null(strstr(meshcoll_last_error(), "ulimit -f"), "%s", meshcoll_last_error());
}
