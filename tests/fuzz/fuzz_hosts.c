/* Slurm's lists of hosts. */
#include "fuzz/fuzz.h"
#include "job/environment/environment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const list = fuzz_text(data, size), host[MC_ENVIRONMENT_HOST], again[MC_ENVIRONMENT_HOST];
    if (mc_environment_first_host(list, host)) {
        FUZZ_CHECK(host[0] && strlen(host) < sizeof host && !strpbrk(host, ",[] \n"), "%s", host);
        FUZZ_CHECK(mc_environment_first_host(host, again) && strcmp(host, again) == 0, "%s", host);
    }
    free(list);
    return 0;
}
