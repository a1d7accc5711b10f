#include "runtime/handle/handle.h"

#include <stdlib.h>

int mc_family_open(mc_job_t *job)
{
    if (!job->family && !(job->family = calloc(1, sizeof *job->family)))
        return mc_fail_memory("contexts");
    job->family->used[0] |= 1; /* the first mesh's */
    return MESHCOLL_OK;
}

typedef struct {
    int32_t key, rank;
} keyed_t;

static int compare(const void *a, const void *b)
{
    const keyed_t *const x = a, *const y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void take_transports(meshcoll_t *h)
{
    const mc_job_t *const job = h->job;
    int32_t outermost[MC_MAX_DIMS];
    for (int32_t k = 0; k < MC_MAX_DIMS; k++)
        outermost[k] = MC_MAX_DIMS;
    for (int32_t r = 1; r < h->mesh.size; r++) {
        const int32_t k = mc_mesh_level(&h->mesh, r - 1, r);
        const int32_t d = mc_mesh_level(&job->mesh, h->ranks.job_rank[r - 1], h->ranks.job_rank[r]);
        outermost[k] = d < outermost[k] ? d : outermost[k];
    }
    for (int32_t k = 0; k < h->mesh.ndims; k++)
        h->transport[k] =
            outermost[k] < MC_MAX_DIMS ? job->connections.transport[outermost[k]] : NULL;
}

int mc_ranks_set(meshcoll_t *h, int32_t *job_rank)
{
    const int32_t n = h->mesh.size;
    keyed_t *const seat = malloc((size_t)n * sizeof *seat);
    h->ranks.job_rank = job_rank;
    h->ranks.by_job_rank = malloc((size_t)n * sizeof *h->ranks.by_job_rank);
    const bool good = seat && job_rank && h->ranks.by_job_rank;
    for (int32_t r = 0; good && r < n; r++)
        seat[r] = (keyed_t){job_rank[r], r};
    if (good)
        qsort(seat, (size_t)n, sizeof *seat, compare);
    for (int32_t r = 0; good && r < n; r++)
        h->ranks.by_job_rank[r] = seat[r].rank;
    free(seat);
    if (!good)
        return mc_fail_memory("a table of ranks");
    take_transports(h);
    return MESHCOLL_OK;
}

int32_t mc_rank_of_job_rank(const meshcoll_t *h, int32_t job_rank)
{
    int32_t lo = 0, hi = h->mesh.size;
    if (!h->ranks.job_rank)
        return job_rank >= 0 && job_rank < h->mesh.size ? job_rank : -1;
    while (hi - lo > 1) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (h->ranks.job_rank[h->ranks.by_job_rank[mid]] <= job_rank)
            lo = mid;
        else
            hi = mid;
    }
    return h->ranks.job_rank[h->ranks.by_job_rank[lo]] == job_rank ? h->ranks.by_job_rank[lo] : -1;
}
