/* The order in which ranks stand on a mesh, as text: "0,2,1,3" has rank 2 at place 1; "8-15,7-0" is shorter than its
 * sixteen numbers. */
#ifndef MC_MESH_ORDER_H
#define MC_MESH_ORDER_H

#include "base/base.h"

/* Reads each of n ranks once. *order is the caller's to free. ERR_INVALID_ARG names the first entry that is wrong. */
int mc_order_parse(const char *text, int32_t n, int32_t **order);
/* Marks some of n ranks: "0-3,8". false: it is no list of such, or has one twice. */
bool mc_order_take(const char *text, int32_t n, bool *taken);
/* Text from which mc_order_parse reads the same; the caller frees it. NULL: there is no memory. */
char *mc_order_print(const int32_t *order, int32_t n);

#endif
