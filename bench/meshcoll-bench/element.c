/* Whole numbers as elements of any datatype. */
#include "bench.h"

#include "runtime/element/narrow.h"

#include <string.h>

/* Bits of the largest number up to which all are exact; the bytes of the first part, and of a second one
 * (imaginary, or an index). */
static const struct {
    int exact_bits, first, second;
} format[MESHCOLL_DATATYPES] = {
    [MESHCOLL_FLOAT32] = {24, 4, 0},       [MESHCOLL_FLOAT64] = {24, 8, 0},
    [MESHCOLL_INT8] = {7, 1, 0},           [MESHCOLL_INT16] = {15, 2, 0},
    [MESHCOLL_INT32] = {24, 4, 0},         [MESHCOLL_INT64] = {24, 8, 0},
    [MESHCOLL_UINT8] = {8, 1, 0},          [MESHCOLL_UINT16] = {16, 2, 0},
    [MESHCOLL_UINT32] = {24, 4, 0},        [MESHCOLL_UINT64] = {24, 8, 0},
    [MESHCOLL_FLOAT16] = {11, 2, 0},       [MESHCOLL_BFLOAT16] = {8, 2, 0},
    [MESHCOLL_FLOAT8_E4M3] = {4, 1, 0},    [MESHCOLL_FLOAT8_E5M2] = {3, 1, 0},
    [MESHCOLL_COMPLEX64] = {24, 4, 4},     [MESHCOLL_COMPLEX128] = {24, 8, 8},
    [MESHCOLL_FLOAT32_INT32] = {24, 4, 4}, [MESHCOLL_FLOAT64_INT32] = {24, 8, 4},
    [MESHCOLL_INT32_INT32] = {24, 4, 4},   [MESHCOLL_INT64_INT32] = {24, 8, 4},
    [MESHCOLL_FLOAT64_INT64] = {24, 8, 8}, [MESHCOLL_INT64_INT64] = {24, 8, 8},
    [MESHCOLL_BOOL] = {8, 1, 0},
};

int element_exact_bits(meshcoll_datatype_t datatype)
{
    return format[datatype].exact_bits;
}

bool element_is_complex(meshcoll_datatype_t datatype)
{
    return datatype == MESHCOLL_COMPLEX64 || datatype == MESHCOLL_COMPLEX128;
}

static void put_integer(char *at, int bytes, uint64_t number)
{
    const uint8_t one = (uint8_t)number;
    const uint16_t two = (uint16_t)number;
    const uint32_t four = (uint32_t)number;
    const void *const from = bytes == 1   ? (const void *)&one
                             : bytes == 2 ? (const void *)&two
                             : bytes == 4 ? (const void *)&four
                                          : (const void *)&number;
    memcpy(at, from, (size_t)bytes);
}

static void put_float(char *at, int bytes, uint64_t number)
{
    const float single = (float)number;
    const double twice = (double)number;
    memcpy(at, bytes == 4 ? (const void *)&single : (const void *)&twice, (size_t)bytes);
}

void element_put(meshcoll_datatype_t datatype, char *at, pair_t number)
{
    const int first = format[datatype].first, second = format[datatype].second;
    switch (datatype) {
    case MESHCOLL_FLOAT16:
        put_integer(at, 2, float16_narrow((float)number.a));
        return;
    case MESHCOLL_BFLOAT16:
        put_integer(at, 2, bfloat16_narrow((float)number.a));
        return;
    case MESHCOLL_FLOAT8_E4M3:
        put_integer(at, 1, float8_e4m3_narrow((float)number.a));
        return;
    case MESHCOLL_FLOAT8_E5M2:
        put_integer(at, 1, float8_e5m2_narrow((float)number.a));
        return;
    case MESHCOLL_BOOL:
        put_integer(at, 1, number.a != 0);
        return;
    case MESHCOLL_FLOAT32:
    case MESHCOLL_FLOAT64:
    case MESHCOLL_COMPLEX64:
    case MESHCOLL_COMPLEX128:
    case MESHCOLL_FLOAT32_INT32:
    case MESHCOLL_FLOAT64_INT32:
    case MESHCOLL_FLOAT64_INT64:
        put_float(at, first, number.a);
        break;
    default:
        put_integer(at, first, number.a);
    }
    if (element_is_complex(datatype))
        put_float(at + first, second, number.b);
    else if (second)
        put_integer(at + first, second, number.b);
}

/* Padding behind a pair may be anything. */
bool element_is(meshcoll_datatype_t datatype, const char *at, pair_t number)
{
    char right[16];
    element_put(datatype, right, number);
    return memcmp(at, right, (size_t)(format[datatype].first + format[datatype].second)) == 0;
}
