/* Tables with aligned columns, also for UTF-8 text such as Greek letters. */
#ifndef MC_BASE_TABLE_H
#define MC_BASE_TABLE_H

#include "base/base.h"

#include <stdio.h>

typedef struct {
    const char *align; /* one letter per column: l (left) or r (right) */
    uint32_t columns;
    char **cell;
    uint32_t n_cells, capacity;
    bool failed; /* out of memory: later calls do nothing, and mc_table_print reports it */
    bool breaks; /* lines of over MC_PAGE columns: the last cell continues below itself */
} mc_table_t;

enum { MC_PAGE = 80 };

mc_table_t mc_table(const char *align);
/* Appends cells, row by row: one, or those that tabs separate. */
void mc_table_add(mc_table_t *table, const char *format, ...) MC_PRINTF(2, 3);
/* A time in a cell; the rate of a time for each byte, which a cost of zero has none of. */
void mc_table_add_seconds(mc_table_t *table, double seconds);
void mc_table_add_rate(mc_table_t *table, double seconds);
/* Prints the table with `indent` spaces before each row, and frees it. */
int mc_table_print(mc_table_t *table, int indent, FILE *out);
/* Prints words from column `at` on; further lines begin at column `indent`. The last ends there, without a newline.
 * Returns the column after the last word. */
int mc_print_words(const char *text, int at, int indent, FILE *out);

mc_printed_t mc_print_seconds(double seconds); /* "1.23 us" */
mc_printed_t mc_print_count(uint64_t count);   /* "1,234,567" */

#endif
