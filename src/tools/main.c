/* The command `meshcoll`: a table of subcommands. */
#include "base/nearest.h"
#include "base/system/descriptor.h"
#include "tools/common/tool.h"

#include <signal.h>
#include <string.h>

static const mc_command_t *const commands[] = {
    &mc_plan_command,     &mc_trace_command,  &mc_verify_command, &mc_count_command,
    &mc_list_command,     &mc_topo_command,   &mc_run_command,    &mc_overlay_command,
    &mc_simulate_command, &mc_status_command, &mc_tune_command,   &mc_export_command,
};

static int print_help(FILE *out)
{
    fprintf(out, "meshcoll: collectives composed over a mesh of ranks\n\n"
                 "usage: meshcoll COMMAND [ARGUMENT …] [--OPTION …]\n\ncommands:\n");
    for (size_t i = 0; i < MC_COUNT(commands); i++)
        fprintf(out, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "  %-8s  %s\n", "help", "this text; meshcoll help COMMAND for one of them");
    fprintf(out, "\nEach command takes --help, with examples, and most take --json.\n"
                 "\nfirst steps:\n"
                 "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 64M\n"
                 "  meshcoll trace allreduce --mesh x=4 --strategy allreduce:ring\n"
                 "  meshcoll count --ranks 8\n");
    return MC_EXIT_OK;
}

static int read_and_run(const mc_command_t *c, int argc, char **argv)
{
    if (c->read_and_run)
        return c->read_and_run(argc, argv);
    const int status = mc_options_parse(c, c->options, argc, argv, &c->arguments);
    return status ? status : c->run();
}

static int run_command(const char *name, int argc, char **argv)
{
    char known[256];
    mc_text_t list = mc_text(known, sizeof known);
    mc_nearest_t near = mc_nearest(name, strlen(name));
    mc_text_add(&list, "expected one of ");
    for (size_t i = 0; i < MC_COUNT(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return mc_tool_exit(name, read_and_run(commands[i], argc, argv));
        mc_text_add(&list, "%s, ", commands[i]->name);
        mc_nearest_try(&near, commands[i]->name);
    }
    mc_nearest_try(&near, "help");
    mc_text_add(&list, "help");
    return mc_tool_exit(
        NULL, mc_nearest_fail(&near, MESHCOLL_ERR_INVALID_ARG, "there is no command", known));
}

static int help_for(const char *name)
{
    char help[] = "--help", self[] = "meshcoll";
    char *argv[] = {self, help, NULL};
    return run_command(name, 2, argv);
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
    return run_command(name, argc - 1, argv + 1);
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
