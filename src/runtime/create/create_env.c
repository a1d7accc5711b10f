/* Creates a mesh from the environment of a launcher. */
#include <meshcoll/env.h>

#include "job/bootstrap/bootstrap.h"
#include "job/environment/launcher.h"
#include "runtime/create/create.h"
#include "runtime/jobs/jobs.h"

int meshcoll_env(int *rank, int *size)
{
    int32_t r, n;
    mc_launcher_id_t launcher;
    const int status = mc_launcher_find(&launcher, &r, &n);
    if (status)
        return status;
    if (rank)
        *rank = r;
    if (size)
        *size = n;
    return MESHCOLL_OK;
}

/* The sentence of a bootstrap that failed says more than that of the creation. */
static int create(mc_bootstrap_t *bootstrap, const meshcoll_params_t *params, meshcoll_t **mesh)
{
    const mc_creation_t creation = {.oob = mc_bootstrap_oob(bootstrap),
                                    .free_context = mc_bootstrap_close,
                                    .reached = mc_bootstrap_reached(bootstrap),
                                    .params = params,
                                    .of_environment = true,
                                    .tuned = true};
    int status = mc_handle_create(&creation, mesh);
    if (!status) {
        if (!(*mesh)->ranks.job_rank) /* else it is closed */
            mc_bootstrap_made(bootstrap, (double)(*mesh)->timeout_ms / 1e3);
        return MESHCOLL_OK;
    }
    if (mc_bootstrap_failure(bootstrap))
        status = mc_fail(status, "%s", mc_bootstrap_failure(bootstrap));
    mc_bootstrap_close(bootstrap);
    return status;
}

int meshcoll_create_env(const meshcoll_params_t *params, meshcoll_t **mesh)
{
    mc_bootstrap_t *bootstrap;
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_create_env: expected a pointer to a mesh");
    int status = mc_bootstrap_open_env(mc_jobs_check_ranks, &bootstrap);
    if (!status)
        status = create(bootstrap, params, mesh);
    /* others may have heard first, and ended this */
    return status && mc_jobs_check_ranks() ? MESHCOLL_ERR_PEER : status;
}
