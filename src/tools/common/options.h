/* A command line read by a table of options, which prints the help too; for meshcoll and for the programs of bench. */
#ifndef MC_TOOLS_OPTIONS_H
#define MC_TOOLS_OPTIONS_H

#include "base/base.h"

#include <stdio.h>

/* The values of an option that may come again; *at is the caller's to free. */
typedef struct {
    const char **at;
    uint32_t n, capacity;
} mc_texts_t;

/* One option: exactly one of flag, text, texts, number, real and bytes says where its value goes. */
typedef struct {
    const char *heading; /* instead of an option: a line of the help above the next ones */
    const char *name;
    char letter;       /* the short form; 0: none */
    const char *value; /* placeholder of the value in the help; NULL: a flag */
    const char *help;  /* may have several lines */
    bool *flag;
    const char **text;
    mc_texts_t *texts;
    int32_t *number, least, most;
    double *real, from, to; /* bounds, inclusive */
    uint64_t *bytes;        /* at least 1; K, M and G are powers of 1024 (mc_parse_bytes) */
} mc_option_t;

#define MC_OPTION_FLAG(name_, help_, at)         \
    {                                            \
        .name = name_, .help = help_, .flag = at \
    }
#define MC_OPTION_TEXT(name_, value_, help_, at)                  \
    {                                                             \
        .name = name_, .value = value_, .help = help_, .text = at \
    }
#define MC_OPTION_TEXTS(name_, value_, help_, at)                  \
    {                                                              \
        .name = name_, .value = value_, .help = help_, .texts = at \
    }
#define MC_OPTION_NUMBER(name_, value_, help_, at, least_, most_)                     \
    {                                                                                 \
        .name = name_, .value = value_, .help = help_, .number = at, .least = least_, \
        .most = most_                                                                 \
    }

/* Arguments that are no options go there; NULL: the command takes none. */
typedef struct {
    const char **text; /* one argument at most */
    char ***program;   /* it and its arguments: the first of them ends the options */
} mc_arguments_t;

/* Reads the options of the table, which ends with an empty entry; --help and -h are part of
 * every table. ERR_INVALID_ARG says what was expected. Sets *help where help was asked for;
 * later arguments are then not read. */
int mc_options_read(const mc_option_t *option, int argc, char **argv,
                    const mc_arguments_t *arguments, bool *help);
/* Prints a line for each option, and one for --help. */
void mc_options_print(const mc_option_t *option, FILE *out);

#endif
