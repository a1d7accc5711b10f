/* The text form of links, parsed and printed. */
#include "mesh/link/link_text.h"
#include "base/nearest.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool read_ports(mc_word_t word, int32_t *ports)
{
    double number;
    if (mc_word_is(word, "all")) {
        *ports = MC_PORTS_ALL;
        return true;
    }
    if (!mc_read_number(&word, &number) || word.n > 0 || number < 1 || number > MC_PORTS_ALL ||
        number != (double)(int32_t)number)
        return false;
    *ports = (int32_t)number;
    return true;
}

static bool read_yes_no(mc_word_t word, bool *yes)
{
    *yes = mc_word_is(word, "yes");
    return *yes || mc_word_is(word, "no");
}

static int fail_value(mc_word_t field, mc_word_t value, const char *wanted, const char *meant)
{
    return mc_fail(MESHCOLL_ERR_PARSE, "%.*s of a link is %s; got '%.*s'%s", (int)field.n, field.at,
                   wanted, (int)value.n, value.at, meant);
}

static const mc_link_field_t *find_field(mc_word_t name)
{
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++)
        if (mc_word_is(name, mc_link_fields[i].name))
            return &mc_link_fields[i];
    return NULL;
}

static int parse_number(const mc_link_field_t *known, mc_word_t field, mc_word_t value,
                        double *number)
{
    const mc_link_kind_t *const kind = known->kind;
    if (!kind->read(value, number)) {
        char meant[96] = "";
        mc_text_t text = mc_text(meant, sizeof meant);
        if (kind == &mc_link_costs)
            mc_link_suggest(value, &text);
        return fail_value(field, value, kind->wanted, meant);
    }
    if (mc_link_is_within(kind, *number))
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_PARSE, "%.*s of a link is 0, or from %g to %g %s; got '%.*s'",
                   (int)field.n, field.at, kind->least, kind->most, kind->unit, (int)value.n,
                   value.at);
}

static int parse_wire(mc_word_t value, const mc_mesh_t *mesh, mc_link_t *link)
{
    const int32_t d = mc_mesh_find(mesh, value.at, value.n);
    if (d < 0 && !mc_word_is(value, "own"))
        return fail_value(mc_word_of("wire"), value, "own, or the dimension whose wire it shares",
                          "");
    link->wire = d < 0 ? MC_WIRE_OWN : d + 1;
    return MESHCOLL_OK;
}

static int parse_field(mc_word_t field, mc_word_t value, const mc_mesh_t *mesh, int32_t d,
                       mc_links_t *links)
{
    const mc_link_field_t *const known = find_field(field);
    mc_link_t *const link = &links->dim[d];
    if (known)
        return parse_number(known, field, value, mc_link_number(known, links, d));
    if (mc_word_is(field, "wire"))
        return parse_wire(value, mesh, link);
    if (mc_word_is(field, "ports"))
        return read_ports(value, &link->ports)
                   ? MESHCOLL_OK
                   : fail_value(field, value, "a number from 1 on, or all", "");
    if (mc_word_is(field, "pulled"))
        return read_yes_no(value, &link->pulled) ? MESHCOLL_OK
                                                 : fail_value(field, value, "yes or no", "");
    if (mc_word_is(field, "streams"))
        return read_yes_no(value, &link->streams) ? MESHCOLL_OK
                                                  : fail_value(field, value, "yes or no", "");
    if (mc_word_is(field, "header") || mc_word_is(field, "incast"))
        return mc_fail(
            MESHCOLL_ERR_PARSE,
            "%.*s is no longer a field of a link, as choices were no better with it: leave it "
            "out, or run meshcoll tune again",
            (int)field.n, field.at);
    return mc_fail(
        MESHCOLL_ERR_PARSE,
        "a link has alpha, gap, beta, gamma, call, ports, pulled, streams, wire, window, burst, "
        "cpu and eager, but no '%.*s'",
        (int)field.n, field.at);
}

static const mc_link_preset_t *find_link(mc_word_t name)
{
    for (int32_t i = 0; i < mc_n_link_presets; i++)
        if (mc_word_is(name, mc_link_presets[i].name))
            return &mc_link_presets[i];
    return NULL;
}

static const mc_cluster_preset_t *find_cluster(mc_word_t name)
{
    for (int32_t i = 0; i < mc_n_cluster_presets; i++)
        if (mc_word_is(name, mc_cluster_presets[i].name))
            return &mc_cluster_presets[i];
    return NULL;
}

static int fail_preset(mc_word_t name, bool clusters)
{
    char buffer[400];
    mc_text_t names = mc_text(buffer, sizeof buffer);
    mc_nearest_t near = mc_nearest(name.at, name.n);
    const char *between = "there are ";
    const int32_t first = clusters ? 0 : mc_n_cluster_presets;
    for (int32_t i = first; i < mc_n_cluster_presets + mc_n_link_presets; i++) {
        const char *const known = i < mc_n_cluster_presets
                                      ? mc_cluster_presets[i].name
                                      : mc_link_presets[i - mc_n_cluster_presets].name;
        mc_text_add(&names, "%s%s", between, known);
        mc_nearest_try(&near, known);
        between = ", ";
    }
    return mc_nearest_fail(&near, MESHCOLL_ERR_PARSE, "there is no link preset", buffer);
}

/* A preset's unknown gap becomes NAN: complete() replaces it by alpha. */
static void set_preset(const mc_link_preset_t *preset, int32_t d, mc_links_t *links)
{
    links->dim[d] = preset->link;
    links->correction[d] = (mc_correction_t){0};
    if (preset->link.gap == 0)
        links->dim[d].gap = NAN;
}

/* Reads "PRESET;field:value;…" into the link of dimension `d`; fields that are not named keep their
 * values. */
static int parse_link(mc_word_t text, const mc_mesh_t *mesh, int32_t d, mc_links_t *links)
{
    bool first = true;
    do {
        mc_word_t value = mc_word_cut(&text, ';');
        const mc_word_t whole = value, name = mc_word_cut(&value, ':');
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
            set_preset(preset, d, links);
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
        status = parse_link(mc_word_of(d < network ? cluster->network : cluster->inside), mesh, d,
                            links);
    return status;
}

static int parse_base(mc_word_t name, const mc_mesh_t *mesh, mc_links_t *links)
{
    const mc_cluster_preset_t *const cluster = find_cluster(name);
    const mc_link_preset_t *const preset = find_link(name);
    if (cluster)
        return fill_cluster(cluster, mesh, links);
    if (!preset)
        return fail_preset(name, true);
    for (int32_t d = 0; d < mesh->ndims; d++)
        set_preset(preset, d, links);
    return MESHCOLL_OK;
}

/* The last one counts. */
static int parse_measured(mc_word_t item, mc_links_t *links)
{
    mc_measured_t *const table = calloc(1, sizeof *table);
    const int status = table ? mc_measured_parse(item, table) : mc_fail_memory("measured times");
    mc_links_free(links);
    links->measured = status ? NULL : table;
    if (status)
        free(table);
    return status;
}

void mc_links_free(mc_links_t *links)
{
    free((void *)links->measured);
    links->measured = NULL;
}

static int parse_dim(mc_word_t item, const mc_mesh_t *mesh, mc_links_t *links, bool given[])
{
    const mc_word_t whole = item, name = mc_word_cut(&item, '=');
    char buffer[MC_MESH_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const int32_t d = mc_mesh_find(mesh, name.at, name.n);
    if (d < 0 && mc_word_is(name, "measured"))
        return parse_measured(item, links);
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
            *link = (mc_link_t){.ports = 1, .streams = true};
        link->streams = link->streams && !link->pulled;
        if (isnan(link->gap))
            link->gap = link->alpha;
    }
    return MESHCOLL_OK;
}

/* gpu and fold are both inside a box: a link given for one holds for the other. */
static void copy_inside(mc_links_t *links, bool gpu)
{
    const int32_t from = gpu ? MC_RAGGED_GPU : MC_RAGGED_FOLD,
                  to = gpu ? MC_RAGGED_FOLD : MC_RAGGED_GPU;
    links->dim[to] = links->dim[from];
    links->correction[to] = links->correction[from];
}

int mc_links_parse(const char *text, const mc_mesh_t *mesh, mc_links_t *links)
{
    const mc_link_t unknown = {.alpha = NAN, .beta = NAN, .ports = 1, .gap = NAN, .streams = true};
    mc_links_t all = {.ndims = mesh->ndims};
    bool given[MC_MAX_DIMS] = {false};
    const char *const read = text && *text ? text : mc_cluster_presets[0].name;
    int status = mc_check_length(MESHCOLL_ERR_PARSE, "the text of links", read, MC_LINKS_MOST_READ);
    if (status)
        return status;
    for (int32_t d = 0; d < mesh->ndims; d++)
        all.dim[d] = unknown;
    mc_word_t rest = mc_word_of(read);
    const mc_word_t whole = rest, first = mc_word_cut(&rest, ',');
    if (first.n > 0 && !memchr(first.at, '=', first.n))
        status = parse_base(first, mesh, &all);
    else
        rest = whole;
    while (!status && rest.n > 0)
        status = parse_dim(mc_word_cut(&rest, ','), mesh, &all, given);
    if (mesh->ragged && given[MC_RAGGED_GPU] != given[MC_RAGGED_FOLD])
        copy_inside(&all, given[MC_RAGGED_GPU]);
    if (!status)
        status = complete(mesh, &all);
    /* dimensions outside of a box leave it through the same NIC */
    if (!status)
        mc_links_share_wire(&all, mc_mesh_find(mesh, "box", 3));
    if (!status)
        status = mc_links_check(&all, mesh);
    if (status)
        mc_links_free(&all);
    else
        *links = all;
    return status;
}

/* gap is alpha where it is not given; call and corrections are 0. */
static bool is_default(const mc_link_field_t *field, const mc_links_t *links, int32_t d)
{
    const double number = mc_link_value(field, links, d);
    if (field->offset == offsetof(mc_link_t, gap) && !field->corrects)
        return number == links->dim[d].alpha;
    return number == 0 && (field->corrects || field->offset == offsetof(mc_link_t, call));
}

static void print_link(const mc_links_t *links, int32_t d, const mc_mesh_t *mesh, mc_text_t *text)
{
    const mc_link_t *const link = &links->dim[d];
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++) {
        const mc_link_field_t *const field = &mc_link_fields[i];
        if (is_default(field, links, d))
            continue;
        mc_text_add(text, "%s%s:", i ? ";" : "", field->name);
        field->kind->write(mc_link_value(field, links, d), text);
    }
    if (link->ports == MC_PORTS_ALL)
        mc_text_add(text, ";ports:all");
    else
        mc_text_add(text, ";ports:%d", link->ports);
    mc_text_add(text, ";pulled:%s", link->pulled ? "yes" : "no");
    if (!link->streams && !link->pulled)
        mc_text_add(text, ";streams:no");
    if (link->wire != 0)
        mc_text_add(text, ";wire:%s", link->wire > 0 ? mesh->dim[link->wire - 1].name : "own");
}

void mc_links_print(const mc_links_t *links, const mc_mesh_t *mesh, mc_text_t *text)
{
    for (int32_t d = 0; d < links->ndims; d++) {
        mc_text_add(text, "%s%s=", d ? "," : "", mesh->dim[d].name);
        print_link(links, d, mesh, text);
    }
    mc_measured_print(mc_links_measured(links), text);
}
