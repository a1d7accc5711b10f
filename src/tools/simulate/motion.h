/* The picture of a simulation: it moves where the ranks are few. */
#ifndef MC_TOOLS_MOTION_H
#define MC_TOOLS_MOTION_H

#include "simulate/simulate.h"
#include "tools/common/frames.h"

/* Ranks that are drawn one by one, and messages; the parts of the time that have a load, and those of the rest at the
 * end. */
enum { MC_MOTION_RANKS = 64, MC_MOTION_MESSAGES = 4000, MC_MOTION_PARTS = 48, MC_MOTION_REST = 6 };
enum { MC_MOTION_PERIOD = MC_MOTION_PARTS + MC_MOTION_REST, MC_MOTION_MARGIN = 32 };

/* What is recorded. The caller sets `q`, has the two functions below called (mc_simulation_t), and frees with
 * mc_motion_free. */
typedef struct {
    const mc_simulation_t *q;
    bool failed;
    mc_sent_t *sent; /* of up to MC_MOTION_RANKS ranks */
    mc_busiest_t *link;
    uint32_t n_sent, n_links, sent_capacity, link_capacity;
} mc_motion_t;

void mc_motion_sent(mc_motion_t *motion, const mc_sent_t *message);
void mc_motion_load(void *motion, const mc_busiest_t *link);
void mc_motion_free(mc_motion_t *motion);
static inline bool mc_motion_moves(const mc_mesh_t *mesh)
{
    return mesh->size <= MC_MOTION_RANKS;
}

/* `about`: a line below the title and the strategy. Orders what is recorded anew. ERR_IO or ERR_NO_MEMORY. */
int mc_motion_draw(mc_motion_t *motion, const mc_simulated_t *simulated, double bound,
                   const char *about, const char *path);

/* The page as it is drawn. */
typedef struct {
    FILE *out;
    mc_motion_t *m;
    const mc_simulated_t *s;
    int64_t ps; /* of the simulation; 1 where links without latency carried nothing in no time */
    double w, top, seconds, bound; /* top: of what comes next; seconds: of a period */
    mc_frames_t frames;
} mc_page_t;

/* motion_mesh.c: how much a thing of a load from 0 to 1 covers. */
double mc_motion_opacity(double load);
/* The mesh at `top`, and its messages. */
int mc_motion_draw_mesh(mc_page_t *page);

#endif
