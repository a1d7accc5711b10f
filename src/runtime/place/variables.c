#include "runtime/place/variables.h"

#include "base/nearest.h"
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
    "MESHCOLL_GPU_EXECUTOR", "MESHCOLL_GPU_LL_SLOT", "MESHCOLL_GPU_SLOT", "MESHCOLL_HOST_ID",
    "MESHCOLL_LAUNCHER", "MESHCOLL_LIBCUDA", "MESHCOLL_LIBNVML", "MESHCOLL_LOG",
    "MESHCOLL_MASTER_ADDR", "MESHCOLL_MASTER_PORT", "MESHCOLL_NET_DEVICES", "MESHCOLL_PORTS",
    "MESHCOLL_SECRET", "MESHCOLL_SECRET_FILE", "MESHCOLL_TUNE_FILE",
    /* of the benchmarks, the lab, the build of the Python package, and the tests */
    "MESHCOLL_BUILD_DIR", "MESHCOLL_DIR", "MESHCOLL_FAKECUDA", "MESHCOLL_KILLS", "MESHCOLL_LAB",
    "MESHCOLL_LAB_DIR", "MESHCOLL_LAB_EXEC", "MESHCOLL_LAB_HOLDER", "MESHCOLL_LIBNCCL",
    "MESHCOLL_NO_DOUBLE", "MESHCOLL_ON_DOUBLE", "MESHCOLL_TESTS"};

bool mc_variable_known(const char *name, const char **nearest)
{
    static char strategy[MESHCOLL_COLLECTIVES][STRATEGY]; /* the same whoever writes it */
    mc_nearest_t near = mc_nearest(name, strlen(name));
    for (size_t i = 0; i < MC_COUNT(names); i++)
        mc_nearest_try(&near, names[i]);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        snprintf(strategy[c], sizeof strategy[c], "MESHCOLL_STRATEGY_%s",
                 meshcoll_collective_name((meshcoll_collective_t)c));
        for (char *at = strategy[c]; *at; at++)
            *at = mc_upper(*at);
        mc_nearest_try(&near, strategy[c]);
    }
    *nearest = near.found;
    return near.least == 0;
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
