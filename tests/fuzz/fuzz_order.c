/* Orders of ranks. The first line is how many there are. */
#include "fuzz/fuzz.h"
#include "mesh/rank_order.h"

enum { MOST_RANKS = 1 << 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const number = fuzz_text(data, size), *const text = fuzz_cut_line(number);
    const long ranks = strtol(number, NULL, 10);
    const int32_t n = ranks < 1 ? 1 : ranks > MOST_RANKS ? MOST_RANKS : (int32_t)ranks;
    int32_t *order, *again;
    if (mc_order_parse(text, n, &order) == MESHCOLL_OK) {
        char *const printed = mc_order_print(order, n);
        FUZZ_CHECK(printed && strlen(printed) <= strlen(text), "%s is longer than %s", printed,
                   text);
        FUZZ_CHECK(mc_order_parse(printed, n, &again) == MESHCOLL_OK, "%s", printed);
        FUZZ_CHECK(memcmp(order, again, (size_t)n * sizeof *order) == 0, "%s", printed);
        free(printed);
        free(order);
        free(again);
    }
    free(number);
    return 0;
}
