/* Minima and maxima have one result, whatever the order and the brackets of the operands: a NaN wins, and -0 is
 * less than +0; of pairs with a NaN the lowest index. In every instruction set; tests/device compares GPUs' kernels
 * with these. */
#include "runtime/element/datatype.h"
#include "support/element.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { NUMBERS = 9, ELEMENT = 16 };
typedef struct {
    _Alignas(16) unsigned char at[ELEMENT];
} element_t;

/* The last one is a NaN of another payload and sign, of types that have one. */
static element_t number(meshcoll_datatype_t type, int i)
{
    static const double of[NUMBERS - 1] = {NAN, -INFINITY, -2, -0.0, 0.0, 1, INFINITY, NAN};
    const size_t bytes = meshcoll_datatype_size(type);
    element_t e = {{0}};
    if (i < NUMBERS - 1)
        mc_element_set(type, e.at, 0, (mc_number_t){of[i], 0});
    else
        memset(e.at, 0xff, bytes);
    return e;
}

static element_t reduced(mc_kernel_t kernel, element_t x, element_t y)
{
    element_t result = {{0}};
    kernel(result.at, x.at, y.at, 1);
    return result;
}

static bool is_same(meshcoll_datatype_t type, element_t x, element_t y)
{
    return mc_is_pair(type) ? mc_element_same(type, x.at, y.at, 0)
                            : memcmp(x.at, y.at, meshcoll_datatype_size(type)) == 0;
}

static void check_triple(const mc_kernels_t *set, meshcoll_datatype_t type, meshcoll_op_t op,
                         element_t x, element_t y, element_t z)
{
    const mc_kernel_t kernel = set->of[type].kernel[op];
    const char *const name = meshcoll_datatype_name(type), *const what = meshcoll_op_name(op);
    const double a = mc_element_get(type, x.at, 0).a, b = mc_element_get(type, y.at, 0).a;
    cr_assert(is_same(type, reduced(kernel, x, y), reduced(kernel, y, x)),
              "%s: %s of %s: %g and %g in both orders", set->name, what, name, a, b);
    cr_assert(is_same(type, reduced(kernel, reduced(kernel, x, y), z),
                      reduced(kernel, x, reduced(kernel, y, z))),
              "%s: %s of %s: (%g %g) %g in other brackets", set->name, what, name, a, b,
              mc_element_get(type, z.at, 0).a);
    const double result = mc_element_get(type, reduced(kernel, x, y).at, 0).a;
    cr_assert(isnan(result) == (isnan(a) || isnan(b)), "%s: %s of %s: %g of %g and %g", set->name,
              what, name, result, a, b);
}

static void check_triples(const mc_kernels_t *set, meshcoll_datatype_t type, meshcoll_op_t op)
{
    for (int i = 0; i < NUMBERS * NUMBERS * NUMBERS; i++)
        check_triple(set, type, op, number(type, i % NUMBERS), number(type, i / NUMBERS % NUMBERS),
                     number(type, i / NUMBERS / NUMBERS));
}

static element_t pair(meshcoll_datatype_t type, int value, int index)
{
    static const double of[] = {NAN, -1, 0, 0.5, INFINITY};
    element_t e = {{0}};
    mc_element_set(type, e.at, 0, (mc_number_t){of[value], index});
    return e;
}

static void check_pairs(const mc_kernels_t *set, meshcoll_datatype_t type, meshcoll_op_t op)
{
    for (int i = 0; i < 125; i++)
        for (int order = 0; order < 6; order++) {
            const int first = order / 2, second = (first + 1 + order % 2) % 3;
            check_triple(set, type, op, pair(type, i % 5, first), pair(type, i / 5 % 5, second),
                         pair(type, i / 25, 3 - first - second));
        }
}

Test(nan, extremes_do_not_depend_on_the_order)
{
    static const meshcoll_datatype_t numbers[] = {MESHCOLL_FLOAT16,     MESHCOLL_BFLOAT16,
                                                  MESHCOLL_FLOAT32,     MESHCOLL_FLOAT64,
                                                  MESHCOLL_FLOAT8_E4M3, MESHCOLL_FLOAT8_E5M2};
    static const meshcoll_datatype_t pairs[] = {MESHCOLL_FLOAT32_INT32, MESHCOLL_FLOAT64_INT32,
                                                MESHCOLL_FLOAT64_INT64};
    for (int i = 0; i < mc_n_kernels; i++) {
        if (!mc_kernels[i]->runs_here())
            continue;
        for (size_t t = 0; t < MC_COUNT(numbers); t++) {
            check_triples(mc_kernels[i], numbers[t], MESHCOLL_MIN);
            check_triples(mc_kernels[i], numbers[t], MESHCOLL_MAX);
        }
        for (size_t t = 0; t < MC_COUNT(pairs); t++) {
            check_pairs(mc_kernels[i], pairs[t], MESHCOLL_MINLOC);
            check_pairs(mc_kernels[i], pairs[t], MESHCOLL_MAXLOC);
        }
    }
}

Test(nan, zeros_have_an_order)
{
    const float zero = 0.0f, minus = -0.0f;
    float result;
    mc_kernel(MESHCOLL_FLOAT32, MESHCOLL_MAX)(&result, &minus, &zero, 1);
    cr_assert_not(signbit(result));
    mc_kernel(MESHCOLL_FLOAT32, MESHCOLL_MIN)(&result, &zero, &minus, 1);
    cr_assert(signbit(result));
}
