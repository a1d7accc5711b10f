/* Options from a table, which gives the help as well. */
#include "tools/common/tool.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 24, HELP = 'h', FIRST = 256 };

static int count(const mc_option_t *option)
{
    int n = 0;
    while (option[n].name)
        n++;
    return n;
}

static void print_option(const mc_option_t *option)
{
    enum { HELP_AT = 22 };
    char left[64];
    const int n = snprintf(left, sizeof left, "  --%s%s%s", option->name, option->value ? " " : "",
                           option->value ? option->value : "");
    printf("%-*s%s%s\n", HELP_AT, left, n >= HELP_AT ? "  " : "", option->help);
}

static int print_help(const mc_command_t *command, const mc_option_t *option)
{
    printf("meshcoll %s: %s\n\nusage:\n%s\n%s\noptions:\n", command->name, command->summary,
           command->usage, command->about);
    for (; option->name; option++)
        print_option(option);
    print_option(&(mc_option_t){.name = "help", .help = "this text"});
    printf("\nexamples:\n%s", command->examples);
    return MC_EXIT_OK;
}

static int refuse_unknown(const mc_command_t *command, const mc_option_t *option, const char *text)
{
    char known[512];
    mc_text_t list = mc_text(known, sizeof known);
    for (int i = 0; option[i].name; i++)
        mc_text_add(&list, "%s--%s", i > 0 ? ", " : "", option[i].name);
    return mc_tool_refuse(command, "there is no option '%s'; expected one of %s, --help", text,
                          known);
}

static int take(const mc_command_t *command, const mc_option_t *option, const char *value)
{
    if (option->flag) {
        *option->flag = true;
        return MC_GO_ON;
    }
    if (option->text) {
        *option->text = value;
        return MC_GO_ON;
    }
    char *end;
    errno = 0;
    const long number = strtol(value, &end, 10);
    if (!isdigit((unsigned char)value[0]) || *end || errno || number < option->least ||
        number > option->most)
        return mc_tool_refuse(command, "--%s takes a number from %d to %d; got '%s'", option->name,
                              option->least, option->most, value);
    *option->number = (int32_t)number;
    return MC_GO_ON;
}

static int take_arguments(const mc_command_t *command, char **argv, int n,
                          mc_arguments_t *arguments)
{
    for (int i = 0; i < n; i++) {
        if (arguments->n == arguments->most)
            return mc_tool_refuse(command, "'%s' is one argument too many; see meshcoll %s --help",
                                  argv[i], command->name);
        arguments->text[arguments->n++] = argv[i];
    }
    return MC_GO_ON;
}

int mc_options_parse(const mc_command_t *command, const mc_option_t *option, int argc, char **argv,
                     mc_arguments_t *arguments)
{
    struct option longs[MAX_OPTIONS + 2] = {{"help", no_argument, NULL, HELP}};
    const int n = count(option);
    for (int i = 0; i < n && i < MAX_OPTIONS; i++)
        longs[i + 1] = (struct option){
            option[i].name, option[i].value ? required_argument : no_argument, NULL, FIRST + i};
    opterr = 0;
    optind = 0; /* glibc: from the start again */
    for (;;) {
        const int found = getopt_long(argc, argv, ":h", longs, NULL);
        int exit = MC_GO_ON;
        if (found == -1)
            return take_arguments(command, argv + optind, argc - optind, arguments);
        if (found == HELP)
            return print_help(command, option);
        if (found == ':')
            return mc_tool_refuse(command, "%s needs a value", argv[optind - 1]);
        if (found >= FIRST)
            exit = take(command, &option[found - FIRST], optarg);
        else
            exit = refuse_unknown(command, option, argv[optind - 1]);
        if (exit != MC_GO_ON)
            return exit;
    }
}
