/* The command line. */
#include "bench.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: mpirun -n RANKS meshcoll-bench [OPTIONS]\n"
    "\n"
    "what runs\n"
    "  --collective NAME      bcast (default), reduce, scatter, gather, allgather, allreduce,\n"
    "                         reduce_scatter, alltoall, barrier\n"
    "  --mesh TEXT            box=4,gpu=4: dimensions, outermost first; default: found\n"
    "  --links TEXT           link models, as `meshcoll plan --links` takes them\n"
    "  --transports TEXT      per dimension, shm or a list of UCX's: box=tcp,self;gpu=shm\n"
    "  --strategies LIST      separated by commas or newlines (default: best,named):\n"
    "                           best     what the planner picks at each size\n"
    "                           named    every named entry of the collective on this mesh\n"
    "                           all      every path, with every algorithm in every phase once\n"
    "                           option2  a named entry\n"
    "                           \"bcast:mst(box) bcast:mst(gpu) segments=4\"  a strategy's text\n"
    "  --flat mpi             the MPI library's own collective too, on the same buffers\n"
    "  --datatype NAME        float32 (default), float16, int64, … (docs/datatypes.md)\n"
    "  --op NAME              sum (default), avg, min, band, … (docs/datatypes.md)\n"
    "  --root RANK            0\n"
    "  --in-place             input and output in one buffer\n"
    "\n"
    "sizes, of the whole vector for every collective; alltoall: of what one rank sends\n"
    "  -b, --begin BYTES      1K\n"
    "  -e, --end BYTES        8M\n"
    "  -f, --factor F         4, from one size to the next\n"
    "  --sizes LIST           these instead, ascending: 8,64,1M\n"
    "\n"
    "how often\n"
    "  -w, --warmup N         5 rounds that do not count\n"
    "  -n, --iterations N     20 rounds; in each round every strategy runs once\n"
    "  --min-time SECONDS     more rounds until a row has taken that long\n"
    "  --max-time SECONDS     fewer rounds, but 3, when a row has taken that long\n"
    "  --again N              0 untimed runs of a strategy before each timed one\n"
    "  --gate FILE            ranks on one kernel: wait asleep, and count the time from one "
    "moment\n"
    "                         for all; FILE is new, in a folder that all share, and soon gone\n"
    "  -c, --check 0|1        1: compare every element, before and after the timed rounds\n"
    "\n"
    "what comes out\n"
    "  --rate RATE            200mbit: what a box's network really carries each way; for the\n"
    "                         lower bound only\n"
    "  --csv FILE, --json FILE\n"
    "  --timeline FILE        one run of each strategy, step by step, to FILE.json: for Perfetto,\n"
    "                         chrome://tracing and bench/timeline.py; several strategies:\n"
    "                         FILE-1-NAME.json, …\n"
    "  --timeline-bytes BYTES the size of that run (default: the largest)\n"
    "  --help, --version      answered at once, also without mpirun\n"
    "\n"
    "exit status: 0 all well, 1 wrong elements or a failure, 2 wrong usage\n";

enum {
    OPT_COLLECTIVE = 256,
    OPT_MESH,
    OPT_LINKS,
    OPT_TRANSPORTS,
    OPT_STRATEGIES,
    OPT_FLAT,
    OPT_DATATYPE,
    OPT_OP,
    OPT_ROOT,
    OPT_IN_PLACE,
    OPT_MIN_TIME,
    OPT_MAX_TIME,
    OPT_AGAIN,
    OPT_GATE,
    OPT_RATE,
    OPT_SIZES,
    OPT_CSV,
    OPT_JSON,
    OPT_TIMELINE,
    OPT_TIMELINE_BYTES
};

static const struct option longs[] = {
    {"collective", required_argument, NULL, OPT_COLLECTIVE},
    {"mesh", required_argument, NULL, OPT_MESH},
    {"links", required_argument, NULL, OPT_LINKS},
    {"transports", required_argument, NULL, OPT_TRANSPORTS},
    {"strategies", required_argument, NULL, OPT_STRATEGIES},
    {"flat", required_argument, NULL, OPT_FLAT},
    {"datatype", required_argument, NULL, OPT_DATATYPE},
    {"op", required_argument, NULL, OPT_OP},
    {"root", required_argument, NULL, OPT_ROOT},
    {"in-place", no_argument, NULL, OPT_IN_PLACE},
    {"begin", required_argument, NULL, 'b'},
    {"end", required_argument, NULL, 'e'},
    {"factor", required_argument, NULL, 'f'},
    {"warmup", required_argument, NULL, 'w'},
    {"iterations", required_argument, NULL, 'n'},
    {"min-time", required_argument, NULL, OPT_MIN_TIME},
    {"max-time", required_argument, NULL, OPT_MAX_TIME},
    {"again", required_argument, NULL, OPT_AGAIN},
    {"gate", required_argument, NULL, OPT_GATE},
    {"check", required_argument, NULL, 'c'},
    {"rate", required_argument, NULL, OPT_RATE},
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"csv", required_argument, NULL, OPT_CSV},
    {"json", required_argument, NULL, OPT_JSON},
    {"timeline", required_argument, NULL, OPT_TIMELINE},
    {"timeline-bytes", required_argument, NULL, OPT_TIMELINE_BYTES},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* What mpirun tells its processes, as nobody has asked MPI yet. */
static bool is_first(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *const rank = getenv(names[i]);
        if (rank)
            return strcmp(rank, "0") == 0;
    }
    return true;
}

bool options_answer(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const bool version = strcmp(argv[i], "--version") == 0;
        if (!version && strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0)
            continue;
        if (is_first() && version)
            printf("meshcoll-bench %s\n", meshcoll_version());
        else if (is_first())
            fputs(usage, stdout);
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
    char all[512];
    mc_text_t list = mc_text(all, sizeof all);
    for (int i = 0; i < n; i++) {
        if (strcmp(text, name(i)) == 0) {
            *found = i;
            return MESHCOLL_OK;
        }
        mc_text_add(&list, "%s%s", i ? ", " : "", name(i));
    }
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected one of %s; came \"%s\"", option, all,
                   text);
}

static int parse_int(const char *option, const char *text, int least, int *value)
{
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (errno || end == text || *end || number < least || number > 1000000000)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected a whole number from %d; came \"%s\"",
                       option, least, text);
    *value = (int)number;
    return MESHCOLL_OK;
}

static int parse_number(const char *option, const char *text, double least, double *value)
{
    char *end;
    const double number = strtod(text, &end);
    if (end == text || *end || !(number >= least && number <= 1e9))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected a number from %g; came \"%s\"",
                       option, least, text);
    *value = number;
    return MESHCOLL_OK;
}

static int parse_bytes(const char *option, const char *text, uint64_t *bytes)
{
    if (mc_parse_bytes(text, bytes) != MESHCOLL_OK || *bytes == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: expected bytes such as 1024, 64K or 8M; came "
                       "\"%s\"",
                       option, text);
    return MESHCOLL_OK;
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
    return parse_bytes("--sizes", item, bytes);
}

/* All of them are read here, so that a wrong one is told before anything is measured. */
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
                           "--sizes: expected each larger than the one before; came \"%s\"", text);
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
                   "came \"%s\"",
                   text);
}

static int parse_flat(const char *text, bool *flat)
{
    if (strcmp(text, "mpi") != 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--flat: expected mpi; came \"%s\"", text);
    *flat = true;
    return MESHCOLL_OK;
}

static int parse_check(const char *text, bool *check)
{
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "-c: expected 0 or 1; came \"%s\"", text);
    *check = text[0] == '1';
    return MESHCOLL_OK;
}

static int parse_option(int which, options_t *o)
{
    const char *const text = optarg;
    int index = 0, status;
    switch (which) {
    case OPT_COLLECTIVE:
        status = parse_name("--collective", text, what_name, MESHCOLL_COLLECTIVES + 1, &index);
        o->barrier = index == MESHCOLL_COLLECTIVES;
        o->collective = o->barrier ? MESHCOLL_ALLREDUCE : (meshcoll_collective_t)index;
        return status;
    case OPT_DATATYPE:
        status = parse_name("--datatype", text, datatype_name, MESHCOLL_DATATYPES, &index);
        o->datatype = (meshcoll_datatype_t)index;
        return status;
    case OPT_OP:
        status = parse_name("--op", text, op_name, MESHCOLL_OPS, &index);
        o->op = (meshcoll_op_t)index;
        return status;
    case OPT_MESH:
        o->mesh = text;
        return MESHCOLL_OK;
    case OPT_LINKS:
        o->links = text;
        return MESHCOLL_OK;
    case OPT_TRANSPORTS:
        o->transports = text;
        return MESHCOLL_OK;
    case OPT_STRATEGIES:
        o->strategies = text;
        return MESHCOLL_OK;
    case OPT_CSV:
        o->csv = text;
        return MESHCOLL_OK;
    case OPT_JSON:
        o->json = text;
        return MESHCOLL_OK;
    case OPT_TIMELINE:
        o->timeline = text;
        return MESHCOLL_OK;
    case OPT_GATE:
        o->gate = text;
        return MESHCOLL_OK;
    case OPT_TIMELINE_BYTES:
        return parse_bytes("--timeline-bytes", text, &o->timeline_bytes);
    case OPT_SIZES:
        return parse_sizes(text, o);
    case OPT_FLAT:
        return parse_flat(text, &o->flat_mpi);
    case OPT_ROOT:
        return parse_int("--root", text, 0, &o->root);
    case OPT_IN_PLACE:
        o->in_place = true;
        return MESHCOLL_OK;
    case 'b':
        return parse_bytes("-b", text, &o->begin);
    case 'e':
        return parse_bytes("-e", text, &o->end);
    case 'f':
        return parse_number("-f", text, 1.01, &o->factor);
    case 'w':
        return parse_int("-w", text, 0, &o->warmup);
    case 'n':
        return parse_int("-n", text, 1, &o->iterations);
    case OPT_MIN_TIME:
        return parse_number("--min-time", text, 0, &o->min_time);
    case OPT_MAX_TIME:
        return parse_number("--max-time", text, 0, &o->max_time);
    case OPT_AGAIN:
        return parse_int("--again", text, 0, &o->again);
    case 'c':
        return parse_check(text, &o->check);
    case OPT_RATE:
        o->rate = text;
        return parse_rate(text, &o->rate_bytes);
    default: /* -h and --version were answered before MPI started */
        return MESHCOLL_OK;
    }
}

/* As meshcoll_barrier has it, whatever was said of data. */
static void set_barrier(options_t *o)
{
    o->datatype = MESHCOLL_INT32;
    o->op = MESHCOLL_SUM;
    o->sizes = NULL;
    o->begin = o->end = sizeof(int32_t);
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
        .check = true,
    };
    opterr = 0;
    for (;;) {
        const int which = getopt_long(argc, argv, ":b:e:f:w:n:c:h", longs, NULL);
        if (which == -1)
            break;
        if (which == ':')
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "%s: a value is missing; --help shows them all", argv[optind - 1]);
        if (which == '?')
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "no such option: %s; --help shows them all",
                           argv[optind - 1]);
        const int status = parse_option(which, &o);
        if (status != MESHCOLL_OK)
            return status;
    }
    if (optind < argc)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "expected options only; came \"%s\"",
                       argv[optind]);
    if (o.barrier)
        set_barrier(&o);
    if (collective_reduces(o.collective) && meshcoll_op_check(o.op, o.datatype))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--op: %s", meshcoll_last_error());
    if (o.flat_mpi && own_mpi_lacks(&o))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--flat mpi: MPI has no %s; leave it out",
                       own_mpi_lacks(&o));
    if (o.begin > o.end)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "-b is larger than -e: no size to measure");
    *options = o;
    return MESHCOLL_OK;
}
