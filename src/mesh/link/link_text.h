/* Links as text: words, numbers with units, and the numbers of a link by name with their ranges. */
#ifndef MC_MESH_LINK_TEXT_H
#define MC_MESH_LINK_TEXT_H

#include "base/table.h"
#include "mesh/link/link.h"

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
/* Cuts the next word off a line of words, with the blanks before it. */
mc_word_t mc_word_next(mc_word_t *line);
static inline bool mc_word_is(mc_word_t word, const char *name)
{
    return strlen(name) == word.n && memcmp(name, word.at, word.n) == 0;
}

/* Appends what is meant by a rate such as 400Gbps, 400Gb/s, 400Gbit or 400G, or nothing. */
void mc_link_suggest(mc_word_t word, mc_text_t *text);

/* Reads the number at the start of `word` and moves `word` past it. */
bool mc_read_number(mc_word_t *word, double *number);

/*
 * A kind of number. A number of a link is 0 or in the range of its kind. Within these ranges the
 * costs on MC_MESH_RANKS ranks and 2^64 bytes, their squares and their quotients do not overflow a
 * double.
 */
typedef struct {
    double least, most;
    const char *unit, *wanted;
    bool (*read)(mc_word_t word, double *number);   /* a whole word; false: it is no such number */
    void (*write)(double number, mc_text_t *text);  /* in the fewest digits that read back as it */
    void (*show)(mc_table_t *table, double number); /* in a cell */
} mc_link_kind_t;
extern const mc_link_kind_t mc_link_times, mc_link_costs, mc_link_sizes;
static inline bool mc_link_is_within(const mc_link_kind_t *kind, double number)
{
    return number == 0 || (number >= kind->least && number <= kind->most);
}

enum { MC_LINK_FIELDS = 9 };
typedef struct {
    const char *name, *head; /* in texts, and of its column in tables */
    const mc_link_kind_t *kind;
    bool corrects; /* a member of mc_correction_t, else of mc_link_t */
    size_t offset;
} mc_link_field_t;
extern const mc_link_field_t mc_link_fields[MC_LINK_FIELDS];

static inline double *mc_link_number(const mc_link_field_t *field, mc_links_t *links, int32_t d)
{
    char *const base = field->corrects ? (char *)&links->correction[d] : (char *)&links->dim[d];
    return (double *)(base + field->offset);
}
static inline double mc_link_value(const mc_link_field_t *field, const mc_links_t *links, int32_t d)
{
    const char *const base =
        field->corrects ? (const char *)&links->correction[d] : (const char *)&links->dim[d];
    return *(const double *)(base + field->offset);
}

/* Reads the table behind "measured=" into one of zeros, and prints it with that word. */
int mc_measured_parse(mc_word_t text, mc_measured_t *table);
void mc_measured_print(const mc_measured_t *table, mc_text_t *text);

#endif
