/* meshcoll-bench: what its files share. One process per rank; rank 0 alone prints and writes. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "common/gate.h"
#include "common/gpu.h"
#include "compose/planner/planner.h"
#include "mesh/link/link.h"
#include "mpi/own_mpi.h"

#include <jansson.h>
#include <stdio.h>

/* What the command line says. */
typedef struct {
    meshcoll_collective_t collective;
    meshcoll_datatype_t datatype;
    meshcoll_op_t op;
    int root;
    const char *mesh, *links, *transports; /* NULL: not given */
    const char *strategies, *rate, *csv, *json, *timeline, *gate;
    const char *sizes;                   /* instead of begin, end and factor; ascending */
    double rate_bytes;                   /* of `rate`, bytes per second; 0: not given */
    uint64_t begin, end, timeline_bytes; /* the last 0: the largest size */
    double factor;
    int warmup, iterations;
    int again;                 /* untimed runs of a strategy before each timed one */
    double min_time, max_time; /* seconds per row; max_time 0: no limit */
    int enqueue;               /* calls in a row in a stream, timed by its events; 0: blocking */
    bool in_place, check, flat_mpi, flat_nccl;
    bool device;  /* the buffers are in the memory of a GPU */
    bool barrier; /* a sum of one element, which is what meshcoll's barrier is */
} options_t;

/* Status 0, or ERR_INVALID_ARG with the error's text set. */
int options_parse(int argc, char **argv, options_t *options);
/* Prints what --help or --version asks for, once where mpirun started several; whether one was there. */
bool options_answer(int argc, char **argv);
/* What --collective said. */
const char *options_collective(const options_t *options);
/* Item i of --sizes; *bytes stays as it is behind the last. */
int options_size(const options_t *options, int i, uint64_t *bytes);

/* A contender: one strategy, the planner's choice, or the collective of another library. */
typedef enum { PLANNED, FORCED, MPI_OWN, NCCL } kind_t;

typedef struct {
    kind_t kind;
    char *label; /* "option2", "best", "mpi", "nccl", or the strategy's text */
} contender_t;

typedef struct {
    contender_t *at;
    int n;
} contenders_t;

/* Spells out `--strategies` and `--flat`. */
int contenders_make(const options_t *options, const mc_mesh_t *mesh, contenders_t *contenders);
void contenders_free(contenders_t *contenders);

/* Where one collective's data lies on this rank. Elements [first, first + n) of the whole vector. */
typedef struct {
    char *at; /* NULL: not used on this rank */
    size_t n, first;
} span_t;

typedef struct {
    span_t in, out;
    size_t count; /* the API's count: of the whole vector, or of one block */
    size_t whole; /* elements of the whole vector */
} view_t;

/* A whole number, and the second part of what has two. */
typedef struct {
    uint64_t a, b;
} pair_t;

int element_exact_bits(meshcoll_datatype_t datatype);
bool element_is_complex(meshcoll_datatype_t datatype);
void element_put(meshcoll_datatype_t datatype, char *at, pair_t number);
bool element_is(meshcoll_datatype_t datatype, const char *at, pair_t number);

/* One row of the table; times in seconds, NAN where there is none. */
typedef struct {
    uint64_t bytes;
    size_t count;
    const char *label;
    char *strategy; /* owned; "mpi" or "nccl" for those libraries' own */
    bool other;     /* than meshcoll's */
    int iterations;
    int late; /* of them, those with a late barrier (gate_late), used where too few others exist */
    double predicted, median, min, p99, bound;
    double algbw, busbw; /* bytes per second, as nccl-tests defines them, of the median */
    double cpu;          /* that one enqueued call takes, of the rank that takes most */
    double sent
        [MC_MAX_DIMS]; /* on host memory: bytes across the dimension, the busiest box, one iteration */
    bool checked;
    uint64_t wrong;
} row_t;

typedef struct {
    options_t options;
    meshcoll_t *handle;
    mc_mesh_t mesh;
    mc_links_t links, bound_links; /* the second with the network's stated rate */
    int rank, size;
    const own_mpi_t *mpi; /* with --flat mpi */
    char mpi_version[OWN_MPI_VERSION];
    gate_t *gate;              /* NULL: iterations begin after a barrier alone */
    char *in, *out;            /* room for the largest size, with guards */
    size_t room;               /* bytes of each */
    gpu_t gpu;                 /* with --memory device */
    mc_cu_address_t mirror[2]; /* of in and out, on the GPU */
    struct nccl *nccl;         /* with --flat nccl */
    size_t whole;              /* elements of the size measured last */
    uint64_t salt;             /* of the next data pattern */
    contenders_t contenders;
    row_t *row; /* rank 0 */
    int n_rows;
} bench_t;

/* Exit statuses; wrong elements and failures are one. */
enum { EXIT_WRONG = 1, EXIT_USAGE = 2 };
/* One line on standard error, then the whole program ends. */
_Noreturn void die(const char *format, ...) MC_PRINTF(1, 2);

enum { GUARD = 64, PAGE = 4096 };
/* data.c: what the buffers hold, and whether it is right. */
bool collective_reduces(meshcoll_collective_t collective);
bool collective_has_root(meshcoll_collective_t collective);
/* Elements of the whole vector at about `bytes`, so that the blocks are equal. */
size_t data_whole(const bench_t *bench, uint64_t bytes);
/* Why this many ranks cannot be checked exactly; NULL when they can. */
const char *data_inexact(const options_t *options, int ranks);
view_t data_view(const bench_t *bench, size_t whole);
/* Fresh data that depends on rank and index, poison elsewhere. */
void data_fill(bench_t *bench, const view_t *view);
/* Number of wrong elements on this rank, including changed input and bytes written past a
 * buffer. */
uint64_t data_wrong(const bench_t *bench, const view_t *view);
/* Sets the buffers to zeros for the timed runs. */
void data_clear(const bench_t *bench, const view_t *view);
/* Before each timed run: the output is read and the input written, by their owner (common/use.h). */
void data_use(const bench_t *bench, const view_t *view);

/* mpi.c: loads meshcoll-bench-mpi.so and starts MPI, with the ranks that the mesh has. */
int mpi_open(bench_t *bench);
void mpi_close(bench_t *bench);
/* Is the number of elements within the range of MPI's int? */
bool mpi_fits(const bench_t *bench, size_t whole);
/* MPI_Bcast has one buffer, and MPI_Reduce_scatter_block leaves its block at the buffer's start. */
view_t mpi_view(const bench_t *bench, const view_t *view);
void mpi_run(const bench_t *bench, const view_t *view);

/* ranks.c: what the ranks tell each other between measurements, over the mesh. Collective; a failure ends the program. */
uint64_t ranks_sum(const bench_t *bench, uint64_t mine);
double ranks_most(const bench_t *bench, double mine);
void ranks_gather(const bench_t *bench, const void *mine, void *all, size_t bytes);
/* Gives all what `data` has on rank 0. */
void ranks_tell(const bench_t *bench, void *data, size_t bytes);
/* Has all ranks fail, with the sentence of the first that has failed. */
int ranks_agree(const bench_t *bench, int status);

/* device.c: with --memory device. Collective; refuses on all ranks where one has no GPU. */
int device_open(bench_t *bench);
void device_make_buffers(bench_t *bench, size_t room);
void device_close(bench_t *bench);
/* Where the operation finds what is at `host` of the buffers: on the GPU, or there. */
char *device_at(const bench_t *bench, char *host);
/* Copies the data of a view, with guards, to the GPU, and back; they wait. */
void device_put(const bench_t *bench, const view_t *view);
void device_get(const bench_t *bench, const view_t *view);
/* Waits for the stream, and for errors of what ran in it. */
void device_wait(const bench_t *bench);
/* Calls `enqueue` as often as --enqueue says, between two events; returns seconds per call, and adds the CPU time
 * of all to *cpu. */
double device_timed(const bench_t *bench, void (*enqueue)(const void *context), const void *context,
                    double *cpu);

/* own_nccl.c: NCCL, opened at run time: libnccl.so.2, or what MESHCOLL_LIBNCCL names. Collective; refuses with a
 * sentence on all ranks where one lacks something. */
int own_nccl_open(bench_t *bench);
void own_nccl_close(bench_t *bench);
/* The datatype or operation that NCCL does not have, or NULL. */
const char *own_nccl_lacks(const options_t *options);
/* Enqueues the collective in the bench's stream. */
void own_nccl_enqueue(const bench_t *bench, const view_t *view);
/* "2.27.3" */
const char *own_nccl_version(const bench_t *bench);

/* measure.c: a contender's persistent request, not for the library's own; and one run of it. */
meshcoll_request_t *request_open(const bench_t *bench, const view_t *view, const contender_t *who);
void request_run(meshcoll_request_t *request, const contender_t *who);
/* One row per contender at this size, appended on rank 0. Returns wrong elements. */
uint64_t measure_size(bench_t *bench, size_t whole);

/* meta.c */
typedef struct {
    char date[32], cpu[128], host[64], ucx[64], links[MC_LINKS_TEXT], command[4096];
    int cores;
} meta_t;
void meta_make(const bench_t *bench, int argc, char **argv, meta_t *meta);

/* timeline.c: records one run of each strategy and writes the files of --timeline. */
void timeline_all(bench_t *bench, const meta_t *meta);

/* table.c, files.c */
void table_head(const bench_t *bench, const meta_t *meta);
void table_row(const bench_t *bench, const row_t *row);
void table_foot(const bench_t *bench);
/* "-" is standard output, which then has no table. */
FILE *csv_open(const char *path);
void csv_close(FILE *file, const char *path);
void csv_head(const bench_t *bench, const meta_t *meta, FILE *file);
void csv_row(const bench_t *bench, const row_t *row, FILE *file);
/* Rewrites the whole file after each size, so that a run that is killed loses nothing that was
 * measured. */
int json_write(const bench_t *bench, const meta_t *meta, const char *path);
/* `flags`: jansson's. What is at `path` stays until all is written. */
int json_save(const json_t *all, size_t flags, const char *path);

#endif
