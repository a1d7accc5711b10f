#include "support/strategies.h"

#include "compose/strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const mc_mesh_t *mesh;
    mc_sample_t *sample;
    int seen, every;
    bool failed;
} walk_t;

static void add(walk_t *w, const mc_strategy_t *s)
{
    char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_strategy_print(s, w->mesh, &text);
    char **const grown = realloc(w->sample->text, ((size_t)w->sample->n + 1) * sizeof *grown);
    if (grown)
        w->sample->text = grown;
    char *const copy = grown ? strdup(buffer) : NULL;
    if (copy)
        grown[w->sample->n++] = copy;
    w->failed = w->failed || !copy;
}

static bool count(void *context, const mc_strategy_t *s)
{
    (void)s;
    ((walk_t *)context)->seen++;
    return true;
}

static bool take(void *context, const mc_strategy_t *s)
{
    walk_t *const w = context;
    if (w->seen++ % w->every == 0)
        add(w, s);
    return !w->failed;
}

int mc_sample_open(meshcoll_collective_t collective, const mc_mesh_t *mesh, int most,
                   mc_sample_t *sample)
{
    mc_strategy_t s;
    *sample = (mc_sample_t){0};
    walk_t w = {.mesh = mesh, .sample = sample};
    for (int32_t i = 0; i < mc_named_count(); i++) {
        const mc_named_t *const named = mc_named_at(i);
        if (named->collective == collective &&
            mc_strategy_named(named->name, collective, mesh, &s) == MESHCOLL_OK)
            add(&w, &s);
    }
    mc_strategy_each(collective, mesh, MC_PATHS_COVER, count, &w);
    w.every = w.seen / most + 1;
    w.seen = 0;
    mc_strategy_each(collective, mesh, MC_PATHS_COVER, take, &w);
    return w.failed ? -1 : 0;
}

void mc_sample_close(mc_sample_t *sample)
{
    for (int i = 0; i < sample->n; i++)
        free(sample->text[i]);
    free(sample->text);
    *sample = (mc_sample_t){0};
}
