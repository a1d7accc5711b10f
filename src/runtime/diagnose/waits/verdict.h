/* What a rank does that another one waits for. */
#ifndef MC_DIAGNOSE_VERDICT_H
#define MC_DIAGNOSE_VERDICT_H

#include "runtime/diagnose/waits/waits.h"

typedef enum {
    MC_PEER_SILENT, /* it does not answer */
    MC_PEER_AWAY,   /* it does not wait in the library */
    MC_PEER_LATE,   /* it was not seen there for long, but what it waited for has not ended */
    MC_PEER_FAILED, /* its mesh has failed, and it waited for nobody then */
    MC_PEER_BUSY,   /* it waits for no other rank */
    MC_PEER_WAITS   /* it waits for another rank, too */
} mc_verdict_kind_t;

/* Has it made the call that it is waited for in? Nobody can know it of tagged messages, and of the
 * starts of a persistent operation. */
typedef enum { MC_CALL_UNKNOWN, MC_CALL_MADE, MC_CALL_NOT_MADE } mc_call_made_t;

typedef struct {
    mc_verdict_kind_t kind;
    mc_call_made_t made;
    mc_wait_t wait;    /* how it is waited for */
    mc_wait_t own;     /* of BUSY and WAITS: what it waits for itself; of LATE: waited for */
    int64_t looked_ms; /* as in mc_waits_t */
    int32_t broken;    /* status of its mesh's failure */
} mc_verdict_t;

/* Where the records of ranks come from: by mesh rank. 0; else there is none. */
typedef struct {
    int (*rank)(const void *context, int32_t rank, mc_waits_t *record);
    const void *context;
} mc_peer_query_t;

/* `wait` has a peer, whose record is `peer`; NULL: it does not answer. */
mc_verdict_t mc_verdict_of(const mc_wait_t *wait, const mc_waits_t *peer);
/* Follows ranks that wait, too, to the one at the end: at most so many, for so long. WAITS: it was not reached, or they
 * wait for one another. A rank that is late may only get no core: where it waited last for one that does not answer,
 * that is the one. */
mc_verdict_t mc_verdict_find(const mc_peer_query_t *query, const mc_wait_t *wait, int32_t most,
                             double seconds);
/* Appends a sentence without its full stop. */
void mc_verdict_print(const mc_verdict_t *verdict, mc_text_t *text);
/* Does it wait in the destruction of its last mesh? */
bool mc_waits_to_destroy(const mc_waits_t *at);

#endif
