#include "mesh/link/link_show.h"

#include "mesh/link/link_text.h"

#include <string.h>

mc_printed_t mc_ports_print(int32_t ports)
{
    mc_printed_t printed;
    snprintf(printed.text, sizeof printed.text, ports == MC_PORTS_ALL ? "1 a rank" : "%d a box",
             ports);
    return printed;
}

/* Numbers that most links lack have a column only where some link has one. */
static bool is_shown(const mc_link_field_t *field, const mc_links_t *links)
{
    const bool gap = !field->corrects && field->offset == offsetof(mc_link_t, gap);
    const bool always = !field->corrects && field->offset != offsetof(mc_link_t, call) && !gap;
    bool any = always;
    for (int32_t d = 0; d < links->ndims && !any; d++) {
        const double number = mc_link_value(field, links, d);
        any = number > 0 && !(gap && number == links->dim[d].alpha);
    }
    return any;
}

/* The head, or the number of dimension d, of the fields that are corrections, or those that are not. */
static void add_fields(mc_table_t *table, const mc_links_t *links, int32_t d, bool corrections)
{
    for (int i = 0; i < MC_LINK_FIELDS; i++) {
        const mc_link_field_t *const field = &mc_link_fields[i];
        if (field->corrects != corrections || !is_shown(field, links))
            continue;
        if (d < 0)
            mc_table_add(table, "%s", field->head);
        else
            field->kind->show(table, mc_link_value(field, links, d));
    }
}

/* d < 0: the head. */
static void add_line(mc_table_t *table, const mc_mesh_t *mesh, const mc_links_t *links, int32_t d)
{
    mc_table_add(table, "%s", d < 0 ? "link" : mesh->dim[d].name);
    add_fields(table, links, d, false);
    mc_table_add(table, "%s", d < 0 ? "ports" : mc_ports_print(links->dim[d].ports).text);
    add_fields(table, links, d, true);
}

static void print_remarks(const mc_mesh_t *mesh, const mc_links_t *links, FILE *out)
{
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const int32_t wire = mc_links_wire(links, d);
        const bool pulled = links->dim[d].pulled, shares = wire != d;
        if (pulled || shares)
            fprintf(out, "  %s: %s%s%s%s\n", mesh->dim[d].name, pulled ? "the receivers copy" : "",
                    pulled && shares ? ", " : "", shares ? "by the wire of " : "",
                    shares ? mesh->dim[wire].name : "");
    }
}

int mc_links_show(const mc_mesh_t *mesh, const mc_links_t *links, FILE *out)
{
    char align[MC_LINK_FIELDS + 4];
    mc_text_t columns = mc_text(align, sizeof align);
    mc_text_add(&columns, "l");
    for (int i = 0; i < MC_LINK_FIELDS; i++) {
        const mc_link_field_t *const field = &mc_link_fields[i];
        if (field->corrects && !mc_link_fields[i - 1].corrects)
            mc_text_add(&columns, "l");
        if (is_shown(field, links))
            mc_text_add(&columns, "r");
    }
    mc_table_t table = mc_table(align);
    for (int32_t d = -1; d < mesh->ndims; d++)
        add_line(&table, mesh, links, d);
    const int status = mc_table_print(&table, 2, out);
    print_remarks(mesh, links, out);
    return status;
}

int mc_measured_show(const mc_measured_t *measured, FILE *out)
{
    char align[2 + MC_MEASURED_SIZES] = "l";
    memset(align + 1, 'r', (size_t)measured->n_sizes);
    mc_table_t table = mc_table(align);
    mc_table_add(&table, "measured");
    for (int32_t k = 0; k < measured->n_sizes; k++)
        mc_table_add(&table, "%s", mc_print_bytes(measured->bytes[k]).text);
    for (int32_t i = 0; i < measured->n_rows; i++) {
        const mc_measured_row_t *const row = &measured->row[i];
        mc_table_add(&table, "%s", row->strategy);
        for (int32_t k = 0; k < measured->n_sizes; k++)
            mc_table_add_seconds(&table, row->seconds[k]);
    }
    return mc_table_print(&table, 2, out);
}
