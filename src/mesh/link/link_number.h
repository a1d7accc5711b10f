/* Numbers of links as text: times, costs per byte and sizes, each with its unit. */
#ifndef MC_MESH_LINK_NUMBER_H
#define MC_MESH_LINK_NUMBER_H

#include "base/base.h"

#include <string.h>

/* A part of a text; parsing never copies it. */
typedef struct {
    const char *at;
    size_t n;
} mc_word_t;

static inline mc_word_t mc_word_of(const char *text)
{
    return (mc_word_t){text, strlen(text)};
}
/* Cuts the part before `separator` off `rest`, and the separator. */
mc_word_t mc_word_cut(mc_word_t *rest, char separator);
static inline bool mc_word_is(mc_word_t word, const char *name)
{
    return strlen(name) == word.n && memcmp(name, word.at, word.n) == 0;
}

/* Each reads a whole word; false: it is no such number. */
bool mc_read_seconds(mc_word_t word, double *seconds); /* "7us", or "0" */
bool mc_read_cost(mc_word_t word, double *seconds);    /* "40ns/KiB", "25GB/s", or "0" */
bool mc_read_size(mc_word_t word, double *bytes);      /* "64KiB", or "0" */
/* Reads the number at the start of `word` and moves `word` past it. */
bool mc_read_number(mc_word_t *word, double *number);

/* Each prints with as few digits as read back to the same number. */
void mc_write_seconds(double seconds, mc_text_t *text);
void mc_write_cost(double seconds, mc_text_t *text); /* a rate or a time, whichever is shorter */
void mc_write_size(double bytes, mc_text_t *text);

#endif
