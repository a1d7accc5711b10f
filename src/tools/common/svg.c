#include "tools/common/svg.h"

#include <stdarg.h>
#include <string.h>

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

static void put_escaped(FILE *out, const char *text)
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
    const size_t most = width > 0 ? (size_t)(width / MC_SVG_GLYPH) : sizeof cut - 8;
    const size_t n = strlen(text);
    if (n == 0)
        return;
    if (n <= most && n < sizeof cut)
        snprintf(cut, sizeof cut, "%s", text);
    else if (most < 4)
        return;
    else
        snprintf(cut, sizeof cut, "%.*s…", (int)(most < sizeof cut - 8 ? most - 1 : sizeof cut - 8),
                 text);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    put_escaped(out, cut);
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
