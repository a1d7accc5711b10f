/* Pictures as SVG: the head, texts, rectangles and a time axis; for the commands that draw. */
#ifndef MC_TOOLS_SVG_H
#define MC_TOOLS_SVG_H

#include "base/base.h"

#include <stdio.h>

/* Approximate width of a character of the text classes below, in pixels. */
enum { MC_SVG_GLYPH = 7 };

/* Colours of text, strong and faint, and of the background; NULL: transparent. */
typedef struct {
    const char *ink, *faint, *background;
} mc_svg_look_t;
extern const mc_svg_look_t mc_svg_light;

/* Okabe and Ito's colours, which the colour-blind tell apart, and two more. */
enum { MC_SVG_COLORS = 8 };
extern const char *const mc_svg_color[MC_SVG_COLORS];

/* Text classes: t title, n name, r rank, l line of a legend, s small. `style`: more rules, may be empty. */
void mc_svg_begin(FILE *out, double width, double height, const mc_svg_look_t *look,
                  const char *style);
void mc_svg_end(FILE *out);

/* `attributes`: of the element; `text` is escaped, and cut to `width` with an ellipsis (0: not cut). */
void mc_svg_text(FILE *out, double x, double y, const char *attributes, double width,
                 const char *text);
void mc_svg_box(FILE *out, double x, double y, double width, double height, double radius,
                const char *format, ...) MC_PRINTF(7, 8);
void mc_svg_escape(FILE *out, const char *text);
/* A title, a strategy in as many lines as it takes, and a line about it; returns where the rest begins. `out` NULL: draws
 * nothing. */
double mc_svg_head(FILE *out, double x, double width, const char *title, const char *strategy,
                   const char *about);
/* A time axis, in seconds; its marks are of class x. */
void mc_svg_axis(FILE *out, double x, double y, double width, double from, double to);

#endif
