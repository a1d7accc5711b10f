/* meshcoll run: starts the ranks of a program on this machine. */
#ifndef MC_TOOLS_RUN_H
#define MC_TOOLS_RUN_H

#include "tools/common/tool.h"

#include <sys/types.h>

typedef struct {
    int32_t ranks, boxes; /* boxes: 0 where not given */
    double grace;         /* seconds from SIGTERM to SIGKILL */
    bool tag_output;
    char **program; /* ends with NULL */
} mc_launch_t;

/* The lines that a rank writes to one stream, each written out with its tag. */
typedef struct {
    int from, to; /* `from` is -1 once it has ended */
    int32_t rank;
    size_t n;
    char line[4096];
} mc_tagged_t;

typedef struct {
    pid_t pid;           /* 0: not started, or over */
    mc_tagged_t *stream; /* two, of stdout and stderr; NULL: the output is not tagged */
} mc_child_t;

/* Ports that stay reserved while their descriptors are open: the program's own, and meshcoll's. */
enum { MC_RUN_PORTS = 2 };

/* Variables that hold for all ranks: address, ports, secret, mesh. */
int mc_run_prepare(const mc_launch_t *run, int reserved[MC_RUN_PORTS]);
/* Starts one rank. A program that cannot be executed: an exit status, as a shell has, and it says why. */
int mc_run_start(const mc_launch_t *run, int32_t rank, mc_child_t *child);
/* Waits for all ranks; the exit status of the first that failed. */
int mc_run_watch(const mc_launch_t *run, mc_child_t *children, int signals);

#endif
