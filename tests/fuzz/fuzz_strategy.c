/* Texts of strategies: a line with a mesh, then the strategy, read for each collective. */
#include "compose/strategy/strategy.h"
#include "fuzz/fuzz.h"

enum { MOST_RANKS = 1 << 12 };

static void try_collective(const char *text, meshcoll_collective_t collective,
                           const mc_mesh_t *mesh)
{
    char printed[MC_STRATEGY_TEXT];
    mc_strategy_t s, again;
    if (mc_strategy_parse(text, collective, mesh, &s))
        return;
    mc_text_t print = mc_text(printed, sizeof printed);
    mc_strategy_print(&s, mesh, &print);
    FUZZ_CHECK(print.length < sizeof printed, "%s", printed);
    FUZZ_CHECK(mc_strategy_parse(printed, collective, mesh, &again) == MESHCOLL_OK, "%s", printed);
    FUZZ_CHECK(mc_strategy_equal(&s, &again), "%s", printed);
    (void)mc_strategy_check_order(&s, mesh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_text(data, size), *const strategy = fuzz_cut_line(text);
    mc_mesh_t mesh;
    if (fuzz_is_small(text) && mc_mesh_parse(text, &mesh) == MESHCOLL_OK && mesh.size <= MOST_RANKS)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
            try_collective(strategy, (meshcoll_collective_t)c, &mesh);
    mc_mesh_forget_boxes();
    free(text);
    return 0;
}
