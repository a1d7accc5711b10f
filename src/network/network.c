#include "network/graph.h"

#include "mesh/link/link_text.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *const kinds[] = {"tree", "torus", "graph"};

static int refuse(mc_word_t part, const char *wanted)
{
    char meant[96] = "";
    mc_text_t text = mc_text(meant, sizeof meant);
    mc_word_t rate = part;
    while (rate.n > 0 && memchr(rate.at, ':', rate.n))
        (void)mc_word_cut(&rate, ':');
    mc_link_suggest(rate, &text);
    return mc_fail(MESHCOLL_ERR_PARSE,
                   "a network is written as in tree=32:16:50GB/s/32;ecmp, torus=16x16x40:50GB/s or "
                   "graph=FILE:50GB/s; expected %s, got '%.*s'%s",
                   wanted, (int)(part.n < 60 ? part.n : 60), part.at, meant);
}

static bool read_count(mc_word_t word, int32_t *count)
{
    double number;
    if (!mc_read_number(&word, &number) || word.n > 0 || number < 0 || number > MC_NETWORK_MOST)
        return false;
    *count = (int32_t)number;
    return *count == number;
}

static bool read_rate(mc_word_t word, double *beta)
{
    return mc_link_costs.read(word, beta) && *beta > 0 && mc_link_is_within(&mc_link_costs, *beta);
}

/* A rate has a slash of its own: 50GB/s. */
static mc_word_t cut_level(mc_word_t *rest)
{
    mc_word_t level = mc_word_cut(rest, '/');
    for (size_t i = 0; i < level.n; i++)
        if (level.at[i] == ':' && memchr(level.at + i + 1, ':', level.n - i - 1)) {
            const mc_word_t unit = mc_word_cut(rest, '/');
            level.n = (size_t)(unit.at + unit.n - level.at);
            break;
        }
    return level;
}

static int read_tree(mc_word_t rest, mc_network_t *n)
{
    static const char wanted[] =
        "a level as in 32:16:50GB/s: links down, links up, the rate of one; the last "
        "level may be its links down alone";
    if (rest.n > 0 && rest.at[rest.n - 1] == '/')
        return refuse(rest, wanted);
    do {
        mc_word_t level = cut_level(&rest);
        const mc_word_t whole = level, down = mc_word_cut(&level, ':');
        const bool top = level.n == 0;
        const mc_word_t up = mc_word_cut(&level, ':');
        const int32_t l = n->n_levels;
        if (l == MC_NETWORK_LEVELS)
            return refuse(whole, "at most 6 levels");
        if (!read_count(down, &n->level[l].down) || (top && (rest.n > 0 || down.n < whole.n)) ||
            (!top && (!read_count(up, &n->level[l].up) || !n->level[l].up ||
                      !read_rate(level, &n->level[l].beta))))
            return refuse(whole, wanted);
        n->n_levels++;
    } while (rest.n > 0);
    return MESHCOLL_OK;
}

static int read_torus(mc_word_t rest, mc_network_t *n)
{
    mc_word_t extents = mc_word_cut(&rest, ':');
    if (!read_rate(rest, &n->beta))
        return refuse(rest, "a rate as in 50GB/s behind the extents of a torus");
    do {
        const mc_word_t extent = mc_word_cut(&extents, 'x');
        if (n->n_levels == MC_NETWORK_LEVELS || !read_count(extent, &n->level[n->n_levels].down))
            return refuse(extent, "up to 6 extents as in 16x16x40");
        n->n_levels++;
    } while (extents.n > 0);
    return MESHCOLL_OK;
}

static int read_graph(mc_word_t rest, mc_network_t *n)
{
    size_t colon = rest.n;
    while (colon > 0 && rest.at[colon - 1] != ':')
        colon--;
    const mc_word_t rate = {rest.at + colon, rest.n - colon};
    if (colon < 2 || !read_rate(rate, &n->beta))
        return refuse(rest, "a file and the rate of its links");
    char *const path = strndup(rest.at, colon - 1);
    const int status = path ? mc_graph_read(path, &n->graph) : mc_fail_memory("a network");
    free(path);
    return status;
}

static int read_options(mc_word_t rest, mc_network_t *n)
{
    while (rest.n > 0) {
        mc_word_t seed = mc_word_cut(&rest, ';');
        const mc_word_t whole = seed, name = mc_word_cut(&seed, ':');
        int32_t number = 0;
        if (mc_word_is(whole, "rails") && n->kind == MC_NETWORK_TREE)
            n->rails = true;
        else if (mc_word_is(name, "ecmp") && (name.n == whole.n || read_count(seed, &number)))
            n->ecmp = true, n->seed = (uint64_t)number;
        else
            return refuse(whole, "rails (of a tree), ecmp or ecmp:SEED");
    }
    return MESHCOLL_OK;
}

/* Counts were read; 0 is for the links up of a top. */
static int check(const mc_network_t *n)
{
    const bool tree = n->kind == MC_NETWORK_TREE;
    for (int32_t l = 0; l < n->n_levels; l++)
        if (n->level[l].down < 1)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "%s %d of a %s has %d %s; expected at least 1 and at most %d",
                           tree ? "level" : "dimension", l, kinds[n->kind], n->level[l].down,
                           tree ? "links down" : "nodes", MC_NETWORK_MOST);
    return MESHCOLL_OK;
}

int mc_network_parse(const char *text, mc_network_t *network)
{
    static int (*const read[])(mc_word_t, mc_network_t *) = {read_tree, read_torus, read_graph};
    mc_network_t n = {0};
    int status =
        mc_check_length(MESHCOLL_ERR_PARSE, "the text of a network", text, MC_NETWORK_TEXT - 1);
    if (status)
        return status;
    mc_word_t options = mc_word_of(text), shape = mc_word_cut(&options, ';');
    const mc_word_t kind = mc_word_cut(&shape, '=');
    size_t k = 0;
    while (k < MC_COUNT(kinds) && !mc_word_is(kind, kinds[k]))
        k++;
    if (k == MC_COUNT(kinds))
        return refuse(kind, "tree=, torus= or graph=");
    n.kind = (mc_network_kind_t)k;
    status = read[k](shape, &n);
    if (!status)
        status = read_options(options, &n);
    if (!status)
        status = check(&n);
    if (status)
        mc_network_free(&n);
    else
        *network = n;
    return status;
}

void mc_network_free(mc_network_t *network)
{
    mc_graph_free(network->graph);
    *network = (mc_network_t){0};
}

void mc_network_print(const mc_network_t *n, mc_text_t *text)
{
    mc_text_add(text, "%s=", kinds[n->kind]);
    if (n->kind == MC_NETWORK_GRAPH)
        mc_text_add(text, "%s", n->graph->path);
    for (int32_t l = 0; l < n->n_levels; l++) {
        mc_text_add(text, "%s%d",
                    l == 0                       ? ""
                    : n->kind == MC_NETWORK_TREE ? "/"
                                                 : "x",
                    n->level[l].down);
        if (n->level[l].up == 0)
            continue;
        mc_text_add(text, ":%d:", n->level[l].up);
        mc_link_costs.write(n->level[l].beta, text);
    }
    if (n->kind != MC_NETWORK_TREE) {
        mc_text_add(text, ":");
        mc_link_costs.write(n->beta, text);
    }
    mc_text_add(text, "%s%s", n->rails ? ";rails" : "", n->ecmp ? ";ecmp" : "");
    if (n->seed)
        mc_text_add(text, ":%" PRIu64, n->seed);
}
