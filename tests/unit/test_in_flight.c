/* A call costs about the same with few and with many in flight: begun, and to the end. Costs that grow with their
 * number would be hundreds of times as high here. */
#include "base/base.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

enum { RANKS = 2, FEW = 16, MANY = 16000, MOST_TIMES = 40, TURNS = 3 };

static meshcoll_t *rank[RANKS];
static double in[RANKS][MANY], out[RANKS][MANY];
static meshcoll_request_t *request[RANKS][2 * MANY];

static double now(void) /* CPU time: other processes do not count */
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int wait_for(int n)
{
    int status[RANKS] = {MESHCOLL_IN_PROGRESS, MESHCOLL_IN_PROGRESS}, left = RANKS;
    for (int at[RANKS] = {0}; left > 0;) {
        left = 0;
        for (int r = 0; r < RANKS; r++) {
            while (at[r] < n && (status[r] = meshcoll_test(request[r][at[r]])) == MESHCOLL_OK)
                at[r]++;
            cr_assert_geq(status[r], 0, "%s", meshcoll_last_error());
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
            cr_assert_eq(meshcoll_iallreduce(rank[r], &in[r][i], &out[r][i], 1, MESHCOLL_FLOAT64,
                                             MESHCOLL_SUM, &request[r][i]),
                         MESHCOLL_OK, "%s", meshcoll_last_error());
    return n;
}

static void send_to_other(int r, int n, int i)
{
    cr_assert_eq(
        meshcoll_send_begin(rank[r], &in[r][i], 1, MESHCOLL_FLOAT64, 1 - r, i, &request[r][n + i]),
        MESHCOLL_OK, "%s", meshcoll_last_error());
}

static void receive(int r, int n, int i)
{
    cr_assert_eq(meshcoll_recv_begin(rank[r], &out[r][i], 1, MESHCOLL_FLOAT64, 1 - r, n - 1 - i,
                                     NULL, &request[r][i]),
                 MESHCOLL_OK, "%s", meshcoll_last_error());
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

static const struct {
    const char *name;
    int (*begin)(int n);
} kinds[] = {{"sums", begin_sums}, {"posted", begin_posted}, {"unexpected", begin_unexpected}};

/* CPU seconds of MANY, of which `n` are in flight at a time: of beginning, and of all. */
static void measure(size_t kind, int n, double *begun, double *all)
{
    const double start = now();
    *begun = 0;
    for (int done = 0; done + n <= MANY; done += n) {
        const double before = now();
        const int requests = kinds[kind].begin(n);
        *begun += now() - before;
        for (int r = 0; r < RANKS; r++)
            cr_assert_not_null(request[r][requests - 1]);
        (void)wait_for(requests);
    }
    *all = now() - start;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

Test(in_flight, costs_the_same_for_few_and_for_many, .timeout = 120)
{
    cr_assert_eq(mc_inproc_create("x=2", NULL, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    for (size_t k = 0; k < MC_COUNT(kinds); k++) {
        double begun[2] = {1e9, 1e9}, all[2] = {1e9, 1e9};
        for (int turn = 0; turn < TURNS; turn++)
            for (int many = 0; many < 2; many++) {
                double b, a;
                measure(k, many ? MANY : FEW, &b, &a);
                begun[many] = least(begun[many], b);
                all[many] = least(all[many], a);
            }
        cr_log_info("%s: begin %.2f and %.2f us, to the end %.2f and %.2f", kinds[k].name,
                    begun[0] / MANY * 1e6, begun[1] / MANY * 1e6, all[0] / MANY * 1e6,
                    all[1] / MANY * 1e6);
        cr_expect_leq(begun[1], MOST_TIMES * begun[0], "%s: begin: %.2f and %.2f us", kinds[k].name,
                      begun[0] / MANY * 1e6, begun[1] / MANY * 1e6);
        cr_expect_leq(all[1], MOST_TIMES * all[0], "%s: to the end: %.2f and %.2f us",
                      kinds[k].name, all[0] / MANY * 1e6, all[1] / MANY * 1e6);
    }
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < MANY; i++)
            cr_assert_eq(out[r][i], 0);
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
}
