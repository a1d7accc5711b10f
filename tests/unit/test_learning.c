/* Calls that learn, on ranks that are processes: one is killed while ranks agree on what they timed. */
#include "runtime/adapt/learner.h"
#include "support/processes.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 4, VICTIM = 2, COUNT = 1000, CALLS = 200, NEVER_TOLD = 99 };
/* The calls that begin the first agreement and that use it, and after how many trials at most the next one begins. */
enum {
    FIRST = MC_LEARN_QUIET + MC_LEARN_LONG,
    USED = FIRST + MC_LEARN_AGREEING,
    TRIALS = MC_CANDIDATES * MC_LEARN_SHORT
};

/* A kill at this call; of a persistent request, its start. */
typedef struct {
    int at;
    bool persistent;
} kill_t;

static int start(meshcoll_request_t *request)
{
    const int status = meshcoll_start(request);
    return status ? status : meshcoll_wait(request);
}

static int run(const void *context, mc_seat_t *seat)
{
    static int32_t in[COUNT], out[COUNT];
    const kill_t kill = *(const kill_t *)context;
    meshcoll_request_t *request;
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "gpu=4", .links = "uniform"};
    meshcoll_t *mesh;
    alarm(60);
    CHECK(meshcoll_create_oob(&oob, &params, &mesh) == MESHCOLL_OK);
    CHECK(meshcoll_allreduce_init(mesh, in, out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM, &request) ==
          MESHCOLL_OK);
    for (int i = 0; i < CALLS; i++) {
        if (seat->rank == VICTIM && i == kill.at)
            raise(SIGKILL);
        if (kill.persistent
                ? start(request)
                : meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM))
            return strlen(meshcoll_last_error()) > 0 ? 0 : 1;
    }
    return NEVER_TOLD;
}

/* When the first agreement begins, before it is used, when it is, in the trials, and when the next one begins after those
 * of two, three and more candidates. */
Test(learning, is_told_of_a_rank_that_is_killed)
{
    static const int at[] = {FIRST,
                             FIRST + 1,
                             USED - 1,
                             USED,
                             USED + 1,
                             USED + 2 * MC_LEARN_SHORT,
                             USED + 3 * MC_LEARN_SHORT,
                             USED + 4 * MC_LEARN_SHORT,
                             USED + 5 * MC_LEARN_SHORT,
                             USED + TRIALS,
                             USED + TRIALS + 1,
                             USED + TRIALS + MC_LEARN_AGREEING};
    for (size_t i = 0; i < 2 * MC_COUNT(at); i++) {
        const kill_t kill = {at[i / 2], i % 2};
        mc_meeting_t *const meeting = mc_processes_share(sizeof *meeting);
        pid_t pid[RANKS];
        mc_meeting_init(meeting, RANKS);
        mc_processes_fork(meeting, run, &kill, pid);
        for (int r = 0; r < RANKS; r++) {
            const int ended = mc_process_await(pid[r]);
            cr_expect_eq(ended, r == VICTIM ? -SIGKILL : 0, "killed at %s %d: rank %d: %d",
                         kill.persistent ? "start" : "call", kill.at, r, ended);
        }
        munmap(meeting, sizeof *meeting);
    }
}
