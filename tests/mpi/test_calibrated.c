/*
 * Links that the creation measures: the same on all ranks; those of a further mesh of the job, and of a group, are the
 * job's, by the names of their dimensions, and nothing is measured for them. What calls have learned is kept too.
 */
#include <meshcoll/group.h>
#include <meshcoll/mpi.h>

#include "runtime/call/adapt.h"
#include "runtime/handle/calibrated.h"
#include "runtime/handle/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLOATS = 1000, SETTLE = 300 };

static int rank, size;

static void check(bool right, const char *what)
{
    if (!right) {
        printf("rank %d: %s: %s\n", rank, what, meshcoll_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static bool same(const mc_link_t *a, const mc_link_t *b)
{
    return a->alpha == b->alpha && a->gap == b->gap && a->beta == b->beta && a->gamma == b->gamma;
}

/* Rank 0's links, to the last digit? */
static bool is_on_all(const meshcoll_t *mesh)
{
    char text[2048], first[sizeof text];
    mc_text_t printed = mc_text(text, sizeof text);
    mc_links_print(&mesh->links, &mesh->mesh, &printed);
    memcpy(first, text, sizeof text);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    return strcmp(first, text) == 0;
}

/* The log says of the first mesh, and of a further one, that their links are calibrated. */
static void check_log(const char *path, int meshes)
{
    char line[8192];
    int n = 0;
    FILE *const log = rank == 0 ? fopen(path, "r") : NULL;
    while (log && fgets(line, sizeof line, log)) {
        n += strncmp(line, "meshcoll: links calibrated when ", 32) == 0;
        check(!strstr(line, "links of the default preset"), "the log says other links");
    }
    check(rank > 0 || n == meshes, "the log does not say which links meshes have");
    if (log)
        fclose(log);
}

static const char near_links[] = "box=alpha:9us;beta:1GB/s,gpu=alpha:1us;beta:9GB/s;pulled:yes";

static int gather(void *context, const void *in, void *out, size_t bytes)
{
    const char *const key = context;
    static int round;
    if (rank == 0 && ++round == 4) /* it has looked for links before the second one */
        check(mc_kept_write(MC_KEPT_LINKS, key, near_links), "links of another job");
    return MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* What another job has measured meanwhile outlives a job that had too little time. */
static void check_tried(const meshcoll_params_t *params, char *key)
{
    const meshcoll_oob_t oob = {.rank = rank, .size = size, .context = key, .allgather = gather};
    meshcoll_t *mesh;
    if (rank == 0)
        mc_kept_drop(MC_KEPT_LINKS, key);
    setenv("MESHCOLL_CALIBRATE", "0.000001", 1);
    check(meshcoll_create_oob(&oob, params, &mesh) == MESHCOLL_OK, "a mesh with too little time");
    check(!mesh->job->calibrated || !mesh->job->calibrated->is_measured, "a microsecond sufficed");
    meshcoll_destroy(mesh);
    setenv("MESHCOLL_CALIBRATE", "10", 1);
    char *const kept = rank == 0 ? mc_kept_read(MC_KEPT_LINKS, key) : NULL;
    check(rank > 0 || (kept && strcmp(kept, near_links) == 0), "another job's links are lost");
    free(kept);
}

/* Jobs whose calls are much faster than their links tell drop what is kept; and those of which the long ones are much
 * slower, and more so than the short ones. But not what another job has kept meanwhile. */
static void check_doubt(const meshcoll_params_t *params, const char *key, const char *links,
                        const char *meanwhile, size_t most, bool stays)
{
    static int32_t in[1 << 16], out[1 << 16];
    meshcoll_t *mesh;
    check(rank > 0 || mc_kept_write(MC_KEPT_LINKS, key, links), "links are kept");
    check(meshcoll_create(MPI_COMM_WORLD, params, &mesh) == MESHCOLL_OK, "a mesh on kept links");
    check(mesh->job->calibrated != NULL, "kept links are not used");
    check(rank > 0 || !meanwhile || mc_kept_write(MC_KEPT_LINKS, key, meanwhile), "links are kept");
    for (size_t n = 1; n <= most; n *= 1 << 16)
        for (int i = 0; i < SETTLE; i++)
            check(!meshcoll_allreduce(mesh, in, out, n, MESHCOLL_INT32, MESHCOLL_SUM),
                  "a sum on kept links");
    meshcoll_destroy(mesh);
    char *const text = rank == 0 ? mc_kept_read(MC_KEPT_LINKS, key) : NULL;
    check(rank > 0 || !text == !stays, stays ? "links are not kept" : "wrong links are still kept");
    free(text);
}

/* A mesh on kept links, whose calls learn; leaves what its last sum is. */
static meshcoll_t *make_sums(const meshcoll_params_t *params, int calls, float sum[FLOATS])
{
    static float in[FLOATS], other[16];
    meshcoll_t *mesh;
    for (int i = 0; i < FLOATS; i++)
        in[i] = 1e-3F + (float)((i * 37 + rank * 1009) % 4099) / 7;
    check(meshcoll_create(MPI_COMM_WORLD, params, &mesh) == MESHCOLL_OK, "a mesh that learns");
    for (int i = 0; i < calls; i++) {
        check(!meshcoll_allreduce(mesh, in, sum, FLOATS, MESHCOLL_FLOAT32, MESHCOLL_SUM), "a sum");
        check(!meshcoll_bcast(mesh, other, other, 16, MESHCOLL_FLOAT32, 0), "a bcast");
    }
    return mesh;
}

/* What this rank knows; the caller frees it. */
static char *known_of(const meshcoll_t *mesh)
{
    char *const text = malloc(MC_KEPT_BYTES);
    mc_text_t printed = mc_text(text, MC_KEPT_BYTES);
    mc_adapt_save(mesh, &printed);
    return text;
}

/* `known`: of a mesh that the test destroys; NULL: nothing is kept. */
static void check_next(const meshcoll_params_t *params, const char *known, const float *sum,
                       const char *what)
{
    float again[FLOATS];
    meshcoll_t *const mesh = make_sums(params, 0, again);
    char *const own = known_of(mesh);
    check(strcmp(own, known ? known : "") == 0, what);
    free(own);
    meshcoll_destroy(mesh);
    meshcoll_destroy(make_sums(params, 1, again));
    check(!known || memcmp(again, sum, sizeof again) == 0, "a sum of the next job has other bits");
}

/* What the calls of a job have learned is known to the next one, on all ranks, though rank 0 alone has a file. */
static void check_learned(const meshcoll_params_t *params, const char *key)
{
    float sum[FLOATS];
    meshcoll_t *const mesh = make_sums(params, SETTLE, sum);
    char *const known = known_of(mesh);
    check(strstr(known, "allreduce 4000 ") && strstr(known, "bcast 64 "), "nothing was learned");
    meshcoll_destroy(mesh);
    char *const kept = mc_kept_read(MC_KEPT_LEARNED, rank == 0 ? key : "none");
    check(!kept == (rank > 0), "what was learned is not kept, or on another rank");
    free(kept);
    check_next(params, known, sum, "the next job does not know what was learned");
    setenv("MESHCOLL_CALIBRATE", "off", 1);
    check_next(params, NULL, sum, "off, and learned times are taken");
    setenv("MESHCOLL_CALIBRATE", "10", 1);
    setenv("MESHCOLL_ADAPT", "off", 1);
    check_next(params, NULL, sum, "nothing is to be learned, but is known");
    unsetenv("MESHCOLL_ADAPT");
    check_next(params, known, sum, "jobs that did not learn have lost it");
    check(rank > 0 || mc_kept_write(MC_KEPT_LEARNED, key, "on links 0\nallreduce 4000"), "kept");
    check_next(params, NULL, sum, "times of other links are taken");
    free(known);
}

/* In another order ranks have other neighbours, and mesh rank 0 is another process than the one with the file. */
static void check_reversed(const char *key)
{
    const meshcoll_params_t params = {
        .size = sizeof params, .mesh = "box=2,gpu=2", .order = "3,2,1,0"};
    meshcoll_t *mesh;
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "a mesh in an order");
    char *const own = rank == 0 ? strdup(mesh->job->calibrated->key) : NULL;
    meshcoll_destroy(mesh);
    check(rank > 0 || strcmp(own, key) != 0, "an order of ranks has the links of another");
    check_learned(&params, own);
    if (rank == 0)
        mc_kept_drop(MC_KEPT_LINKS, own);
    if (rank == 0)
        mc_kept_drop(MC_KEPT_LEARNED, own);
    free(own);
}

int main(int argc, char **argv)
{
    meshcoll_t *mesh, *further, *group;
    char none[] = "/tmp/meshcoll-calibrated-XXXXXX";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(mkdtemp(none) != NULL, "a folder");
    char log[sizeof none + 16], level[sizeof log + 16];
    snprintf(log, sizeof log, "%s/log", none);
    snprintf(level, sizeof level, "info:%s", log);
    setenv("MESHCOLL_LOG", level, 1);
    setenv("MESHCOLL_CALIBRATE", "10", 1); /* a second: enough on cores that are busy */
    setenv("MESHCOLL_TUNE_FILE", "/tmp/meshcoll-none.json", 1);
    setenv("XDG_CACHE_HOME", none, 1);
    unsetenv("MESHCOLL_LINKS");
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "box=2,gpu=2"};
    check(size == 4, "expected 4 ranks");
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "the first mesh");
    check(mesh->job->calibrated != NULL, "nothing was measured");
    check(is_on_all(mesh), "ranks have other links");
    check(!mesh->job->calibrated->key == (rank > 0), "the key");
    check(mesh->calls.n == 0 && mesh->calls.n_persistent == 0,
          "measuring took numbers of the mesh");

    const double began = MPI_Wtime();
    const meshcoll_params_t line = {.size = sizeof line, .mesh = "gpu=4"};
    check(meshcoll_create(MPI_COMM_WORLD, &line, &further) == MESHCOLL_OK, "a further mesh");
    check(MPI_Wtime() - began < 0.7, "a further mesh has measured links");
    check(further->job == mesh->job, "the further mesh has a job of its own");
    check(same(&further->links.dim[0], &mesh->links.dim[1]), "links of the further mesh");
    check_log(log, 2);
    const int members[] = {0, 1};
    if (rank < 2) {
        check(meshcoll_create_group(mesh, members, 2, 7, &group) == MESHCOLL_OK, "a group");
        meshcoll_destroy(group);
    }
    int32_t in = 1, out = 0;
    check(meshcoll_allreduce(mesh, &in, &out, 1, MESHCOLL_INT32, MESHCOLL_SUM) == 0 && out == 4,
          "a sum on the first mesh");
    check(meshcoll_allreduce(further, &in, &out, 1, MESHCOLL_INT32, MESHCOLL_SUM) == 0 && out == 4,
          "a sum on the further mesh");
    char *const key = rank == 0 ? strdup(mesh->job->calibrated->key) : NULL;
    meshcoll_destroy(further);
    meshcoll_destroy(mesh);
    static const char *const far[] = {"alpha:1s;beta:1GB/s", "alpha:1ns;beta:1GB/s",
                                      "alpha:5us;beta:100TB/s"};
    static const struct {
        int links;
        size_t most; /* elements of the longer one of two kinds of calls */
        bool stays;
        const char *meanwhile;
    } doubts[] = {{0, 1, false, NULL},       {1, 1, true, NULL},
                  {2, 1 << 16, false, NULL}, {1, 1 << 16, true, NULL},
                  {0, 1, true, near_links},  {2, 1 << 16, true, near_links}};
    for (size_t i = 0; i < MC_COUNT(doubts); i++) {
        char links[128];
        snprintf(links, sizeof links, "box=%s,gpu=%s;pulled:yes", far[doubts[i].links],
                 far[doubts[i].links]);
        check_doubt(&params, key, links, doubts[i].meanwhile, doubts[i].most, doubts[i].stays);
    }
    check_tried(&params, key);
    check_learned(&params, key);
    check_reversed(key);
    char folder[sizeof none + 16];
    snprintf(folder, sizeof folder, "%s/meshcoll", none);
    if (rank == 0)
        mc_kept_drop(MC_KEPT_LINKS, key);
    if (rank == 0)
        mc_kept_drop(MC_KEPT_LEARNED, key);
    free(key);
    (void)rmdir(folder); /* rank 0 has it */
    (void)unlink(log);
    check(rmdir(none) == 0, "files are left");
    MPI_Finalize();
    if (rank == 0)
        printf("all well\n");
    return 0;
}
