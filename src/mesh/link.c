/* Link models: the text form, parsed and printed. */
#include "mesh/link_fields.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of the text; parsing never copies it. */
typedef struct {
    const char *at;
    size_t n;
} word_t;

/* Divisors, largest unit first: 7 / 1e6 is the double nearest to 7 us, 7 * 1e-6 need not be. */
static const mc_unit_t times[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}, {"ps", 1e12}};
static const mc_unit_t bits[] = {{"bit", 0.125},    {"Tbit", 0.125e12}, {"Gbit", 0.125e9},
                                 {"Mbit", 0.125e6}, {"Kbit", 125},      {"kbit", 125}};

static word_t word_of(const char *text)
{
    return (word_t){text, strlen(text)};
}

/* Cuts the part before `separator` off `rest`, and the separator. */
static word_t cut(word_t *rest, char separator)
{
    const char *const end = rest->n ? memchr(rest->at, separator, rest->n) : NULL;
    const word_t part = {rest->at, end ? (size_t)(end - rest->at) : rest->n};
    const size_t used = end ? part.n + 1 : part.n;
    rest->at += used;
    rest->n -= used;
    return part;
}

static bool is(word_t word, const char *name)
{
    return strlen(name) == word.n && memcmp(name, word.at, word.n) == 0;
}

static const mc_unit_t *find_unit(word_t word, const mc_unit_t *unit, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is(word, unit[i].name))
            return &unit[i];
    return NULL;
}

static const mc_unit_t *find_size(word_t word)
{
    const mc_unit_t *const bytes = find_unit(word, mc_byte_units, MC_BYTE_UNITS);
    return bytes ? bytes : find_unit(word, bits, MC_COUNT(bits));
}

/* Reads the number at the start of `word` and moves `word` past it. */
static bool take_number(word_t *word, double *number)
{
    char copy[64], *end;
    const size_t n = word->n < sizeof copy - 1 ? word->n : sizeof copy - 1;
    memcpy(copy, word->at, n);
    copy[n] = '\0';
    if (!isdigit((unsigned char)copy[0]) && copy[0] != '.')
        return false;
    *number = strtod(copy, &end);
    word->at += end - copy;
    word->n -= (size_t)(end - copy);
    return end != copy && isfinite(*number);
}

/* A number that underflows to 0 becomes infinite, so that the range check refuses it: 0 is a valid
 * value. */
static double kept(double number, double value)
{
    return number > 0 && value == 0 ? INFINITY : value;
}

static bool read_time(word_t word, double *seconds)
{
    double number;
    if (!take_number(&word, &number))
        return false;
    const mc_unit_t *const unit = find_unit(word, times, MC_COUNT(times));
    if (number == 0 && word.n == 0)
        *seconds = 0;
    else if (unit)
        *seconds = kept(number, number / unit->value);
    else
        return false;
    return true;
}

/* "40ns/KiB", "25GB/s", "200Mbit/s" or "0". */
static bool read_per_byte(word_t word, double *seconds)
{
    double number;
    if (!take_number(&word, &number))
        return false;
    if (number == 0 && word.n == 0) {
        *seconds = 0;
        return true;
    }
    const word_t above = cut(&word, '/');
    const mc_unit_t *const time = find_unit(above, times, MC_COUNT(times));
    const mc_unit_t *const below = find_size(word);
    const mc_unit_t *const size = find_size(above);
    if (time && below)
        *seconds = kept(number, number / time->value / below->value);
    else if (size && is(word, "s") && number > 0)
        *seconds = kept(number, 1 / (number * size->value));
    else
        return false;
    return true;
}

static bool read_share(word_t word, double *share)
{
    return take_number(&word, share) && word.n == 0;
}

static bool read_ports(word_t word, int32_t *ports)
{
    double number;
    if (is(word, "all")) {
        *ports = MC_PORTS_ALL;
        return true;
    }
    if (!take_number(&word, &number) || word.n > 0 || number < 1 || number > MC_PORTS_ALL ||
        number != (double)(int32_t)number)
        return false;
    *ports = (int32_t)number;
    return true;
}

static bool read_yes_no(word_t word, bool *yes)
{
    *yes = is(word, "yes");
    return *yes || is(word, "no");
}

static int fail_value(word_t field, word_t value, const char *wanted)
{
    return mc_fail(MESHCOLL_ERR_PARSE, "%.*s of a link is %s; got '%.*s'", (int)field.n, field.at,
                   wanted, (int)value.n, value.at);
}

static const mc_link_field_t *find_field(word_t name)
{
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++)
        if (is(name, mc_link_fields[i].name))
            return &mc_link_fields[i];
    return NULL;
}

static bool read_size(word_t word, double *bytes)
{
    double number;
    if (!take_number(&word, &number))
        return false;
    const mc_unit_t *const unit = find_size(word);
    if (number != 0 && !unit)
        return false;
    *bytes = unit ? number * unit->value : 0;
    return true;
}

static int check_range(word_t field, word_t value, const mc_link_range_t *range, double number)
{
    if (mc_link_is_within(range, number))
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_PARSE, "%.*s of a link is 0, or from %g to %g %s; got '%.*s'",
                   (int)field.n, field.at, range->least, range->most, range->unit, (int)value.n,
                   value.at);
}

static int parse_size(word_t field, word_t value, const char *wanted, double *bytes)
{
    return read_size(value, bytes) ? check_range(field, value, &mc_link_sizes, *bytes)
                                   : fail_value(field, value, wanted);
}

static int parse_share(word_t field, word_t value, double *share)
{
    return read_share(value, share) ? check_range(field, value, &mc_link_shares, *share)
                                    : fail_value(field, value, "a share of beta as in 0.2, or 0");
}

/* Starts a point: the fields that follow are those of this size. */
static int add_point(word_t field, word_t value, int32_t d, mc_links_t *links)
{
    mc_link_t *const link = &links->dim[d];
    double bytes;
    if (mc_link_has_factors(links, d))
        return mc_fail(MESHCOLL_ERR_PARSE, "sizes of a link come before its factors; got at:%.*s",
                       (int)value.n, value.at);
    if (!read_size(value, &bytes) || bytes == 0)
        return fail_value(field, value, "a vector's size as in 64KiB");
    const int status = check_range(field, value, &mc_link_sizes, bytes);
    if (status)
        return status;
    if (link->n_points == MC_LINK_POINTS)
        return mc_fail(MESHCOLL_ERR_PARSE, "a link has %d sizes at most", MC_LINK_POINTS);
    mc_link_point_t *const point = &link->point[link->n_points++];
    *point = (mc_link_point_t){.bytes = bytes};
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++)
        *mc_link_in_point(&mc_link_fields[i], point) = mc_link_value(&mc_link_fields[i], link);
    return MESHCOLL_OK;
}

/* Sets a field of the link, or of its last point. */
static int parse_number(const mc_link_field_t *known, word_t field, word_t value, mc_link_t *link)
{
    double *const number = link->n_points > 0
                               ? mc_link_in_point(known, &link->point[link->n_points - 1])
                               : mc_link_in(known, link);
    const bool good = known->per_byte ? read_per_byte(value, number) : read_time(value, number);
    if (good)
        return check_range(field, value, mc_link_range(known), *number);
    return fail_value(field, value,
                      known->per_byte ? "a rate as in 25GB/s or 200Mbit/s, or a time as in 40ns/KiB"
                                      : "a time as in 7us, 300ns or 1ms");
}

static int parse_wire(word_t value, const mc_mesh_t *mesh, mc_link_t *link)
{
    const int32_t d = mc_mesh_find(mesh, value.at, value.n);
    if (d < 0 && !is(value, "own"))
        return fail_value(word_of("wire"), value, "own, or the dimension whose wire it shares");
    link->wire = d < 0 ? MC_WIRE_OWN : d + 1;
    return MESHCOLL_OK;
}

static int parse_field(word_t field, word_t value, const mc_mesh_t *mesh, int32_t d,
                       mc_links_t *links)
{
    const mc_link_field_t *const known = find_field(field);
    mc_link_t *const link = &links->dim[d];
    if (is(field, "at"))
        return add_point(field, value, d, links);
    if (mc_link_is_factors(field.at, field.n))
        return mc_link_read_factors(field.at, field.n, value.at, value.n, d, links);
    if (link->n_points > 0 && !known)
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "a link at a size has alpha, gap, cpu, beta, bus and gamma, but no '%.*s'",
                       (int)field.n, field.at);
    if (known)
        return parse_number(known, field, value, link);
    if (is(field, "wire"))
        return parse_wire(value, mesh, link);
    if (is(field, "burst"))
        return parse_size(field, value, "a size as in 64KiB, or 0", &link->burst);
    if (is(field, "header"))
        return parse_size(field, value, "a size as in 70B, or 0", &link->header);
    if (is(field, "incast"))
        return parse_share(field, value, &link->incast);
    if (is(field, "window"))
        return parse_size(field, value, "a size as in 256KiB, or 0", &link->window);
    if (is(field, "pieces"))
        return parse_size(field, value, "a size as in 64KiB, or 0", &link->pieces);
    if (is(field, "ports"))
        return read_ports(value, &link->ports)
                   ? MESHCOLL_OK
                   : fail_value(field, value, "a number from 1 on, or all");
    if (is(field, "pulled"))
        return read_yes_no(value, &link->pulled) ? MESHCOLL_OK
                                                 : fail_value(field, value, "yes or no");
    return mc_fail(MESHCOLL_ERR_PARSE,
                   "a link has alpha, gap, cpu, beta, bus, burst, gamma, header, incast, "
                   "window, pieces, ports, pulled, wire and at, but no '%.*s'; factors are "
                   "[ASKED/]COLLECTIVE.ALGORITHM:NUMBER/…",
                   (int)field.n, field.at);
}

static const mc_link_preset_t *find_link(word_t name)
{
    for (int32_t i = 0; i < mc_n_link_presets; i++)
        if (is(name, mc_link_presets[i].name))
            return &mc_link_presets[i];
    return NULL;
}

static const mc_cluster_preset_t *find_cluster(word_t name)
{
    for (int32_t i = 0; i < mc_n_cluster_presets; i++)
        if (is(name, mc_cluster_presets[i].name))
            return &mc_cluster_presets[i];
    return NULL;
}

static int fail_preset(word_t name, bool clusters)
{
    char buffer[400];
    mc_text_t names = mc_text(buffer, sizeof buffer);
    for (int32_t i = 0; clusters && i < mc_n_cluster_presets; i++)
        mc_text_add(&names, "%s%s", i ? ", " : "", mc_cluster_presets[i].name);
    for (int32_t i = 0; i < mc_n_link_presets; i++)
        mc_text_add(&names, "%s%s", names.length ? ", " : "", mc_link_presets[i].name);
    return mc_fail(MESHCOLL_ERR_PARSE, "there is no link preset '%.*s'; there are %s", (int)name.n,
                   name.at, buffer);
}

/* A preset's unknown gap becomes NAN: complete() replaces it by alpha. */
static mc_link_t of_preset(const mc_link_preset_t *preset)
{
    mc_link_t link = preset->link;
    if (link.gap == 0)
        link.gap = NAN;
    return link;
}

/* Reads "PRESET;field:value;…" into the link of dimension `d`; fields that are not named keep their
 * values. */
static int parse_link(word_t text, const mc_mesh_t *mesh, int32_t d, mc_links_t *links)
{
    bool first = true;
    do {
        word_t value = cut(&text, ';');
        const word_t whole = value, name = cut(&value, ':');
        const mc_link_preset_t *const preset = first ? find_link(name) : NULL;
        const bool field = name.n < whole.n;
        if (!field && !preset)
            return first
                       ? fail_preset(whole, false)
                       : mc_fail(MESHCOLL_ERR_PARSE, "a field of a link is FIELD:VALUE; got '%.*s'",
                                 (int)whole.n, whole.at);
        const int status = field ? parse_field(name, value, mesh, d, links) : MESHCOLL_OK;
        if (status)
            return status;
        if (!field)
            links->dim[d] = of_preset(preset);
        first = false;
    } while (text.n > 0);
    return MESHCOLL_OK;
}

/* Returns n: dimensions [0, n) are between boxes. */
static int32_t network_dims(const mc_mesh_t *mesh)
{
    const int32_t box = mc_mesh_find(mesh, "box", 3);
    if (box >= 0)
        return box + 1;
    return mc_dim_is_inside(&mesh->dim[0]) ? 0 : 1;
}

static int fill_cluster(const mc_cluster_preset_t *cluster, const mc_mesh_t *mesh,
                        mc_links_t *links)
{
    const int32_t network = network_dims(mesh);
    int status = MESHCOLL_OK;
    for (int32_t d = 0; d < mesh->ndims && !status; d++)
        status =
            parse_link(word_of(d < network ? cluster->network : cluster->inside), mesh, d, links);
    return status;
}

static int parse_base(word_t name, const mc_mesh_t *mesh, mc_links_t *links)
{
    const mc_cluster_preset_t *const cluster = find_cluster(name);
    const mc_link_preset_t *const preset = find_link(name);
    if (cluster)
        return fill_cluster(cluster, mesh, links);
    if (!preset)
        return fail_preset(name, true);
    for (int32_t d = 0; d < mesh->ndims; d++)
        links->dim[d] = of_preset(preset);
    return MESHCOLL_OK;
}

static int parse_dim(word_t item, const mc_mesh_t *mesh, mc_links_t *links, bool given[])
{
    const word_t whole = item, name = cut(&item, '=');
    char buffer[MC_MESH_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const int32_t d = mc_mesh_find(mesh, name.at, name.n);
    if (name.n == whole.n)
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "links are DIMENSION=LINK,…, a preset's name first if at all; got '%.*s'",
                       (int)whole.n, whole.at);
    if (d < 0) {
        mc_mesh_print(mesh, &text);
        return mc_fail(MESHCOLL_ERR_PARSE, "links for '%.*s', which the mesh %s does not have",
                       (int)name.n, name.at, buffer);
    }
    if (given[d])
        return mc_fail(MESHCOLL_ERR_PARSE, "dimension %s has two links", mesh->dim[d].name);
    given[d] = true;
    return parse_link(item, mesh, d, links);
}

/* Fills in gaps; refuses a link without alpha or beta where messages are sent. */
static int complete(const mc_mesh_t *mesh, mc_links_t *links)
{
    for (int32_t d = 0; d < mesh->ndims; d++) {
        mc_link_t *const link = &links->dim[d];
        const bool missing = isnan(link->alpha) || isnan(link->beta);
        if (missing && mesh->dim[d].extent > 1)
            return mc_fail(MESHCOLL_ERR_PARSE,
                           "the link of dimension %s needs a preset, or alpha and beta",
                           mesh->dim[d].name);
        if (missing)
            *link = (mc_link_t){.ports = 1};
        if (isnan(link->gap))
            link->gap = link->alpha;
        for (int32_t i = 0; i < link->n_points; i++)
            if (isnan(link->point[i].gap))
                link->point[i].gap = link->point[i].alpha;
    }
    return MESHCOLL_OK;
}

/* gpu and fold are both inside a box: a link given for one holds for the other. */
static void copy_inside(mc_links_t *links, bool gpu)
{
    mc_link_t *const dim = links->dim;
    if (gpu)
        dim[MC_RAGGED_FOLD] = dim[MC_RAGGED_GPU];
    else
        dim[MC_RAGGED_GPU] = dim[MC_RAGGED_FOLD];
}

int mc_links_parse(const char *text, const mc_mesh_t *mesh, mc_links_t *links)
{
    const mc_link_t unknown = {.alpha = NAN, .beta = NAN, .ports = 1, .gap = NAN};
    mc_links_t all = {.ndims = mesh->ndims};
    bool given[MC_MAX_DIMS] = {false};
    for (int32_t d = 0; d < mesh->ndims; d++)
        all.dim[d] = unknown;
    word_t rest = word_of(text && *text ? text : mc_cluster_presets[0].name);
    const word_t whole = rest, first = cut(&rest, ',');
    int status = MESHCOLL_OK;
    if (first.n > 0 && !memchr(first.at, '=', first.n))
        status = parse_base(first, mesh, &all);
    else
        rest = whole;
    while (!status && rest.n > 0)
        status = parse_dim(cut(&rest, ','), mesh, &all, given);
    if (mesh->ragged && given[MC_RAGGED_GPU] != given[MC_RAGGED_FOLD])
        copy_inside(&all, given[MC_RAGGED_GPU]);
    if (!status)
        status = complete(mesh, &all);
    /* dimensions outside of a box leave it through the same NIC */
    if (!status)
        mc_links_share_wire(&all, mc_mesh_find(mesh, "box", 3));
    if (!status)
        status = mc_links_check(&all, mesh);
    if (!status)
        *links = all;
    return status;
}

/* Does `number`, printed with `digits` digits, read back as `same`? */
static bool written(double number, int digits, const char *unit, bool (*read)(word_t, double *),
                    double same, char buffer[64])
{
    double again;
    snprintf(buffer, 64, "%.*g%s", digits, number, unit);
    return read(word_of(buffer), &again) && again == same;
}

static const mc_unit_t *time_unit(double seconds)
{
    size_t u = 0;
    while (u + 1 < MC_COUNT(times) && seconds * times[u].value < 1)
        u++;
    return &times[u];
}

static void print_share(double share, mc_text_t *text)
{
    char buffer[32];
    int digits = 1;
    do
        snprintf(buffer, sizeof buffer, "%.*g", digits, share);
    while (strtod(buffer, NULL) != share && digits++ < 17);
    mc_text_add(text, ";incast:%s", buffer);
}

static void print_time(double seconds, mc_text_t *text)
{
    char buffer[64] = "0";
    const mc_unit_t *const unit = time_unit(seconds);
    bool done = seconds == 0;
    for (int digits = 3; digits <= 17 && !done; digits++)
        done = written(seconds * unit->value, digits, unit->name, read_time, seconds, buffer);
    if (!done)
        snprintf(buffer, sizeof buffer, "%.17gs", seconds);
    mc_text_add(text, "%s", buffer);
}

/* Prints a rate or a time, whichever takes fewer digits. */
static void print_per_byte(double seconds, mc_text_t *text)
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
        done = written(rate, digits, rate_name, read_per_byte, seconds, buffer) ||
               written(per_byte, digits, time_name, read_per_byte, seconds, buffer);
    if (!done)
        snprintf(buffer, sizeof buffer, "%.17gs/B", seconds);
    mc_text_add(text, "%s", buffer);
}

static void print_field(const mc_link_field_t *field, double seconds, mc_text_t *text)
{
    mc_text_add(text, "%s:", field->name);
    (field->per_byte ? print_per_byte : print_time)(seconds, text);
}

static void print_point(const mc_link_point_t *at, mc_text_t *text)
{
    mc_text_add(text, ";at:%.17gB", at->bytes);
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++) {
        mc_text_add(text, ";");
        print_field(&mc_link_fields[i], mc_link_point_value(&mc_link_fields[i], at), text);
    }
}

/* A field that is not given: gap is alpha, cpu and bus are 0. */
static bool is_default(const mc_link_field_t *field, const mc_link_t *link)
{
    const double seconds = mc_link_value(field, link);
    if (strcmp(field->name, "gap") == 0)
        return seconds == link->alpha;
    return seconds == 0 && (strcmp(field->name, "cpu") == 0 || strcmp(field->name, "bus") == 0);
}

static void print_link(const mc_link_t *link, const mc_mesh_t *mesh, mc_text_t *text)
{
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++) {
        if (is_default(&mc_link_fields[i], link))
            continue;
        mc_text_add(text, i ? ";" : "");
        print_field(&mc_link_fields[i], mc_link_value(&mc_link_fields[i], link), text);
    }
    if (link->burst != 0)
        mc_text_add(text, ";burst:%.17gB", link->burst);
    if (link->header != 0)
        mc_text_add(text, ";header:%.17gB", link->header);
    if (link->incast != 0)
        print_share(link->incast, text);
    if (link->window != 0)
        mc_text_add(text, ";window:%.17gB", link->window);
    if (link->pieces != 0)
        mc_text_add(text, ";pieces:%.17gB", link->pieces);
    if (link->ports == MC_PORTS_ALL)
        mc_text_add(text, ";ports:all");
    else
        mc_text_add(text, ";ports:%d", link->ports);
    mc_text_add(text, ";pulled:%s", link->pulled ? "yes" : "no");
    if (link->wire != 0)
        mc_text_add(text, ";wire:%s", link->wire > 0 ? mesh->dim[link->wire - 1].name : "own");
    for (int32_t i = 0; i < link->n_points; i++)
        print_point(&link->point[i], text);
}

void mc_links_print(const mc_links_t *links, const mc_mesh_t *mesh, mc_text_t *text)
{
    for (int32_t d = 0; d < links->ndims; d++) {
        mc_text_add(text, "%s%s=", d ? "," : "", mesh->dim[d].name);
        print_link(&links->dim[d], mesh, text);
        mc_link_print_factors(links, d, text);
    }
}
