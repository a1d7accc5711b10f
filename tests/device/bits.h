/* Results of the device executor's text beside those of the host's kernels and executor, bit by bit. */
#ifndef MC_TEST_BITS_H
#define MC_TEST_BITS_H

#include <stdbool.h>

/* Every datatype and operation. */
bool mc_bits_of_reductions(void);
/* Calls whose results depend on the order and the brackets of their sums. */
bool mc_bits_of_calls(void);

#endif
