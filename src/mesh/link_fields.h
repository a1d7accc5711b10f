/* What a link has, and may have at a size of the vector, by name. */
#ifndef MC_MESH_LINK_FIELDS_H
#define MC_MESH_LINK_FIELDS_H

#include "mesh/link.h"

enum { MC_LINK_FIELDS = 6 };

typedef struct {
    const char *name;
    size_t in_link, in_point; /* offsets */
    bool per_byte;            /* else a time */
} mc_link_field_t;

extern const mc_link_field_t mc_link_fields[MC_LINK_FIELDS];

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

/* Is the field's name one of factors, "COLLECTIVE.ALGORITHM", or "ASKED/COLLECTIVE.ALGORITHM"? */
bool mc_link_is_factors(const char *field, size_t n);
/* "0.9/1.1", one for each size of dimension `d`. */
int mc_link_read_factors(const char *field, size_t n, const char *value, size_t n_value, int32_t d,
                         mc_links_t *links);
/* As fields, each after a semicolon. */
void mc_link_print_factors(const mc_links_t *links, int32_t d, mc_text_t *text);
bool mc_link_has_factors(const mc_links_t *links, int32_t d);
bool mc_links_are_factors_usable(const mc_links_t *links);

#endif
