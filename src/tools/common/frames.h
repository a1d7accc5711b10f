/* How a mesh lies on a picture: dimensions as nested frames, ranks as tiles in the innermost ones. In pixels. */
#ifndef MC_TOOLS_FRAMES_H
#define MC_TOOLS_FRAMES_H

#include "mesh/mesh.h"
#include "tools/common/svg.h"

enum { MC_FRAME_PAD = 20, MC_FRAME_HEAD = 30 }; /* left of what is in a frame, and above it */

/* How one dimension's things are laid out in what holds them. */
typedef struct {
    int32_t shown, columns, rows; /* the last one shown represents the rest */
    double item_w, item_h, below; /* of a thing, and the room below it */
    double w, h;                  /* of all of them */
} mc_frame_level_t;

/* A thing along dimension d: a rank, or a frame around those from `rank` on. */
typedef struct {
    int32_t d, index, place, rank;
    double x, y;
    int32_t hidden; /* things that it stands for; 0: for itself */
} mc_frame_item_t;

/* What the caller sets is above `level`. */
typedef struct {
    const mc_mesh_t *mesh;
    int32_t most; /* things shown of a dimension */
    double cell_w, cell_h, gap;
    double below, shape; /* of ranks: the room below a row, and width / height wanted of them all */
    double outer_below, outer_shape; /* of frames */
    /* Called for all things along a dimension in one frame, and for each of them, outer ones first; `all` may be NULL. */
    void (*all)(void *context, const mc_frame_item_t *first, int32_t shown);
    void (*one)(void *context, const mc_frame_item_t *thing);
    void *context;
    mc_frame_level_t level[MC_MAX_DIMS];
} mc_frames_t;

void mc_frames_lay_out(mc_frames_t *frames);
void mc_frames_walk(const mc_frames_t *frames, double x, double y);
/* Draws a frame with its name, and a note at the right, which is cut to fit. */
void mc_frames_draw(const mc_frames_t *frames, FILE *out, const mc_frame_item_t *frame,
                    const char *note);

#endif
