/*
 * The backward pass of a network, layer by layer: the allreduce of a layer's gradient runs while the
 * gradient of the next layer is computed. Prints what computation and communication take alone, one
 * after the other and overlapped, and how much of the communication the overlap hides.
 *   meshcoll run -n 4 overlap                  # 8 layers of 512 x 512 weights, 16 samples
 *   meshcoll run -n 4 overlap 12 768 64        # 12 layers of 768 x 768 weights, 64 samples
 * docs/calling.md explains what it prints.
 */
#include <meshcoll/env.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 5, MOST_LAYERS = 64, MOST_WIDTH = 4096, MOST_SAMPLES = 1024 };

typedef struct {
    meshcoll_t *mesh;
    size_t layers, width, samples, count; /* count: of a layer's weights, width x width */
    float *weights;                       /* [layer][to][from] */
    float *gradients;                     /* as the weights */
    float *inputs;                        /* [layer][sample][from] */
    float *error, *below; /* [sample][…]: of the outputs of a layer, and of its inputs */
    meshcoll_request_t *sums[MOST_LAYERS];
} network_t;

static void check(int status, const char *what)
{
    if (status == MESHCOLL_OK)
        return;
    fprintf(stderr, "overlap: %s: %s\n", what, meshcoll_last_error());
    exit(1);
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Computation ---------------------------------------------------------------------------------- */

/* Small whole numbers: their sums are exact in any order. */
static float first_error(size_t rank, size_t sample, size_t to)
{
    return (float)((2 * rank + sample + to) % 3);
}

static float input(size_t rank, size_t layer, size_t sample, size_t from)
{
    return (float)((rank + layer + sample * from) % 3);
}

static void start_pass(const network_t *n)
{
    const size_t rank = (size_t)meshcoll_rank(n->mesh);
    for (size_t s = 0; s < n->samples; s++)
        for (size_t to = 0; to < n->width; to++)
            n->error[s * n->width + to] = first_error(rank, s, to);
}

static void add_scaled(float *sum, float factor, const float *row, size_t width)
{
    for (size_t i = 0; i < width; i++)
        sum[i] += factor * row[i];
}

/* The gradient of the layer's weights, and the error that the layer below starts from. */
static void compute(network_t *n, size_t layer)
{
    const float *const weights = n->weights + layer * n->count;
    const float *const inputs = n->inputs + layer * n->samples * n->width;
    float *const gradient = n->gradients + layer * n->count;
    memset(gradient, 0, n->count * sizeof *gradient);
    memset(n->below, 0, n->samples * n->width * sizeof *n->below);
    for (size_t to = 0; to < n->width; to++)
        for (size_t s = 0; s < n->samples; s++) {
            const float e = n->error[s * n->width + to];
            add_scaled(gradient + to * n->width, e, inputs + s * n->width, n->width);
            add_scaled(n->below + s * n->width, e, weights + to * n->width, n->width);
        }
    float *const error = n->error;
    n->error = n->below;
    n->below = error;
}

/* Communication -------------------------------------------------------------------------------- */

static void begin_sum(network_t *n, size_t layer)
{
    float *const gradient = n->gradients + layer * n->count;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = gradient,
                                  .out = gradient,
                                  .count = n->count,
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_SUM};
    check(meshcoll_begin(n->mesh, &args, &n->sums[layer]), "beginning a sum");
}

static void end_sums(network_t *n)
{
    for (size_t layer = n->layers; layer-- > 0;)
        check(meshcoll_wait(n->sums[layer]), "waiting for a sum");
}

/* The four ways -------------------------------------------------------------------------------- */

static void computation(network_t *n)
{
    for (size_t layer = n->layers; layer-- > 0;)
        compute(n, layer);
}

static void communication(network_t *n)
{
    for (size_t layer = n->layers; layer-- > 0;)
        begin_sum(n, layer);
    end_sums(n);
}

static void one_after_the_other(network_t *n)
{
    computation(n);
    communication(n);
}

static void overlapped(network_t *n)
{
    for (size_t layer = n->layers; layer-- > 0;) {
        compute(n, layer);
        begin_sum(n, layer); /* returns at once */
    }
    end_sums(n);
}

enum { COMPUTATION, COMMUNICATION, ONE_AFTER_THE_OTHER, OVERLAPPED, WAYS };
static const struct {
    const char *name;
    void (*run)(network_t *n);
    int sums; /* whether the gradients then are those of all ranks */
} ways[WAYS] = {{"computation alone", computation, 0},
                {"communication alone", communication, 0},
                {"one after the other", one_after_the_other, 1},
                {"overlapped", overlapped, 1}};

/* Returns the seconds of the slowest rank. */
static double measure(network_t *n, int way)
{
    start_pass(n);
    check(meshcoll_barrier(n->mesh), "a barrier");
    const double begin = now();
    ways[way].run(n);
    double seconds = now() - begin;
    check(meshcoll_allreduce(n->mesh, &seconds, &seconds, 1, MESHCOLL_FLOAT64, MESHCOLL_MAX),
          "the slowest rank's time");
    return seconds;
}

/* Results -------------------------------------------------------------------------------------- */

static float expected(const network_t *n, size_t layer, size_t to, size_t from)
{
    const size_t above = n->layers - 1 - layer; /* each layer above has moved the error by one */
    const size_t at = (to + above) % n->width;
    float sum = 0;
    for (size_t rank = 0; rank < (size_t)meshcoll_size(n->mesh); rank++)
        for (size_t s = 0; s < n->samples; s++)
            sum += first_error(rank, s, at) * input(rank, layer, s, from);
    return sum;
}

/* Of each layer a column, a row and the diagonal. */
static int count_wrong(const network_t *n)
{
    int wrong = 0;
    for (size_t layer = 0; layer < n->layers; layer++) {
        const float *const sums = n->gradients + layer * n->count;
        for (size_t i = 0; i < n->width; i++) {
            const size_t last = n->width - 1;
            wrong += sums[i * n->width + last] != expected(n, layer, i, last);
            wrong += sums[last * n->width + i] != expected(n, layer, last, i);
            wrong += sums[i * n->width + i] != expected(n, layer, i, i);
        }
    }
    return wrong;
}

static void print(const network_t *n, const double *seconds, int wrong)
{
    const double computing = seconds[COMPUTATION], communicating = seconds[COMMUNICATION];
    const double hidden = computing + communicating - seconds[OVERLAPPED];
    printf("%zu layers of %zu x %zu weights (%.1f MB), %zu samples a rank, on %s\n", n->layers,
           n->width, n->width, 1e-6 * (double)(n->layers * n->count * sizeof(float)), n->samples,
           meshcoll_mesh_text(n->mesh));
    for (int way = 0; way < WAYS; way++)
        printf("%-20s %9.2f ms\n", ways[way].name, 1e3 * seconds[way]);
    printf("%-20s %9.2f ms: %.0f %% of the communication; at most %.0f %% can be\n", "hidden",
           1e3 * hidden, 100 * hidden / communicating,
           computing < communicating ? 100 * computing / communicating : 100);
    printf("%d wrong sums\n", wrong);
}

static int run(network_t *n)
{
    double seconds[WAYS] = {0};
    int wrong = 0;
    for (int round = 0; round <= ROUNDS; round++) /* the first one plans and connects */
        for (int way = 0; way < WAYS; way++) {
            const double s = measure(n, way);
            if (round == 1 || (round > 1 && s < seconds[way]))
                seconds[way] = s;
            wrong += ways[way].sums ? count_wrong(n) : 0;
        }
    check(meshcoll_allreduce(n->mesh, &wrong, &wrong, 1, MESHCOLL_INT32, MESHCOLL_SUM), "results");
    if (meshcoll_rank(n->mesh) == 0)
        print(n, seconds, wrong);
    return wrong ? 1 : 0;
}

/* Memory --------------------------------------------------------------------------------------- */

static float *floats(size_t count)
{
    float *const p = calloc(count, sizeof *p);
    if (!p) {
        fprintf(stderr, "overlap: no memory for %zu floats: fewer or narrower layers?\n", count);
        exit(1);
    }
    return p;
}

/* Weights that move the error by one place, so that the sums can be checked. */
static void allocate(network_t *n)
{
    const size_t rank = (size_t)meshcoll_rank(n->mesh);
    n->count = n->width * n->width;
    n->weights = floats(n->layers * n->count);
    n->gradients = floats(n->layers * n->count);
    n->inputs = floats(n->layers * n->samples * n->width);
    n->error = floats(n->samples * n->width);
    n->below = floats(n->samples * n->width);
    for (size_t layer = 0; layer < n->layers; layer++) {
        for (size_t to = 0; to < n->width; to++)
            n->weights[layer * n->count + to * n->width + (to + n->width - 1) % n->width] = 1;
        for (size_t i = 0; i < n->samples * n->width; i++)
            n->inputs[layer * n->samples * n->width + i] =
                input(rank, layer, i / n->width, i % n->width);
    }
}

static void release(network_t *n)
{
    free(n->below);
    free(n->error);
    free(n->inputs);
    free(n->gradients);
    free(n->weights);
}

static size_t number(const char *text, size_t most, const char *what)
{
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end || n < 1 || n > most) {
        fprintf(stderr, "overlap: %s: a number from 1 to %zu, got '%s'\n", what, most, text);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    /* a progress thread, unless the environment says otherwise: else nothing moves meanwhile */
    const meshcoll_params_t params = {.size = sizeof params,
                                      .progress = getenv("MESHCOLL_PROGRESS") ? NULL : "thread"};
    network_t n = {.layers = argc > 1 ? number(argv[1], MOST_LAYERS, "layers") : 8,
                   .width = argc > 2 ? number(argv[2], MOST_WIDTH, "width") : 512,
                   .samples = argc > 3 ? number(argv[3], MOST_SAMPLES, "samples") : 16};
    check(meshcoll_create_env(&params, &n.mesh), "the mesh");
    allocate(&n);
    const int failed = run(&n);
    release(&n);
    meshcoll_destroy(n.mesh);
    return failed;
}
