#include "runtime/adapt/known.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which kinds of calls have a line of text: others keep an order of ranks that the mesh does not tell, or ran on GPUs,
 * which the next job may have others of. */
static const char *way_of(const mc_choice_key_t *key)
{
    if (key->in_order || key->one_line || key->aligned || key->memory)
        return NULL;
    return key->unforced ? "barrier" : key->ordered ? "ordered" : "free";
}

static void print(const mc_choice_key_t *key, int64_t ns, const mc_strategy_t *strategy,
                  const mc_mesh_t *mesh, mc_text_t *text)
{
    const char *const way = way_of(key);
    const size_t before = text->length;
    if (!way || before >= text->capacity)
        return;
    mc_text_add(text, "%s %" PRIu64 " %d %s %" PRId64 " ",
                meshcoll_collective_name(key->collective), key->bytes, key->root, way, ns);
    mc_strategy_print(strategy, mesh, text);
    mc_text_add(text, "\n");
    if (text->length >= text->capacity)
        text->at[before] = '\0';
}

static bool is_settled(const mc_learner_t *l)
{
    return (l->phase == MC_LEARN_SETTLED || l->round == MC_TRIAL_LOOK) && l->took[l->best] > 0;
}

void mc_known_print(const mc_lessons_t *lessons, const mc_known_list_t *list, const mc_mesh_t *mesh,
                    mc_text_t *text)
{
    for (int32_t i = 0; i < lessons->n; i++) {
        const mc_lesson_t *const lesson = lessons->lesson[i];
        const mc_learner_t *const l = &lesson->learner;
        if (is_settled(l))
            print(&lesson->key, l->took[l->best], &l->candidate[l->best].strategy, mesh, text);
    }
    for (int32_t i = 0; i < list->n; i++) {
        const mc_known_t *const known = &list->list[i];
        const mc_lesson_t *const lesson = mc_lessons_find(lessons, &known->key);
        if (!lesson || !is_settled(&lesson->learner))
            print(&known->key, known->ns, &known->strategy, mesh, text);
    }
}

static int parse_line(const char *line, const mc_mesh_t *mesh, mc_known_t *known)
{
    char name[32], way[8];
    int at = 0;
    *known = (mc_known_t){0};
    const int n = sscanf(line, "%31s %" SCNu64 " %" SCNd32 " %7s %" SCNd64 " %n", name,
                         &known->key.bytes, &known->key.root, way, &known->ns, &at);
    const int collective = n == 5 && at > 0 ? mc_collective_find(name, strlen(name)) : -1;
    known->key.unforced = n == 5 && strcmp(way, "barrier") == 0;
    known->key.ordered = n == 5 && strcmp(way, "ordered") == 0;
    if (collective < 0 || known->key.root < 0 || known->key.root >= mesh->size || known->ns <= 0 ||
        (!known->key.unforced && !known->key.ordered && strcmp(way, "free") != 0))
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "what calls have learned: expected a line \"COLLECTIVE BYTES ROOT "
                       "free|ordered|barrier NANOSECONDS STRATEGY\"; got \"%.80s\"",
                       line);
    known->key.collective = (meshcoll_collective_t)collective;
    return mc_strategy_parse(line + at, known->key.collective, mesh, &known->strategy);
}

int mc_known_parse(const char *text, const mc_mesh_t *mesh, mc_known_list_t *list)
{
    char *const copy = strdup(text);
    mc_known_t *const known = calloc(MC_LESSONS, sizeof *known);
    char *rest = copy;
    int32_t n = 0;
    int status = copy && known ? MESHCOLL_OK : mc_fail_memory("what calls have learned");
    for (char *line; !status && n < MC_LESSONS && (line = strsep(&rest, "\n"));)
        if (*line)
            status = parse_line(line, mesh, &known[n++]);
    free(copy);
    if (status)
        free(known);
    else
        *list = (mc_known_list_t){known, n};
    return status;
}

const mc_known_t *mc_known_find(const mc_known_list_t *list, const mc_choice_key_t *key)
{
    for (int32_t i = 0; i < list->n; i++)
        if (mc_choice_key_same(&list->list[i].key, key))
            return &list->list[i];
    return NULL;
}
