/* Ranks are processes of one machine that may not do with each other what those of one user may: they decide alike, at
 * creation, what they do instead. */
#include "runtime/handle/handle.h"
#include "transport/shm/shm_memory.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, MOST_TOLD = 4096, MIDDLING = 8 << 10, LARGE = 2 << 20, SECONDS = 30 };
enum { NOBODY = 65534, ANOTHER = 65533 };

/* In memory of all. */
typedef struct {
    pthread_barrier_t barrier;
    char told[RANKS][MOST_TOLD];
} meeting_t;

typedef struct {
    meeting_t *meeting;
    int rank;
} seat_t;

static int allgather(void *context, const void *in, void *out, size_t bytes)
{
    const seat_t *const seat = context;
    if (bytes > MOST_TOLD)
        return 1;
    memcpy(seat->meeting->told[seat->rank], in, bytes);
    pthread_barrier_wait(&seat->meeting->barrier);
    for (int r = 0; r < RANKS; r++)
        memcpy((char *)out + (size_t)r * bytes, seat->meeting->told[r], bytes);
    pthread_barrier_wait(&seat->meeting->barrier);
    return 0;
}

/* What becomes of a rank before it creates the mesh. */
typedef struct {
    uid_t user;
    bool hidden;      /* not dumpable */
    bool own_pids;    /* the first process of a PID namespace */
    bool full;        /* its first descriptors are of an empty file */
    const char *proc; /* options with which its /proc is mounted */
    bool no_proc;     /* there is none */
    rlim_t files;     /* the most bytes of a file; 0: any */
} place_t;

static void mount_proc(const char *options)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("proc", "/proc", "proc", 0, options) != 0)
        _exit(51);
}

/* The outer process waits for the one that is inside, and takes it along. */
static void enter_pids(void)
{
    int how;
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
        _exit(50);
    const pid_t inside = fork();
    if (inside > 0) {
        alarm(SECONDS + 5);
        waitpid(inside, &how, 0);
        _exit(WIFEXITED(how) ? WEXITSTATUS(how) : 100 + WTERMSIG(how));
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (inside < 0)
        _exit(51);
    mount_proc(NULL);
}

static void take_place(const place_t *place)
{
    if (place->own_pids)
        enter_pids();
    if ((place->proc || place->no_proc) && unshare(CLONE_NEWNS) != 0)
        _exit(53);
    if (place->proc)
        mount_proc(place->proc);
    if (place->no_proc && (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
                           mount("none", "/proc", "tmpfs", 0, NULL) != 0))
        _exit(54);
    const struct rlimit files = {place->files, place->files};
    if (place->files && setrlimit(RLIMIT_FSIZE, &files) != 0)
        _exit(55);
    if (place->full) {
        const int empty = memfd_create("empty", 0);
        for (int i = 0; i < 64; i++)
            (void)!dup(empty);
    }
    if (place->user && (setgid(place->user) != 0 || setuid(place->user) != 0))
        _exit(52);
    prctl(PR_SET_DUMPABLE, !place->hidden, 0, 0, 0);
}

typedef struct {
    const char *transports;
    mc_shm_access_t access; /* that is found */
    place_t place[RANKS];
    const place_t *later; /* what becomes of them when they have the mesh; NULL: nothing */
    bool used;            /* it has been used before that */
} case_t;

static int add_up(meshcoll_t *mesh, float *in, float *out)
{
    for (size_t n = 1; n <= LARGE; n = n == 1 ? MIDDLING : n == MIDDLING ? LARGE : n + 1) {
        in[0] = in[n - 1] = 1;
        if (meshcoll_allreduce(mesh, in, out, n, MESHCOLL_FLOAT32, MESHCOLL_SUM)) {
            fprintf(stderr, "rank %d: %s\n", meshcoll_rank(mesh), meshcoll_last_error());
            return 2;
        }
        if (out[0] != RANKS || out[n - 1] != RANKS)
            return 3;
        in[n - 1] = 0;
    }
    return 0;
}

/* What a rank exits with: 0 where all went as it should. */
static int use_mesh(seat_t *seat, const case_t *c)
{
    static float in[LARGE], out[LARGE];
    meshcoll_t *mesh;
    const meshcoll_oob_t oob = {
        .rank = seat->rank, .size = RANKS, .context = seat, .allgather = allgather};
    const meshcoll_params_t params = {
        .size = sizeof params, .mesh = "gpu=3", .links = "uniform", .transports = c->transports};
    alarm(SECONDS);
    if (meshcoll_create_oob(&oob, &params, &mesh)) {
        fprintf(stderr, "rank %d: %s\n", seat->rank, meshcoll_last_error());
        return 1;
    }
    if (mesh->job->connections.access != c->access)
        return 10 + (int)mesh->job->connections.access;
    int failed = c->used ? add_up(mesh, in, out) : 0;
    if (c->later)
        take_place(&c->later[seat->rank]);
    if (!failed)
        failed = add_up(mesh, in, out);
    meshcoll_destroy(mesh);
    return failed;
}

static meeting_t *meet(void)
{
    pthread_barrierattr_t shared;
    meeting_t *const meeting =
        mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(meeting, MAP_FAILED);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->barrier, &shared, RANKS);
    return meeting;
}

static void expect(const case_t *c)
{
    pid_t pid[RANKS];
    meeting_t *const meeting = meet();
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    for (int r = 0; r < RANKS; r++) {
        pid[r] = fork();
        cr_assert_geq(pid[r], 0);
        if (pid[r] == 0) {
            take_place(&c->place[r]);
            _exit(use_mesh(&(seat_t){meeting, r}, c));
        }
    }
    for (int r = 0; r < RANKS; r++) {
        int how;
        cr_assert_eq(waitpid(pid[r], &how, 0), pid[r]);
        cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "rank %d: %s %d", r,
                  WIFEXITED(how) ? "exit status" : "signal",
                  WIFEXITED(how) ? WEXITSTATUS(how) : WTERMSIG(how));
    }
    munmap(meeting, sizeof *meeting);
}

static void expect_with(const char *transports, mc_shm_access_t access, const place_t place[RANKS])
{
    case_t c = {.transports = transports, .access = access};
    for (int r = 0; r < RANKS; r++)
        c.place[r] = place[r];
    expect(&c);
}

static void expect_access(mc_shm_access_t access, const place_t place[RANKS])
{
    expect_with("gpu=shm", access, place);
}

Test(apart, one_user_reads)
{
    const place_t nobody = {.user = NOBODY};
    expect_access(MC_SHM_READ, (place_t[RANKS]){nobody, nobody, nobody});
    expect_with("gpu=shm:copy", MC_SHM_COPY, (place_t[RANKS]){nobody, nobody, nobody});
}

/* As a program is that changed its user: nobody but root opens its descriptors or reads it. */
Test(apart, who_is_hidden_takes_copies)
{
    const place_t nobody = {.user = NOBODY}, hidden = {.user = NOBODY, .hidden = true};
    expect_access(MC_SHM_KEYS, (place_t[RANKS]){hidden, hidden, hidden});
    expect_access(MC_SHM_KEYS, (place_t[RANKS]){nobody, nobody, hidden});
    expect_access(MC_SHM_KEYS, (place_t[RANKS]){hidden, nobody, nobody});
}

/* UCX's sysv looks for its peers in /proc. */
Test(apart, who_is_hidden_and_unseen_shares_nothing)
{
    static const char *const options[] = {"hidepid=1", "hidepid=2"};
    for (size_t i = 0; i < MC_COUNT(options); i++) {
        const place_t nobody = {.user = NOBODY, .proc = options[i]};
        const place_t hidden = {.user = NOBODY, .proc = options[i], .hidden = true};
        expect_access(MC_SHM_READ, (place_t[RANKS]){nobody, nobody, nobody});
        expect_access(MC_SHM_NONE, (place_t[RANKS]){hidden, hidden, hidden});
        expect_access(MC_SHM_NONE, (place_t[RANKS]){nobody, hidden, nobody});
    }
}

/* As in a root folder of few files: segments are opened without it, and UCX, which needs it, is not. */
Test(apart, who_has_no_proc_reads)
{
    const place_t root = {.no_proc = true}, nobody = {.user = NOBODY, .no_proc = true};
    expect_access(MC_SHM_READ, (place_t[RANKS]){root, root, root});
    expect_access(MC_SHM_READ, (place_t[RANKS]){nobody, nobody, nobody});
    expect_with("gpu=shm:copy", MC_SHM_COPY, (place_t[RANKS]){nobody, nobody, nobody});
}

/* A longer file ends a process by SIGXFSZ. */
Test(apart, who_may_not_have_long_files_shares_keys)
{
    const place_t few = {.files = 1 << 20};
    expect_access(MC_SHM_KEYS, (place_t[RANKS]){few, few, few});
    expect_access(MC_SHM_KEYS, (place_t[RANKS]){{0}, few, {0}});
}

/* Root may look into the others, not they into root. */
Test(apart, users_share_nothing)
{
    const place_t root = {0}, nobody = {.user = NOBODY}, another = {.user = ANOTHER};
    expect_access(MC_SHM_NONE, (place_t[RANKS]){nobody, nobody, another});
    expect_access(MC_SHM_NONE, (place_t[RANKS]){nobody, nobody, root});
    expect_access(MC_SHM_NONE, (place_t[RANKS]){root, nobody, nobody});
}

/* As containers of one host, with common IPC, /dev/shm and host name: a box each. */
Test(apart, pid_namespaces_are_boxes)
{
    const place_t inside = {.own_pids = true}, full = {.own_pids = true, .full = true};
    const place_t nobody = {.user = NOBODY, .own_pids = true};
    expect_with(NULL, MC_SHM_NONE, (place_t[RANKS]){inside, full, full});
    expect_with(NULL, MC_SHM_NONE, (place_t[RANKS]){{0}, {0}, full});
    expect_with(NULL, MC_SHM_NONE, (place_t[RANKS]){nobody, nobody, nobody});
}

/* A service that drops its rights when it has its mesh, and one that turns off what reads its memory. */
Test(apart, who_is_hidden_later_copies_from_then_on)
{
    const place_t root = {0}, nobody = {.user = NOBODY}, hidden = {.user = NOBODY, .hidden = true};
    for (int used = 0; used < 2; used++) {
        expect(&(case_t){.transports = "gpu=shm",
                         .access = MC_SHM_READ,
                         .later = (place_t[RANKS]){root, nobody, root},
                         .used = used});
        expect(&(case_t){.transports = "gpu=shm",
                         .access = MC_SHM_READ,
                         .later = (place_t[RANKS]){nobody, nobody, hidden},
                         .used = used});
        expect(&(case_t){.transports = "gpu=shm",
                         .access = MC_SHM_READ,
                         .place = {nobody, nobody, nobody},
                         .later = (place_t[RANKS]){hidden, hidden, hidden},
                         .used = used});
    }
}

/* The segment of one user, tried by another who knows all of its address. */
static int look_from_outside(const mc_shm_address_t *address)
{
    char path[64];
    uint64_t word;
    mc_shm_mapping_t mapping;
    const struct iovec here = {&word, sizeof word};
    const struct iovec there = {(void *)(uintptr_t)address->at, sizeof word}; /* NOLINT */
    take_place(&(place_t){.user = ANOTHER});
    snprintf(path, sizeof path, "/proc/%d/mem", (int)address->file.pid);
    if (mc_shm_memory_open(address, 0, &mapping) == MESHCOLL_OK)
        return 1;
    if (process_vm_readv(address->file.pid, &here, 1, &there, 1, 0) >= 0 || errno != EPERM)
        return 2;
    if (process_vm_writev(address->file.pid, &here, 1, &there, 1, 0) >= 0 || errno != EPERM)
        return 3;
    return open(path, O_RDONLY) >= 0 ? 4 : 0;
}

Test(apart, another_user_sees_nothing)
{
    int how, ready[2];
    char byte = 0;
    cr_assert_eq(pipe(ready), 0);
    const pid_t owner = fork();
    if (owner == 0) {
        mc_shm_mapping_t mapping;
        mc_shm_address_t address;
        take_place(&(place_t){.user = 0});
        if (mc_shm_memory_create(0, true, &mapping, &address))
            _exit(60);
        const pid_t looks = fork(); /* while it still may become another user */
        if (looks == 0) {
            address.at = (uintptr_t)mapping.segment;
            munmap(mapping.segment, mapping.bytes);
            close(address.file.fd);
            _exit(read(ready[0], &byte, 1) == 1 ? look_from_outside(&address) : 63);
        }
        take_place(&(place_t){.user = NOBODY});
        if (looks < 0 || write(ready[1], &byte, 1) != 1 || waitpid(looks, &how, 0) != looks)
            _exit(61);
        _exit(WIFEXITED(how) ? WEXITSTATUS(how) : 62);
    }
    cr_assert_eq(waitpid(owner, &how, 0), owner);
    cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "%d", WEXITSTATUS(how));
}

/* May this process become others, and make namespaces? */
static bool may_part(void)
{
    int how = -1;
    const pid_t tries = geteuid() == 0 ? fork() : -1;
    if (tries == 0)
        _exit(unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 || setuid(NOBODY) != 0);
    return tries > 0 && waitpid(tries, &how, 0) == tries && how == 0;
}

int main(int argc, char **argv)
{
    if (!may_part()) {
        puts("skipped: needs root, to take other users and PID namespaces");
        return 77;
    }
    struct criterion_test_set *const tests = criterion_initialize();
    const int status =
        criterion_handle_args(argc, argv, true) ? !criterion_run_all_tests(tests) : 0;
    criterion_finalize(tests);
    return status;
}
