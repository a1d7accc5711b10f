#include "runtime/place/variables.h"

#include "base/system/log.h"
#include "runtime/place/settings.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NAME = 48, STRATEGY = 64 };

/* tests/cli/test_reference.sh compares them with what sources read. */
static const char *const names[] = {
#define X(field, name) name,
    MC_GIVEN_TABLE(X)
#undef X
        "MESHCOLL_BOOTSTRAP_TIMEOUT",
    "MESHCOLL_ADAPT", "MESHCOLL_CALIBRATE", "MESHCOLL_GPU_BLOCKS", "MESHCOLL_GPU_DIRECT",
    "MESHCOLL_GPU_EXECUTOR", "MESHCOLL_GPU_LL_SLOT", "MESHCOLL_GPU_SLOT", "MESHCOLL_LAUNCHER",
    "MESHCOLL_LIBCUDA", "MESHCOLL_LIBNVML", "MESHCOLL_LOG", "MESHCOLL_MASTER_ADDR",
    "MESHCOLL_MASTER_PORT", "MESHCOLL_NET_DEVICES", "MESHCOLL_PORTS", "MESHCOLL_SECRET",
    "MESHCOLL_SECRET_FILE", "MESHCOLL_TUNE_FILE",
    /* of the benchmarks, the lab, the build of the Python package, and the tests */
    "MESHCOLL_BUILD_DIR", "MESHCOLL_DIR", "MESHCOLL_FAKECUDA", "MESHCOLL_KILLS", "MESHCOLL_LAB",
    "MESHCOLL_LAB_DIR", "MESHCOLL_LAB_EXEC", "MESHCOLL_LAB_HOLDER", "MESHCOLL_LIBNCCL",
    "MESHCOLL_NO_DOUBLE", "MESHCOLL_ON_DOUBLE", "MESHCOLL_TESTS"};

/* How many letters are put in, left out or replaced to make one of the other (Levenshtein 1966); of at most MOST_NAME. */
static size_t distance(const char *a, const char *b)
{
    size_t row[MOST_NAME + 1];
    const size_t n = strlen(b);
    for (size_t i = 0; i <= n; i++)
        row[i] = i;
    for (; *a; a++) {
        size_t diagonal = row[0]++;
        for (size_t i = 1; i <= n; i++) {
            const size_t replaced = diagonal + (*a != b[i - 1]);
            const size_t one = row[i - 1] < row[i] ? row[i - 1] + 1 : row[i] + 1;
            diagonal = row[i];
            row[i] = replaced < one ? replaced : one;
        }
    }
    return row[n];
}

static void take_nearer(const char *name, const char *known, size_t *least, const char **nearest)
{
    const size_t d = strlen(name) <= MOST_NAME ? distance(name, known) : MOST_NAME;
    if (d < *least) {
        *least = d;
        *nearest = known;
    }
}

bool mc_variable_known(const char *name, const char **nearest)
{
    static char strategy[MESHCOLL_COLLECTIVES][STRATEGY]; /* the same whoever writes it */
    size_t least = strlen(name) / 4 + 1;                  /* further off it is another word */
    const char *found = NULL;
    for (size_t i = 0; i < MC_COUNT(names); i++)
        take_nearer(name, names[i], &least, &found);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        snprintf(strategy[c], sizeof strategy[c], "MESHCOLL_STRATEGY_%s",
                 meshcoll_collective_name((meshcoll_collective_t)c));
        for (char *at = strategy[c]; *at; at++)
            *at = mc_upper(*at);
        take_nearer(name, strategy[c], &least, &found);
    }
    *nearest = found;
    return least == 0;
}

void mc_variables_check(void)
{
    static atomic_flag checked = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&checked))
        return;
    for (char *const *at = environ; at && *at; at++) {
        char name[2 * MOST_NAME];
        const size_t n = strcspn(*at, "=");
        const char *nearest;
        if (strncmp(*at, "MESHCOLL_", 9) != 0 || n >= sizeof name)
            continue;
        memcpy(name, *at, n);
        name[n] = '\0';
        if (mc_variable_known(name, &nearest))
            continue;
        if (nearest)
            mc_log(MC_LOG_WARN, "%s means nothing: did you mean %s?", name, nearest);
        else
            mc_log(MC_LOG_WARN, "%s means nothing: man 7 meshcoll lists the variables", name);
    }
}
