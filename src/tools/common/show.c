#include "tools/common/show.h"

#include <inttypes.h>
#include <string.h>

const char *mc_show_strategy(const mc_strategy_t *strategy, const mc_mesh_t *mesh)
{
    static char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, MC_STRATEGY_TEXT);
    mc_strategy_print(strategy, mesh, &text);
    return buffer;
}

const char *mc_show_phase(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t phase)
{
    static char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, MC_STRATEGY_TEXT);
    mc_strategy_print_phase(strategy, mesh, phase, &text);
    return buffer;
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
    snprintf(buffer, MC_NUMBER_TEXT,
             ports == MC_PORTS_ALL ? "one for every rank" : "%d for each box", ports);
    return buffer;
}

json_t *mc_json_ports(int32_t ports)
{
    return ports == MC_PORTS_ALL ? json_string("all") : json_integer(ports);
}

void mc_add_rate(mc_table_t *table, double seconds)
{
    if (seconds > 0)
        mc_table_add(table, "%.4g GB/s", 1e-9 / seconds);
    else
        mc_table_add(table, "-");
}

void mc_add_seconds(mc_table_t *table, double seconds)
{
    char number[MC_NUMBER_TEXT];
    mc_table_add(table, "%s", mc_print_seconds(seconds, number, sizeof number));
}

/* Links ------------------------------------------------------------------------------------------ */

/* Numbers that most links lack have a column only where some link has one. */
typedef struct {
    bool gap, call, window, burst, cpu;
} columns_t;

static columns_t columns_of(const mc_links_t *links)
{
    columns_t c = {0};
    for (int32_t d = 0; d < links->ndims; d++) {
        const mc_link_t *const link = &links->dim[d];
        const mc_correction_t *const by = &links->correction[d];
        c.gap |= link->gap > 0 && link->gap != link->alpha;
        c.call |= link->call > 0;
        c.window |= by->window > 0;
        c.burst |= by->burst > 0;
        c.cpu |= by->cpu > 0;
    }
    return c;
}

static void add_links_head(mc_table_t *table, const columns_t *c)
{
    const char *const head[] = {"link",
                                "α, a message",
                                c->gap ? "g, in a row" : NULL,
                                "1/β, bandwidth",
                                "1/γ, summing",
                                c->call ? "a call" : NULL,
                                "ports",
                                c->window ? "window" : NULL,
                                c->burst ? "burst" : NULL,
                                c->cpu ? "cpu, of all" : NULL,
                                ""};
    for (size_t i = 0; i < MC_COUNT(head); i++)
        if (head[i])
            mc_table_add(table, "%s", head[i]);
}

static void add_size(mc_table_t *table, double bytes)
{
    char number[MC_NUMBER_TEXT];
    mc_table_add(table, "%s", bytes > 0 ? mc_print_bytes(bytes, number, sizeof number) : "-");
}

static void add_corrections(mc_table_t *table, const columns_t *c, const mc_correction_t *by)
{
    if (c->window)
        add_size(table, by->window);
    if (c->burst)
        add_size(table, by->burst);
    if (c->cpu)
        mc_add_seconds(table, by->cpu);
}

static void add_link(mc_table_t *table, const columns_t *c, const mc_mesh_t *mesh,
                     const mc_links_t *links, int32_t d)
{
    char number[MC_NUMBER_TEXT];
    const mc_link_t *const link = &links->dim[d];
    const int32_t wire = mc_links_wire(links, d);
    mc_table_add(table, "%s", mesh->dim[d].name);
    mc_add_seconds(table, link->alpha);
    if (c->gap)
        mc_add_seconds(table, link->gap);
    mc_add_rate(table, link->beta);
    mc_add_rate(table, link->gamma);
    if (c->call)
        mc_add_seconds(table, link->call);
    mc_table_add(table, "%s", mc_show_ports(link->ports, number));
    add_corrections(table, c, &links->correction[d]);
    mc_table_add(table, "%s%s%s", link->pulled ? "the receivers copy" : "",
                 wire == d      ? ""
                 : link->pulled ? ", by the wire of "
                                : "by the wire of ",
                 wire == d ? "" : mesh->dim[wire].name);
}

static int show_measured(const mc_measured_t *measured)
{
    char align[2 + MC_MEASURED_SIZES] = "l", number[MC_NUMBER_TEXT];
    memset(align + 1, 'r', (size_t)measured->n_sizes);
    mc_table_t table = mc_table(align);
    mc_table_add(&table, "measured");
    for (int32_t k = 0; k < measured->n_sizes; k++)
        mc_table_add(&table, "%s", mc_print_bytes(measured->bytes[k], number, sizeof number));
    for (int32_t i = 0; i < measured->n_rows; i++) {
        const mc_measured_row_t *const row = &measured->row[i];
        mc_table_add(&table, "%s", row->strategy);
        for (int32_t k = 0; k < measured->n_sizes; k++)
            mc_add_seconds(&table, row->seconds[k]);
    }
    putchar('\n');
    return mc_table_print(&table, 2, stdout);
}

int mc_show_links(const mc_mesh_t *mesh, const mc_links_t *links)
{
    char align[32];
    mc_text_t columns = mc_text(align, sizeof align);
    const columns_t c = columns_of(links);
    mc_text_add(&columns, "lr%srr%sl", c.gap ? "r" : "", c.call ? "r" : "");
    for (int i = 0; i < c.window + c.burst + c.cpu; i++)
        mc_text_add(&columns, "r");
    mc_text_add(&columns, "l");
    mc_table_t table = mc_table(align);
    add_links_head(&table, &c);
    for (int32_t d = 0; d < mesh->ndims; d++)
        add_link(&table, &c, mesh, links, d);
    const int status = mc_table_print(&table, 2, stdout);
    return status || mc_links_measured(links)->n_rows == 0 ? status
                                                           : show_measured(links->measured);
}

/* JSON ------------------------------------------------------------------------------------------- */

json_t *mc_json_mesh(const mc_mesh_t *mesh)
{
    char text[MC_MESH_TEXT];
    json_t *const dims = json_array();
    for (int32_t d = 0; d < mesh->ndims; d++)
        json_array_append_new(dims, json_pack("{s:s, s:i}", "name", mesh->dim[d].name, "extent",
                                              (int)mesh->dim[d].extent));
    return json_pack("{s:s, s:i, s:o}", "text", mc_mesh_text(mesh, text), "ranks", (int)mesh->size,
                     "dims", dims);
}

json_t *mc_json_links(const mc_mesh_t *mesh, const mc_links_t *links)
{
    json_t *const dims = json_array();
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const mc_link_t *const link = &links->dim[d];
        const mc_correction_t *const by = &links->correction[d];
        json_array_append_new(
            dims,
            json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:o, s:b, s:s, s:f, s:f, s:f}", "dim",
                      mesh->dim[d].name, "alpha", link->alpha, "gap", link->gap, "beta", link->beta,
                      "gamma", link->gamma, "call", link->call, "ports", mc_json_ports(link->ports),
                      "pulled", (int)link->pulled, "wire", mesh->dim[mc_links_wire(links, d)].name,
                      "window", by->window, "burst", by->burst, "cpu", by->cpu));
    }
    return dims;
}

static json_t *json_numbers(const double *number, int32_t n)
{
    json_t *const list = json_array();
    for (int32_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(number[i]));
    return list;
}

json_t *mc_json_measured(const mc_measured_t *measured)
{
    json_t *const rows = json_array();
    for (int32_t i = 0; i < measured->n_rows; i++) {
        const mc_measured_row_t *const row = &measured->row[i];
        json_array_append_new(rows, json_pack("{s:s, s:s, s:o}", "collective",
                                              meshcoll_collective_name(row->collective), "strategy",
                                              row->strategy, "seconds",
                                              json_numbers(row->seconds, measured->n_sizes)));
    }
    return json_pack("{s:o, s:o}", "bytes", json_numbers(measured->bytes, measured->n_sizes),
                     "strategies", rows);
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
    if (failed && !ferror(stdout)) /* of that main tells */
        return mc_fail_memory("the JSON");
    return failed ? MC_EXIT_FAILED : MC_EXIT_OK;
}
