/* The layout of the picture of a trace. */
#include "tools/trace/trace_svg.h"

enum { LEAST_PITCH = 44, MOST_PITCH = 90 };

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

bool mc_page_has_messages(const mc_drawing_t *g, int32_t phase)
{
    for (int32_t i = 0; i < g->n_arrows; i++)
        if (g->arrow[i].phase == phase)
            return true;
    return false;
}

void mc_page_count(mc_drawing_t *g)
{
    for (int32_t rank = 0; rank < g->picture->mesh->size; rank++) {
        int32_t column;
        const int32_t row = row_of(g, rank, &column);
        g->rows = row >= g->rows ? row + 1 : g->rows;
        g->columns = column >= g->columns ? column + 1 : g->columns;
    }
}

void mc_page_lay_out(mc_drawing_t *g)
{
    const int32_t left = g->levels ? MC_PAGE_LEFT : MC_PAGE_FRAME_PAD;
    const double all = MC_PAGE_WIDTH - 2 * MC_PAGE_MARGIN;
    for (int32_t phase = 0; phase < g->picture->strategy->n_phases; phase++)
        g->n_panels += mc_page_has_messages(g, phase);
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
