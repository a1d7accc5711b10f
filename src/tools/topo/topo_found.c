#include "runtime/create/rounds.h"
#include "tools/topo/topo.h"

#include <stdlib.h>

/* Rank 0's counts. `given`: the user gives links. */
static void print_source(const mc_making_t *m, bool given, char *text, size_t room)
{
    const mc_settings_t *const s = &m->settings;
    if (given)
        snprintf(text, room, MC_TOPO_GIVEN, s->links);
    else if (s->links)
        snprintf(text, room, "%s", s->links_from);
    else
        snprintf(text, room, "the preset %s, %s", mc_cluster_presets[0].name,
                 m->calibrate > 0 && m->creation->oob.size > 1
                     ? "until a job measures them: none are given, tuned or kept"
                     : "as none are given and none are tuned");
}

int mc_topo_find(const mc_ranks_t *ranks, const meshcoll_params_t *params, mc_topo_found_t *found)
{
    const mc_creation_t creation = {.oob = ranks->oob,
                                    .reached = mc_bootstrap_reached(ranks->bootstrap),
                                    .params = params,
                                    .tuned = true};
    mc_making_t m;
    mc_making_open(&m, &creation);
    const bool given = m.settings.links;
    int status = mc_making_places(&m, false);
    if (!status)
        status = mc_making_settings(&m);
    if (!status)
        status = m.status;
    if (!status) {
        print_source(&m, given, found->source, sizeof found->source);
        found->settings = m.settings;
        found->place = m.place;
        m.settings = (mc_settings_t){0};
        m.place = NULL;
    }
    mc_making_close(&m);
    return status;
}

void mc_topo_found_free(mc_topo_found_t *found)
{
    mc_settings_free(&found->settings);
    free(found->place);
}
