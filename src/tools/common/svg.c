#include "tools/common/svg.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

const mc_svg_look_t mc_svg_light = {"#1f2530", "#5b6470", "#fafaf8"};
const char *const mc_svg_color[MC_SVG_COLORS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#5b6470", "#8c564b"};

void mc_svg_begin(FILE *out, double width, double height, const mc_svg_look_t *look,
                  const char *style)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\">\n"
            "<style>text{font-family:Inter,Helvetica,Arial,sans-serif;fill:%s}"
            ".t{font-size:26px;font-weight:600}.n{font-size:14px;font-weight:600}"
            ".r{font-size:17px;font-weight:600}.l{font-size:14px}.s{font-size:12.5px;fill:%s}"
            "%s</style>\n",
            width, height, width, height, look->ink, look->faint, style);
    if (look->background)
        fprintf(out, "<rect width=\"100%%\" height=\"100%%\" fill=\"%s\"/>\n", look->background);
}

void mc_svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

void mc_svg_escape(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else
            fputc(*text, out);
    }
}

void mc_svg_text(FILE *out, double x, double y, const char *attributes, double width,
                 const char *text)
{
    char cut[512];
    const size_t most = width > 0 ? fmin(width / MC_SVG_GLYPH, sizeof cut - 8) : sizeof cut - 8;
    size_t n = strlen(text);
    if (n == 0 || (n > most && most < 4))
        return;
    const bool whole = n <= most;
    for (n = whole ? n : most - 1; !whole && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--; /* not within a character */
    snprintf(cut, sizeof cut, "%.*s%s", (int)n, text, whole ? "" : "…");
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    mc_svg_escape(out, cut);
    fputs("</text>\n", out);
}

void mc_svg_box(FILE *out, double x, double y, double width, double height, double radius,
                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%g\" ", x, y,
            width, height, radius);
    vfprintf(out, format, args);
    fputs("/>\n", out);
    va_end(args);
}

double mc_svg_head(FILE *out, double x, double width, const char *title, const char *strategy,
                   const char *about)
{
    const size_t most = (size_t)(width / MC_SVG_GLYPH);
    char line[512];
    double y = 66;
    if (out)
        mc_svg_text(out, x, 42, "class=\"t\"", width / 2, title);
    for (const char *at = strategy; *at; y += 18) {
        size_t n = strlen(at);
        for (n = n > most ? most : n; n > 1 && at[n] && at[n] != ' ';)
            n--;
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        if (out)
            mc_svg_text(out, x, y, "class=\"l\"", 0, line);
        at += n + (at[n] == ' ');
    }
    if (out)
        mc_svg_text(out, x, y + 3, "class=\"s\"", width, about);
    return y + 24;
}

/* Steps of 1, 2 or 5 times a power of ten, in one unit. */
void mc_svg_axis(FILE *out, double x, double y, double width, double from, double to)
{
    static const char *const units[] = {"s", "ms", "us", "ns", "ps"};
    const int32_t unit = (int32_t)fmin(4, fmax(0, ceil(-log10(to) / 3 - 1e-9)));
    const double scale = pow(1000, unit), span = (to - from) * scale,
                 power = pow(10, floor(log10(span / 4)));
    const double step = power * (span / power > 20 ? 5 : span / power > 8 ? 2 : 1);
    char text[64];
    fprintf(out, "<path d=\"M%.0f %.0fh%.0f\" class=\"x\"/>\n", x, y, width);
    const double first = ceil(from * scale / step);
    for (int32_t i = 0; i <= 10 && (first + i) * step <= to * scale; i++) {
        const double mark = (first + i) * step, at = x + (mark - from * scale) / span * width;
        mc_number_print(text, sizeof text, "%g %s", mark, units[unit]);
        fprintf(out, "<path d=\"M%.1f %.0fv5\" class=\"x\"/>\n", at, y);
        mc_svg_text(out, at, y + 18, "class=\"s\" text-anchor=\"middle\"", 0, text);
    }
}
