#include "runtime/execute/executor.h"

#include "base/system/descriptor.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1, for older C libraries */
#endif

#define SETTINGS "/sys/kernel/mm/transparent_hugepage/"

typedef struct {
    uintptr_t at, end;
} range_t;

static bool read_setting(const char *path, char *text, int size)
{
    FILE *const file = mc_descriptor_stream(open(path, O_RDONLY | O_CLOEXEC), "r");
    const bool read = file && fgets(text, size, file);
    if (file)
        fclose(file);
    return read;
}

/* Returns the bytes of a huge page; 0: the machine has none, or must not use them. */
static uintptr_t page_bytes(void)
{
    char text[64];
    if (!read_setting(SETTINGS "enabled", text, sizeof text) || strstr(text, "[never]"))
        return 0;
    return read_setting(SETTINGS "hpage_pmd_size", text, sizeof text)
               ? (uintptr_t)strtoull(text, NULL, 10)
               : 0;
}

static bool any_pulls(const mc_executor_t *x)
{
    for (uint32_t l = 0; l < x->n_lanes; l++)
        if (x->lane[l].n > 0 && x->lane[l].peer->transport->pulls)
            return true;
    return false;
}

static int compare(const void *a, const void *b)
{
    const range_t *const x = a, *const y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Lists the ranges that steps read and write, sorted by address. */
static uint32_t ranges_of(const mc_binding_t *b, range_t *range)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_spans; i++) {
        const uintptr_t from = (uintptr_t)b->from[i].at, to = (uintptr_t)b->to[i].at;
        if (from)
            range[n++] = (range_t){from, from + b->from[i].bytes};
        if (to && to != from)
            range[n++] = (range_t){to, to + b->to[i].bytes};
    }
    qsort(range, n, sizeof *range, compare);
    return n;
}

/* Are all small pages of the huge one in memory? Or sparse memory would grow. */
static bool is_resident(uintptr_t at, uintptr_t page)
{
    enum { SMALL = 4096, AT_ONCE = 512 };
    unsigned char in[AT_ONCE];
    for (uintptr_t end = at + page, bytes; at < end; at += bytes) {
        bytes = end - at < AT_ONCE * SMALL ? end - at : AT_ONCE * SMALL;
        memset(in, 1, sizeof in);                /* of larger pages fewer bytes are set */
        if (mincore((void *)at, bytes, in) != 0) /* NOLINT */
            return false;
        for (size_t i = 0; i < AT_ONCE; i++)
            if (!(in[i] & 1))
                return false;
    }
    return true;
}

/* Best effort: where the kernel refuses, pages stay as they are. */
static void collapse(range_t r, uintptr_t page)
{
    const uintptr_t first = (r.at + page - 1) / page * page, end = r.end / page * page;
    for (uintptr_t at = first; at < end; at += page)
        if (is_resident(at, page))
            (void)madvise((void *)at, page, MADV_COLLAPSE); /* NOLINT */
}

void mc_huge_pages(const mc_executor_t *x)
{
    const mc_binding_t *const b = x->binding;
    const uintptr_t page = any_pulls(x) ? page_bytes() : 0;
    range_t *const range = page ? malloc(2 * (size_t)b->n_spans * sizeof *range + 1) : NULL;
    if (!range)
        return;
    const uint32_t n = ranges_of(b, range);
    range_t whole = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (range[i].at > whole.end) {
            collapse(whole, page);
            whole = range[i];
        } else if (range[i].end > whole.end) {
            whole.end = range[i].end;
        }
    }
    collapse(whole, page);
    free(range);
}
