#include "mesh/link/show.h"

#include "base/table.h"

#include <string.h>

const char *mc_ports_print(int32_t ports, char buffer[MC_PORTS_TEXT])
{
    snprintf(buffer, MC_PORTS_TEXT,
             ports == MC_PORTS_ALL ? "one for every rank" : "%d for each box", ports);
    return buffer;
}

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
    char number[MC_PORTS_TEXT];
    mc_table_add(table, "%s", bytes > 0 ? mc_print_bytes(bytes, number, sizeof number) : "-");
}

static void add_corrections(mc_table_t *table, const columns_t *c, const mc_correction_t *by)
{
    if (c->window)
        add_size(table, by->window);
    if (c->burst)
        add_size(table, by->burst);
    if (c->cpu)
        mc_table_add_seconds(table, by->cpu);
}

static void add_link(mc_table_t *table, const columns_t *c, const mc_mesh_t *mesh,
                     const mc_links_t *links, int32_t d)
{
    char number[MC_PORTS_TEXT];
    const mc_link_t *const link = &links->dim[d];
    const int32_t wire = mc_links_wire(links, d);
    mc_table_add(table, "%s", mesh->dim[d].name);
    mc_table_add_seconds(table, link->alpha);
    if (c->gap)
        mc_table_add_seconds(table, link->gap);
    mc_table_add_rate(table, link->beta);
    mc_table_add_rate(table, link->gamma);
    if (c->call)
        mc_table_add_seconds(table, link->call);
    mc_table_add(table, "%s", mc_ports_print(link->ports, number));
    add_corrections(table, c, &links->correction[d]);
    mc_table_add(table, "%s%s%s", link->pulled ? "the receivers copy" : "",
                 wire == d      ? ""
                 : link->pulled ? ", by the wire of "
                                : "by the wire of ",
                 wire == d ? "" : mesh->dim[wire].name);
}

int mc_links_show(const mc_mesh_t *mesh, const mc_links_t *links, FILE *out)
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
    return mc_table_print(&table, 2, out);
}

int mc_measured_show(const mc_measured_t *measured, FILE *out)
{
    char align[2 + MC_MEASURED_SIZES] = "l", number[MC_PORTS_TEXT];
    memset(align + 1, 'r', (size_t)measured->n_sizes);
    mc_table_t table = mc_table(align);
    mc_table_add(&table, "measured");
    for (int32_t k = 0; k < measured->n_sizes; k++)
        mc_table_add(&table, "%s", mc_print_bytes(measured->bytes[k], number, sizeof number));
    for (int32_t i = 0; i < measured->n_rows; i++) {
        const mc_measured_row_t *const row = &measured->row[i];
        mc_table_add(&table, "%s", row->strategy);
        for (int32_t k = 0; k < measured->n_sizes; k++)
            mc_table_add_seconds(&table, row->seconds[k]);
    }
    return mc_table_print(&table, 2, out);
}
