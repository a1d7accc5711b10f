/* What a call asks for, in a form of fixed size that ranks compare. */
#ifndef MC_DIAGNOSE_FINGERPRINT_H
#define MC_DIAGNOSE_FINGERPRINT_H

#include "runtime/handle/handle.h"

/* NONE: the library's own operations and tagged messages, which are not compared. ON_DEVICE: a call on
 * device memory. */
typedef enum {
    MC_ASKS_NONE,
    MC_ASKS_CALL,
    MC_ASKS_BARRIER,
    MC_ASKS_GROUP,
    MC_ASKS_REFUSED,
    MC_ASKS_ON_DEVICE
} mc_asks_t;

enum { MC_FINGERPRINT_TEXT = 120 };
/* Without padding, so that equal ones have equal bytes. Numbers that ranks may not agree on, because
 * they do not know those of others, are 0. */
typedef struct {
    uint32_t kind, number;                  /* number: of the operation, see numbers.h */
    int32_t collective, datatype, op, root; /* op and root: -1 where there is none */
    uint64_t count;  /* as in the call; of blocks of unequal sizes the sum; of a group its calls */
    uint64_t blocks; /* hash of the table of their sizes; 0: none, or not known to all ranks */
    uint64_t mesh;   /* hash of its text */
    uint64_t part;   /* of a family (family.h): the mesh's creation and context */
    uint64_t strategy;              /* hash of its text; of a group, of its calls */
    uint64_t window, window_at;     /* as in the description */
    char text[MC_FINGERPRINT_TEXT]; /* the start of the strategy's text; why a call was refused */
} mc_fingerprint_t;
/* They are gathered as such. */
_Static_assert(sizeof(mc_fingerprint_t) % sizeof(int64_t) == 0, "whole elements");

/* `call` NULL: of an operation of the library's own. */
mc_fingerprint_t mc_fingerprint_of(const meshcoll_t *h, const mc_call_t *call);
/* Of a group; `hash` from mc_fingerprint_add, over its calls. */
mc_fingerprint_t mc_fingerprint_group(const meshcoll_t *h, uint32_t number, uint64_t hash);
uint64_t mc_fingerprint_add(uint64_t hash, const mc_fingerprint_t *f);
/* Of a call that was refused with the thread's last error. */
mc_fingerprint_t mc_fingerprint_refused(const meshcoll_t *h, uint32_t number);

bool mc_fingerprint_same(const mc_fingerprint_t *a, const mc_fingerprint_t *b);
/* Two ends of a connection agree if they are equal, or of different operations or meshes of a family. */
bool mc_fingerprint_agree(const mc_fingerprint_t *a, const mc_fingerprint_t *b);
/* Writes n fingerprints as a sentence: "call 3: ranks 0, 2-7 asked for …; rank 1 for …". `rank`: the
 * caller's numbers of their ranks; NULL: from 0 on. */
void mc_fingerprint_print(const mc_fingerprint_t *all, const int32_t *rank, int32_t n,
                          mc_text_t *text);

#endif
