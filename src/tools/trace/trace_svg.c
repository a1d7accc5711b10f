/*
 * The picture of a trace: a panel for each phase with the mesh and the messages of that phase.
 * Ranks of the innermost dimension form a row, all other dimensions are frames around rows. Each
 * message is an arrow. Those of one pair of ranks are drawn in parallel and have one label, their
 * time steps.
 */
#include "tools/trace/trace_svg.h"
#include "tools/common/show.h"
#include "tools/common/svg.h"

#include <stdlib.h>
#include <string.h>

/* What a page has room for, in a file that others want to read. */
enum {
    MOST_COLUMNS = 16,
    MOST_ROWS = 16,
    MOST_MESSAGES = 400,
    MOST_TILES = 256,
    MOST_STRIPES = 500
};

/* Readable on light and on dark grounds. */
static const mc_svg_look_t look = {"#737b85", "#7d8590", NULL};
static const char *const color[] = {"#d9731a", "#1f8fa6", "#7f6ce0", "#c2477f",
                                    "#4c9a3f", "#a8861f", "#4676d0", "#b5533c",
                                    "#0f9b7a", "#a24fc0", "#7d8c22", "#cf5f6e"};
static const char frame_stroke[] = "#8b949e";

/* Words, each until the next of these calls ----------------------------------------------------------- */

static char buffer[MC_STRATEGY_TEXT + 128];

static mc_text_t begin(void)
{
    return mc_text(buffer, sizeof buffer);
}

/* Along all dimensions, of one segment: of phases [first, end). */
static mc_term_t term_of(const mc_picture_t *p, int32_t first, int32_t end)
{
    mc_term_t sum = {.alpha = {0, 1}, .beta = {0, 1}, .gamma = {0, 1}};
    for (int32_t phase = first; phase < end; phase++) {
        const mc_phase_cost_t cost =
            mc_strategy_phase_cost(p->strategy, p->mesh, &p->links, p->root, phase);
        for (int32_t d = 0; d < p->mesh->ndims; d++) {
            sum.alpha = mc_ratio_add(sum.alpha, cost.once.dim[d].alpha);
            sum.beta = mc_ratio_add(sum.beta, cost.once.dim[d].beta);
            sum.gamma = mc_ratio_add(sum.gamma, cost.once.dim[d].gamma);
        }
    }
    return sum;
}

/* "63 messages in 7 time steps, 7α + 2nβ in all" */
static const char *subline(const mc_picture_t *p, int32_t messages)
{
    const mc_term_t sum = term_of(p, 0, p->strategy->n_phases);
    mc_text_t out = begin();
    mc_text_add(&out, "%d messages in %u time steps", messages, p->trace->n_states - 1);
    if (p->strategy->segments == 1)
        mc_text_add(&out, ", %s in all", mc_show_term(&sum).text);
    else
        mc_text_add(&out, "; n is a segment, one of %u", p->strategy->segments);
    return buffer;
}

/* "1. scatter along box" */
static const char *title(const mc_picture_t *p, int32_t phase)
{
    const mc_phase_t *const one = &p->strategy->phase[phase];
    mc_text_t out = begin();
    if (mc_strategy_sides(p->strategy) > 1)
        mc_text_add(&out, "%s", phase < p->strategy->second ? "A" : "B");
    mc_text_add(&out, "%d. %s along ",
                phase + 1 - (phase >= p->strategy->second ? p->strategy->second : 0),
                mc_moves[mc_algorithms[one->algorithm].collective].name);
    mc_dims_print(p->mesh, one->dims, &out);
    return buffer;
}

/* "scatter:mst(box), steps 0–1" */
static const char *steps(const mc_picture_t *p, int32_t phase, uint32_t first, uint32_t last)
{
    mc_text_t out = begin();
    mc_text_add(&out, "%s", mc_show_phase(p->strategy, p->mesh, phase));
    if (first > last)
        mc_text_add(&out, ", no message");
    else if (first == last)
        mc_text_add(&out, ", step %u", first);
    else
        mc_text_add(&out, ", steps %u–%u", first, last);
    return buffer;
}

static const char *terms(const mc_picture_t *p, int32_t phase)
{
    const mc_term_t term = term_of(p, phase, phase + 1);
    mc_text_t out = begin();
    mc_text_add(&out, "%s", mc_show_term(&term).text);
    return buffer;
}

/* "3/4 n bytes", "n bytes" */
static void add_part(mc_text_t *out, mc_ratio_t part, const char *what)
{
    if (part.num == part.den)
        mc_text_add(out, ", n bytes%s", what);
    else if (part.num != 0)
        mc_text_add(out, ", %s n bytes%s", mc_show_ratio(part).text, what);
}

/* The terms of a phase in words. */
static const char *cost_words(const mc_picture_t *p, int32_t phase)
{
    const mc_term_t term = term_of(p, phase, phase + 1);
    mc_text_t out = begin();
    mc_text_add(&out, "%s message%s in a row", mc_show_ratio(term.alpha).text,
                term.alpha.num == term.alpha.den ? "" : "s");
    const bool all = mc_ratio_equal(term.beta, term.gamma);
    add_part(&out, term.beta, all ? " reduced" : "");
    if (!all)
        add_part(&out, term.gamma, " reduced");
    return buffer;
}

/* Layout ------------------------------------------------------------------------------------------- */

enum { LEAST_PITCH = 44, MOST_PITCH = 90 };

static bool has_messages(const mc_drawing_t *g, int32_t phase)
{
    for (int32_t i = 0; i < g->n_arrows; i++)
        if (g->arrow[i].phase == phase)
            return true;
    return false;
}

static void count_rows(mc_drawing_t *g)
{
    for (int32_t rank = 0; rank < g->picture->mesh->size; rank++) {
        const mc_page_place_t at = mc_page_place_of(g, rank, 0, 0);
        g->rows = at.row >= g->rows ? at.row + 1 : g->rows;
        g->columns = at.column >= g->columns ? at.column + 1 : g->columns;
    }
}

static void lay_out(mc_drawing_t *g)
{
    const int32_t left = g->levels ? MC_PAGE_LEFT : MC_PAGE_FRAME_PAD;
    const double all = MC_PAGE_WIDTH - 2 * MC_PAGE_MARGIN;
    for (int32_t phase = 0; phase < g->picture->strategy->n_phases; phase++)
        g->n_panels += has_messages(g, phase);
    const double least = left + g->columns * LEAST_PITCH;
    int32_t n = (int32_t)((all + MC_PAGE_PANEL_GAP) / (least + MC_PAGE_PANEL_GAP));
    n = n < 1 ? 1 : n > 3 ? 3 : n;
    n = n < g->n_panels ? n : g->n_panels;
    g->panels_in_row = n < 1 ? 1 : n;
    g->panel_w = (all - (g->panels_in_row - 1) * MC_PAGE_PANEL_GAP) / g->panels_in_row;
    g->pitch = (g->panel_w - left - MC_PAGE_FRAME_PAD) / g->columns;
    g->pitch = g->pitch > MOST_PITCH ? MOST_PITCH : g->pitch;
    g->tile_w = 0.56 * g->pitch;
    g->frame_w = left + g->columns * g->pitch + MC_PAGE_FRAME_PAD;
    g->panel_h = MC_PAGE_PANEL + mc_page_row_y(g, g->rows - 1) + MC_PAGE_TILE / 2.0 +
                 MC_PAGE_FRAME_PAD + (g->levels > 1 ? (g->levels - 1) * MC_PAGE_NEST : 0) + 18;
}

/* Ranks ------------------------------------------------------------------------------------------- */

/* What share of the contributions a cell has, "a1a0": 1 where it is the whole, or nothing is summed. */
static double share_of(const mc_drawing_t *g, const char *cell)
{
    int32_t n = 0;
    if (strcmp(cell, "-") == 0)
        return 0;
    for (const char *at = cell; *at && g->picture->sums; at++)
        n += at[0] >= 'a' && at[0] <= 'z' && at[1] >= '0' && at[1] <= '9';
    return n == 0 ? 1 : (double)n / g->picture->mesh->size;
}

/* The state behind the last message of a phase. */
static uint32_t state_after(const mc_drawing_t *g, int32_t phase)
{
    uint32_t state = 0;
    for (int32_t i = 0; i < g->n_arrows; i++)
        if (g->arrow[i].phase <= phase && g->arrow[i].step + 1 > state)
            state = g->arrow[i].step + 1;
    return state;
}

static void put_stripe(const mc_drawing_t *g, const mc_page_place_t *s, double from, double to)
{
    const double top = s->y - MC_PAGE_TILE / 2.0 + 1.5, height = MC_PAGE_TILE - 3.0;
    fprintf(g->out, "M%.1f %.1fh%.1fv%.1fh%.1fz", s->x - g->tile_w / 2 + 1.5, top + height * from,
            g->tile_w - 3, height * (to - from), 3 - g->tile_w);
}

/* Fills the tile of a rank with what has `share` of the contributions: few chunks as stripes from top to bottom,
 * neighbours as one; of many chunks their number, from the bottom. */
static void put_stripes(const mc_drawing_t *g, const mc_page_place_t *s, char *const *cell,
                        double share)
{
    const uint32_t n = g->picture->trace->n_chunks;
    const bool few = n * (uint32_t)(g->n_panels * g->picture->mesh->size) <= MOST_STRIPES;
    uint32_t many = 0;
    for (uint32_t c = 0, end; c < n; c = end) {
        end = c + 1;
        if (share_of(g, cell[c]) != share)
            continue;
        while (end < n && share_of(g, cell[end]) == share)
            end++;
        many += end - c;
        if (few)
            put_stripe(g, s, (double)c / n, (double)end / n);
    }
    if (!few && many > 0)
        put_stripe(g, s, 1 - (double)many / n, 1);
}

/* One path for each share, of all ranks. */
static void draw_fill(const mc_drawing_t *g, int32_t phase, double x, double y)
{
    const mc_trace_t *const t = g->picture->trace;
    const mc_trace_state_t *const state = &t->state[state_after(g, phase)];
    const int32_t size = g->picture->mesh->size;
    for (int32_t k = g->picture->sums ? 1 : size; k <= size; k++) {
        const double share = (double)k / size;
        bool any = false;
        for (size_t c = 0; c < (size_t)size * t->n_chunks && !any; c++)
            any = share_of(g, state->cell[c]) == share;
        if (!any)
            continue;
        fprintf(g->out, "<path class=\"f%d\" fill-opacity=\"%.2f\" d=\"", phase,
                0.08 + 0.34 * share);
        for (int32_t rank = 0; rank < size; rank++) {
            const mc_page_place_t s = mc_page_place_of(g, rank, x, y);
            put_stripes(g, &s, &state->cell[(size_t)rank * t->n_chunks], share);
        }
        fputs("\"/>\n", g->out);
    }
}

static void draw_ranks(const mc_drawing_t *g, int32_t phase, double x, double y)
{
    char number[16];
    draw_fill(g, phase, x, y);
    for (int32_t rank = 0; rank < g->picture->mesh->size; rank++) {
        const mc_page_place_t s = mc_page_place_of(g, rank, x, y);
        fprintf(g->out, "<use href=\"#r\" x=\"%.1f\" y=\"%.1f\"/>", s.x - g->tile_w / 2,
                s.y - MC_PAGE_TILE / 2.0);
        snprintf(number, sizeof number, "%d", rank);
        mc_svg_text(g->out, s.x, s.y + 4.5, "class=\"k\"", 0, number);
    }
}

static void draw_frames(const mc_drawing_t *g, double x, double y)
{
    char name[MC_DIM_NAME + 16];
    const mc_mesh_t *const mesh = g->picture->mesh;
    for (int32_t level = 0; level < g->levels; level++) {
        const int32_t rows = mc_page_rows_in(g, level), outside = g->levels - 1 - level;
        for (int32_t first = 0; first < g->rows; first += rows) {
            const double above = MC_PAGE_ARC_ROOM + MC_PAGE_TILE / 2.0 +
                                 outside * (MC_PAGE_NEST + MC_PAGE_NEST_TITLE);
            const double top = y + MC_PAGE_PANEL + mc_page_row_y(g, first) - above;
            const double bottom = y + MC_PAGE_PANEL + mc_page_row_y(g, first + rows - 1) +
                                  MC_PAGE_TILE / 2.0 + MC_PAGE_FRAME_PAD + outside * MC_PAGE_NEST;
            const double inset = level * 4.0;
            mc_svg_box(g->out, x + inset, top, g->frame_w - 2 * inset, bottom - top, 8,
                       "class=\"m\"");
            snprintf(name, sizeof name, "%s %d", mesh->dim[level].name,
                     first / rows % mesh->dim[level].extent);
            mc_svg_text(g->out, x + inset + 8, outside ? top + 14 : bottom - MC_PAGE_FRAME_PAD - 11,
                        "class=\"s\"", MC_PAGE_LEFT + 6, name);
        }
    }
}

/* Names of the columns, above the first row's frame. */
static void draw_columns(const mc_drawing_t *g, double x, double y)
{
    char name[MC_DIM_NAME + 16];
    const mc_mesh_t *const mesh = g->picture->mesh;
    const int32_t d = mesh->ragged ? MC_RAGGED_GPU : mesh->ndims - 1;
    const bool fits = ((double)strlen(mesh->dim[d].name) + 3) * MC_SVG_GLYPH < g->pitch;
    for (int32_t column = 0; column < g->columns; column++) {
        snprintf(name, sizeof name, "%s%s%d", fits || column == 0 ? mesh->dim[d].name : "",
                 fits || column == 0 ? " " : "", column);
        mc_svg_text(g->out,
                    x + (g->levels ? MC_PAGE_LEFT : MC_PAGE_FRAME_PAD) + column * g->pitch +
                        g->tile_w / 2,
                    y + MC_PAGE_PANEL - 8, "class=\"s\" text-anchor=\"middle\"", 0, name);
    }
}

/* Around them ------------------------------------------------------------------------------------- */

/* `at`: the panel's place among those drawn. */
static void draw_panel(const mc_drawing_t *g, int32_t phase, int32_t at)
{
    char attributes[32];
    uint32_t first = UINT32_MAX, last = 0;
    const double x = MC_PAGE_MARGIN + at % g->panels_in_row * (g->panel_w + MC_PAGE_PANEL_GAP);
    const double y = MC_PAGE_HEAD + at / g->panels_in_row * g->panel_h;
    for (int32_t i = 0; i < g->n_arrows; i++)
        if (g->arrow[i].phase == phase) {
            first = g->arrow[i].step < first ? g->arrow[i].step : first;
            last = g->arrow[i].step > last ? g->arrow[i].step : last;
        }
    snprintf(attributes, sizeof attributes, "class=\"h f%d\"", phase);
    mc_svg_text(g->out, x, y + 14, attributes, 0, title(g->picture, phase));
    mc_svg_text(g->out, x, y + 32, "class=\"s\"", 1.15 * g->panel_w,
                steps(g->picture, phase, first, last));
    mc_svg_text(g->out, x, y + 53, "class=\"l\"", 1.15 * g->panel_w, terms(g->picture, phase));
    mc_svg_text(g->out, x, y + 70, "class=\"s\"", 1.15 * g->panel_w, cost_words(g->picture, phase));
    draw_frames(g, x, y);
    draw_columns(g, x, y);
    draw_ranks(g, phase, x, y);
    mc_draw_messages(g, phase, x, y);
}

/* Classes of a phase: p its arrows, f its fills and labels. */
static void put_style(const mc_drawing_t *g, char *style, size_t capacity)
{
    mc_text_t out = mc_text(style, capacity);
    mc_text_add(&out,
                ".t{font-size:21px}.h{font-size:16px;font-weight:600}"
                ".k{font-size:13px;font-weight:600;text-anchor:middle}"
                ".d{font-size:10px;font-weight:600}.a{fill:none}"
                ".b{fill:none;stroke:%s;stroke-width:1.2}"
                ".m{fill:%s;fill-opacity:.07;stroke:%s;stroke-opacity:.55}",
                frame_stroke, frame_stroke, frame_stroke);
    for (int32_t i = 0; i < g->picture->strategy->n_phases; i++) {
        const char *const c = color[(size_t)i % MC_COUNT(color)];
        mc_text_add(&out, ".p%d{stroke:%s;marker-end:url(#h%d)}.f%d{fill:%s}", i, c, i, i, c);
    }
}

static void put_heads(const mc_drawing_t *g)
{
    fputs("<defs>\n", g->out);
    fprintf(g->out, "<rect id=\"r\" width=\"%.1f\" height=\"%d\" rx=\"5\" class=\"b\"/>\n",
            g->tile_w, MC_PAGE_TILE);
    for (int32_t i = 0; i < g->picture->strategy->n_phases; i++)
        fprintf(g->out,
                "<marker id=\"h%d\" viewBox=\"0 0 8 8\" refX=\"6\" refY=\"4\" markerWidth=\"4\" "
                "markerHeight=\"4\" orient=\"auto\">"
                "<path class=\"f%d\" d=\"M0 0.6L8 4L0 7.4L2 4z\"/></marker>\n",
                i, i);
    fputs("</defs>\n", g->out);
}

static void draw(const mc_drawing_t *g)
{
    static char style[4096];
    const int32_t rows = (g->n_panels + g->panels_in_row - 1) / g->panels_in_row;
    const double height = MC_PAGE_HEAD + (rows > 0 ? rows * g->panel_h : 0) + MC_PAGE_FOOT;
    put_style(g, style, sizeof style);
    mc_svg_begin(g->out, MC_PAGE_WIDTH, height, &look, style);
    put_heads(g);
    mc_svg_text(g->out, MC_PAGE_MARGIN, 36, "class=\"t\"", 0,
                mc_show_call(g->picture->strategy->collective, g->picture->mesh, g->picture->root));
    mc_svg_text(g->out, MC_PAGE_MARGIN, 60, "class=\"s\"", 1.1 * MC_PAGE_WIDTH,
                mc_show_strategy(g->picture->strategy, g->picture->mesh));
    mc_svg_text(g->out, MC_PAGE_MARGIN, 79, "class=\"s\"", 1.1 * MC_PAGE_WIDTH,
                subline(g->picture, g->n_arrows));
    for (int32_t i = 0, at = 0; i < g->picture->strategy->n_phases; i++)
        if (has_messages(g, i))
            draw_panel(g, i, at++);
    mc_svg_text(
        g->out, MC_PAGE_MARGIN, height - 14, "class=\"s\"", 1.1 * MC_PAGE_WIDTH,
        "An arrow is a message, its number the time step. The filled part of a rank is what "
        "it holds after the phase.");
    mc_svg_end(g->out);
}

/* What is drawn ------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const mc_arrow_t *const x = a, *const y = b;
    return mc_compare_keys((const int64_t[]){x->phase, x->from, x->to, x->step},
                           (const int64_t[]){y->phase, y->from, y->to, y->step}, 4);
}

static int find_arrows(mc_drawing_t *g)
{
    const mc_trace_t *const t = g->picture->trace;
    size_t n = 0;
    for (uint32_t s = 1; s < t->n_states; s++)
        n += t->state[s].n_messages;
    g->arrow = malloc((n + 1) * sizeof *g->arrow);
    if (!g->arrow)
        return mc_fail_memory("a picture");
    for (uint32_t s = 1; s < t->n_states; s++)
        for (uint32_t i = 0; i < t->state[s].n_messages; i++) {
            const mc_trace_message_t *const m = &t->state[s].message[i];
            g->arrow[g->n_arrows++] = (mc_arrow_t){m->from, m->to, m->phase, s - 1};
        }
    qsort(g->arrow, n, sizeof *g->arrow, compare);
    return MESHCOLL_OK;
}

/* What a page has room for, and a file that others want to read. */
static int check_room(const mc_drawing_t *g)
{
    const int32_t size = g->picture->mesh->size;
    if (g->n_arrows <= MOST_MESSAGES && g->rows <= MOST_ROWS && g->columns <= MOST_COLUMNS &&
        g->n_panels * size <= MOST_TILES)
        return MESHCOLL_OK;
    return mc_fail(
        MESHCOLL_ERR_UNSUPPORTED,
        "a picture has room for %d messages, %d rows of %d ranks, and %d ranks in the "
        "panels of all phases; this has %d, %d of %d, and %d: take a smaller mesh or fewer "
        "segments",
        MOST_MESSAGES, MOST_ROWS, MOST_COLUMNS, MOST_TILES, g->n_arrows, g->rows, g->columns,
        g->n_panels * size);
}

int mc_trace_draw(const mc_picture_t *picture, const char *path)
{
    mc_drawing_t g = {.picture = picture,
                      .levels = picture->mesh->ragged ? 1 : picture->mesh->ndims - 1};
    mc_output_t out;
    count_rows(&g);
    int status = find_arrows(&g);
    if (!status)
        lay_out(&g);
    if (!status)
        status = check_room(&g);
    if (!status)
        status = mc_output_open(path, &out);
    if (!status) {
        g.out = out.stream;
        draw(&g);
        status = mc_output_close(&out, MESHCOLL_OK);
    }
    free(g.arrow);
    return status;
}
