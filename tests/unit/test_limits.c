/* Texts and numbers from outside have limits, and what exceeds them is refused with a sentence. */
#include "compose/strategy/strategy.h"
#include "mesh/link/link.h"
#include "runtime/connect/connections.h"
#include "runtime/place/settings.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* A text of n characters, to be freed. */
static char *text_of(const char *head, char filler, size_t n)
{
    char *const text = malloc(n + 1);
    memset(text, filler, n);
    memcpy(text, head, strlen(head));
    text[n] = '\0';
    return text;
}

static void expect_sentence(const char *says)
{
    cr_expect(strstr(meshcoll_last_error(), says), "%s", meshcoll_last_error());
}

Test(limits, of_texts)
{
    mc_mesh_t mesh;
    mc_links_t links;
    mc_strategy_t strategy;
    char *const m = text_of("x=", '0', MC_MESH_MOST_READ + 1),
                *const l = text_of("lab,", ',', MC_LINKS_MOST_READ + 1),
                *const s = text_of("flat-mst", ' ', MC_STRATEGY_MOST_READ + 1);
    cr_expect_eq(mc_mesh_parse(m, &mesh), MESHCOLL_ERR_PARSE);
    expect_sentence("a mesh has more than 65535 characters");
    cr_assert_eq(mc_mesh_parse("box=2,gpu=2", &mesh), MESHCOLL_OK);
    cr_expect_eq(mc_links_parse(l, &mesh, &links), MESHCOLL_ERR_PARSE);
    expect_sentence("links has more than 65535 characters");
    cr_expect_eq(mc_strategy_parse(s, MESHCOLL_BCAST, &mesh, &strategy), MESHCOLL_ERR_STRATEGY);
    expect_sentence("a strategy has more than 8191 characters");
    s[MC_STRATEGY_MOST_READ] = '\0';
    cr_expect_eq(mc_strategy_parse(s, MESHCOLL_BCAST, &mesh, &strategy), MESHCOLL_OK);
    free(m);
    free(l);
    free(s);
}

Test(limits, the_longest_list_of_boxes_is_read)
{
    mc_mesh_t mesh;
    char text[MC_MESH_MOST_READ + 1] = "box=7";
    for (size_t n = strlen(text); n + 2 <= MC_MESH_MOST_READ; n += 2)
        memcpy(text + n, "+8", 3);
    cr_expect_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
}

/* As many rows as a table has, with texts and numbers as long as they get. */
Test(limits, the_longest_links_are_printed)
{
    static char printed[MC_LINKS_TEXT];
    static mc_links_t links, again;
    static mc_measured_t table;
    mc_mesh_t mesh;
    char strategy[MC_MEASURED_TEXT];
    double seconds[MC_MEASURED_SIZES];
    cr_assert_eq(mc_mesh_parse("gpu=8", &mesh), MESHCOLL_OK);
    cr_assert_eq(mc_links_parse("uniform", &mesh, &links), MESHCOLL_OK);
    links.measured = &table;
    memset(strategy, 'x', sizeof strategy - 1);
    strategy[sizeof strategy - 1] = '\0';
    for (int i = 0; i < MC_MEASURED_SIZES; i++) {
        table.bytes[i] = (1 << 20) * (i + 1) / 3.0;
        seconds[i] = (i + 1) * 1.1e-9 / 3;
    }
    table.n_sizes = MC_MEASURED_SIZES;
    for (int i = 0; i < MC_MEASURED_ROWS; i++)
        cr_assert_eq(mc_measured_add(&table, MESHCOLL_REDUCE_SCATTER, strategy, seconds), 0);
    mc_text_t text = mc_text(printed, sizeof printed);
    mc_links_print(&links, &mesh, &text);
    cr_assert_lt(text.length, sizeof printed);
    cr_assert_eq(mc_links_parse(printed, &mesh, &again), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(again.measured->n_rows, MC_MEASURED_ROWS);
    mc_links_free(&again);
}

Test(limits, of_settings)
{
    mc_settings_t settings = {0};
    char *const text = text_of("gpu=shm", ';', MC_SETTING_MOST + 1);
    meshcoll_params_t params = {.size = sizeof params, .transports = text};
    cr_expect_eq(mc_settings_read(&params, &settings), MESHCOLL_ERR_PARSE);
    expect_sentence("MESHCOLL_TRANSPORTS has more than 65535 characters");
    setenv("MESHCOLL_STRATEGY_BCAST", text, 1);
    params.transports = NULL;
    cr_expect_eq(mc_settings_read(&params, &settings), MESHCOLL_ERR_PARSE);
    expect_sentence("MESHCOLL_STRATEGY_");
    text[MC_SETTING_MOST] = '\0';
    setenv("MESHCOLL_STRATEGY_BCAST", text, 1);
    cr_expect_eq(mc_settings_read(&params, &settings), MESHCOLL_OK);
    mc_settings_free(&settings);
    free(text);
}

/* Addresses ------------------------------------------------------------------------------------ */

enum { ADDRESS = 24 };

/* Rank 1 states that its address has `bytes` bytes. */
static int addresses_of(uint64_t bytes, bool ucx)
{
    mc_transport_t t = {
        .address_bytes = ADDRESS, .address_least = ucx ? ADDRESS / 2 : 0, .greets = ucx};
    static mc_job_t job;
    char all[2 * (8 + ADDRESS)] = {ADDRESS};
    memcpy(all + 8 + ADDRESS, &bytes, sizeof bytes);
    cr_assert_eq(mc_mesh_parse("x=2", &job.mesh), MESHCOLL_OK);
    job.connections.transport[0] = &t;
    job.connections.addresses = all;
    job.connections.address_stride = 8 + ADDRESS;
    return mc_addresses_check(&job);
}

Test(limits, of_addresses)
{
    cr_expect_eq(addresses_of(ADDRESS, false), MESHCOLL_OK);
    cr_expect_eq(addresses_of(ADDRESS - 1, true), MESHCOLL_OK);
    cr_expect_eq(addresses_of(ADDRESS - 1, false), MESHCOLL_ERR_TRANSPORT);
    expect_sentence("rank 1 along dimension x has a wrong length");
    cr_expect_eq(addresses_of(ADDRESS + 1, true), MESHCOLL_ERR_TRANSPORT);
    cr_expect_eq(addresses_of(UINT64_MAX - 7, true), MESHCOLL_ERR_TRANSPORT);
    cr_expect_eq(addresses_of(0, true), MESHCOLL_ERR_TRANSPORT);
    cr_expect_eq(mc_addresses_check_bytes(MC_ADDRESSES_MOST), MESHCOLL_OK);
    cr_expect_eq(mc_addresses_check_bytes(MC_ADDRESSES_MOST + 8), MESHCOLL_ERR_TRANSPORT);
    cr_expect_eq(mc_addresses_check_bytes(UINT64_MAX), MESHCOLL_ERR_TRANSPORT);
    expect_sentence("a rank's addresses take 18446744073709551615 bytes");
}
