/*
 * The picture of a timeline that meshcoll-bench --timeline recorded: time to the right, and for each rank rows of what it
 * sends and receives, by dimension, and of its local work. A thin line joins both ends of a message, and a dark strip
 * below a box says when messages of two dimensions were under way there.
 */
#include "mesh/link/link_text.h"
#include "tools/common/show.h"
#include "tools/common/svg.h"
#include "tools/trace/trace.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 1500, MARGIN = 32, LEFT = 260, BAR = 9, ROW = 11, BOX_GAP = 34 };

typedef struct {
    int32_t rank, peer, dim, row, segment; /* dim: -1 for local work; row: a number that sorts */
    json_int_t message;
    bool sends, hidden;
    double from, to, y; /* seconds */
    const char *name;
    const json_t *args;
} span_t;

typedef struct {
    FILE *out;
    const json_t *about;
    mc_mesh_t mesh;
    int32_t top;           /* the dimension of boxes: the outermost one with any */
    double from, to, head; /* head: y of the legend */
    span_t *span, **end;   /* by rank and row, hidden ones last; both ends of each message */
    size_t n, n_shown, n_ends;
} page_t;

/* Reading ------------------------------------------------------------------------------------------- */

static int refuse(const char *path, const char *came)
{
    return mc_fail(MESHCOLL_ERR_PARSE,
                   "%s: expected a timeline that meshcoll-bench --timeline wrote; %s", path, came);
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}
static const char *text_of(const json_t *object, const char *key)
{
    const char *const text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* "60ms-120ms" */
static int read_during(page_t *g, const char *text)
{
    mc_word_t to = mc_word_of(text);
    const mc_word_t from = mc_word_cut(&to, '-');
    if (mc_link_times.read(from, &g->from) && mc_link_times.read(to, &g->to) && g->from < g->to)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "--during takes two times, the earlier one first, as in 60ms-120ms; got '%s'",
                   text);
}

static int read_head(page_t *g, const char *path, const json_t *root, const char *during)
{
    const char *mesh;
    g->about = json_object_get(root, "otherData");
    if (json_unpack((json_t *)g->about, "{s:s, s:F}", "mesh", &mesh, "seconds", &g->to) != 0 ||
        !(g->to > 0))
        return refuse(path, "it has no mesh, or no time");
    const int status = mc_mesh_parse(mesh, &g->mesh);
    while (!status && g->top + 1 < g->mesh.ndims && g->mesh.dim[g->top].extent == 1)
        g->top++;
    return status || !during ? status : read_during(g, during);
}

static bool read_span(page_t *g, json_t *event, const bool *wanted)
{
    span_t s = {.peer = -1};
    const char *dim = "";
    double begin, length;
    if (json_unpack(event, "{s:s, s:i, s:i, s:F, s:F, s:o, s:{s:i, s?i, s?I, s?s}}", "name",
                    &s.name, "pid", &s.rank, "tid", &s.row, "ts", &begin, "dur", &length, "args",
                    &s.args, "args", "segment", &s.segment, "peer", &s.peer, "message", &s.message,
                    "dim", &dim) != 0 ||
        s.rank < 0 || s.rank >= g->mesh.size || s.peer >= g->mesh.size)
        return false;
    s.dim = mc_mesh_find(&g->mesh, dim, strlen(dim));
    s.sends = strcmp(s.name, "send") == 0;
    s.from = begin / 1e6;
    s.to = s.from + length / 1e6;
    s.hidden = !wanted[s.rank] || s.to < g->from || s.from > g->to;
    g->n_shown += !s.hidden;
    g->span[g->n++] = s;
    return s.dim >= 0 || s.peer < 0;
}

static int by_row(const void *a, const void *b)
{
    const span_t *const x = a, *const y = b;
    return mc_compare_keys((const int64_t[]){x->hidden, x->rank, x->row},
                           (const int64_t[]){y->hidden, y->rank, y->row}, 3);
}

/* The sender's end, then the receiver's. */
static int by_message(const void *a, const void *b)
{
    const span_t *const x = *(span_t *const *)a, *const y = *(span_t *const *)b;
    const bool sx = x->sends, sy = y->sends;
    return mc_compare_keys(
        (const int64_t[]){sx ? x->rank : x->peer, sx ? x->peer : x->rank, x->message, !sx},
        (const int64_t[]){sy ? y->rank : y->peer, sy ? y->peer : y->rank, y->message, !sy}, 4);
}

static int read_spans(page_t *g, const char *path, const json_t *root, const bool *wanted)
{
    json_t *const events = json_object_get(root, "traceEvents");
    const size_t most = json_array_size(events) + 1;
    g->span = calloc(most, sizeof *g->span);
    g->end = calloc(most, sizeof(span_t *));
    if (!g->span || !g->end)
        return mc_fail_memory("a timeline");
    for (size_t i = 0; i + 1 < most; i++) {
        json_t *const event = json_array_get(events, i);
        const char *const kind = json_string_value(json_object_get(event, "ph"));
        if (kind && *kind == 'X' && !read_span(g, event, wanted))
            return refuse(path, "an event of it is no step");
    }
    qsort(g->span, g->n, sizeof *g->span, by_row);
    for (size_t i = 0; i < g->n; i++)
        if (g->span[i].peer >= 0)
            g->end[g->n_ends++] = &g->span[i];
    qsort(g->end, g->n_ends, sizeof(span_t *), by_message);
    if (g->n_shown > 0)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "%s: these ranks have no step from %s to %s; the run takes %s", path,
                   mc_print_seconds(g->from).text, mc_print_seconds(g->to).text,
                   mc_print_seconds(number_of(g->about, "seconds")).text);
}

/* Drawing ------------------------------------------------------------------------------------------- */

static int32_t box_of(const page_t *g, int32_t rank)
{
    int32_t coord[MC_MAX_DIMS];
    mc_mesh_coords(&g->mesh, rank, coord);
    return coord[g->top];
}

static double x_of(const page_t *g, double time)
{
    const double part = (time - g->from) / (g->to - g->from);
    return LEFT + fmax(0, fmin(1, part)) * (WIDTH - LEFT - MARGIN);
}

/* Gives each row its height; returns where the last one ends. */
static double place(const page_t *g)
{
    double y = g->head + 32;
    for (size_t i = 0; i < g->n_shown; i++) {
        span_t *const s = &g->span[i], *const last = i > 0 ? s - 1 : s;
        y += s->rank != last->rank || s->row != last->row ? ROW : 0;
        y += s->rank != last->rank ? ROW / 2.0 : 0;
        s->y = y += box_of(g, s->rank) != box_of(g, last->rank) ? BOX_GAP : 0;
    }
    return y + BOX_GAP;
}

static void draw_strip(const page_t *g, int32_t box, double y)
{
    const json_t *const all = json_object_get(g->about, "boxes");
    double from, to;
    json_t *const spans = json_object_get(json_array_get(all, (size_t)box), "at_once_us");
    for (size_t i = 0; i < json_array_size(spans); i++) {
        if (json_unpack(json_array_get(spans, i), "[F, F]", &from, &to) != 0)
            continue;
        const double x = x_of(g, from / 1e6);
        mc_svg_box(g->out, x, y, x_of(g, to / 1e6) - x, 4, 0, "class=\"k\"");
    }
}

/* What is behind the rows: boxes with their strips, names of ranks and dimensions. */
static void draw_names(const page_t *g)
{
    char text[MC_DIM_NAME + 16];
    for (size_t i = 0, end; i < g->n_shown; i++) {
        const span_t *const s = &g->span[i], *const last = i > 0 ? s - 1 : NULL;
        const int32_t box = box_of(g, s->rank);
        if (!last || box_of(g, last->rank) != box) {
            for (end = i + 1; end < g->n_shown && box_of(g, g->span[end].rank) == box;)
                end++;
            const double bottom = g->span[end - 1].y + ROW;
            mc_svg_box(g->out, MARGIN / 2.0, s->y - 6, WIDTH - MARGIN, bottom - s->y + 18, 4,
                       "fill=\"#f0f2f6\"");
            draw_strip(g, box, bottom + 4);
            snprintf(text, sizeof text, "%s %d", g->mesh.dim[g->top].name, box);
            mc_svg_text(g->out, MARGIN, s->y + 10, "class=\"n\"", 0, text);
        }
        if (!last || last->rank != s->rank || last->dim != s->dim)
            mc_svg_text(g->out, LEFT - 8, s->y + BAR, "class=\"d\" text-anchor=\"end\"", 77,
                        s->dim < 0 ? "local" : g->mesh.dim[s->dim].name);
        if (last && last->rank == s->rank)
            continue;
        snprintf(text, sizeof text, "rank %d", s->rank);
        mc_svg_text(g->out, MARGIN + 110, s->y + BAR, "class=\"s\"", 0, text);
    }
}

/* From the send's begin to the receive's end, as far as the picture goes. */
static void draw_message(const page_t *g, const span_t *a, const span_t *b, double opacity)
{
    const double from = fmax(g->from, fmin(g->to, a->from)), to = fmax(g->from, fmin(g->to, b->to));
    const double slope = b->to != a->from ? (b->y - a->y) / (b->to - a->from) : 0;
    fprintf(g->out, "<path d=\"M%.1f %.1fL%.1f %.1f\" class=\"c%d\" opacity=\"%.2f\"/>\n",
            x_of(g, from), a->y + slope * (from - a->from) + BAR / 2.0, x_of(g, to),
            b->y + slope * (to - b->to) + BAR / 2.0, a->dim, opacity);
}

static void draw_messages(const page_t *g)
{
    const double opacity = fmin(0.75, fmax(0.12, 240.0 / (double)(g->n_ends + 1)));
    for (size_t i = 0; i + 1 < g->n_ends; i++) {
        const span_t *const a = g->end[i], *const b = g->end[i + 1];
        if (a->sends && !b->sends && !a->hidden && !b->hidden && a->rank == b->peer &&
            a->peer == b->rank && a->message == b->message)
            draw_message(g, a, b, opacity);
    }
}

/* A bar, what its step did for the pointer, and its segment where that has room. */
static void draw_span(const page_t *g, const span_t *s)
{
    char text[64], class[16] = "y";
    const double x = x_of(g, s->from), width = fmax(1.2, x_of(g, s->to) - x);
    text[0] = '\0';
    if (s->dim >= 0) {
        snprintf(class, sizeof class, "c%d%s", s->dim, s->sends ? " e" : "");
        snprintf(text, sizeof text, " %s %d", s->sends ? "to" : "from", s->peer);
    }
    fprintf(g->out, "<g><title>rank %d, step %.0f: ", s->rank, number_of(s->args, "step"));
    mc_svg_escape(g->out, s->name);
    fprintf(g->out, "%s, chunks ", text);
    mc_svg_escape(g->out, text_of(s->args, "chunks"));
    fprintf(g->out, ", segment %d, %s, at %s for %s</title>", s->segment,
            mc_print_bytes(number_of(s->args, "bytes")).text, mc_print_seconds(s->from).text,
            mc_print_seconds(s->to - s->from).text);
    mc_svg_box(g->out, x, s->y, width, BAR, 1, "class=\"%s\" stroke-width=\".7\"", class);
    snprintf(text, sizeof text, "%d", s->segment);
    if (width > 5 + 5.5 * (double)strlen(text))
        mc_svg_text(g->out, x + width / 2, s->y + 7.5, s->sends ? "class=\"g\"" : "class=\"g w\"",
                    0, text);
    fputs("</g>\n", g->out);
}

/* Returns where the rest begins. `out` NULL: draws nothing. */
static double draw_head(const page_t *g, FILE *out)
{
    char title[MC_MESH_TEXT + 64], about[256];
    const char *const rate = text_of(g->about, "rate");
    snprintf(title, sizeof title, "%s of %s on %s", text_of(g->about, "collective"),
             mc_print_bytes(number_of(g->about, "bytes")).text, text_of(g->about, "mesh"));
    snprintf(about, sizeof about, "%s%s%s, recorded on %.10s; numbers are segments",
             mc_print_seconds(number_of(g->about, "seconds")).text, *rate ? ", network " : "", rate,
             text_of(g->about, "date"));
    return mc_svg_head(out, MARGIN, WIDTH - 2 * MARGIN, title, text_of(g->about, "strategy"),
                       about);
}

/* A thing of the legend; returns where the next one is. */
static double put_key(const page_t *g, double x, const char *class, const char *what)
{
    mc_svg_box(g->out, x, g->head, 18, BAR, 1, "class=\"%s\"", class);
    mc_svg_text(g->out, x + 24, g->head + 9, "class=\"s\"", 0, what);
    return x + (*what ? 44 : 20) + (double)strlen(what) * MC_SVG_GLYPH;
}

static void draw_legend(const page_t *g)
{
    double x = MARGIN;
    for (int32_t d = 0; d < g->mesh.ndims; d++) {
        const char dark[] = {'c', (char)('0' + d), '\0'}, light[] = {'c', dark[1], ' ', 'e', '\0'};
        x = put_key(g, x, light, "");
        x = put_key(g, x, dark, g->mesh.dim[d].name);
    }
    x = put_key(g, x, "y", "local work");
    x = put_key(g, x, "k", "two dimensions at once");
    mc_svg_text(g->out, x, g->head + 9, "class=\"s\"", 0, "light: sent, dark: received");
}

static void draw(page_t *g)
{
    char style[1024];
    g->head = draw_head(g, NULL);
    const double bottom = place(g);
    mc_text_t text = mc_text(style, sizeof style);
    mc_text_add(&text, ".e{fill-opacity:.25}.d{font-size:9px}.g{font-size:8px;text-anchor:middle}"
                       ".w{fill:#fff}.y{fill:#6f7782}.k{fill:#1f2530}.x{stroke:#8a93a0}");
    for (int32_t d = 0; d < g->mesh.ndims; d++)
        mc_text_add(&text, ".c%d{fill:%s;stroke:%s}", d, mc_svg_color[d], mc_svg_color[d]);
    mc_svg_begin(g->out, WIDTH, bottom + 40, &mc_svg_light, style);
    draw_head(g, g->out);
    draw_legend(g);
    draw_names(g);
    mc_svg_axis(g->out, LEFT, bottom, WIDTH - LEFT - MARGIN, g->from, g->to);
    draw_messages(g);
    for (size_t i = 0; i < g->n_shown; i++)
        draw_span(g, &g->span[i]);
    mc_svg_end(g->out);
}

static int draw_file(page_t *g, const char *svg)
{
    mc_output_t out;
    const int status = mc_output_open(svg, &out);
    if (status)
        return status;
    g->out = out.stream;
    draw(g);
    return mc_output_close(&out, MESHCOLL_OK);
}

int mc_trace_timeline(const char *path, const char *ranks, const char *during, const char *svg)
{
    page_t g = {0};
    bool *wanted = NULL;
    json_error_t error;
    json_t *const root = json_load_file(path, 0, &error);
    int status = root ? read_head(&g, path, root, during) : refuse(path, error.text);
    if (!status)
        status = mc_read_ranks(ranks, g.mesh.size, &wanted);
    if (!status)
        status = read_spans(&g, path, root, wanted);
    if (!status)
        status = draw_file(&g, svg);
    void *const parts[] = {wanted, g.end, g.span};
    for (size_t i = 0; i < MC_COUNT(parts); i++)
        free(parts[i]);
    json_decref(root);
    return status;
}
