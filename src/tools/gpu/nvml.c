#include "tools/gpu/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool look_up(const mc_nvml_t *nvml, const char *name, void *function)
{
    void *const found = dlsym(nvml->library, name);
    memcpy(function, &found, sizeof found);
    return found;
}

static bool find_functions(mc_nvml_t *nvml)
{
    bool all = true;
#define LOOK_UP(member, symbol, parameters) all = look_up(nvml, #symbol, &nvml->member) && all;
    MC_NVML_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return all;
}

bool mc_nvml_open(mc_nvml_t *nvml, char *why, int capacity)
{
    const char *const given = getenv("MESHCOLL_LIBNVML");
    const char *const name = given && *given ? given : "libnvidia-ml.so.1";
    mc_nvml_t found = {0};
    if (strcmp(name, "off") == 0) {
        snprintf(why, (size_t)capacity, "MESHCOLL_LIBNVML is \"off\"");
        return false;
    }
    found.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!found.library) {
        snprintf(why, (size_t)capacity, "%s", dlerror());
        return false;
    }
    const bool all = find_functions(&found);
    const unsigned result = all ? found.init() : 0;
    if (all && result == 0) {
        *nvml = found;
        return true;
    }
    snprintf(why, (size_t)capacity,
             all ? "%s could not be initialised (%u)" : "%s lacks functions: it is too old", name,
             result);
    dlclose(found.library);
    return false;
}

void mc_nvml_close(mc_nvml_t *nvml)
{
    (void)nvml->shutdown();
    dlclose(nvml->library);
}
