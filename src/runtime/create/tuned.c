#include "runtime/create/tuned.h"

#include "base/hash.h"
#include "base/system/descriptor.h"
#include "base/system/file.h"
#include "base/system/log.h"
#include "job/environment/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Version of the file format. */
enum { VERSION = 1 };

/* The cluster ---------------------------------------------------------------------------------- */

static void find_cpu(char cpu[MC_CPU_TEXT])
{
    char line[256];
    FILE *const file = mc_descriptor_stream(open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC), "r");
    snprintf(cpu, MC_CPU_TEXT, "an unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        const char *const colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(cpu, MC_CPU_TEXT, "%.*s", MC_CPU_TEXT - 1, colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (file)
        fclose(file);
}

int mc_cluster_find(const mc_settings_t *settings, const mc_place_t *place, int32_t size,
                    mc_cluster_t *cluster)
{
    mc_cluster_t c;
    mc_arranged_t a;
    memset(&c, 0, sizeof c);
    int status = mc_arrange(settings->mesh, settings->order, place, size, &a);
    if (status)
        return status;
    c.mesh = a.mesh;
    status = mc_boxes_transports(settings->transports, a.machine, &c.mesh, c.tls);
    mc_arranged_free(&a);
    if (status)
        return status;
    find_cpu(c.cpu);
    c.cores = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    for (int32_t r = 0; r < size; r++)
        c.machines += place[r].machine == r;
    *cluster = c;
    return MESHCOLL_OK;
}

void mc_cluster_print_transports(const mc_cluster_t *c, mc_text_t *text)
{
    for (int32_t d = 0; d < c->mesh.ndims; d++)
        mc_text_add(text, "%s%s=%s", d ? ";" : "", c->mesh.dim[d].name, c->tls[d]);
}

/* A mesh's text, or of one with too many boxes for the key what tells it from others. */
static void print_key(const mc_mesh_t *mesh, mc_text_t *text)
{
    char buffer[MC_MESH_TEXT];
    const char *const whole = mc_mesh_text(mesh, buffer);
    if (strlen(whole) < sizeof buffer)
        mc_text_add(text, "%s", whole);
    else
        mc_text_add(text, "%s=%d boxes of %d to %d, %016" PRIx64, mesh->dim[0].name,
                    mesh->ragged->n, mesh->ragged->fewest, mesh->ragged->most,
                    mc_fnv(MC_FNV_START, whole, strlen(whole)));
}

void mc_cluster_print(const mc_cluster_t *c, mc_text_t *text)
{
    print_key(&c->mesh, text);
    mc_text_add(text, " on %d machine%s with %d core%s of %s, ", c->machines,
                c->machines == 1 ? "" : "s", c->cores, c->cores == 1 ? "" : "s", c->cpu);
    mc_cluster_print_transports(c, text);
}

/* The file ------------------------------------------------------------------------------------- */

int mc_tuned_path(char path[MC_TUNED_PATH])
{
    const char *const file = mc_variable("MESHCOLL_TUNE_FILE"),
                      *const config = mc_variable("XDG_CONFIG_HOME"),
                      *const home = mc_variable("HOME");
    mc_text_t text = mc_text(path, MC_TUNED_PATH);
    if (file)
        mc_text_add(&text, "%s", file);
    else if (config)
        mc_text_add(&text, "%s/meshcoll/links.json", config);
    else if (home)
        mc_text_add(&text, "%s/.config/meshcoll/links.json", home);
    else
        return mc_fail(MESHCOLL_ERR_IO, "no path for tuned links: expected one of "
                                        "MESHCOLL_TUNE_FILE, XDG_CONFIG_HOME and HOME to be set");
    return text.length < MC_TUNED_PATH
               ? MESHCOLL_OK
               : mc_fail(MESHCOLL_ERR_IO,
                         "the path of the tuned links is longer than %d characters",
                         MC_TUNED_PATH - 1);
}

static int fail_broken(const char *path, const char *why)
{
    return mc_fail(MESHCOLL_ERR_PARSE,
                   "%s is not a valid file of tuned links: %s; repair it, or remove it and tune "
                   "again",
                   path, why);
}

/* Brackets open at once, at most; those in strings do not count. The reader recurses into each. */
static int depth_of(const char *text, size_t bytes)
{
    int depth = 0, most = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        const char c = text[i];
        i += quoted && c == '\\';
        quoted ^= c == '"';
        if (quoted)
            continue;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        most = depth > most ? depth : most;
    }
    return most;
}

static int read_json(const char *path, const char *text, size_t bytes, json_t **root)
{
    json_error_t error;
    char why[JSON_ERROR_TEXT_LENGTH + 32];
    if (depth_of(text, bytes) > MC_TUNED_DEPTH) {
        snprintf(why, sizeof why, "its brackets are nested deeper than %d", MC_TUNED_DEPTH);
        return fail_broken(path, why);
    }
    json_t *const json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json) {
        snprintf(why, sizeof why, "line %d: %s", error.line, error.text);
        return fail_broken(path, why);
    }
    const json_int_t version = json_integer_value(json_object_get(json, "version"));
    if (version == VERSION && json_is_object(json_object_get(json, "clusters"))) {
        *root = json;
        return MESHCOLL_OK;
    }
    json_decref(json);
    snprintf(why, sizeof why, "expected \"version\": %d and \"clusters\"", VERSION);
    return fail_broken(path, why);
}

/* `*root` is NULL if there is no file. */
static int load(const char *path, json_t **root)
{
    char *text;
    size_t bytes;
    *root = NULL;
    int status = mc_file_read(path, &text, &bytes);
    if (status || !text)
        return status;
    status = read_json(path, text, bytes, root);
    free(text);
    return status;
}

static json_t *entry_called(json_t *root, const mc_cluster_t *cluster)
{
    char key[MC_CLUSTER_TEXT + MC_MAX_DIMS * MC_TLS_TEXT];
    mc_text_t text = mc_text(key, sizeof key);
    mc_cluster_print(cluster, &text);
    return json_object_get(json_object_get(root, "clusters"), key);
}

/* A dimension "rank" may have been tuned as "gpu", and the other way (mc_mesh_find). */
static json_t *entry_of(json_t *root, const mc_cluster_t *cluster)
{
    json_t *const entry = entry_called(root, cluster);
    mc_cluster_t other = *cluster;
    const int32_t d = mc_mesh_find(&other.mesh, "rank", 4);
    if (entry || d < 0)
        return entry;
    char *const name = other.mesh.dim[d].name;
    snprintf(name, MC_DIM_NAME, "%s", strcmp(name, "rank") == 0 ? "gpu" : "rank");
    return entry_called(root, &other);
}

/* Without an entry of this cluster, *links is NULL. */
static int find_links(const char *path, json_t *root, const mc_cluster_t *cluster, char **links)
{
    mc_links_t parsed = {0};
    char *found = NULL;
    int status = MESHCOLL_OK;
    const json_t *const entry = entry_of(root, cluster);
    if (entry) {
        const char *const text = json_string_value(json_object_get(entry, "links"));
        if (!text)
            status = fail_broken(path, "this cluster's entry has no \"links\"");
        else if (mc_links_parse(text, &cluster->mesh, &parsed))
            status = fail_broken(path, meshcoll_last_error());
        else if (!(found = strdup(text)))
            status = mc_fail_memory("tuned links");
        mc_links_free(&parsed);
    }
    if (!status)
        *links = found;
    return status;
}

int mc_tuned_parse(const char *path, const char *text, size_t bytes, const mc_cluster_t *cluster,
                   char **links)
{
    json_t *root;
    int status = read_json(path, text, bytes, &root);
    if (status)
        return status;
    status = find_links(path, root, cluster, links);
    json_decref(root);
    return status;
}

int mc_tuned_read(const char *path, const mc_cluster_t *cluster, char **links)
{
    json_t *root;
    int status = load(path, &root);
    if (!status)
        status = find_links(path, root, cluster, links);
    json_decref(root);
    return status;
}

int mc_tuned_check(const char *path)
{
    json_t *root;
    const int status = load(path, &root);
    if (!status)
        json_decref(root);
    return status;
}

/* Writing -------------------------------------------------------------------------------------- */

static json_t *entry_new(const mc_cluster_t *c, const mc_tuned_t *tuned)
{
    char mesh[MC_MESH_TEXT], transports[MC_MAX_DIMS * (MC_DIM_NAME + MC_TLS_TEXT)];
    mc_text_t transports_text = mc_text(transports, sizeof transports);
    mc_cluster_print_transports(c, &transports_text);
    return json_pack("{s:s, s:s, s:i, s:i, s:s, s:i, s:s, s:s, s:s, s:s}", "links", tuned->links,
                     "mesh", mc_mesh_text(&c->mesh, mesh), "ranks", (int)c->mesh.size, "machines",
                     (int)c->machines, "cpu", c->cpu, "cores", (int)c->cores, "transports",
                     transports, "date", tuned->date, "command", tuned->command, "provenance",
                     tuned->provenance);
}

static int put_entry(json_t *root, const mc_cluster_t *cluster, const mc_tuned_t *tuned)
{
    char key[MC_CLUSTER_TEXT + MC_MAX_DIMS * MC_TLS_TEXT];
    mc_text_t text = mc_text(key, sizeof key);
    mc_cluster_print(cluster, &text);
    json_t *const entry = entry_new(cluster, tuned);
    if (!entry || json_object_set_new(json_object_get(root, "clusters"), key, entry))
        return mc_fail(MESHCOLL_ERR_NO_MEMORY, "no memory for an entry of tuned links");
    return MESHCOLL_OK;
}

static int fail_write(const char *path)
{
    return mc_fail(MESHCOLL_ERR_IO, "%s cannot be written: %s", path, strerror(errno));
}

/* Creates the folders of `path`, as mkdir -p. */
static int make_folders(const char *path)
{
    char folder[MC_TUNED_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) && errno != EEXIST && errno != EISDIR)
            return fail_write(path);
        *slash = '/';
    }
    return MESHCOLL_OK;
}

static bool dump(const json_t *root, FILE *file)
{
    if (json_dumpf(root, file, JSON_INDENT(2) | JSON_PRESERVE_ORDER) || fputc('\n', file) == EOF ||
        fflush(file) || fsync(fileno(file)))
        return false;
    if (ftell(file) <= MC_FILE_BYTES)
        return true;
    errno = EFBIG; /* mc_tuned_read would refuse it */
    return false;
}

/* Syncs the folder, so that the new name survives a crash. Failures are ignored: such a file
 * system does not need it, or cannot do it. */
static void sync_folder(const char *path)
{
    char folder[MC_TUNED_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    char *const slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    const int fd = mc_descriptor(open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

/* The folder exists. */
static int save(const char *path, const json_t *root)
{
    mc_fresh_t fresh;
    if (!mc_fresh_open(path, &fresh) ||
        !mc_fresh_close(&fresh, dump(root, fresh.stream), mc_file_mode(), path))
        return fail_write(path);
    sync_folder(path);
    return MESHCOLL_OK;
}

static int merge(const char *path, const mc_cluster_t *cluster, const mc_tuned_t *tuned)
{
    json_t *root;
    int status = load(path, &root);
    if (!status && !root)
        root = json_pack("{s:i, s:{}}", "version", VERSION, "clusters");
    if (!status)
        status = root ? put_entry(root, cluster, tuned) : mc_fail_memory("tuned links");
    if (!status)
        status = save(path, root);
    json_decref(root);
    return status;
}

int mc_tuned_write(const char *path, const mc_cluster_t *cluster, const mc_tuned_t *tuned)
{
    enum { PATIENCE = 30 }; /* seconds; other processes hold the lock for milliseconds */
    mc_file_lock_t lock;
    if (strlen(path) >= MC_TUNED_PATH)
        return mc_fail(MESHCOLL_ERR_IO, "the path of the tuned links is longer than %d characters",
                       MC_TUNED_PATH - 1);
    int status = make_folders(path);
    if (!status)
        status = mc_file_lock(path, PATIENCE, &lock);
    if (status)
        return status;
    status = merge(path, cluster, tuned);
    mc_file_unlock(&lock);
    return status;
}

/* Lookup --------------------------------------------------------------------------------------- */

enum { FROM_TEXT = MC_TUNED_PATH + 64 };

static bool looks_up(const mc_settings_t *settings, char path[MC_TUNED_PATH])
{
    return !settings->links && !mc_tuned_path(path) && access(path, F_OK) == 0;
}

size_t mc_tuned_most(const mc_settings_t *settings)
{
    char path[MC_TUNED_PATH];
    json_t *root = NULL, *entry;
    const char *key;
    size_t most = 0;
    if (!looks_up(settings, path) || load(path, &root))
        return 0;
    json_object_foreach(json_object_get(root, "clusters"), key, entry)
    {
        const size_t bytes = json_string_length(json_object_get(entry, "links"));
        most = bytes > most && bytes <= MC_LINKS_MOST_READ ? bytes : most;
    }
    json_decref(root);
    return most + FROM_TEXT;
}

int mc_tuned_use(mc_settings_t *settings, const mc_place_t *place, int32_t size, size_t most)
{
    char path[MC_TUNED_PATH], from[FROM_TEXT], *links = NULL;
    mc_cluster_t cluster;
    /* errors in the settings are left to the creation to report */
    if (!looks_up(settings, path) || mc_cluster_find(settings, place, size, &cluster))
        return MESHCOLL_OK;
    if (mc_tuned_read(path, &cluster, &links))
        mc_log(MC_LOG_WARN, "%s; using the default links", meshcoll_last_error());
    if (!links)
        return MESHCOLL_OK;
    snprintf(from, sizeof from, MC_TUNED_FROM ", in %s", path);
    const size_t bytes = mc_settings_bytes(settings) + strlen(links) + strlen(from);
    int status = MESHCOLL_OK;
    if (bytes > most)
        mc_log(MC_LOG_WARN, "%s changed while it was read; using the default links", path);
    else
        status = mc_settings_set_links(settings, links, from);
    free(links);
    return status;
}
