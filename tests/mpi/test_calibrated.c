/*
 * Links that the creation measures: the same on all ranks; those of a further mesh of the job, and of a group, are the
 * job's, by the names of their dimensions, and nothing is measured for them.
 */
#include <meshcoll/group.h>
#include <meshcoll/mpi.h>

#include "runtime/handle/calibrated.h"
#include "runtime/handle/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Jobs whose calls are much faster than their links tell drop what is kept. */
static void check_doubt(const meshcoll_params_t *params, const char *key, const char *links,
                        bool stays)
{
    meshcoll_t *mesh;
    check(rank > 0 || mc_kept_write(MC_KEPT_LINKS, key, links), "links are kept");
    check(meshcoll_create(MPI_COMM_WORLD, params, &mesh) == MESHCOLL_OK, "a mesh on kept links");
    check(mesh->job->calibrated != NULL, "kept links are not used");
    for (int i = 0; i < 40; i++) {
        int32_t in = 1, out = 0;
        check(meshcoll_allreduce(mesh, &in, &out, 1, MESHCOLL_INT32, MESHCOLL_SUM) == 0 && out == 4,
              "a sum on kept links");
    }
    char *const text = rank == 0 ? mc_kept_read(MC_KEPT_LINKS, key) : NULL;
    check(rank > 0 || !text == !stays, stays ? "links are not kept" : "wrong links are still kept");
    free(text);
    meshcoll_destroy(mesh);
}

int main(int argc, char **argv)
{
    meshcoll_t *mesh, *further, *group;
    char none[] = "/tmp/meshcoll-calibrated-XXXXXX";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(mkdtemp(none) != NULL, "a folder");
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
    check_doubt(&params, key, "box=alpha:1s;beta:1GB/s,gpu=alpha:1s;beta:1GB/s;pulled:yes", false);
    check_doubt(&params, key, "box=alpha:1ns;beta:1GB/s,gpu=alpha:1ns;beta:1GB/s;pulled:yes", true);
    char folder[sizeof none + 16];
    snprintf(folder, sizeof folder, "%s/meshcoll", none);
    if (rank == 0)
        mc_kept_drop(MC_KEPT_LINKS, key);
    free(key);
    (void)rmdir(folder); /* rank 0 has it */
    check(rmdir(none) == 0, "files are left");
    MPI_Finalize();
    if (rank == 0)
        printf("all well\n");
    return 0;
}
