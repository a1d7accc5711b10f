/* Numbers in texts that are read back: variables, files, stores, JSON. They have a decimal point whatever locale the
 * program has set, by setlocale or for this thread. */
#ifndef MC_BASE_NUMBER_H
#define MC_BASE_NUMBER_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

#if defined(__GNUC__)
#define MC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MC_PRINTF(fmt, args)
#endif

/* strtod and snprintf in the C locale. */
double mc_number_read(const char *text, char **end);
int mc_number_print(char *buffer, size_t capacity, const char *format, ...) MC_PRINTF(3, 4);
int mc_number_vprint(char *buffer, size_t capacity, const char *format, va_list args);

/* The C locale for this thread, around more of them, or around libraries that read texts. Returns what to go back to. */
locale_t mc_number_enter(void);
void mc_number_leave(locale_t before);

/* Returns the capital letter of the C locale: a Turkish locale has another one of i. */
static inline char mc_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

#endif
