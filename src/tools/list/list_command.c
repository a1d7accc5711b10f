#include "mesh/link/link_show.h"
#include "tools/common/show.h"

#include <string.h>

/* What the command line gives; a process runs one command. */
static struct {
    const char *name, *mesh_text;
    mc_mesh_t mesh; /* for the texts of strategies */
    bool json;
} given = {.mesh_text = "box=4,gpu=8"};

static int print_table(mc_table_t *table)
{
    table->breaks = true;
    const int status = mc_table_print(table, 2, stdout);
    putchar('\n');
    return status;
}

/* Collectives ------------------------------------------------------------------------------------ */

static const char *const meaning[MC_PLACEMENTS] = {
    [MC_ROOT] = "all at the root",          [MC_SHARD] = "a slice on each rank",
    [MC_REPLICA] = "all on each rank",      [MC_PARTIAL] = "a summand on each rank",
    [MC_SOURCE] = "a block for every rank", [MC_DESTINATION] = "a block from every rank",
};

static int print_collectives(void)
{
    mc_table_t table = mc_table("lll");
    printf("collectives, and the moves along one dimension that strategies are made of\n\n");
    mc_table_add(&table, "collective\tbefore\tafter");
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const mc_move_t *const move = &mc_moves[c];
        mc_table_add(&table, "%s\t%s (%s)\t%s%s (%s)", move->name, meaning[move->from],
                     mc_placement_name(move->from), move->reduces ? "the sum: " : "",
                     meaning[move->to], mc_placement_name(move->to));
    }
    return print_table(&table);
}

static json_t *json_collectives(void)
{
    json_t *const list = json_array();
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const mc_move_t *const move = &mc_moves[c];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b, s:b}", "name", move->name,
                                              "from", mc_placement_name(move->from), "to",
                                              mc_placement_name(move->to), "rooted",
                                              (int)move->rooted, "reduces", (int)move->reduces));
    }
    return list;
}

/* Algorithms ------------------------------------------------------------------------------------- */

/* "" for one without a description. */
static const char *description_of(const char *name)
{
    static const char *const description[][2] = {
        {"mst", "minimum spanning tree: the line is halved again and again, log p steps"},
        {"chain", "from neighbour to neighbour, p-1 steps; with segments all of them work at once"},
        {"edst", "along (x*y): half by each of two trees over the links of a torus, one a link"},
        {"star", "the root and every other rank, one after the other"},
        {"ring", "slices travel round the ring, each rank forwards the one it received: p-1 steps "
                 "each way"},
        {"fullmesh", "everyone with everyone directly, p-1 messages"},
        {"doubling", "partners 1, 2, 4, … apart exchange all they have: log p steps"},
        {"halving", "partners …, 4, 2, 1 apart exchange half of what is left: log p steps"},
        {"doubling-far",
         "the same with partners …, 4, 2, 1 apart: the most bytes go to the nearest"},
        {"halving-near",
         "halving with partners 1, 2, 4, … apart: the most bytes go to the nearest"},
        {"aligned", "brackets that only the number of ranks decides: MESHCOLL_REPRODUCIBLE=1"},
        {"pairwise",
         "a block for every other rank, straight to it, one rank after the other: p-1 steps"},
        {"digits",
         "pairwise along each digit of the ranks' numbers in turn; blocks pass other ranks"},
        {"bruck", "each passes all it has to the rank 1, 2, 4, … before it: log p steps, any p"},
        {"bruck-far",
         "the same to the rank …, 4, 2, 1 before it: the most bytes go to the nearest"},
        {"bruck-near",
         "backwards: sums to the rank 1, 2, 4, … after it: the most bytes go to the nearest"},
        {"long", "for long vectors: in slices, a tree at the root's end and a ring at the other"},
    };
    for (size_t i = 0; i < MC_COUNT(description); i++)
        if (strcmp(description[i][0], name) == 0)
            return description[i][1];
    return "";
}

/* Returns on how many ranks it is reproducible; NULL: never. */
static const char *lengths_of(mc_aligned_t aligned)
{
    static const char *const text[] = {[MC_ALIGNED_NEVER] = NULL,
                                       [MC_ALIGNED_TWO] = "2",
                                       [MC_ALIGNED_THREE] = "2 and 3",
                                       [MC_ALIGNED_POWERS] = "2, 4, 8, …",
                                       [MC_ALIGNED_ANY] = "any"};
    return text[aligned];
}

static int print_algorithms(void)
{
    mc_table_t table = mc_table("ll");
    printf("algorithms on one line of ranks; write the dimension after it: bcast:mst(box)\n\n");
    mc_table_add(&table, "algorithm\thow");
    for (int32_t i = 0; i < mc_n_algorithms; i++) {
        const mc_algorithm_t *const a = &mc_algorithms[i];
        const char *const lengths = lengths_of(a->aligned);
        mc_table_add(&table, "%s:%s\t%s%s%s%s%s%s", mc_moves[a->collective].name, a->name,
                     description_of(a->name), a->parts ? " (made of two others)" : "",
                     a->keeps_order ? " (keeps the order of ranks)" : "",
                     lengths ? " (reproducible on " : "", lengths ? lengths : "",
                     lengths ? ")" : "");
    }
    return print_table(&table);
}

static json_t *json_algorithms(void)
{
    json_t *const list = json_array();
    for (int32_t i = 0; i < mc_n_algorithms; i++) {
        const mc_algorithm_t *const a = &mc_algorithms[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b, s:b, s:s?}", "collective",
                                              mc_moves[a->collective].name, "name", a->name,
                                              "slices", (int)a->slices, "composite",
                                              a->parts != NULL, "keeps_order", (int)a->keeps_order,
                                              "reproducible_on", lengths_of(a->aligned)));
    }
    return list;
}

/* Named strategies ------------------------------------------------------------------------------- */

/* NULL: there is none on this mesh. */
static const char *named_text(const mc_named_t *named)
{
    mc_strategy_t strategy;
    const bool exists = !mc_strategy_named(named->name, named->collective, &given.mesh, &strategy);
    return exists ? mc_show_strategy(&strategy, &given.mesh) : NULL;
}

static int print_strategies(void)
{
    mc_table_t table = mc_table("lll");
    printf("named strategies, and below each its text on %s\n\n", mc_show_mesh(&given.mesh));
    mc_table_add(&table, "collective\tname\twhat it does");
    for (int32_t i = 0; i < mc_named_count(); i++) {
        const mc_named_t *const named = mc_named_at(i);
        const bool first = i == 0 || mc_named_at(i - 1)->collective != named->collective;
        const char *const written = named_text(named);
        mc_table_add(&table, "%s\t%s\t%s\t\t\t  %s", first ? mc_moves[named->collective].name : "",
                     named->name, named->help, written ? written : "none on this mesh");
    }
    return print_table(&table);
}

static json_t *json_strategies(void)
{
    json_t *const list = json_array();
    for (int32_t i = 0; i < mc_named_count(); i++) {
        const mc_named_t *const named = mc_named_at(i);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s?}", "collective",
                                              mc_moves[named->collective].name, "name", named->name,
                                              "help", named->help, "strategy", named_text(named)));
    }
    return list;
}

/* Links ------------------------------------------------------------------------------------------ */

static int print_link_presets(void)
{
    mc_table_t table = mc_table("lrrrl");
    printf("link presets; ports: how many lines of ranks a box drives at full rate at once\n\n");
    mc_table_add(&table, "preset\tα, a message\t1/β, bandwidth\t1/γ, sums\tports");
    for (int32_t i = 0; i < mc_n_link_presets; i++) {
        const mc_link_t *const link = &mc_link_presets[i].link;
        mc_table_add(&table, "%s", mc_link_presets[i].name);
        mc_table_add_seconds(&table, link->alpha);
        mc_table_add_rate(&table, link->beta);
        mc_table_add_rate(&table, link->gamma);
        mc_table_add(&table, "%s%s", mc_ports_print(link->ports).text,
                     link->pulled ? ", receivers copy" : "");
    }
    return print_table(&table);
}

static int print_links(void)
{
    int status = print_link_presets();
    printf("where their numbers come from\n\n");
    mc_table_t sources = mc_table("ll");
    for (int32_t i = 0; i < mc_n_link_presets && !status; i++)
        mc_table_add(&sources, "%s\t%s", mc_link_presets[i].name, mc_link_presets[i].provenance);
    status = status ? status : print_table(&sources);
    printf("cluster presets: links of the network and inside a box; the first is the default\n\n");
    mc_table_t table = mc_table("llll");
    mc_table_add(&table, "preset\tnetwork\tinside a box\t");
    for (int32_t i = 0; i < mc_n_cluster_presets && !status; i++) {
        const mc_cluster_preset_t *const p = &mc_cluster_presets[i];
        mc_table_add(&table, "%s\t%s\t%s\t%s", p->name, p->network, p->inside, p->provenance);
    }
    return status ? status : print_table(&table);
}

static json_t *json_links(void)
{
    json_t *const links = json_array(), *const clusters = json_array();
    for (int32_t i = 0; i < mc_n_link_presets; i++) {
        const mc_link_preset_t *const p = &mc_link_presets[i];
        json_array_append_new(links, json_pack("{s:s, s:s, s:f, s:f, s:f, s:o, s:b}", "name",
                                               p->name, "provenance", p->provenance, "alpha",
                                               p->link.alpha, "beta", p->link.beta, "gamma",
                                               p->link.gamma, "ports", mc_json_ports(p->link.ports),
                                               "pulled", (int)p->link.pulled));
    }
    for (int32_t i = 0; i < mc_n_cluster_presets; i++) {
        const mc_cluster_preset_t *const p = &mc_cluster_presets[i];
        json_array_append_new(clusters,
                              json_pack("{s:s, s:s, s:s, s:s}", "name", p->name, "provenance",
                                        p->provenance, "network", p->network, "inside", p->inside));
    }
    return json_pack("{s:o, s:o}", "links", links, "clusters", clusters);
}

static const struct {
    const char *name;
    int (*print)(void);
    json_t *(*json)(void);
} sections[] = {
    {"collectives", print_collectives, json_collectives},
    {"algorithms", print_algorithms, json_algorithms},
    {"strategies", print_strategies, json_strategies},
    {"links", print_links, json_links},
};

/* NULL: all. */
static int print_sections(const char *name)
{
    json_t *const json =
        json_pack("{s:s, s:o}", "command", "list", "mesh", mc_json_mesh(&given.mesh));
    int status = MESHCOLL_OK;
    bool found = false;
    for (size_t i = 0; i < MC_COUNT(sections) && !status; i++) {
        if (name && strcmp(sections[i].name, name) != 0)
            continue;
        found = true;
        if (given.json)
            json_object_set_new(json, sections[i].name, sections[i].json());
        else
            status = sections[i].print();
    }
    if (!found)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "there is no list of '%s'; expected collectives, algorithms, strategies "
                         "or links",
                         name);
    if (!status && given.json)
        return mc_json_print(json);
    json_decref(json);
    return status;
}

static const mc_option_t options[] = {
    MC_OPTION_TEXT("mesh", "MESH", "for the texts of strategies: box=4,gpu=8", &given.mesh_text),
    MC_OPTION_FLAG("json", "as JSON", &given.json),
    {0},
};

static int run(void)
{
    const int status = mc_read_mesh(given.mesh_text, &given.mesh);
    return status ? status : print_sections(given.name);
}

const mc_command_t mc_list_command = {
    .name = "list",
    .summary = "collectives, algorithms, named strategies and link presets",
    .usage = "  meshcoll list [collectives|algorithms|strategies|links] [--mesh MESH]\n",
    .about =
        "Prints what the other commands can name: collectives, the algorithms on one line of\n"
        "ranks, named strategies with what they stand for on a mesh, and link presets with the\n"
        "source of their numbers.\n",
    .examples = "  meshcoll list\n"
                "  meshcoll list strategies --mesh box=2,node=4,gpu=8\n"
                "  meshcoll list links --json\n",
    .options = options,
    .arguments = {.text = &given.name},
    .run = run,
};
