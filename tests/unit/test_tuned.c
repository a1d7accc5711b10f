#include "runtime/create/tuned.h"

#include "base/system/file.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char fast[] = "box=alpha:7us;beta:25MB/s;gamma:1GB/s;ports:1;pulled:no,"
                           "gpu=alpha:2us;beta:450GB/s;gamma:0.9ps/B;ports:all;pulled:yes";
static const char slow[] = "box=alpha:70us;beta:40ns/B;gamma:0;ports:2;pulled:no,"
                           "gpu=alpha:2us;beta:1GB/s;gamma:0;ports:1;pulled:yes";

static char folder[64], path[128];

static void open_folder(void)
{
    strcpy(folder, "/tmp/meshcoll-tuned-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/links.json", folder);
}

static void close_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(tuned, .init = open_folder, .fini = close_folder);

static mc_cluster_t cluster_of(const char *mesh, const char *transports)
{
    static const mc_place_t place[] = {
        {0, -1, -1, true}, {0, -1, -1, true}, {2, -1, -1, true}, {2, -1, -1, true}};
    const mc_settings_t settings = {.mesh = mesh, .transports = transports};
    mc_cluster_t cluster;
    cr_assert_eq(mc_cluster_find(&settings, place, 4, &cluster), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    return cluster;
}

static int write_links(const mc_cluster_t *cluster, const char *links)
{
    const mc_tuned_t tuned = {.links = links,
                              .date = "2026-01-02T03:04:05Z",
                              .command = "meshcoll tune",
                              .provenance = "a test"};
    return mc_tuned_write(path, cluster, &tuned);
}

static void expect_links(const mc_cluster_t *cluster, const char *expected)
{
    char *links = NULL;
    cr_assert_eq(mc_tuned_read(path, cluster, &links), MESHCOLL_OK, "%s", meshcoll_last_error());
    if (expected)
        cr_expect(links && strcmp(links, expected) == 0, "%s", links ? links : "none");
    else
        cr_expect_null(links, "%s", links);
    free(links);
}

static void put(const char *text)
{
    FILE *const file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0);
    fclose(file);
}

static void expect_content(const char *expected)
{
    char text[4096] = "";
    FILE *const file = fopen(path, "r");
    cr_assert_not_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    cr_expect(strstr(text, expected), "'%s' is not in %s", expected, text);
}

Test(tuned, a_cluster_is_what_its_numbers_depend_on)
{
    char text[MC_CLUSTER_TEXT];
    mc_text_t printed = mc_text(text, sizeof text);
    const mc_cluster_t found = cluster_of(NULL, "box=tcp,self");
    mc_cluster_print(&found, &printed);
    cr_expect_eq(found.machines, 2);
    cr_expect_gt(found.cores, 0);
    cr_expect_eq(strncmp(text, "box=2,gpu=2 on 2 machines with ", 31), 0, "%s", text);
    cr_expect_not_null(strstr(text, ", box=tcp,self;gpu=shm"), "%s", text);
}

/* The exact name first. */
Test(tuned, a_rank_is_tuned_as_a_gpu)
{
    const mc_cluster_t gpus = cluster_of("box=2,gpu=2", NULL),
                       ranks = cluster_of("box=2,rank=2", NULL);
    cr_assert_eq(write_links(&gpus, fast), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_links(&ranks, fast);
    cr_assert_eq(write_links(&ranks, "lab"), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_links(&ranks, "lab");
    expect_links(&gpus, fast);
    cr_assert_eq(remove(path), 0);
    cr_assert_eq(write_links(&ranks, "lab"), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_links(&gpus, "lab");
}

Test(tuned, what_is_written_is_found_again)
{
    const mc_cluster_t cluster = cluster_of("box=2,gpu=2", NULL);
    expect_links(&cluster, NULL);
    cr_assert_eq(write_links(&cluster, fast), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_links(&cluster, fast);
    cr_assert_eq(write_links(&cluster, slow), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_links(&cluster, slow);
    expect_content("\"provenance\": \"a test\"");
    expect_content("\"machines\": 2");
}

Test(tuned, clusters_do_not_disturb_each_other)
{
    const mc_cluster_t one = cluster_of("box=2,gpu=2", NULL), flat = cluster_of("gpu=4", NULL),
                       wired = cluster_of("box=2,gpu=2", "gpu=tcp,self");
    mc_cluster_t other = one;
    strcpy(other.cpu, "another processor");
    cr_assert_eq(write_links(&one, fast), MESHCOLL_OK);
    expect_links(&flat, NULL);
    expect_links(&wired, NULL);
    expect_links(&other, NULL);
    cr_assert_eq(write_links(&other, slow), MESHCOLL_OK);
    cr_assert_eq(write_links(&flat, "gpu=alpha:1us;beta:1ns/B"), MESHCOLL_OK);
    expect_links(&one, fast);
    expect_links(&other, slow);
    expect_links(&flat, "gpu=alpha:1us;beta:1ns/B");
    expect_links(&wired, NULL);
}

Test(tuned, folders_are_made_and_nothing_is_left_beside)
{
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    char command[192];
    snprintf(path, sizeof path, "%s/deep/er/links.json", folder);
    cr_assert_eq(write_links(&cluster, "shm"), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_links(&cluster, "shm");
    snprintf(command, sizeof command, "test \"$(ls %s/deep/er)\" = links.json", folder);
    cr_expect_eq(system(command), 0);
}

static void expect_broken(const char *content, const char *why)
{
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    char *links = (char *)fast;
    put(content);
    cr_expect_eq(mc_tuned_read(path, &cluster, &links), MESHCOLL_ERR_PARSE, "%s", content);
    cr_expect_not_null(strstr(meshcoll_last_error(), why), "'%s' lacks '%s'", meshcoll_last_error(),
                       why);
    cr_expect_not_null(strstr(meshcoll_last_error(), path));
    cr_expect_eq(links, fast, "the output was set");
}

Test(tuned, a_broken_file_is_told_and_stays)
{
    static const char *const broken[] = {"{\"version\": 1, \"clus", "[1, 2]",
                                         "{\"version\": 7, \"clusters\": {}}",
                                         "{\"version\": 1, \"clusters\": []}"};
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    for (size_t i = 0; i < MC_COUNT(broken); i++) {
        expect_broken(broken[i], i == 0 ? "line 1" : "expected \"version\": 1");
        cr_expect_eq(write_links(&cluster, "shm"), MESHCOLL_ERR_PARSE);
        expect_content(broken[i]);
    }
}

Test(tuned, a_broken_entry_is_told)
{
    char content[1024], key[MC_CLUSTER_TEXT];
    mc_text_t text = mc_text(key, sizeof key);
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    mc_cluster_print(&cluster, &text);
    snprintf(content, sizeof content, "{\"version\": 1, \"clusters\": {\"%s\": {\"date\": \"\"}}}",
             key);
    expect_broken(content, "has no \"links\"");
    snprintf(content, sizeof content,
             "{\"version\": 1, \"clusters\": {\"%s\": {\"links\": \"gpu=alpha:7\"}}}", key);
    expect_broken(content, "a time as in 7us");
    /* of a version whose links had more fields */
    snprintf(content, sizeof content,
             "{\"version\": 1, \"clusters\": {\"%s\": {\"links\": \"gpu=shm;incast:1.35\"}}}", key);
    expect_broken(content, "leave it out, or run meshcoll tune again");
    /* the entry is this cluster's own: tuning puts it right */
    cr_expect_eq(write_links(&cluster, "shm"), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_links(&cluster, "shm");
}

Test(tuned, what_cannot_be_written_is_told)
{
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    /* holds for root too */
    snprintf(path, sizeof path, "/proc/meshcoll/links.json");
    cr_expect_eq(write_links(&cluster, "shm"), MESHCOLL_ERR_IO);
    cr_expect_not_null(strstr(meshcoll_last_error(), path), "%s", meshcoll_last_error());
    snprintf(path, sizeof path, "%s/file/links.json", folder);
    char file[128];
    snprintf(file, sizeof file, "%s/file", folder);
    fclose(fopen(file, "w"));
    cr_expect_eq(write_links(&cluster, "shm"), MESHCOLL_ERR_IO);
    cr_expect_not_null(strstr(meshcoll_last_error(), "cannot be written"));
}

static void expect_path(const char *expected)
{
    char found[MC_TUNED_PATH];
    cr_assert_eq(mc_tuned_path(found), MESHCOLL_OK);
    cr_expect_str_eq(found, expected, "%s", found);
}

Test(tuned, where_the_file_is)
{
    char found[MC_TUNED_PATH];
    setenv("MESHCOLL_TUNE_FILE", "there.json", 1);
    setenv("XDG_CONFIG_HOME", "/etc/xdg", 1);
    setenv("HOME", "/home/me", 1);
    expect_path("there.json");
    setenv("MESHCOLL_TUNE_FILE", "", 1);
    expect_path("/etc/xdg/meshcoll/links.json");
    unsetenv("XDG_CONFIG_HOME");
    expect_path("/home/me/.config/meshcoll/links.json");
    unsetenv("HOME");
    cr_expect_eq(mc_tuned_path(found), MESHCOLL_ERR_IO);
    cr_expect_not_null(strstr(meshcoll_last_error(), "MESHCOLL_TUNE_FILE"));
}

enum { ENTRIES = 100, WRITERS = 2 };

static mc_cluster_t numbered(int writer, int entry)
{
    mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    snprintf(cluster.cpu, sizeof cluster.cpu, "processor %d of writer %d", entry, writer);
    return cluster;
}

static void write_many(int writer)
{
    for (int i = 0; i < ENTRIES; i++) {
        const mc_cluster_t cluster = numbered(writer, i);
        if (write_links(&cluster, "shm"))
            _exit(1);
    }
    _exit(0);
}

static void expect_exit(pid_t child)
{
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a writer failed");
}

Test(tuned, who_writes_at_the_same_time_loses_nothing)
{
    pid_t child[WRITERS];
    for (int w = 0; w < WRITERS; w++)
        if ((child[w] = fork()) == 0)
            write_many(w);
    for (int w = 0; w < WRITERS; w++)
        expect_exit(child[w]);
    for (int w = 0; w < WRITERS; w++)
        for (int i = 0; i < ENTRIES; i++) {
            const mc_cluster_t cluster = numbered(w, i);
            expect_links(&cluster, "shm");
        }
    char command[192];
    snprintf(command, sizeof command, "test \"$(ls %s)\" = links.json", folder);
    cr_expect_eq(system(command), 0, "something is left beside");
}

Test(tuned, a_lock_goes_with_who_holds_it)
{
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    mc_file_lock_t lock;
    int held[2];
    char byte = 0;
    cr_assert_eq(pipe(held), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (mc_file_lock(path, 1, &lock) || write(held[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    cr_assert_eq(read(held[0], &byte, 1), 1);
    cr_expect_eq(mc_file_lock(path, 0.05, &lock), MESHCOLL_ERR_IO, "two have it");
    cr_expect(strstr(meshcoll_last_error(), "another process has held its lock"), "%s",
              meshcoll_last_error());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_expect_eq(write_links(&cluster, "shm"), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_links(&cluster, "shm");
}

/* Neither waits for anybody, nor reads without end. */
static void expect_refused(const char *why)
{
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    char *links = NULL;
    const double since = mc_now();
    cr_expect_eq(mc_tuned_read(path, &cluster, &links), MESHCOLL_ERR_IO);
    cr_expect(strstr(meshcoll_last_error(), why), "'%s' lacks '%s'", meshcoll_last_error(), why);
    if (strncmp(path, folder, strlen(folder)) == 0)
        cr_expect_eq(write_links(&cluster, "shm"), MESHCOLL_ERR_IO);
    cr_expect_null(links);
    cr_expect_lt(mc_now() - since, 5, "it took long");
}

Test(tuned, a_fifo_is_refused_at_once, .timeout = 20)
{
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refused("expected a regular file, not a FIFO");
}

Test(tuned, a_folder_is_refused, .timeout = 20)
{
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_refused("expected a regular file, not a folder");
}

Test(tuned, a_device_is_refused, .timeout = 20)
{
    strcpy(path, "/dev/zero");
    expect_refused("expected a regular file, not a device");
}

Test(tuned, a_file_without_end_is_refused, .timeout = 20)
{
    put("");
    cr_assert_eq(truncate(path, (off_t)1 << 40), 0);
    expect_refused("it is larger than 16 MiB");
}

static void expect_unreadable(const char *why)
{
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    char *links = NULL;
    cr_expect_eq(mc_tuned_read(path, &cluster, &links), MESHCOLL_ERR_PARSE);
    cr_expect(strstr(meshcoll_last_error(), why), "'%s' lacks '%s'", meshcoll_last_error(), why);
}

/* Brackets in strings do not count. */
Test(tuned, a_file_of_deep_brackets_is_refused)
{
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    put("{\"version\": 1, \"x\": \"\\\"[[[[[[[[[[[[[[[[[[[[\", \"clusters\": {}}");
    expect_links(&cluster, NULL);
    put("{\"version\": 1, \"clusters\": {\"x\": [[[[[[[[[[[[[[]]]]]]]]]]]]]]}}");
    expect_links(&cluster, NULL);
    put("{\"version\": 1, \"clusters\": {\"x\": [[[[[[[[[[[[[[[]]]]]]]]]]]]]]]}}");
    expect_unreadable("its brackets are nested deeper than 16");
}

/* A text that ranks would refuse is not sent to them either. */
Test(tuned, too_long_links_of_a_file_are_refused)
{
    static char links[MC_LINKS_MOST_READ + 2];
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    memset(links, ',', sizeof links - 1);
    cr_assert_eq(write_links(&cluster, links), MESHCOLL_OK);
    expect_unreadable("the text of links has more than 65535 characters");
    cr_assert_eq(setenv("MESHCOLL_TUNE_FILE", path, 1), 0);
    cr_expect_lt(mc_tuned_most(&(mc_settings_t){0}), sizeof links);
}

/* Ranks have been told how long the settings are when the file is read again. */
Test(tuned, links_that_became_longer_meanwhile_are_not_used)
{
    static const mc_place_t place[4] = {
        {0, -1, -1, true}, {0, -1, -1, true}, {0, -1, -1, true}, {0, -1, -1, true}};
    mc_settings_t settings = {.mesh = "gpu=4"};
    mc_cluster_t cluster;
    cr_assert_eq(mc_cluster_find(&settings, place, 4, &cluster), MESHCOLL_OK);
    cr_assert_eq(setenv("MESHCOLL_TUNE_FILE", path, 1), 0);
    cr_assert_eq(write_links(&cluster, "gpu=alpha:1us;beta:1GB/s"), MESHCOLL_OK);
    const size_t shorter = mc_settings_bytes(&settings) + 8,
                 most = shorter + mc_tuned_most(&settings);
    cr_expect_eq(mc_tuned_use(&settings, place, 4, shorter), MESHCOLL_OK);
    cr_expect_null(settings.links);
    cr_expect_eq(mc_tuned_use(&settings, place, 4, most), MESHCOLL_OK);
    cr_expect_not_null(settings.links);
    mc_settings_free(&settings);
}

Test(tuned, extreme_links_of_a_file_are_refused)
{
    const mc_cluster_t cluster = cluster_of("gpu=4", NULL);
    char *links = NULL;
    cr_assert_eq(write_links(&cluster, "gpu=alpha:1us;beta:1e305s/B"), MESHCOLL_OK);
    cr_expect_eq(mc_tuned_read(path, &cluster, &links), MESHCOLL_ERR_PARSE);
    cr_expect(strstr(meshcoll_last_error(), "beta of a link is 0, or from 1e-30 to 1000"), "%s",
              meshcoll_last_error());
}
