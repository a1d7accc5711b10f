/*
 * What the commands of `meshcoll` share: the shape of a command, options, reading of arguments. A command fails as the
 * library does, with mc_fail(), and main.c prints the text.
 * tools/common includes the library. Each other folder of tools, but for tools/gpu, is one command; it includes these two and the
 * library, not another command.
 */
#ifndef MC_TOOLS_TOOL_H
#define MC_TOOLS_TOOL_H

#include "base/system/file.h"
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
    MC_HELPED =
        256 /* the help is printed, and nothing else is to be done: above all exit statuses */
};

typedef struct {
    const char *name, *summary;
    const char *usage;          /* lines behind "meshcoll NAME" */
    const char *about;          /* paragraphs for --help */
    const char *examples;       /* lines for --help */
    const mc_option_t *options; /* read before `run` */
    mc_arguments_t arguments;
    int (*run)(void); /* an exit status, or an error */
    /* instead of these three: reads the command line itself; may return MC_HELPED */
    int (*read_and_run)(int argc, char **argv);
} mc_command_t;

extern const mc_command_t mc_plan_command, mc_trace_command, mc_verify_command, mc_count_command,
    mc_list_command, mc_overlay_command, mc_topo_command, mc_run_command, mc_simulate_command,
    mc_status_command, mc_tune_command, mc_export_command;

/* Reads the options of a command. Returns MC_HELPED where help was asked for, which it has printed. */
int mc_options_parse(const mc_command_t *command, const mc_option_t *option, int argc, char **argv,
                     const mc_arguments_t *arguments);

/* Returns the exit status of what a command returned; prints an error as one line on stderr, "meshcoll plan: …". */
int mc_tool_exit(const char *name, int status);

/* Readers of arguments. */
int mc_read_collective(const char *text, meshcoll_collective_t *collective);
int mc_read_mesh(const char *text, mc_mesh_t *mesh);
/* Reads a root; NULL: rank 0. A root of a collective that has none is refused. */
int mc_read_root(const char *text, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                 int32_t *root);
/* Reads a list of n ranks (mesh/rank_order.h), or a file that has one. *order is the caller's to free. */
int mc_read_order(const char *text, int32_t n, int32_t **order);
/* Reads the list of --rank, as in 0-3,8: (*chosen)[r] says whether rank r is in it. NULL: all are. The caller frees
 * *chosen. */
int mc_read_ranks(const char *list, int32_t n, bool **chosen);
#define MC_ORDER_HELP "the ranks by place, 0,2,1,3 or 8-15,0-7, or a file with that"
int mc_read_bytes(const char *option, const char *text, uint64_t *bytes);

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
