#include "tools/common/strategy_request.h"

#include "network/ends.h"
#include "runtime/choose/choice.h"

int mc_between_open(const char *text, const mc_mesh_t *mesh, const int32_t *order,
                    mc_links_t *links, mc_between_t *b)
{
    int status = text ? mc_network_parse(text, &b->network) : MESHCOLL_OK;
    if (!text || status)
        return status;
    status = mc_network_fit_to(mesh, links, &b->network);
    if (!status)
        status = mc_contention_create(mesh, links, &b->network, order, &b->contention);
    if (status)
        return mc_between_close(b, status);
    b->fitted = &b->network;
    links->network = mc_contention_prices(b->contention);
    return MESHCOLL_OK;
}

int mc_between_close(mc_between_t *b, int status)
{
    if (!status && b->contention)
        status = mc_contention_status(b->contention);
    mc_contention_free(b->contention);
    mc_network_free(&b->network);
    *b = (mc_between_t){0};
    return status;
}

int mc_request_read(mc_request_text_t *text, mc_request_t *r)
{
    if (!text->links || !*text->links)
        text->links = mc_cluster_presets[0].name;
    int status = mc_read_collective(text->collective, &r->collective);
    if (!status)
        status = mc_read_mesh(text->mesh, &r->mesh);
    if (!status)
        status = mc_read_root(text->root, r->collective, &r->mesh, &r->root);
    return status ? status : mc_links_parse(text->links, &r->mesh, &r->links);
}

mc_pacing_t mc_request_pacing(const mc_mesh_t *mesh, const mc_links_t *links)
{
    int32_t wire = links->ndims - 1;
    while (wire >= 0 && (links->dim[wire].pulled || mesh->dim[wire].extent == 1))
        wire--;
    return mc_pacing_of(links, mesh, wire);
}

static mc_choice_key_t key_of(const mc_request_t *r)
{
    return (mc_choice_key_t){
        .root = r->root, .bytes = r->bytes, .pacing = mc_request_pacing(&r->mesh, &r->links)};
}

int mc_request_choose(const mc_request_text_t *text, mc_request_t *r)
{
    if (text->strategy)
        return mc_strategy_parse(text->strategy, r->collective, &r->mesh, &r->strategy);
    const mc_choice_key_t key = key_of(r);
    const mc_planner_query_t query = mc_choice_query(&key, 1);
    mc_ranked_t best;
    const int status = mc_planner_best(r->collective, &r->mesh, &r->links, &query, &best);
    if (!status)
        r->strategy = best.strategy;
    return status;
}

int mc_request_rank(const mc_request_t *r, uint32_t most, mc_ranking_t *ranking)
{
    const mc_choice_key_t key = key_of(r);
    const mc_planner_query_t query = mc_choice_query(&key, most);
    return mc_planner_rank(r->collective, &r->mesh, &r->links, &query, ranking);
}
