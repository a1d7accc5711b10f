#include "tools/common/tool.h"

#include "base/nearest.h"
#include "mesh/rank_order.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* One line, whatever the user's own text holds. */
static void print_error(const char *name)
{
    char line[1024];
    mc_text_t text = mc_text(line, sizeof line);
    mc_text_add(&text, "meshcoll%s%s: %s", name ? " " : "", name ? name : "",
                meshcoll_last_error());
    mc_text_clean(line);
    fprintf(stderr, "%s\n", line);
}

int mc_tool_exit(const char *name, int status)
{
    if (status >= 0)
        return status == MC_HELPED ? MC_EXIT_OK : status;
    print_error(name);
    switch (status) {
    case MESHCOLL_ERR_INVALID_ARG:
    case MESHCOLL_ERR_PARSE:
    case MESHCOLL_ERR_MESH:
    case MESHCOLL_ERR_STRATEGY:
    case MESHCOLL_ERR_UNSUPPORTED:
        return MC_EXIT_USAGE;
    default:
        return MC_EXIT_FAILED;
    }
}

int mc_options_parse(const mc_command_t *command, const mc_option_t *option, int argc, char **argv,
                     const mc_arguments_t *arguments)
{
    bool help;
    const int status = mc_options_read(option, argc, argv, arguments, &help);
    if (status || !help)
        return status;
    printf("meshcoll %s: %s\n\nusage:\n%s\n%s\noptions:\n", command->name, command->summary,
           command->usage, command->about);
    mc_options_print(option, stdout);
    printf("\nexamples:\n%s", command->examples);
    return MC_HELPED;
}

/* MPI, NCCL and PyTorch write reduce-scatter, allreduce and all_reduce. */
static bool same_letters(const char *a, const char *b)
{
    while (*a || *b) {
        a += *a == '-' || *a == '_';
        b += *b == '_';
        if (*a != *b)
            return false;
        a += *a != '\0';
        b += *b != '\0';
    }
    return true;
}

int mc_read_collective(const char *text, meshcoll_collective_t *collective)
{
    char known[256];
    mc_text_t list = mc_text(known, sizeof known);
    mc_nearest_t near = mc_nearest(text, text ? strlen(text) : 0);
    mc_text_add(&list, "expected one of ");
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        mc_text_add(&list, "%s%s", c > 0 ? ", " : "", mc_moves[c].name);
        mc_nearest_try(&near, mc_moves[c].name);
    }
    if (!text)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "which collective? %s", known);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        if (same_letters(strcmp(text, "broadcast") == 0 ? "bcast" : text, mc_moves[c].name)) {
            *collective = (meshcoll_collective_t)c;
            return MESHCOLL_OK;
        }
    return mc_nearest_fail(&near, MESHCOLL_ERR_INVALID_ARG, "there is no collective", known);
}

int mc_read_mesh(const char *text, mc_mesh_t *mesh)
{
    if (!text)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--mesh is missing; expected a mesh, outermost dimension first, as in "
                       "--mesh box=4,gpu=8");
    return mc_mesh_parse(text, mesh);
}

int mc_read_root(const char *text, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                 int32_t *root)
{
    *root = 0;
    if (!text)
        return MESHCOLL_OK;
    if (!mc_moves[collective].rooted)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s has no root; leave --root out",
                       mc_moves[collective].name);
    char *end;
    const long value = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || value < 0 || value >= mesh->size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--root takes a rank from 0 to %d; got '%s'",
                       mesh->size - 1, text);
    *root = (int32_t)value;
    return MESHCOLL_OK;
}

int mc_read_order(const char *text, int32_t n, int32_t **order)
{
    char *from = NULL, *list;
    size_t bytes;
    if (isdigit((unsigned char)text[0]))
        return mc_order_parse(text, n, order);
    int status = mc_file_read(text, &from, &bytes);
    if (!status && !from)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--order takes a list of ranks, as in 0,2,1,3, or a file with one; there is "
                       "no file %s",
                       text);
    while (!status && bytes > 0 && isspace((unsigned char)from[bytes - 1]))
        bytes--;
    list = status ? NULL : strndup(from, bytes);
    if (!status)
        status = list ? mc_order_parse(list, n, order) : mc_fail_memory("an order");
    free(list);
    free(from);
    return status;
}

int mc_read_ranks(const char *list, int32_t n, bool **chosen)
{
    bool *const taken = calloc((size_t)n, sizeof *taken);
    int status = taken ? MESHCOLL_OK : mc_fail_memory("a list of ranks");
    if (!status && !list)
        memset(taken, true, (size_t)n);
    else if (!status && !mc_order_take(list, n, taken))
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "--rank takes a rank from 0 to %d, or several as in 0-3,8; got '%s'",
                         n - 1, list);
    if (status)
        free(taken);
    else
        *chosen = taken;
    return status;
}

int mc_read_bytes(const char *option, const char *text, uint64_t *bytes)
{
    if (!text)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s is missing; expected the size of the whole vector, as in %s 64M", option,
                       option);
    if (mc_parse_bytes(text, bytes))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: %s", option, meshcoll_last_error());
    return MESHCOLL_OK;
}

int mc_plans_create(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t root,
                    mc_plans_t *plans)
{
    mc_plans_t p = {.plan = calloc((size_t)mesh->size, sizeof *p.plan)};
    if (!p.plan)
        return mc_fail_memory("the plans of all ranks");
    for (; p.n < mesh->size; p.n++) {
        mc_plan_t *plan;
        const int status = mc_strategy_plan(strategy, mesh, p.n, root, &plan);
        if (status) {
            mc_plans_free(&p);
            return status;
        }
        p.plan[p.n] = plan;
    }
    *plans = p;
    return MESHCOLL_OK;
}

void mc_plans_free(mc_plans_t *plans)
{
    for (int32_t r = 0; r < plans->n; r++)
        mc_plan_free((mc_plan_t *)plans->plan[r]);
    free(plans->plan);
    *plans = (mc_plans_t){0};
}
