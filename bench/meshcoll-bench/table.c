/* The table on standard output. */
#include "bench.h"

#include "runtime/handle/calibrated.h"
#include "runtime/handle/handle.h"

#include <math.h>
#include <string.h>

static void print_what(const bench_t *bench)
{
    const options_t *const o = &bench->options;
    printf("# meshcoll-bench %s: %s", meshcoll_version(), options_collective(o));
    if (o->barrier) {
        printf("\n");
        return;
    }
    printf(" %s", meshcoll_datatype_name(o->datatype));
    if (collective_reduces(o->collective))
        printf(" %s", meshcoll_op_name(o->op));
    if (collective_has_root(o->collective))
        printf(", root %d", o->root);
    printf(", %s\n", o->in_place ? "in place" : "out of place");
}

static const char *ending(bool one)
{
    return one ? "" : "s";
}

/* The width of a dimension's column: that of "sent_box" or of a large number. */
static int sent_width(const bench_t *bench, int32_t d)
{
    const int name = (int)strlen(bench->mesh.dim[d].name) + 5;
    return name < 10 ? 10 : name;
}

static void print_columns(const bench_t *bench)
{
    const char *const device = bench->options.enqueue > 0
                                   ? "algbw, busbw: GB/s as in nccl-tests; cpu: us of the host to "
                                     "enqueue a call"
                                   : "algbw, busbw: GB/s as in nccl-tests";
    printf("#\n# times in us, the slowest rank's; %s\n#\n",
           bench->options.device ? device
                                 : "sent_*: bytes out of the busiest box in one iteration");
    printf("#%11s %12s %12s %12s %12s %12s %7s", "bytes", "predicted", "median", "min", "p99",
           "bound", "ratio");
    if (bench->options.device)
        printf(" %9s %9s%s", "algbw", "busbw", bench->options.enqueue > 0 ? "      cpu" : "");
    for (int32_t d = 0; d < bench->mesh.ndims && !bench->options.device; d++)
        printf(" %*s%s", sent_width(bench, d) - (int)strlen(bench->mesh.dim[d].name), "sent_",
               bench->mesh.dim[d].name);
    printf(" %7s  strategy\n", "#wrong");
}

void table_head(const bench_t *bench, const meta_t *meta)
{
    const options_t *const o = &bench->options;
    print_what(bench);
    printf("# mesh     %s (%d rank%s)\n", meshcoll_mesh_text(bench->handle), bench->size,
           ending(bench->size == 1));
    printf("# links    %s\n", meta->links);
    if (o->rate)
        printf("# bound    with a network of %s\n", o->rate);
    if (o->device)
        printf("# memory   of GPUs: %s\n", bench->gpu.name);
    if (o->enqueue > 0)
        printf("# clock    events around %d call%s in a row in a stream\n", o->enqueue,
               ending(o->enqueue == 1));
    if (o->flat_nccl)
        printf("# NCCL     %s\n", own_nccl_version(bench));
    if (o->flat_mpi)
        printf("# MPI      %s\n", bench->mpi_version);
    printf("# UCX      %s\n", meta->ucx);
    printf("# machine  %s: %s, %d core%s\n", meta->host, meta->cpu, meta->cores,
           ending(meta->cores == 1));
    printf("# date     %s\n", meta->date);
    printf("# command  %s\n", meta->command);
    printf("# rounds   %d after %d to warm up, the strategies in turn\n", o->iterations, o->warmup);
    print_columns(bench);
    fflush(stdout);
}

static void print_time(double seconds)
{
    if (isnan(seconds))
        printf(" %12s", "-");
    else
        printf(" %12.1f", seconds * 1e6);
}

static void print_sent(int width, double bytes)
{
    if (isnan(bytes))
        printf(" %*s", width, "-");
    else
        printf(" %*.0f", width, bytes);
}

void table_row(const bench_t *bench, const row_t *row)
{
    printf(" %11llu", (unsigned long long)row->bytes);
    const double times[] = {row->predicted, row->median, row->min, row->p99, row->bound};
    for (size_t i = 0; i < MC_COUNT(times); i++)
        print_time(times[i]);
    if (row->bound > 0)
        printf(" %7.2f", row->median / row->bound);
    else
        printf(" %7s", "-");
    if (bench->options.device)
        printf(" %9.2f %9.2f", row->algbw / 1e9, row->busbw / 1e9);
    if (bench->options.enqueue > 0)
        printf(" %8.2f", row->cpu * 1e6);
    for (int32_t d = 0; d < bench->mesh.ndims && !bench->options.device; d++)
        print_sent(sent_width(bench, d), row->sent[d]);
    if (row->checked)
        printf(" %7llu", (unsigned long long)row->wrong);
    else
        printf(" %7s", "-");
    if (strcmp(row->label, row->strategy) == 0)
        printf("  %s\n", row->label);
    else
        printf("  %s: %s\n", row->label, row->strategy);
    fflush(stdout);
}

/* The row of that size with the least time, measured or predicted. */
static const row_t *fastest(const bench_t *bench, uint64_t bytes, bool predicted)
{
    const row_t *best = NULL;
    for (int i = 0; i < bench->n_rows; i++) {
        const row_t *const row = &bench->row[i];
        if (row->bytes != bytes || (predicted && row->other))
            continue;
        if (!best || (predicted ? row->predicted < best->predicted : row->median < best->median))
            best = row;
    }
    return best;
}

static void print_fastest(const bench_t *bench, uint64_t bytes)
{
    const row_t *const row = fastest(bench, bytes, false);
    const row_t *const pick = fastest(bench, bytes, true);
    printf("at %s the fastest was %s (%.1f us", mc_print_bytes((double)bytes).text, row->label,
           row->median * 1e6);
    if (!pick)
        printf(")");
    else if (row->other)
        printf("; predicted among the others: %s)", pick->label);
    else if (row->predicted <= pick->predicted)
        printf(", as predicted)");
    else
        printf("; predicted: %s)", pick->label);
}

/* Of the pairs of strategies of one size, how many did the model put in the measured order? */
static void count_pairs(const bench_t *bench, int *agree, int *pairs)
{
    *agree = *pairs = 0;
    for (int i = 0; i < bench->n_rows; i++)
        for (int k = i + 1; k < bench->n_rows; k++) {
            const row_t *const a = &bench->row[i], *const b = &bench->row[k];
            if (a->bytes != b->bytes || a->other || b->other || a->predicted == b->predicted)
                continue;
            ++*pairs;
            *agree += (a->predicted < b->predicted) == (a->median < b->median);
        }
}

/* What takes less than it can on these links shows that the links are wrong. */
static void print_beaten(const bench_t *bench)
{
    int beaten = 0;
    for (int i = 0; i < bench->n_rows; i++)
        beaten += bench->row[i].median < bench->row[i].bound;
    if (beaten == 0)
        return;
    printf(
        "# %d of %d rows took less than their bound: it is none, as the links are faster than the "
        "numbers it is computed from",
        beaten, bench->n_rows);
    if (mc_calibrated_drop(bench->handle->job))
        printf("; these were calibrated, beside other work perhaps, and the next job measures them "
               "anew");
    printf(".\n");
}

void table_foot(const bench_t *bench)
{
    if (bench->n_rows == 0)
        return;
    const uint64_t small = bench->row[0].bytes, large = bench->row[bench->n_rows - 1].bytes;
    int agree, pairs;
    count_pairs(bench, &agree, &pairs);
    printf("#\n# ");
    print_fastest(bench, small);
    if (large != small) {
        printf("; ");
        print_fastest(bench, large);
    }
    if (pairs > 0)
        printf("; of %d pairs of strategies the model put %d in the measured order", pairs, agree);
    printf(".\n");
    print_beaten(bench);

    uint64_t wrong = 0;
    for (int i = 0; i < bench->n_rows; i++)
        wrong += bench->row[i].wrong;
    if (wrong > 0)
        printf("# WRONG: %llu elements\n", (unsigned long long)wrong);
    else if (bench->row[0].checked)
        printf("# every result was right\n");
    fflush(stdout);
}
