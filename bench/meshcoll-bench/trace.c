/* Relations in a timeline: the two ends of a message, concurrent messages, busy links. */
#include "trace.h"

#include <stdlib.h>

/* By the pair of ranks, then the message's number, the send before the receive. */
static int compare_messages(const void *a, const void *b)
{
    const event_t *const x = *(event_t *const *)a, *const y = *(event_t *const *)b;
    const bool sx = event_sends(x), sy = event_sends(y);
    const int32_t kx[] = {sx ? x->rank : x->peer, sx ? x->peer : x->rank};
    const int32_t ky[] = {sy ? y->rank : y->peer, sy ? y->peer : y->rank};
    for (int i = 0; i < 2; i++)
        if (kx[i] != ky[i])
            return kx[i] < ky[i] ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (int)sy - (int)sx;
}

/* By the row's owner (rank, dimension, direction), then by time. */
static int compare_drawn(const void *a, const void *b)
{
    const event_t *const x = *(event_t *const *)a, *const y = *(event_t *const *)b;
    const int32_t kx[] = {x->rank, x->level, event_sends(x)};
    const int32_t ky[] = {y->rank, y->level, event_sends(y)};
    for (int i = 0; i < 3; i++)
        if (kx[i] != ky[i])
            return kx[i] < ky[i] ? -1 : 1;
    const double fx = event_from(x), fy = event_from(y);
    return (fx > fy) - (fx < fy);
}

static event_t **list_messages(const trace_t *trace, size_t *n)
{
    event_t **const list = malloc((trace->n + 1) * sizeof(event_t *));
    if (!list)
        die("out of memory for %zu steps", trace->n);
    *n = 0;
    for (size_t i = 0; i < trace->n; i++)
        if (event_is_message(&trace->event[i]))
            list[(*n)++] = &trace->event[i];
    return list;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static bool same_pair(const event_t *a, const event_t *b)
{
    return a->rank == b->rank && a->peer == b->peer;
}

/* A receive is posted long before its message is in flight. It is drawn from when the sender has
 * posted and the previous message of the pair has arrived. */
static void find_from(event_t *const *message, size_t n)
{
    const event_t *before = NULL;
    for (size_t i = 0; i + 1 < n; i += 2) {
        const event_t *const send = message[i];
        event_t *const recv = message[i + 1];
        if (!event_sends(send) || event_sends(recv) || send->rank != recv->peer ||
            send->peer != recv->rank || send->seq != recv->seq)
            die("--timeline: message %u from rank %d to rank %d has one end", send->seq, send->rank,
                send->peer);
        recv->from = later(send->at[MC_POSTED], recv->at[MC_POSTED]);
        if (before && same_pair(before, recv))
            recv->from = later(recv->from, before->at[MC_ARRIVED]);
        if (recv->from > recv->at[MC_ARRIVED]) /* clocks that differ despite the correction */
            recv->from = recv->at[MC_ARRIVED];
        before = recv;
    }
}

/* Messages are sorted by row owner and time; each uses the first free row. */
static void find_rows(event_t *const *message, size_t n)
{
    double until[LANE_ROWS] = {0};
    for (size_t i = 0; i < n; i++) {
        event_t *const e = message[i];
        const event_t *const p = i > 0 ? message[i - 1] : NULL;
        if (!p || p->rank != e->rank || p->level != e->level || event_sends(p) != event_sends(e))
            for (int r = 0; r < LANE_ROWS; r++)
                until[r] = 0;
        e->row = 0;
        while (e->row < LANE_ROWS - 1 && until[e->row] > event_from(e))
            e->row++;
        until[e->row] = later(until[e->row], e->at[MC_ARRIVED]);
    }
}

/* Busy links ------------------------------------------------------------------------------------ */

typedef struct {
    double at;
    int32_t level, by; /* so many messages more under way */
} edge_t;

static int compare_edges(const void *a, const void *b)
{
    const double x = ((const edge_t *)a)->at, y = ((const edge_t *)b)->at;
    return (x > y) - (x < y);
}

/* Sums the time in which messages of a dimension, and of two dimensions, are in flight; and lists the latter, in µs. */
static void sweep(edge_t *edge, size_t n, int32_t ndims, double busy[], double *both, json_t *list)
{
    int32_t flying[MC_MAX_DIMS] = {0};
    double since = -1;
    qsort(edge, n, sizeof *edge, compare_edges);
    for (size_t i = 0; i < n; i++) {
        const double span = i > 0 ? edge[i].at - edge[i - 1].at : 0;
        int32_t active = 0;
        for (int32_t d = 0; d < ndims; d++)
            if (flying[d] > 0) {
                busy[d] += span;
                active++;
            }
        if (active > 1)
            *both += span;
        if (active > 1 && since < 0)
            since = edge[i - 1].at;
        if (active < 2 && since >= 0) {
            json_array_append_new(list, json_pack("[f, f]", since * 1e6, edge[i - 1].at * 1e6));
            since = -1;
        }
        flying[edge[i].level] += edge[i].by;
    }
}

/* Ranks of one box: those that share the outermost coordinate there is. */
static int32_t box_size(const mc_mesh_t *mesh)
{
    int32_t top = 0;
    while (top < mesh->ndims - 1 && mesh->dim[top].extent == 1)
        top++;
    return mc_mesh_stride(mesh, top);
}

/* A message occupies the links of both its ends' boxes while its receive is drawn. */
static size_t edges_of_box(event_t *const *message, size_t n, int32_t size, int32_t box,
                           edge_t *edge)
{
    size_t n_edges = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        const event_t *const send = message[i], *const recv = message[i + 1];
        if (send->rank / size != box && recv->rank / size != box)
            continue;
        edge[n_edges++] = (edge_t){recv->from, recv->level, 1};
        edge[n_edges++] = (edge_t){recv->at[MC_ARRIVED], recv->level, -1};
    }
    return n_edges;
}

static void find_busy(const bench_t *bench, trace_t *trace, event_t *const *message, size_t n)
{
    const int32_t size = box_size(&bench->mesh), ndims = bench->mesh.ndims;
    trace->n_boxes = bench->size / size;
    trace->box_busy = calloc((size_t)trace->n_boxes * (size_t)ndims, sizeof(double));
    trace->box_both = calloc((size_t)trace->n_boxes, sizeof(double));
    trace->box_spans = json_array();
    edge_t *const edge = malloc((n + 1) * sizeof *edge);
    if (!edge || !trace->box_busy || !trace->box_both || !trace->box_spans)
        die("out of memory for %zu messages", n);
    for (int b = 0; b < trace->n_boxes; b++) {
        double *const busy = &trace->box_busy[b * ndims];
        const size_t n_edges = edges_of_box(message, n, size, b, edge);
        json_t *const list = json_array();
        sweep(edge, n_edges, ndims, busy, &trace->box_both[b], list);
        json_array_append_new(trace->box_spans, list);
        for (int32_t d = 0; d < ndims; d++) {
            busy[d] /= trace->seconds;
            trace->busy[d] += busy[d] / trace->n_boxes;
        }
        trace->box_both[b] /= trace->seconds;
        trace->both += trace->box_both[b] / trace->n_boxes;
    }
    free(edge);
}

void trace_finish(const bench_t *bench, trace_t *trace)
{
    size_t n;
    event_t **const message = list_messages(trace, &n);
    qsort(message, n, sizeof *message, compare_messages);
    find_from(message, n);
    find_busy(bench, trace, message, n);
    qsort(message, n, sizeof *message, compare_drawn);
    find_rows(message, n);
    free(message);
}

void trace_free(trace_t *trace)
{
    free(trace->event);
    free(trace->box_busy);
    free(trace->box_both);
    json_decref(trace->box_spans);
}
