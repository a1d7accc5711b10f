#include "runtime/create/calibrated.h"

#include "base/hash.h"
#include "base/system/file.h"
#include "base/system/log.h"
#include "job/network/network.h"
#include "runtime/calibrate/lines.h"
#include "runtime/calibrate/measure.h"
#include "runtime/call/adapt.h"
#include "runtime/create/tuned.h"
#include "runtime/diagnose/explain.h"
#include "runtime/handle/calibrated.h"
#include "runtime/progress/threads.h"

#include <meshcoll/fault.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a wire is measured; in one box a tenth of it. */
static const double default_seconds = 0.1, most_seconds = 600, one_box = 0.1;

enum { MOST_TEXT = 2048 }; /* of links of all dimensions and where they are from */

int mc_calibrate_read(const char *text, double *seconds)
{
    char *end = NULL;
    const bool off = text && strcmp(text, "off") == 0;
    const double given = off ? 0 : text ? mc_number_read(text, &end) : default_seconds;
    if (text && !off && (end == text || *end || !(given > 0) || given > most_seconds))
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "MESHCOLL_CALIBRATE: expected off, or seconds up to %g, as in \"0.5\"; got "
                       "'%s'",
                       most_seconds, text);
    *seconds = given;
    return MESHCOLL_OK;
}

/* The key ---------------------------------------------------------------------------------------- */

/* What a file says first, up to `most` characters. */
static void add_file(const char *folder, const char *name, const char *file, int most,
                     mc_text_t *text)
{
    char path[512], line[64];
    snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    mc_file_read_start(path, line, sizeof line);
    line[strcspn(line, "\n")] = '\0';
    mc_text_add(text, " %.*s", most, *line ? line : "?");
}

enum { WHOLE = 63, SUBNET_PREFIX = 19 /* of "fe80:0000:0000:0000:0002:c903:00ab:1234" */ };

/* Interfaces that lead to other machines, with their Mbit/s, largest packets and subnets: another network has others,
 * but the machines of one network have the same. */
static void add_interfaces(const char *devices, mc_text_t *text)
{
    char name[MC_DEVICES_TEXT];
    for (const char *at = devices; *at; at += *at == ',') {
        const size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        mc_text_add(text, ";%s", name);
        add_file("/sys/class/net", name, "speed", WHOLE, text);
        add_file("/sys/class/net", name, "mtu", WHOLE, text);
        mc_network_subnets(name, text);
        at += n;
    }
}

static int is_name(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* RDMA devices have no address by which ranks have met; all of them, in order. */
static void add_rdma(mc_text_t *text)
{
    static const char folder[] = "/sys/class/infiniband";
    struct dirent **list;
    const int n = scandir(folder, &list, is_name, alphasort);
    for (int i = 0; i < n; i++) {
        mc_text_add(text, ";%s", list[i]->d_name);
        add_file(folder, list[i]->d_name, "ports/1/rate", WHOLE, text);
        add_file(folder, list[i]->d_name, "ports/1/gids/0", SUBNET_PREFIX, text);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

/* What links depend on: machines, their processors and number, whether ranks share cores, transports, interfaces and
 * their networks, extents, the order of ranks if one is given, and which devices may be used. Not hostnames and what
 * else names one machine: a cluster gives a job other ones each time. */
static char *key_of(const mc_cluster_t *cluster, const char *order, const char *devices,
                    bool share_cores)
{
    static const char *const devices_of[] = {"MESHCOLL_NET_DEVICES", "UCX_NET_DEVICES"};
    enum { ROOM = MC_CLUSTER_TEXT + MC_MAX_DIMS * MC_TLS_TEXT + MC_KEPT_BYTES / 16 };
    char *const key = malloc(ROOM);
    if (!key)
        return NULL;
    mc_text_t text = mc_text(key, ROOM);
    mc_cluster_print(cluster, &text);
    if (order)
        mc_text_add(&text, ";order %016" PRIx64, mc_calibrated_hash(order));
    if (share_cores)
        mc_text_add(&text, ";with shared cores");
    for (size_t i = 0; i < MC_COUNT(devices_of); i++)
        if (getenv(devices_of[i]))
            mc_text_add(&text, ";%s %s", devices_of[i], getenv(devices_of[i]));
    if (cluster->machines > 1) {
        add_interfaces(devices, &text);
        add_rdma(&text);
    }
    return key;
}

/* Looking up ------------------------------------------------------------------------------------- */

static bool is_wanted(const mc_settings_t *s)
{
    double seconds = 0; /* errors in the settings are left to the creation to report */
    return !mc_calibrate_read(s->calibrate, &seconds) && seconds > 0;
}

size_t mc_calibrated_most(const mc_settings_t *settings)
{
    return !settings->links && is_wanted(settings) ? MOST_TEXT : 0;
}

/* Not of this mesh, or more than this version measures: the links are measured anew. */
static bool is_right(const char *links, const mc_mesh_t *mesh)
{
    mc_links_t parsed;
    if (strlen(links) + sizeof MC_CALIBRATED_FROM > MOST_TEXT ||
        mc_links_parse(links, mesh, &parsed))
        return false;
    const bool plain = !parsed.measured;
    mc_links_free(&parsed);
    return plain;
}

/* Kept in place of links: a mark for each job whose time did not suffice. The next one takes more, in the end it does
 * without, unless it is told for how long. */
static const char tried[] = "???";
enum { MOST_TRIED = sizeof tried - 1 };
static const char *const seconds_after[MOST_TRIED + 1] = {[1] = "0.2", "0.4", "off"};

static size_t times_tried(const char *kept)
{
    const size_t n = kept ? strspn(kept, "?") : 0;
    return n <= MOST_TRIED && kept && !kept[n] ? n : 0;
}

/* Unless another job has measured them meanwhile. */
static void count_try(const char *key, const mc_mesh_t *mesh)
{
    char *const kept = mc_kept_read(MC_KEPT_LINKS, key);
    const bool measured = kept && is_right(kept, mesh);
    const size_t n = times_tried(kept) + 1;
    free(kept);
    if (n <= MOST_TRIED && !measured)
        (void)mc_kept_write(MC_KEPT_LINKS, key, tried + MOST_TRIED - n);
}

static int use_links(mc_settings_t *settings, const char *key, const mc_mesh_t *mesh)
{
    char *const links = mc_kept_read(MC_KEPT_LINKS, key);
    int status = MESHCOLL_OK;
    const size_t times = times_tried(links);
    if (times > 0 && !settings->calibrate) {
        settings->calibrate = seconds_after[times];
        mc_log(MC_LOG_INFO,
               "links are calibrated as with MESHCOLL_CALIBRATE=%s: the time of %d tries did not "
               "suffice",
               settings->calibrate, (int)times);
    } else if (links && is_right(links, mesh))
        status = mc_settings_set_links(settings, links, MC_CALIBRATED_FROM);
    free(links);
    return status;
}

/* NULL: nothing on these links. */
static char *find_learned(const char *key, const char *links)
{
    char on[MC_KEPT_ON_BYTES + 1];
    char *const text = mc_kept_read(MC_KEPT_LEARNED, key);
    snprintf(on, sizeof on, MC_KEPT_ON, mc_calibrated_hash(links));
    if (text && strncmp(text, on, MC_KEPT_ON_BYTES) == 0) {
        memmove(text, text + MC_KEPT_ON_BYTES, strlen(text + MC_KEPT_ON_BYTES) + 1);
        return text;
    }
    free(text);
    return NULL;
}

int mc_calibrated_use(mc_making_t *m, const char *devices)
{
    mc_cluster_t cluster;
    free(m->key); /* of a first attempt, to join a job */
    free(m->learned);
    m->key = m->learned = NULL;
    if (!is_wanted(&m->settings) || m->creation->oob.size == 1 ||
        mc_cluster_find(&m->settings, m->place, m->creation->oob.size, &cluster))
        return MESHCOLL_OK;
    m->key = key_of(&cluster, m->settings.order, devices, m->crowd > 1);
    int status = MESHCOLL_OK;
    if (m->key && !m->settings.links)
        status = use_links(&m->settings, m->key, &cluster.mesh);
    if (m->key && !status)
        m->learned = find_learned(m->key, m->settings.links);
    return status;
}

/* Measuring -------------------------------------------------------------------------------------- */

static bool is_calibrated(const mc_settings_t *s)
{
    return s->links_from && strcmp(s->links_from, MC_CALIBRATED_FROM) == 0;
}

/* `text`: of the links; NULL: generic. */
static int keep(mc_making_t *m, const char *text, bool is_measured)
{
    mc_job_t *const job = m->handle->job;
    if (!is_measured && !m->key)
        return MESHCOLL_OK;
    job->calibrated = calloc(1, sizeof *job->calibrated);
    if (!job->calibrated)
        return mc_fail_memory("calibrated links");
    *job->calibrated = (mc_calibrated_t){
        .is_measured = is_measured, .hash = mc_calibrated_hash(text), .key = m->key};
    if (is_measured)
        job->calibrated->links = m->handle->links;
    m->key = NULL;
    return MESHCOLL_OK;
}

static void tell_missing(const mc_sight_t *sight, const mc_mesh_t *mesh, double seconds)
{
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (sight->dim[d].ranks < 2 && mesh->dim[d].extent > 1)
            mc_log(
                MC_LOG_INFO,
                "links are not calibrated: %d ms did not suffice for %s; MESHCOLL_CALIBRATE says "
                "how many seconds to take",
                (int)(seconds * 1e3), mesh->dim[d].name);
}

/* Says of a mesh which links it has. */
static int note_links(mc_settings_t *settings, const meshcoll_t *h)
{
    char text[MOST_TEXT];
    mc_text_t printed = mc_text(text, sizeof text);
    mc_links_print(&h->links, &h->mesh, &printed);
    const int status = mc_settings_set_links(settings, text, MC_CALIBRATED_FROM);
    return status ? status : mc_explain_links(h, settings->links, settings->links_from);
}

/* *is_whole: the time sufficed, and they are the mesh's now. */
static int measure(mc_making_t *m, bool *is_whole)
{
    mc_sight_t sight;
    meshcoll_t *const h = m->handle;
    const double seconds =
        mc_boxes_outside(h->machine, &h->mesh) == 0 ? one_box * m->calibrate : m->calibrate;
    int status = mc_measure(h, seconds, &mc_host_vectors, true, &sight);
    if (status)
        return status;
    *is_whole = mc_sight_is_whole(&sight, &h->mesh);
    if (!*is_whole) {
        if (h->rank == 0)
            tell_missing(&sight, &h->mesh, seconds);
        if (m->key)
            count_try(m->key, &h->mesh);
        return MESHCOLL_OK;
    }
    mc_sight_links(&sight, true, &h->links);
    status = note_links(&m->settings, h);
    if (!status)
        status = keep(m, m->settings.links, true);
    if (!status && h->job->calibrated->key)
        (void)mc_kept_write(MC_KEPT_LINKS, h->job->calibrated->key, m->settings.links);
    return status;
}

/* A text of another version, which is refused on all ranks, is none. */
static int take_learned(mc_making_t *m)
{
    const size_t bytes = (size_t)m->learned_bytes;
    meshcoll_t *whole = NULL;
    char *const text = calloc(1, bytes);
    int status =
        text ? mc_line_open_whole(m->handle, &whole) : mc_fail_memory("what calls learned");
    if (!status && m->learned)
        memcpy(text, m->learned, bytes);
    if (!status)
        status = meshcoll_bcast(whole, text, text, bytes, MESHCOLL_UINT8,
                                mc_mesh_rank_of(&m->handle->order, 0));
    if (!status && mc_adapt_load(m->handle, text) == MESHCOLL_ERR_NO_MEMORY)
        status = MESHCOLL_ERR_NO_MEMORY;
    if (status && !m->handle->job->failure.status) /* its own; the others would wait for it */
        (void)meshcoll_abort(m->handle, meshcoll_last_error());
    meshcoll_destroy(whole);
    free(text);
    return status;
}

static void set_calibrating(mc_job_t *job, bool is_calibrating)
{
    mc_job_lock(job); /* there may be a progress thread */
    job->is_calibrating = is_calibrating;
    job->notice = (mc_notice_t){0};
    mc_job_unlock(job);
}

/* Whether they were found or are measured now, further meshes of the job have them. */
static int calibrate(mc_making_t *m)
{
    meshcoll_t *const h = m->handle;
    const char *const links = m->settings.links;
    bool is_new = false;
    int status = MESHCOLL_OK;
    if (!links && m->calibrate > 0)
        status = measure(m, &is_new);
    if (!status && !is_new)
        status = keep(m, links, is_calibrated(&m->settings));
    if (!status && !is_new && m->learned_bytes > 0 && h->calls.adapt)
        status = take_learned(m);
    return status;
}

int mc_calibrate(mc_making_t *m)
{
    if (m->handle->mesh.size == 1 || !m->creation->tuned)
        return MESHCOLL_OK;
    set_calibrating(m->handle->job, true);
    const int status = calibrate(m);
    set_calibrating(m->handle->job, false);
    return status;
}

int mc_calibrated_share(mc_settings_t *settings, meshcoll_t *h)
{
    const mc_calibrated_t *const c = h->job->calibrated;
    int32_t n = 0;
    for (int32_t d = 0; c && c->is_measured && d < h->mesh.ndims; d++) {
        const char *const name = h->mesh.dim[d].name;
        const int32_t of = mc_mesh_find(&h->job->mesh, name, strlen(name));
        if (of < 0)
            continue;
        n++;
        h->links.dim[d] = c->links.dim[of];
        h->links.correction[d] = c->links.correction[of];
        if (h->links.dim[d].wire > 0) /* it may have another number here */
            h->links.dim[d].wire = 0;
    }
    mc_links_share_wire(&h->links, mc_boxes_outside(h->machine, &h->mesh) - 1);
    return n ? note_links(settings, h) : MESHCOLL_OK;
}
