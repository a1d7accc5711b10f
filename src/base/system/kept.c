#include "base/system/kept.h"

#include "base/hash.h"
#include "base/system/file.h"
#include "base/system/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* VERSION changes with the format, and with what the texts mean. */
enum { VERSION = 1, HEAD = 64 };

static const char *given(const char *name)
{
    const char *const value = getenv(name);
    return value && *value == '/' ? value : NULL; /* relative ones are to be ignored (XDG) */
}

/* False: there is no such folder, or its name is too long. */
static bool find_folder(char path[MC_FILE_PATH])
{
    const char *const cache = given("XDG_CACHE_HOME"), *const home = given("HOME");
    mc_text_t text = mc_text(path, MC_FILE_PATH - HEAD);
    if (!cache && !home)
        return false;
    mc_text_add(&text, "%s%s/meshcoll", cache ? cache : home, cache ? "" : "/.cache");
    return text.length < MC_FILE_PATH - HEAD;
}

/* What others can write there would decide what this user's jobs do. True where there is nothing. */
static bool is_own(const char *path)
{
    struct stat is;
    if (stat(path, &is) || (is.st_uid == geteuid() && !(is.st_mode & (S_IWGRP | S_IWOTH))))
        return true;
    mc_log(MC_LOG_INFO,
           "%s is not used: expected this user's own, to which no other may write (chmod go-w)",
           path);
    return false;
}

static bool find_path(const char *kind, const char *key, char path[MC_FILE_PATH])
{
    if (!find_folder(path) || !is_own(path))
        return false;
    const size_t n = strlen(path);
    const int more = snprintf(path + n, MC_FILE_PATH - n, "/%s-%016" PRIx64, kind,
                              mc_fnv(MC_FNV_START, key, strlen(key)));
    return more > 0 && n + (size_t)more < MC_FILE_PATH;
}

/* "meshcoll 1 HASH\nKEY\nTEXT"; the hash is of all behind it. */
static void print_head(const char *key, const char *text, char head[HEAD])
{
    uint64_t hash = mc_fnv(MC_FNV_START, key, strlen(key) + 1);
    hash = mc_fnv(hash, text, strlen(text));
    snprintf(head, HEAD, "meshcoll %d %016" PRIx64 "\n", VERSION, hash);
}

/* The text in what a file holds; NULL: it is not of this key and version, or broken. */
static char *text_of(const char *content, size_t bytes, const char *key)
{
    char head[HEAD];
    const size_t n = strlen(key);
    const char *const line = memchr(content, '\n', bytes);
    const size_t first = line ? (size_t)(line - content) + 1 : bytes;
    if (bytes < first + n + 1 || memcmp(content + first, key, n) != 0 ||
        content[first + n] != '\n' || memchr(content, '\0', bytes))
        return NULL;
    char *const text = strndup(content + first + n + 1, bytes - first - n - 1);
    if (!text)
        return NULL;
    print_head(key, text, head);
    if (strlen(head) == first && memcmp(head, content, first) == 0)
        return text;
    free(text);
    return NULL;
}

char *mc_kept_read(const char *kind, const char *key)
{
    char path[MC_FILE_PATH], *content = NULL, *text = NULL;
    size_t bytes;
    if (find_path(kind, key, path) && is_own(path) && !mc_file_read(path, &content, &bytes) &&
        content && bytes <= HEAD + strlen(key) + MC_KEPT_BYTES)
        text = text_of(content, bytes, key);
    free(content);
    return text;
}

/* The folder, and what it lies in: ~/.cache may be missing. */
static void make_folder(char path[MC_FILE_PATH])
{
    char *const slash = strrchr(path, '/');
    *slash = '\0';
    (void)mkdir(path, 0700);
    *slash = '/';
    (void)mkdir(path, 0700);
}

bool mc_kept_write(const char *kind, const char *key, const char *text)
{
    char path[MC_FILE_PATH], head[HEAD];
    mc_fresh_t fresh;
    const size_t bytes = HEAD + strlen(key) + 1 + strlen(text);
    if (strlen(text) > MC_KEPT_BYTES || strchr(key, '\n') || bytes > mc_file_most() ||
        !find_folder(path))
        return false;
    make_folder(path);
    if (!find_path(kind, key, path) || !mc_fresh_open(path, &fresh))
        return false;
    print_head(key, text, head);
    const bool written = fprintf(fresh.stream, "%s%s\n%s", head, key, text) >= 0;
    return mc_fresh_close(&fresh, written, 0600, path);
}

void mc_kept_drop(const char *kind, const char *key)
{
    char path[MC_FILE_PATH];
    if (find_path(kind, key, path))
        (void)unlink(path);
}
