#include "bits.h"

#include "box.h"
#include "support/element.h"
#include "support/inproc.h"
#include "support/random.h"
#include "support/strategies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Reductions -------------------------------------------------------------------------------------- */

enum { ELEMENTS = 1003, ROOM = (ELEMENTS + 1) * MC_MOST_ELEMENT };

typedef struct {
    _Alignas(64) char a[ROOM], b[ROOM], mine[ROOM], hosts[ROOM];
} operands_t;

/* Any bits, or numbers of similar size, whose sums round. */
static void draw(mc_random_t *r, meshcoll_datatype_t type, bool any, char *at)
{
    for (size_t i = 0; i < ROOM; i++)
        at[i] = (char)mc_random_next(r);
    for (size_t i = 0; i < ELEMENTS + 1 && !any; i++) {
        const double x = (double)mc_random_below(r, 1 << 20), y = (double)mc_random_below(r, 999);
        const mc_number_t number = {x / (1 << 17) - 4, y - 500};
        mc_element_set(type, at, i, number);
    }
}

/* Bytes of an element without its padding. */
static size_t value_bytes(meshcoll_datatype_t type)
{
    const bool padded = type == MESHCOLL_FLOAT64_INT32 || type == MESHCOLL_INT64_INT32;
    return padded ? 12 : meshcoll_datatype_size(type);
}

static bool is_nan(meshcoll_datatype_t type, const char *at, size_t i)
{
    const bool real = mc_is_narrow(type) || type == MESHCOLL_FLOAT32 || type == MESHCOLL_FLOAT64;
    const double x = real ? mc_element_get(type, at, i).a : 0;
    return x != x;
}

/* The same bits, or both NaN. */
static bool same(meshcoll_datatype_t type, const char *x, const char *y, size_t n)
{
    if (mc_is_complex(type))
        return same(type == MESHCOLL_COMPLEX64 ? MESHCOLL_FLOAT32 : MESHCOLL_FLOAT64, x, y, 2 * n);
    const size_t size = meshcoll_datatype_size(type);
    for (size_t i = 0; i < n; i++)
        if (memcmp(x + i * size, y + i * size, value_bytes(type)) &&
            !(is_nan(type, x, i) && is_nan(type, y, i))) {
            printf("element %zu: %g, the host's %g: ", i, mc_element_get(type, x, i).a,
                   mc_element_get(type, y, i).a);
            return false;
        }
    return true;
}

/* `shift`: elements by which operands lie beside a word; `to`: 0 apart, 1 in a, 2 in b; `swaps`: b comes first, which
 * is all the same to programs. */
static bool reduce_alike(meshcoll_datatype_t type, meshcoll_op_t op, operands_t *o, int shift,
                         int to, bool swaps)
{
    const size_t size = meshcoll_datatype_size(type), at = (size_t)shift * size;
    const mc_kernel_t kernel = mc_kernel(type, op);
    char *const a = o->a + at, *const b = o->b;
    kernel(o->hosts, a, b, ELEMENTS);
    char *const mine = to == 1 ? a : to == 2 ? b : o->mine + at;
    mc_host_reduce(mc_device_body(type, op), mine, swaps ? b : a, swaps ? a : b, ELEMENTS * size);
    return same(type, mine, o->hosts, ELEMENTS);
}

static bool divide_alike(meshcoll_datatype_t type, operands_t *o)
{
    const size_t size = meshcoll_datatype_size(type);
    const mc_scale_t divide = mc_reducer(type, MESHCOLL_AVG).divide;
    memcpy(o->mine, o->a, sizeof o->a);
    memcpy(o->hosts, o->a, sizeof o->a);
    divide(o->hosts, ELEMENTS, 7);
    mc_host_divide(mc_device_body(type, MESHCOLL_AVG), o->mine, o->mine, ELEMENTS * size, 7, NULL);
    return same(type, o->mine, o->hosts, ELEMENTS);
}

/* Products with the first element of b; `to`: apart, or the same. */
static bool scale_alike(meshcoll_datatype_t type, operands_t *o, int shift, bool apart)
{
    const size_t size = meshcoll_datatype_size(type), at = (size_t)shift * size;
    char *const a = o->a + at, *const mine = apart ? o->mine + at : a;
    for (size_t i = 1; i < ELEMENTS; i++)
        memcpy(o->b + i * size, o->b, size);
    mc_kernel(type, MESHCOLL_PROD)(o->hosts, a, o->b, ELEMENTS);
    mc_host_divide(mc_device_premul_body(type), mine, a, ELEMENTS * size, 0, o->b);
    return same(type, mine, o->hosts, ELEMENTS);
}

static bool scalings_alike(mc_random_t *r, operands_t *o)
{
    int n = 0;
    for (int t = 0; t < MESHCOLL_DATATYPES; t++) {
        const meshcoll_datatype_t type = (meshcoll_datatype_t)t;
        const bool has = mc_kernel(type, MESHCOLL_SUM) && mc_kernel(type, MESHCOLL_PROD);
        bool good = has == (mc_device_premul_body(type) != MC_DEVICE_BODY_move);
        for (int turn = 0; turn < 8 && good && has; turn++, n++) {
            draw(r, type, turn % 2, o->a);
            draw(r, type, turn % 2, o->b);
            good = scale_alike(type, o, turn / 2 % 2, turn / 4);
        }
        if (!good) {
            printf("scaling of %s differs from the host's\n", meshcoll_datatype_name(type));
            return false;
        }
    }
    return n > 100;
}

bool mc_bits_of_reductions(void)
{
    static operands_t o;
    mc_random_t r = mc_random_of(18, 0);
    int n = 0;
    for (int t = 0; t < MESHCOLL_DATATYPES; t++)
        for (int op = 0; op < MESHCOLL_OPS; op++) {
            const meshcoll_datatype_t type = (meshcoll_datatype_t)t;
            const mc_device_body_t body = mc_device_body(type, (meshcoll_op_t)op);
            bool good =
                (body != MC_DEVICE_BODY_move) == (mc_kernel(type, (meshcoll_op_t)op) != NULL);
            for (int turn = 0; turn < 24 && good && body != MC_DEVICE_BODY_move; turn++, n++) {
                draw(&r, type, turn % 2, o.a);
                draw(&r, type, turn % 2, o.b);
                good = reduce_alike(type, (meshcoll_op_t)op, &o, turn / 2 % 2, turn / 4 % 3,
                                    turn / 12);
                if (op == MESHCOLL_AVG && good)
                    good = divide_alike(type, &o);
            }
            if (!good) {
                printf("%s of %s differs from the host's kernel\n",
                       meshcoll_op_name((meshcoll_op_t)op), meshcoll_datatype_name(type));
                return false;
            }
        }
    return n > 1000 && scalings_alike(&r, &o);
}

/* Calls ------------------------------------------------------------------------------------------- */

enum { COUNT = 103, MOST = MC_BOX_RANKS * COUNT };

typedef struct {
    meshcoll_t *mesh[MC_BOX_RANKS];
    float out[MC_BOX_RANKS][MOST];
} host_t;

/* Sums round; of min and max a NaN wins. */
static void draw_inputs(mc_random_t *r, mc_box_run_t *run)
{
    for (int i = 0; i < run->box->mesh.size; i++) {
        float *const in = run->rank[i].buffers.in;
        for (size_t k = 0; k < run->rank[i].buffers.bytes[0] / sizeof *in; k++) {
            const size_t x = mc_random_below(r, 1 << 22);
            in[k] = run->c.op != MESHCOLL_SUM && x % 4 == 0 ? NAN : (float)x / 3 - 500000;
        }
    }
}

/* The same call by the host's executor. */
static bool run_on_host(host_t *h, const mc_box_run_t *run, const char *strategy)
{
    meshcoll_request_t *request[MC_BOX_RANKS] = {NULL};
    const int n = run->box->mesh.size;
    int status = MESHCOLL_OK;
    for (int i = 0; i < n && !status; i++) {
        meshcoll_args_t args = mc_case_args(&run->c, &run->rank[i].buffers, strategy);
        args.out = h->out[i];
        status = meshcoll_init(h->mesh[i], &args, &request[i]);
        status = status ? status : meshcoll_start(request[i]);
    }
    for (int left = n; left > 0 && status >= 0;) {
        left = 0;
        for (int i = 0; i < n && status >= 0; i++) {
            status = meshcoll_test(request[i]);
            left += status == MESHCOLL_IN_PROGRESS;
        }
    }
    for (int i = 0; i < n; i++)
        meshcoll_free(request[i]);
    if (status < 0)
        printf("%s: %s\n", run->name, meshcoll_last_error());
    return status >= 0;
}

static bool call_alike(host_t *h, mc_box_t *box, mc_random_t *r, const mc_case_t *c,
                       const char *strategy, bool ll)
{
    const mc_box_how_t how = {.blocks = 2, .slot_bytes = 128, .ll = ll};
    mc_box_run_t *const run = mc_box_run_open(box, c, strategy, &how);
    draw_inputs(r, run);
    bool good = run_on_host(h, run, strategy);
    mc_box_run(run);
    for (int i = 0; i < box->mesh.size && good; i++) {
        const mc_case_rank_t *const rank = &run->rank[i].buffers;
        good = !rank->uses_out ||
               same(c->datatype, rank->out, (char *)h->out[i], rank->bytes[1] / sizeof(float));
        if (!good)
            printf("%s: rank %d differs from the host's executor\n", run->name, i);
    }
    mc_box_run_close(run);
    return good;
}

static bool mesh_alike(const char *mesh)
{
    static const meshcoll_collective_t collectives[] = {MESHCOLL_REDUCE, MESHCOLL_REDUCE_SCATTER,
                                                        MESHCOLL_ALLREDUCE};
    const float scalar = -1.7f;
    meshcoll_op_t ops[] = {MESHCOLL_SUM, MESHCOLL_MAX, MESHCOLL_MIN, MESHCOLL_SUM};
    static host_t h;
    mc_random_t r = mc_random_of(7, 0);
    mc_box_t *const box = mc_box_open(mesh);
    bool good = mc_inproc_create(mesh, NULL, h.mesh) == MESHCOLL_OK &&
                meshcoll_op_premul(&scalar, MESHCOLL_FLOAT32, &ops[3]) == MESHCOLL_OK;
    for (size_t k = 0; k < MC_COUNT(collectives); k++) {
        mc_sample_t sample;
        good = good && mc_sample_open(collectives[k], &box->mesh, 60, &sample) == 0;
        for (int i = 0; good && i < sample.n; i++) {
            const mc_case_t c = {.collective = collectives[k],
                                 .datatype = MESHCOLL_FLOAT32,
                                 .op = ops[i % 4],
                                 .count = COUNT};
            good = call_alike(&h, box, &r, &c, sample.text[i], i / 4 % 2);
        }
        mc_sample_close(&sample);
    }
    for (int i = 0; i < box->mesh.size; i++)
        meshcoll_destroy(h.mesh[i]);
    meshcoll_op_free(ops[3]);
    mc_box_close(box);
    return good;
}

bool mc_bits_of_calls(void)
{
    return mesh_alike("gpu=4") && mesh_alike("box=2,gpu=2") && mesh_alike("box=4+3+1");
}
