/* Texts of meshes. */
#include "fuzz/fuzz.h"
#include "mesh/mesh.h"

enum { MOST_RANKS = 1 << 14 };

static void check_ranks(const mc_mesh_t *mesh)
{
    for (int32_t r = 0; r < mesh->size; r += 1 + mesh->size / 64) {
        int32_t coord[MC_MAX_DIMS];
        const int32_t place = mc_mesh_place(mesh, r);
        FUZZ_CHECK(place >= 0 && place < mc_mesh_places(mesh), "rank %d", r);
        FUZZ_CHECK(mc_mesh_rank_at(mesh, place) == r, "rank %d", r);
        mc_mesh_coords(mesh, r, coord);
        FUZZ_CHECK(mc_mesh_rank(mesh, coord) == r, "rank %d", r);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_text(data, size), buffer[MC_MESH_TEXT];
    mc_mesh_t mesh, again;
    if (fuzz_is_small(text) && mc_mesh_parse(text, &mesh) == MESHCOLL_OK) {
        const char *const printed = mc_mesh_text(&mesh, buffer);
        if (strlen(printed) <= MC_MESH_MOST_READ) {
            FUZZ_CHECK(mc_mesh_parse(printed, &again) == MESHCOLL_OK, "%s", printed);
            FUZZ_CHECK(memcmp(&mesh, &again, sizeof mesh) == 0, "%s", printed);
        }
        FUZZ_CHECK(mc_mesh_check(&mesh) == MESHCOLL_OK, "%s", printed);
        if (mesh.size <= MOST_RANKS)
            check_ranks(&mesh);
    }
    mc_mesh_forget_boxes();
    free(text);
    return 0;
}
