#include "ring/ring.h"

/*
 * Ranks form rows: the outermost dimension of the line numbers the rows, the others the columns.
 * Places are relative to the root, (0, 0). The tree of rows runs along row 0, then down each column
 * except the first, whose ranks receive from the ends of their rows. The tree of columns is the
 * same with rows and columns exchanged. So each rank sends, and receives, at most one message along
 * its row and one along its column, over both trees together.
 */
typedef struct {
    int32_t row, column, rows, columns;
} place_t;

static int32_t rows_of(const mc_mesh_t *mesh, mc_line_t l)
{
    int32_t d = l.dims.first;
    while (d + 1 < l.dims.first + l.dims.count && mesh->dim[d].extent == 1)
        d++;
    return mesh->dim[d].extent;
}

static place_t place_of(const mc_builder_t *b, mc_line_t l, int32_t turn)
{
    const int32_t rows = rows_of(&b->head.layout.mesh, l), columns = l.len / rows;
    const int32_t row = turn * (l.me / columns - l.root / columns),
                  column = turn * (l.me % columns - l.root % columns);
    return (place_t){(row + rows) % rows, (column + columns) % columns, rows, columns};
}

static int32_t rank_at(mc_line_t l, place_t p, int32_t turn)
{
    const int32_t row = (l.root / p.columns + turn * p.row + p.rows) % p.rows,
                  column = (l.root % p.columns + turn * p.column + p.columns) % p.columns;
    return mc_line_rank(l, row * p.columns + column);
}

static place_t turned(place_t p)
{
    return (place_t){p.column, p.row, p.columns, p.rows};
}

/* Returns the parent in the tree of rows; the root has none. */
static place_t parent(place_t p)
{
    if (p.row > 0 && p.column > 0)
        p.row--;
    else
        p.column = (p.column + p.columns - 1) % p.columns;
    return p;
}

/* Returns the children in the tree of rows, and how many there are. */
static int32_t children(place_t p, place_t child[2])
{
    const bool first_row = p.row == 0, first_column = p.column == 0;
    int32_t n = 0;
    if (first_row ? p.column + 1 < p.columns : p.column + 1 == p.columns) {
        child[n] = p;
        child[n++].column = first_row ? p.column + 1 : 0;
    }
    if (!first_column && p.row + 1 < p.rows) {
        child[n] = p;
        child[n++].row++;
    }
    return n;
}

/* One of the trees, and this rank's place in it. */
typedef struct {
    mc_line_t line;
    place_t me;
    int32_t turn;
    bool of_columns;
} tree_t;

static int32_t rank_in(const tree_t *tree, place_t p)
{
    return rank_at(tree->line, tree->of_columns ? turned(p) : p, tree->turn);
}

static mc_tile_t half(const tree_t *tree, mc_tile_t v)
{
    const mc_line_t l = tree->line;
    return tree->of_columns ? mc_slices(v, l, l.len / 2, l.len) : mc_slices(v, l, 0, l.len / 2);
}

typedef void (*move_t)(mc_builder_t *b, const tree_t *tree, mc_tile_t v);

static void take(mc_builder_t *b, const tree_t *tree, mc_tile_t v)
{
    if (tree->line.me != tree->line.root)
        mc_recv(b, rank_in(tree, parent(tree->me)), half(tree, v));
}

static void pass(mc_builder_t *b, const tree_t *tree, mc_tile_t v)
{
    place_t child[2];
    const int32_t n = children(tree->me, child);
    for (int32_t i = 0; i < n; i++)
        mc_send(b, rank_in(tree, child[i]), half(tree, v));
}

static void collect(mc_builder_t *b, const tree_t *tree, mc_tile_t v)
{
    place_t child[2];
    const int32_t n = children(tree->me, child);
    for (int32_t i = n - 1; i >= 0; i--)
        mc_recv_reduce(b, rank_in(tree, child[i]), half(tree, v));
}

static void give(mc_builder_t *b, const tree_t *tree, mc_tile_t v)
{
    if (tree->line.me != tree->line.root)
        mc_send(b, rank_in(tree, parent(tree->me)), half(tree, v));
}

/* Messages to row i and column j are on level i + j of both trees; those to row 0 of the tree of
 * columns, and those to column 0 of the tree of rows, are on later levels. All ranks proceed level
 * by level, so that no cycle of ranks waits for messages or for window space
 * (tests/unit/test_window.c). */
static void in_levels(mc_builder_t *b, const tree_t *first, const tree_t *second, mc_tile_t v,
                      move_t in, move_t out)
{
    const bool apart = (first->me.row == 0) != (first->me.column == 0);
    in(b, first, v);
    if (apart)
        out(b, first, v);
    in(b, second, v);
    if (!apart)
        out(b, first, v);
    out(b, second, v);
}

mc_tile_t mc_edst_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    if (rows_of(&b->head.layout.mesh, l) == l.len)
        return mc_chain_bcast(b, l, v);
    const place_t me = place_of(b, l, 1);
    const tree_t rows = {l, me, 1, false}, columns = {l, turned(me), 1, true};
    if (me.column == 0 && me.row > 0)
        in_levels(b, &columns, &rows, v, take, pass);
    else
        in_levels(b, &rows, &columns, v, take, pass);
    return v;
}

/* The reverse of the broadcast; places count to the left, so that messages travel to the right. */
mc_tile_t mc_edst_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    if (rows_of(&b->head.layout.mesh, l) == l.len)
        return mc_chain_reduce(b, l, v);
    const place_t me = place_of(b, l, -1);
    const tree_t rows = {l, me, -1, false}, columns = {l, turned(me), -1, true};
    if (me.column == 0 && me.row > 0)
        in_levels(b, &rows, &columns, v, collect, give);
    else
        in_levels(b, &columns, &rows, v, collect, give);
    return v;
}
