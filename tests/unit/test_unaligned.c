/* Kernels take operands that lie anywhere, as callers' buffers do. UBSan tells loads that promise more. */
#include "runtime/element/datatype.h"
#include "runtime/element/kernels.h"
#include "support/random.h"

#include <criterion/criterion.h>
#include <string.h>

enum { N = 37, SHIFT = 1, ROOM = (N + 1) * 16 };

/* The same as where operands are aligned, bit by bit: no byte is above 63, so that no float is a NaN. */
static void check_type(const mc_kernels_t *set, meshcoll_datatype_t type, mc_random_t *random)
{
    static _Alignas(64) unsigned char a[ROOM], b[ROOM], d[ROOM], x[ROOM], y[ROOM], z[ROOM];
    const char *const name = meshcoll_datatype_name(type);
    const mc_scale_t divide = set->of[type].divide;
    const size_t bytes = N * meshcoll_datatype_size(type);
    for (size_t i = 0; i < bytes; i++) {
        x[SHIFT + i] = a[i] = (unsigned char)mc_random_below(random, 64);
        y[SHIFT + i] = b[i] = (unsigned char)mc_random_below(random, 64);
    }
    for (int op = 0; op < MESHCOLL_OPS; op++) {
        const mc_kernel_t kernel = set->of[type].kernel[op];
        if (!kernel)
            continue;
        kernel(d, a, b, N);
        kernel(z + SHIFT, x + SHIFT, y + SHIFT, N);
        cr_expect_eq(memcmp(d, z + SHIFT, bytes), 0, "%s: %s of %s", set->name,
                     meshcoll_op_name((meshcoll_op_t)op), name);
    }
    if (!divide)
        return;
    divide(a, N, 3);
    divide(x + SHIFT, N, 3);
    cr_expect_eq(memcmp(a, x + SHIFT, bytes), 0, "%s: %s, divided", set->name, name);
}

Test(unaligned, operands_of_all_kernels)
{
    mc_random_t random = {1};
    for (int i = 0; i < mc_n_kernels; i++)
        for (int t = 0; t < MESHCOLL_DATATYPES && mc_kernels[i]->runs_here(); t++)
            check_type(mc_kernels[i], (meshcoll_datatype_t)t, &random);
}
