#include "tools/run/run_command.h"

#include "base/system/descriptor.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Signals that are passed on, and the end of ranks, are read from a descriptor. */
static int open_signals(void)
{
    static const int handled[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,
                                  SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < MC_COUNT(handled); i++)
        sigaddset(&set, handled[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int start_all(const mc_launch_t *r)
{
    const int signals = open_signals();
    int reserved[MC_RUN_PORTS] = {-1, -1}, status = mc_run_prepare(r, reserved);
    mc_child_t *const child = calloc((size_t)r->ranks, sizeof *child);
    if (!status && (!child || signals < 0))
        status = mc_fail(MESHCOLL_ERR_NO_MEMORY, "out of memory or descriptors");
    int32_t n = 0;
    for (; !status && n < r->ranks; n += !status)
        status = mc_run_start(r, n, &child[n]);
    if (!status)
        status = mc_run_watch(r, child, signals);
    else
        for (int32_t i = 0; i < n; i++)
            kill(-child[i].pid, SIGKILL);
    for (int32_t i = 0; child && i < n; i++)
        free(child[i].stream);
    free(child);
    for (int i = 0; i < MC_RUN_PORTS; i++)
        mc_descriptor_close(&reserved[i]);
    close(signals);
    return status;
}

/* What the command line gives; a process runs one command. */
static mc_launch_t given = {.grace = 5};

static const mc_option_t options[] = {
    {.name = "ranks",
     .letter = 'n',
     .value = "RANKS",
     .help = "how many",
     .number = &given.ranks,
     .least = 1,
     .most = 4096},
    MC_OPTION_NUMBER("boxes", "BOXES",
                     "the ranks play so many boxes of this machine (sets MESHCOLL_MESH)",
                     &given.boxes, 1, 4096),
    MC_OPTION_FLAG("tag-output", "begin each line with its rank", &given.tag_output),
    {.name = "grace",
     .value = "SECONDS",
     .help = "from SIGTERM to SIGKILL for ranks that are stopped; 5 if left out",
     .real = &given.grace,
     .from = 0,
     .to = 86400},
    {0},
};
static int run(void)
{
    if (given.ranks == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "how many ranks? -n is missing");
    if (!given.program[0])
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "which program? expected its name after the options");
    if (given.boxes > given.ranks)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%d ranks cannot play %d boxes", given.ranks,
                       given.boxes);
    return start_all(&given);
}

const mc_command_t mc_run_command = {
    .name = "run",
    .summary = "starts the ranks of a program on this machine",
    .usage = "  meshcoll run -n RANKS [--boxes BOXES] [--tag-output] [--] PROGRAM [ARGUMENT …]\n",
    .about =
        "Starts a program as several ranks on this machine. They find each other by the variables\n"
        "of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, …) and a random\n"
        "secret, which meshcoll_create_env reads. Signals are passed on. When a rank fails, the\n"
        "others are stopped. The exit status is that of the first rank that failed, or 128 and\n"
        "the number of its signal.\n",
    .examples = "  meshcoll run -n 4 ./allreduce\n"
                "  meshcoll run -n 8 --boxes 2 --tag-output ./training dp=2,tp=4\n",
    .options = options,
    .arguments = {.program = &given.program},
    .run = run,
};
