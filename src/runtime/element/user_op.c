/* Users' operations and scaled sums, in a table per process. Lookup takes no lock. */
#include "runtime/element/datatype.h"

#include <pthread.h>
#include <stdatomic.h>

/* A handle combines the place in the table with a count of the place's uses, so that a freed
 * handle differs from its successor. */
enum { PLACE_BITS = 10, PLACES = 1 << PLACE_BITS };

typedef struct {
    atomic_uint handle; /* 0: free */
    unsigned uses;
    mc_user_op_t op;
} place_t;

static place_t table[PLACES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned handle_of(const place_t *place)
{
    const unsigned most = ((unsigned)MESHCOLL_OP_LAST - MESHCOLL_OP_USER) >> PLACE_BITS;
    const unsigned index = (unsigned)(place - table);
    return (unsigned)MESHCOLL_OP_USER + (place->uses % most << PLACE_BITS | index);
}

static place_t *place_of(meshcoll_op_t op)
{
    const unsigned handle = (unsigned)op;
    if (handle < (unsigned)MESHCOLL_OP_USER || handle > (unsigned)MESHCOLL_OP_LAST)
        return NULL;
    place_t *const place = &table[(handle - (unsigned)MESHCOLL_OP_USER) % PLACES];
    return atomic_load(&place->handle) == handle ? place : NULL;
}

bool mc_user_op_find(meshcoll_op_t op, mc_user_op_t *found)
{
    const place_t *const place = place_of(op);
    if (place && found)
        *found = place->op;
    return place;
}

int mc_user_op_add(const char *caller, const mc_user_op_t *fresh, meshcoll_op_t *op)
{
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < PLACES && atomic_load(&table[i].handle))
        i++;
    if (i < PLACES) {
        table[i].op = *fresh;
        table[i].uses++;
        atomic_store(&table[i].handle, handle_of(&table[i]));
        *op = (meshcoll_op_t)table[i].handle;
    }
    pthread_mutex_unlock(&lock);
    return i < PLACES ? MESHCOLL_OK
                      : mc_fail(MESHCOLL_ERR_NO_MEMORY,
                                "%s: there are %d operations already; free some with "
                                "meshcoll_op_free",
                                caller, PLACES);
}

int meshcoll_op_create(meshcoll_op_fn_t function, int commutative, void *context, meshcoll_op_t *op)
{
    if (!function || !op)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_op_create: function or op is NULL");
    const mc_user_op_t fresh = {
        .function = function, .context = context, .commutative = commutative != 0};
    return mc_user_op_add("meshcoll_op_create", &fresh, op);
}

int meshcoll_op_free(meshcoll_op_t op)
{
    pthread_mutex_lock(&lock);
    place_t *const place = place_of(op);
    if (place)
        atomic_store(&place->handle, 0);
    pthread_mutex_unlock(&lock);
    return place ? MESHCOLL_OK
                 : mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "meshcoll_op_free: %d is not a handle from meshcoll_op_create or "
                           "meshcoll_op_premul, or was freed before",
                           (int)op);
}
