/* Users' operations and scaled sums, in a table per process. Lookup takes no lock. */
#include "runtime/element/datatype.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A handle combines the place in the table with a count of the place's uses, so that a freed
 * handle differs from its successor. The table grows by parts, which stay where they are. */
enum { PART_BITS = 10, PART = 1 << PART_BITS, PARTS = 1 << 10, PLACES = PART * PARTS };

typedef struct place {
    atomic_uint handle; /* 0: free */
    unsigned index, uses;
    struct place *next; /* of the free ones */
    mc_user_op_t op;
} place_t;

static _Atomic(place_t *) table[PARTS];
static place_t *unused; /* freed ones */
static unsigned n_places;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned handle_of(const place_t *place)
{
    const unsigned most = ((unsigned)MESHCOLL_OP_LAST - MESHCOLL_OP_USER) / PLACES;
    return (unsigned)MESHCOLL_OP_USER + place->uses % most * PLACES + place->index;
}

static place_t *place_of(meshcoll_op_t op)
{
    const unsigned handle = (unsigned)op, index = (handle - (unsigned)MESHCOLL_OP_USER) % PLACES;
    if (handle < (unsigned)MESHCOLL_OP_USER || handle > (unsigned)MESHCOLL_OP_LAST)
        return NULL;
    place_t *const part = atomic_load(&table[index / PART]);
    place_t *const place = part ? &part[index % PART] : NULL;
    return place && atomic_load(&place->handle) == handle ? place : NULL;
}

bool mc_user_op_find(meshcoll_op_t op, mc_user_op_t *found)
{
    const place_t *const place = place_of(op);
    if (place && found)
        *found = place->op;
    return place;
}

/* A free place, with the lock held; NULL: there is no memory for one. */
static place_t *take_place(void)
{
    place_t *place = unused;
    if (place) {
        unused = place->next;
        return place;
    }
    if (n_places == PLACES)
        return NULL;
    place_t *part = atomic_load(&table[n_places / PART]);
    if (!part) {
        part = calloc(PART, sizeof *part);
        atomic_store(&table[n_places / PART], part);
    }
    place = part ? &part[n_places % PART] : NULL;
    if (place)
        place->index = n_places++;
    return place;
}

int mc_user_op_add(const char *caller, const mc_user_op_t *fresh, meshcoll_op_t *op)
{
    pthread_mutex_lock(&lock);
    place_t *const place = take_place();
    if (place) {
        place->op = *fresh;
        place->uses++;
        atomic_store(&place->handle, handle_of(place));
        *op = (meshcoll_op_t)place->handle;
    }
    const unsigned n = n_places;
    pthread_mutex_unlock(&lock);
    return place ? MESHCOLL_OK
                 : mc_fail(MESHCOLL_ERR_NO_MEMORY,
                           "%s: there is no memory for more than the %u operations that there are; "
                           "free some with meshcoll_op_free",
                           caller, n);
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
    if (place) {
        atomic_store(&place->handle, 0);
        place->next = unused;
        unused = place;
    }
    pthread_mutex_unlock(&lock);
    return place ? MESHCOLL_OK
                 : mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "meshcoll_op_free: %d is not a handle from meshcoll_op_create or "
                           "meshcoll_op_premul, or was freed before",
                           (int)op);
}
