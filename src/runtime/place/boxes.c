#include "runtime/place/boxes.h"

#include "mesh/rank_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Most meshes named in an error text. */
enum { MOST_NAMED = 8 };

/* Ranks by machine ----------------------------------------------------------------------------- */

/* Domain: NUMA node or socket; 0 where it does not matter. */
typedef struct {
    int32_t machine, domain, rank;
} seat_t;

static int compare_seats(const void *a, const void *b)
{
    const seat_t *const s = a, *const t = b;
    if (s->machine != t->machine)
        return s->machine < t->machine ? -1 : 1;
    if (s->domain != t->domain)
        return s->domain < t->domain ? -1 : 1;
    return (s->rank > t->rank) - (s->rank < t->rank);
}

static int compare_ranks(const void *a, const void *b)
{
    const seat_t *const s = a, *const t = b;
    return (s->rank > t->rank) - (s->rank < t->rank);
}

/* Domains by node or by package; false: some rank has none. */
static bool set_domains(seat_t *seat, const mc_place_t *place, int32_t n, bool by_node)
{
    for (int32_t i = 0; i < n; i++) {
        const mc_place_t *const p = &place[seat[i].rank];
        seat[i].domain = by_node ? p->node : p->package;
        if (seat[i].domain < 0)
            return false;
    }
    return true;
}

static void sort_by_machine(seat_t *seat, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        seat[i].domain = 0;
    qsort(seat, (size_t)n, sizeof *seat, compare_seats);
}

/* Ranks of each machine, or of each domain of each machine; 0: they differ. */
static int32_t ranks_each(const seat_t *seat, int32_t n)
{
    int32_t each = 0, run = 0;
    for (int32_t i = 0; i < n; i++) {
        run++;
        if (i + 1 < n && seat[i + 1].machine == seat[i].machine &&
            seat[i + 1].domain == seat[i].domain)
            continue;
        if (each && run != each)
            return 0;
        each = run;
        run = 0;
    }
    return each;
}

/* What was found on the machines. */
typedef struct {
    int32_t box;       /* ranks per box; 0: boxes differ */
    int32_t domain;    /* ranks per domain; 0: domains are no dimension */
    const char *name;  /* of that dimension */
    const char *inner; /* name of the innermost dimension */
} sizes_t;

/* Leaves the seats sorted by machine and, if domains are a dimension, by domain. */
static sizes_t find_sizes(seat_t *seat, const mc_place_t *place, int32_t n)
{
    static const char *const names[] = {"socket", "numa"};
    sort_by_machine(seat, n);
    sizes_t sizes = {.box = ranks_each(seat, n), .inner = "rank"};
    for (int32_t r = 0; r < n; r++)
        sizes.inner = place[r].gpus ? "gpu" : sizes.inner;
    for (int by_node = 1; by_node >= 0 && sizes.box; by_node--) {
        if (!set_domains(seat, place, n, by_node))
            continue;
        qsort(seat, (size_t)n, sizeof *seat, compare_seats);
        const int32_t each = ranks_each(seat, n);
        if (each && each < sizes.box) {
            sizes.domain = each;
            sizes.name = names[by_node];
            return sizes;
        }
    }
    sort_by_machine(seat, n);
    return sizes;
}

/* The mesh found ------------------------------------------------------------------------------- */

/* A mesh of boxes of unequal sizes, from seats sorted by machine. */
static int ragged_mesh_of(const char *name, const seat_t *seat, int32_t n, mc_mesh_t *mesh)
{
    char why[256];
    mc_text_t text = mc_text(why, sizeof why);
    int32_t *const sizes = calloc((size_t)n, sizeof *sizes), last = 0;
    if (!sizes)
        return mc_fail_memory("a table of places");
    for (int32_t i = 0; i < n; i++) {
        sizes[last]++;
        last += i + 1 < n && seat[i + 1].machine != seat[i].machine;
    }
    const int status = mc_mesh_of_boxes(name, sizes, last + 1, mesh);
    free(sizes);
    if (status != MESHCOLL_ERR_MESH)
        return status;
    mc_text_add(&text, "%s", meshcoll_last_error());
    return mc_fail(status, "%s; or use one line of all ranks: MESHCOLL_MESH=line=%d", why, n);
}

static int mesh_of(const sizes_t *sizes, int32_t n, mc_mesh_t *mesh)
{
    char buffer[96];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const int32_t boxes = n / sizes->box, ranks = sizes->domain ? sizes->domain : sizes->box;
    if (boxes > 1)
        mc_text_add(&text, ",box=%d", boxes);
    if (sizes->domain)
        mc_text_add(&text, ",%s=%d", sizes->name, sizes->box / sizes->domain);
    if (ranks > 1 || text.length == 0)
        mc_text_add(&text, ",%s=%d", sizes->inner, ranks);
    return mc_mesh_parse(buffer + 1, mesh);
}

/* Has the mesh a dimension `name` with `inner` ranks per step and `all` ranks along it (0: any)? */
static bool is_dim(const mc_mesh_t *mesh, const char *name, int32_t inner, int32_t all)
{
    const int32_t d = name ? mc_mesh_find(mesh, name, strlen(name)) : -1;
    if (d < 0 || inner == 0)
        return false;
    const int32_t stride = mc_mesh_stride(mesh, d);
    return stride == inner && (all == 0 || stride * mesh->dim[d].extent == all);
}

/* Has the ragged mesh the boxes found, in the same order? */
static bool has_boxes(const mc_mesh_t *mesh, const seat_t *seat)
{
    mc_mesh_t found;
    return mesh->ragged &&
           ragged_mesh_of(mesh->dim[0].name, seat, mesh->size, &found) == MESHCOLL_OK &&
           found.ragged == mesh->ragged;
}

/* Orders the seats for a mesh that the user gave. find_sizes has sorted them. */
static void order_given(const mc_mesh_t *mesh, const sizes_t *sizes, seat_t *seat)
{
    const bool boxes = sizes->box == mesh->size || has_boxes(mesh, seat) ||
                       (!mesh->ragged && is_dim(mesh, "box", sizes->box, 0));
    if (!boxes)
        qsort(seat, (size_t)mesh->size, sizeof *seat, compare_ranks);
    else if (!is_dim(mesh, sizes->name, sizes->domain, sizes->box))
        sort_by_machine(seat, mesh->size);
}

/* Arranging ------------------------------------------------------------------------------------ */

void mc_order_free(mc_order_t *order)
{
    free(order->mesh_rank);
    free(order->comm_rank);
    *order = (mc_order_t){0};
}

void mc_arranged_free(mc_arranged_t *arranged)
{
    mc_order_free(&arranged->order);
    free(arranged->machine);
    *arranged = (mc_arranged_t){0};
}

/* The seats name their ranks by where they stand in `given`, if that is not NULL. */
static int32_t rank_of(const seat_t *seat, const int32_t *given)
{
    return given ? given[seat->rank] : seat->rank;
}

static bool in_order(const seat_t *seat, const int32_t *given, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (rank_of(&seat[i], given) != i)
            return false;
    return true;
}

static int set_order(const seat_t *seat, const int32_t *given, int32_t n, mc_order_t *order)
{
    if (in_order(seat, given, n))
        return MESHCOLL_OK;
    order->mesh_rank = calloc((size_t)n, sizeof *order->mesh_rank);
    order->comm_rank = calloc((size_t)n, sizeof *order->comm_rank);
    if (!order->mesh_rank || !order->comm_rank)
        return mc_fail_memory("the order of the ranks");
    for (int32_t i = 0; i < n; i++) {
        order->comm_rank[i] = rank_of(&seat[i], given);
        order->mesh_rank[order->comm_rank[i]] = i;
    }
    return MESHCOLL_OK;
}

/* Names each machine by its lowest mesh rank. `first` is indexed by the machine's name among the
 * communicator's ranks. */
static int set_machines(const seat_t *seat, int32_t n, int32_t **machine)
{
    int32_t *const found = calloc((size_t)n, sizeof *found);
    int32_t *const first = calloc((size_t)n, sizeof *first);
    if (found && first) {
        for (int32_t i = n - 1; i >= 0; i--)
            first[seat[i].machine] = i;
        for (int32_t i = 0; i < n; i++)
            found[i] = first[seat[i].machine];
    }
    const bool good = found && first;
    free(first);
    *machine = found;
    return good ? MESHCOLL_OK : mc_fail_memory("a table of machines");
}

static int arrange(const char *text, const int32_t *order, const mc_place_t *place, int32_t size,
                   seat_t *seat, mc_arranged_t *a)
{
    for (int32_t r = 0; r < size; r++)
        seat[r] = (seat_t){.machine = place[r].machine, .rank = r};
    const sizes_t sizes = find_sizes(seat, place, size);
    int status = text        ? mc_mesh_fit(text, size, &a->mesh)
                 : sizes.box ? mesh_of(&sizes, size, &a->mesh)
                             : ragged_mesh_of("box", seat, size, &a->mesh);
    if (status)
        return status;
    if (text)
        order_given(&a->mesh, &sizes, seat);
    status = set_order(seat, order, size, &a->order);
    return status ? status : set_machines(seat, size, &a->machine);
}

/* The places of the ranks in this order, which the caller frees; machines are called by the first rank there. NULL: there
 * is no memory. */
static mc_place_t *reorder(const mc_place_t *place, const int32_t *order, int32_t n)
{
    int32_t *const first = malloc((size_t)n * sizeof *first);
    mc_place_t *const moved = first ? malloc((size_t)n * sizeof *moved) : NULL;
    for (int32_t i = n - 1; i >= 0 && moved; i--)
        first[place[order[i]].machine] = i;
    for (int32_t i = 0; i < n && moved; i++) {
        moved[i] = place[order[i]];
        moved[i].machine = first[moved[i].machine];
    }
    free(first);
    return moved;
}

int mc_arrange(const char *text, const char *order, const mc_place_t *place, int32_t size,
               mc_arranged_t *arranged)
{
    mc_arranged_t a = {0};
    int32_t *given = NULL;
    seat_t *const seat = calloc((size_t)size, sizeof *seat);
    int status = order ? mc_order_parse(order, size, &given) : MESHCOLL_OK;
    mc_place_t *const moved = given ? reorder(place, given, size) : NULL;
    if (!status && (!seat || (given && !moved)))
        status = mc_fail_memory("a table of places");
    if (!status)
        status = arrange(text, given, given ? moved : place, size, seat, &a);
    free(moved);
    free(given);
    free(seat);
    if (status) {
        mc_arranged_free(&a);
        return status;
    }
    *arranged = a;
    return MESHCOLL_OK;
}

/* Meshes by text ------------------------------------------------------------------------------- */

typedef struct {
    mc_text_t text;
    int32_t named;
} fits_t;

/* Lists all extents for dimensions [d, ndims) whose product is `left`; in meshes of several
 * dimensions none is 1. */
static void add_fits(fits_t *fits, mc_mesh_t *mesh, int32_t d, int32_t left)
{
    if (d == mesh->ndims - 1) {
        mesh->dim[d].extent = left;
        if ((mesh->ndims > 1 && left == 1) || fits->named++ >= MOST_NAMED)
            return;
        mc_text_add(&fits->text, "%s", fits->text.length ? " or " : "");
        mc_mesh_print(mesh, &fits->text);
        return;
    }
    for (int32_t extent = 2; extent <= left / 2 && fits->named < MOST_NAMED; extent++) {
        if (left % extent)
            continue;
        mesh->dim[d].extent = extent;
        add_fits(fits, mesh, d + 1, left / extent);
    }
}

int mc_mesh_fit(const char *text, int32_t size, mc_mesh_t *mesh)
{
    char would_fit[400];
    mc_mesh_t m;
    const int status = mc_mesh_parse(text, &m);
    if (status)
        return status;
    if (m.size == size) {
        *mesh = m;
        return MESHCOLL_OK;
    }
    fits_t fits = {.text = mc_text(would_fit, sizeof would_fit)};
    mc_mesh_t other = m;
    if (!m.ragged)
        add_fits(&fits, &other, 0, size);
    if (fits.text.length == 0)
        snprintf(would_fit, sizeof would_fit, "line=%d", size);
    return mc_fail(MESHCOLL_ERR_MESH, "mesh %s has %d ranks, but %d take part; %s would fit", text,
                   m.size, size, would_fit);
}

/* Transports ----------------------------------------------------------------------------------- */

const char *mc_boxes_network(void)
{
    /* with RDMA devices all but shared memory; without any that is tcp and self */
    return access("/sys/class/infiniband", F_OK) == 0 ? "^sm" : "tcp,self";
}

bool mc_tls_is_memory(const char *tls)
{
    static const char *const memory[] = {"self", "sm",   "shm",   "mm",     "posix",   "sysv",
                                         "cma",  "knem", "xpmem", "memory", "shm:copy"};
    for (const char *at = tls; *at;) {
        const size_t n = strcspn(at, ",");
        size_t i = 0;
        while (i < MC_COUNT(memory) && (strlen(memory[i]) != n || strncmp(at, memory[i], n) != 0))
            i++;
        if (i == MC_COUNT(memory))
            return false;
        at += at[n] ? n + 1 : n;
    }
    return true;
}

static const char *in_box_tls(void)
{
    return "shm";
}

/* Does each group of ranks that differ only in dimension d or inner ones share a machine? */
static bool share_machine(const int32_t *machine, const mc_mesh_t *mesh, int32_t d)
{
    for (int32_t r = 0, first; r < mesh->size; r++) {
        (void)mc_mesh_span(mesh, d, r, &first);
        if (machine[r] != machine[first])
            return false;
    }
    return true;
}

int32_t mc_boxes_outside(const int32_t *machine, const mc_mesh_t *mesh)
{
    int32_t n = 0;
    while (n < mesh->ndims && !share_machine(machine, mesh, n))
        n++;
    return n;
}

int32_t mc_boxes_middle(const int32_t *machine, const mc_mesh_t *mesh)
{
    return machine && !mesh->ragged ? machine[mesh->size - 1] : 0;
}

static const char *rule_tls(const int32_t *machine, const mc_mesh_t *mesh, int32_t d)
{
    if ((d == 0 && mesh->ndims > 1 && !mc_dim_is_inside(&mesh->dim[0])) ||
        !share_machine(machine, mesh, d))
        return mc_boxes_network();
    return in_box_tls();
}

static int set_tls(char to[MC_TLS_TEXT], const char *tls, size_t n)
{
    if (n == 0 || n >= MC_TLS_TEXT)
        return mc_fail(MESHCOLL_ERR_PARSE, "the transports of a dimension are 1 to %d characters",
                       MC_TLS_TEXT - 1);
    memcpy(to, tls, n);
    to[n] = '\0';
    return MESHCOLL_OK;
}

/* For example "box=tcp,self;gpu=sm,self". */
static int parse_tls(const char *text, const mc_mesh_t *mesh, char tls[MC_MAX_DIMS][MC_TLS_TEXT])
{
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ";");
        const char *const equals = memchr(at, '=', n);
        const int32_t d = equals ? mc_mesh_find(mesh, at, (size_t)(equals - at)) : -1;
        if (d < 0)
            return mc_fail(
                MESHCOLL_ERR_PARSE,
                "transports are written DIMENSION=LIST;…, as in box=tcp,self;gpu=sm,self; "
                "'%.*s' in '%s' names no dimension of this mesh",
                (int)n, at, text);
        const size_t length = n - (size_t)(equals + 1 - at);
        if (strncmp(equals + 1, "shm", 3) == 0 && memchr(equals + 1, '@', length))
            return mc_fail(MESHCOLL_ERR_PARSE,
                           "network devices go with UCX's transports, as in box=tcp,self@eth0; "
                           "'%.*s' is within a box",
                           (int)n, at);
        const int status = set_tls(tls[d], equals + 1, length);
        if (status)
            return status;
        at += at[n] ? n + 1 : n;
    }
    return MESHCOLL_OK;
}

int mc_boxes_transports(const char *text, const int32_t *machine, const mc_mesh_t *mesh,
                        char tls[MC_MAX_DIMS][MC_TLS_TEXT])
{
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const char *const rule = rule_tls(machine, mesh, d);
        const int status = set_tls(tls[d], rule, strlen(rule));
        if (status)
            return status;
    }
    return text ? parse_tls(text, mesh, tls) : MESHCOLL_OK;
}
