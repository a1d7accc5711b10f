#include "runtime/handle/handle.h"

int32_t mc_rank_of_root(const meshcoll_t *h, int32_t root_rank)
{
    int32_t lo = 0, hi = h->mesh.size;
    if (!h->root_rank)
        return root_rank >= 0 && root_rank < h->mesh.size ? root_rank : -1;
    while (hi - lo > 1) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (h->root_rank[h->by_root[mid]] <= root_rank)
            lo = mid;
        else
            hi = mid;
    }
    return h->root_rank[h->by_root[lo]] == root_rank ? h->by_root[lo] : -1;
}
