#include "simulate/step.h"

#include "mesh/link/link_text.h"

#include <math.h>

static int read_line(const char *path, mc_word_t line, uint32_t number, mc_gradients_t *g)
{
    line = mc_word_cut(&line, '#');
    const mc_word_t size = mc_word_next(&line), time = mc_word_next(&line);
    double bytes, seconds;
    if (size.n == 0)
        return MESHCOLL_OK;
    if (!mc_link_sizes.read(size, &bytes) || !mc_link_times.read(time, &seconds) ||
        seconds > MC_STEP_SECONDS || mc_word_next(&line).n > 0)
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "%s, line %u: expected a bucket's bytes and the time at which it is ready, "
                       "as in \"25MB 130ms\"",
                       path, number);
    if (g->n == MC_STEP_BUCKETS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: a step has at most %d buckets", path,
                       MC_STEP_BUCKETS);
    g->bucket[g->n++] = (mc_bucket_t){.bytes = bytes, .ready = (int64_t)(seconds * 1e12 + 0.5)};
    return MESHCOLL_OK;
}

static int check(const char *path, const mc_gradients_t *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (!(g->bucket[i].bytes >= 1 && g->bucket[i].bytes <= 0x1p50) ||
            g->bucket[i].ready < (i > 0 ? g->bucket[i - 1].ready : 0))
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "%s: bucket %u has no bytes, or more than 1 PiB, or is ready before the "
                           "one above it; expected them in the order in which they are ready",
                           path, i);
    return g->n > 0 ? MESHCOLL_OK
                    : mc_fail(MESHCOLL_ERR_PARSE,
                              "%s: expected a line for each bucket, as in "
                              "\"25MB 130ms\"",
                              path);
}

int mc_gradients_parse(const char *path, const char *text, size_t bytes, mc_gradients_t *g)
{
    mc_word_t rest = {text, bytes};
    int status = MESHCOLL_OK;
    g->n = 0;
    for (uint32_t number = 1; rest.n > 0 && !status; number++)
        status = read_line(path, mc_word_cut(&rest, '\n'), number, g);
    return status ? status : check(path, g);
}

double mc_gradients_bytes(const mc_gradients_t *g)
{
    double bytes = 0;
    for (uint32_t i = 0; i < g->n; i++)
        bytes += g->bucket[i].bytes;
    return bytes;
}

void mc_gradients_cut(const mc_gradients_t *g, uint32_t n, mc_gradients_t *cut)
{
    const double each = mc_gradients_bytes(g) / n;
    double before = 0; /* bytes of the buckets above bucket i */
    uint32_t i = 0;
    for (uint32_t k = 0; k < n; k++) {
        const double until = each * (k + 1);
        while (i + 1 < g->n && before + g->bucket[i].bytes < until)
            before += g->bucket[i++].bytes;
        const int64_t first = i > 0 ? g->bucket[i - 1].ready : g->bucket[0].ready;
        const double part = fmin(1, (until - before) / g->bucket[i].bytes);
        cut->bucket[k] = (mc_bucket_t){
            .bytes = each, .ready = first + (int64_t)(part * (double)(g->bucket[i].ready - first))};
    }
    cut->bucket[n - 1].ready = g->bucket[g->n - 1].ready;
    cut->n = n;
}
