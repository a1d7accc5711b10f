/*
 * Trains a linear model on a mesh of two dimensions: the weights are distributed over the ranks of
 * a tensor-parallel group, the samples over the ranks of a data-parallel group.
 *   meshcoll run -n 4 training               # dp=2,tp=2
 *   meshcoll run -n 8 training dp=4,tp=2
 * Each step predicts with this rank's weights, sums the predictions over the tensor-parallel group,
 * and sums the gradient of its weights over the data-parallel group.
 */
#include <meshcoll/env.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FEATURES = 48, SAMPLES = 240, STEPS = 300 };
static const double rate = 1, good_enough = 1e-6;

typedef struct {
    meshcoll_t *all, *tensor, *data;
    int first_feature, features; /* of this rank */
    int first_sample, samples;
} groups_t;

static double weights[FEATURES], gradient[FEATURES]; /* this rank's part of each */
static double error[SAMPLES];                        /* by sample of this rank */

static void check(int status, const char *what)
{
    if (status == MESHCOLL_OK)
        return;
    fprintf(stderr, "training: %s: %s\n", what, meshcoll_last_error());
    exit(1);
}

/* Returns the same on all ranks: a number between -1 and 1. */
static double input(int sample, int feature)
{
    unsigned x = (unsigned)(sample * FEATURES + feature + 1) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    x = (x ^ x >> 13) * 3266489917u;
    return (double)(x >> 16) / 32767.5 - 1;
}

static double truth(int feature)
{
    return sin(feature) + 0.5;
}

static double target(int sample)
{
    double sum = 0;
    for (int f = 0; f < FEATURES; f++)
        sum += truth(f) * input(sample, f);
    return sum;
}

/* Returns half the mean squared error over all samples, before the step. */
static double step(const groups_t *g)
{
    double loss = 0;
    for (int s = 0; s < g->samples; s++) {
        error[s] = 0;
        for (int f = 0; f < g->features; f++)
            error[s] += weights[f] * input(g->first_sample + s, g->first_feature + f);
    }
    check(meshcoll_allreduce(g->tensor, error, error, (size_t)g->samples, MESHCOLL_FLOAT64,
                             MESHCOLL_SUM),
          "summing predictions");
    for (int s = 0; s < g->samples; s++) {
        error[s] -= target(g->first_sample + s);
        loss += error[s] * error[s] / 2 / SAMPLES;
    }
    for (int f = 0; f < g->features; f++) {
        gradient[f] = 0;
        for (int s = 0; s < g->samples; s++)
            gradient[f] += error[s] * input(g->first_sample + s, g->first_feature + f) / SAMPLES;
    }
    check(meshcoll_allreduce(g->data, gradient, gradient, (size_t)g->features, MESHCOLL_FLOAT64,
                             MESHCOLL_SUM),
          "summing gradients");
    check(meshcoll_allreduce(g->data, &loss, &loss, 1, MESHCOLL_FLOAT64, MESHCOLL_SUM), "the loss");
    for (int f = 0; f < g->features; f++)
        weights[f] -= rate * gradient[f];
    return loss;
}

static void open_groups(const char *text, groups_t *g)
{
    const meshcoll_params_t params = {.size = sizeof params, .mesh = text};
    check(meshcoll_create_env(&params, &g->all), "the mesh");
    check(meshcoll_split(g->all, "tp", &g->tensor), "tensor-parallel groups");
    check(meshcoll_split(g->all, "dp", &g->data), "data-parallel groups");
    g->features = FEATURES / meshcoll_size(g->tensor);
    g->samples = SAMPLES / meshcoll_size(g->data);
    g->first_feature = meshcoll_rank(g->tensor) * g->features;
    g->first_sample = meshcoll_rank(g->data) * g->samples;
    if (FEATURES % meshcoll_size(g->tensor) || SAMPLES % meshcoll_size(g->data)) {
        fprintf(stderr, "training: tp must divide %d, dp must divide %d\n", FEATURES, SAMPLES);
        exit(2);
    }
}

/* Returns how far the worst of all weights is from its true value. */
static double distance(const groups_t *g)
{
    double worst = 0;
    for (int f = 0; f < g->features; f++)
        worst = fmax(worst, fabs(weights[f] - truth(g->first_feature + f)));
    check(meshcoll_allreduce(g->all, &worst, &worst, 1, MESHCOLL_FLOAT64, MESHCOLL_MAX),
          "the worst weight");
    return worst;
}

int main(int argc, char **argv)
{
    char text[64];
    int size;
    groups_t g;
    check(meshcoll_env(NULL, &size), "the number of ranks");
    snprintf(text, sizeof text, "dp=2,tp=%d", size / 2);
    open_groups(argc > 1 ? argv[1] : text, &g);
    const int speaks = meshcoll_rank(g.all) == 0;
    if (speaks)
        printf("%s: tensor-parallel groups %s, data-parallel groups %s\n",
               meshcoll_mesh_text(g.all), meshcoll_mesh_text(g.tensor), meshcoll_mesh_text(g.data));
    for (int i = 0; i < STEPS; i++) {
        const double loss = step(&g);
        if (speaks && i % 50 == 0)
            printf("step %3d  loss %.3g\n", i, loss);
    }
    const double worst = distance(&g);
    if (speaks)
        printf("after %d steps the worst weight is off by %.3g\n", STEPS, worst);
    meshcoll_destroy(g.data);
    meshcoll_destroy(g.tensor);
    meshcoll_destroy(g.all);
    return worst < good_enough ? 0 : 1;
}
