/* The gate: a file mapped by all ranks, with futexes in it. Linux only, as the lab is. */
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, LOOK_NS = 10 * 1000 * 1000 };

/* How long a rank polls in one box before it blocks, about 0.2 ms. That is longer than ranks
 * need from their barrier to the gate, so that no core becomes idle, and short enough that two
 * ranks on one core do not delay each other for long. */
enum { LOOKS = 100 * 1000, YIELDS = 400 };

/* The pause from the end of an operation to the next release where a network connects the ranks:
 * longer than a barrier on a quiet machine with eight ranks per core. */
static const double network_pause = 0.5e-3; /* seconds */

/* What the ranks share. */
typedef struct {
    _Alignas(LINE) uint64_t nonce;           /* is it the file that rank 0 made? */
    _Alignas(LINE) _Atomic uint64_t ended;   /* the slowest rank's last operation, in ns */
    _Atomic uint64_t met;                    /* the slowest rank's last barrier, in ns */
    _Alignas(LINE) _Atomic uint32_t arrived; /* all but rank 0 */
    _Alignas(LINE) _Atomic uint32_t turn;
    double released; /* of that turn; in its line, as whoever is let go reads both */
    bool late;       /* of that turn too */
    _Alignas(LINE) _Atomic uint32_t asleep; /* ranks */
} shared_t;

struct gate {
    shared_t *shared;
    gate_ranks_t ranks;
    int looks;    /* before it sleeps */
    bool yields;  /* between looks */
    double pause; /* seconds */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* What each rank has at `in`, by rank; NULL: no memory, which no rank must tell alone. */
static char *gather(const gate_ranks_t *r, const void *in, size_t bytes)
{
    char *const all = malloc((size_t)r->size * bytes);
    if (!all)
        abort();
    r->allgather(r->context, in, all, bytes);
    return all;
}

/* True if no rank has a reason against it; else all have the first such rank's reason. */
static bool agree(const gate_ranks_t *r, char why[GATE_WHY])
{
    char *const all = gather(r, why, GATE_WHY);
    int first = 0;
    while (first < r->size && !all[(size_t)first * GATE_WHY])
        first++;
    if (first < r->size)
        memcpy(why, all + (size_t)first * GATE_WHY, GATE_WHY);
    free(all);
    return first == r->size;
}

/* Two ranks with the same text have one kernel and one clock: boots have ids, and a time namespace
 * has a CLOCK_MONOTONIC of its own. */
static void name_kernel(char name[GATE_WHY])
{
    char boot[64] = "no boot id", space[64] = "";
    FILE *const file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file && fgets(boot, sizeof boot, file))
        boot[strcspn(boot, "\n")] = '\0';
    if (file)
        fclose(file);
    const ssize_t n = readlink("/proc/self/ns/time", space, sizeof space - 1);
    space[n > 0 ? n : 0] = '\0';
    memset(name, 0, GATE_WHY);
    snprintf(name, GATE_WHY, "%s %s", boot, space);
}

static void check_kernel(const gate_ranks_t *r, char why[GATE_WHY])
{
    char mine[GATE_WHY];
    name_kernel(mine);
    char *const first = gather(r, mine, GATE_WHY);
    if (strcmp(mine, first) != 0)
        snprintf(
            why, GATE_WHY,
            "--gate: expected all ranks on one kernel with one clock; rank %d has %.100s, rank 0 "
            "%.100s; leave --gate out, the library's barrier will do",
            r->rank, mine, first);
    free(first);
}

static shared_t *map_file(int file)
{
    if (file < 0)
        return NULL;
    void *const at = mmap(NULL, sizeof(shared_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

static shared_t *make(const char *path, uint64_t nonce, char why[GATE_WHY])
{
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    shared_t *shared = NULL;
    const int lacks = file < 0 ? errno : posix_fallocate(file, 0, sizeof *shared);
    if (lacks == 0)
        shared = map_file(file);
    if (shared)
        shared->nonce = nonce;
    else
        snprintf(why, GATE_WHY, "--gate: expected to make a new file %.300s: %s", path,
                 strerror(lacks ? lacks : errno));
    if (!shared && file >= 0)
        unlink(path);
    if (file >= 0)
        close(file);
    return shared;
}

/* The size is checked first: an access past the end of the file raises SIGBUS. */
static shared_t *find(const char *path, uint64_t nonce, int rank, char why[GATE_WHY])
{
    const int file = open(path, O_RDWR | O_CLOEXEC);
    const bool whole = file >= 0 && lseek(file, 0, SEEK_END) >= (off_t)sizeof(shared_t);
    shared_t *shared = whole ? map_file(file) : NULL;
    if (shared && shared->nonce != nonce) {
        munmap(shared, sizeof *shared);
        shared = NULL;
    }
    if (!shared)
        snprintf(
            why, GATE_WHY,
            "--gate: expected %.300s to be one file for all ranks; rank %d does not find what rank "
            "0 made there; name a folder that they share",
            path, rank);
    if (file >= 0)
        close(file);
    return shared;
}

/* Boxes have names of their own, on one kernel too (bench/lab). */
static bool in_several_boxes(const gate_ranks_t *r)
{
    char name[HOST_NAME_MAX + 1] = {0};
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    gethostname(name, HOST_NAME_MAX);
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    char *const all = gather(r, &hash, sizeof hash);
    bool several = false;
    for (int i = 1; i < r->size; i++)
        several |= memcmp(all, all + (size_t)i * sizeof hash, sizeof hash) != 0;
    free(all);
    return several;
}

void gate_set_pause(gate_t *gate, double seconds)
{
    gate->pause = seconds;
}

bool gate_open(const gate_ranks_t *ranks, const char *path, gate_t **gate, char why[GATE_WHY])
{
    gate_t *const g = calloc(1, sizeof *g);
    const int rank = ranks->rank;
    memset(why, 0, GATE_WHY);
    if (!g)
        snprintf(why, GATE_WHY, "--gate: out of memory on rank %d", rank);
    check_kernel(ranks, why);
    if (!agree(ranks, why)) {
        free(g);
        return false;
    }
    g->ranks = *ranks;
    g->pause = in_several_boxes(ranks) ? network_pause : 0;
    g->yields = ranks->size > sysconf(_SC_NPROCESSORS_ONLN);
    g->looks = g->pause > 0 ? 0 : g->yields ? YIELDS : LOOKS;

    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t nonce = ((uint64_t)t.tv_sec << 30 | (uint64_t)t.tv_nsec) ^ (uint64_t)getpid() << 48;
    char *const nonces = gather(ranks, &nonce, sizeof nonce);
    memcpy(&nonce, nonces, sizeof nonce); /* rank 0's */
    free(nonces);
    if (rank == 0)
        g->shared = make(path, nonce, why);
    const bool made = agree(ranks, why);
    if (made && rank != 0)
        g->shared = find(path, nonce, rank, why);
    const bool open = made && agree(ranks, why);
    if (made && rank == 0)
        unlink(
            path); /* the mappings remain valid, and no file is left behind however the run ends */
    agree(ranks, why); /* a barrier */
    if (!open) {
        gate_close(g);
        return false;
    }
    *gate = g;
    return true;
}

void gate_close(gate_t *gate)
{
    if (gate && gate->shared)
        munmap(gate->shared, sizeof *gate->shared);
    free(gate);
}

/* --- passing ---------------------------------------------------------------------------------- */

/* Waits while *word is `value`. A blocked rank polls the library from time to time. */
static void wait_on(gate_t *gate, _Atomic uint32_t *word, uint32_t value)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    for (int i = 0; i < gate->looks; i++) {
        if (atomic_load(word) != value)
            return;
        if (gate->yields)
            sched_yield();
    }
    atomic_fetch_add(&gate->shared->asleep, 1);
    const bool nothing = syscall(SYS_futex, word, FUTEX_WAIT, value, &look, NULL, 0) != 0;
    const bool timed_out = nothing && errno == ETIMEDOUT;
    atomic_fetch_sub(&gate->shared->asleep, 1);
    if (timed_out && gate->ranks.poll)
        gate->ranks.poll(gate->ranks.context);
}

/* After the word was set, which whoever sleeps looks at once more. */
static void wake(gate_t *gate, _Atomic uint32_t *word, int n)
{
    if (atomic_load(&gate->shared->asleep) > 0)
        syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}

static void keep_latest(_Atomic uint64_t *moment, double seconds)
{
    const uint64_t mine = (uint64_t)(seconds * 1e9);
    uint64_t latest = atomic_load(moment);
    while (latest < mine && !atomic_compare_exchange_weak(moment, &latest, mine))
        ;
}

void gate_leave(gate_t *gate, double ended)
{
    keep_latest(&gate->shared->ended, ended);
}

void gate_met(gate_t *gate, double moment)
{
    if (gate->pause > 0)
        keep_latest(&gate->shared->met, moment);
}

/* Polls: no other rank needs the core, and an idle core wakes up slowly. */
static void pause_after(uint64_t ended, double least_pause)
{
    while (now() * 1e9 < (double)ended + least_pause * 1e9)
        ;
}

/* Rank 0 always releases the others, so that the order of arrival depends on the barrier only,
 * and the releasing rank already runs on a core. */
static void release(gate_t *gate, uint32_t turn)
{
    shared_t *const s = gate->shared;
    const uint32_t others = (uint32_t)gate->ranks.size - 1;
    for (uint32_t n; (n = atomic_load(&s->arrived)) != others;)
        wait_on(gate, &s->arrived, n);
    const uint64_t ended = atomic_load(&s->ended), met = atomic_load(&s->met);
    s->late = gate->pause > 0 && (double)met > (double)ended + gate->pause * 1e9;
    pause_after(ended, gate->pause);
    atomic_store(&s->arrived, 0);
    s->released = now();
    atomic_store(&s->turn, turn + 1);
    wake(gate, &s->turn, INT_MAX);
}

static void wait_for_release(gate_t *gate, uint32_t turn)
{
    shared_t *const s = gate->shared;
    if (atomic_fetch_add(&s->arrived, 1) + 1 == (uint32_t)gate->ranks.size - 1)
        wake(gate, &s->arrived, 1);
    while (atomic_load(&s->turn) == turn)
        wait_on(gate, &s->turn, turn);
}

double gate_pass(gate_t *gate)
{
    const uint32_t turn = atomic_load(&gate->shared->turn);
    if (gate->ranks.rank == 0)
        release(gate, turn);
    else
        wait_for_release(gate, turn);
    return gate->shared->released; /* the next release waits for this rank */
}

bool gate_late(const gate_t *gate)
{
    return gate->shared->late;
}
