#include "job/bootstrap/bootstrap.h"

#include "job/bootstrap/tree.h"
#include "job/network/wire.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* All ranks create meshes in the same order; two bootstraps on one port are told apart by this. */
static _Atomic uint32_t generations;

int mc_bootstrap_open(const mc_environment_t *env, mc_bootstrap_t **bootstrap)
{
    mc_tree_t *const tree = malloc(sizeof *tree);
    if (!tree)
        return mc_fail_memory("a bootstrap");
    mc_tree_init(tree, env);
    tree->self.generation = atomic_fetch_add(&generations, 1);
    const int status = env->self.size > 1 ? mc_join(env, tree) : MESHCOLL_OK;
    /* no greeting follows */
    explicit_bzero(tree->self.key, sizeof tree->self.key);
    if (status) {
        mc_bootstrap_close(tree);
        return status;
    }
    *bootstrap = tree;
    return MESHCOLL_OK;
}

int mc_bootstrap_open_env(int (*check)(void), mc_bootstrap_t **bootstrap)
{
    mc_environment_t env;
    int status = mc_environment_read(&env);
    env.check = check;
    if (!status)
        status = mc_bootstrap_open(&env, bootstrap);
    explicit_bzero(&env, sizeof env);
    return status;
}

void mc_bootstrap_close(void *bootstrap)
{
    mc_tree_close(bootstrap);
    free(bootstrap);
}

static int allgather(void *context, const void *in, void *out, size_t bytes)
{
    mc_tree_t *const tree = context;
    const double grace = tree->complete ? 0 : MC_TREE_FIRST;
    const double deadline = tree->timeout > 0 ? mc_now() + tree->timeout + grace : MC_WIRE_FOREVER;
    const int status = mc_tree_allgather(tree, in, out, bytes, deadline);
    tree->complete |= !status;
    return status;
}

meshcoll_oob_t mc_bootstrap_oob(mc_bootstrap_t *bootstrap)
{
    return (meshcoll_oob_t){.rank = bootstrap->self.rank,
                            .size = bootstrap->self.size,
                            .context = bootstrap,
                            .allgather = allgather};
}

const mc_endpoint_t *mc_bootstrap_reached(mc_bootstrap_t *b)
{
    for (int i = -1; i < MC_FANOUT; i++) {
        const int fd = i < 0 ? b->parent.fd : b->child[i].fd;
        if (fd >= 0 && !mc_wire_own(fd, &b->reached) && !mc_wire_is_loopback(&b->reached))
            break;
    }
    return b->reached.family ? &b->reached : NULL;
}

void mc_bootstrap_made(mc_bootstrap_t *bootstrap, double seconds)
{
    bootstrap->made = true;
    bootstrap->timeout = seconds;
}

const char *mc_bootstrap_failure(const mc_bootstrap_t *bootstrap)
{
    return bootstrap->broken ? bootstrap->why : NULL;
}
