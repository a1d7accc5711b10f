#include "tools/common/frames.h"

#include <math.h>
#include <string.h>

static void place_items(mc_frame_level_t *l, double gap, int32_t columns)
{
    l->columns = columns;
    l->rows = (l->shown + columns - 1) / columns;
    l->w = columns * l->item_w + (columns - 1) * gap;
    l->h = l->rows * (l->item_h + l->below);
}

/* The columns that bring the whole nearest to the shape wanted, with few empty places. */
static void choose_columns(mc_frame_level_t *l, double gap, double shape)
{
    int32_t best = 1;
    double least = INFINITY;
    for (int32_t c = 1; c <= l->shown; c++) {
        place_items(l, gap, c);
        const double off =
            fabs(log(l->w / l->h / shape)) + 3.0 * (c * l->rows - l->shown) / (c * l->rows);
        if (off < least) {
            least = off;
            best = c;
        }
    }
    place_items(l, gap, best);
}

void mc_frames_lay_out(mc_frames_t *f)
{
    for (int32_t d = f->mesh->ndims - 1; d >= 0; d--) {
        mc_frame_level_t *const l = &f->level[d];
        const int32_t extent = f->mesh->dim[d].extent;
        const bool innermost = d == f->mesh->ndims - 1;
        *l = (mc_frame_level_t){.shown = extent < f->most ? extent : f->most,
                                .below = innermost ? f->below : f->outer_below};
        l->item_w = innermost ? f->cell_w : l[1].w + 2 * MC_FRAME_PAD - 6;
        l->item_h = innermost ? f->cell_h : l[1].h + MC_FRAME_HEAD + 7;
        choose_columns(l, f->gap, innermost ? f->shape : f->outer_shape);
    }
}

/* How many things there are along dimension d, from the place `first` on. */
static int32_t count_things(const mc_mesh_t *mesh, int32_t d, int32_t first)
{
    int32_t start;
    if (!mesh->ragged || d < MC_RAGGED_FOLD)
        return mesh->dim[d].extent;
    return mc_mesh_span(mesh, d, mc_mesh_rank_at(mesh, first), &start);
}

/* The things along dimension d among the places from `first` on. */
static void walk_level(const mc_frames_t *f, int32_t d, double x, double y, int32_t first)
{
    const mc_frame_level_t *const l = &f->level[d];
    const int32_t n = count_things(f->mesh, d, first), shown = n < l->shown ? n : l->shown;
    const mc_frame_item_t all = {.d = d, .place = first, .x = x, .y = y};
    if (f->all)
        f->all(f->context, &all, shown);
    for (int32_t i = 0; i < shown; i++) {
        mc_frame_item_t thing = {
            .d = d, .index = i, .place = first + i * mc_mesh_stride(f->mesh, d)};
        thing.rank = mc_mesh_rank_at(f->mesh, thing.place);
        thing.x = x + i % l->columns * (l->item_w + f->gap);
        thing.y = y + i / l->columns * (l->item_h + l->below);
        thing.hidden = shown < n && i == shown - 1 ? n - shown + 1 : 0;
        f->one(f->context, &thing);
        if (!thing.hidden && d < f->mesh->ndims - 1)
            walk_level(f, d + 1, thing.x + MC_FRAME_PAD, thing.y + MC_FRAME_HEAD, thing.place);
    }
}

void mc_frames_walk(const mc_frames_t *f, double x, double y)
{
    walk_level(f, 0, x, y, 0);
}

void mc_frames_draw(const mc_frames_t *f, FILE *out, const mc_frame_item_t *frame, const char *note)
{
    const mc_frame_level_t *const l = &f->level[frame->d];
    char name[64];
    snprintf(name, sizeof name, "%s %d", f->mesh->dim[frame->d].name, frame->index);
    mc_svg_box(out, frame->x, frame->y, l->item_w, l->item_h, 10,
               "fill=\"%s\" stroke=\"#c3c8d1\" stroke-width=\"1.2\"",
               frame->d % 2 ? "#f4f6fa" : "#ffffff");
    mc_svg_text(out, frame->x + 14, frame->y + 21, "class=\"n\"", 0, name);
    mc_svg_text(out, frame->x + l->item_w - 14, frame->y + 21, "class=\"s\" text-anchor=\"end\"",
                l->item_w - 42 - (double)strlen(name) * MC_SVG_GLYPH, note);
}
