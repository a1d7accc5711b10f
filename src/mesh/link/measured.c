/* The table of measured strategies: times between its sizes, its text, its check. */
#include "mesh/link/link_text.h"

#include <string.h>

bool mc_measured_has(const mc_measured_t *table, meshcoll_collective_t collective)
{
    for (int32_t i = 0; i < table->n_rows; i++)
        if (table->row[i].collective == collective)
            return true;
    return false;
}

double mc_measured_seconds(const mc_measured_t *table, const mc_measured_row_t *row, double bytes)
{
    const double *const size = table->bytes;
    const int32_t last = table->n_sizes - 1;
    int32_t i = 0;
    if (bytes <= size[0])
        return row->seconds[0];
    if (bytes >= size[last])
        return row->seconds[last] * (bytes / size[last]);
    while (size[i + 1] <= bytes)
        i++;
    const double share = (bytes - size[i]) / (size[i + 1] - size[i]);
    return row->seconds[i] + share * (row->seconds[i + 1] - row->seconds[i]);
}

int mc_measured_add(mc_measured_t *table, meshcoll_collective_t collective, const char *strategy,
                    const double *seconds)
{
    if (table->n_rows == MC_MEASURED_ROWS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "a table of measured strategies has %d rows at most", MC_MEASURED_ROWS);
    if (strlen(strategy) >= MC_MEASURED_TEXT)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "a measured strategy has fewer than %d characters; got '%s'",
                       MC_MEASURED_TEXT, strategy);
    mc_measured_row_t *const row = &table->row[table->n_rows++];
    *row = (mc_measured_row_t){.collective = collective};
    strcpy(row->strategy, strategy);
    memcpy(row->seconds, seconds, (size_t)table->n_sizes * sizeof *seconds);
    return MESHCOLL_OK;
}

/* Check ------------------------------------------------------------------------------------------ */

static int check_sizes(const mc_measured_t *table)
{
    double before = 0;
    for (int32_t i = 0; i < table->n_sizes; i++) {
        const double bytes = table->bytes[i];
        if (!mc_link_is_within(&mc_link_sizes, bytes) || !(bytes > before))
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "the sizes of measured strategies must ascend, from %g to %g bytes; got "
                           "%g after %g",
                           mc_link_sizes.least, mc_link_sizes.most, bytes, before);
        before = bytes;
    }
    return MESHCOLL_OK;
}

static int check_row(const mc_measured_t *table, const mc_measured_row_t *row)
{
    if ((unsigned)row->collective >= MESHCOLL_COLLECTIVES || row->strategy[0] == '\0' ||
        !memchr(row->strategy, '\0', sizeof row->strategy))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "a measured strategy has a collective and a text; got collective %d",
                       (int)row->collective);
    for (int32_t i = 0; i < table->n_sizes; i++)
        if (row->seconds[i] == 0 || !mc_link_is_within(&mc_link_times, row->seconds[i]))
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "a measured strategy takes %g to %g seconds at each size; %s takes %g",
                           mc_link_times.least, mc_link_times.most, row->strategy, row->seconds[i]);
    return MESHCOLL_OK;
}

int mc_measured_check(const mc_measured_t *table)
{
    if (table->n_sizes < 0 || table->n_sizes > MC_MEASURED_SIZES || table->n_rows < 0 ||
        table->n_rows > MC_MEASURED_ROWS || (table->n_rows > 0 && table->n_sizes == 0))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "a table of measured strategies has up to %d sizes and %d rows; got %d and "
                       "%d",
                       MC_MEASURED_SIZES, MC_MEASURED_ROWS, table->n_sizes, table->n_rows);
    int status = check_sizes(table);
    for (int32_t i = 0; i < table->n_rows && !status; i++)
        status = check_row(table, &table->row[i]);
    return status;
}

/* Text: "64B/4KiB;bcast bcast:star(gpu) 1.2us/3us;…" ----------------------------------------------- */

/* Reads numbers with a slash between them; returns how many, or -1. */
static int32_t read_all(mc_word_t text, const mc_link_kind_t *kind,
                        double number[MC_MEASURED_SIZES])
{
    int32_t n = 0;
    while (text.n > 0)
        if (n == MC_MEASURED_SIZES || !kind->read(mc_word_cut(&text, '/'), &number[n++]))
            return -1;
    return n;
}

static bool read_collective(mc_word_t word, meshcoll_collective_t *collective)
{
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        if (mc_word_is(word, meshcoll_collective_name((meshcoll_collective_t)c))) {
            *collective = (meshcoll_collective_t)c;
            return true;
        }
    return false;
}

/* Cuts the part behind the last space off `text`. */
static mc_word_t cut_last(mc_word_t *text)
{
    size_t n = text->n;
    while (n > 0 && text->at[n - 1] != ' ')
        n--;
    const mc_word_t last = {text->at + n, text->n - n};
    text->n = n > 0 ? n - 1 : 0;
    return last;
}

static int parse_row(mc_word_t text, mc_measured_t *table)
{
    char strategy[MC_MEASURED_TEXT];
    double seconds[MC_MEASURED_SIZES];
    meshcoll_collective_t collective = MESHCOLL_COLLECTIVES;
    mc_word_t rest = text;
    const bool known = read_collective(mc_word_cut(&rest, ' '), &collective);
    const mc_word_t times = cut_last(&rest);
    if (!known || rest.n == 0 || rest.n >= sizeof strategy ||
        read_all(times, &mc_link_times, seconds) != table->n_sizes)
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "a measured strategy is COLLECTIVE STRATEGY TIME/…, a time for each of the "
                       "%d sizes; got '%.*s'",
                       table->n_sizes, (int)text.n, text.at);
    memcpy(strategy, rest.at, rest.n);
    strategy[rest.n] = '\0';
    return mc_measured_add(table, collective, strategy, seconds);
}

int mc_measured_parse(mc_word_t text, mc_measured_t *table)
{
    const mc_word_t sizes = mc_word_cut(&text, ';');
    int status = MESHCOLL_OK;
    table->n_sizes = read_all(sizes, &mc_link_sizes, table->bytes);
    if (table->n_sizes < 1)
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "measured is SIZE/…;COLLECTIVE STRATEGY TIME/…;… with up to %d sizes; got "
                       "'%.*s'",
                       MC_MEASURED_SIZES, (int)sizes.n, sizes.at);
    while (text.n > 0 && !status)
        status = parse_row(mc_word_cut(&text, ';'), table);
    return status;
}

static void print_all(const double *number, int32_t n, const mc_link_kind_t *kind, mc_text_t *text)
{
    for (int32_t i = 0; i < n; i++) {
        mc_text_add(text, i ? "/" : "");
        kind->write(number[i], text);
    }
}

void mc_measured_print(const mc_measured_t *table, mc_text_t *text)
{
    if (table->n_sizes == 0)
        return;
    mc_text_add(text, ",measured=");
    print_all(table->bytes, table->n_sizes, &mc_link_sizes, text);
    for (int32_t i = 0; i < table->n_rows; i++) {
        const mc_measured_row_t *const row = &table->row[i];
        mc_text_add(text, ";%s %s ", meshcoll_collective_name(row->collective), row->strategy);
        print_all(row->seconds, table->n_sizes, &mc_link_times, text);
    }
}
