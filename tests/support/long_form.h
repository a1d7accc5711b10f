/* scripts/test.sh runs the short form of tests that have two; with --all (MESHCOLL_TESTS=all) the long one. */
#ifndef MC_SUPPORT_LONG_FORM_H
#define MC_SUPPORT_LONG_FORM_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool long_form(void)
{
    const char *const tests = getenv("MESHCOLL_TESTS");
    return tests && strcmp(tests, "all") == 0;
}

#endif
