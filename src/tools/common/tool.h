/*
 * What the commands of `meshcoll` share: the shape of a command, options, errors, reading of arguments.
 * tools/common includes the library. Each other folder of tools, but for tools/gpu, is one command; it includes these two and the
 * library, not another command. main.c includes them all.
 */
#ifndef MC_TOOLS_TOOL_H
#define MC_TOOLS_TOOL_H

#include "compose/strategy/strategy.h"
#include "plan/verify/world.h"
#include "tools/common/options.h"

#include <jansson.h>
#include <stdio.h>

/* Exit statuses, documented in docs/command.md. */
enum {
    MC_EXIT_OK = 0,
    MC_EXIT_FAILED = 1,  /* a verification failed, or the machine did (memory, a full disk) */
    MC_EXIT_USAGE = 2,   /* the command line asks for what there is not */
    MC_EXIT_PARTIAL = 3, /* out of time: what was verified holds, but it is not all */
    MC_GO_ON = -1        /* no reason to exit yet */
};

typedef struct mc_command mc_command_t;
struct mc_command {
    const char *name, *summary;
    const char *usage;    /* lines behind "meshcoll NAME" */
    const char *about;    /* paragraphs for --help */
    const char *examples; /* lines for --help */
    int (*run)(const mc_command_t *self, int argc, char **argv);
};

/* MC_GO_ON, or the exit status after help or an error. */
int mc_options_parse(const mc_command_t *command, const mc_option_t *option, int argc, char **argv,
                     mc_arguments_t *arguments);

/* Prints "meshcoll plan: …" as one line on stderr and returns MC_EXIT_USAGE. */
int mc_tool_refuse(const mc_command_t *command, const char *format, ...) MC_PRINTF(2, 3);
/* The same with meshcoll_last_error(); the exit status that goes with `status`. */
int mc_tool_fail(const mc_command_t *command, int status);

/* Readers of arguments: MC_GO_ON, or the exit status after a line on stderr. */
int mc_read_collective(const mc_command_t *command, const char *text,
                       meshcoll_collective_t *collective);
int mc_read_mesh(const mc_command_t *command, const char *text, mc_mesh_t *mesh);
/* NULL: rank 0. A root of a collective without one is refused. */
int mc_read_root(const mc_command_t *command, const char *text, meshcoll_collective_t collective,
                 const mc_mesh_t *mesh, int32_t *root);
int mc_read_strategy(const mc_command_t *command, const char *text,
                     meshcoll_collective_t collective, const mc_mesh_t *mesh,
                     mc_strategy_t *strategy);
int mc_read_bytes(const mc_command_t *command, const char *option, const char *text,
                  uint64_t *bytes);

/* All ranks' plans of one strategy. */
typedef struct {
    const mc_plan_t **plan;
    int32_t n;
} mc_plans_t;

int mc_plans_create(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t root,
                    mc_plans_t *plans);
void mc_plans_free(mc_plans_t *plans);
static inline mc_world_t mc_plans_world(const mc_plans_t *plans)
{
    return (mc_world_t){.n_ranks = plans->n, .plan = plans->plan};
}

#endif
