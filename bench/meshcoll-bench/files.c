/* The same numbers for programs: CSV and JSON, with the same names. docs/benchmarks.md lists them. */
#include "bench.h"

#include "base/system/file.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static const char *op_of(const options_t *o)
{
    return collective_reduces(o->collective) && !o->barrier ? meshcoll_op_name(o->op) : NULL;
}

/* NULL becomes null, and text that is no UTF-8 too. */
static json_t *text(const char *t)
{
    json_t *const value = t ? json_string(t) : NULL;
    return value ? value : json_null();
}

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *integer(double x)
{
    return isfinite(x) ? json_integer((json_int_t)llround(x)) : json_null();
}

/* The variables that change how it runs. */
static json_t *environment(void)
{
    json_t *const all = json_object();
    for (char **at = environ; *at; at++) {
        const char *const equals = strchr(*at, '=');
        char name[128];
        if (!equals || (strncmp(*at, "MESHCOLL_", 9) != 0 && strncmp(*at, "UCX_", 4) != 0))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - *at), *at);
        json_object_set_new(all, name, text(equals + 1));
    }
    return all;
}

static json_t *dims(const bench_t *bench)
{
    json_t *const all = json_array();
    for (int32_t d = 0; d < bench->mesh.ndims; d++)
        json_array_append_new(all, json_pack("{s:s, s:i}", "name", bench->mesh.dim[d].name,
                                             "extent", (int)bench->mesh.dim[d].extent));
    return all;
}

static json_t *make_meta(const bench_t *bench, const meta_t *meta)
{
    const options_t *const o = &bench->options;
    json_t *const all = json_object();
    json_object_set_new(all, "program", text("meshcoll-bench"));
    json_object_set_new(all, "version", text(meshcoll_version()));
    json_object_set_new(all, "date", text(meta->date));
    json_object_set_new(all, "command", text(meta->command));
    json_object_set_new(all, "collective", text(options_collective(o)));
    json_object_set_new(all, "datatype",
                        o->barrier ? json_null() : text(meshcoll_datatype_name(o->datatype)));
    json_object_set_new(all, "op", text(op_of(o)));
    json_object_set_new(all, "root",
                        collective_has_root(o->collective) ? json_integer(o->root) : json_null());
    json_object_set_new(all, "in_place", json_boolean(o->in_place));
    json_object_set_new(all, "mesh", text(meshcoll_mesh_text(bench->handle)));
    json_object_set_new(all, "dims", dims(bench));
    json_object_set_new(all, "ranks", json_integer(bench->size));
    json_object_set_new(all, "links", text(meta->links));
    json_object_set_new(all, "rate", text(o->rate));
    json_object_set_new(all, "warmup", json_integer(o->warmup));
    json_object_set_new(all, "iterations", json_integer(o->iterations));
    json_object_set_new(all, "again", json_integer(o->again));
    json_object_set_new(all, "min_time_s", json_real(o->min_time));
    json_object_set_new(all, "max_time_s", o->max_time > 0 ? json_real(o->max_time) : json_null());
    json_object_set_new(all, "clock",
                        text(o->enqueue > 0 ? "events"
                             : bench->gate  ? "gate"
                                            : "barrier"));
    json_object_set_new(all, "memory", text(o->device ? "device" : "host"));
    json_object_set_new(all, "gpu", text(o->device ? bench->gpu.name : NULL));
    json_object_set_new(all, "enqueue", json_integer(o->enqueue));
    json_object_set_new(all, "nccl", text(o->flat_nccl ? own_nccl_version(bench) : NULL));
    json_object_set_new(all, "check", json_boolean(o->check));
    json_object_set_new(all, "mpi", bench->mpi ? text(bench->mpi_version) : json_null());
    json_object_set_new(all, "ucx", text(meta->ucx));
    json_object_set_new(all, "host", text(meta->host));
    json_object_set_new(all, "cpu", text(meta->cpu));
    json_object_set_new(all, "cores", json_integer(meta->cores));
    json_object_set_new(all, "env", environment());
    return all;
}

static json_t *make_row(const bench_t *bench, const row_t *row)
{
    json_t *const all = json_object();
    json_object_set_new(all, "bytes", json_integer((json_int_t)row->bytes));
    json_object_set_new(all, "count", json_integer((json_int_t)row->count));
    json_object_set_new(all, "label", text(row->label));
    json_object_set_new(all, "strategy", text(row->strategy));
    json_object_set_new(all, "iterations", json_integer(row->iterations));
    json_object_set_new(all, "late", json_integer(row->late));
    json_object_set_new(all, "predicted_s", number(row->predicted));
    json_object_set_new(all, "median_s", number(row->median));
    json_object_set_new(all, "min_s", number(row->min));
    json_object_set_new(all, "p99_s", number(row->p99));
    json_object_set_new(all, "bound_s", number(row->bound));
    json_object_set_new(all, "ratio", number(row->bound > 0 ? row->median / row->bound : NAN));
    json_object_set_new(all, "algbw_Bps", number(row->algbw));
    json_object_set_new(all, "busbw_Bps", number(row->busbw));
    json_object_set_new(all, "cpu_s", number(row->cpu));
    for (int32_t d = 0; d < bench->mesh.ndims; d++) {
        char name[MC_DIM_NAME + 8];
        snprintf(name, sizeof name, "sent_%s", bench->mesh.dim[d].name);
        json_object_set_new(all, name, integer(row->sent[d]));
    }
    json_object_set_new(all, "wrong",
                        row->checked ? json_integer((json_int_t)row->wrong) : json_null());
    return all;
}

int json_save(const json_t *all, size_t flags, const char *path)
{
    mc_output_t out;
    int status = mc_output_open(path, &out);
    if (status)
        return status;
    if (json_dumpf(all, out.stream, JSON_INDENT(1) | flags) && !ferror(out.stream))
        status = mc_fail_memory("the JSON");
    return mc_output_close(&out, status);
}

int json_write(const bench_t *bench, const meta_t *meta, const char *path)
{
    json_t *const rows = json_array();
    for (int i = 0; i < bench->n_rows; i++)
        json_array_append_new(rows, make_row(bench, &bench->row[i]));
    json_t *const all = json_object();
    json_object_set_new(all, "meta", make_meta(bench, meta));
    json_object_set_new(all, "rows", rows);

    const int status = json_save(all, JSON_REAL_PRECISION(9), path);
    json_decref(all);
    return status;
}

static void print_value(FILE *file, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        fputc('"', file);
        for (const char *at = json_string_value(value); *at; at++)
            fprintf(file, *at == '"' ? "\"\"" : "%c", *at);
        fputc('"', file);
        return;
    case JSON_INTEGER:
        fprintf(file, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return;
    case JSON_REAL:
        fprintf(file, "%.9g", json_real_value(value));
        return;
    default: /* null: an empty field */
        return;
    }
}

FILE *csv_open(const char *path)
{
    FILE *const file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (!file)
        die("--csv: %s cannot be written: %s", path, strerror(errno));
    return file;
}

void csv_close(FILE *file, const char *path)
{
    const bool failed = ferror(file);
    if ((file == stdout ? fflush(file) : fclose(file)) || failed)
        die("--csv: %s cannot be written: %s", path, strerror(errno));
}

/* Comment lines with the metadata of the JSON file, then the column names; rows in JSON have the
 * same order. */
void csv_head(const bench_t *bench, const meta_t *meta, FILE *file)
{
    json_t *const all = make_meta(bench, meta);
    const char *key;
    json_t *value;
    json_object_foreach(all, key, value)
    {
        char *const dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        fprintf(file, "# %s: %s\n", key, dumped ? dumped : "null");
        free(dumped);
    }
    json_decref(all);

    const row_t none = {.label = "", .strategy = NULL};
    json_t *const row = make_row(bench, &none);
    bool first = true;
    json_object_foreach(row, key, value)
    {
        fprintf(file, "%s%s", first ? "" : ",", key);
        first = false;
    }
    fputc('\n', file);
    json_decref(row);
    fflush(file);
}

void csv_row(const bench_t *bench, const row_t *row, FILE *file)
{
    json_t *const all = make_row(bench, row);
    const char *key;
    json_t *value;
    bool first = true;
    json_object_foreach(all, key, value)
    {
        if (!first)
            fputc(',', file);
        print_value(file, value);
        first = false;
    }
    fputc('\n', file);
    json_decref(all);
    fflush(file);
}
