/* What a creation tells the user by MESHCOLL_LOG. */
#include "base/hash.h"
#include "base/system/log.h"
#include "base/table.h"
#include "runtime/choose/choice.h"
#include "runtime/connect/connections.h"
#include "runtime/create/rounds.h"
#include "runtime/place/variables.h"

#include <string.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { TEXT = 1536, NUMBER = 32, HOST = 64 };

/* What may differ between machines. */
static void print_own(const meshcoll_t *h, mc_text_t *text)
{
    const mc_job_t *const job = h->job;
    mc_text_add(text, "version %s, UCX %s, %s%s%s%s", meshcoll_version(), ucp_get_version_string(),
                job->oversubscribed ? "more ranks than cores" : "a core for each rank",
                job->connections.devices[0] ? ", interfaces " : "", job->connections.devices,
                !job->device->pointer  ? ""
                : job->device->check() ? ", a CUDA driver that is not used"
                                       : ", a CUDA driver");
}

uint32_t mc_handle_digest(const meshcoll_t *h)
{
    char buffer[TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    print_own(h, &text);
    return (uint32_t)mc_fnv(MC_FNV_START, buffer, strlen(buffer));
}

static void tell_gpus(const mc_device_ops_t *device)
{
    if (!device->pointer)
        return;
    mc_log(MC_LOG_INFO, "GPUs: %s",
           device->check() ? meshcoll_last_error() : "the CUDA driver takes calls on their memory");
}

static int32_t count_machines(const meshcoll_t *h)
{
    int32_t n = 0;
    for (int32_t r = 0; r < h->mesh.size; r++)
        n += !h->machine || h->machine[r] == r;
    return h->machine ? n : 1;
}

static void tell_mesh(const mc_making_t *m, const meshcoll_t *h)
{
    const int32_t machines = count_machines(h);
    char buffer[TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    print_own(h, &text);
    mc_log(MC_LOG_INFO, "%s: %d ranks on %d machine%s", buffer, h->mesh.size, machines,
           machines == 1 ? "" : "s");
    tell_gpus(h->job->device);
    mc_log(MC_LOG_INFO, "mesh %s, %s%s", h->text,
           m->settings.mesh ? "as the program or MESHCOLL_MESH gives it"
                            : "found: ranks that can share memory are a box, and those of a NUMA "
                              "node where ranks are bound to several",
           m->settings.order ? "; its ranks in the order that the program or MESHCOLL_ORDER gives"
                             : "");
}

static void tell_transports(const meshcoll_t *h)
{
    const mc_connections_t *const c = &h->job->connections;
    for (int32_t d = 0; d < h->job->mesh.ndims; d++) {
        const mc_transport_t *const t = c->transport[d];
        if (!t)
            continue;
        const bool network = mc_handle_wire(h) >= 0 && d <= mc_handle_wire(h);
        mc_log(MC_LOG_INFO, "%s: transport %s%s%s%s", h->job->mesh.dim[d].name, c->tls[d],
               network && c->devices[0] ? ", interfaces " : "", network ? c->devices : "",
               !t->pulls                  ? ""
               : c->access == MC_SHM_READ ? ", ranks read each other's memory"
                                          : ", ranks copy through shared memory");
    }
}

static void tell_links(const mc_making_t *m, const meshcoll_t *h)
{
    char buffer[TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_links_print(&h->links, &h->mesh, &text);
    mc_log(MC_LOG_INFO, "links %s: %s",
           m->settings.links_from ? m->settings.links_from : "of the default preset", buffer);
}

/* Of each collective: what is chosen for a small, a middling and a long vector. */
static void tell_choices(const meshcoll_t *h)
{
    static const uint64_t sizes[] = {1 << 10, 1 << 20, 64 << 20};
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        char buffer[TEXT];
        mc_text_t text = mc_text(buffer, sizeof buffer);
        for (size_t i = 0; i < MC_COUNT(sizes); i++) {
            const mc_choice_key_t key = {.collective = (meshcoll_collective_t)c,
                                         .bytes = sizes[i],
                                         .pacing = mc_handle_pacing(h)};
            mc_ranked_t best;
            if (mc_choose(&h->choice, &h->mesh, &h->links, &key, &best))
                return;
            mc_text_add(&text, "%s%s ", i ? "; " : "", mc_print_bytes((double)sizes[i]).text);
            mc_strategy_print(&best.strategy, &h->mesh, &text);
        }
        mc_log(MC_LOG_INFO, "%s of %s: %s", meshcoll_collective_name((meshcoll_collective_t)c),
               h->text, buffer);
    }
}

/* Each rank: where it is, and what it reaches the others by. */
static void tell_own(const meshcoll_t *h)
{
    char host[HOST] = "";
    gethostname(host, sizeof host - 1);
    mc_log(MC_LOG_DEBUG, "rank %d is process %ld on %s, mesh rank %d; interfaces: %s",
           meshcoll_rank(h), (long)getpid(), host, h->rank,
           h->job->connections.devices[0] ? h->job->connections.devices : "UCX's choice");
}

static void tell_difference(const meshcoll_t *h)
{
    char buffer[TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    print_own(h, &text);
    mc_log(MC_LOG_INFO, "rank %d differs from rank 0: %s", meshcoll_rank(h), buffer);
}

void mc_making_tell(const mc_making_t *m)
{
    const meshcoll_t *const h = m->handle;
    const bool first = meshcoll_rank(h) == 0;
    if (first)
        mc_variables_check();
    if (mc_log_has(MC_LOG_DEBUG))
        tell_own(h);
    if (m->differs && mc_log_has(MC_LOG_INFO))
        tell_difference(h);
    if (!first || !mc_log_has(MC_LOG_INFO) || h->mesh.size == 1)
        return;
    if (!h->ranks.job_rank) {
        tell_mesh(m, h);
        tell_transports(h);
    }
    tell_links(m, h);
    tell_choices(h);
}
