/*
 * Elements of any datatype as numbers, by definitions of the tests' own: nothing here comes from the
 * library's conversions.
 */
#ifndef MC_TEST_ELEMENT_H
#define MC_TEST_ELEMENT_H

#include <meshcoll/meshcoll.h>

#include <stdbool.h>
#include <stddef.h>

/* A number, or the parts of a complex one, or value and index. */
typedef struct {
    double a, b;
} mc_number_t;

bool mc_is_complex(meshcoll_datatype_t type);
bool mc_is_pair(meshcoll_datatype_t type);
bool mc_is_integer(meshcoll_datatype_t type);
/* Floating point of 16 or 8 bits. */
bool mc_is_narrow(meshcoll_datatype_t type);

/* Floating point: rounded to nearest, ties to even. Integers: cut to their bits. Padding is kept. */
void mc_element_set(meshcoll_datatype_t type, void *at, size_t i, mc_number_t number);
mc_number_t mc_element_get(meshcoll_datatype_t type, const void *at, size_t i);

/* The same number, or both NaN; zeros of either sign are the same. */
bool mc_element_same(meshcoll_datatype_t type, const void *x, const void *y, size_t i);

/* The `turn`-th of the operations that take `type`, round and round. */
meshcoll_op_t mc_element_op(meshcoll_datatype_t type, int turn);

#endif
