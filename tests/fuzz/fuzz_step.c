/* Files of training steps. */
#include "fuzz/fuzz.h"
#include "simulate/step.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char first[64 * MC_STEP_BUCKETS], second[64 * MC_STEP_BUCKETS];
    static mc_gradients_t g, again, cut;
    char *const text = fuzz_text(data, size);
    if (mc_gradients_parse("step", text, strlen(text), &g) == MESHCOLL_OK) {
        mc_text_t a = mc_text(first, sizeof first), b = mc_text(second, sizeof second);
        mc_gradients_print(&g, &a);
        FUZZ_CHECK(mc_gradients_parse("again", first, strlen(first), &again) == MESHCOLL_OK, "%s",
                   first);
        mc_gradients_print(&again, &b);
        FUZZ_CHECK(strcmp(first, second) == 0, "%s", first);
        for (uint32_t n = 1; n <= 5; n++) {
            mc_gradients_cut(&g, n, &cut);
            FUZZ_CHECK(mc_gradients_bytes(&g) < n || mc_gradients_check("cut", &cut) == MESHCOLL_OK,
                       "%u", n);
            FUZZ_CHECK(cut.bucket[n - 1].ready == g.bucket[g.n - 1].ready, "%u", n);
        }
    }
    free(text);
    return 0;
}
