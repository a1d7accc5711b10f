#include "tools/common/show.h"

#include "base/number.h"
#include "mesh/link/link_show.h"

#include <inttypes.h>
#include <string.h>

void mc_show_sentence(int indent, const char *format, ...)
{
    char sentence[MC_STRATEGY_TEXT + 512];
    va_list args;
    va_start(args, format);
    mc_number_vprint(sentence, sizeof sentence, format, args);
    va_end(args);
    printf("%*s", indent, "");
    mc_print_words(sentence, indent, indent, stdout);
    putchar('\n');
}

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

const char *mc_show_mesh(const mc_mesh_t *mesh)
{
    static char buffer[MC_MESH_TEXT];
    return mc_mesh_text(mesh, buffer);
}

const char *mc_show_call(meshcoll_collective_t collective, const mc_mesh_t *mesh, int32_t root)
{
    static char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_text_add(&text, "%s on %s", mc_moves[collective].name, mc_show_mesh(mesh));
    if (mc_moves[collective].rooted)
        mc_text_add(&text, ", root %d", root);
    return buffer;
}

const char *mc_show_network(const mc_network_t *network)
{
    static char buffer[MC_NETWORK_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    if (network)
        mc_network_print(network, &text);
    return buffer;
}

mc_term_text_t mc_show_ratio(mc_ratio_t ratio)
{
    mc_term_text_t printed;
    mc_text_t text = mc_text(printed.text, sizeof printed.text);
    mc_text_add(&text, "%" PRId64, ratio.num);
    if (ratio.den != 1)
        mc_text_add(&text, "/%" PRId64, ratio.den);
    return printed;
}

/* "α", "3α", "7/8 nβ" */
static void add_product(mc_text_t *text, mc_ratio_t ratio, const char *symbol)
{
    if (ratio.num == 0)
        return;
    mc_text_add(text, "%s", text->length > 0 ? " + " : "");
    if (ratio.num != 1 || ratio.den != 1)
        mc_text_add(text, "%s%s", mc_show_ratio(ratio).text, ratio.den == 1 ? "" : " ");
    mc_text_add(text, "%s", symbol);
}

mc_term_text_t mc_show_term(const mc_term_t *term)
{
    mc_term_text_t shown;
    mc_text_t text = mc_text(shown.text, sizeof shown.text);
    add_product(&text, term->alpha, "α");
    add_product(&text, term->beta, "nβ");
    add_product(&text, term->gamma, "nγ");
    if (text.length == 0)
        mc_text_add(&text, "-");
    return shown;
}

json_t *mc_json_ports(int32_t ports)
{
    return ports == MC_PORTS_ALL ? json_string("all") : json_integer(ports);
}

int mc_show_links(const mc_mesh_t *mesh, const mc_links_t *links)
{
    const int status = mc_links_show(mesh, links, stdout);
    if (status || mc_links_measured(links)->n_rows == 0)
        return status;
    putchar('\n');
    return mc_measured_show(links->measured, stdout);
}

/* JSON ------------------------------------------------------------------------------------------- */

json_t *mc_json_mesh(const mc_mesh_t *mesh)
{
    json_t *const dims = json_array();
    for (int32_t d = 0; d < mesh->ndims; d++)
        json_array_append_new(dims, json_pack("{s:s, s:i}", "name", mesh->dim[d].name, "extent",
                                              (int)mesh->dim[d].extent));
    return json_pack("{s:s, s:i, s:o}", "text", mc_show_mesh(mesh), "ranks", (int)mesh->size,
                     "dims", dims);
}

json_t *mc_json_call(const char *command, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                     int32_t root)
{
    json_t *const json = json_pack("{s:s, s:s, s:o}", "command", command, "collective",
                                   mc_moves[collective].name, "mesh", mc_json_mesh(mesh));
    if (mc_moves[collective].rooted)
        json_object_set_new(json, "root", json_integer(root));
    return json;
}

json_t *mc_json_links(const mc_mesh_t *mesh, const mc_links_t *links)
{
    json_t *const dims = json_array();
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const mc_link_t *const link = &links->dim[d];
        const mc_correction_t *const by = &links->correction[d];
        json_array_append_new(
            dims,
            json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:o, s:b, s:b, s:s, s:f, s:f, s:f, s:f}",
                      "dim", mesh->dim[d].name, "alpha", link->alpha, "gap", link->gap, "beta",
                      link->beta, "gamma", link->gamma, "call", link->call, "ports",
                      mc_json_ports(link->ports), "pulled", (int)link->pulled, "streams",
                      (int)link->streams, "wire", mesh->dim[mc_links_wire(links, d)].name, "window",
                      by->window, "burst", by->burst, "cpu", by->cpu, "eager", by->eager));
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
    json_t *const dims = json_array();
    for (int32_t d = 0; d < mesh->ndims; d++)
        json_array_append_new(dims, json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:s}", "dim",
                                              mesh->dim[d].name, "alpha",
                                              mc_show_ratio(cost->dim[d].alpha).text, "row",
                                              mc_show_ratio(cost->dim[d].row).text, "beta",
                                              mc_show_ratio(cost->dim[d].beta).text, "gamma",
                                              mc_show_ratio(cost->dim[d].gamma).text, "messages",
                                              (json_int_t)cost->dim[d].messages, "volume",
                                              mc_show_ratio(cost->dim[d].volume).text));
    return dims;
}

/* Bytes of the character at the beginning of `text`; 0: it is no UTF-8. */
static size_t character(const char *text)
{
    enum { MOST_BYTES = 4 };
    const size_t n = strnlen(text, MOST_BYTES);
    for (size_t k = 1; k <= n; k++) {
        json_t *const one = json_stringn(text, k);
        json_decref(one);
        if (one)
            return k;
    }
    return 0;
}

json_t *mc_json_text(const char *text)
{
    static const char unknown[] = "\xef\xbf\xbd";
    json_t *json = json_string(text);
    char *const valid = json ? NULL : malloc(strlen(unknown) * strlen(text) + 1), *to = valid;
    if (!valid)
        return json;
    for (size_t n; *text; text += n ? n : 1) {
        n = character(text);
        to = mempcpy(to, n ? text : unknown, n ? n : strlen(unknown));
    }
    json = json_stringn(valid, (size_t)(to - valid));
    free(valid);
    return json;
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
