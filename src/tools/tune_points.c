#include "tools/tune_points.h"

#include <meshcoll/meshcoll.h>

#include "tools/tune_batch.h"
#include "tools/tune_fit.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the vectors: from a cache line to more than caches hold, each eight times the one before. */
enum { N_POINTS = 7, FIRST_BYTES = 64, STEP = 8, LAST_BYTES = 16 << 20 };
_Static_assert((int)N_POINTS <= (int)MC_LINK_POINTS, "a link has room for all sizes");

typedef struct {
    meshcoll_request_t *request;
    size_t bytes; /* of its input */
    mc_series_t series;
} row_t;

struct mc_tune_points {
    const mc_mesh_t *mesh;
    meshcoll_t *whole;
    char *in, *out;
    int32_t n_closed, n;
    double bytes[N_POINTS]; /* of the whole vector, as it can be cut */
    row_t row[N_POINTS][MC_TUNE_CLOSED];
};

static void free_points(mc_tune_points_t *p)
{
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t k = 0; k < p->n_closed; k++)
            meshcoll_free(p->row[i][k].request);
    free(p->in);
    free(p->out);
    free(p);
}

/* The first runs connect and warm up. */
static int open_row(mc_tune_points_t *p, int32_t i, const mc_tune_closed_t *closed, row_t *row)
{
    const size_t size = (size_t)p->mesh->size, blocks = (size_t)p->bytes[i] / sizeof(float) / size;
    const bool gathers = closed->collective == MESHCOLL_ALLGATHER;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = closed->collective,
                                  .in = p->in,
                                  .out = p->out,
                                  .count = gathers ? blocks : blocks * size,
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_SUM,
                                  .strategy = closed->strategy};
    const int status = meshcoll_init(p->whole, &args, &row->request);
    row->bytes = args.count * sizeof(float);
    double once = 0;
    for (int run = 0; run < 2 && !status; run++)
        once = mc_batch_anew(p->whole, row->request, 1, p->in, p->out, row->bytes);
    row->series.repeats = mc_repeats_for(once);
    return status;
}

/* Every rank gets a part, so that the first sizes may be one and the same on many ranks. */
static void set_sizes(mc_tune_points_t *p)
{
    const size_t whole = (size_t)p->mesh->size * sizeof(float);
    size_t bytes = FIRST_BYTES;
    for (int32_t i = 0; i < N_POINTS; i++, bytes *= STEP) {
        const double cut = (double)((bytes + whole - 1) / whole * whole);
        if (!p->n || cut > p->bytes[p->n - 1])
            p->bytes[p->n++] = cut;
    }
}

static int open_rows(mc_tune_points_t *p)
{
    mc_tune_closed_t closed;
    int status = MESHCOLL_OK;
    while (mc_tune_closed(p->mesh, p->n_closed, &closed))
        p->n_closed++;
    set_sizes(p);
    for (int32_t i = 0; i < p->n && !status; i++)
        for (int32_t k = 0; k < p->n_closed && !status; k++) {
            mc_tune_closed(p->mesh, k, &closed);
            status = open_row(p, i, &closed, &p->row[i][k]);
        }
    return status;
}

int mc_tune_points_open(const mc_cluster_t *cluster, meshcoll_t *whole, mc_tune_points_t **points)
{
    mc_tune_closed_t closed;
    *points = NULL;
    if (!mc_tune_closed(&cluster->mesh, 0, &closed) || !mc_tune_is_pulled(cluster, closed.dim))
        return MESHCOLL_OK;
    mc_tune_points_t *const p = mc_tune_allocate(sizeof *p);
    const size_t bytes = LAST_BYTES + (size_t)cluster->mesh.size * sizeof(float);
    p->mesh = &cluster->mesh;
    p->whole = whole;
    p->in = mc_tune_allocate(bytes);
    memset(p->in, 0, bytes); /* untouched it would be one page, again and again */
    p->out = mc_tune_allocate(bytes);
    const int status = open_rows(p);
    if (status)
        free_points(p);
    else
        *points = p;
    return status;
}

void mc_tune_points_run(mc_tune_points_t *p)
{
    for (int32_t i = 0; p && i < p->n; i++)
        for (int32_t k = 0; k < p->n_closed; k++) {
            row_t *const row = &p->row[i][k];
            mc_series_keep(&row->series, mc_batch_anew(p->whole, row->request, row->series.repeats,
                                                       p->in, p->out, row->bytes));
        }
}

int mc_tune_points_close(mc_tune_points_t *p, mc_tuning_t *tuning)
{
    int status = MESHCOLL_OK;
    for (int32_t i = 0; p && i < p->n && !status; i++) {
        double seconds[MC_TUNE_CLOSED];
        for (int32_t k = 0; k < p->n_closed; k++)
            seconds[k] = mc_series_median(&p->row[i][k].series);
        status = mc_tune_fit_at(p->mesh, seconds, p->bytes[i], &tuning->point[i]);
    }
    tuning->n_points = p ? p->n : 0;
    if (p)
        free_points(p);
    return status;
}
