#include "base/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mc_table_t mc_table(const char *align)
{
    return (mc_table_t){.align = align, .columns = (uint32_t)strlen(align)};
}

static void add_cell(mc_table_t *table, const char *text)
{
    char *const copy = strdup(text);
    char **const cell =
        copy ? mc_grown(table->cell, table->n_cells, &table->capacity, sizeof *cell) : NULL;
    table->failed = !cell;
    if (!cell) {
        free(copy);
        return;
    }
    table->cell = cell;
    table->cell[table->n_cells++] = copy;
}

void mc_table_add(mc_table_t *table, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    if (table->failed)
        return;
    va_start(args, format);
    const locale_t before = mc_number_enter();
    const int n = vasprintf(&text, format, args);
    mc_number_leave(before);
    va_end(args);
    char *rest = n < 0 ? NULL : text;
    table->failed = n < 0;
    while (rest && !table->failed)
        add_cell(table, strsep(&rest, "\t"));
    free(n < 0 ? NULL : text);
}

/* The number of characters of UTF-8 text. */
static int width_to(const char *text, const char *end)
{
    int width = 0;
    for (; text < end; text++)
        width +=
            ((unsigned char)*text & 0xc0) != 0x80; /* skip the continuation bytes of a character */
    return width;
}

static int text_width(const char *text)
{
    return width_to(text, text + strlen(text));
}

int mc_print_words(const char *text, int at, int indent, FILE *out)
{
    bool first = true;
    while (*text) {
        const char *const end = text + strcspn(text, " ");
        const int width = width_to(text, end);
        if (!first && at + 1 + width > MC_PAGE) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', out);
            at++;
        }
        fwrite(text, 1, (size_t)(end - text), out);
        at += width;
        first = false;
        text = end + strspn(end, " ");
    }
    return at;
}

static int width_of(const mc_table_t *table, uint32_t column)
{
    int widest = 0;
    for (uint32_t i = column; i < table->n_cells; i += table->columns) {
        const int width = text_width(table->cell[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Write spaces only before the text that follows them, so that no line ends in spaces. */
static void print_row(const mc_table_t *table, uint32_t first, const int *width, int indent,
                      FILE *out)
{
    int due = indent, at = 0;
    for (uint32_t c = 0; c < table->columns && first + c < table->n_cells; c++) {
        const char *const text = table->cell[first + c];
        const int gap = width[c] - text_width(text);
        const bool right = table->align[c] == 'r';
        if (*text) {
            fprintf(out, "%*s", due + (right ? gap : 0), "");
            at += due + (right ? gap : 0);
            if (table->breaks && c + 1 == table->columns)
                mc_print_words(text, at, at, out);
            else
                fputs(text, out);
            at += text_width(text);
        }
        due = (*text ? (right ? 0 : gap) : due + width[c]) + 2;
    }
    fputc('\n', out);
}

int mc_table_print(mc_table_t *table, int indent, FILE *out)
{
    int *const width = calloc(table->columns, sizeof *width);
    table->failed = table->failed || !width;
    for (uint32_t c = 0; width && c < table->columns; c++)
        width[c] = width_of(table, c);
    for (uint32_t i = 0; width && i < table->n_cells; i += table->columns)
        print_row(table, i, width, indent, out);
    free(width);
    for (uint32_t i = 0; i < table->n_cells; i++)
        free(table->cell[i]);
    free(table->cell);
    const bool failed = table->failed;
    *table = mc_table(table->align);
    return failed ? mc_fail_memory("a table") : MESHCOLL_OK;
}

mc_printed_t mc_print_seconds(double seconds)
{
    mc_printed_t printed;
    static const struct {
        const char *name;
        double seconds;
    } unit[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    size_t u = 0;
    /* 999.6 us prints as 1.00 ms: three digits would round it up anyway */
    while (u + 1 < MC_COUNT(unit) && seconds < 0.9995 * unit[u].seconds)
        u++;
    const double value = seconds / unit[u].seconds;
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    if (seconds <= 0)
        snprintf(printed.text, sizeof printed.text, "0 s");
    else
        mc_number_print(printed.text, sizeof printed.text, "%.*f %s", decimals, value,
                        unit[u].name);
    return printed;
}

void mc_table_add_rate(mc_table_t *table, double seconds)
{
    if (seconds > 0)
        mc_table_add(table, "%.4g GB/s", 1e-9 / seconds);
    else
        mc_table_add(table, "-");
}

void mc_table_add_seconds(mc_table_t *table, double seconds)
{
    mc_table_add(table, "%s", mc_print_seconds(seconds).text);
}

mc_printed_t mc_print_count(uint64_t count)
{
    mc_printed_t printed;
    char digits[32];
    const int n = snprintf(digits, sizeof digits, "%" PRIu64, count);
    mc_text_t text = mc_text(printed.text, sizeof printed.text);
    for (int i = 0; i < n; i++)
        mc_text_add(&text, "%s%c", i > 0 && (n - i) % 3 == 0 ? "," : "", digits[i]);
    return printed;
}
