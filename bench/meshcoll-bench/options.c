/* The command line. */
#include "tools/common/options.h"
#include "bench.h"
#include "tools/common/ranks.h"

#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: meshcoll run -n RANKS meshcoll-bench [OPTIONS]      (or torchrun, srun, mpirun)\n";
static const char ending[] =
    "\n"
    "exit status: 0 all well, 1 wrong elements or a failure, 2 wrong usage\n";

/* Values that are read as text first. */
typedef struct {
    const char *collective, *datatype, *op, *sizes, *flat, *memory;
    int32_t check;
    bool version; /* was answered before */
} texts_t;

enum { MAX_OPTIONS = 44, MOST_COUNT = 1000000000 };

static void make_table(options_t *o, texts_t *t, mc_option_t table[MAX_OPTIONS])
{
    const mc_option_t all[] = {
        {.heading = "what runs"},
        MC_OPTION_TEXT("collective", "NAME",
                       "bcast (default), reduce, scatter, gather, allgather, allreduce,\n"
                       "reduce_scatter, alltoall, barrier",
                       &t->collective),
        MC_OPTION_TEXT("mesh", "TEXT", "box=4,gpu=4: dimensions, outermost first; default: found",
                       &o->mesh),
        MC_OPTION_TEXT("links", "TEXT", "link models, as in `meshcoll plan --links`", &o->links),
        MC_OPTION_TEXT("transports", "TEXT",
                       "per dimension, shm or a list of UCX's: box=tcp,self;gpu=shm",
                       &o->transports),
        MC_OPTION_TEXT("strategies", "LIST",
                       "separated by commas or newlines (default: best,named):\n"
                       "  best     what the planner picks at each size\n"
                       "  named    every named entry of the collective on this mesh\n"
                       "  all      every path, with every algorithm in every phase once\n"
                       "  option2  a named entry\n"
                       "  \"bcast:mst(box) bcast:mst(gpu) segments=4\"  a strategy's text",
                       &o->strategies),
        MC_OPTION_TEXT("flat", "mpi|nccl",
                       "that library's own collective too, on the same buffers; mpi: under\n"
                       "mpirun, where meshcoll was built with MPI; nccl: of GPUs",
                       &t->flat),
        MC_OPTION_TEXT("datatype", "NAME",
                       "float32 (default), float16, int64, … (docs/datatypes.md)", &t->datatype),
        MC_OPTION_TEXT("op", "NAME", "sum (default), avg, min, band, … (docs/datatypes.md)",
                       &t->op),
        MC_OPTION_NUMBER("root", "RANK", "0", &o->root, 0, MOST_COUNT),
        MC_OPTION_TEXT("memory", "host|device",
                       "where the buffers are: of the host (default), or of a GPU for each rank",
                       &t->memory),
        MC_OPTION_FLAG("in-place", "input and output in one buffer", &o->in_place),

        {.heading = "sizes, of the whole vector for every collective; alltoall: of what one rank "
                    "sends. K, M and G are powers of 1024"},
        {.name = "begin", .letter = 'b', .value = "BYTES", .help = "1K", .bytes = &o->begin},
        {.name = "end", .letter = 'e', .value = "BYTES", .help = "8M", .bytes = &o->end},
        {.name = "factor",
         .letter = 'f',
         .value = "F",
         .help = "4, from one size to the next",
         .real = &o->factor,
         .from = 1.01,
         .to = 1e9},
        MC_OPTION_TEXT("sizes", "LIST", "these instead, ascending: 8,64,1M", &t->sizes),

        {.heading = "how often"},
        {.name = "warmup",
         .letter = 'w',
         .value = "N",
         .help = "5 rounds that do not count",
         .number = &o->warmup,
         .most = MOST_COUNT},
        {.name = "iterations",
         .letter = 'n',
         .value = "N",
         .help = "20 rounds; in each round every strategy runs once",
         .number = &o->iterations,
         .least = 1,
         .most = MOST_COUNT},
        {.name = "min-time",
         .value = "SECONDS",
         .help = "more rounds until a row has taken that long",
         .real = &o->min_time,
         .to = 1e9},
        {.name = "max-time",
         .value = "SECONDS",
         .help = "fewer rounds, but 3, when a row has taken that long",
         .real = &o->max_time,
         .to = 1e9},
        MC_OPTION_NUMBER("again", "N", "0 untimed runs of a strategy before each timed one",
                         &o->again, 0, MOST_COUNT),
        MC_OPTION_NUMBER(
            "enqueue", "N",
            "N calls in a row in a CUDA stream, timed by its events, instead of one that the\n"
            "host waits for; with --memory device",
            &o->enqueue, 1, MOST_COUNT),
        MC_OPTION_TEXT(
            "gate", "FILE",
            "ranks on one kernel: wait asleep, and count the time from one moment for all;\n"
            "FILE is new, in a folder that all ranks share, and removed once all have it",
            &o->gate),
        {.name = "check",
         .letter = 'c',
         .value = "0|1",
         .help = "1: compare every element, before and after the timed rounds",
         .number = &t->check,
         .most = 1},

        {.heading = "output"},
        MC_OPTION_TEXT("rate", "RATE",
                       "200mbit: what a box's network carries each way; for the lower bound only",
                       &o->rate),
        MC_OPTION_TEXT(
            "csv", "FILE",
            "a row for each strategy and size; -: on standard output, in place of the table",
            &o->csv),
        MC_OPTION_TEXT("json", "FILE", "the same with all settings", &o->json),
        MC_OPTION_TEXT(
            "timeline", "FILE",
            "one run of each strategy, step by step, to FILE.json: for Perfetto,\n"
            "chrome://tracing and meshcoll trace; several strategies: FILE-1-NAME.json, …",
            &o->timeline),
        {.name = "timeline-bytes",
         .value = "BYTES",
         .help = "the size of that run (default: the largest)",
         .bytes = &o->timeline_bytes},
        MC_OPTION_FLAG("version", "answered at once, as --help is, also without a launcher",
                       &t->version),
        {0},
    };
    _Static_assert(MC_COUNT(all) <= MAX_OPTIONS, "the table has room");
    memcpy(table, all, sizeof all);
}

static void print_help(void)
{
    options_t o;
    texts_t t;
    mc_option_t table[MAX_OPTIONS];
    make_table(&o, &t, table);
    fputs(usage, stdout);
    mc_options_print(table, stdout);
    fputs(ending, stdout);
}

bool options_answer(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const bool version = strcmp(argv[i], "--version") == 0;
        if (!version && strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0)
            continue;
        if (mc_ranks_first() && version)
            printf("meshcoll-bench %s\n", meshcoll_version());
        else if (mc_ranks_first())
            print_help();
        return true;
    }
    return false;
}

static const char *collective_name(int i)
{
    return meshcoll_collective_name((meshcoll_collective_t)i);
}

static const char *datatype_name(int i)
{
    return meshcoll_datatype_name((meshcoll_datatype_t)i);
}

static const char *op_name(int i)
{
    return meshcoll_op_name((meshcoll_op_t)i);
}

const char *options_collective(const options_t *o)
{
    return o->barrier ? "barrier" : meshcoll_collective_name(o->collective);
}

/* The collectives, and behind them the barrier. */
static const char *what_name(int i)
{
    return i == MESHCOLL_COLLECTIVES ? "barrier" : collective_name(i);
}

/* Index of `text` among n names, or an error that lists them. */
static int parse_name(const char *option, const char *text, const char *(*name)(int), int n,
                      int *found)
{
    if (!text)
        return MESHCOLL_OK;
    char all[512];
    mc_text_t list = mc_text(all, sizeof all);
    for (int i = 0; i < n; i++) {
        if (strcmp(text, name(i)) == 0) {
            *found = i;
            return MESHCOLL_OK;
        }
        mc_text_add(&list, "%s%s", i ? ", " : "", name(i));
    }
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected one of %s; got \"%s\"", option, all,
                   text);
}

int options_size(const options_t *o, int i, uint64_t *bytes)
{
    const char *at = o->sizes;
    for (; at && i > 0; i--) {
        at = strchr(at, ',');
        at += at != NULL;
    }
    if (!at)
        return MESHCOLL_OK;
    char item[64];
    snprintf(item, sizeof item, "%.*s", (int)strcspn(at, ","), at);
    if (mc_parse_bytes(item, bytes) != MESHCOLL_OK || *bytes == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--sizes: expected bytes such as 1024, 64K or 8M; got \"%s\"", item);
    return MESHCOLL_OK;
}

/* Reads all sizes before anything is measured, so that an error is reported at once. */
static int parse_sizes(const char *text, options_t *o)
{
    o->sizes = text;
    uint64_t last = 0;
    for (int i = 0;; i++) {
        uint64_t bytes = 0;
        const int status = options_size(o, i, &bytes);
        if (status != MESHCOLL_OK)
            return status;
        if (bytes == 0)
            break;
        if (bytes <= last)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "--sizes: expected each larger than the one before; got \"%s\"", text);
        o->begin = i == 0 ? bytes : o->begin;
        o->end = last = bytes;
    }
    return MESHCOLL_OK;
}

/* "200mbit" as tc writes rates: powers of 1000, bits per second. */
static int parse_rate(const char *text, double *bytes_per_second)
{
    static const char *const unit[] = {"bit", "kbit", "mbit", "gbit", "tbit"};
    char *end;
    double scale = 1.0 / 8;
    const double number = strtod(text, &end);
    for (size_t i = 0; i < MC_COUNT(unit); i++, scale *= 1000)
        if (end != text && number > 0 && strcmp(end, unit[i]) == 0) {
            *bytes_per_second = number * scale;
            return MESHCOLL_OK;
        }
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "--rate: expected a rate such as 200mbit or 25gbit; "
                   "got \"%s\"",
                   text);
}

/* The parameters of meshcoll_barrier, regardless of the options for data. */
static void set_barrier(options_t *o)
{
    o->datatype = MESHCOLL_INT32;
    o->op = MESHCOLL_SUM;
    o->sizes = NULL;
    o->begin = o->end = sizeof(int32_t);
}

static int parse_names(const texts_t *t, options_t *o)
{
    int collective = (int)o->collective, datatype = (int)o->datatype, op = (int)o->op;
    int status =
        parse_name("--collective", t->collective, what_name, MESHCOLL_COLLECTIVES + 1, &collective);
    if (!status)
        status =
            parse_name("--datatype", t->datatype, datatype_name, MESHCOLL_DATATYPES, &datatype);
    if (!status)
        status = parse_name("--op", t->op, op_name, MESHCOLL_OPS, &op);
    o->barrier = collective == MESHCOLL_COLLECTIVES;
    o->collective = o->barrier ? MESHCOLL_ALLREDUCE : (meshcoll_collective_t)collective;
    o->datatype = (meshcoll_datatype_t)datatype;
    o->op = (meshcoll_op_t)op;
    return status;
}

/* One of two words, or none. */
static int parse_flag(const char *option, const char *text, const char *a, const char *b,
                      bool *is_a, bool *is_b)
{
    *is_a = text && strcmp(text, a) == 0;
    *is_b = text && strcmp(text, b) == 0;
    if (!text || *is_a || *is_b)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected %s or %s; got \"%s\"", option, a, b,
                   text);
}

static int parse_texts(const texts_t *t, options_t *o)
{
    bool host;
    int status = parse_names(t, o);
    if (!status && t->sizes)
        status = parse_sizes(t->sizes, o);
    if (!status && o->rate)
        status = parse_rate(o->rate, &o->rate_bytes);
    if (!status)
        status = parse_flag("--flat", t->flat, "mpi", "nccl", &o->flat_mpi, &o->flat_nccl);
    if (!status)
        status = parse_flag("--memory", t->memory, "host", "device", &host, &o->device);
    o->check = t->check != 0;
    if (!status && o->json && strcmp(o->json, "-") == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--json: expected the name of a file, which is "
                                                 "rewritten after each size; got \"-\"");
    return status;
}

/* Options that need the memory of a GPU, or go without it. */
static int check_memory(const options_t *o)
{
    if (!o->device && o->flat_nccl)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--flat nccl: NCCL works on the memory of GPUs; add --memory device");
    if (!o->device && o->enqueue > 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--enqueue: streams have calls on the memory of GPUs; add --memory device");
    if (o->device && (o->barrier || o->timeline || o->flat_mpi))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--memory device goes without %s",
                       o->barrier    ? "--collective barrier: it has no buffers"
                       : o->timeline ? "--timeline: kernels record no steps"
                                     : "--flat mpi: an MPI need not know GPUs; --flat nccl does");
    if (o->enqueue > 0 && o->gate)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--enqueue goes without --gate: events in the stream are its clock");
    if (o->flat_nccl && own_nccl_lacks(o))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--flat nccl: NCCL has no %s; leave it out",
                       own_nccl_lacks(o));
    return MESHCOLL_OK;
}

/* Options that exclude each other. */
static int check(const options_t *o)
{
    if (collective_reduces(o->collective) && meshcoll_op_check(o->op, o->datatype))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--op: %s", meshcoll_last_error());
    if (o->begin > o->end)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "-b is larger than -e: no size to measure");
    return check_memory(o);
}

int options_parse(int argc, char **argv, options_t *options)
{
    options_t o = {
        .collective = MESHCOLL_BCAST,
        .datatype = MESHCOLL_FLOAT32,
        .op = MESHCOLL_SUM,
        .strategies = "best,named",
        .begin = 1024,
        .end = 8 << 20,
        .factor = 4,
        .warmup = 5,
        .iterations = 20,
    };
    texts_t texts = {.check = 1};
    mc_arguments_t none = {0};
    mc_option_t table[MAX_OPTIONS];
    bool help; /* was answered before */
    make_table(&o, &texts, table);
    int status = mc_options_read(table, argc, argv, &none, &help);
    if (!status)
        status = parse_texts(&texts, &o);
    if (!status && o.barrier)
        set_barrier(&o);
    if (!status)
        status = check(&o);
    if (!status)
        *options = o;
    return status;
}
