#include "runtime/boxes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Names at most so many sizes or meshes in a message. */
enum { MOST_NAMED = 8 };

/* The mesh found ------------------------------------------------------------------------------- */

static void add_sizes(const int32_t *machine, int32_t size, mc_text_t *text)
{
    int32_t named = 0;
    for (int32_t r = 0; r < size; r++) {
        if (machine[r] != r)
            continue;
        int32_t ranks = 0;
        for (int32_t k = r; k < size; k++)
            ranks += machine[k] == r;
        if (named == MOST_NAMED)
            mc_text_add(text, ", …");
        else if (named < MOST_NAMED)
            mc_text_add(text, "%s%d", named ? ", " : "", ranks);
        named++;
    }
}

static int fail_boxes(const int32_t *machine, int32_t size, int32_t stray)
{
    char found[160];
    mc_text_t text = mc_text(found, sizeof found);
    add_sizes(machine, size, &text);
    return mc_fail(
        MESHCOLL_ERR_MESH,
        "expected boxes of one size with ranks placed box by box; found boxes of %s ranks "
        "and rank %d out of line; start equal numbers per box in order (mpirun --map-by "
        "ppr:N:node, MPICH -ppn N), or take them as one line: MESHCOLL_MESH=rank=%d",
        found, stray, size);
}

int mc_boxes_mesh(const int32_t *machine, int32_t size, mc_mesh_t *mesh)
{
    char text[64];
    int32_t gpus = 0;
    while (gpus < size && machine[gpus] == 0)
        gpus++;
    for (int32_t r = 0; r < size; r++)
        if (machine[r] != r / gpus * gpus)
            return fail_boxes(machine, size, r);
    if (size % gpus != 0)
        return fail_boxes(machine, size, size - 1);
    if (gpus == size)
        snprintf(text, sizeof text, "gpu=%d", gpus);
    else if (gpus == 1)
        snprintf(text, sizeof text, "box=%d", size);
    else
        snprintf(text, sizeof text, "box=%d,gpu=%d", size / gpus, gpus);
    return mc_mesh_parse(text, mesh);
}

/* A mesh given ---------------------------------------------------------------------------------- */

typedef struct {
    mc_text_t text;
    int32_t named;
} fits_t;

/* All ways to give dimensions [d, ndims) extents whose product is `left`; 1 only where it must be. */
static void add_fits(fits_t *fits, mc_mesh_t *mesh, int32_t d, int32_t left)
{
    if (d == mesh->ndims - 1) {
        mesh->dim[d].extent = left;
        if ((mesh->ndims > 1 && left == 1) || fits->named++ >= MOST_NAMED)
            return;
        mc_text_add(&fits->text, "%s", fits->text.length ? " or " : "");
        mc_mesh_print(mesh, &fits->text);
        return;
    }
    for (int32_t extent = 2; extent <= left / 2 && fits->named < MOST_NAMED; extent++) {
        if (left % extent)
            continue;
        mesh->dim[d].extent = extent;
        add_fits(fits, mesh, d + 1, left / extent);
    }
}

int mc_mesh_fit(const char *text, int32_t size, mc_mesh_t *mesh)
{
    char would_fit[400];
    mc_mesh_t m;
    const int status = mc_mesh_parse(text, &m);
    if (status)
        return status;
    if (m.size == size) {
        *mesh = m;
        return MESHCOLL_OK;
    }
    fits_t fits = {.text = mc_text(would_fit, sizeof would_fit)};
    mc_mesh_t other = m;
    add_fits(&fits, &other, 0, size);
    if (fits.text.length == 0)
        snprintf(would_fit, sizeof would_fit, "rank=%d", size);
    return mc_fail(MESHCOLL_ERR_MESH, "mesh %s has %d ranks, but %d take part; %s would fit", text,
                   m.size, size, would_fit);
}

/* Transports ------------------------------------------------------------------------------------ */

static const char *network_tls(void)
{
    /* RDMA devices: everything but shared memory; without any this says the same, but shorter */
    return access("/sys/class/infiniband", F_OK) == 0 ? "^sm" : "tcp,self";
}

static const char *in_box_tls(void)
{
    return "shm";
}

/* Do all ranks that differ in dimension d or further in only share a machine? */
static bool share_machine(const int32_t *machine, const mc_mesh_t *mesh, int32_t d)
{
    const int32_t joined = mc_mesh_stride(mesh, d) * mesh->dim[d].extent;
    for (int32_t r = 0; r < mesh->size; r++)
        if (machine[r] != machine[r - r % joined])
            return false;
    return true;
}

static const char *rule_tls(const int32_t *machine, const mc_mesh_t *mesh, int32_t d)
{
    if ((d == 0 && mesh->ndims > 1) || !share_machine(machine, mesh, d))
        return network_tls();
    return in_box_tls();
}

static int set_tls(char to[MC_TLS_TEXT], const char *tls, size_t n)
{
    if (n == 0 || n >= MC_TLS_TEXT)
        return mc_fail(MESHCOLL_ERR_PARSE, "the transports of a dimension take 1 to %d characters",
                       MC_TLS_TEXT - 1);
    memcpy(to, tls, n);
    to[n] = '\0';
    return MESHCOLL_OK;
}

/* "box=tcp,self;gpu=sm,self" */
static int parse_tls(const char *text, const mc_mesh_t *mesh, char tls[MC_MAX_DIMS][MC_TLS_TEXT])
{
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ";");
        const char *const equals = memchr(at, '=', n);
        const int32_t d = equals ? mc_mesh_find(mesh, at, (size_t)(equals - at)) : -1;
        if (d < 0)
            return mc_fail(
                MESHCOLL_ERR_PARSE,
                "transports are written DIMENSION=LIST;…, as in box=tcp,self;gpu=sm,self; "
                "'%.*s' in '%s' names no dimension of this mesh",
                (int)n, at, text);
        const int status = set_tls(tls[d], equals + 1, n - (size_t)(equals + 1 - at));
        if (status)
            return status;
        at += at[n] ? n + 1 : n;
    }
    return MESHCOLL_OK;
}

int mc_boxes_transports(const char *text, const int32_t *machine, const mc_mesh_t *mesh,
                        char tls[MC_MAX_DIMS][MC_TLS_TEXT])
{
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const char *const rule = rule_tls(machine, mesh, d);
        const int status = set_tls(tls[d], rule, strlen(rule));
        if (status)
            return status;
    }
    return text ? parse_tls(text, mesh, tls) : MESHCOLL_OK;
}
