/* What the files of a trace's picture share. In pixels. */
#ifndef MC_TOOLS_TRACE_SVG_H
#define MC_TOOLS_TRACE_SVG_H

#include "tools/trace/trace.h"

enum {
    MC_PAGE_WIDTH = 900,
    MC_PAGE_MARGIN = 24,
    MC_PAGE_HEAD = 112, /* the title, above all panels */
    MC_PAGE_FOOT = 34,
    MC_PAGE_PANEL = 108, /* a panel's texts, above its ranks */
    MC_PAGE_PANEL_GAP = 26,
    MC_PAGE_LEFT = 60,     /* a frame's name, left of its ranks */
    MC_PAGE_ARC_ROOM = 34, /* above a row's tiles, inside the frame */
    MC_PAGE_TILE = 30,     /* how high a rank's tile is */
    MC_PAGE_FRAME_PAD = 9, /* below them */
    MC_PAGE_ROW_GAP = 30,  /* between frames */
    MC_PAGE_NEST = 8,      /* between a frame and those in it */
    MC_PAGE_NEST_TITLE = 16
};

typedef struct {
    int32_t from, to, phase;
    uint32_t step;
} mc_arrow_t;

typedef struct {
    FILE *out;
    const mc_picture_t *picture;
    mc_arrow_t *arrow; /* by phase, ranks and step */
    int32_t n_arrows;
    int32_t columns, rows, levels;   /* levels: dimensions that are frames */
    int32_t n_panels, panels_in_row; /* a panel for each phase that has messages */
    bool labels;                     /* arrows first, then their labels */
    double panel_w, panel_h, pitch, tile_w, frame_w;
} mc_drawing_t;

/* The middle of a rank's tile. */
typedef struct {
    double x, y;
    int32_t row, column;
} mc_page_place_t;

/* trace_arrows.c: rows that a frame of this level has, and the middle of a row's tiles below the panel's head. */
int32_t mc_page_rows_in(const mc_drawing_t *drawing, int32_t level);
double mc_page_row_y(const mc_drawing_t *drawing, int32_t row);
/* Returns where a rank lies in the panel at (x, y). */
mc_page_place_t mc_page_place_of(const mc_drawing_t *drawing, int32_t rank, double x, double y);

/* The messages of a phase in a group of class a, a path each, and then their labels. */
void mc_draw_messages(const mc_drawing_t *drawing, int32_t phase, double x, double y);

#endif
