/* The mesh: ways that messages take from tile to tile, ports, and dots that move. A dot waits below its sender's tile. */
#include "network/ends.h"
#include "tools/simulate/motion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = MC_MOTION_PARTS, PERIOD = MC_MOTION_PERIOD, PORT = 34, CORNER = 15 };

/* The share of each part of the time in which messages are under way. */
typedef struct {
    double part[PARTS];
    int64_t until; /* as far as it is told */
} load_t;

/* Where messages pass: a rank, or the way out of a box or into it. */
typedef struct {
    double x, y, side; /* side: left of its box */
    int32_t box;       /* -1: a rank that is not in one with ports */
} node_t;

typedef struct {
    mc_page_t *page;
    int32_t ranks, nodes, boxes, outer;
    node_t *node;  /* by rank's place; then ways out of each box and into it */
    load_t **load; /* from one node to another; NULL: nothing passes */
} map_t;

double mc_motion_opacity(double load)
{
    return 0.08 + 0.92 * fmin(load, 1);
}

static load_t **load_at(const map_t *g, int32_t from, int32_t to)
{
    return &g->load[(size_t)from * (size_t)g->nodes + (size_t)to];
}

/* Where things are ---------------------------------------------------------------------------------- */

/* Frames are drawn on the way. A box's ports are in the middle of its bottom. */
static void place_thing(void *context, const mc_frame_item_t *f)
{
    map_t *const g = context;
    const mc_frame_level_t *const l = &g->page->frames.level[f->d];
    const double middle = f->x + l->item_w / 2, bottom = f->y + l->item_h;
    if (f->d == g->page->frames.mesh->ndims - 1) {
        const int32_t box = g->outer < f->d ? g->boxes - 1 : -1;
        g->node[f->rank] = (node_t){middle, f->y + l->item_h / 2, 0, box};
        return;
    }
    mc_frames_draw(&g->page->frames, g->page->out, f, "");
    if (f->d != g->outer)
        return;
    for (int32_t in = 0; in < 2; in++)
        g->node[g->nodes++] =
            (node_t){middle + (in ? 6 : -6), bottom, f->x - g->page->frames.gap / 2, g->boxes};
    g->boxes++;
}

/* The nodes that a message passes; returns how many. */
static int32_t find_nodes(const map_t *g, const mc_sent_t *sent, int32_t node[4])
{
    const int32_t *const order = g->page->m->q->order;
    const int32_t a = order ? order[sent->from] : sent->from,
                  b = order ? order[sent->to] : sent->to;
    const bool leaves = g->node[a].box != g->node[b].box;
    const int32_t all[] = {a, g->ranks + 2 * g->node[a].box, g->ranks + 2 * g->node[b].box + 1, b};
    node[0] = a;
    node[1] = b;
    if (leaves)
        memcpy(node, all, sizeof all);
    return leaves ? 4 : 2;
}

/* Between two tiles: straight to the next one, otherwise between rows. There and back are apart. */
static void put_inside(const map_t *g, const node_t *a, const node_t *b)
{
    const mc_frames_t *const f = &g->page->frames;
    const double along = b->x - a->x, down = b->y - a->y, side = along + down > 0 ? -5 : 5;
    const double row = fmax(fmin(a->y, b->y), down > 0 ? a->y : b->y) + (f->cell_h + f->below) / 2;
    if (fabs(along) < 1 && fabs(down) < f->cell_h + f->below + 1)
        fprintf(g->page->out, "H%.0fV%.0fH%.0f", a->x + side, b->y, b->x);
    else
        fprintf(g->page->out, "V%.0fH%.0fV%.0f",
                side + (fabs(down) < 1 && fabs(along) < f->cell_w + f->gap + 1 ? a->y : row), b->x,
                b->y);
}

/* Between a tile and a port of its box: between columns, and along the bottom of the frame. */
static void put_stub(const map_t *g, const node_t *tile, const node_t *port, bool out)
{
    const double side = out ? -6 : 6, way = port->x - side < tile->x ? -1 : 1;
    const double column = tile->x + way * (g->page->frames.cell_w + g->page->frames.gap) / 2 + side;
    const double row = port->y - CORNER + side / 2;
    if (out)
        fprintf(g->page->out, "H%.0fV%.0fH%.0fV%.0f", column, row, port->x, port->y);
    else
        fprintf(g->page->out, "V%.0fH%.0fV%.0fH%.0f", row, column, tile->y, tile->x);
}

/* Between two ports: an arc, or past the frames of other rows. */
static void put_arc(const map_t *g, const node_t *a, const node_t *b)
{
    const double reach = fabs(b->x - a->x), h = 22 + 62 * reach / (reach + 500);
    const double side = b->side + (a->y < b->y ? 4 : -4);
    if (fabs(a->y - b->y) < 1)
        fprintf(g->page->out, "C%.0f %.0f %.0f %.0f %.0f %.0f", a->x, a->y + h, b->x, b->y + h,
                b->x, b->y);
    else
        fprintf(g->page->out, "V%.0fH%.0fV%.0fH%.0fV%.0f", a->y + 26, side, b->y + 26, b->x, b->y);
}

static void put_way(const map_t *g, int32_t from, int32_t to)
{
    const node_t *const a = &g->node[from], *const b = &g->node[to];
    if (from < g->ranks && to < g->ranks)
        put_inside(g, a, b);
    else if (from < g->ranks || to < g->ranks)
        put_stub(g, from < g->ranks ? a : b, from < g->ranks ? b : a, from < g->ranks);
    else
        put_arc(g, a, b);
}

/* Loads ----------------------------------------------------------------------------------------------- */

/* Messages come by their start. */
static void add_time(const map_t *g, load_t *load, int64_t start, int64_t end)
{
    const double each = (double)g->page->ps / PARTS;
    const double from = (double)(start > load->until ? start : load->until) / each;
    const double to = (double)end / each;
    for (int32_t i = (int32_t)from; i < PARTS && i < to; i++)
        load->part[i] += fmax(0, fmin(i + 1, to) - fmax(i, from));
    load->until = end > load->until ? end : load->until;
}

static bool add_loads(map_t *g)
{
    for (uint32_t i = 0; i < g->page->m->n_sent; i++) {
        const mc_sent_t *const sent = &g->page->m->sent[i];
        int32_t node[4];
        const int32_t n = find_nodes(g, sent, node);
        for (int32_t k = 0; k + 1 < n; k++) {
            load_t **const load = load_at(g, node[k], node[k + 1]);
            if (!*load && !(*load = calloc(1, sizeof **load)))
                return false;
            add_time(g, *load, sent->start, sent->arrival);
        }
    }
    return true;
}

/* The load of an element over time; ends the element. */
static void put_load(const map_t *g, const load_t *load, const char *what, const char *element)
{
    double sum = 0;
    for (int32_t i = 0; i < PARTS; i++)
        sum += load->part[i] / PARTS;
    fprintf(g->page->out,
            " %s-opacity=\"%.2f\"><animate attributeName=\"%s-opacity\" dur=\"%.2fs\" "
            "repeatCount=\"indefinite\" values=\"",
            what, mc_motion_opacity(sum), what, g->page->seconds);
    for (int32_t i = 0; i <= PERIOD; i++) {
        const double before = i > 0 && i <= PARTS ? load->part[i - 1] : 0;
        const double after = i < PARTS ? load->part[i] : 0;
        const double share = i > 0 && i < PARTS ? (before + after) / 2 : before + after;
        fprintf(g->page->out, "%s%.2g", i ? ";" : "", mc_motion_opacity(share));
    }
    fprintf(g->page->out, "\"/></%s>\n", element);
}

static void draw_ways(const map_t *g)
{
    fputs("<g class=\"w\">\n", g->page->out);
    for (int32_t i = 0; i < g->nodes * g->nodes; i++) {
        const int32_t from = i / g->nodes;
        if (!g->load[i])
            continue;
        fprintf(g->page->out, "<path d=\"M%.0f %.0f", g->node[from].x, g->node[from].y);
        put_way(g, from, i % g->nodes);
        fputc('"', g->page->out);
        put_load(g, g->load[i], "stroke", "path");
    }
    fputs("</g>\n", g->page->out);
}

/* The mean of the ports of a box: what the ranks send or receive there, in no more than all of the time. */
static void draw_port(const map_t *g, int32_t port)
{
    const mc_links_t *const links = g->page->m->q->links;
    const bool in = (port - g->ranks) % 2;
    const double x = g->node[port].x + (in ? -5 : 5 - PORT), y = g->node[port].y - 6;
    load_t load = {0};
    double n = 0;
    for (int32_t r = 0; r < g->ranks; r++) {
        const load_t *const one = *(in ? load_at(g, port, r) : load_at(g, r, port));
        n += g->node[r].box == g->node[port].box;
        for (int32_t i = 0; i < PARTS && one; i++)
            load.part[i] += one->part[i];
    }
    n = fmin(n, links->dim[mc_links_wire(links, g->outer)].ports);
    for (int32_t i = 0; i < PARTS; i++)
        load.part[i] /= n;
    mc_svg_box(g->page->out, x, y, PORT, 12, 3, "fill=\"#fff\"");
    fprintf(g->page->out,
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"12\" rx=\"3\" class=\"o\"", x, y,
            PORT);
    put_load(g, &load, "fill", "rect");
    mc_svg_text(g->page->out, in ? x + PORT + 5 : x - 5, y + 2,
                in ? "class=\"p\"" : "class=\"p\" text-anchor=\"end\"", 0, in ? "in" : "out");
}

/* What moves ------------------------------------------------------------------------------------------- */

static int by_way(const void *a, const void *b)
{
    const mc_sent_t *const x = a, *const y = b;
    return mc_compare_keys((const int64_t[]){x->phase, x->from, x->to, x->start, x->arrival},
                           (const int64_t[]){y->phase, y->from, y->to, y->start, y->arrival}, 5);
}

/* A dot carries one after the other of the messages of a phase between two ranks; several dots do where several are under
 * way at once. Returns whether there are messages of a dot behind this one. */
static bool put_moments(const map_t *g, const mc_sent_t *sent, uint32_t n, int32_t dot, bool times)
{
    const double share = (double)PARTS / PERIOD / (double)g->page->ps;
    int64_t free_at[MC_UNDER_WAY] = {0};
    bool more = false;
    for (uint32_t i = 0; i < n; i++) {
        int32_t at = 0;
        while (at + 1 < MC_UNDER_WAY && free_at[at] > sent[i].start)
            at++;
        free_at[at] = sent[i].arrival;
        more = more || at > dot;
        if (at == dot && times)
            fprintf(g->page->out, ";%.5f;%.5f;%.5f", (double)sent[i].start * share,
                    (double)sent[i].arrival * share, (double)sent[i].arrival * share);
        else if (at == dot)
            fputs(";0;1;0", g->page->out);
    }
    return more;
}

static bool draw_dot(const map_t *g, const mc_sent_t *sent, uint32_t n, int32_t dot)
{
    FILE *const out = g->page->out;
    int32_t node[4];
    const int32_t n_nodes = find_nodes(g, sent, node);
    fprintf(out,
            "<circle r=\"5\" class=\"c%d\"><animateMotion calcMode=\"linear\" dur=\"%.2fs\" "
            "repeatCount=\"indefinite\" path=\"M%.0f %.0f",
            sent->phase % MC_SVG_COLORS, g->page->seconds, g->node[*node].x, g->node[*node].y);
    for (int32_t k = 0; k + 1 < n_nodes; k++)
        put_way(g, node[k], node[k + 1]);
    fputs("\" keyTimes=\"0", out);
    put_moments(g, sent, n, dot, true);
    fputs(";1\" keyPoints=\"0", out);
    const bool more = put_moments(g, sent, n, dot, false);
    fputs(";0\"/></circle>\n", out);
    return more;
}

static void draw_dots(const map_t *g)
{
    mc_sent_t *const sent = g->page->m->sent;
    const uint32_t n = g->page->m->n_sent;
    if (n > 0)
        qsort(sent, n, sizeof *sent, by_way);
    for (uint32_t i = 0, end; i < n && n <= MC_MOTION_MESSAGES; i = end) {
        for (end = i; end < n && sent[end].phase == sent[i].phase &&
                      sent[end].from == sent[i].from && sent[end].to == sent[i].to;)
            end++;
        for (int32_t dot = 0; draw_dot(g, &sent[i], end - i, dot);)
            dot++;
    }
}

/* What a rank receives fills its tile; the tile of one that receives nothing is full. */
static void draw_tile(const map_t *g, int32_t rank)
{
    const mc_motion_t *const m = g->page->m;
    const double w = g->page->frames.cell_w, h = g->page->frames.cell_h;
    const node_t *const at = &g->node[m->q->order ? m->q->order[rank] : rank];
    double got[PARTS + 1] = {0}, sum = 0, now = 0;
    char number[16];
    for (uint32_t i = 0; i < m->n_sent; i++)
        if (m->sent[i].to == rank) {
            const double part = (double)m->sent[i].arrival * PARTS / (double)g->page->ps;
            got[(int32_t)fmin(ceil(part), PARTS)] += m->sent[i].bytes;
            sum += m->sent[i].bytes;
        }
    mc_svg_box(g->page->out, at->x - w / 2, at->y - h / 2, w, h, 8, "fill=\"#fff\"");
    fprintf(g->page->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" rx=\"7\" class=\"f\" "
            "transform=\"rotate(180 %.1f %.1f)\"><animate attributeName=\"height\" dur=\"%.2fs\" "
            "repeatCount=\"indefinite\" values=\"",
            at->x - w / 2 + 1, at->y - h / 2 + 1, w - 2, h - 2, at->x, at->y, g->page->seconds);
    for (int32_t i = 0; i <= PERIOD; i++) {
        now += i <= PARTS ? got[i] : 0;
        fprintf(g->page->out, "%s%.3g", i ? ";" : "", sum > 0 ? (h - 2) * now / sum : h - 2);
    }
    fputs("\"/></rect>\n", g->page->out);
    mc_svg_box(g->page->out, at->x - w / 2, at->y - h / 2, w, h, 8, "class=\"b\"");
    snprintf(number, sizeof number, "%d", rank);
    mc_svg_text(g->page->out, at->x, at->y + 6, "class=\"r\" text-anchor=\"middle\"", 0, number);
}

static void draw_all(map_t *g)
{
    draw_ways(g);
    for (int32_t i = g->ranks; i < g->nodes; i++)
        draw_port(g, i);
    draw_dots(g);
    for (int32_t r = 0; r < g->ranks; r++)
        draw_tile(g, r);
}

int mc_motion_draw_mesh(mc_page_t *page)
{
    mc_frames_t *const f = &page->frames;
    map_t g = {.page = page, .ranks = f->mesh->size, .outer = mc_network_outer(f->mesh)};
    const size_t most = 3 * (size_t)g.ranks;
    g.nodes = g.ranks;
    g.node = malloc(most * sizeof *g.node);
    g.load = calloc(most * most, sizeof(load_t *));
    f->one = place_thing;
    f->context = &g;
    bool ok = g.node && g.load;
    if (ok)
        mc_frames_walk(f, (page->w - f->level[0].w) / 2, page->top);
    ok = ok && add_loads(&g);
    if (ok)
        draw_all(&g);
    for (size_t i = 0; g.load && i < most * most; i++)
        free(g.load[i]);
    free(g.load);
    free(g.node);
    return ok ? MESHCOLL_OK : mc_fail_memory("a picture");
}
