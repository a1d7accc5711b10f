#include "base/nearest.h"

#include <string.h>

enum { MOST_LETTERS = 63 };

/* The slips between two words of at most MOST_LETTERS (optimal string alignment: Levenshtein 1966, with swaps). */
static size_t count_slips(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t rows[3][MOST_LETTERS + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t *const spare = before;
        before = last;
        last = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            const size_t replaced = last[j - 1] + (a[i - 1] != b[j - 1]);
            const size_t one = 1 + (row[j - 1] < last[j] ? row[j - 1] : last[j]);
            row[j] = replaced < one ? replaced : one;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return row[n_b];
}

void mc_nearest_try(mc_nearest_t *nearest, const char *known)
{
    const size_t n = strlen(known);
    if (n > MOST_LETTERS || nearest->n > MOST_LETTERS)
        return;
    const size_t slips = count_slips(nearest->word, nearest->n, known, n);
    if (slips < nearest->least) {
        nearest->least = slips;
        nearest->found = known;
    } else if (slips == nearest->least) {
        nearest->found = NULL;
    }
}

int mc_nearest_fail(const mc_nearest_t *nearest, int status, const char *what, const char *instead)
{
    const int n = (int)nearest->n;
    return nearest->found ? mc_fail(status, "%s '%.*s': did you mean %s?", what, n, nearest->word,
                                    nearest->found)
                          : mc_fail(status, "%s '%.*s'; %s", what, n, nearest->word, instead);
}
