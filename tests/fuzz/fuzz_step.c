/* Files of training steps. */
#include "fuzz/fuzz.h"
#include "simulate/step.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mc_gradients_t g, cut;
    char *const text = fuzz_text(data, size);
    if (mc_gradients_parse("step", text, strlen(text), &g) == MESHCOLL_OK) {
        for (uint32_t n = 1; n <= 5; n++) {
            mc_gradients_cut(&g, n, &cut);
            for (uint32_t k = 1; k < n; k++)
                FUZZ_CHECK(cut.bucket[k].ready >= cut.bucket[k - 1].ready, "%u", n);
            FUZZ_CHECK(cut.bucket[n - 1].ready == g.bucket[g.n - 1].ready, "%u", n);
        }
    }
    free(text);
    return 0;
}
