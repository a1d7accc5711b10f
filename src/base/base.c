#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Thread_local char last_error[512];

const char *meshcoll_last_error(void)
{
    return last_error;
}

const char *meshcoll_status_string(int status)
{
    switch (status) {
#define X(name, value, text) \
    case MESHCOLL_##name:    \
        return text;
        MESHCOLL_STATUS_TABLE(X)
#undef X
    default:
        return "unknown status";
    }
}

const char *meshcoll_version(void)
{
    return MESHCOLL_VERSION;
}

int mc_fail(int status, const char *format, ...)
{
    /* The arguments may point into last_error: a caller passes an error on with words added. */
    char fresh[sizeof last_error];
    va_list args;
    va_start(args, format);
    mc_number_vprint(fresh, sizeof fresh, format, args);
    va_end(args);
    memcpy(last_error, fresh, sizeof last_error);
    return status;
}

int meshcoll_fail(int status, const char *sentence)
{
    return mc_fail(status, "%s", sentence ? sentence : "");
}

int mc_fail_memory(const char *what)
{
    return mc_fail(MESHCOLL_ERR_NO_MEMORY, "out of memory for %s", what);
}

void *mc_grown(void *array, uint32_t n, uint32_t *capacity, size_t element)
{
    const uint32_t wanted = *capacity ? 2 * *capacity : 16;
    if (n < *capacity)
        return array;
    void *const grown = realloc(array, wanted * element);
    if (grown)
        *capacity = wanted;
    return grown;
}

int mc_array_add(void *array, uint32_t *n, uint32_t *capacity, const void *value, size_t element,
                 const char *what)
{
    void *at;
    memcpy(&at, array, sizeof at);
    char *const grown = mc_grown(at, *n, capacity, element);
    if (!grown)
        return mc_fail_memory(what);
    memcpy(grown + (*n)++ * element, value, element);
    memcpy(array, &grown, sizeof grown);
    return MESHCOLL_OK;
}

int mc_check_length(int status, const char *what, const char *text, size_t most)
{
    if (strnlen(text, most + 1) <= most)
        return MESHCOLL_OK;
    return mc_fail(status, "%s has more than %zu characters, the most that is read: shorten it",
                   what, most);
}

mc_text_t mc_text(char *buffer, size_t capacity)
{
    if (capacity > 0)
        buffer[0] = '\0';
    return (mc_text_t){.at = buffer, .capacity = capacity};
}

/* Removes the bytes at the end of a text of UTF-8 that are a part of a character: one is cut nowhere. */
static void drop_part(char *text, size_t n)
{
    size_t last = n;
    while (last > 0 && n - last < 3 && ((unsigned char)text[last - 1] & 0xc0) == 0x80)
        last--;
    const unsigned char lead = last > 0 ? (unsigned char)text[last - 1] : 0;
    const size_t wants = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (n - last < wants)
        text[last - 1] = '\0';
}

void mc_text_add(mc_text_t *text, const char *format, ...)
{
    const size_t used = text->length < text->capacity ? text->length : text->capacity;
    char *const end = text->capacity > 0 ? text->at + used : NULL;
    va_list args;
    va_start(args, format);
    const int n = mc_number_vprint(end, text->capacity - used, format, args);
    va_end(args);
    if (n > 0)
        text->length += (size_t)n;
    if (text->capacity > 0 && text->length >= text->capacity)
        drop_part(text->at, text->capacity - 1);
}

void mc_text_clean(char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            *text = ' ';
}

int mc_bitmap_init(mc_bitmap_t *map, uint32_t bits)
{
    uint64_t *const word = calloc((size_t)bits / 64 + 1, sizeof *word);
    if (!word)
        return mc_fail_memory("a bitmap");
    *map = (mc_bitmap_t){.word = word, .bits = bits};
    return MESHCOLL_OK;
}

void mc_bitmap_free(mc_bitmap_t *map)
{
    free(map->word);
    *map = (mc_bitmap_t){0};
}

/* The bits of word w that lie in [first, first + n). */
static uint64_t mask_of(uint32_t w, uint32_t first, uint32_t n)
{
    const uint64_t lo = (uint64_t)w * 64, end = (uint64_t)first + n;
    uint64_t mask = ~UINT64_C(0);
    if (first > lo)
        mask &= ~UINT64_C(0) << (first - lo);
    if (end < lo + 64)
        mask &= ~(~UINT64_C(0) << (end - lo));
    return mask;
}

void mc_bitmap_set(mc_bitmap_t *map, uint32_t first, uint32_t n)
{
    if (n == 0)
        return;
    const uint32_t w = first / 64, last = (first + n - 1) / 64;
    map->word[w] |= mask_of(w, first, n);
    if (w == last)
        return;
    memset(&map->word[w + 1], 0xff, (last - w - 1) * sizeof *map->word);
    map->word[last] |= mask_of(last, first, n);
}

/* Most words of a long run are empty or full: skip the population count for those. */
static uint32_t bits_in(uint64_t word)
{
    if (word == 0 || word == UINT64_MAX)
        return word ? 64 : 0;
    return (uint32_t)__builtin_popcountll(word);
}

uint32_t mc_bitmap_count(const mc_bitmap_t *map, uint32_t first, uint32_t n)
{
    if (n == 0)
        return 0;
    const uint32_t w = first / 64, last = (first + n - 1) / 64;
    uint32_t count = bits_in(map->word[w] & mask_of(w, first, n));
    if (w == last)
        return count;
    for (uint32_t i = w + 1; i < last; i++)
        count += bits_in(map->word[i]);
    return count + bits_in(map->word[last] & mask_of(last, first, n));
}

bool mc_bitmap_has(const mc_bitmap_t *map, uint32_t at)
{
    return (map->word[at / 64] >> (at % 64)) & 1;
}

double mc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int64_t mc_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const mc_unit_t mc_byte_units[MC_BYTE_UNITS] = {
    {"TB", 1e12},    {"GB", 1e9},     {"MB", 1e6},     {"KB", 1e3},     {"B", 1},
    {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"kB", 1e3}};

/* Returns what a number is multiplied by with this unit behind it; 0: nobody knows the unit. */
static double scale_of(const char *unit)
{
    static const char letters[] = "KMGT";
    const char *const letter = *unit ? strchr(letters, mc_upper(*unit)) : NULL;
    if (!*unit)
        return 1;
    if (letter && !unit[1])
        return (double)((uint64_t)1 << (10 * (letter - letters + 1)));
    for (size_t i = 0; i < MC_COUNT(mc_byte_units); i++)
        if (strcmp(unit, mc_byte_units[i].name) == 0)
            return mc_byte_units[i].value;
    return 0;
}

int mc_parse_bytes(const char *text, uint64_t *bytes)
{
    char *end = NULL;
    errno = 0;
    const bool decimal = isdigit((unsigned char)text[0]) && !strpbrk(text, "xX");
    const double number = decimal ? mc_number_read(text, &end) : -1;
    const double scale = end ? scale_of(end) : 0;
    if (errno || number < 0 || scale == 0 || number * scale >= 0x1p63)
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "a size is a number and optionally K, M, G or T, as in 64M; got '%s'", text);
    const double whole = round(number * scale); /* 1.001 is not exact, nor is 1000 times it */
    if (fabs(number * scale - whole) > whole * DBL_EPSILON)
        return mc_fail(MESHCOLL_ERR_PARSE, "a size is a whole number of bytes; got '%s'", text);
    *bytes = (uint64_t)whole;
    return MESHCOLL_OK;
}

static double scaled(double bytes, double step, size_t *unit)
{
    for (*unit = 0; bytes >= step && *unit + 1 < MC_DECIMAL_UNITS; (*unit)++)
        bytes /= step;
    return bytes;
}

mc_printed_t mc_print_bytes(double bytes)
{
    mc_printed_t printed;
    static const char *const binary[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    static const char *const decimal[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit;
    double number = scaled(bytes, 1024, &unit);
    const char *const *name = binary;
    const double exact = number < 10 ? 1000 : number < 100 ? 100 : 10;
    /* what was written as 8MB is shown so */
    if (fmod(number * exact, 1) != 0 && fmod(bytes, 1000) == 0) {
        number = scaled(bytes, 1000, &unit);
        name = decimal;
    }
    mc_number_print(printed.text, sizeof printed.text, "%.4g %s", number, name[unit]);
    return printed;
}
