#include "tools/common/ranks.h"

#include "base/gather.h"
#include "job/environment/launcher.h"

#include <stdlib.h>
#include <string.h>

bool mc_ranks_launched(void)
{
    mc_launcher_id_t launcher;
    int32_t rank, size;
    return mc_launcher_find(&launcher, &rank, &size) || launcher != MC_NO_LAUNCHER;
}

bool mc_ranks_first(void)
{
    mc_launcher_id_t launcher;
    int32_t rank, size;
    return mc_launcher_find(&launcher, &rank, &size) || rank == 0;
}

int mc_ranks_open(mc_ranks_t *ranks)
{
    const int status = mc_bootstrap_open_env(NULL, &ranks->bootstrap);
    if (!status)
        ranks->oob = mc_bootstrap_oob(ranks->bootstrap);
    return status;
}

void mc_ranks_close(mc_ranks_t *ranks)
{
    mc_bootstrap_close(ranks->bootstrap);
}

int mc_ranks_share(const meshcoll_oob_t *oob, void *data, size_t bytes)
{
    void *all = NULL;
    const int status = mc_gather(oob, MESHCOLL_OK, data, bytes, &all);
    if (!status)
        memcpy(data, all, bytes);
    free(all);
    return status;
}
