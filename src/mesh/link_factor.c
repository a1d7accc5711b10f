/* Factors of links: measured times of algorithms over their closed forms; set, found, parsed and
 * printed. */
#include "mesh/link_fields.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the factor's index, or n_factors; the search starts at `near`. */
static int32_t find_factor(const mc_links_t *links, const mc_factor_key_t *key, int32_t near)
{
    const int32_t n = links->n_factors;
    for (int32_t k = 0; k < n; k++) {
        const int32_t i = (near + k) % n;
        const mc_link_factor_t *const f = &links->factor[i];
        if (f->asked == key->asked && f->collective == key->collective && f->dim == key->dim &&
            strncmp(f->algorithm, key->algorithm, MC_FACTOR_NAME) == 0)
            return i;
    }
    return n;
}

int32_t mc_links_factor(const mc_links_t *links, const mc_factor_key_t *key, int32_t near)
{
    if (links->n_factors == 0 || links->dim[key->dim].n_points > 0)
        return MC_FACTOR_ONE;
    mc_factor_key_t any = *key;
    any.asked = key->collective;
    int32_t i = find_factor(links, key, near);
    if (i == links->n_factors && key->asked != any.asked)
        i = find_factor(links, &any, near);
    return i < links->n_factors ? links->factor[i].at[0] : MC_FACTOR_ONE;
}

void mc_links_set_factor(mc_links_t *links, const mc_factor_key_t *key, int32_t point,
                         double factor)
{
    const int32_t i = find_factor(links, key, 0);
    if (i == MC_LINK_FACTORS)
        return;
    mc_link_factor_t *const f = &links->factor[i];
    if (i == links->n_factors) {
        *f = (mc_link_factor_t){.dim = (uint8_t)key->dim,
                                .asked = (uint8_t)key->asked,
                                .collective = (uint8_t)key->collective};
        strncpy(f->algorithm, key->algorithm, MC_FACTOR_NAME - 1);
        for (int32_t k = 0; k < MC_LINK_POINTS; k++)
            f->at[k] = MC_FACTOR_ONE;
        links->n_factors++;
    }
    const double thousandths = fmin(fmax(round(factor * MC_FACTOR_ONE), 1), MC_FACTOR_MOST);
    f->at[point] = (uint16_t)thousandths;
}

/* Returns the collective of this name, or MESHCOLL_COLLECTIVES. */
static meshcoll_collective_t collective_of(const char *text, size_t n)
{
    int c = 0;
    while (c < MESHCOLL_COLLECTIVES) {
        const char *const name = meshcoll_collective_name((meshcoll_collective_t)c);
        if (strlen(name) == n && memcmp(name, text, n) == 0)
            break;
        c++;
    }
    return (meshcoll_collective_t)c;
}

/* Reads "ASKED/COLLECTIVE.ALGORITHM" or "COLLECTIVE.ALGORITHM"; `algorithm` receives the name that
 * key->algorithm then points to. */
static bool read_key(const char *field, size_t n, char algorithm[MC_FACTOR_NAME],
                     mc_factor_key_t *key)
{
    const char *const dot = memchr(field, '.', n);
    if (!dot)
        return false;
    const char *const slash = memchr(field, '/', (size_t)(dot - field));
    const char *const name = slash ? slash + 1 : field;
    const size_t length = (size_t)(field + n - dot) - 1;
    key->collective = collective_of(name, (size_t)(dot - name));
    key->asked = slash ? collective_of(field, (size_t)(slash - field)) : key->collective;
    if (key->collective == MESHCOLL_COLLECTIVES || key->asked == MESHCOLL_COLLECTIVES ||
        length == 0 || length >= MC_FACTOR_NAME)
        return false;
    snprintf(algorithm, MC_FACTOR_NAME, "%.*s", (int)length, dot + 1);
    key->algorithm = algorithm;
    return true;
}

bool mc_link_is_factors(const char *field, size_t n)
{
    return memchr(field, '.', n) != NULL;
}

/* Reads the number at *at and moves *at past it and the slash that follows. */
static bool take_factor(const char **at, const char *end, double *factor)
{
    char copy[32], *behind;
    const size_t left = (size_t)(end - *at), n = left < sizeof copy - 1 ? left : sizeof copy - 1;
    memcpy(copy, *at, n);
    copy[n] = '\0';
    if (!isdigit((unsigned char)copy[0]))
        return false;
    *factor = strtod(copy, &behind);
    *at += behind - copy;
    if (*at < end && **at != '/')
        return false;
    *at += *at < end;
    return *factor >= 1.0 / MC_FACTOR_ONE && *factor <= (double)MC_FACTOR_MOST / MC_FACTOR_ONE;
}

int mc_link_read_factors(const char *field, size_t n, const char *value, size_t n_value, int32_t d,
                         mc_links_t *links)
{
    const char *at = value, *const end = value + n_value;
    const int32_t sizes = links->dim[d].n_points > 0 ? links->dim[d].n_points : 1;
    char algorithm[MC_FACTOR_NAME];
    mc_factor_key_t key = {.dim = d};
    if (!read_key(field, n, algorithm, &key))
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "factors of a link are COLLECTIVE.ALGORITHM:NUMBER/…, or "
                       "ASKED/COLLECTIVE.ALGORITHM:NUMBER/…; got '%.*s'",
                       (int)n, field);
    double factor[MC_LINK_POINTS];
    int32_t k = 0;
    while (k < sizes && at < end && take_factor(&at, end, &factor[k]))
        k++;
    if (k < sizes || at < end)
        return mc_fail(
            MESHCOLL_ERR_PARSE,
            "%.*s of a link is a factor from 0.001 to %g for each of its %d sizes, as in "
            "0.9/1.1, after those sizes; got '%.*s'",
            (int)n, field, (double)MC_FACTOR_MOST / MC_FACTOR_ONE, sizes, (int)n_value, value);
    if (links->n_factors == MC_LINK_FACTORS && find_factor(links, &key, 0) == MC_LINK_FACTORS)
        return mc_fail(MESHCOLL_ERR_PARSE, "links have factors of %d algorithms at most",
                       MC_LINK_FACTORS);
    for (int32_t i = 0; i < sizes; i++)
        mc_links_set_factor(links, &key, i, factor[i]);
    return MESHCOLL_OK;
}

bool mc_link_has_factors(const mc_links_t *links, int32_t d)
{
    bool any = false;
    for (int32_t i = 0; i < links->n_factors; i++)
        any = any || links->factor[i].dim == d;
    return any;
}

void mc_link_print_phase(const mc_link_factor_t *factor, char separator, mc_text_t *text)
{
    if (factor->asked != factor->collective)
        mc_text_add(text, "%s/", meshcoll_collective_name((meshcoll_collective_t)factor->asked));
    mc_text_add(text, "%s%c%s", meshcoll_collective_name((meshcoll_collective_t)factor->collective),
                separator, factor->algorithm);
}

void mc_link_print_factors(const mc_links_t *links, int32_t d, mc_text_t *text)
{
    const int32_t sizes = links->dim[d].n_points > 0 ? links->dim[d].n_points : 1;
    for (int32_t i = 0; i < links->n_factors; i++) {
        const mc_link_factor_t *const f = &links->factor[i];
        if (f->dim != d)
            continue;
        mc_text_add(text, ";");
        mc_link_print_phase(f, '.', text);
        for (int32_t k = 0; k < sizes; k++)
            mc_text_add(text, "%s%g", k ? "/" : ":", (double)f->at[k] / MC_FACTOR_ONE);
    }
}

bool mc_links_are_factors_usable(const mc_links_t *links)
{
    bool good = links->n_factors >= 0 && links->n_factors <= MC_LINK_FACTORS;
    for (int32_t i = 0; good && i < links->n_factors; i++) {
        const mc_link_factor_t *const f = &links->factor[i];
        good = f->dim < links->ndims && f->collective < MESHCOLL_COLLECTIVES &&
               f->asked < MESHCOLL_COLLECTIVES;
        const int32_t sizes =
            good && links->dim[f->dim].n_points > 0 ? links->dim[f->dim].n_points : 1;
        for (int32_t k = 0; k < sizes; k++)
            good = good && f->at[k] > 0;
    }
    return good;
}
