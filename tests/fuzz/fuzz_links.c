/* Texts of links: a line with a mesh, then the links. */
#include "fuzz/fuzz.h"
#include "mesh/link/link.h"

static void check_links(const mc_links_t *links, const mc_mesh_t *mesh)
{
    static char printed[MC_LINKS_TEXT], printed_again[MC_LINKS_TEXT];
    mc_links_t again;
    mc_text_t text = mc_text(printed, sizeof printed);
    mc_links_print(links, mesh, &text);
    FUZZ_CHECK(text.length < sizeof printed, "%s", printed);
    FUZZ_CHECK(mc_links_parse(printed, mesh, &again) == MESHCOLL_OK, "%s", printed);
    text = mc_text(printed_again, sizeof printed_again);
    mc_links_print(&again, mesh, &text);
    FUZZ_CHECK(strcmp(printed, printed_again) == 0, "%s became %s", printed, printed_again);
    mc_links_free(&again);
    for (int32_t d = 0; d < mesh->ndims; d++)
        FUZZ_CHECK(mc_link_window(links, d) >= 0, "%s", printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_text(data, size), *const links_text = fuzz_cut_line(text);
    mc_mesh_t mesh;
    mc_links_t links;
    if (fuzz_is_small(text) && mc_mesh_parse(text, &mesh) == MESHCOLL_OK &&
        mc_links_parse(links_text, &mesh, &links) == MESHCOLL_OK) {
        check_links(&links, &mesh);
        mc_links_free(&links);
    }
    mc_mesh_forget_boxes();
    free(text);
    return 0;
}
