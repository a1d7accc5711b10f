/* The JSON file of tuned links, with an entry of the cluster "gpu=2 on 1 machine with 1 core of c, gpu=shm". */
#include "fuzz/fuzz.h"
#include "runtime/create/tuned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mc_cluster_t cluster = {.cores = 1, .machines = 1, .cpu = "c", .tls = {"shm"}};
    mc_links_t links;
    char *found = NULL;
    FUZZ_CHECK(mc_mesh_parse("gpu=2", &cluster.mesh) == MESHCOLL_OK, "a mesh");
    /* exactly these bytes, without a NUL behind them */
    char *const text = malloc(size ? size : 1);
    FUZZ_CHECK(text, "no memory");
    if (size > 0)
        memcpy(text, data, size);
    if (mc_tuned_parse("links.json", text, size, &cluster, &found) == MESHCOLL_OK && found) {
        FUZZ_CHECK(mc_links_parse(found, &cluster.mesh, &links) == MESHCOLL_OK, "%s", found);
        mc_links_free(&links);
    }
    free(found);
    free(text);
    return 0;
}
