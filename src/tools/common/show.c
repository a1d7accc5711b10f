#include "tools/common/show.h"

#include <inttypes.h>
#include <string.h>

const char *mc_show_mesh(const mc_mesh_t *mesh, char buffer[MC_MESH_TEXT])
{
    mc_text_t text = mc_text(buffer, MC_MESH_TEXT);
    mc_mesh_print(mesh, &text);
    return buffer;
}

const char *mc_show_strategy(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                             char buffer[MC_STRATEGY_TEXT])
{
    mc_text_t text = mc_text(buffer, MC_STRATEGY_TEXT);
    mc_strategy_print(strategy, mesh, &text);
    return buffer;
}

const char *mc_show_phase(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t phase,
                          char buffer[MC_STRATEGY_TEXT])
{
    mc_strategy_t one = {.collective = strategy->collective, .segments = 1, .n_phases = 1};
    one.phase[0] = strategy->phase[phase];
    return mc_show_strategy(&one, mesh, buffer);
}

const char *mc_show_ratio(mc_ratio_t ratio, char buffer[MC_NUMBER_TEXT])
{
    mc_text_t text = mc_text(buffer, MC_NUMBER_TEXT);
    mc_text_add(&text, "%" PRId64, ratio.num);
    if (ratio.den != 1)
        mc_text_add(&text, "/%" PRId64, ratio.den);
    return buffer;
}

/* "α", "3α", "7/8 nβ" */
static void add_product(mc_text_t *text, mc_ratio_t ratio, const char *symbol)
{
    char number[MC_NUMBER_TEXT];
    if (ratio.num == 0)
        return;
    mc_text_add(text, "%s", text->length > 0 ? " + " : "");
    if (ratio.num != 1 || ratio.den != 1)
        mc_text_add(text, "%s%s", mc_show_ratio(ratio, number), ratio.den == 1 ? "" : " ");
    mc_text_add(text, "%s", symbol);
}

const char *mc_show_term(const mc_term_t *term, char buffer[MC_TERM_TEXT])
{
    mc_text_t text = mc_text(buffer, MC_TERM_TEXT);
    add_product(&text, term->alpha, "α");
    add_product(&text, term->beta, "nβ");
    add_product(&text, term->gamma, "nγ");
    if (text.length == 0)
        mc_text_add(&text, "-");
    return buffer;
}

const char *mc_show_ports(int32_t ports, char buffer[MC_NUMBER_TEXT])
{
    mc_text_t text = mc_text(buffer, MC_NUMBER_TEXT);
    if (ports == MC_PORTS_ALL)
        mc_text_add(&text, "one for every rank");
    else
        mc_text_add(&text, "%d for each box", ports);
    return buffer;
}

void mc_add_seconds(mc_table_t *table, double seconds)
{
    char number[MC_NUMBER_TEXT];
    mc_table_add(table, "%s", mc_print_seconds(seconds, number, sizeof number));
}

/* Links ------------------------------------------------------------------------------------------ */

/* Fields that most links lack have a column only where some link has one. */
typedef struct {
    bool gap, cpu, bus, burst, header, incast, window, pieces;
} columns_t;

static mc_link_point_t numbers_of(const mc_link_t *link)
{
    return (mc_link_point_t){.alpha = link->alpha,
                             .gap = link->gap,
                             .cpu = link->cpu,
                             .beta = link->beta,
                             .bus = link->bus,
                             .gamma = link->gamma};
}

static void note_columns(columns_t *c, const mc_link_point_t *at)
{
    c->gap |= at->gap > 0 && at->gap != at->alpha;
    c->cpu |= at->cpu > 0;
    c->bus |= at->bus > 0;
}

static columns_t columns_of(const mc_mesh_t *mesh, const mc_links_t *links)
{
    columns_t c = {0};
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const mc_link_t *const link = &links->dim[d];
        const mc_link_point_t numbers = numbers_of(link);
        note_columns(&c, &numbers);
        for (int32_t i = 0; i < link->n_points; i++)
            note_columns(&c, &link->point[i]);
        c.burst |= link->burst > 0;
        c.header |= link->header > 0;
        c.incast |= link->incast > 0;
        c.window |= link->window > 0;
        c.pieces |= link->pieces > 0;
    }
    return c;
}

static void add_links_head(mc_table_t *table, const columns_t *c)
{
    const char *const head[] = {"link",
                                "α, a message",
                                c->gap ? "g, in a row" : NULL,
                                c->cpu ? "cpu, of all" : NULL,
                                "1/β, bandwidth",
                                c->bus ? "1/bus, of all" : NULL,
                                "1/γ, summing",
                                c->burst ? "burst" : NULL,
                                c->header ? "headers" : NULL,
                                c->incast ? "incast" : NULL,
                                c->window ? "window" : NULL,
                                c->pieces ? "pieces" : NULL,
                                "ports",
                                ""};
    for (size_t i = 0; i < MC_COUNT(head); i++)
        if (head[i])
            mc_table_add(table, "%s", head[i]);
}

/* A cost of zero has no rate. */
static void add_rate(mc_table_t *table, double seconds)
{
    if (seconds > 0)
        mc_table_add(table, "%.4g GB/s", 1e-9 / seconds);
    else
        mc_table_add(table, "-");
}

static void add_size(mc_table_t *table, double bytes)
{
    char number[MC_NUMBER_TEXT];
    mc_table_add(table, "%s", bytes > 0 ? mc_print_bytes(bytes, number, sizeof number) : "-");
}

static void add_numbers(mc_table_t *table, const columns_t *c, const mc_link_point_t *at)
{
    mc_add_seconds(table, at->alpha);
    if (c->gap)
        mc_add_seconds(table, at->gap);
    if (c->cpu)
        mc_add_seconds(table, at->cpu);
    add_rate(table, at->beta);
    if (c->bus)
        add_rate(table, at->bus);
    add_rate(table, at->gamma);
}

static void add_link(mc_table_t *table, const columns_t *c, const mc_mesh_t *mesh,
                     const mc_links_t *links, int32_t d)
{
    char number[MC_NUMBER_TEXT];
    const mc_link_t *const link = &links->dim[d];
    const mc_link_point_t numbers = numbers_of(link);
    const int32_t wire = mc_links_wire(links, d);
    mc_table_add(table, "%s", mesh->dim[d].name);
    add_numbers(table, c, &numbers);
    if (c->burst)
        add_size(table, link->burst);
    if (c->header)
        add_size(table, link->header);
    if (c->incast)
        mc_table_add(table, "%.0f %%", 100 * link->incast);
    if (c->window)
        add_size(table, link->window);
    if (c->pieces)
        add_size(table, link->pieces);
    mc_table_add(table, "%s", mc_show_ports(link->ports, number));
    mc_table_add(table, "%s%s%s", link->pulled ? "the receivers copy" : "",
                 wire == d      ? ""
                 : link->pulled ? ", by the wire of "
                                : "by the wire of ",
                 wire == d ? "" : mesh->dim[wire].name);
}

/* Below a link: what it is where the whole vector has so many bytes. */
static void add_point(mc_table_t *table, const columns_t *c, const mc_link_point_t *at)
{
    char number[MC_NUMBER_TEXT];
    mc_table_add(table, "  at %s", mc_print_bytes(at->bytes, number, sizeof number));
    add_numbers(table, c, at);
    for (int i = 0; i < 2 + c->burst + c->header + c->incast + c->window + c->pieces; i++)
        mc_table_add(table, "%s", "");
}

enum { FACTOR_TEXT = 64 };

/* A row for each algorithm, its factors by size. */
static int show_factors(const mc_mesh_t *mesh, const mc_links_t *links)
{
    char align[2 + MC_LINK_POINTS] = "l";
    int32_t sizes = 1;
    for (int32_t d = 0; d < mesh->ndims; d++)
        sizes = links->dim[d].n_points > sizes ? links->dim[d].n_points : sizes;
    memset(align + 1, 'r', (size_t)sizes);
    mc_table_t table = mc_table(align);
    mc_table_add(&table, "times");
    for (int32_t k = 0; k < sizes; k++)
        mc_table_add(&table, "%s", k ? "" : "measured over the closed form, by size");
    for (int32_t i = 0; i < links->n_factors; i++) {
        const mc_link_factor_t *const f = &links->factor[i];
        char buffer[FACTOR_TEXT];
        mc_text_t name = mc_text(buffer, sizeof buffer);
        mc_link_print_phase(f, ':', &name);
        mc_table_add(&table, "%s(%s)", buffer, mesh->dim[f->dim].name);
        for (int32_t k = 0; k < sizes; k++)
            mc_table_add(&table, "%.2f", (double)f->at[k] / MC_FACTOR_ONE);
    }
    return mc_table_print(&table, 2, stdout);
}

int mc_show_links(const mc_mesh_t *mesh, const mc_links_t *links)
{
    char align[32];
    mc_text_t columns = mc_text(align, sizeof align);
    const columns_t c = columns_of(mesh, links);
    const int numbers =
        2 + c.gap + c.cpu + c.bus + c.burst + c.header + c.incast + c.window + c.pieces;
    mc_text_add(&columns, "lr");
    for (int i = 0; i < numbers; i++)
        mc_text_add(&columns, "r");
    mc_text_add(&columns, "ll");
    mc_table_t table = mc_table(align);
    add_links_head(&table, &c);
    for (int32_t d = 0; d < mesh->ndims; d++) {
        add_link(&table, &c, mesh, links, d);
        for (int32_t i = 0; i < links->dim[d].n_points; i++)
            add_point(&table, &c, &links->dim[d].point[i]);
    }
    const int status = mc_table_print(&table, 2, stdout);
    return status || links->n_factors == 0 ? status : show_factors(mesh, links);
}

/* JSON ------------------------------------------------------------------------------------------- */

json_t *mc_json_mesh(const mc_mesh_t *mesh)
{
    char text[MC_MESH_TEXT];
    json_t *const dims = json_array();
    for (int32_t d = 0; d < mesh->ndims; d++)
        json_array_append_new(dims, json_pack("{s:s, s:i}", "name", mesh->dim[d].name, "extent",
                                              (int)mesh->dim[d].extent));
    return json_pack("{s:s, s:i, s:o}", "text", mc_show_mesh(mesh, text), "ranks", (int)mesh->size,
                     "dims", dims);
}

static json_t *json_points(const mc_link_t *link)
{
    json_t *const points = json_array();
    for (int32_t i = 0; i < link->n_points; i++) {
        const mc_link_point_t *const at = &link->point[i];
        json_array_append_new(points,
                              json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "bytes", at->bytes,
                                        "alpha", at->alpha, "gap", at->gap, "cpu", at->cpu, "beta",
                                        at->beta, "bus", at->bus, "gamma", at->gamma));
    }
    return points;
}

/* By algorithm, its factors at each size. */
static json_t *json_factors(const mc_links_t *links, int32_t d)
{
    json_t *const all = json_object();
    const int32_t sizes = links->dim[d].n_points > 0 ? links->dim[d].n_points : 1;
    for (int32_t i = 0; i < links->n_factors; i++) {
        const mc_link_factor_t *const f = &links->factor[i];
        char buffer[FACTOR_TEXT];
        mc_text_t name = mc_text(buffer, sizeof buffer);
        if (f->dim != d)
            continue;
        json_t *const list = json_array();
        for (int32_t k = 0; k < sizes; k++)
            json_array_append_new(list, json_real((double)f->at[k] / MC_FACTOR_ONE));
        mc_link_print_phase(f, ':', &name);
        json_object_set_new(all, buffer, list);
    }
    return all;
}

json_t *mc_json_links(const mc_mesh_t *mesh, const mc_links_t *links)
{
    json_t *const dims = json_array();
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const mc_link_t *const link = &links->dim[d];
        json_t *const ports =
            link->ports == MC_PORTS_ALL ? json_string("all") : json_integer(link->ports);
        json_array_append_new(
            dims,
            json_pack(
                "{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:b, s:s, s:o, "
                "s:o}",
                "dim", mesh->dim[d].name, "alpha", link->alpha, "gap", link->gap, "cpu", link->cpu,
                "incast", link->incast, "beta", link->beta, "bus", link->bus, "burst", link->burst,
                "header", link->header, "window", link->window, "pieces", link->pieces, "gamma",
                link->gamma, "ports", ports, "pulled", (int)link->pulled, "wire",
                mesh->dim[mc_links_wire(links, d)].name, "at", json_points(link), "factors",
                json_factors(links, d)));
    }
    return dims;
}

json_t *mc_json_cost(const mc_mesh_t *mesh, const mc_cost_t *cost)
{
    char alpha[MC_NUMBER_TEXT], row[MC_NUMBER_TEXT], beta[MC_NUMBER_TEXT], gamma[MC_NUMBER_TEXT],
        volume[MC_NUMBER_TEXT];
    json_t *const dims = json_array();
    for (int32_t d = 0; d < mesh->ndims; d++)
        json_array_append_new(dims, json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:s}", "dim",
                                              mesh->dim[d].name, "alpha",
                                              mc_show_ratio(cost->dim[d].alpha, alpha), "row",
                                              mc_show_ratio(cost->dim[d].row, row), "beta",
                                              mc_show_ratio(cost->dim[d].beta, beta), "gamma",
                                              mc_show_ratio(cost->dim[d].gamma, gamma), "messages",
                                              (json_int_t)cost->dim[d].messages, "volume",
                                              mc_show_ratio(cost->dim[d].volume, volume)));
    return dims;
}

int mc_json_print(json_t *json)
{
    const int failed = !json || json_dumpf(json, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(json);
    putchar('\n');
    if (failed)
        fprintf(stderr, "meshcoll: the JSON could not be written\n");
    return failed ? MC_EXIT_FAILED : MC_EXIT_OK;
}
