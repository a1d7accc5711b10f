/* Where the ranks of a picture lie, and the arrows between them with their labels. */
#include "tools/common/svg.h"
#include "tools/trace/trace_svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

enum { TIP = 2, DENSE = 6 };

/* Places ------------------------------------------------------------------------------------------ */

static int32_t row_of(const mc_drawing_t *g, int32_t rank, int32_t *column)
{
    const mc_mesh_t *const mesh = g->picture->mesh;
    if (mesh->ragged) {
        const int32_t box = mc_boxes_find(mesh->ragged, rank);
        *column = rank - mesh->ragged->first[box];
        return box;
    }
    const int32_t inner = mesh->dim[mesh->ndims - 1].extent;
    *column = rank % inner;
    return rank / inner;
}

/* Rows that one thing of frame level `level` has. */
int32_t mc_page_rows_in(const mc_drawing_t *g, int32_t level)
{
    int32_t rows = 1;
    for (int32_t d = level + 1; d < g->levels; d++)
        rows *= g->picture->mesh->dim[d].extent;
    return rows;
}

/* The middle of a row's tiles, below the panel's head. */
double mc_page_row_y(const mc_drawing_t *g, int32_t row)
{
    double y = MC_PAGE_ARC_ROOM + MC_PAGE_TILE / 2.0 +
               row * (MC_PAGE_ARC_ROOM + MC_PAGE_TILE + MC_PAGE_FRAME_PAD + MC_PAGE_ROW_GAP);
    for (int32_t level = 0; level < g->levels - 1; level++)
        y += (row / mc_page_rows_in(g, level)) * (2 * MC_PAGE_NEST + MC_PAGE_NEST_TITLE) +
             MC_PAGE_NEST + MC_PAGE_NEST_TITLE;
    return y;
}

mc_page_place_t mc_page_place_of(const mc_drawing_t *g, int32_t rank, double x, double y)
{
    mc_page_place_t s;
    s.row = row_of(g, rank, &s.column);
    s.x = x + (g->levels ? MC_PAGE_LEFT : MC_PAGE_FRAME_PAD) + s.column * g->pitch + g->tile_w / 2;
    s.y = y + MC_PAGE_PANEL + mc_page_row_y(g, s.row);
    return s;
}

/* Arrows ------------------------------------------------------------------------------------------ */

/* Messages of one phase from one rank to one other. */
typedef struct {
    const mc_arrow_t *first;
    int32_t n;
    mc_page_place_t from, to;
    bool both; /* are there some the other way too? */
} bundle_t;

static double lane_gap(const bundle_t *b, double room)
{
    return b->n > 1 && room / (b->n - 1) < 4.5 ? room / (b->n - 1) : 4.5;
}

static double sign(double number)
{
    return (number > 0) - (number < 0);
}

MC_PRINTF(2, 3)
static void put_path(const mc_drawing_t *g, const char *format, ...)
{
    va_list args;
    if (g->labels)
        return;
    fputs("<path d=\"", g->out);
    va_start(args, format);
    vfprintf(g->out, format, args);
    va_end(args);
    fputs("\"/>\n", g->out);
}

/* Prints "4", "4–6" or "1…9"; without enough room "1…", as the head of the panel has the range. */
static void put_steps(const mc_drawing_t *g, const bundle_t *b, double x, double y, double room,
                      const char *anchor)
{
    char text[64], attributes[64];
    if (!g->labels)
        return;
    const uint32_t first = b->first[0].step, last = b->first[b->n - 1].step;
    const char *const to = last - first + 1 == (uint32_t)b->n ? "–" : "…";
    const int n = b->n == 1 ? 0 : snprintf(text, sizeof text, "%u%u ", first, last);
    if (b->n == 1)
        snprintf(text, sizeof text, "%u", first);
    else if (n * 6.0 <= room)
        snprintf(text, sizeof text, "%u%s%u", first, to, last);
    else
        snprintf(text, sizeof text, "%u…", first);
    snprintf(attributes, sizeof attributes, "class=\"d f%d\" text-anchor=\"%s\"", b->first->phase,
             anchor);
    mc_svg_text(g->out, x, y, attributes, 0, text);
}

/* Draws a straight arrow to the next row. */
static void draw_down(const mc_drawing_t *g, const bundle_t *b)
{
    const double way = sign(b->to.y - b->from.y), gap = lane_gap(b, 0.75 * g->tile_w);
    const double half = gap * (b->n - 1) / 2, shift = b->both ? -way * (half + 4) : 0;
    const double y1 = b->from.y + way * MC_PAGE_TILE / 2.0,
                 y2 = b->to.y - way * (MC_PAGE_TILE / 2.0 + TIP);
    for (int32_t i = 0; i < b->n; i++)
        put_path(g, "M%.1f %.1fV%.1f", b->from.x + shift + i * gap - half, y1, y2);
    const double room = g->pitch - g->tile_w / 2 - half - 10;
    if (b->both && way > 0)
        put_steps(g, b, b->from.x + shift - half - 2.5, (y1 + y2) / 2 + 4, room, "end");
    else
        put_steps(g, b, b->from.x + shift + half + 2.5, (y1 + y2) / 2 + 4, room, "start");
}

/* Draws a straight arrow to the next column. */
static void draw_along(const mc_drawing_t *g, const bundle_t *b)
{
    const double way = sign(b->to.x - b->from.x), gap = lane_gap(b, 0.75 * MC_PAGE_TILE);
    const double half = gap * (b->n - 1) / 2, shift = b->both ? -way * (half + 3) : 0;
    const double x1 = b->from.x + way * g->tile_w / 2, x2 = b->to.x - way * (g->tile_w / 2 + TIP);
    for (int32_t i = 0; i < b->n; i++)
        put_path(g, "M%.1f %.1fH%.1f", x1, b->from.y + shift + i * gap - half, x2);
    const bool below = b->both && way < 0;
    put_steps(g, b, (x1 + x2) / 2, b->from.y + shift + (below ? half + 11 : -half - 4),
              g->pitch - g->tile_w + 4, "middle");
}

/* Along a row, over the tiles between; below them where others go the other way. */
static void draw_arch(const mc_drawing_t *g, const bundle_t *b)
{
    const double way = sign(b->to.x - b->from.x), up = b->both && way < 0 ? -1 : 1;
    const double gap = lane_gap(b, 8), edge = b->from.y - up * MC_PAGE_TILE / 2.0;
    const double height = up > 0 ? 8 + 4 * log2(abs(b->to.column - b->from.column)) : 12;
    double peak = edge;
    for (int32_t i = 0; i < b->n; i++) {
        const double h = (height - i * gap) / 0.75, in = way * (g->tile_w / 6 + i * gap / 2);
        put_path(g, "M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", b->from.x + in, edge,
                 b->from.x + in, edge - up * h, b->to.x - in, edge - up * h, b->to.x - in,
                 edge - up * TIP);
        peak = i == 0 ? edge - up * height : peak;
    }
    put_steps(g, b, (b->from.x + b->to.x) / 2, up > 0 ? peak - 3 : peak + 10, g->pitch, "middle");
}

/* Along a column, past the tiles in between: on their left, and on the right for the reverse
 * direction where both exist. The label of a single message is before the last row, that of
 * several next to the first tile. */
static void draw_pass(const mc_drawing_t *g, const bundle_t *b)
{
    const double way = sign(b->to.y - b->from.y), side = b->both && way < 0 ? 1 : -1;
    const double space = g->pitch - g->tile_w, gap = lane_gap(b, 0.25 * space);
    const double part = (double)abs(b->to.row - b->from.row) / (g->rows - 1);
    const double reach = space * (0.26 + 0.2 * part), edge = b->from.x + side * g->tile_w / 2;
    for (int32_t i = 0; i < b->n; i++) {
        const double h = (reach - i * gap) / 0.75, in = way * (i - (b->n - 1) / 2.0) * 2 * gap;
        put_path(g, "M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", edge, b->from.y + in,
                 edge + side * h, b->from.y + in, edge + side * h, b->to.y - in, edge + side * TIP,
                 b->to.y - in);
    }
    if (b->n == 1)
        put_steps(g, b, edge + side * (reach + 1), b->to.y - way * (way > 0 ? 58 : 34), g->pitch,
                  side < 0 ? "end" : "start");
    else if (way > 0)
        put_steps(g, b, edge - 2, b->from.y - MC_PAGE_TILE / 2.0 - 3, g->tile_w + 4, "middle");
    else
        put_steps(g, b, edge - 2, b->from.y + MC_PAGE_TILE / 2.0 + 8, g->tile_w + 4, "middle");
}

/* Anywhere: from the edge of one tile to that of the other, bent, with the label between the first two rows. */
static void draw_across(const mc_drawing_t *g, const bundle_t *b)
{
    const double dx = b->to.x - b->from.x, dy = b->to.y - b->from.y, length = hypot(dx, dy);
    const double cut = fmin(fabs(g->tile_w / 2 / dx), fabs(MC_PAGE_TILE / 2.0 / dy));
    const double gap = lane_gap(b, 12), nx = -dy / length, ny = dx / length;
    const double x1 = b->from.x + cut * dx, y1 = b->from.y + cut * dy;
    const double x2 = b->to.x - cut * dx - TIP * dx / length;
    const double y2 = b->to.y - cut * dy - TIP * dy / length;
    for (int32_t i = 0; i < b->n; i++) {
        const double bend = 0.12 * length + i * gap;
        put_path(g, "M%.1f %.1fQ%.1f %.1f %.1f %.1f", x1, y1, (x1 + x2) / 2 + nx * bend,
                 (y1 + y2) / 2 + ny * bend, x2, y2);
    }
    const double at = fmin(0.5, (dy > 0 ? 26 : 14) / fabs(y2 - y1)), bend = 0.24 * length;
    put_steps(g, b, x1 + at * (x2 - x1) + nx * at * (1 - at) * bend + sign(nx) * 7,
              y1 + at * (y2 - y1) + ny * at * (1 - at) * bend + 4, g->pitch, "middle");
}

static void draw_bundle(const mc_drawing_t *g, const bundle_t *b)
{
    const int32_t rows = abs(b->to.row - b->from.row), columns = abs(b->to.column - b->from.column);
    if (columns == 0)
        (rows == 1 ? draw_down : draw_pass)(g, b);
    else if (rows == 0)
        (columns == 1 ? draw_along : draw_arch)(g, b);
    else
        draw_across(g, b);
}

static bool has_reverse(const mc_drawing_t *g, const mc_arrow_t *a)
{
    for (int32_t i = 0; i < g->n_arrows; i++)
        if (g->arrow[i].phase == a->phase && g->arrow[i].from == a->to && g->arrow[i].to == a->from)
            return true;
    return false;
}

static void draw_bundles(const mc_drawing_t *g, int32_t phase, double x, double y)
{
    for (int32_t i = 0, end; i < g->n_arrows; i = end) {
        const mc_arrow_t *const a = &g->arrow[i];
        for (end = i + 1; end < g->n_arrows && g->arrow[end].phase == a->phase &&
                          g->arrow[end].from == a->from && g->arrow[end].to == a->to;)
            end++;
        if (a->phase != phase)
            continue;
        const bundle_t bundle = {.first = a,
                                 .n = end - i,
                                 .from = mc_page_place_of(g, a->from, x, y),
                                 .to = mc_page_place_of(g, a->to, x, y),
                                 .both = has_reverse(g, a)};
        draw_bundle(g, &bundle);
    }
}

/* Are there many messages from one rank to another? */
static bool is_dense(const mc_drawing_t *g, int32_t phase)
{
    for (int32_t i = 0; i + DENSE < g->n_arrows; i++) {
        const mc_arrow_t *const a = &g->arrow[i], *const b = &g->arrow[i + DENSE];
        if (a->phase == phase && b->phase == phase && a->from == b->from && a->to == b->to)
            return true;
    }
    return false;
}

void mc_draw_messages(const mc_drawing_t *g, int32_t phase, double x, double y)
{
    mc_drawing_t labels = *g;
    fprintf(g->out, "<g class=\"a p%d\"%s>\n", phase,
            is_dense(g, phase) ? " stroke-width=\".7\"" : " stroke-width=\"1.7\"");
    draw_bundles(g, phase, x, y);
    fputs("</g>\n", g->out);
    labels.labels = true;
    draw_bundles(&labels, phase, x, y);
}
