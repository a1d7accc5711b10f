/* The report of meshcoll status, of made-up ranks. */
#include "runtime/diagnose/status/status.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 5 };

static mc_status_rank_t rank[RANKS];

static void ranks_init(void)
{
    memset(rank, 0, sizeof rank);
    for (int r = 0; r < RANKS; r++)
        rank[r] = (mc_status_rank_t){.answered = true,
                                     .waits = {.rank = r,
                                               .known_as = r,
                                               .pid = 100 + r,
                                               .host = "node1",
                                               .place = {"box", r / 3},
                                               .looked_ms = 4000,
                                               .n_meshes = 1,
                                               .mesh = {{.n_calls = 8}}}};
}

static void set_wait(int r, int peer, int64_t ms)
{
    mc_waits_t *const w = &rank[r].waits;
    w->n = 1;
    w->wait[0] = (mc_wait_t){.kind = MC_WAIT_BARRIER,
                             .awaits = MC_AWAITS_RECEIVE,
                             .number = 7,
                             .message = 4,
                             .steps = 6,
                             .step = 1,
                             .peer = peer,
                             .known_as = peer,
                             .place = {"box", peer / 3},
                             .in_part = -1,
                             .still_ms = ms};
}

static void expect_report(const char *expected)
{
    char *text = NULL;
    size_t n;
    FILE *const out = open_memstream(&text, &n);
    const mc_status_t s = {.n = RANKS, .rank = rank};
    cr_assert_eq(mc_status_print(&s, out), MESHCOLL_OK);
    fclose(out);
    cr_expect_str_eq(text, expected, "got:\n%s", text);
    free(text);
}

Test(status, folds_ranks_and_names_the_one_that_is_missing)
{
    ranks_init();
    set_wait(0, 4, 3000);
    set_wait(1, 4, 3200);
    set_wait(2, 1, 3100);
    rank[4].waits.mesh[0].n_calls = 7;
    rank[3].answered = false;
    expect_report(
        "  rank  process  host   place  state\n"
        "     0      100  node1  box 0  waits for 3.0 s\n"
        "     1      101  node1  box 0  waits for 3.2 s\n"
        "     2      102  node1  box 0  waits for 3.1 s\n"
        "     3      103  node1  box 1  does not answer\n"
        "     4      104  node1  box 1  does not wait\n"
        "\n"
        "ranks 0-1: barrier (call 7): step 2 of 6: receives 4 B from rank 4 in box 1, for 3.2 s\n"
        "rank 2: barrier (call 7): step 2 of 6: receives 4 B from rank 1 in box 0, for 3.1 s\n"
        "rank 4: 7 calls made; has not been waiting in the library for 4.0 s\n"
        "\n"
        "cause: rank 4 in box 1 has not made barrier (call 7): it has not been waiting in the "
        "library for 4.0 s\n");
}

Test(status, tells_each_cause_once)
{
    ranks_init();
    set_wait(0, 3, 1000);
    set_wait(1, 2, 1000);
    set_wait(2, 1, 1000);
    set_wait(4, 3, 1000);
    rank[3].answered = false;
    rank[0].waits.place.name[0] = '\0';
    expect_report(
        "  rank  process  host   place  state\n"
        "     0      100  node1  -      waits for 1.0 s\n"
        "     1      101  node1  box 0  waits for 1.0 s\n"
        "     2      102  node1  box 0  waits for 1.0 s\n"
        "     3      103  node1  box 1  does not answer\n"
        "     4      104  node1  box 1  waits for 1.0 s\n"
        "\n"
        "ranks 0, 4: barrier (call 7): step 2 of 6: receives 4 B from rank 3 in box 1, for 1.0 s\n"
        "rank 1: barrier (call 7): step 2 of 6: receives 4 B from rank 2 in box 0, for 1.0 s\n"
        "rank 2: barrier (call 7): step 2 of 6: receives 4 B from rank 1 in box 0, for 1.0 s\n"
        "\n"
        "cause: rank 3 in box 1 does not answer: it is stopped, has ended or cannot be reached\n"
        "and ranks wait for one another: rank 1 for 2, 2 for 1; all ranks must make the same "
        "calls in the same order\n");
}

Test(status, of_a_job_at_work_has_no_cause)
{
    ranks_init();
    expect_report("  rank  process  host   place  state\n"
                  "     0      100  node1  box 0  does not wait\n"
                  "     1      101  node1  box 0  does not wait\n"
                  "     2      102  node1  box 0  does not wait\n"
                  "     3      103  node1  box 1  does not wait\n"
                  "     4      104  node1  box 1  does not wait\n"
                  "\n"
                  "ranks 0-4: 8 calls made; has not been waiting in the library for 4.0 s\n");
}
