#include "mesh/rank_order.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A rank below n at *at, which moves behind it; -1: there is none. */
static int32_t read_rank(const char **at, int32_t n)
{
    int64_t rank = isdigit((unsigned char)**at) ? 0 : -1;
    for (; isdigit((unsigned char)**at) && rank < n; ++*at)
        rank = 10 * rank + (**at - '0');
    return rank < n ? (int32_t)rank : -1;
}

/* Appends "5", "8-15" or "15-8" to the `n_taken` ranks that are in the order (NULL: marks them only); false: it is no such thing, or one is there. */
static bool take_range(const char **at, int32_t n, int32_t *order, int32_t *n_taken, bool *taken)
{
    const int32_t first = read_rank(at, n);
    int32_t last = first;
    if (first >= 0 && **at == '-') {
        ++*at;
        last = read_rank(at, n);
    }
    if (last < 0 || (**at && **at != ','))
        return false;
    for (int32_t r = first, step = first <= last ? 1 : -1; r != last + step; r += step) {
        if (taken[r])
            return false;
        taken[r] = true;
        if (order)
            order[*n_taken] = r;
        ++*n_taken;
    }
    return true;
}

static int fill(const char *text, int32_t n, int32_t *order, bool *taken)
{
    const char *entry = text, *at = text;
    int32_t n_taken = 0;
    while (take_range(&at, n, order, &n_taken, taken)) {
        if (*at) {
            entry = ++at;
            continue;
        }
        return n_taken == n
                   ? MESHCOLL_OK
                   : mc_fail(MESHCOLL_ERR_INVALID_ARG,
                             "an order has each of the %d ranks once, as in 0,2,1,3 or 8-15,0-7; "
                             "this one has %d of them",
                             n, n_taken);
    }
    const int length = (int)strcspn(entry, ",");
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "an order has each of the %d ranks once, as in 0,2,1,3 or 8-15,0-7; '%.*s' is "
                   "no number from 0 to %d that is not there yet, and no range of such",
                   n, length < 40 ? length : 40, entry, n - 1);
}

bool mc_order_take(const char *text, int32_t n, bool *taken)
{
    int32_t n_taken = 0;
    while (take_range(&text, n, NULL, &n_taken, taken))
        if (*text++ == '\0')
            return true;
    return false;
}

int mc_order_parse(const char *text, int32_t n, int32_t **order)
{
    int32_t *const found = malloc((size_t)n * sizeof *found);
    bool *const taken = calloc((size_t)n, sizeof *taken);
    const int status = found && taken ? fill(text, n, found, taken) : mc_fail_memory("an order");
    free(taken);
    if (status)
        free(found);
    else
        *order = found;
    return status;
}

char *mc_order_print(const int32_t *order, int32_t n)
{
    enum { NUMBER = 8 }; /* a rank below MC_MESH_RANKS and what follows it */
    const size_t room = (size_t)n * NUMBER + 1;
    char *const buffer = malloc(room);
    mc_text_t text = mc_text(buffer, buffer ? room : 0);
    for (int32_t i = 0, next; buffer && i < n; i = next) {
        const int32_t step = i + 1 < n && order[i + 1] < order[i] ? -1 : 1;
        for (next = i + 1; next < n && order[next] == order[next - 1] + step; next++)
            ;
        mc_text_add(&text, "%s%d", i ? "," : "", order[i]);
        if (next > i + 2)
            mc_text_add(&text, "-%d", order[next - 1]);
        else
            next = i + 1;
    }
    return buffer;
}
