/* Settings as rank 0 sends them, and the texts in them: the mesh, transports, links, strategies, and those that only
 * switch something. */
#include "fuzz/fuzz.h"
#include "runtime/create/create.h"
#include "runtime/diagnose/explain.h"
#include "runtime/jobs/jobs.h"

enum { MOST_RANKS = 64 };

static void check_packed(const mc_settings_t *settings)
{
    const size_t bytes = mc_settings_bytes(settings);
    mc_settings_t again = {0};
    char *const packed = malloc(bytes), *const repacked = malloc(bytes);
    FUZZ_CHECK(packed && repacked, "no memory");
    mc_settings_pack(settings, packed);
    FUZZ_CHECK(mc_settings_unpack(&again, packed, bytes) == MESHCOLL_OK, "%zu bytes", bytes);
    FUZZ_CHECK(mc_settings_bytes(&again) == bytes, "%zu bytes", bytes);
    mc_settings_pack(&again, repacked);
    FUZZ_CHECK(memcmp(packed, repacked, bytes) == 0, "%zu bytes", bytes);
    mc_settings_free(&again);
    free(repacked);
    free(packed);
}

static void read_texts(mc_settings_t *settings)
{
    char tls[MC_MAX_DIMS][MC_TLS_TEXT];
    int32_t machine[MOST_RANKS] = {0};
    mc_mesh_t mesh;
    meshcoll_t *handle;
    const char *const text = settings->mesh ? settings->mesh : "box=2,gpu=2";
    if (!fuzz_is_small(text) || mc_mesh_parse(text, &mesh) || mesh.size > MOST_RANKS)
        return;
    if (mc_boxes_transports(settings->transports, machine, &mesh, tls) == MESHCOLL_OK)
        for (int32_t d = 0; d < mesh.ndims; d++)
            FUZZ_CHECK(memchr(tls[d], '\0', MC_TLS_TEXT) && tls[d][0], "dimension %d", d);
    settings->progress = NULL; /* starts a thread */
    if (mc_handle_open(&mesh, 0, settings, NULL, &handle) == MESHCOLL_OK)
        mc_job_free(handle->job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mc_settings_t settings = {0};
    char *const bytes = malloc(size ? size : 1);
    FUZZ_CHECK(bytes, "no memory");
    if (size > 0)
        memcpy(bytes, data, size);
    if (mc_settings_unpack(&settings, bytes, size) == MESHCOLL_OK) {
        check_packed(&settings);
        read_texts(&settings);
    }
    mc_settings_free(&settings);
    mc_mesh_forget_boxes();
    free(bytes);
    return 0;
}
