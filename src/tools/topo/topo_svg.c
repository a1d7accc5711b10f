/*
 * The picture: dimensions as nested frames, ranks as tiles, and the link of each dimension as a
 * bus that joins them. Long dimensions are abbreviated.
 */
#include "mesh/link/link_show.h"
#include "tools/common/frames.h"
#include "tools/common/show.h"
#include "tools/topo/topo.h"

#include <string.h>

enum { MARGIN = 32, TITLE = 84, LEGEND_ROW = 26, BUS = 26, GAP = 14 };

static const char *const color[MC_MAX_DIMS] = {"#d9731a", "#2a7f8e", "#4a5fc1",
                                               "#8e4ec6", "#b8436b", "#6b7280"};

typedef struct {
    FILE *out;
    const mc_topo_t *topo;
    mc_frames_t frames;
    double w, h;
    bool bound;
} drawing_t;

bool mc_topo_one_machine(const mc_topo_t *t, int32_t first, int32_t n)
{
    for (int32_t r = first; t->machine && r < first + n; r++)
        if (t->machine[r] != t->machine[first])
            return false;
    return t->machine;
}

int32_t mc_topo_machines(const mc_topo_t *t)
{
    int32_t n = 0;
    for (int32_t r = 0; t->machine && r < t->mesh.size; r++)
        n += t->machine[r] == r;
    return n;
}

/* Things ------------------------------------------------------------------------------------------ */

/* `shown` of the level's items, which are fewer on a short line along fold. */
static void draw_bus(void *context, const mc_frame_item_t *first, int32_t shown)
{
    const drawing_t *const g = context;
    const mc_frame_level_t *const l = &g->frames.level[first->d];
    const int32_t rows = (shown + l->columns - 1) / l->columns;
    const double x = first->x, y = first->y;
    if (shown < 2)
        return;
    fprintf(g->out,
            "<path fill=\"none\" stroke=\"%s\" stroke-width=\"3\" stroke-linecap=\"round\" "
            "stroke-linejoin=\"round\" d=\"",
            color[first->d]);
    const double left = x - 8, middle = l->item_w / 2;
    for (int32_t row = 0; row < rows; row++) {
        const int32_t last = row + 1 < rows ? l->columns : shown - row * l->columns;
        const double bottom = y + row * (l->item_h + BUS) + l->item_h, bus = bottom + BUS / 2.0 - 1;
        const double from = rows > 1 ? left : x + middle;
        fprintf(g->out, "M%.1f %.1fH%.1f", from, bus, x + (last - 1) * (l->item_w + GAP) + middle);
        for (int32_t i = 0; i < last; i++)
            fprintf(g->out, "M%.1f %.1fV%.1f", x + i * (l->item_w + GAP) + middle, bottom, bus);
    }
    if (rows > 1)
        fprintf(g->out, "M%.1f %.1fV%.1f", left, y + l->item_h + BUS / 2.0 - 1,
                y + rows * (l->item_h + BUS) - BUS / 2.0 - 1);
    fputs("\"/>\n", g->out);
}

static void draw_rest(const drawing_t *g, const mc_frame_item_t *f)
{
    const mc_frame_level_t *const l = &g->frames.level[f->d];
    char text[64];
    mc_svg_box(g->out, f->x, f->y, l->item_w, l->item_h, 8,
               "fill=\"none\" stroke=\"#b8bec8\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"");
    snprintf(text, sizeof text, l->item_w < 100 ? "+ %d" : "and %d more", f->hidden);
    mc_svg_text(g->out, f->x + l->item_w / 2, f->y + l->item_h / 2 + 5,
                "class=\"n\" text-anchor=\"middle\"", 0, text);
}

static void draw_rank(const drawing_t *g, const mc_frame_item_t *f)
{
    const mc_frame_level_t *const l = &g->frames.level[f->d];
    const mc_topo_rank_t *const its = mc_topo_rank(g->topo, f->rank);
    char text[MC_CPUS_TEXT + 8];
    mc_svg_box(g->out, f->x, f->y, l->item_w, l->item_h, 8,
               "fill=\"%s\" fill-opacity=\"0.12\" stroke=\"%s\" stroke-width=\"1.5\"", color[f->d],
               color[f->d]);
    snprintf(text, sizeof text, "%d", mc_comm_rank_of(&g->topo->order, f->rank));
    mc_svg_text(g->out, f->x + l->item_w / 2, f->y + (g->bound ? 27 : 28),
                "class=\"r\" text-anchor=\"middle\"", 0, text);
    if (!g->bound)
        return;
    snprintf(text, sizeof text, "%s", its->bound.cpus[0] ? its->bound.cpus : "unbound");
    mc_svg_text(g->out, f->x + l->item_w / 2, f->y + 46, "class=\"s\" text-anchor=\"middle\"",
                l->item_w - 4, text);
}

/* The NUMA node or socket that all of these ranks are bound to, for a dimension of that name. */
static void add_domain(const drawing_t *g, int32_t d, int32_t first, int32_t n, mc_text_t *text)
{
    const bool numa = strcmp(g->topo->mesh.dim[d].name, "numa") == 0;
    if (!g->topo->rank || (!numa && strcmp(g->topo->mesh.dim[d].name, "socket") != 0))
        return;
    int32_t same = -1;
    for (int32_t r = first; r < first + n; r++) {
        const mc_bound_to_t *const b = &mc_topo_rank(g->topo, r)->bound;
        const int32_t its = numa ? b->node : b->package;
        if (its < 0 || (r > first && its != same))
            return;
        same = its;
    }
    mc_text_add(text, "%s %d", numa ? "node" : "socket", same);
}

/* The note at the right of a box's name: its machine, where the boxes around it are on others. */
static void add_note(const drawing_t *g, int32_t d, int32_t first, mc_text_t *text)
{
    int32_t start, outer;
    const int32_t n = mc_mesh_span(&g->topo->mesh, d + 1, first, &start);
    const int32_t around = mc_mesh_span(&g->topo->mesh, d, first, &outer);
    add_domain(g, d, first, n, text);
    if (mc_topo_one_machine(g->topo, first, n) && !mc_topo_one_machine(g->topo, outer, around))
        mc_text_add(text, "%s%s", text->length ? ", " : "", mc_topo_rank(g->topo, first)->host);
}

static void draw_thing(void *context, const mc_frame_item_t *f)
{
    const drawing_t *const g = context;
    char note[MC_HOST_TEXT + 32] = "";
    mc_text_t text = mc_text(note, sizeof note);
    if (f->hidden) {
        draw_rest(g, f);
    } else if (f->d == g->topo->mesh.ndims - 1) {
        draw_rank(g, f);
    } else {
        add_note(g, f->d, f->rank, &text);
        mc_frames_draw(&g->frames, g->out, f, note);
    }
}

/* Around them ------------------------------------------------------------------------------------- */

static void draw_title(const drawing_t *g)
{
    const mc_topo_t *const t = g->topo;
    char buffer[256];
    const int32_t machines = mc_topo_machines(t);
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_svg_text(g->out, MARGIN, 44, "class=\"t\"", 0, mc_show_mesh(&t->mesh));
    mc_text_add(&text, "%d rank%s", t->mesh.size, t->mesh.size == 1 ? "" : "s");
    if (machines > 1)
        mc_text_add(&text, " on %d machines", machines);
    else if (machines == 1)
        mc_text_add(&text, " on %s", t->rank[0].host);
    mc_text_add(&text, ", %s%s", t->origin,
                g->bound ? "; below each rank the CPUs it is bound to" : "");
    mc_svg_text(g->out, MARGIN, 67, "class=\"s\"", 0, buffer);
}

static void draw_legend(const drawing_t *g)
{
    const mc_topo_t *const t = g->topo;
    double y = TITLE + g->frames.level[0].h + 20;
    char line[256];
    for (int32_t d = 0; d < t->mesh.ndims; d++) {
        const mc_link_t *const link = &t->links.dim[d];
        if (t->mesh.dim[d].extent < 2)
            continue;
        fprintf(g->out,
                "<path d=\"M%d %.1fh30\" stroke=\"%s\" stroke-width=\"3\" "
                "stroke-linecap=\"round\"/>\n",
                MARGIN, y - 4, color[d]);
        mc_svg_text(g->out, MARGIN + 42, y, "class=\"n\"", 0, t->mesh.dim[d].name);
        snprintf(line, sizeof line, "α %s a message", mc_print_seconds(link->alpha).text);
        mc_svg_text(g->out, MARGIN + 170, y, "class=\"l\"", 0, line);
        mc_number_print(line, sizeof line, "1/β %.4g GB/s", 1e-9 / link->beta);
        mc_svg_text(g->out, MARGIN + 350, y, "class=\"l\"", 0, line);
        snprintf(line, sizeof line, "ports: %s", mc_ports_print(link->ports).text);
        mc_svg_text(g->out, MARGIN + 500, y, "class=\"l\"", 0, line);
        y += LEGEND_ROW;
    }
    snprintf(line, sizeof line, "links: %s", t->source);
    mc_svg_text(g->out, MARGIN, y + 4, "class=\"s\"", g->w - 2 * MARGIN, line);
}

static void draw(const drawing_t *g)
{
    mc_svg_begin(g->out, g->w, g->h, &mc_svg_light, "");
    draw_title(g);
    mc_frames_walk(&g->frames, (g->w - g->frames.level[0].w) / 2, TITLE);
    draw_legend(g);
    mc_svg_end(g->out);
}

int mc_topo_draw(const mc_topo_t *t, const char *path)
{
    mc_output_t out;
    const int status = mc_output_open(path, &out);
    if (status)
        return status;
    drawing_t g = {.topo = t, .out = out.stream};
    for (int32_t r = 0; t->rank && r < t->mesh.size; r++)
        g.bound = g.bound || t->rank[r].bound.cpus[0];
    g.frames = (mc_frames_t){.mesh = &t->mesh,
                             .most = 12,
                             .cell_w = 62,
                             .cell_h = g.bound ? 58 : 44,
                             .gap = GAP,
                             .below = BUS,
                             .shape = 3.2,
                             .outer_below = BUS,
                             .outer_shape = 1.7,
                             .all = draw_bus,
                             .one = draw_thing,
                             .context = &g};
    mc_frames_lay_out(&g.frames);
    /* the legend's lines are this long */
    const double least = 740, wanted = g.frames.level[0].w + 2 * MARGIN + 10;
    g.w = wanted < least ? least : wanted;
    g.h = TITLE + g.frames.level[0].h + LEGEND_ROW * (t->mesh.ndims + 1) + MARGIN / 2;
    draw(&g);
    return mc_output_close(&out, MESHCOLL_OK);
}
