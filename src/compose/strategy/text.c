/* Parses strategies; the table of named strategies. */
#include "compose/strategy/strategy.h"

#include "base/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The phases that a pattern of a named strategy expands to: one, along all dimensions merged or along one of them; or one
 * for each dimension, the outermost first (INWARD) or last, without the innermost one (ABOVE) or the outermost one
 * (BELOW). */
typedef enum {
    MERGED = 0x1,
    INNERMOST = 0x2,
    OUTERMOST = 0x4,
    INWARD = 0x8,
    OUTWARD = 0x10,
    ABOVE = 0x20,
    BELOW = 0x40,
    ON_SECOND = 0x100 /* on the second side */
} where_t;

typedef struct {
    meshcoll_collective_t collective;
    const char *algorithm;
    where_t where;
} pattern_t;

enum { MAX_PATTERNS = 4 };

/* clang-format off */
static const struct {
    mc_named_t named;
    int32_t n;
    pattern_t pattern[MAX_PATTERNS];
} entries[] = {
    {{"option1", "MST broadcast in the root's column, then in all rows", MESHCOLL_BCAST}, 1,
     {{MESHCOLL_BCAST, "mst", INWARD}}},
    {{"option2", "scatter in the column, MST broadcast in rows, allgather in columns", MESHCOLL_BCAST}, 3,
     {{MESHCOLL_SCATTER, "mst", INWARD | ABOVE}, {MESHCOLL_BCAST, "mst", INNERMOST}, {MESHCOLL_ALLGATHER, "ring", OUTWARD | ABOVE}}},
    {{"option3", "scatter in the column and in rows, allgather in rows and in columns", MESHCOLL_BCAST}, 2,
     {{MESHCOLL_SCATTER, "mst", INWARD}, {MESHCOLL_ALLGATHER, "ring", OUTWARD}}},
    {{"option2-inner", "option 2 with the innermost dimension as the column: scatter inside the box first", MESHCOLL_BCAST}, 3,
     {{MESHCOLL_SCATTER, "mst", OUTWARD | BELOW}, {MESHCOLL_BCAST, "mst", OUTERMOST}, {MESHCOLL_ALLGATHER, "ring", INWARD | BELOW}}},
    {{"option3-inner", "option 3 with the innermost dimension as the column: allgather inside the box last", MESHCOLL_BCAST}, 2,
     {{MESHCOLL_SCATTER, "mst", OUTWARD}, {MESHCOLL_ALLGATHER, "ring", INWARD}}},
    {{"flat-mst", "MST broadcast over all ranks as one line", MESHCOLL_BCAST}, 1,
     {{MESHCOLL_BCAST, "mst", MERGED}}},
    {{"flat-ring", "long-vector broadcast over all ranks as one line: MST scatter, ring allgather", MESHCOLL_BCAST}, 2,
     {{MESHCOLL_SCATTER, "mst", MERGED}, {MESHCOLL_ALLGATHER, "ring", MERGED}}},
    {{"flat-chain", "chain broadcast over all ranks as one line; give it segments", MESHCOLL_BCAST}, 1,
     {{MESHCOLL_BCAST, "chain", MERGED}}},
    {{"flat-star", "the root sends to every rank", MESHCOLL_BCAST}, 1,
     {{MESHCOLL_BCAST, "star", MERGED}}},
    {{"torus", "scatter and allgather in both orders of dimensions side by side, half of the vector each", MESHCOLL_BCAST}, 4,
     {{MESHCOLL_SCATTER, "mst", INWARD}, {MESHCOLL_ALLGATHER, "ring", OUTWARD}, {MESHCOLL_SCATTER, "mst", OUTWARD | ON_SECOND}, {MESHCOLL_ALLGATHER, "ring", INWARD | ON_SECOND}}},

    {{"option1", "MST reduce in rows, then in the root's column", MESHCOLL_REDUCE}, 1,
     {{MESHCOLL_REDUCE, "mst", OUTWARD}}},
    {{"option2", "reduce-scatter in columns, MST reduce in rows, gather in the column", MESHCOLL_REDUCE}, 3,
     {{MESHCOLL_REDUCE_SCATTER, "ring", INWARD | ABOVE}, {MESHCOLL_REDUCE, "mst", INNERMOST}, {MESHCOLL_GATHER, "mst", OUTWARD | ABOVE}}},
    {{"option3", "reduce-scatter in rows and columns, gather in the column and in rows", MESHCOLL_REDUCE}, 2,
     {{MESHCOLL_REDUCE_SCATTER, "ring", OUTWARD}, {MESHCOLL_GATHER, "mst", INWARD}}},
    {{"flat-mst", "MST reduce over all ranks as one line", MESHCOLL_REDUCE}, 1,
     {{MESHCOLL_REDUCE, "mst", MERGED}}},
    {{"flat-ring", "long-vector reduce over all ranks as one line: ring reduce-scatter, MST gather", MESHCOLL_REDUCE}, 2,
     {{MESHCOLL_REDUCE_SCATTER, "ring", MERGED}, {MESHCOLL_GATHER, "mst", MERGED}}},
    {{"flat-chain", "chain reduce over all ranks as one line; give it segments", MESHCOLL_REDUCE}, 1,
     {{MESHCOLL_REDUCE, "chain", MERGED}}},
    {{"torus", "reduce-scatter and gather in both orders of dimensions side by side, half of the vector each", MESHCOLL_REDUCE}, 4,
     {{MESHCOLL_REDUCE_SCATTER, "ring", OUTWARD}, {MESHCOLL_GATHER, "mst", INWARD}, {MESHCOLL_REDUCE_SCATTER, "ring", INWARD | ON_SECOND}, {MESHCOLL_GATHER, "mst", OUTWARD | ON_SECOND}}},

    {{"hierarchical", "MST scatter across boxes, then inside each", MESHCOLL_SCATTER}, 1,
     {{MESHCOLL_SCATTER, "mst", INWARD}}},
    {{"flat-mst", "MST scatter over all ranks as one line", MESHCOLL_SCATTER}, 1,
     {{MESHCOLL_SCATTER, "mst", MERGED}}},
    {{"flat-star", "the root sends each rank its block", MESHCOLL_SCATTER}, 1,
     {{MESHCOLL_SCATTER, "star", MERGED}}},
    {{"torus", "MST scatter in both orders of dimensions side by side, half of each block each", MESHCOLL_SCATTER}, 2,
     {{MESHCOLL_SCATTER, "mst", INWARD}, {MESHCOLL_SCATTER, "mst", OUTWARD | ON_SECOND}}},

    {{"hierarchical", "MST gather inside each box, then across boxes", MESHCOLL_GATHER}, 1,
     {{MESHCOLL_GATHER, "mst", OUTWARD}}},
    {{"flat-mst", "MST gather over all ranks as one line", MESHCOLL_GATHER}, 1,
     {{MESHCOLL_GATHER, "mst", MERGED}}},
    {{"flat-star", "each rank sends its block to the root", MESHCOLL_GATHER}, 1,
     {{MESHCOLL_GATHER, "star", MERGED}}},
    {{"torus", "MST gather in both orders of dimensions side by side, half of each block each", MESHCOLL_GATHER}, 2,
     {{MESHCOLL_GATHER, "mst", OUTWARD}, {MESHCOLL_GATHER, "mst", INWARD | ON_SECOND}}},

    {{"hierarchical", "ring allgather across boxes, then inside each", MESHCOLL_ALLGATHER}, 1,
     {{MESHCOLL_ALLGATHER, "ring", INWARD}}},
    {{"flat-ring", "ring allgather over all ranks as one line", MESHCOLL_ALLGATHER}, 1,
     {{MESHCOLL_ALLGATHER, "ring", MERGED}}},
    {{"flat-mst", "MST gather and MST broadcast over all ranks as one line", MESHCOLL_ALLGATHER}, 2,
     {{MESHCOLL_GATHER, "mst", MERGED}, {MESHCOLL_BCAST, "mst", MERGED}}},
    {{"flat-fullmesh", "every rank sends its block to every other", MESHCOLL_ALLGATHER}, 1,
     {{MESHCOLL_ALLGATHER, "fullmesh", MERGED}}},
    {{"flat-bruck", "Bruck's dissemination over all ranks as one line", MESHCOLL_ALLGATHER}, 1,
     {{MESHCOLL_ALLGATHER, "bruck", MERGED}}},
    {{"torus", "ring allgather in both orders of dimensions side by side, half of each block each", MESHCOLL_ALLGATHER}, 2,
     {{MESHCOLL_ALLGATHER, "ring", INWARD}, {MESHCOLL_ALLGATHER, "ring", OUTWARD | ON_SECOND}}},

    {{"hierarchical", "ring reduce-scatter inside each box, then across boxes", MESHCOLL_REDUCE_SCATTER}, 1,
     {{MESHCOLL_REDUCE_SCATTER, "ring", OUTWARD}}},
    {{"flat-ring", "ring reduce-scatter over all ranks as one line", MESHCOLL_REDUCE_SCATTER}, 1,
     {{MESHCOLL_REDUCE_SCATTER, "ring", MERGED}}},
    {{"flat-mst", "MST reduce and MST scatter over all ranks as one line", MESHCOLL_REDUCE_SCATTER}, 2,
     {{MESHCOLL_REDUCE, "mst", MERGED}, {MESHCOLL_SCATTER, "mst", MERGED}}},
    {{"flat-fullmesh", "every rank sends every other its slice", MESHCOLL_REDUCE_SCATTER}, 1,
     {{MESHCOLL_REDUCE_SCATTER, "fullmesh", MERGED}}},
    {{"flat-halving", "recursive halving over all ranks as one line", MESHCOLL_REDUCE_SCATTER}, 1,
     {{MESHCOLL_REDUCE_SCATTER, "halving", MERGED}}},
    {{"torus", "ring reduce-scatter in both orders of dimensions side by side, half of each block each", MESHCOLL_REDUCE_SCATTER}, 2,
     {{MESHCOLL_REDUCE_SCATTER, "ring", OUTWARD}, {MESHCOLL_REDUCE_SCATTER, "ring", INWARD | ON_SECOND}}},

    {{"hierarchical", "reduce-scatter inside the box, then across boxes, and allgather the same way back", MESHCOLL_ALLREDUCE}, 2,
     {{MESHCOLL_REDUCE_SCATTER, "ring", OUTWARD}, {MESHCOLL_ALLGATHER, "ring", INWARD}}},
    {{"option1", "MST reduce inside the box, then across boxes, and MST broadcast the same way back", MESHCOLL_ALLREDUCE}, 2,
     {{MESHCOLL_REDUCE, "mst", OUTWARD}, {MESHCOLL_BCAST, "mst", INWARD}}},
    {{"flat-ring", "ring allreduce over all ranks as one line", MESHCOLL_ALLREDUCE}, 2,
     {{MESHCOLL_REDUCE_SCATTER, "ring", MERGED}, {MESHCOLL_ALLGATHER, "ring", MERGED}}},
    {{"flat-mst", "MST reduce and MST broadcast over all ranks as one line", MESHCOLL_ALLREDUCE}, 2,
     {{MESHCOLL_REDUCE, "mst", MERGED}, {MESHCOLL_BCAST, "mst", MERGED}}},
    {{"flat-star", "reduce at rank 0, which sends the result back", MESHCOLL_ALLREDUCE}, 2,
     {{MESHCOLL_REDUCE, "star", MERGED}, {MESHCOLL_BCAST, "star", MERGED}}},
    {{"flat-fullmesh", "every rank sends its whole vector to every other", MESHCOLL_ALLREDUCE}, 1,
     {{MESHCOLL_ALLREDUCE, "fullmesh", MERGED}}},
    {{"flat-doubling", "recursive doubling over all ranks as one line, for short vectors", MESHCOLL_ALLREDUCE}, 1,
     {{MESHCOLL_ALLREDUCE, "doubling", MERGED}}},
    {{"flat-chain", "the naive ring: the whole vector goes round twice", MESHCOLL_ALLREDUCE}, 2,
     {{MESHCOLL_REDUCE, "chain", MERGED}, {MESHCOLL_BCAST, "chain", MERGED}}},

    {{"hierarchical", "exchange inside each box, then one larger message for each pair of boxes and place in the box", MESHCOLL_ALLTOALL}, 1,
     {{MESHCOLL_ALLTOALL, "pairwise", OUTWARD}}},
    {{"flat-pairwise", "every rank sends every other its block", MESHCOLL_ALLTOALL}, 1,
     {{MESHCOLL_ALLTOALL, "pairwise", MERGED}}},
    {{"flat-digits", "store and forward in few rounds, for small blocks", MESHCOLL_ALLTOALL}, 1,
     {{MESHCOLL_ALLTOALL, "digits", MERGED}}},
    {{"flat-bruck", "Bruck's store and forward, in few rounds on any number of ranks", MESHCOLL_ALLTOALL}, 1,
     {{MESHCOLL_ALLTOALL, "bruck", MERGED}}},
    {{"torus", "reduce-scatter and allgather in both orders of dimensions side by side, half of the vector each", MESHCOLL_ALLREDUCE}, 4,
     {{MESHCOLL_REDUCE_SCATTER, "ring", OUTWARD}, {MESHCOLL_ALLGATHER, "ring", INWARD}, {MESHCOLL_REDUCE_SCATTER, "ring", INWARD | ON_SECOND}, {MESHCOLL_ALLGATHER, "ring", OUTWARD | ON_SECOND}}},
};
/* clang-format on */

int32_t mc_named_count(void)
{
    return MC_COUNT(entries);
}

const mc_named_t *mc_named_at(int32_t index)
{
    return &entries[index].named;
}

const mc_named_t *mc_named_two_sided(meshcoll_collective_t collective)
{
    for (size_t i = 0; i < MC_COUNT(entries); i++)
        if (entries[i].named.collective == collective &&
            entries[i].pattern[entries[i].n - 1].where & ON_SECOND)
            return &entries[i].named;
    return NULL;
}

static int add_phase(mc_strategy_t *s, int32_t algorithm, mc_dims_t dims)
{
    if (s->n_phases - s->second == MC_MAX_PHASES)
        return mc_fail(MESHCOLL_ERR_STRATEGY, "a side of a strategy has at most %d phases",
                       MC_MAX_PHASES);
    s->phase[s->n_phases++] = (mc_phase_t){algorithm, dims};
    return MESHCOLL_OK;
}

/* `count` phases along `width` dimensions each, the outermost at `from`. */
typedef struct {
    int32_t from, count, width;
    bool inward;
} span_t;

static span_t span_of(where_t where, int32_t n)
{
    if (where & MERGED)
        return (span_t){0, 1, n, true};
    if (where & (INNERMOST | OUTERMOST))
        return (span_t){where & INNERMOST ? n - 1 : 0, 1, 1, true};
    return (span_t){where & BELOW ? 1 : 0, n - (where & (ABOVE | BELOW) ? 1 : 0), 1,
                    where & INWARD};
}

static int add_pattern(mc_strategy_t *s, const mc_mesh_t *mesh, const pattern_t *pattern)
{
    const int32_t algorithm =
        mc_algorithm_find(pattern->collective, pattern->algorithm, strlen(pattern->algorithm));
    const bool without_fold = mesh->ragged && !(pattern->where & MERGED);
    const span_t span = span_of(pattern->where, without_fold ? MC_RAGGED_FOLD : mesh->ndims);
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < span.count && !status; i++)
        status =
            add_phase(s, algorithm,
                      (mc_dims_t){span.from + (span.inward ? i : span.count - 1 - i), span.width});
    return status;
}

static int add_fold(mc_strategy_t *s, meshcoll_collective_t collective)
{
    const mc_dims_t fold = {MC_RAGGED_FOLD, 1};
    return add_phase(s, mc_algorithm_find(collective, "mst", 3), fold);
}

/* On a ragged mesh each side first collects at fold 0 what the ranks of its fold line contribute. */
static int open_fold(mc_strategy_t *s)
{
    const mc_placement_t from = mc_moves[s->collective].from;
    if (from == MC_ROOT)
        return MESHCOLL_OK;
    return add_fold(s, from == MC_PARTIAL ? MESHCOLL_REDUCE : MESHCOLL_GATHER);
}

/* On a ragged mesh each side last distributes from fold 0 what the ranks of its fold line receive. */
static int close_fold(mc_strategy_t *s)
{
    const mc_placement_t to = mc_moves[s->collective].to;
    if (to == MC_ROOT)
        return MESHCOLL_OK;
    return add_fold(s, to == MC_REPLICA ? MESHCOLL_BCAST : MESHCOLL_SCATTER);
}

static int add_patterns(mc_strategy_t *s, const mc_mesh_t *mesh, const pattern_t *pattern,
                        int32_t n)
{
    const bool folds = mesh->ragged && !(pattern->where & MERGED);
    int status = folds ? open_fold(s) : MESHCOLL_OK;
    for (int32_t p = 0; p < n && !status; p++) {
        if (s->second == 0 && pattern[p].where & ON_SECOND) {
            status = folds ? close_fold(s) : MESHCOLL_OK;
            s->second = s->n_phases;
            if (folds && !status)
                status = open_fold(s);
        }
        if (!status)
            status = add_pattern(s, mesh, &pattern[p]);
    }
    return folds && !status ? close_fold(s) : status;
}

static int fail_name(meshcoll_collective_t collective, const char *name)
{
    char what[64], known[640];
    mc_text_t text = mc_text(known, sizeof known);
    mc_nearest_t near = mc_nearest(name, strlen(name));
    const char *between = "named ones: ";
    for (size_t i = 0; i < MC_COUNT(entries); i++)
        if (entries[i].named.collective == collective) {
            mc_text_add(&text, "%s%s", between, entries[i].named.name);
            mc_nearest_try(&near, entries[i].named.name);
            between = ", ";
        }
    mc_text_add(&text, "; others are written collective:algorithm(dimension) …");
    snprintf(what, sizeof what, "%s has no strategy named", mc_moves[collective].name);
    return mc_nearest_fail(&near, MESHCOLL_ERR_STRATEGY, what, known);
}

int mc_strategy_named(const char *name, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      mc_strategy_t *strategy)
{
    mc_strategy_t s = {.collective = collective, .segments = 1};
    for (size_t i = 0; i < MC_COUNT(entries); i++) {
        if (entries[i].named.collective != collective || strcmp(entries[i].named.name, name) != 0)
            continue;
        const int status = add_patterns(&s, mesh, entries[i].pattern, entries[i].n);
        s.segments = (uint32_t)mc_strategy_sides(&s);
        if (!status)
            *strategy = s;
        return status;
    }
    return fail_name(collective, name);
}

/* A piece of the text that is parsed. */
typedef struct {
    const char *at;
    size_t n;
} word_t;

/* Words are separated by spaces; "|" is a word of its own even without spaces around it. */
static word_t next_word(const char **at)
{
    while (isspace((unsigned char)**at))
        ++*at;
    word_t w = {.at = *at, .n = **at == '|'};
    while (w.n != 1 || *w.at != '|') {
        if (!w.at[w.n] || w.at[w.n] == '|' || isspace((unsigned char)w.at[w.n]))
            break;
        w.n++;
    }
    *at += w.n;
    return w;
}

static int fail_word(word_t w, const char *why)
{
    return mc_fail(MESHCOLL_ERR_STRATEGY,
                   "a phase is written collective:algorithm(dimension), as in scatter:mst(box) or "
                   "bcast:mst(box*gpu); '%.*s' %s",
                   (int)w.n, w.at, why);
}

static int fail_algorithm(meshcoll_collective_t collective, word_t name)
{
    char what[64], known[256];
    mc_text_t text = mc_text(known, sizeof known);
    mc_nearest_t near = mc_nearest(name.at, name.n);
    const char *between = "it has ";
    for (int32_t i = 0; i < mc_n_algorithms; i++)
        if (mc_algorithms[i].collective == collective) {
            mc_text_add(&text, "%s%s", between, mc_algorithms[i].name);
            mc_nearest_try(&near, mc_algorithms[i].name);
            between = ", ";
        }
    snprintf(what, sizeof what, "%s has no algorithm", mc_moves[collective].name);
    return mc_nearest_fail(&near, MESHCOLL_ERR_STRATEGY, what, known);
}

static int fail_dim(const mc_mesh_t *mesh, word_t name, const char *why)
{
    char known[MC_MESH_TEXT];
    return mc_fail(MESHCOLL_ERR_STRATEGY, "'%.*s' %s mesh %s", (int)name.n, name.at, why,
                   mc_mesh_text(mesh, known));
}

/* "box" or "box*gpu". */
static int parse_dims(word_t text, const mc_mesh_t *mesh, mc_dims_t *dims)
{
    mc_dims_t found = {0};
    for (size_t at = 0; at <= text.n;) {
        word_t name = {.at = text.at + at};
        while (at + name.n < text.n && name.at[name.n] != '*')
            name.n++;
        const int32_t d = mc_mesh_find(mesh, name.at, name.n);
        if (d < 0)
            return fail_dim(mesh, name, "is not a dimension of");
        if (found.count > 0 && d != found.first + found.count)
            return fail_dim(mesh, text, "merges dimensions that are not adjacent, outer first, in");
        if (found.count++ == 0)
            found.first = d;
        at += name.n + 1;
    }
    *dims = found;
    return MESHCOLL_OK;
}

static int parse_phase(word_t w, const mc_mesh_t *mesh, mc_strategy_t *s)
{
    const char *const colon = memchr(w.at, ':', w.n), *const end = w.at + w.n;
    const char *const open = memchr(w.at, '(', w.n), *const name_end = open ? open : end;
    if (!colon || name_end < colon || (open && end[-1] != ')'))
        return fail_word(w, "has another form");
    const int collective = mc_collective_find(w.at, (size_t)(colon - w.at));
    if (collective < 0)
        return fail_word(w, "names no collective (bcast, reduce, scatter, gather, allgather, "
                            "reduce_scatter, allreduce, alltoall)");
    const word_t name = {colon + 1, (size_t)(name_end - colon - 1)};
    const int32_t algorithm = mc_algorithm_find((meshcoll_collective_t)collective, name.at, name.n);
    if (algorithm < 0)
        return fail_algorithm((meshcoll_collective_t)collective, name);
    /* without dimensions: along all of them, as one line */
    mc_dims_t dims = {0, mesh->ndims};
    int status = MESHCOLL_OK;
    if (open)
        status = parse_dims((word_t){open + 1, (size_t)(end - open) - 2}, mesh, &dims);
    return status ? status : add_phase(s, algorithm, dims);
}

static int parse_segments(word_t w, mc_strategy_t *s)
{
    static const size_t prefix = sizeof "segments=" - 1;
    char *end;
    const unsigned long n = strtoul(w.at + prefix, &end, 10);
    if (!isdigit((unsigned char)w.at[prefix]) || end != w.at + w.n || n < 1 || n > UINT16_MAX)
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "segments=K takes a number from 1 to 65535; got '%.*s'", (int)w.n, w.at);
    s->segments = (uint32_t)n;
    return MESHCOLL_OK;
}

static bool is_segments(word_t w)
{
    return w.n >= sizeof "segments=" - 1 && memcmp(w.at, "segments=", sizeof "segments=" - 1) == 0;
}

/* Begins the second side. */
static int parse_bar(mc_strategy_t *s)
{
    if (s->second > 0)
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "a strategy has at most two sides: write '|' once at most, and not with a "
                       "named strategy that has two sides");
    if (s->n_phases == 0)
        return mc_fail(MESHCOLL_ERR_STRATEGY,
                       "the first side needs at least one phase in front of '|', as in "
                       "bcast:mst(x) bcast:mst(y) | bcast:mst(y) bcast:mst(x)");
    s->second = s->n_phases;
    return MESHCOLL_OK;
}

static int parse_named(word_t w, const mc_mesh_t *mesh, mc_strategy_t *s)
{
    char name[64];
    mc_strategy_t named;
    if (w.n >= sizeof name)
        return fail_word(w, "is not the name of a strategy either");
    memcpy(name, w.at, w.n);
    name[w.n] = '\0';
    int status = mc_strategy_named(name, s->collective, mesh, &named);
    if (status)
        return status;
    if (named.second > 0 && s->second > 0)
        return parse_bar(s);
    if (named.second > 0)
        s->second = named.second;
    for (int32_t i = 0; i < named.n_phases; i++)
        s->phase[s->n_phases++] = named.phase[i];
    return MESHCOLL_OK;
}

/* What has been parsed. `side_from`: index of the current side's first phase; `named`: the current side is
 * a named strategy. */
typedef struct {
    mc_strategy_t strategy;
    int32_t side_from;
    bool named;
} reading_t;

static int parse_word(reading_t *r, word_t w, const mc_mesh_t *mesh)
{
    mc_strategy_t *const s = &r->strategy;
    if (is_segments(w))
        return parse_segments(w, s);
    if (w.n == 1 && *w.at == '|') {
        const int status = parse_bar(s);
        r->side_from = s->n_phases;
        r->named = false;
        return status;
    }
    if (r->named)
        return fail_word(w, "follows a named strategy, after which only segments=K is allowed");
    if (s->n_phases > r->side_from || memchr(w.at, ':', w.n))
        return parse_phase(w, mesh, s);
    r->named = true;
    return parse_named(w, mesh, s);
}

int mc_strategy_parse(const char *text, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      mc_strategy_t *strategy)
{
    reading_t r = {.strategy = {.collective = collective}};
    mc_strategy_t *const s = &r.strategy;
    int status = mc_check_length(MESHCOLL_ERR_STRATEGY, "the text of a strategy", text,
                                 MC_STRATEGY_MOST_READ);
    if (status)
        return status;
    for (word_t w = next_word(&text); w.n > 0 && !status; w = next_word(&text))
        status = parse_word(&r, w, mesh);
    if (!status && s->n_phases == r.side_from)
        status = mc_fail(MESHCOLL_ERR_STRATEGY,
                         "a %s needs at least one phase, as in bcast:mst(box*gpu)",
                         s->second > 0 ? "side of a strategy" : "strategy");
    if (s->segments == 0) /* not given */
        s->segments = (uint32_t)mc_strategy_sides(s);
    if (!status)
        status = mc_strategy_check(s, mesh);
    if (!status)
        *strategy = *s;
    return status;
}
