/* Columns that align, for text with Greek letters in it too. */
#ifndef MC_BASE_TABLE_H
#define MC_BASE_TABLE_H

#include "base/base.h"

#include <stdio.h>

typedef struct {
    const char *align; /* a letter a column: l or r */
    int columns;
    char **cell;
    int n_cells, capacity;
    bool failed; /* out of memory: later calls do nothing */
} mc_table_t;

mc_table_t mc_table(const char *align);
/* The next cell, row by row. */
void mc_table_add(mc_table_t *table, const char *format, ...) MC_PRINTF(2, 3);
/* Prints with `indent` spaces before each row, and frees. */
int mc_table_print(mc_table_t *table, int indent, FILE *out);

/* Characters of a UTF-8 text. */
int mc_text_width(const char *text);

/* "1.23 us", into `buffer`, which is returned. */
const char *mc_print_seconds(double seconds, char *buffer, size_t capacity);
/* "1,234,567" */
const char *mc_print_count(uint64_t count, char *buffer, size_t capacity);

#endif
