/* Makes the list of contenders from `--strategies` and `--flat`. */
#include "bench.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const options_t *options;
    const mc_mesh_t *mesh;
    contenders_t *list;
    int status;
} making_t;

static int append(contenders_t *list, kind_t kind, const char *label)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->at[i].label, label) == 0)
            return MESHCOLL_OK;
    contender_t *const grown = realloc(list->at, (size_t)(list->n + 1) * sizeof *grown);
    if (!grown)
        return mc_fail_memory("the list of strategies");
    list->at = grown;
    char *const copy = strdup(label);
    if (!copy)
        return mc_fail_memory("the list of strategies");
    list->at[list->n++] = (contender_t){kind, copy};
    return MESHCOLL_OK;
}

static bool append_each(void *context, const mc_strategy_t *strategy)
{
    making_t *const making = context;
    char printed[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(printed, sizeof printed);
    mc_strategy_print(strategy, making->mesh, &text);
    making->status = append(making->list, FORCED, printed);
    return making->status == MESHCOLL_OK;
}

static int append_all(making_t *making)
{
    const int status = mc_strategy_each(making->options->collective, making->mesh, MC_PATHS_COVER,
                                        append_each, making);
    return status != MESHCOLL_OK ? status : making->status;
}

/* Named entries that this mesh has. */
static int append_named(making_t *making)
{
    const meshcoll_collective_t collective = making->options->collective;
    for (int32_t i = 0; i < mc_named_count(); i++) {
        const mc_named_t *const named = mc_named_at(i);
        mc_strategy_t strategy;
        if (named->collective != collective ||
            mc_strategy_named(named->name, collective, making->mesh, &strategy) != MESHCOLL_OK)
            continue;
        const int status = append(making->list, FORCED, named->name);
        if (status != MESHCOLL_OK)
            return status;
    }
    return MESHCOLL_OK;
}

static int append_one(making_t *making, const char *item)
{
    if (strcmp(item, "best") == 0)
        return append(making->list, PLANNED, item);
    if (strcmp(item, "named") == 0)
        return append_named(making);
    if (strcmp(item, "all") == 0)
        return append_all(making);

    mc_strategy_t strategy;
    const int status =
        mc_strategy_parse(item, making->options->collective, making->mesh, &strategy);
    if (status != MESHCOLL_OK)
        return status;
    if (!strchr(item, ':')) /* a named entry is labelled with its name */
        return append(making->list, FORCED, item);
    append_each(making, &strategy);
    return making->status;
}

int contenders_make(const options_t *options, const mc_mesh_t *mesh, contenders_t *contenders)
{
    contenders_t list = {0};
    making_t making = {options, mesh, &list, MESHCOLL_OK};
    char *const copy = strdup(options->strategies);
    if (!copy)
        return mc_fail_memory("the list of strategies");

    int status = MESHCOLL_OK;
    char *rest = copy;
    while (rest && status == MESHCOLL_OK) {
        char *item = strsep(&rest, ",\n");
        while (isspace((unsigned char)*item))
            item++;
        size_t n = strlen(item);
        while (n > 0 && isspace((unsigned char)item[n - 1]))
            item[--n] = '\0';
        if (n > 0)
            status = append_one(&making, item);
    }
    free(copy);
    if (status == MESHCOLL_OK && options->flat_mpi)
        status = append(&list, MPI_OWN, "mpi");
    if (status == MESHCOLL_OK && options->flat_nccl)
        status = append(&list, NCCL, "nccl");
    if (status == MESHCOLL_OK && list.n == 0)
        status =
            mc_fail(MESHCOLL_ERR_INVALID_ARG, "--strategies names nothing to measure: expected "
                                              "best, named, all or a strategy's text, or --flat");
    if (status != MESHCOLL_OK) {
        contenders_free(&list);
        return status;
    }
    *contenders = list;
    return MESHCOLL_OK;
}

void contenders_free(contenders_t *contenders)
{
    for (int i = 0; i < contenders->n; i++)
        free(contenders->at[i].label);
    free(contenders->at);
}
