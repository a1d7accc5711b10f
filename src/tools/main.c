/* The command `meshcoll`: a table of subcommands. */
#include "base/system/descriptor.h"
#include "tools/count/count.h"
#include "tools/list/list.h"
#include "tools/plan/plan.h"
#include "tools/run/run.h"
#include "tools/status/status.h"
#include "tools/topo/topo.h"
#include "tools/trace/trace.h"
#include "tools/verify/verify.h"

#ifdef MESHCOLL_HAVE_MPI
#include "tools/tune/tune.h"
#endif

#include <signal.h>
#include <string.h>

static const mc_command_t *const commands[] = {
    &mc_plan_command, &mc_trace_command, &mc_verify_command, &mc_count_command,
    &mc_list_command, &mc_topo_command,  &mc_run_command,    &mc_status_command,
#ifdef MESHCOLL_HAVE_MPI
    &mc_tune_command,
#endif
};

static int print_help(FILE *out)
{
    fprintf(out, "meshcoll: collectives composed over a mesh of ranks\n\n"
                 "usage: meshcoll COMMAND [ARGUMENT …] [--OPTION …]\n\ncommands:\n");
    for (size_t i = 0; i < MC_COUNT(commands); i++)
        fprintf(out, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "  %-8s  %s\n", "help", "this text; meshcoll help COMMAND for one of them");
    fprintf(out, "\nEach command takes --help, with examples, and all but run and status --json.\n"
                 "\nfirst steps:\n"
                 "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 64M\n"
                 "  meshcoll trace allreduce --mesh x=4 --strategy allreduce:ring\n"
                 "  meshcoll count --ranks 8\n");
    return MC_EXIT_OK;
}

static int refuse(const char *name)
{
    char known[256];
    mc_text_t list = mc_text(known, sizeof known);
    for (size_t i = 0; i < MC_COUNT(commands); i++)
        mc_text_add(&list, "%s, ", commands[i]->name);
    return mc_tool_refuse(NULL, "there is no command '%s'; expected one of %shelp", name, known);
}

static const mc_command_t *find(const char *name)
{
    for (size_t i = 0; i < MC_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int help_for(const char *name)
{
    const mc_command_t *const command = find(name);
    char help[] = "--help", self[] = "meshcoll";
    char *argv[] = {self, help, NULL};
    return command ? command->run(command, 2, argv) : refuse(name);
}

static int run(int argc, char **argv)
{
    const char *const name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_help(stderr);
        return MC_EXIT_USAGE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("meshcoll %s\n", meshcoll_version());
        return MC_EXIT_OK;
    }
    if (strcmp(name, "help") == 0 && argc > 2)
        return help_for(argv[2]);
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_help(stdout);
    const mc_command_t *const command = find(name);
    return command ? command->run(command, argc - 1, argv + 1) : refuse(name);
}

/* Who started this command may have ignored or blocked signals: with SIGCHLD ignored no child can be waited for, and
 * children would inherit it. A SIGHUP that is ignored stays so: nohup is meant. */
static void reset_signals(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;
        if (i != SIGHUP && sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            (void)signal(i, SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int main(int argc, char **argv)
{
    reset_signals();
    mc_descriptor_fill();
    const int status = run(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "meshcoll: the output could not be written\n");
    return MC_EXIT_FAILED;
}
