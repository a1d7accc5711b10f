/* Whom a wait is to be blamed on: rank 0 may wait for rank 3, which waits for rank 5, which is the one
 * that is missing. */
#ifndef MC_WAITS_BLAME_H
#define MC_WAITS_BLAME_H

#include "runtime/diagnose/waits.h"
#include "runtime/handle/handle.h"

/* Ranks that are asked at most, and for how long: then the last one that answered is named. */
enum { MC_BLAME_HOPS = 16, MC_BLAME_MS = 1500 };

typedef enum {
    MC_BLAME_SILENT, /* it does not answer */
    MC_BLAME_AWAY,   /* it is not waiting in the library */
    MC_BLAME_LATE,   /* it was not seen there for long, but what it waited for has not ended */
    MC_BLAME_FAILED, /* its mesh has failed, and it waited for nobody then */
    MC_BLAME_BUSY,   /* it waits for no other rank */
    MC_BLAME_CIRCLE, /* the ranks wait for one another */
    MC_BLAME_FAR     /* it waits too, and no more ranks were asked */
} mc_blame_kind_t;

/* Has it made the call that it is waited for in? Nobody can know it of tagged messages, and of the
 * starts of a persistent operation. */
typedef enum { MC_CALL_UNKNOWN, MC_CALL_MADE, MC_CALL_NOT_MADE } mc_call_made_t;

typedef struct {
    mc_blame_kind_t kind;
    mc_call_made_t made;
    int32_t n;                    /* ranks of the chain, without the one to blame */
    int32_t chain[MC_BLAME_HOPS]; /* the caller's numbers; this rank is the first */
    int32_t circle;               /* of a circle: where in the chain it begins */
    mc_wait_t wait;               /* the last of the chain waits so for the rank to blame */
    mc_wait_t own;     /* of BUSY and FAR: what that one waits for; of LATE: waited for */
    int64_t looked_ms; /* as in mc_waits_t */
    int32_t broken;    /* status of its mesh's failure */
} mc_blame_t;

/* Follows `wait`, of this rank, whose record is `self`. false: it waits for no rank. */
bool mc_blame_find(const mc_waits_t *self, const mc_wait_t *wait, const mc_ask_t *ask,
                   mc_blame_t *blame);
/* The first rank that does not wait in the destruction of its last mesh, or does not answer; -1: all do. */
int32_t mc_blame_find_absent(const mc_waits_t *self, const mc_ask_t *ask);
/* Appends a sentence without its full stop. */
void mc_blame_print(const mc_blame_t *blame, mc_text_t *text);

#endif
