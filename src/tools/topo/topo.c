#include "tools/topo/topo.h"

bool mc_topo_one_machine(const mc_topo_t *t, int32_t first, int32_t n)
{
    for (int32_t r = first; t->machine && r < first + n; r++)
        if (t->machine[r] != t->machine[first])
            return false;
    return t->machine;
}

int32_t mc_topo_machines(const mc_topo_t *t)
{
    int32_t n = 0;
    for (int32_t r = 0; t->machine && r < t->mesh.size; r++)
        n += t->machine[r] == r;
    return n;
}
