/*
 * What calls of an earlier mesh of the same extents have learned: for a kind of call, the strategy that was the fastest.
 * As text, a line each:
 *
 *     COLLECTIVE BYTES ROOT free|ordered|barrier NANOSECONDS STRATEGY
 *
 * BYTES are of the whole vector, ROOT is a mesh rank, `ordered` as in mc_choice_key_t.
 */
#ifndef MC_RUNTIME_KNOWN_H
#define MC_RUNTIME_KNOWN_H

#include "runtime/adapt/lessons.h"

typedef struct {
    mc_choice_key_t key;
    mc_strategy_t strategy;
    int64_t ns; /* what it took */
} mc_known_t;

typedef struct {
    mc_known_t *list;
    int32_t n;
} mc_known_list_t;

/* Those of the lessons that are settled by times, and of the list those of the other kinds of calls. A text that has no
 * room for a line has the whole ones before it. */
void mc_known_print(const mc_lessons_t *lessons, const mc_known_list_t *list, const mc_mesh_t *mesh,
                    mc_text_t *text);
/* The caller frees list->list by free(). ERR_PARSE, which says which line is wrong; ERR_NO_MEMORY. */
int mc_known_parse(const char *text, const mc_mesh_t *mesh, mc_known_list_t *list);
/* NULL: nothing is known of it. */
const mc_known_t *mc_known_find(const mc_known_list_t *list, const mc_choice_key_t *key);

#endif
