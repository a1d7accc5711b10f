/* One rank: its environment, its output, its process. */
#include "tools/run/run_command.h"

#include "base/system/descriptor.h"
#include "job/environment/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* A port of the loopback that stays reserved, as long as nothing listens on the descriptor: rank 0
 * binds to it as well. */
static int reserve_port(int *fd, int *port)
{
    const int one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0)
        return errno;
    if (setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(made, (struct sockaddr *)&at, sizeof at) ||
        getsockname(made, (struct sockaddr *)&at, &bytes)) {
        const int failed = errno;
        close(made);
        return failed;
    }
    *fd = made;
    *port = ntohs(at.sin_port);
    return 0;
}

static void set_number(const char *name, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* "box=2,gpu=4", or "box=3+3+2" */
static void set_mesh(const mc_launch_t *r)
{
    char buffer[MC_MESH_TEXT];
    const int32_t each = r->ranks / r->boxes, more = r->ranks % r->boxes;
    snprintf(buffer, sizeof buffer, more ? "box=%dx%d+%dx%d" : "box=%d,gpu=%d",
             more ? more : r->boxes, more ? each + 1 : each, r->boxes - more, each);
    mc_mesh_t mesh;
    const int status = mc_mesh_parse(buffer, &mesh);
    setenv("MESHCOLL_MESH", status ? buffer : mc_mesh_text(&mesh, buffer), 1);
}

static int set_secret(void)
{
    unsigned char random[16];
    char hex[2 * sizeof random + 1];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return errno;
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(hex + 2 * i, 3, "%02x", random[i]);
    setenv("MESHCOLL_SECRET", hex, 1);
    unsetenv("MESHCOLL_SECRET_FILE");
    return 0;
}

/* Which launcher started this command means nothing to the ranks. */
static void forget_launchers(void)
{
    unsetenv("MESHCOLL_LAUNCHER");
    for (int i = 0; i < MC_LAUNCHERS; i++) {
        unsetenv(mc_launchers[i].rank);
        unsetenv(mc_launchers[i].size);
    }
}

/* MASTER_PORT is for the program: PyTorch's rank 0 listens there as long as it runs. */
int mc_run_prepare(const mc_launch_t *run, int reserved[MC_RUN_PORTS])
{
    static const char *const name[MC_RUN_PORTS] = {"MASTER_PORT", "MESHCOLL_MASTER_PORT"};
    int port[MC_RUN_PORTS], failed = 0;
    for (int i = 0; i < MC_RUN_PORTS && !failed; i++)
        failed = reserve_port(&reserved[i], &port[i]);
    if (!failed)
        failed = set_secret();
    if (failed)
        return mc_fail(MESHCOLL_ERR_IO, "no port of 127.0.0.1, or no random number: %s",
                       strerror(failed));
    forget_launchers();
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MESHCOLL_MASTER_ADDR", "127.0.0.1", 1);
    for (int i = 0; i < MC_RUN_PORTS; i++)
        set_number(name[i], port[i]);
    set_number("WORLD_SIZE", run->ranks);
    set_number("LOCAL_WORLD_SIZE", run->ranks);
    if (run->boxes)
        set_mesh(run);
    return MESHCOLL_OK;
}

/* The process ---------------------------------------------------------------------------------- */

typedef struct {
    int out[2], error[2], exec[2];
} pipes_t;

static bool open_pipes(const mc_launch_t *r, pipes_t *p)
{
    *p = (pipes_t){{-1, -1}, {-1, -1}, {-1, -1}};
    return !pipe2(p->exec, O_CLOEXEC) &&
           (!r->tag_output || (!pipe2(p->out, O_CLOEXEC) && !pipe2(p->error, O_CLOEXEC)));
}

static void close_pipes(pipes_t *p)
{
    for (int i = 0; i < 2; i++) {
        mc_descriptor_close(&p->out[i]);
        mc_descriptor_close(&p->error[i]);
        mc_descriptor_close(&p->exec[i]);
    }
}

/* Runs in the new process. Each rank is a process group, so that what it starts is stopped with it. A
 * group in the background cannot read a terminal. */
static void become_rank(const mc_launch_t *r, int32_t rank, const pipes_t *p, pid_t parent)
{
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(MC_EXIT_FAILED);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
    if (rank > 0 || isatty(STDIN_FILENO)) {
        const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(null, STDIN_FILENO);
    }
    if (r->tag_output) {
        dup2(p->out[1], STDOUT_FILENO);
        dup2(p->error[1], STDERR_FILENO);
    }
    execvp(r->program[0], r->program);
    const int failed = errno;
    (void)!write(p->exec[1], &failed, sizeof failed);
    _exit(127);
}

static int open_streams(const mc_launch_t *r, int32_t rank, const pipes_t *p, mc_child_t *child)
{
    if (!r->tag_output)
        return MESHCOLL_OK;
    child->stream = calloc(2, sizeof *child->stream);
    if (!child->stream)
        return mc_fail_memory("the output of a rank");
    child->stream[0] = (mc_tagged_t){.from = p->out[0], .to = STDOUT_FILENO, .rank = rank};
    child->stream[1] = (mc_tagged_t){.from = p->error[0], .to = STDERR_FILENO, .rank = rank};
    return MESHCOLL_OK;
}

/* Returns the exit status of a shell: 127 where there is no such program, 126 where it cannot be executed. */
static int fail_exec(const mc_launch_t *r, int error)
{
    mc_tool_exit("run", mc_fail(MESHCOLL_ERR_IO, "%s cannot be started: %s", r->program[0],
                                strerror(error)));
    return error == ENOENT ? 127 : 126;
}

int mc_run_start(const mc_launch_t *run, int32_t rank, mc_child_t *child)
{
    pipes_t p;
    int error = 0;
    const pid_t self = getpid();
    const bool ready = open_pipes(run, &p);
    const pid_t pid = ready ? fork() : -1;
    if (pid == 0)
        become_rank(run, rank, &p, self);
    if (pid < 0) {
        const int status =
            mc_fail(MESHCOLL_ERR_IO, "rank %d cannot be started: %s", rank, strerror(errno));
        close_pipes(&p);
        return status;
    }
    setpgid(pid, pid); /* both sides: whichever runs first */
    mc_descriptor_close(&p.out[1]);
    mc_descriptor_close(&p.error[1]);
    mc_descriptor_close(&p.exec[1]);
    const bool failed = read(p.exec[0], &error, sizeof error) == (ssize_t)sizeof error;
    close(p.exec[0]);
    child->pid = pid;
    const int status = failed ? fail_exec(run, error) : open_streams(run, rank, &p, child);
    if (!status)
        return MESHCOLL_OK;
    kill(-pid, SIGKILL);
    mc_descriptor_close(&p.out[0]);
    mc_descriptor_close(&p.error[0]);
    return status;
}
