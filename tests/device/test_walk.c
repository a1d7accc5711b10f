/*
 * The device executor's text on the host: ranks x blocks are threads. Each test runs by its name, so that
 * ctest names what fails; `--fails NAME` ends with 0 if the test fails, for mutants of the text.
 */
#include "bits.h"
#include "box.h"
#include "counts.h"
#include "support/element.h"
#include "support/stand.h"
#include "support/strategies.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds after which a test hangs, and a call of a mutant: its threads take all cores until then. */
enum { MOST_SECONDS = 300, MUTANT_SECONDS = 5 };

/* Calls of each strategy, all different: one in place, whole and in segments, of several counts, blocks and slots. */
enum { TURNS = 3 };

/* Strategies of a collective and a mesh on several machines. */
enum { MOST_FAR = 5 };

#ifndef MOST_STRATEGIES /* of a collective and mesh */
#define MOST_STRATEGIES 100000
#endif

/* Every strategy ---------------------------------------------------------------------------------- */

static const size_t counts[] = {7, 1000, 1, 100, 5003, 3, 16, 1000, 33, 2};

/* Everything that a case has changes from one to the next, in periods of their own, so that all are seen together. */
static mc_case_t turn_case(meshcoll_collective_t collective, int size, unsigned turn)
{
    const int roots[] = {0, size - 1, size / 2, size / 3};
    const meshcoll_datatype_t type = (meshcoll_datatype_t)(turn % MESHCOLL_DATATYPES);
    return (mc_case_t){.collective = collective,
                       .count = counts[turn % (sizeof counts / sizeof counts[0])],
                       .datatype = type,
                       .op = mc_case_reduces(collective) ? mc_element_op(type, (int)(turn / 4))
                                                         : MESHCOLL_SUM,
                       .root = mc_case_is_rooted(collective) ? roots[turn / 2 % 4] : 0,
                       .in_place = turn % 3 == 0,
                       .bare = turn % 5 < 3};
}

static mc_box_how_t turn_how(unsigned turn)
{
    static const uint32_t slots[] = {64, 4096, 256, 1024};
    return (mc_box_how_t){.blocks = 1 + turn % 11 % MC_BOX_BLOCKS,
                          .threads = turn % 7 == 0 ? 2 : 1,
                          .slot_bytes = slots[turn % 13 % 4],
                          .ll = turn / 2 % 2,
                          .yields = turn % 4 == 0 ? 11 : 0};
}

static bool sweep_collective(mc_box_t *box, meshcoll_collective_t collective, bool registered,
                             unsigned *turn)
{
    char text[4096];
    mc_sample_t sample;
    const int most = box->far && MOST_FAR < MOST_STRATEGIES ? MOST_FAR : MOST_STRATEGIES;
    bool good = mc_sample_open(collective, &box->mesh, most, &sample) == 0;
    for (int i = 0; i < TURNS * sample.n && good; i++) {
        const char *const strategy = sample.text[i / TURNS];
        const char *const more = strchr(strategy, '|') ? " segments=4" : " segments=3";
        const bool cut = *turn % 2 && !strstr(strategy, "segments=");
        snprintf(text, sizeof text, "%s%s", strategy, cut ? more : "");
        const mc_case_t c = turn_case(collective, box->mesh.size, *turn);
        mc_box_how_t how = turn_how(*turn);
        how.registered = registered;
        how.ll = how.ll && !registered;
        good = mc_box_case(box, &c, text, &how);
        ++*turn;
    }
    mc_sample_close(&sample);
    return good;
}

static bool sweep_as(mc_box_t *box, bool registered)
{
    unsigned turn = 0;
    bool good = true;
    for (int k = 0; k < MESHCOLL_COLLECTIVES && good; k++)
        good = sweep_collective(box, (meshcoll_collective_t)k, registered, &turn);
    printf("%s: %u calls, %d of each strategy; %u messages of programs direct\n", box->text, turn,
           TURNS, box->n_direct);
    good = good && turn > 50 && (registered ? box->n_direct > turn : box->n_direct == 0);
    mc_box_close(box);
    return good;
}

static bool sweep_box(mc_box_t *box)
{
    return sweep_as(box, false);
}

static bool sweep(const char *mesh)
{
    return sweep_box(mc_box_open(mesh));
}

static bool strategies_1d(void)
{
    return sweep("gpu=4");
}
static bool strategies_2d(void)
{
    return sweep("box=2,gpu=2");
}
static bool strategies_ragged(void)
{
    return sweep("box=4+3+1");
}

/* The same where OUT is registered on all ranks. */
static bool direct_1d(void)
{
    return sweep_as(mc_box_open("gpu=4"), true);
}
static bool direct_2d(void)
{
    return sweep_as(mc_box_open("box=2,gpu=2"), true);
}
static bool direct_ragged(void)
{
    return sweep_as(mc_box_open("box=4+3+1"), true);
}
static bool direct_far(void)
{
    return sweep_as(mc_box_open_far("rack=2,box=2,gpu=2", "00001111"), true);
}

/* The same where lanes between machines are a proxy's. */
static bool far_2d(void)
{
    return sweep_box(mc_box_open_far("box=2,gpu=2", "0011"));
}
static bool far_ragged(void)
{
    return sweep_box(mc_box_open_far("box=4+3+1", "00001112"));
}
static bool far_3d(void)
{
    return sweep_box(mc_box_open_far("rack=2,box=2,gpu=2", "00112233"));
}

/* Odd counts, in place and not, for each collective with all numbers of blocks. */
static bool counts_and_places(void)
{
    mc_box_t *const box = mc_box_open("gpu=3");
    bool good = true;
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        mc_sample_t sample;
        good = good && mc_sample_open((meshcoll_collective_t)k, &box->mesh, 3, &sample) == 0;
        for (int i = 0; good && i < sample.n; i++)
            for (unsigned turn = 0; good && turn < 2 * 15; turn++) {
                const mc_case_t c = {.collective = (meshcoll_collective_t)k,
                                     .datatype = turn % 4 ? MESHCOLL_FLOAT32 : MESHCOLL_INT8,
                                     .count = turn / 2 * turn / 2,
                                     .in_place = turn % 2};
                const mc_box_how_t how = {
                    .blocks = 1 + turn % MC_BOX_BLOCKS, .slot_bytes = 128, .ll = turn / 2 % 2};
                good = mc_box_case(box, &c, sample.text[i], &how);
            }
        mc_sample_close(&sample);
    }
    mc_box_close(box);
    return good;
}

/* Lanes ------------------------------------------------------------------------------------------- */

/* A chunk takes many more slots than a lane has: ranks that all send first, as those of a ring, would wait
 * for each other if a message took more than one. */
static bool long_vectors(void)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .datatype = MESHCOLL_INT32, .count = 40001};
    const mc_box_how_t how = {.blocks = 2, .slot_bytes = 256};
    mc_box_t *const box = mc_box_open("gpu=4");
    const bool good =
        mc_box_case(box, &c, "reduce_scatter:ring(gpu) allgather:ring(gpu)", &how) &&
        mc_box_case(box, &c, "reduce_scatter:ring(gpu) allgather:ring(gpu) segments=3", &how);
    mc_box_close(box);
    return good;
}

static bool repeat_bcast_on(mc_box_t *box, const mc_box_how_t *how, size_t count, int times)
{
    const mc_case_t c = {.collective = MESHCOLL_BCAST, .datatype = MESHCOLL_INT32, .count = count};
    bool good = true;
    for (int i = 0; i < times && good; i++)
        good = mc_box_case(box, &c, "bcast:chain(gpu)", how);
    mc_box_close(box);
    return good;
}

static bool repeat_bcast(const char *mesh, const mc_box_how_t *how, size_t count, int times)
{
    return repeat_bcast_on(mc_box_open(mesh), how, count, times);
}

/* The receiver waits when the first message comes: it must not be seen before its data. */
static bool receiver_first(void)
{
    const mc_box_how_t how = {.slot_bytes = 1 << 14, .yields = 5, .delay = {[0] = 5000}};
    return repeat_bcast("gpu=2", &how, (5 << 14) / 4, 10);
}
static bool ll_receiver_first(void)
{
    const mc_box_how_t how = {
        .slot_bytes = 1 << 12, .ll = true, .yields = 5, .delay = {[0] = 5000}};
    return repeat_bcast("gpu=2", &how, (9 << 11) / 4, 10);
}

/* The sender is as far ahead as it may be: it must not write to slots that are not read yet. */
static bool sender_first(void)
{
    const mc_box_how_t how = {.slot_bytes = 1 << 10, .yields = 5, .delay = {[1] = 20000}};
    return repeat_bcast("gpu=2", &how, (17 << 10) / 4, 5);
}
static bool ll_sender_first(void)
{
    const mc_box_how_t how = {
        .slot_bytes = 1 << 10, .ll = true, .yields = 5, .delay = {[1] = 20000}};
    return repeat_bcast("gpu=2", &how, (17 << 9) / 4, 5);
}

/* The same of a rank that passes on what it receives: it leaves a slot when it has read all of it. */
static bool relay_first(void)
{
    const mc_box_how_t how = {.slot_bytes = 1 << 10, .yields = 5, .delay = {[1] = 20000}};
    return repeat_bcast("gpu=3", &how, (17 << 10) / 4, 5);
}

/* Both with a registered OUT. A rank that begins late still uses its OUT before: nobody may have written there. */
static bool direct_receiver_late(void)
{
    const mc_box_how_t how = {.slot_bytes = 1 << 10,
                              .registered = true,
                              .spoils = true,
                              .yields = 5,
                              .delay = {[1] = 20000}};
    return repeat_bcast("gpu=2", &how, (17 << 10) / 4, 5);
}
/* The receiver passes on what it finds there. */
static bool direct_receiver_first(void)
{
    const mc_box_how_t how = {
        .slot_bytes = 1 << 14, .registered = true, .yields = 5, .delay = {[0] = 5000}};
    return repeat_bcast("gpu=3", &how, (5 << 14) / 4, 10);
}

/* Messages that are moved together: sends of the same bytes, sums of several messages, messages passed on. */
static bool joined(void)
{
    static const char *const strategies[] = {
        "allreduce:fullmesh(gpu)", "reduce_scatter:ring(gpu) allgather:ring(gpu) segments=2",
        "reduce:mst(gpu) bcast:mst(gpu)", "allreduce:aligned(gpu)"};
    mc_box_t *const box = mc_box_open("gpu=5");
    bool good = true;
    for (size_t i = 0; i < 3 * MC_COUNT(strategies) && good; i++) {
        const mc_case_t c = {
            .collective = MESHCOLL_ALLREDUCE, .datatype = MESHCOLL_INT32, .count = 1001};
        const mc_box_how_t how = {.blocks = 2,
                                  .threads = 1 + i % 3,
                                  .slot_bytes = 512,
                                  .ll = i / MC_COUNT(strategies) == 1,
                                  .registered = i / MC_COUNT(strategies) == 2};
        good = mc_box_case(box, &c, strategies[i % MC_COUNT(strategies)], &how);
    }
    mc_box_close(box);
    return good;
}

/* Both between machines. */
static bool far_receiver_first(void)
{
    const mc_box_how_t how = {.slot_bytes = 1 << 14, .yields = 5, .delay = {[0] = 5000}};
    return repeat_bcast_on(mc_box_open_far("gpu=2", "01"), &how, (5 << 14) / 4, 10);
}
static bool far_sender_first(void)
{
    const mc_box_how_t how = {
        .blocks = 2, .slot_bytes = 1 << 10, .yields = 5, .delay = {[1] = 20000}};
    return repeat_bcast_on(mc_box_open_far("gpu=2", "01"), &how, (35 << 10) / 4, 5);
}

/* Blocks of several threads: none leaves a slot before the others. */
static bool repeat_threads(bool ll, bool registered)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .datatype = MESHCOLL_INT32, .count = 9001};
    const mc_box_how_t how = {.blocks = 2,
                              .threads = 3,
                              .slot_bytes = 1 << 11,
                              .ll = ll,
                              .registered = registered,
                              .naps = 20};
    mc_box_t *const box = mc_box_open(registered ? "gpu=3" : "gpu=2");
    bool good = true;
    for (int i = 0; i < 5 && good; i++)
        good = mc_box_case(box, &c, "reduce_scatter:ring(gpu) allgather:ring(gpu)", &how);
    good = good && (box->n_direct > 0) == registered;
    mc_box_close(box);
    return good;
}
static bool several_threads(void)
{
    return repeat_threads(false, false);
}
/* Blocks of as many threads as a launch has. */
static bool full_block(void)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .datatype = MESHCOLL_FLOAT32, .count = 40001};
    mc_box_t *const box = mc_box_open("gpu=2");
    bool good = true;
    for (int i = 0; i < 4 && good; i++) {
        const mc_box_how_t how = {.threads = MC_DEVICE_THREADS, .slot_bytes = 1 << 15, .ll = i % 2};
        good = mc_box_case(box, &c, "reduce_scatter:ring(gpu) allgather:ring(gpu)", &how);
    }
    mc_box_close(box);
    return good;
}
static bool direct_several_threads(void)
{
    return repeat_threads(false, true);
}
static bool ll_several_threads(void)
{
    return repeat_threads(true, false);
}

/* Tracks: a block of each waits for the others where it must, and only there; each rank late in turn, so that
 * what waits too little is early. Averages, products of a scalar and blocks without a slice, too. */
static bool tracks(void)
{
    static const char *const strategies[] = {
        "reduce_scatter:ring(gpu) allreduce:fullmesh(box) allgather:ring(gpu) segments=4",
        "reduce_scatter:halving(gpu) reduce_scatter:ring(box) allgather:ring(box) "
        "allgather:doubling(gpu) segments=3",
        "reduce:mst(gpu) reduce:mst(box) bcast:mst(box) bcast:mst(gpu) segments=4", "torus"};
    mc_box_t *const box = mc_box_open("box=2,gpu=2");
    bool good = true;
    for (unsigned i = 0; i < 8 * MC_COUNT(strategies) && good; i++) {
        const mc_case_t c = {.collective = MESHCOLL_ALLREDUCE,
                             .datatype = MESHCOLL_INT32,
                             .op = i % 2 ? MESHCOLL_SUM : MESHCOLL_AVG,
                             .count = i % 3 ? 20001 : 3001,
                             .in_place = i % 3 == 0};
        mc_box_how_t how = {.blocks = 4,
                            .threads = 1 + i % 3,
                            .slot_bytes = i % 3 ? 1 << 13 : 1 << 9,
                            .ll = i % 16 >= 8,
                            .naps = i % 3 ? 20 : 0};
        how.delay[i % 4] = 10000;
        good = mc_box_case(box, &c, strategies[i % MC_COUNT(strategies)], &how);
    }
    mc_box_close(box);
    return good;
}

/* Ranks that never begin -------------------------------------------------------------------------- */

static stand_t stand_of(const mc_box_run_t *run)
{
    stand_t s = {.ranks = run->box->mesh.size, .slots = MC_DEVICE_SLOTS};
    for (int r = 0; r < s.ranks; r++)
        s.program[r] = r == run->how.absent - 1 ? NULL : run->rank[r].program;
    stand_run(&s);
    return s;
}

/* Does each block that cannot end say so, and where it stands? */
static bool check_stand(const mc_box_run_t *run, uint32_t status)
{
    const stand_t s = stand_of(run);
    uint32_t standing = 0;
    for (int r = 0; r < run->box->mesh.size; r++)
        for (uint32_t b = 0; r != run->how.absent - 1 && b < run->how.blocks; b++) {
            const mc_box_rank_t *const rank = &run->rank[r];
            const mc_device_report_t *const report = &rank->report[b];
            const uint32_t track = b % rank->program->tracks;
            const bool ends = s.at[r][track] == rank->program->n_runs;
            standing += !ends;
            if (report->status != (ends ? (uint32_t)MC_DEVICE_DONE : status) ||
                (!ends && report->run != s.waits[r][track])) {
                printf("%s: rank %d, block %u ended with %u at run %u: expected run %u of %u\n",
                       run->name, r, b, report->status, report->run, s.waits[r][track],
                       rank->program->n_runs);
                return false;
            }
        }
    if (standing == 0)
        printf("%s: nobody waits for a rank that never begins\n", run->name);
    return standing > 0;
}

static bool without(const char *mesh, meshcoll_collective_t collective, const char *strategy,
                    int absent, const mc_box_how_t *like, uint32_t status)
{
    const mc_case_t c = {.collective = collective, .datatype = MESHCOLL_INT32, .count = 1000};
    mc_box_how_t how = *like;
    how.absent = absent + 1;
    mc_box_t *const box = mc_box_open(mesh);
    mc_box_run_t *const run = mc_box_run_open(box, &c, strategy, &how);
    mc_box_run(run);
    const bool good = check_stand(run, status);
    mc_box_run_close(run);
    mc_box_close(box);
    return good;
}

static bool without_each(const mc_box_how_t *how, uint32_t status)
{
    const char *const ring = "reduce_scatter:ring(gpu) allgather:ring(gpu)";
    return without("gpu=4", MESHCOLL_ALLREDUCE, ring, 2, how, status) &&
           without("gpu=4", MESHCOLL_BCAST, "bcast:mst(gpu)", 0, how, status) &&
           without("gpu=4", MESHCOLL_BCAST, "bcast:mst(gpu) segments=8", 3, how, status) &&
           without("box=2,gpu=2", MESHCOLL_ALLGATHER, "allgather:ring(box) allgather:ring(gpu)", 1,
                   how, status);
}

/* The root waits for a rank that never begins to receive; by slots it would end. */
static bool registered_without(const mc_box_how_t *like, uint32_t status)
{
    const mc_case_t c = {.collective = MESHCOLL_BCAST, .datatype = MESHCOLL_INT32, .count = 1000};
    mc_box_how_t how = *like;
    how.absent = 2;
    mc_box_t *const box = mc_box_open("gpu=2");
    mc_box_run_t *const run = mc_box_run_open(box, &c, "bcast:chain(gpu)", &how);
    bool good = true;
    mc_box_run(run);
    for (uint32_t b = 0; b < how.blocks; b++)
        good = good && run->rank[0].report[b].status == status && run->rank[0].report[b].run == 0;
    mc_box_run_close(run);
    mc_box_close(box);
    return good;
}

/* A limit ends the blocks that wait, wherever that is. */
static bool limit(void)
{
    mc_box_how_t how = {.blocks = 2, .slot_bytes = 1 << 14, .limit = 500000000};
    bool good = without_each(&how, MC_DEVICE_LATE);
    how.registered = true;
    good = good && registered_without(&how, MC_DEVICE_LATE);
    how.registered = false;
    how.ll = true;
    return good && without_each(&how, MC_DEVICE_LATE);
}

/* So does the abort word, long before the limit. */
static bool abort_word(void)
{
    mc_box_how_t how = {.blocks = 3,
                        .threads = 2,
                        .slot_bytes = 1 << 14,
                        .limit = 3600000000000u,
                        .abort_after = 200000};
    bool good = without_each(&how, MC_DEVICE_ABORTED);
    how.registered = true;
    good = good && registered_without(&how, MC_DEVICE_ABORTED);
    how.registered = false;
    how.ll = true;
    return good && without_each(&how, MC_DEVICE_ABORTED);
}

/* ------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool (*run)(void);
} tests[] = {
    {"strategies_1d", strategies_1d},
    {"strategies_2d", strategies_2d},
    {"strategies_ragged", strategies_ragged},
    {"counts_and_places", counts_and_places},
    {"long_vectors", long_vectors},
    {"receiver_first", receiver_first},
    {"sender_first", sender_first},
    {"relay_first", relay_first},
    {"tracks", tracks},
    {"joined", joined},
    {"several_threads", several_threads},
    {"full_block", full_block},
    {"direct_1d", direct_1d},
    {"direct_2d", direct_2d},
    {"direct_ragged", direct_ragged},
    {"direct_far", direct_far},
    {"direct_receiver_late", direct_receiver_late},
    {"direct_receiver_first", direct_receiver_first},
    {"direct_several_threads", direct_several_threads},
    {"ll_receiver_first", ll_receiver_first},
    {"ll_sender_first", ll_sender_first},
    {"ll_several_threads", ll_several_threads},
    {"ll_wraps", mc_counts_ll_wrap},
    {"counts_wrap", mc_counts_wrap},
    {"differs", mc_counts_differ},
    {"far_2d", far_2d},
    {"far_ragged", far_ragged},
    {"far_3d", far_3d},
    {"far_receiver_first", far_receiver_first},
    {"far_sender_first", far_sender_first},
    {"limit", limit},
    {"abort_word", abort_word},
    {"reductions", mc_bits_of_reductions},
    {"alike", mc_bits_of_calls},
};

/* Exit status 1: it failed. A hang is ended by the alarm. */
static int run_one(const char *name)
{
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (strcmp(tests[i].name, name) == 0) {
            alarm(MOST_SECONDS);
            return tests[i].run() ? 0 : 1;
        }
    fprintf(stderr, "there is no test %s\n", name);
    return 2;
}

static int run_mutant(const char *name)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        mc_box_seconds = MUTANT_SECONDS;
        const int code = run_one(name);
        fflush(stdout);
        _exit(code);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    const bool failed = WIFEXITED(status) && WEXITSTATUS(status) == 1;
    printf("%s %s\n", name, hung ? "hangs" : failed ? "fails" : "does not see the mutant");
    return hung || failed ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--fails") == 0)
        return run_mutant(argv[2]);
    int status = argc > 1 ? 0 : 2;
    for (int i = 1; i < argc && !status; i++)
        status = run_one(argv[i]);
    for (size_t i = 0; argc == 1 && i < sizeof tests / sizeof tests[0]; i++)
        puts(tests[i].name);
    return status;
}
