/* What a caller may ask for, said in one line when it is something else. */
#include "compose/placement.h"
#include "runtime/request.h"

#include <string.h>

/* Bytes of the input and output buffers this rank uses. */
typedef struct {
    size_t in, out;
} needs_t;

static needs_t needs_of(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const mc_move_t *const move = &mc_moves[a->collective];
    const bool at_root = mc_comm_rank_of(&h->order, h->rank) == a->root;
    const size_t one = a->count * meshcoll_datatype_size(a->datatype);
    const size_t whole = mc_move_has_blocks(move) ? one * (size_t)h->mesh.size : one;
    needs_t n = {.in = whole, .out = whole};
    if (move->from == MC_SHARD)
        n.in = one;
    else if (move->from == MC_ROOT && !at_root)
        n.in = 0;
    if (move->to == MC_SHARD)
        n.out = one;
    else if (move->to == MC_ROOT && !at_root)
        n.out = 0;
    return n;
}

static int check_buffers(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const char *const name = meshcoll_collective_name(a->collective);
    const needs_t n = needs_of(h, a);
    const int32_t rank = mc_comm_rank_of(&h->order, h->rank);
    if (n.in && !a->in)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: in is NULL where rank %d has %zu bytes to give", name, rank, n.in);
    if (n.out && !a->out)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: out is NULL where rank %d gets %zu bytes",
                       name, rank, n.out);
    const char *const in = a->in;
    char *const out = a->out;
    if (!n.in || !n.out || in + n.in <= out || out + n.out <= in)
        return MESHCOLL_OK;
    const size_t block = (size_t)rank * (n.in < n.out ? n.in : n.out);
    const char *const wanted_in = n.in < n.out ? out + block : n.in == n.out ? out : in;
    const char *const wanted_out = n.out < n.in ? in + block : out;
    if (in != wanted_in || out != wanted_out)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: in and out overlap; in place means %s", name,
                       n.in == n.out  ? "in == out"
                       : n.in < n.out ? "in == out + rank * count elements"
                                      : "out == in + rank * count elements");
    return MESHCOLL_OK;
}

static int check_count(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const size_t ranks = (size_t)h->mesh.size;
    const size_t most = SIZE_MAX / 2 / ranks / meshcoll_datatype_size(a->datatype);
    if (a->count > most)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: a count of %zu elements on %zu ranks overflows; at most %zu",
                       meshcoll_collective_name(a->collective), a->count, ranks, most);
    return MESHCOLL_OK;
}

int mc_args_check(const meshcoll_t *h, const meshcoll_args_t *given, meshcoll_args_t *args)
{
    meshcoll_args_t a = {0};
    /* with or without `strategy`; a size in between is a mistake, and half a pointer */
    if (given->size != offsetof(meshcoll_args_t, strategy) && given->size < sizeof a)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_args_t.size is %zu: set it to sizeof(meshcoll_args_t)",
                       given->size);
    memcpy(&a, given, given->size < sizeof a ? given->size : sizeof a);
    if ((unsigned)a.collective >= MESHCOLL_COLLECTIVES)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "there is no collective %d", (int)a.collective);
    const mc_move_t *const move = &mc_moves[a.collective];
    if ((unsigned)a.datatype >= MESHCOLL_DATATYPES)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: there is no datatype %d", move->name,
                       (int)a.datatype);
    if (!move->reduces)
        a.op = MESHCOLL_SUM;
    if ((unsigned)a.op >= MESHCOLL_OPS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: there is no operation %d", move->name,
                       (int)a.op);
    if (!move->rooted)
        a.root = 0;
    if (a.root < 0 || a.root >= h->mesh.size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected a root from 0 to %d, got %d",
                       move->name, h->mesh.size - 1, a.root);
    int status = check_count(h, &a);
    if (!status && a.count > 0)
        status = check_buffers(h, &a);
    if (status)
        return status;
    if (move->rooted)
        a.root = mc_mesh_rank_of(&h->order, a.root);
    *args = a;
    return MESHCOLL_OK;
}
