/* Addresses of nodes whose names only Slurm knows. */
#include "job/bootstrap/seek.h"

#include "base/system/descriptor.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds for scontrol, which waits for a controller that is gone; bytes of its answer, about 1 KiB a node. */
enum { PATIENCE = 10, ANSWER = 32768 };

/* Its standard output is `out`; 0 or an errno. */
static int spawn(const char *const *arguments, int out, pid_t *pid)
{
    extern char **environ;
    posix_spawn_file_actions_t files;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return failed;
    failed = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDERR_FILENO);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (!failed)
        failed = posix_spawnp(pid, arguments[0], &files, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* Waits until it has ended; a program that waits for any child may have been told of this one. */
static void await_end(pid_t pid)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const double deadline = mc_now() + PATIENCE;
    pid_t ended = 0;
    while (ended == 0 && mc_now() < deadline) {
        nanosleep(&pause, NULL);
        ended = waitpid(pid, NULL, WNOHANG);
    }
    if (ended == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

static void ask(const char *nodes, char answer[ANSWER])
{
    const char *const arguments[] = {"scontrol", "-o", "show", "node", nodes, NULL};
    int out = mc_descriptor(memfd_create("meshcoll-scontrol", MFD_CLOEXEC));
    ssize_t n = 0;
    pid_t pid;
    if (out >= 0 && !spawn(arguments, out, &pid)) {
        await_end(pid);
        n = pread(out, answer, ANSWER - 1, 0);
    }
    answer[n > 0 ? n : 0] = '\0';
    mc_descriptor_close(&out);
}

/* "NodeName=n1 … NodeAddr=10.0.0.1 NodeHostName=…", a line for each. */
static void take_answer(const char *answer, mc_names_t *addresses)
{
    static const char key[] = " NodeAddr=";
    for (const char *at = answer; (at = strstr(at, key)) && addresses->n < MC_NAMES;) {
        at += strlen(key);
        const size_t n = strcspn(at, " \n");
        if (n > 0 && n < MC_ENVIRONMENT_HOST)
            snprintf(addresses->host[addresses->n++], n + 1, "%s", at);
    }
}

void mc_slurm_ask(mc_names_t *names)
{
    char nodes[MC_NAMES * (MC_ENVIRONMENT_HOST + 1)];
    mc_text_t text = mc_text(nodes, sizeof nodes);
    for (int i = 0; i < names->n; i++)
        mc_text_add(&text, "%s%s", i ? "," : "", names->host[i]);
    char *const answer = malloc(ANSWER);
    names->n = 0;
    if (answer) {
        ask(nodes, answer);
        take_answer(answer, names);
        free(answer);
    }
}
