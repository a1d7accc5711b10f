#include "runtime/diagnose/status/name.h"
#include "tools/common/tool.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* The process asks all ranks before it answers; it is given up after so many seconds. */
enum { PATIENCE_S = 60 };
/* Processes below the one that is named, as of a launcher: how deep they are looked for. */
enum { DEPTH = 4 };

/* The socket ----------------------------------------------------------------------------------------- */

/* Abstract names are free for all: only the process itself, of this user, is listened to. */
static int check_peer(int fd, int pid)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "process %d: %s", pid, strerror(errno));
    if (peer.pid != pid)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "process %d of user %d answers for process %d: its answer is ignored",
                       (int)peer.pid, (int)peer.uid, pid);
    if (peer.uid != geteuid() && geteuid() != 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "process %d belongs to user %d", pid,
                       (int)peer.uid);
    return MESHCOLL_OK;
}

static int copy_text(int fd, int pid)
{
    char buffer[2048];
    ssize_t n;
    size_t all = 0;
    for (; (n = read(fd, buffer, sizeof buffer)) > 0; all += (size_t)n)
        fwrite(buffer, 1, (size_t)n, stdout);
    if (n < 0 || all == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "process %d does not answer%s%s", pid,
                       n < 0 ? ": " : "",
                       n < 0 ? strerror(errno) : "; it may belong to another user, or stop");
    return MESHCOLL_OK;
}

/* Asks one mesh of a process, if it has one of this number. */
static int ask(int pid, int mesh, bool *answered)
{
    struct sockaddr_un address;
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const socklen_t n = mc_status_name(pid, mesh, &address);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "no socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const bool there = !connect(fd, (struct sockaddr *)&address, n);
    int status = there ? check_peer(fd, pid) : MESHCOLL_OK;
    if (there && !status)
        status = copy_text(fd, pid);
    close(fd);
    *answered = *answered || there;
    return status;
}

/* Processes that it started ---------------------------------------------------------------------------- */

static int parent_of(const char *pid)
{
    char path[64], line[512];
    int parent;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    mc_file_read_start(path, line, sizeof line);
    const char *const name_ends = strrchr(line, ')');
    return name_ends && sscanf(name_ends, ") %*c %d", &parent) == 1 ? parent : -1;
}

/* Asks all meshes of the process or, where it has none, of those below it, until one has answered. */
static int ask_below(int pid, int depth, bool *answered)
{
    int status = MESHCOLL_OK;
    for (int mesh = 0; mesh < MC_STATUS_SOCKETS && !status; mesh++)
        status = ask(pid, mesh, answered);
    DIR *const all = !status && !*answered && depth > 0 ? opendir("/proc") : NULL;
    for (const struct dirent *d; all && !status && !*answered && (d = readdir(all));)
        if (strspn(d->d_name, "0123456789") == strlen(d->d_name) && parent_of(d->d_name) == pid)
            status = ask_below(atoi(d->d_name), depth - 1, answered);
    if (all)
        closedir(all);
    return status;
}

static const char *text;
static const mc_option_t options[] = {{0}};
static int run(void)
{
    bool answered = false;
    char *end;
    if (!text)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "which process? expected its number");
    errno = 0;
    const long pid = strtol(text, &end, 10);
    if (errno || end == text || *end || pid < 1 || pid > INT32_MAX)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "expected the number of a process, got '%s'",
                       text);
    if (kill((pid_t)pid, 0) && errno == ESRCH)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "there is no process %ld", pid);
    int status = ask_below((int)pid, DEPTH, &answered);
    if (!status && !answered)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "process %ld has no mesh, or one with MESHCOLL_MONITOR=off, and neither "
                         "has any that it started",
                         pid);
    return status;
}

const mc_command_t mc_status_command = {
    .name = "status",
    .summary = "what each rank of a running job waits for",
    .usage = "  meshcoll status PID\n",
    .about =
        "Prints what each rank of a running job waits for: the call, the phase and step of its\n"
        "plan, and the rank that it waits for there; then which rank keeps the others waiting.\n"
        "PID is a process of the job on this machine, or one that started it, such as meshcoll\n"
        "run or mpirun. It must belong to the same user. Ranks that compute answer too; one that\n"
        "is stopped does not. Jobs with MESHCOLL_MONITOR=off cannot be asked.\n",
    .examples = "  meshcoll status 4711\n"
                "  meshcoll status $(pgrep -n meshcoll)\n",
    .options = options,
    .arguments = {.text = &text},
    .run = run,
};
