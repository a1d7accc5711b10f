/*
 * The links a new mesh takes: those of the file of tuned links, unless others are given.
 * With arguments (MESH LINKS): only that a mesh of this text finds these links.
 */
#include <meshcoll/mpi.h>

#include "runtime/create/tuned.h"
#include "runtime/handle/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char tuned_links[] = "box=alpha:7us;beta:20MB/s;gamma:1GB/s;ports:2;pulled:no,"
                                  "gpu=alpha:3us;beta:5GB/s;gamma:1GB/s;ports:1;pulled:yes";
static int rank, size;

static void expect(const char *what, const meshcoll_params_t *params, const char *expected)
{
    char text[MC_LINKS_TEXT], wanted[MC_LINKS_TEXT];
    mc_text_t printed = mc_text(text, sizeof text), printed_wanted = mc_text(wanted, sizeof wanted);
    meshcoll_t *mesh;
    mc_links_t links;
    if (meshcoll_create(MPI_COMM_WORLD, params, &mesh)) {
        printf("rank %d: %s: %s\n", rank, what, meshcoll_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    mc_links_print(&mesh->links, &mesh->mesh, &printed);
    if (mc_links_parse(expected, &mesh->mesh, &links))
        MPI_Abort(MPI_COMM_WORLD, 1);
    mc_links_print(&links, &mesh->mesh, &printed_wanted);
    if (strcmp(text, wanted) != 0) {
        printf("rank %d: %s: took %s, expected %s\n", rank, what, text, wanted);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    meshcoll_destroy(mesh);
}

/* A report says where links come from; all ranks know. */
static void expect_origin(const meshcoll_params_t *given, const char *origin)
{
    meshcoll_params_t params = *given;
    meshcoll_t *mesh;
    char *text;
    params.explain = "/dev/null";
    if (meshcoll_create(MPI_COMM_WORLD, &params, &mesh) || meshcoll_explain(mesh, &text)) {
        printf("rank %d: %s\n", rank, meshcoll_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (!strstr(text, origin)) {
        printf("rank %d: expected \"%s\" in:\n%s", rank, origin, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(text);
    meshcoll_destroy(mesh);
}

/* As `meshcoll tune` would, for ranks of one machine. */
static void write_file(const char *path)
{
    mc_place_t *const place = calloc((size_t)size, sizeof *place);
    const mc_settings_t settings = {.mesh = "box=2,gpu=2"};
    const mc_tuned_t tuned = {
        .links = tuned_links, .date = "today", .command = "test_tuned", .provenance = "a test"};
    mc_cluster_t cluster;
    if (!place || mc_cluster_find(&settings, place, size, &cluster) ||
        mc_tuned_write(path, &cluster, &tuned)) {
        printf("%s\n", meshcoll_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(place);
}

static void break_file(const char *path)
{
    FILE *const file = fopen(path, "w");
    if (!file || fputs("{", file) < 0 || fclose(file))
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void test_all(void)
{
    char path[] = "/tmp/meshcoll-tuned-XXXXXX";
    const meshcoll_params_t grid = {.size = sizeof grid, .mesh = "box=2,gpu=2"},
                            flat = {.size = sizeof flat, .mesh = "gpu=4"},
                            given = {.size = sizeof given, .mesh = "box=2,gpu=2", .links = "lab"};
    unsetenv("MESHCOLL_LINKS");
    unsetenv("MESHCOLL_TRANSPORTS");
    /* only rank 0 has the file, as on a cluster without shared homes */
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    expect("no file", &grid, NULL);
    expect_origin(&grid, "links: the preset generic, which is the default");
    if (rank == 0) {
        close(mkstemp(path)); /* a name of our own */
        unlink(path);
        write_file(path);
        setenv("MESHCOLL_TUNE_FILE", path, 1);
    }
    expect("the file", &grid, tuned_links);
    expect_origin(&grid, "links: measured by meshcoll tune, in /tmp/meshcoll-tuned-");
    expect("another mesh", &flat, NULL);
    expect("links as a parameter", &given, "lab");
    setenv("MESHCOLL_LINKS", "generic", 1);
    expect("links in the environment", &grid, "generic");
    expect_origin(&grid, "links: generic, given by MESHCOLL_LINKS");
    unsetenv("MESHCOLL_LINKS");
    if (rank == 0)
        break_file(path);
    expect("a broken file", &grid, NULL);
    if (rank == 0 && (unlink(path) || mkfifo(path, 0600)))
        MPI_Abort(MPI_COMM_WORLD, 1);
    expect("a FIFO", &grid, NULL);
    if (rank == 0)
        unlink(path);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc == 3) {
        const meshcoll_params_t params = {.size = sizeof params, .mesh = argv[1]};
        expect("the mesh", &params, argv[2]);
    } else if (size == 4) {
        test_all();
    } else {
        if (rank == 0)
            printf("skipped: test_tuned runs on 4 ranks, not %d\n", size);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        return 77;
    }
    if (rank == 0)
        printf("test_tuned: all right\n");
    MPI_Finalize();
    return 0;
}
