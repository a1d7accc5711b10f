#include "network/ends.h"

bool mc_network_joins(const mc_mesh_t *mesh, int32_t d)
{
    const int32_t box = mc_mesh_find(mesh, "box", 3);
    return box >= 0 ? d <= box : !mc_dim_is_inside(&mesh->dim[d]);
}

int32_t mc_network_port(const mc_mesh_t *mesh, const mc_links_t *links, int32_t wire, int32_t rank,
                        int32_t *ports, int32_t *n)
{
    int32_t first = rank;
    *n = wire + 1 < mesh->ndims ? mc_mesh_span(mesh, wire + 1, rank, &first) : 1;
    *ports = links->dim[wire].ports < *n ? links->dim[wire].ports : *n;
    return first + (int32_t)((int64_t)(rank - first) * *ports / *n);
}

int32_t mc_network_outer(const mc_mesh_t *mesh)
{
    int32_t d = mesh->ndims - 1;
    while (d >= 0 && !mc_network_joins(mesh, d))
        d--;
    return d;
}

int32_t mc_network_ends(const mc_mesh_t *mesh, const mc_links_t *links, int32_t *end,
                        int32_t *per_box)
{
    const int32_t outer = mc_network_outer(mesh);
    const int32_t wire = outer < 0 ? -1 : mc_links_wire(links, outer);
    int32_t n = 0, size, last = -1, ports;
    for (int32_t r = 0; r < mesh->size && wire >= 0; r++) {
        const int32_t port = mc_network_port(mesh, links, wire, r, &ports, &size);
        n += port != last;
        last = port;
        *per_box = r == 0 ? ports : *per_box;
        if (end)
            end[r] = n - 1;
    }
    return n;
}

int mc_network_fit_to(const mc_mesh_t *mesh, const mc_links_t *links, mc_network_t *network)
{
    int32_t per_box = 1;
    const int32_t ends = mc_network_ends(mesh, links, NULL, &per_box);
    if (ends == 0)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "the network joins boxes, and all dimensions of this mesh are inside of one");
    return mc_network_fit(network, ends, per_box);
}
