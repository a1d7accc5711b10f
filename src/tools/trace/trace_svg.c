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

/* Of a rank what has `share` of the contributions: chunks as stripes from top to bottom, neighbours as one; of many chunks
 * their number, from the bottom. */
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
    mc_svg_text(g->out, x, y + 14, attributes, 0, mc_trace_title(g->picture, phase));
    mc_svg_text(g->out, x, y + 32, "class=\"s\"", 1.15 * g->panel_w,
                mc_trace_steps(g->picture, phase, first, last));
    mc_svg_text(g->out, x, y + 53, "class=\"l\"", 1.15 * g->panel_w,
                mc_trace_terms(g->picture, phase));
    mc_svg_text(g->out, x, y + 70, "class=\"s\"", 1.15 * g->panel_w,
                mc_trace_cost(g->picture, phase));
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
    mc_svg_text(g->out, MC_PAGE_MARGIN, 36, "class=\"t\"", 0, mc_trace_headline(g->picture));
    mc_svg_text(g->out, MC_PAGE_MARGIN, 60, "class=\"s\"", 1.1 * MC_PAGE_WIDTH,
                mc_show_strategy(g->picture->strategy, g->picture->mesh));
    mc_svg_text(g->out, MC_PAGE_MARGIN, 79, "class=\"s\"", 1.1 * MC_PAGE_WIDTH,
                mc_trace_subline(g->picture, g->n_arrows));
    for (int32_t i = 0, at = 0; i < g->picture->strategy->n_phases; i++)
        if (mc_page_has_messages(g, i))
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
    mc_page_count(&g);
    int status = find_arrows(&g);
    if (!status)
        mc_page_lay_out(&g);
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
