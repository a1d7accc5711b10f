/* The text of a mesh, parsed and checked. */
#include "mesh/mesh.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int fail_mesh_text(const char *text, const char *why)
{
    return mc_fail(MESHCOLL_ERR_PARSE,
                   "a mesh is written NAME=EXTENT,… outermost first, as in box=4,gpu=8, or with "
                   "boxes of unequal sizes box=8+8+4; in '%s' %s",
                   text, why);
}

/* Words that stand for something else where the text of links has a dimension: wire:own, and the
 * table measured=. */
static bool is_word_of_links(const char *name)
{
    return strcmp(name, "own") == 0 || strcmp(name, "measured") == 0;
}

/* Reads NAME= at *at and moves *at past it. */
static int parse_name(const char *text, const char **at, mc_dim_t *dim)
{
    const char *const p = *at;
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '-')
        n++;
    if (n == 0 || !isalpha((unsigned char)p[0]))
        return fail_mesh_text(text, "a dimension has no name that starts with a letter");
    if (n >= MC_DIM_NAME)
        return fail_mesh_text(text, "a name is longer than 15 characters");
    if (p[n] != '=')
        return fail_mesh_text(text, "a name has no '=' after it");
    memcpy(dim->name, p, n);
    dim->name[n] = '\0';
    if (is_word_of_links(dim->name))
        return fail_mesh_text(text, "a dimension is called own or measured, which links use");
    *at = p + n + 1;
    return MESHCOLL_OK;
}

static int parse_number(const char *text, const char **at, int32_t *number)
{
    char *end;
    const long value = strtol(*at, &end, 10);
    if (!isdigit((unsigned char)**at) || value < 1 || value > INT32_MAX)
        return fail_mesh_text(text, "an extent is not a number from 1 on");
    *number = (int32_t)value;
    *at = end;
    return MESHCOLL_OK;
}

static int parse_dim(const char *text, const char **at, mc_dim_t *dim)
{
    const int status = parse_name(text, at, dim);
    return status ? status : parse_number(text, at, &dim->extent);
}

static int fail_ranks(const char *text)
{
    return mc_fail(MESHCOLL_ERR_PARSE, "a mesh has at most 2^22 = %d ranks; '%s' has more",
                   MC_MESH_RANKS, text);
}

/* Reads "8+8+4", where "3x8" abbreviates 8+8+8. *sizes is the caller's to free, also on failure. */
static int parse_sizes(const char *text, const char *at, int32_t **sizes, int32_t *n)
{
    int64_t total = 0;
    *sizes = NULL;
    *n = 0;
    for (;; at++) {
        int32_t size = 1, times = 1;
        int status = parse_number(text, &at, &size);
        if (!status && *at == 'x') {
            times = size;
            at++;
            status = parse_number(text, &at, &size);
        }
        total += (int64_t)times * size;
        if (!status && total > MC_MESH_RANKS)
            status = fail_ranks(text);
        int32_t *const grown =
            status ? NULL : realloc(*sizes, ((size_t)*n + (size_t)times) * sizeof *grown);
        if (!status && !grown)
            status = mc_fail_memory("a mesh");
        if (status)
            return status;
        *sizes = grown;
        for (int32_t i = 0; i < times; i++)
            grown[(*n)++] = size;
        if (*at != '+')
            break;
    }
    return *at ? fail_mesh_text(text,
                                "something follows the list of boxes, which is the whole mesh")
               : MESHCOLL_OK;
}

static int parse_ragged(const char *text, mc_mesh_t *mesh)
{
    mc_dim_t dim;
    const char *at = text;
    int32_t *sizes = NULL, n = 0;
    int status = parse_name(text, &at, &dim);
    if (!status)
        status = parse_sizes(text, at, &sizes, &n);
    if (!status)
        status = mc_mesh_of_boxes(dim.name, sizes, n, mesh);
    free(sizes);
    return status;
}

/* Reads a mesh as people say it: "16", "4x8" or "2x4x8" are gpu=16, box=4,gpu=8 and rack=2,box=4,gpu=8. */
static int parse_numbers(const char *text, mc_mesh_t *mesh)
{
    static const char *const names[] = {"rack", "box", "gpu"};
    enum { MOST = MC_COUNT(names) };
    char buffer[64];
    mc_text_t spelt = mc_text(buffer, sizeof buffer);
    int32_t extent[MOST], n = 0;
    for (const char *at = text;; at++) {
        if (n == MOST)
            return fail_mesh_text(text, "there are more than 3 extents without names");
        const int status = parse_number(text, &at, &extent[n++]);
        if (status)
            return status;
        if (!*at)
            break;
        if (*at != 'x')
            return fail_mesh_text(text,
                                  "something other than 'x' follows an extent without a name");
    }
    for (int32_t i = 0; i < n; i++)
        mc_text_add(&spelt, "%s%s=%d", i ? "," : "", names[MOST - n + i], extent[i]);
    return mc_mesh_parse(buffer, mesh);
}

int mc_mesh_parse(const char *text, mc_mesh_t *mesh)
{
    mc_mesh_t m = {.size = 1};
    int64_t size = 1;
    const char *at = text;
    const int long_text =
        mc_check_length(MESHCOLL_ERR_PARSE, "the text of a mesh", text, MC_MESH_MOST_READ);
    if (long_text)
        return long_text;
    if (strchr(text, '+'))
        return parse_ragged(text, mesh);
    if (isdigit((unsigned char)*text))
        return parse_numbers(text, mesh);
    for (;;) {
        if (m.ndims == MC_MAX_DIMS)
            return fail_mesh_text(text, "there are more than 6 dimensions");
        mc_dim_t *const dim = &m.dim[m.ndims];
        const int status = parse_dim(text, &at, dim);
        if (status)
            return status;
        const int32_t same = mc_mesh_find(&m, dim->name, strlen(dim->name));
        if (same >= 0 && strcmp(m.dim[same].name, dim->name) == 0)
            return fail_mesh_text(text, "a name occurs twice");
        m.ndims++;
        size *= dim->extent;
        if (size > MC_MESH_RANKS)
            return fail_ranks(text);
        if (*at == '\0')
            break;
        if (*at != ',')
            return fail_mesh_text(text, "something other than ',' follows an extent");
        at++;
    }
    m.size = (int32_t)size;
    *mesh = m;
    return MESHCOLL_OK;
}

/* The mesh that its own text or list of boxes says. */
static int make_again(const mc_mesh_t *mesh, const char *text, mc_mesh_t *again)
{
    const mc_boxes_t *const boxes = mesh->ragged;
    if (!boxes)
        return mc_mesh_parse(text, again);
    int32_t *const sizes = malloc((size_t)boxes->n * sizeof *sizes);
    for (int32_t b = 0; sizes && b < boxes->n; b++)
        sizes[b] = mc_boxes_size(boxes, b);
    const int status = sizes ? mc_mesh_of_boxes(mesh->dim[0].name, sizes, boxes->n, again)
                             : mc_fail_memory("a mesh");
    free(sizes);
    return status;
}

int mc_mesh_check(const mc_mesh_t *mesh)
{
    char buffer[MC_MESH_TEXT];
    mc_mesh_t again;
    if (mesh->ndims < 1 || mesh->ndims > MC_MAX_DIMS)
        return mc_fail(MESHCOLL_ERR_MESH, "a mesh has 1 to %d dimensions, not %d", MC_MAX_DIMS,
                       mesh->ndims);
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (!memchr(mesh->dim[d].name, '\0', MC_DIM_NAME))
            return mc_fail(MESHCOLL_ERR_MESH, "the name of dimension %d has no final NUL", d);
    const char *const text = mc_mesh_text(mesh, buffer);
    const int status = make_again(mesh, text, &again);
    if (status)
        return status;
    if (again.ragged != mesh->ragged || mesh->leader < 0 || mesh->leader >= mesh->size)
        return mc_fail(MESHCOLL_ERR_MESH,
                       "mesh %s does not match its list of boxes, or has no rank %d to lead", text,
                       mesh->leader);
    if (again.size != mesh->size)
        return mc_fail(MESHCOLL_ERR_MESH, "mesh %s has %d ranks, but its size is %d", text,
                       again.size, mesh->size);
    return MESHCOLL_OK;
}
