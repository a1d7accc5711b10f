/* Lists of hosts as Slurm writes them. */
#include "job/environment/environment.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool mc_hosts_letter(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-._:%", c));
}

/* Reads "07" or "07-12", one part of a bracket, and returns what follows; NULL: it is none. */
static const char *read_part(const char *at, uint64_t *first, uint64_t *n, int *width)
{
    enum { MOST_DIGITS = 18 };
    char *end;
    const size_t digits = strspn(at, "0123456789");
    if (digits == 0 || digits > MOST_DIGITS)
        return NULL;
    *first = strtoull(at, &end, 10);
    *width = (int)digits;
    *n = 1;
    if (*end == '-') {
        const size_t more = strspn(end + 1, "0123456789");
        const uint64_t last = strtoull(end + 1, &end, 10);
        if (more == 0 || more > MOST_DIGITS || last < *first || last - *first >= UINT32_MAX)
            return NULL;
        *n = last - *first + 1;
    }
    return end;
}

/* Writes number `i` of the bracket that begins at `at`, "[01-04,7]", and returns what follows it; *n: how many it has.
 * NULL: it is none. */
static const char *read_bracket(const char *at, uint64_t i, uint64_t *n, mc_text_t *host)
{
    *n = 0;
    do {
        uint64_t first, numbers;
        int width;
        at = read_part(at + 1, &first, &numbers, &width);
        if (!at)
            return NULL;
        if (i >= *n && i - *n < numbers)
            mc_text_add(host, "%0*llu", width, (unsigned long long)(first + i - *n));
        *n += numbers;
    } while (*at == ',' && *n <= UINT32_MAX);
    return *at == ']' ? at + 1 : NULL;
}

/* Writes host `i` of the list's first item, "rack[1-2]node[08-09]", and returns what follows the item; *n: how many
 * hosts it has. The first bracket changes fastest. */
static const char *read_item(const char *at, uint64_t i, uint64_t *n, mc_text_t *host)
{
    for (*n = 1; *at && *at != ',';) {
        if (*at == '[') {
            uint64_t numbers;
            const char *const begin = at;
            if (!read_bracket(begin, UINT64_MAX, &numbers, host))
                return NULL;
            at = read_bracket(begin, i % numbers, &numbers, host);
            i /= numbers;
            if (*n > UINT32_MAX / numbers)
                return NULL;
            *n *= numbers;
        } else if (mc_hosts_letter(*at)) {
            mc_text_add(host, "%c", *at++);
        } else {
            return NULL;
        }
    }
    return at;
}

bool mc_hosts_get(const char *list, uint64_t i, char host[MC_ENVIRONMENT_HOST])
{
    for (;;) {
        char found[MC_ENVIRONMENT_HOST];
        mc_text_t text = mc_text(found, sizeof found);
        uint64_t n;
        list = read_item(list, i, &n, &text);
        if (!list)
            return false;
        if (i < n) {
            if (text.length == 0 || text.length >= sizeof found)
                return false;
            strcpy(host, found);
            return true;
        }
        if (*list != ',')
            return false;
        i -= n;
        list++;
    }
}
