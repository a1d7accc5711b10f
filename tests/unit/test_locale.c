/* A program whose locale has a decimal comma: variables, links, sizes and tune files are read and written with a point,
 * and error texts name numbers as they are read. And one whose i has another capital: words in any case are found. */
#include "base/base.h"
#include "base/system/log.h"
#include "job/monitor/monitor.h"
#include "mesh/link/link.h"
#include "runtime/create/tuned.h"
#include "transport/ucx.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

/* Makes the locale, as a machine need not have one. */
static void open_locale(const char *name)
{
    char command[256], full[16];
    strcpy(folder, "/tmp/meshcoll-locale-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(command, sizeof command, "localedef -i %s -f UTF-8 %s/%s.UTF-8 >%s/log 2>&1", name,
             folder, name, folder);
    snprintf(full, sizeof full, "%s.UTF-8", name);
    const bool made =
        system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_ALL, full);
    if (!made)
        cr_skip("skipped: no locale %s: localedef and its source are needed (Debian: locales)",
                full);
}

static void close_locale(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(locale, .fini = close_locale);

static int allgather(void *context, const void *in, void *out, size_t bytes)
{
    (void)context;
    memcpy(out, in, bytes);
    return 0;
}

static void check_variables(void)
{
    uint64_t bytes;
    double seconds;
    cr_assert_eq(mc_parse_bytes("1.5K", &bytes), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_eq(bytes, 1536u);
    cr_assert_eq(mc_monitor_parse("2.5", &seconds), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_float_eq(seconds, 2.5, 0);
    const meshcoll_oob_t oob = {.rank = 0, .size = 1, .allgather = allgather};
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = "gpu=1",
                                      .links = "gpu=alpha:1.5us;beta:2.5GB/s",
                                      .explain = "factor:1.5",
                                      .timeout = "2.5"};
    meshcoll_t *mesh;
    cr_assert_eq(meshcoll_create_oob(&oob, &params, &mesh), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    meshcoll_destroy(mesh);
}

static const char links[] = "gpu=alpha:1.23us;beta:4.5GB/s;gamma:0.9ps/B;ports:1;pulled:no";

static void check_links(void)
{
    mc_mesh_t mesh;
    mc_links_t read, again;
    char buffer[MC_LINKS_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    cr_assert_eq(mc_mesh_parse("gpu=4", &mesh), MESHCOLL_OK);
    cr_assert_eq(mc_links_parse(links, &mesh, &read), MESHCOLL_OK, "%s", meshcoll_last_error());
    mc_links_print(&read, &mesh, &text);
    cr_assert(strstr(buffer, "1.23us"), "%s", buffer);
    cr_assert_eq(mc_links_parse(buffer, &mesh, &again), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_eq(memcmp(&read.dim[0], &again.dim[0], sizeof read.dim[0]), 0);
}

static void check_tune_files(void)
{
    static const mc_place_t place[4] = {{0}};
    const mc_settings_t settings = {.mesh = "gpu=4"};
    const mc_tuned_t tuned = {
        .links = links, .date = "2026-01-02T03:04:05Z", .command = "a", .provenance = "b"};
    mc_cluster_t cluster;
    char path[128], *found = NULL;
    snprintf(path, sizeof path, "%s/links.json", folder);
    cr_assert_eq(mc_cluster_find(&settings, place, 4, &cluster), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    cr_assert_eq(mc_tuned_write(path, &cluster, &tuned), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_eq(mc_tuned_read(path, &cluster, &found), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_str_eq(found, links);
    free(found);
}

static void check_texts(void)
{
    char buffer[64];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_text_add(&text, "%.1f s", 2.5);
    cr_assert_str_eq(buffer, "2.5 s");
    cr_assert_str_eq(mc_print_bytes(1536).text, "1.5 KiB");
    mc_fail(MESHCOLL_ERR_TIMEOUT, "after %g s", 1.5);
    cr_assert_str_eq(meshcoll_last_error(), "after 1.5 s");
    snprintf(buffer, sizeof buffer, "%.1f", 2.5);
    cr_assert_str_eq(buffer, "2,5", "the program's own locale stays");
}

/* One test a locale, as making it takes a second. */
Test(locale, a_decimal_comma_changes_nothing)
{
    open_locale("de_DE");
    cr_assert_str_eq(localeconv()->decimal_point, ",");
    check_variables();
    check_links();
    check_tune_files();
    check_texts();
}

Test(locale, a_capital_i_with_a_dot_changes_nothing)
{
    mc_transport_t *transport;
    const mc_ucx_params_t params = {.tls = "tcp,self", .dim = "box"};
    open_locale("tr_TR");
    cr_assert_eq(tolower('I'), 'I');
    cr_assert_eq(mc_ucx_create(&params, &transport), MESHCOLL_OK, "%s", meshcoll_last_error());
    transport->ops->close(transport);
    setenv("MESHCOLL_LOG", "INFO", 1);
    cr_assert(mc_log_has(MC_LOG_INFO));
    cr_assert_eq(tolower('I'), 'I', "the program's own locale stays");
}
