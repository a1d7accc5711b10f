/* A call costs about the same with few and with many in flight: begun, and to the end. Instructions are counted, by
 * callgrind: the program starts itself again under it. Without valgrind, and under a sanitizer, results only. */
#include "base/base.h"
#include "support/inproc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, FEW = 16, MANY = 16000, COUNTED = 4000, LEARNED = 400, FAILED = 1, SKIPPED = 77 };

static meshcoll_t *rank[RANKS];
static double in[RANKS][MANY], out[RANKS][MANY];
static meshcoll_request_t *request[RANKS][2 * MANY];

static void need(int good, const char *what)
{
    if (good)
        return;
    printf("%s: %s\n", what, meshcoll_last_error());
    exit(FAILED);
}

static int wait_for(int n)
{
    int status[RANKS] = {MESHCOLL_IN_PROGRESS, MESHCOLL_IN_PROGRESS}, left = RANKS;
    for (int at[RANKS] = {0}; left > 0;) {
        left = 0;
        for (int r = 0; r < RANKS; r++) {
            while (at[r] < n && (status[r] = meshcoll_test(request[r][at[r]])) == MESHCOLL_OK)
                at[r]++;
            need(status[r] >= 0, "wait");
            left += at[r] < n;
        }
    }
    return n;
}

/* Returns the number of requests. One rank begins all before the other one. */
static int begin_sums(int n)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < n; i++)
            need(meshcoll_iallreduce(rank[r], &in[r][i], &out[r][i], 1, MESHCOLL_FLOAT64,
                                     MESHCOLL_SUM, &request[r][i]) == MESHCOLL_OK,
                 "allreduce");
    return n;
}

static void send_to_other(int r, int n, int i)
{
    need(meshcoll_send_begin(rank[r], &in[r][i], 1, MESHCOLL_FLOAT64, 1 - r, i,
                             &request[r][n + i]) == MESHCOLL_OK,
         "send");
}

static void receive(int r, int n, int i)
{
    need(meshcoll_recv_begin(rank[r], &out[r][i], 1, MESHCOLL_FLOAT64, 1 - r, n - 1 - i, NULL,
                             &request[r][i]) == MESHCOLL_OK,
         "receive");
}

/* Receives are posted in the opposite order of the tags that come. */
static int begin_posted(int n)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < n; i++)
            receive(r, n, i);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < n; i++)
            send_to_other(r, n, i);
    return 2 * n;
}

/* The messages come first, as far as they may. */
static int begin_unexpected(int n)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < n; i++)
            send_to_other(r, n, i);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < n; i++)
            receive(r, n, i);
    return 2 * n;
}

/* `most_times`: instructions with COUNTED in flight, in those with FEW; what grows with their number would be over a
 * hundred times as much. Where calls learn, most of many are deferred, and no call finds its request bound. */
static const struct {
    const char *name, *adapt;
    int (*begin)(int n);
    double most_times;
} kinds[] = {{"sums", "off", begin_sums, 2},
             {"sums that learn", "on", begin_sums, 6},
             {"posted", "off", begin_posted, 2},
             {"unexpected", "off", begin_unexpected, 2}};

/* What callgrind counts, by its name. */
__attribute__((noinline)) void in_flight_calls(size_t kind, int n);

void in_flight_calls(size_t kind, int n)
{
    (void)wait_for(kinds[kind].begin(n));
}

/* `calls` calls, of which `n` are in flight at a time; before them some that settle what is learned, and n that fill
 * the caches. */
static void run(size_t kind, int n, int calls)
{
    need(setenv("MESHCOLL_ADAPT", kinds[kind].adapt, 1) == 0, "setenv");
    need(mc_inproc_create("x=2", NULL, rank) == MESHCOLL_OK, "create");
    for (int i = 0; i < LEARNED / FEW; i++)
        (void)wait_for(kinds[kind].begin(FEW));
    (void)wait_for(kinds[kind].begin(n));
    for (int done = 0; done + n <= calls; done += n)
        in_flight_calls(kind, n);
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
}

/* A sanitizer's program does not run under valgrind. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#endif

#ifdef SANITIZED

static int cost(const char *program)
{
    (void)program;
    puts("instructions are not counted: this is a sanitizer's program");
    return 0;
}

#else

/* Instructions of a call, as callgrind says. */
static double count(const char *program, size_t kind, int n)
{
    char command[4096], line[256];
    double got = 0;
    (void)snprintf(command, sizeof command,
                   "valgrind --tool=callgrind --callgrind-out-file=/dev/null "
                   "--toggle-collect=in_flight_calls '%s' %zu %d 2>&1",
                   program, kind, n);
    FILE *const from = popen(command, "r");
    need(from != NULL, "popen");
    while (fgets(line, sizeof line, from))
        if (strstr(line, "Collected : "))
            got = strtod(strstr(line, " : ") + 3, NULL);
    need(pclose(from) == 0 && got > 0, command);
    return got / COUNTED;
}

static int cost(const char *program)
{
    int failed = 0;
    if (system("command -v valgrind >/dev/null") != 0) {
        puts("skipped: valgrind is not installed");
        return SKIPPED;
    }
    for (size_t k = 0; k < MC_COUNT(kinds); k++) {
        const double few = count(program, k, FEW), many = count(program, k, COUNTED);
        printf("%s: %.0f instructions with %d in flight, %.0f with %d\n", kinds[k].name, few, FEW,
               many, COUNTED);
        failed |= many > kinds[k].most_times * few;
    }
    return failed;
}

#endif

int main(int argc, char **argv)
{
    if (argc == 3) {
        run(strtoul(argv[1], NULL, 10), (int)strtol(argv[2], NULL, 10), COUNTED);
        return 0;
    }
    for (size_t k = 0; k < MC_COUNT(kinds); k++) {
        for (int i = 0; i < RANKS * MANY; i++)
            out[i / MANY][i % MANY] = 1;
        run(k, MANY, MANY);
        for (int i = 0; i < RANKS * MANY; i++)
            need(out[i / MANY][i % MANY] == 0, kinds[k].name);
    }
    return cost(argv[0]);
}
