/* The fields of a link that may differ by the vector's size, by name; and the ranges of all its
 * numbers. */
#ifndef MC_MESH_LINK_FIELDS_H
#define MC_MESH_LINK_FIELDS_H

#include "mesh/link.h"

enum { MC_LINK_FIELDS = 6 };

typedef struct {
    const char *name;
    size_t in_link, in_point; /* byte offsets */
    bool per_byte;            /* else it is a time */
} mc_link_field_t;

extern const mc_link_field_t mc_link_fields[MC_LINK_FIELDS];

/*
 * A number of a link is 0 or in its range. Within these ranges the costs on MC_MESH_RANKS ranks and
 * 2^64 bytes, their squares and their quotients do not overflow a double.
 */
typedef struct {
    double least, most;
    const char *unit;
} mc_link_range_t;
extern const mc_link_range_t mc_link_times, mc_link_costs, mc_link_sizes, mc_link_shares;
static inline bool mc_link_is_within(const mc_link_range_t *range, double number)
{
    return number == 0 || (number >= range->least && number <= range->most);
}
static inline const mc_link_range_t *mc_link_range(const mc_link_field_t *field)
{
    return field->per_byte ? &mc_link_costs : &mc_link_times;
}

static inline double *mc_link_in(const mc_link_field_t *field, mc_link_t *link)
{
    return (double *)((char *)link + field->in_link);
}

static inline double *mc_link_in_point(const mc_link_field_t *field, mc_link_point_t *point)
{
    return (double *)((char *)point + field->in_point);
}

static inline double mc_link_value(const mc_link_field_t *field, const mc_link_t *link)
{
    return *(const double *)((const char *)link + field->in_link);
}

static inline double mc_link_point_value(const mc_link_field_t *field, const mc_link_point_t *point)
{
    return *(const double *)((const char *)point + field->in_point);
}

/* Is the field's name that of factors, "COLLECTIVE.ALGORITHM" or "ASKED/COLLECTIVE.ALGORITHM"? */
bool mc_link_is_factors(const char *field, size_t n);
/* Reads "0.9/1.1", one factor for each size of dimension `d`. */
int mc_link_read_factors(const char *field, size_t n, const char *value, size_t n_value, int32_t d,
                         mc_links_t *links);
/* Prints the factors of dimension `d` as fields, each after a semicolon. */
void mc_link_print_factors(const mc_links_t *links, int32_t d, mc_text_t *text);
bool mc_link_has_factors(const mc_links_t *links, int32_t d);
bool mc_links_are_factors_usable(const mc_links_t *links);

#endif
