#include "mesh/link/link_text.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* Divisors, largest unit first: 7 / 1e6 is the double nearest to 7 us, 7 * 1e-6 need not be. */
static const mc_unit_t times[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}, {"ps", 1e12}};
static const mc_unit_t bits[] = {{"bit", 0.125},    {"Tbit", 0.125e12}, {"Gbit", 0.125e9},
                                 {"Mbit", 0.125e6}, {"Kbit", 125},      {"kbit", 125}};

mc_word_t mc_word_cut(mc_word_t *rest, char separator)
{
    const char *const end = rest->n ? memchr(rest->at, separator, rest->n) : NULL;
    const mc_word_t part = {rest->at, end ? (size_t)(end - rest->at) : rest->n};
    const size_t used = end ? part.n + 1 : part.n;
    rest->at += used;
    rest->n -= used;
    return part;
}

mc_word_t mc_word_next(mc_word_t *line)
{
    while (line->n > 0 && strchr(" \t\r", *line->at))
        line->at++, line->n--;
    mc_word_t word = {line->at, 0};
    while (word.n < line->n && !strchr(" \t\r", word.at[word.n]))
        word.n++;
    line->at += word.n;
    line->n -= word.n;
    return word;
}

static const mc_unit_t *find_unit(mc_word_t word, const mc_unit_t *unit, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mc_word_is(word, unit[i].name))
            return &unit[i];
    return NULL;
}

static const mc_unit_t *find_size(mc_word_t word)
{
    const mc_unit_t *const bytes = find_unit(word, mc_byte_units, MC_BYTE_UNITS);
    return bytes ? bytes : find_unit(word, bits, MC_COUNT(bits));
}

bool mc_read_number(mc_word_t *word, double *number)
{
    char copy[64], *end;
    const size_t n = word->n < sizeof copy - 1 ? word->n : sizeof copy - 1;
    memcpy(copy, word->at, n);
    copy[n] = '\0';
    if (!isdigit((unsigned char)copy[0]) && copy[0] != '.')
        return false;
    *number = mc_number_read(copy, &end);
    word->at += end - copy;
    word->n -= (size_t)(end - copy);
    return end != copy && isfinite(*number);
}

/* A number that underflows to 0 becomes infinite, so that the range check refuses it: 0 is a valid
 * value. */
static double refuse_underflow(double number, double value)
{
    return number > 0 && value == 0 ? INFINITY : value;
}

static bool read_seconds(mc_word_t word, double *seconds)
{
    double number;
    if (!mc_read_number(&word, &number))
        return false;
    const mc_unit_t *const unit = find_unit(word, times, MC_COUNT(times));
    if (number == 0 && word.n == 0)
        *seconds = 0;
    else if (unit)
        *seconds = refuse_underflow(number, number / unit->value);
    else
        return false;
    return true;
}

static bool read_cost(mc_word_t word, double *seconds)
{
    double number;
    if (!mc_read_number(&word, &number))
        return false;
    if (number == 0 && word.n == 0) {
        *seconds = 0;
        return true;
    }
    const mc_word_t above = mc_word_cut(&word, '/');
    const mc_unit_t *const time = find_unit(above, times, MC_COUNT(times));
    const mc_unit_t *const below = find_size(word);
    const mc_unit_t *const size = find_size(above);
    if (time && below)
        *seconds = refuse_underflow(number, number / time->value / below->value);
    else if (size && mc_word_is(word, "s") && number > 0)
        *seconds = refuse_underflow(number, 1 / (number * size->value));
    else
        return false;
    return true;
}

void mc_link_suggest(mc_word_t word, mc_text_t *text)
{
    static const char *const bits_a_second[] = {"bps", "b/s", "bits/s", "bit", "bit/sec"};
    mc_word_t unit = word;
    double number;
    if (!mc_read_number(&unit, &number) || unit.n == 0 || !strchr("kKMGT", unit.at[0]))
        return;
    const int n = (int)(unit.at - word.at) + 1; /* with K, M, G or T */
    unit = (mc_word_t){unit.at + 1, unit.n - 1};
    bool known = unit.n == 0;
    for (size_t i = 0; i < MC_COUNT(bits_a_second); i++)
        known |= mc_word_is(unit, bits_a_second[i]);
    if (known)
        mc_text_add(text, ": write %.*sbit/s", n, word.at);
    if (unit.n == 0)
        mc_text_add(text, ", or %.*sB/s for bytes", n, word.at);
    if (mc_word_is(unit, "Bps"))
        mc_text_add(text, ": write %.*sB/s", n, word.at);
}

static bool read_size(mc_word_t word, double *bytes)
{
    double number;
    if (!mc_read_number(&word, &number))
        return false;
    const mc_unit_t *const unit = find_size(word);
    if (number != 0 && !unit)
        return false;
    *bytes = unit ? number * unit->value : 0;
    return true;
}

/* Does `number`, printed with `digits` digits, read back as `same`? */
static bool written(double number, int digits, const char *unit, bool (*read)(mc_word_t, double *),
                    double same, char buffer[64])
{
    double again;
    mc_number_print(buffer, 64, "%.*g%s", digits, number, unit);
    return read(mc_word_of(buffer), &again) && again == same;
}

static const mc_unit_t *time_unit(double seconds)
{
    size_t u = 0;
    while (u + 1 < MC_COUNT(times) && seconds * times[u].value < 1)
        u++;
    return &times[u];
}

static void write_seconds(double seconds, mc_text_t *text)
{
    char buffer[64] = "0";
    const mc_unit_t *const unit = time_unit(seconds);
    bool done = seconds == 0;
    for (int digits = 3; digits <= 17 && !done; digits++)
        done = written(seconds * unit->value, digits, unit->name, read_seconds, seconds, buffer);
    if (!done)
        mc_number_print(buffer, sizeof buffer, "%.17gs", seconds);
    mc_text_add(text, "%s", buffer);
}

/* A rate or a time, whichever is shorter. */
static void write_cost(double seconds, mc_text_t *text)
{
    char buffer[64] = "0", rate_name[8], time_name[8];
    const mc_unit_t *const time = time_unit(seconds);
    size_t u = 0;
    while (u + 1 < MC_DECIMAL_UNITS && seconds * mc_byte_units[u].value > 1)
        u++;
    const double rate = 1 / seconds / mc_byte_units[u].value, per_byte = seconds * time->value;
    snprintf(rate_name, sizeof rate_name, "%s/s", mc_byte_units[u].name);
    snprintf(time_name, sizeof time_name, "%s/B", time->name);
    bool done = seconds == 0;
    for (int digits = 3; digits <= 17 && !done; digits++)
        done = written(rate, digits, rate_name, read_cost, seconds, buffer) ||
               written(per_byte, digits, time_name, read_cost, seconds, buffer);
    if (!done)
        mc_number_print(buffer, sizeof buffer, "%.17gs/B", seconds);
    mc_text_add(text, "%s", buffer);
}

static void write_size(double bytes, mc_text_t *text)
{
    mc_text_add(text, "%.17gB", bytes);
}

static void show_size(mc_table_t *table, double bytes)
{
    mc_table_add(table, "%s", bytes > 0 ? mc_print_bytes(bytes).text : "-");
}

/* Links ------------------------------------------------------------------------------------------ */

const mc_link_kind_t mc_link_times = {
    1e-30,        1e6,           "seconds",           "a time as in 7us, 300ns or 1ms",
    read_seconds, write_seconds, mc_table_add_seconds};
const mc_link_kind_t mc_link_costs = {1e-30,
                                      1e3,
                                      "seconds a byte",
                                      "a rate as in 25GB/s or 200Mbit/s, or a time as in 40ns/KiB",
                                      read_cost,
                                      write_cost,
                                      mc_table_add_rate};
const mc_link_kind_t mc_link_sizes = {0.125,     0x1p63,     "bytes",  "a size as in 64KiB, or 0",
                                      read_size, write_size, show_size};

#define LINK(name, head, kind)                                 \
    {                                                          \
#name, head, &(kind), false, offsetof(mc_link_t, name) \
    }
#define CORRECTION(name, head, kind)                                \
    {                                                               \
#name, head, &(kind), true, offsetof(mc_correction_t, name) \
    }
/* clang-format off */
const mc_link_field_t mc_link_fields[MC_LINK_FIELDS] = {
    LINK(alpha, "α, a message", mc_link_times),
    LINK(gap, "g, in a row", mc_link_times),
    LINK(beta, "1/β, bandwidth", mc_link_costs),
    LINK(gamma, "1/γ, sums", mc_link_costs),
    LINK(call, "a call", mc_link_times),
    CORRECTION(window, "window", mc_link_sizes),
    CORRECTION(burst, "burst", mc_link_sizes),
    CORRECTION(cpu, "cpu, of all", mc_link_times),
    CORRECTION(eager, "eager", mc_link_sizes),
};
/* clang-format on */
