/* The request: does a strategy satisfy it, and its description as text and JSON. */
#include "tools/plan/plan_command.h"

#include <string.h>

int mc_plan_set_links(mc_plan_request_t *r, const char *text)
{
    r->links_text = text && *text ? text : mc_cluster_presets[0].name;
    const int status = mc_links_parse(text, &r->mesh, &r->links);
    r->numbering = mc_numbering(&r->mesh, NULL);
    r->pacing = mc_request_pacing(&r->mesh, &r->links);
    return status;
}

int mc_plan_check(const mc_plan_request_t *r, const mc_strategy_t *s)
{
    const mc_mesh_t led = mc_mesh_led_by(&r->mesh, r->root);
    const int status =
        r->reproducible ? mc_strategy_check_aligned(s, &r->mesh, &r->numbering) : MESHCOLL_OK;
    return !status && r->in_order ? mc_strategy_check_order(s, &led) : status;
}

void mc_plan_print_head(const mc_plan_request_t *r, const char *what)
{
    const char *provenance = NULL;
    printf("%s of %s on %s, %d ranks", mc_moves[r->collective].name, what, mc_show_mesh(&r->mesh),
           r->mesh.size);
    if (mc_moves[r->collective].rooted)
        printf(", root %d", r->root);
    if (r->in_order)
        printf(", in the order of ranks");
    if (r->reproducible)
        printf(", reproducible");
    for (int32_t i = 0; i < mc_n_cluster_presets; i++)
        if (strcmp(mc_cluster_presets[i].name, r->links_text) == 0)
            provenance = mc_cluster_presets[i].provenance;
    printf("\n\n");
    if (r->network)
        mc_show_sentence(0, "network: %s", r->network);
    mc_show_sentence(0, "links: %s%s%s%s", r->links_text, provenance ? " (" : "",
                     provenance ? provenance : "", provenance ? ")" : "");
    mc_show_links(&r->mesh, &r->links);
    putchar('\n');
}

json_t *mc_plan_json_head(const mc_plan_request_t *r)
{
    json_t *const json = mc_json_call("plan", r->collective, &r->mesh, r->root);
    json_object_set_new(json, "links_given", mc_json_text(r->links_text));
    if (r->network)
        json_object_set_new(json, "network", mc_json_text(r->network));
    json_object_set_new(json, "links", mc_json_links(&r->mesh, &r->links));
    json_object_set_new(json, "measured", mc_json_measured(mc_links_measured(&r->links)));
    if (r->in_order)
        json_object_set_new(json, "in_order", json_true());
    if (r->reproducible)
        json_object_set_new(json, "reproducible", json_true());
    return json;
}
