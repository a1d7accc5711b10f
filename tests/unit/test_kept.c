/* What the library keeps for later jobs of the user: texts by key, or nothing, whatever happens to their files. */
#include "base/system/kept.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], inside[512];

static void begin(void)
{
    strcpy(folder, "/tmp/meshcoll-kept-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(inside, sizeof inside, "%s/deep", folder); /* it does not exist yet */
    setenv("XDG_CACHE_HOME", inside, 1);
    snprintf(inside, sizeof inside, "%s/deep/meshcoll", folder);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

static void expect(const char *key, const char *wanted)
{
    char *const text = mc_kept_read("links", key);
    if (wanted)
        cr_expect(text && strcmp(text, wanted) == 0, "%s: '%s' instead of '%s'", key,
                  text ? text : "nothing", wanted);
    else
        cr_expect_null(text, "%s: '%s' instead of nothing", key, text);
    free(text);
}

/* Returns how many files there are; *path is the last one's. */
static int count_files(char path[1024])
{
    int n = 0;
    DIR *const dir = opendir(inside);
    cr_assert_not_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            snprintf(path, 1024, "%s/%s", inside, e->d_name);
            n++;
        }
    closedir(dir);
    return n;
}

Test(kept, gives_back_what_it_was_given, .init = begin, .fini = end)
{
    char path[1024];
    struct stat is;
    expect("a", NULL);
    cr_assert(mc_kept_write("links", "a", "one\ntwo"));
    cr_assert(mc_kept_write("links", "a key of several words, with = and ;", ""));
    expect("a", "one\ntwo");
    expect("a key of several words, with = and ;", "");
    cr_assert(mc_kept_write("links", "a", "three"));
    expect("a", "three");
    cr_expect_null(mc_kept_read("others", "a"));
    cr_expect_eq(count_files(path), 2);
    cr_assert_eq(stat(path, &is), 0);
    cr_expect_eq(is.st_mode & 0777, 0600);
    mc_kept_drop("links", "a");
    mc_kept_drop("links", "never kept");
    expect("a", NULL);
    expect("a key of several words, with = and ;", "");
}

Test(kept, is_nothing_where_the_file_is_broken, .init = begin, .fini = end)
{
    char path[1024], whole[256] = "";
    cr_assert(mc_kept_write("links", "key", "a text of some length"));
    cr_assert_eq(count_files(path), 1);
    FILE *file = fopen(path, "r");
    const size_t n = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (size_t cut = 0; cut <= n; cut++) {
        file = fopen(path, "w");
        cr_assert_eq(fwrite(whole, 1, cut, file), cut);
        fclose(file);
        expect("key", cut < n ? NULL : "a text of some length");
    }
    for (size_t i = 0; i < n; i++) {
        whole[i] ^= 1;
        file = fopen(path, "w");
        cr_assert_eq(fwrite(whole, 1, n, file), n);
        fclose(file);
        expect("key", NULL);
        whole[i] ^= 1;
    }
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect("key", NULL);
    cr_expect(mc_kept_write("links", "key", "again"));
    expect("key", "again");
}

Test(kept, is_nothing_where_others_own_it_or_may_write_to_it, .init = begin, .fini = end)
{
    char path[1024];
    cr_assert(mc_kept_write("links", "key", "text"));
    cr_assert_eq(count_files(path), 1);
    const char *const at[] = {path, inside};
    const mode_t closed[] = {0600, 0700};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(chmod(at[i], closed[i] | S_IWGRP), 0);
        expect("key", NULL);
        cr_assert_eq(chmod(at[i], closed[i] | S_IWOTH), 0);
        expect("key", NULL);
        cr_assert_eq(chmod(at[i], closed[i] | S_IRGRP | S_IROTH), 0);
        expect("key", "text");
        if (geteuid() == 0) {
            cr_assert_eq(chown(at[i], 65534, (gid_t)-1), 0);
            expect("key", NULL);
            cr_expect_eq(mc_kept_write("links", "key", "text"), i == 0,
                         "it is replaced, no folder is");
            cr_assert_eq(chown(at[i], 0, (gid_t)-1), 0);
        }
        expect("key", "text");
    }
}

Test(kept, is_no_error_where_it_cannot_be_written, .init = begin, .fini = end)
{
    static char large[MC_KEPT_BYTES + 2];
    memset(large, 'x', sizeof large - 1);
    cr_expect_not(mc_kept_write("links", "key", large));
    cr_expect_not(mc_kept_write("links", "two\nlines", "text"));
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    cr_expect_not(mc_kept_write("links", "key", "text"));
    expect("key", NULL);
    mc_kept_drop("links", "key");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", folder, 1);
    cr_expect(mc_kept_write("links", "key", "at home"));
    expect("key", "at home");
    setenv("HOME", "relative", 1);
    cr_expect_not(mc_kept_write("links", "key", "text"));
    unsetenv("HOME");
    cr_expect_not(mc_kept_write("links", "key", "text"));
    expect("key", NULL);
}

/* To write it would end the process by SIGXFSZ. */
Test(kept, nothing_where_files_may_not_be_so_long, .init = begin, .fini = end)
{
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){16, RLIM_INFINITY}), 0);
    cr_expect_not(mc_kept_write("links", "key", "text"));
    expect("key", NULL);
}
