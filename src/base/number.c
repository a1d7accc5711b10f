#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>

/* The C locale is a constant of the C library: it takes no memory. */
locale_t mc_number_enter(void)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c ? uselocale(c) : (locale_t)0;
}

void mc_number_leave(locale_t before)
{
    if (before)
        uselocale(before);
}

double mc_number_read(const char *text, char **end)
{
    const locale_t before = mc_number_enter();
    char *after;
    double number = strtod(text, &after);
    mc_number_leave(before);
    for (char *at = (char *)text; at < after; at++)
        if (*at == 'x' || *at == 'X') { /* 0x10 is 0, and what follows is no part of it */
            number = 0;
            after = at;
        }
    if (end)
        *end = after;
    return number;
}

int mc_number_vprint(char *buffer, size_t capacity, const char *format, va_list args)
{
    const locale_t before = mc_number_enter();
    const int n = vsnprintf(buffer, capacity, format, args);
    mc_number_leave(before);
    return n;
}

int mc_number_print(char *buffer, size_t capacity, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = mc_number_vprint(buffer, capacity, format, args);
    va_end(args);
    return n;
}
