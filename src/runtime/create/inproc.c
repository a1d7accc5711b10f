#include "runtime/create/inproc.h"

#include "runtime/create/open.h"
#include "transport/inproc.h"

#include <stdlib.h>

static int add_hubs(const mc_mesh_t *mesh, meshcoll_t **ranks)
{
    mc_transport_t **const t = calloc((size_t)mesh->size, sizeof(mc_transport_t *));
    int status = t ? MESHCOLL_OK : mc_fail_memory("transports");
    for (int32_t d = 0; d < mesh->ndims && !status; d++) {
        status = mc_inproc_hub(mesh->size, t);
        for (int32_t r = 0; r < mesh->size && !status; r++)
            ranks[r]->transport[d] = ranks[r]->job->connections.transport[d] = t[r];
    }
    free(t);
    return status;
}

int mc_inproc_create(const char *mesh, const meshcoll_params_t *params, meshcoll_t **ranks)
{
    mc_settings_t settings;
    mc_mesh_t m;
    int32_t n = 0;
    int status = mc_mesh_parse(mesh, &m);
    if (!status)
        status = mc_settings_read(params, &settings);
    /* The ranks run in one thread, so they neither need a progress thread nor locks. */
    settings.progress = settings.threads = NULL;
    if (status)
        return status;
    while (n < m.size && !(status = mc_handle_open(&m, n, &settings, NULL, &ranks[n])))
        n++;
    mc_settings_free(&settings);
    if (!status)
        status = add_hubs(&m, ranks);
    while (status && n > 0)
        meshcoll_destroy(ranks[--n]);
    return status;
}
