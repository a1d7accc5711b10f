/* The page around the mesh: title, loads of links, a time line, a legend. */
#include "tools/simulate/motion.h"

#include "base/table.h"
#include "tools/common/show.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = MC_MOTION_MARGIN, LEFT = 250, RIGHT = 58, ROW = 22, CELLS = 128 };
/* How long the lower bound takes to play, and the longest, in seconds. */
enum { BOUND_PLAYS = 4, MOST_PLAYS = 32 };

/* What is recorded ---------------------------------------------------------------------------------- */

void mc_motion_sent(mc_motion_t *m, const mc_sent_t *message)
{
    if (mc_motion_moves(m->q->mesh) && mc_array_add(&m->sent, &m->n_sent, &m->sent_capacity,
                                                    message, sizeof *message, "a picture"))
        m->failed = true;
}

void mc_motion_load(void *motion, const mc_busiest_t *link)
{
    mc_motion_t *const m = motion;
    if (mc_array_add(&m->link, &m->n_links, &m->link_capacity, link, sizeof *link, "a picture"))
        m->failed = true;
}

void mc_motion_free(mc_motion_t *m)
{
    free(m->sent);
    free(m->link);
    *m = (mc_motion_t){0};
}

/* Links ------------------------------------------------------------------------------------------------ */

/* Links whose names differ in numbers only: "leaf85.0 up22" is a "leaf up". */
enum { MOST_ROWS = 2 * MC_NETWORK_LEVELS + 3 * MC_MAX_DIMS };
typedef struct {
    char name[MC_NETWORK_NAME];
    uint32_t n, told, cells;
    double cell[CELLS], most; /* load of the busiest link of a cell */
} row_t;
static row_t rows[MOST_ROWS];
static int32_t n_rows;

static row_t *row_of(const char *link)
{
    char name[MC_NETWORK_NAME], *end = name;
    const bool graph = strchr(link, '>');
    for (const char *c = graph ? "graph" : link; *c; c++)
        if (!isdigit((unsigned char)*c) && *c != '.')
            *end++ = *c;
    *end = '\0';
    for (int32_t i = 0; i < n_rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    if (n_rows < MOST_ROWS)
        strcpy(rows[n_rows++].name, name);
    return &rows[n_rows - 1];
}

/* Takes the network's links as rows; where no ranks are drawn, all links. */
static void find_rows(const mc_page_t *g)
{
    const mc_network_t *const network = g->m->q->network;
    const uint32_t n = !mc_motion_moves(g->m->q->mesh) ? g->m->n_links
                       : network                       ? network->n_links
                                                       : 0;
    for (uint32_t l = 0; l < n; l++)
        row_of(g->m->link[l].name)->n += g->m->link[l].alike;
    for (uint32_t l = 0; l < n; l++) {
        row_t *const row = row_of(g->m->link[l].name);
        const double load = (double)g->m->link[l].busy / (double)g->ps;
        row->cells = row->n < CELLS ? row->n : CELLS;
        const uint32_t first = (uint32_t)((uint64_t)row->told * row->cells / row->n);
        row->told += g->m->link[l].alike;
        for (uint32_t c = first;
             c < row->cells && (uint64_t)c * row->n < (uint64_t)row->told * row->cells; c++)
            row->cell[c] = fmax(row->cell[c], load);
        row->most = fmax(row->most, load);
    }
}

static void draw_right(const mc_page_t *g, const char *class, const char *text)
{
    char attributes[64];
    snprintf(attributes, sizeof attributes, "class=\"%s\" text-anchor=\"end\"", class);
    mc_svg_text(g->out, g->w - MARGIN, g->top + 12, attributes, 0, text);
}

static void draw_row(mc_page_t *g, const row_t *row)
{
    const double width = (g->w - 2 * MARGIN - LEFT - RIGHT) / row->cells;
    char text[MC_NETWORK_NAME + 32];
    for (uint32_t c = 0; c < row->cells; c++)
        mc_svg_box(g->out, MARGIN + LEFT + c * width, g->top, fmax(width - 1.5, 0.75 * width), 15,
                   1, "class=\"h\" fill-opacity=\"%.2f\"", mc_motion_opacity(row->cell[c]));
    snprintf(text, sizeof text, row->n > 1 ? "%s, %u links" : "%s", row->name, row->n);
    mc_svg_text(g->out, MARGIN, g->top + 12, "class=\"l\"", LEFT, text);
    mc_number_print(text, sizeof text, "%.0f %%", 100 * row->most);
    draw_right(g, "s", text);
    g->top += ROW;
}

static void draw_rows(mc_page_t *g)
{
    if (n_rows == 0)
        return;
    mc_svg_text(g->out, MARGIN, g->top + 12, "class=\"n\"", 0, "links, over the whole time");
    draw_right(g, "s", "the busiest");
    g->top += ROW;
    for (int32_t i = 0; i < n_rows; i++)
        draw_row(g, &rows[i]);
    g->top += ROW / 2.0;
}

/* Time -------------------------------------------------------------------------------------------------- */

static void draw_cursor(const mc_page_t *g, double left, double width, double begin)
{
    fprintf(g->out,
            "<path d=\"M%.0f %.0fV%.0f\" stroke=\"#1f2530\" stroke-width=\"2\"><animateTransform "
            "attributeName=\"transform\" type=\"translate\" dur=\"%.2fs\" "
            "repeatCount=\"indefinite\" values=\"0;%.0f;%.0f\" keyTimes=\"0;%.4f;1\"/></path>\n",
            left, begin - 6, g->top + 4, g->seconds, width, width,
            (double)MC_MOTION_PARTS / MC_MOTION_PERIOD);
}

static bool has_phase(const mc_page_t *g, int32_t phase)
{
    return g->s->phase[phase].first <= g->s->phase[phase].last;
}

static void draw_phase(mc_page_t *g, int32_t i, double left, double scale)
{
    const double first = (double)g->s->phase[i].first / 1e12,
                 last = (double)g->s->phase[i].last / 1e12;
    fprintf(g->out, "<circle cx=\"%d\" cy=\"%.1f\" r=\"5\" class=\"c%d\"/>\n", MARGIN + 6,
            g->top + 7.5, i % MC_SVG_COLORS);
    mc_svg_text(g->out, MARGIN + 18, g->top + 12, "class=\"l\"", LEFT - 26,
                mc_show_phase(g->m->q->strategy, g->m->q->mesh, i));
    mc_svg_box(g->out, left + first * scale, g->top, fmax(2, (last - first) * scale), 15, 3,
               "class=\"c%d\"", i % MC_SVG_COLORS);
    draw_right(g, "s", mc_print_seconds(last).text);
    g->top += ROW;
}

static void draw_time_line(mc_page_t *g)
{
    const double left = MARGIN + LEFT, width = g->w - left - MARGIN - RIGHT, begin = g->top;
    const double seconds = (double)g->ps / 1e12;
    for (int32_t i = 0; i < g->m->q->strategy->n_phases; i++)
        if (has_phase(g, i))
            draw_phase(g, i, left, width / seconds);
    mc_svg_axis(g->out, left, g->top, width, 0, seconds);
    if (g->bound > 0 && g->bound <= seconds)
        fprintf(g->out, "<path d=\"M%.1f %.0fV%.0f\" class=\"k\"/>\n",
                left + g->bound / seconds * width, begin - 6, g->top);
    if (mc_motion_moves(g->m->q->mesh))
        draw_cursor(g, left, width, begin);
    g->top += 2 * ROW;
}

static void draw_legend(const mc_page_t *g)
{
    const double y = g->top, at[] = {134, 320, 346, 460};
    for (int32_t i = 0; i <= 8; i++)
        mc_svg_box(g->out, MARGIN + 14 * i, y - 11, 14, 13, 0, "class=\"h\" fill-opacity=\"%.2f\"",
                   mc_motion_opacity(i / 8.0));
    mc_svg_text(g->out, MARGIN + at[0], y, "class=\"s\"", 0, "load: never to always busy");
    fprintf(g->out, "<path d=\"M%.0f %.0fv15\" class=\"k\"/>\n", MARGIN + at[1] + 16, y - 12);
    mc_svg_text(g->out, MARGIN + at[2], y, "class=\"s\"", 0, "lower bound");
    if (!mc_motion_moves(g->m->q->mesh))
        return;
    mc_svg_box(g->out, MARGIN + at[3], y - 11, 18, 13, 3, "class=\"f\" stroke=\"#5b6470\"");
    mc_svg_text(g->out, MARGIN + at[3] + 25, y, "class=\"s\"", 0,
                g->m->n_sent > MC_MOTION_MESSAGES
                    ? "what has arrived; messages are too many for dots"
                    : "what has arrived; a dot is a message");
}

/* The whole ----------------------------------------------------------------------------------------------- */

static void lay_out(mc_page_t *g)
{
    const double ratio = g->bound > 0 ? (double)g->ps / 1e12 / g->bound : 1;
    g->frames = (mc_frames_t){.mesh = g->m->q->mesh,
                              .most = MC_MOTION_RANKS,
                              .cell_w = 54,
                              .cell_h = 40,
                              .gap = 28,
                              .below = 28,
                              .shape = 1.4,
                              .outer_below = 66,
                              .outer_shape = 4};
    g->w = 880;
    g->seconds =
        fmin(BOUND_PLAYS * fmax(ratio, 1), MOST_PLAYS) * MC_MOTION_PERIOD / MC_MOTION_PARTS;
    if (!mc_motion_moves(g->m->q->mesh))
        return;
    mc_frames_lay_out(&g->frames);
    g->w = fmax(g->w, g->frames.level[0].w + 2 * MARGIN);
}

static double draw_head(const mc_page_t *g, FILE *out, const char *about)
{
    const mc_simulation_t *const q = g->m->q;
    char title[512];
    snprintf(title, sizeof title, "%s of %s on %s", mc_moves[q->strategy->collective].name,
             mc_print_bytes(q->bytes).text, mc_show_mesh(q->mesh));
    return mc_svg_head(out, MARGIN, g->w - 2 * MARGIN, title,
                       mc_show_strategy(q->strategy, q->mesh), about);
}

static double height_of(const mc_page_t *g, const char *about)
{
    int32_t phases = 0;
    for (int32_t i = 0; i < g->m->q->strategy->n_phases; i++)
        phases += has_phase(g, i);
    return draw_head(g, NULL, about) + g->frames.level[0].h + (n_rows ? (n_rows + 1.5) * ROW : 0) +
           (phases + 3) * ROW;
}

static int draw(mc_page_t *g, const char *about)
{
    char style[1024];
    mc_text_t text = mc_text(style, sizeof style);
    mc_text_add(&text,
                ".p{font-size:10px}.h{fill:#4b1d7f}.o{fill:#4b1d7f;stroke:#5b6470}.f{fill:#c6d3df}"
                ".w{fill:none;stroke:#4b1d7f;stroke-width:3;stroke-linejoin:round}"
                ".b{fill:none;stroke:#5b6470;stroke-width:1.5}.x{stroke:#8a93a0}"
                ".k{stroke:#1f2530;stroke-width:1.5;stroke-dasharray:3 3}");
    for (int32_t i = 0; i < MC_SVG_COLORS; i++)
        mc_text_add(&text, ".c%d{fill:%s}", i, mc_svg_color[i]);
    mc_svg_begin(g->out, g->w, height_of(g, about), &mc_svg_light, style);
    g->top = draw_head(g, g->out, about);
    const int status = mc_motion_moves(g->m->q->mesh) ? mc_motion_draw_mesh(g) : MESHCOLL_OK;
    g->top += g->frames.level[0].h;
    draw_rows(g);
    draw_time_line(g);
    draw_legend(g);
    mc_svg_end(g->out);
    return status;
}

int mc_motion_draw(mc_motion_t *m, const mc_simulated_t *s, double bound, const char *about,
                   const char *path)
{
    mc_output_t out;
    const int status = m->failed ? mc_fail_memory("a picture") : mc_output_open(path, &out);
    if (status)
        return status;
    mc_page_t g = {.out = out.stream, .m = m, .s = s, .bound = bound, .ps = s->ps > 0 ? s->ps : 1};
    find_rows(&g);
    lay_out(&g);
    return mc_output_close(&out, draw(&g, about));
}
