/* Slurm's lists of hosts. */
#include "fuzz/fuzz.h"
#include "job/environment/environment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const list = fuzz_text(data, size), host[MC_ENVIRONMENT_HOST], again[MC_ENVIRONMENT_HOST];
    static const uint64_t which[] = {0, 1, 2, 7, 1000000};
    for (size_t i = 0; i < MC_COUNT(which); i++) {
        if (mc_hosts_get(list, which[i], host)) {
            FUZZ_CHECK(host[0] && strlen(host) < sizeof host && !strpbrk(host, ",[] \n"), "%s",
                       host);
            FUZZ_CHECK(mc_hosts_get(host, 0, again) && strcmp(host, again) == 0, "%s", host);
            FUZZ_CHECK(!mc_hosts_get(host, 1, again), "%s is one host", host);
        }
    }
    free(list);
    return 0;
}
