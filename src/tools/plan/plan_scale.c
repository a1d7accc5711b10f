/* The best strategy beside flat rings and trees, from one mesh to larger ones. */
#include "tools/plan/plan_command.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MESHES = 8, MOST_SIZES = 8, MOST_LINKS = 8, ITEM_TEXT = 64 };

/* The ring and the tree of a collective. An alltoall has neither: these take as many rounds. */
static const char *const flat_names[][2] = {{"flat-ring", "flat-mst"},
                                            {"flat-pairwise", "flat-bruck"}};

typedef struct {
    const mc_plan_request_t *request; /* without collective, links and size */
    bool all;                         /* every collective */
    meshcoll_collective_t collective;
    int32_t n_meshes, n_sizes, n_links;
    mc_mesh_t mesh[MOST_MESHES];
    uint64_t bytes[MOST_SIZES];
    char *links[MOST_LINKS];
    struct cell *cell; /* by links, size, collective and mesh */
} scale_t;

typedef struct cell {
    mc_ranked_t best, flat[2];
    bool has[2]; /* a flat ring, a flat tree */
    double bound;
} cell_t;

/* Lists ------------------------------------------------------------------------------------------- */

/* Copies the next item of a list and moves on; false at its end. */
static bool next_item(const char **rest, char item[ITEM_TEXT])
{
    const size_t n = *rest ? strcspn(*rest, ",") : 0;
    if (!*rest)
        return false;
    snprintf(item, ITEM_TEXT, "%.*s", (int)n, *rest);
    *rest = (*rest)[n] ? *rest + n + 1 : NULL;
    return true;
}

static int read_meshes(const char *list, scale_t *s)
{
    char item[ITEM_TEXT];
    const mc_mesh_t *const first = &s->request->mesh;
    if (first->ragged)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--scale takes a mesh of boxes of one size");
    s->mesh[s->n_meshes++] = *first;
    for (const char *rest = list; next_item(&rest, item);) {
        char *end;
        mc_mesh_t mesh = *first;
        const long extent = strtol(item, &end, 10);
        const int64_t size = (int64_t)extent * mc_mesh_stride(first, 0);
        if (!isdigit((unsigned char)item[0]) || *end || extent < 1 || extent > MC_MESH_RANKS ||
            size > MC_MESH_RANKS)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "--scale takes extents of the outermost dimension, as in 64,1024, of "
                           "at most %d ranks; got '%s'",
                           MC_MESH_RANKS, item);
        if (s->n_meshes == MOST_MESHES)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--scale takes at most %d extents",
                           MOST_MESHES - 1);
        mesh.dim[0].extent = (int32_t)extent;
        mesh.size = (int32_t)size;
        s->mesh[s->n_meshes++] = mesh;
    }
    return MESHCOLL_OK;
}

static int read_sizes(const char *list, scale_t *s)
{
    char item[ITEM_TEXT];
    int status = MESHCOLL_OK;
    if (!list)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--bytes is missing; expected sizes of the whole vector, as in --bytes "
                       "1M,256M");
    for (const char *rest = list; !status && next_item(&rest, item); s->n_sizes++) {
        if (s->n_sizes == MOST_SIZES)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--bytes takes at most %d sizes", MOST_SIZES);
        status = mc_read_bytes("--bytes", item, &s->bytes[s->n_sizes]);
    }
    return status;
}

/* "A | B"; `text` is cut up. */
static int read_links(char *text, scale_t *s)
{
    for (char *at = text, *bar = at; bar; at = bar + 1) {
        bar = strchr(at, '|');
        size_t n = bar ? (size_t)(bar - at) : strlen(at);
        while (n > 0 && at[n - 1] == ' ')
            n--;
        at[n] = '\0';
        if (s->n_links == MOST_LINKS)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--links takes at most %d of them here",
                           MOST_LINKS);
        s->links[s->n_links++] = at + strspn(at, " ");
    }
    return MESHCOLL_OK;
}

/* Prices ------------------------------------------------------------------------------------------ */

static bool wanted(const scale_t *s, int collective)
{
    return s->all || collective == (int)s->collective;
}

static cell_t *cell_at(const scale_t *s, int32_t links, int32_t size, int collective, int32_t mesh)
{
    const int32_t row = (links * s->n_sizes + size) * MESHCOLL_COLLECTIVES + collective;
    return &s->cell[(size_t)row * (size_t)s->n_meshes + (size_t)mesh];
}

/* The request has its collective, mesh, links and size. */
static int price(const mc_plan_request_t *r, cell_t *cell)
{
    const char *const *const flat = flat_names[r->collective == MESHCOLL_ALLTOALL];
    const mc_planner_query_t query = mc_plan_query(r, (double)r->bytes, 1);
    mc_ranked_t named;
    for (int32_t i = 0; i < mc_named_count(); i++)
        for (int k = 0; k < 2; k++)
            if (strcmp(mc_named_at(i)->name, flat[k]) == 0 && mc_plan_named(r, i, &named)) {
                cell->flat[k] = named;
                cell->has[k] = true;
            }
    cell->bound = mc_lower_bound(r->collective, &r->mesh, &r->links, (double)r->bytes);
    return mc_planner_best(r->collective, &r->mesh, &r->links, &query, &cell->best);
}

/* All sizes of a collective on a mesh with these links. */
static int price_sizes(const scale_t *s, int32_t links, int collective, int32_t mesh)
{
    mc_plan_request_t r = *s->request;
    r.collective = (meshcoll_collective_t)collective;
    r.mesh = s->mesh[mesh];
    r.reproducible = r.reproducible && mc_moves[collective].reduces;
    r.in_order = r.in_order && mc_moves[collective].reduces;
    int status = mc_plan_set_links(&r, s->links[links]);
    for (int32_t i = 0; i < s->n_sizes && !status; i++) {
        r.bytes = s->bytes[i];
        status = price(&r, cell_at(s, links, i, collective, mesh));
    }
    return status;
}

static int price_all(const scale_t *s)
{
    int status = MESHCOLL_OK;
    for (int32_t l = 0; l < s->n_links; l++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
            for (int32_t m = 0; m < s->n_meshes && wanted(s, c) && !status; m++)
                status = price_sizes(s, l, c, m);
    return status;
}

/* Markdown ---------------------------------------------------------------------------------------- */

/* Three digits, as far as they say something: 1.07, 24.7, 605. */
static void print_factor(bool known, double factor)
{
    if (known)
        printf(" %.*f |", factor < 9.995 ? 2 : factor < 99.95 ? 1 : 0, factor);
    else
        printf(" - |");
}

static void print_cell(const cell_t *c)
{
    const double seconds = c->best.seconds;
    printf(" %s |", mc_print_seconds(seconds).text);
    for (int k = 0; k < 2; k++)
        print_factor(c->has[k] && seconds > 0, c->flat[k].seconds / seconds);
    print_factor(c->bound > 0, seconds / c->bound);
}

static void print_head(const scale_t *s, int32_t links, int32_t size)
{
    printf("%s, %s:\n\n| |", mc_print_bytes((double)s->bytes[size]).text, s->links[links]);
    for (int32_t m = 0; m < s->n_meshes; m++)
        printf(" %s | ring | MST | / bound |", mc_show_mesh(&s->mesh[m]));
    printf("\n|---|");
    for (int32_t m = 0; m < s->n_meshes; m++)
        printf("---|---|---|---|");
    putchar('\n');
}

static void print_table(const scale_t *s, int32_t links, int32_t size)
{
    print_head(s, links, size);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        if (!wanted(s, c))
            continue;
        printf("| %s |", mc_moves[c].name);
        for (int32_t m = 0; m < s->n_meshes; m++)
            print_cell(cell_at(s, links, size, c, m));
        putchar('\n');
    }
    putchar('\n');
}

static int print_tables(const scale_t *s)
{
    for (int32_t l = 0; l < s->n_links; l++)
        for (int32_t i = 0; i < s->n_sizes; i++)
            print_table(s, l, i);
    printf(
        "Of the model, not measured. Below a mesh: the time of the planner's choice. ring, MST: "
        "the time of\nflat-ring and of flat-mst, in their best numbers of segments, divided by it "
        "(alltoall: flat-pairwise\nand flat-bruck). / bound: it, divided by the lower bound.\n");
    return MC_EXIT_OK;
}

/* JSON -------------------------------------------------------------------------------------------- */

static json_t *json_ranked(const mc_ranked_t *ranked, const mc_mesh_t *mesh)
{
    return json_pack("{s:s, s:f}", "strategy", mc_show_strategy(&ranked->strategy, mesh), "seconds",
                     ranked->seconds);
}

static json_t *json_cell(const scale_t *s, int32_t links, int32_t size, int collective,
                         int32_t mesh)
{
    const cell_t *const c = cell_at(s, links, size, collective, mesh);
    const mc_mesh_t *const m = &s->mesh[mesh];
    return json_pack("{s:s, s:I, s:s, s:o, s:o, s:o, s:o, s:f}", "links", s->links[links], "bytes",
                     (json_int_t)s->bytes[size], "collective", mc_moves[collective].name, "mesh",
                     mc_json_mesh(m), "best", json_ranked(&c->best, m), "ring",
                     c->has[0] ? json_ranked(&c->flat[0], m) : json_null(), "mst",
                     c->has[1] ? json_ranked(&c->flat[1], m) : json_null(), "lower_bound_seconds",
                     c->bound);
}

static int print_json(const scale_t *s)
{
    json_t *const list = json_array();
    for (int32_t l = 0; l < s->n_links; l++)
        for (int32_t i = 0; i < s->n_sizes; i++)
            for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
                for (int32_t m = 0; m < s->n_meshes && wanted(s, c); m++)
                    json_array_append_new(list, json_cell(s, l, i, c, m));
    return mc_json_print(json_pack("{s:s, s:o}", "command", "plan", "scale", list));
}

static int run(const mc_plan_scale_t *given, char *links, scale_t *s)
{
    int status = s->all ? MESHCOLL_OK : mc_read_collective(given->collective, &s->collective);
    if (!status)
        status = read_meshes(given->extents, s);
    if (!status)
        status = read_sizes(given->sizes, s);
    if (!status)
        status = read_links(links, s);
    if (status)
        return status;
    const size_t rows = (size_t)s->n_links * (size_t)s->n_sizes * MESHCOLL_COLLECTIVES;
    s->cell = calloc(rows * (size_t)s->n_meshes, sizeof *s->cell);
    status = s->cell ? price_all(s) : mc_fail_memory("the table");
    if (status)
        return status;
    return s->request->json ? print_json(s) : print_tables(s);
}

int mc_plan_scale(const mc_plan_request_t *request, const mc_plan_scale_t *given)
{
    scale_t s = {.request = request, .all = !given->collective};
    char *const links = strdup(given->links ? given->links : mc_cluster_presets[0].name);
    if (!links)
        return mc_fail_memory("the links");
    const int status = run(given, links, &s);
    free(s.cell);
    free(links);
    return status;
}
