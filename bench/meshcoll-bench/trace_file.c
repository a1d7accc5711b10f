/*
 * A timeline in Chrome's trace format (Perfetto, chrome://tracing): a process per rank; in it a
 * thread per dimension and direction, more where messages overlap, and one for local work. Times are
 * microseconds. docs/benchmarks.md lists the fields.
 */
#include "trace_file.h"

#include "runtime/handle/handle.h"

#include <jansson.h>
#include <string.h>

static json_t *micro(double seconds)
{
    return json_real(seconds * 1e6);
}

/* Threads of a rank: dimension 0 out, in, dimension 1 out, in, …, local work. */
static int lane_of(const bench_t *bench, const event_t *e, bool local)
{
    if (local)
        return 2 * bench->mesh.ndims * LANE_ROWS;
    return (2 * e->level + (event_sends(e) ? 0 : 1)) * LANE_ROWS + e->row;
}

static json_t *name_of(const char *what, int pid, int tid, const char *name)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", what, "pid", pid, "tid",
                     tid, "args", "name", name);
}

/* "box 1, gpu 2 (rank 6)" */
static void add_rank(const bench_t *bench, int rank, json_t *all)
{
    char name[256];
    mc_text_t text = mc_text(name, sizeof name);
    int32_t coord[MC_MAX_DIMS];
    mc_mesh_coords(&bench->mesh, rank, coord);
    for (int32_t d = 0; d < bench->mesh.ndims; d++)
        mc_text_add(&text, "%s%s %d", d ? ", " : "", bench->mesh.dim[d].name, coord[d]);
    mc_text_add(&text, " (rank %d)", mc_comm_rank_of(&bench->handle->order, rank));
    json_array_append_new(all, name_of("process_name", rank, 0, name));
    json_array_append_new(all,
                          json_pack("{s:s, s:s, s:i, s:{s:i}}", "ph", "M", "name",
                                    "process_sort_index", "pid", rank, "args", "sort_index", rank));
}

/* Emits the name of a lane with its first event. */
static void name_lane(const bench_t *bench, const event_t *e, bool local, bool named[], json_t *all)
{
    const int lane = lane_of(bench, e, local);
    char name[MC_DIM_NAME + 8] = "local";
    if (named[lane])
        return;
    named[lane] = true;
    if (!local)
        snprintf(name, sizeof name, "%s %s", bench->mesh.dim[e->level].name,
                 event_sends(e) ? "out" : "in");
    json_array_append_new(all, name_of("thread_name", e->rank, lane, name));
    json_array_append_new(all, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "ph", "M", "name",
                                         "thread_sort_index", "pid", (int)e->rank, "tid", lane,
                                         "args", "sort_index", lane));
}

/* "8…15", "0…1 and 3 more every 4", "6…1 of 8" past a ring's end */
static json_t *chunks(mc_range_t r)
{
    char text[96];
    if (r.ring > 0)
        snprintf(text, sizeof text, "%u…%u of %u", mc_range_chunk(r, 0),
                 mc_range_chunk(r, mc_range_chunks(r) - 1), r.ring);
    else if (r.nrun > 1)
        snprintf(text, sizeof text, "%u…%u and %u more every %u", r.first, r.first + r.run - 1,
                 r.nrun - 1, r.stride);
    else
        snprintf(text, sizeof text, "%u…%u", r.first, r.first + r.run - 1);
    return json_string(text);
}

static json_t *arguments(const bench_t *bench, const event_t *e, bool local)
{
    json_t *const args = json_pack("{s:i, s:s, s:i, s:o, s:I, s:o}", "step", (int)e->step, "op",
                                   mc_op_name((mc_op_t)e->op), "segment", (int)e->segment, "chunks",
                                   chunks(e->chunks), "bytes", (json_int_t)e->bytes, "ready_us",
                                   micro(e->at[MC_READY]));
    if (e->phase >= 0)
        json_object_set_new(args, "phase", json_integer(e->phase));
    if (local)
        return args;
    json_object_set_new(args, "dim", json_string(bench->mesh.dim[e->level].name));
    json_object_set_new(args, "peer", json_integer(e->peer));
    json_object_set_new(args, "message", json_integer(e->seq));
    json_object_set_new(args, "posted_us", micro(e->at[MC_POSTED]));
    return args;
}

static json_t *make_span(const bench_t *bench, const event_t *e, bool local, double from, double to)
{
    const char *const name = local ? mc_op_name((mc_op_t)e->op) : event_sends(e) ? "send" : "recv";
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o}", "ph", "X", "name",
                     local && e->op == MC_OP_RECV_REDUCE ? "reduce" : name, "cat",
                     local ? "local" : "message", "pid", (int)e->rank, "tid",
                     lane_of(bench, e, local), "ts", micro(from), "dur",
                     micro(to > from ? to - from : 0), "args", arguments(bench, e, local));
}

/* The arrow between both ends of a message. */
static json_t *make_flow(const bench_t *bench, const event_t *e)
{
    char id[64];
    const int32_t from = event_sends(e) ? e->rank : e->peer;
    snprintf(id, sizeof id, "%d-%d-%u", from, from == e->rank ? e->peer : e->rank, e->seq);
    json_t *const flow = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "ph", event_sends(e) ? "s" : "f", "name", "message",
        "cat", "message", "id", id, "pid", (int)e->rank, "tid", lane_of(bench, e, false), "ts",
        micro(event_sends(e) ? e->at[MC_POSTED] : e->at[MC_ARRIVED]));
    if (!event_sends(e))
        json_object_set_new(flow, "bp", json_string("e"));
    return flow;
}

/* A receive-reduce has two events: the message and the reduction. */
static void add_event(const bench_t *bench, const event_t *e, bool named[], json_t *all)
{
    if (event_is_message(e)) {
        name_lane(bench, e, false, named, all);
        json_array_append_new(all, make_span(bench, e, false, event_from(e), e->at[MC_ARRIVED]));
        json_array_append_new(all, make_flow(bench, e));
    }
    if (e->at[MC_BEGUN] != 0) {
        name_lane(bench, e, true, named, all);
        json_array_append_new(all, make_span(bench, e, true, e->at[MC_BEGUN], e->at[MC_ENDED]));
    }
}

static json_t *make_events(const bench_t *bench, const trace_t *trace)
{
    json_t *const all = json_array();
    const event_t *e = trace->event;
    for (int rank = 0; rank < bench->size; rank++) {
        bool named[2 * MC_MAX_DIMS * LANE_ROWS + 1] = {false};
        add_rank(bench, rank, all);
        for (; e < trace->event + trace->n && e->rank == rank; e++)
            add_event(bench, e, named, all);
    }
    return all;
}

static json_t *make_dims(const bench_t *bench, const trace_t *trace)
{
    json_t *const all = json_array();
    for (int32_t d = 0; d < bench->mesh.ndims; d++)
        json_array_append_new(all, json_pack("{s:s, s:i, s:f}", "name", bench->mesh.dim[d].name,
                                             "extent", (int)bench->mesh.dim[d].extent, "busy",
                                             trace->busy[d]));
    return all;
}

static json_t *make_boxes(const bench_t *bench, const trace_t *trace)
{
    json_t *const all = json_array();
    for (int b = 0; b < trace->n_boxes; b++) {
        json_t *const busy = json_array();
        for (int32_t d = 0; d < bench->mesh.ndims; d++)
            json_array_append_new(busy, json_real(trace->box_busy[b * bench->mesh.ndims + d]));
        json_array_append_new(all, json_pack("{s:o, s:f, s:O}", "busy", busy, "two_at_once",
                                             trace->box_both[b], "at_once_us",
                                             json_array_get(trace->box_spans, (size_t)b)));
    }
    return all;
}

static json_t *make_about(const bench_t *bench, const meta_t *meta, const trace_t *trace)
{
    const options_t *const o = &bench->options;
    json_t *const about = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:f, s:f, s:f}", "program", "meshcoll-bench",
        "collective", options_collective(o), "datatype", meshcoll_datatype_name(o->datatype),
        "strategy", trace->strategy, "label", trace->label, "mesh",
        meshcoll_mesh_text(bench->handle), "ranks", bench->size, "bytes", (json_int_t)trace->bytes,
        "seconds", trace->seconds, "clock_error_s", trace->clock_error, "two_at_once", trace->both);
    json_object_set_new(about, "dims", make_dims(bench, trace));
    json_object_set_new(about, "boxes", make_boxes(bench, trace));
    json_object_set_new(about, "root",
                        collective_has_root(o->collective) ? json_integer(o->root) : json_null());
    json_object_set_new(about, "date", json_string(meta->date));
    json_object_set_new(about, "rate", o->rate ? json_string(o->rate) : json_null());
    return about;
}

void trace_write(const bench_t *bench, const meta_t *meta, const trace_t *trace, const char *path)
{
    json_t *const all =
        json_pack("{s:o, s:s, s:o}", "otherData", make_about(bench, meta, trace), "displayTimeUnit",
                  "ms", "traceEvents", make_events(bench, trace));
    if (json_save(all, JSON_REAL_PRECISION(12), path))
        die("--timeline: %s", meshcoll_last_error());
    json_decref(all);
}
