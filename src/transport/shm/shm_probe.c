/* Finds out what access the ranks of one machine have to each other's memory: each tries all
 * others. */
#include "transport/shm/shm_memory.h"

#include "base/gather.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What each rank publishes. Ranks share memory by System V key if they are of one user and in
 * one IPC namespace; UCX's sysv transport needs one PID namespace too. */
typedef struct {
    mc_shm_address_t address; /* without a process: none could be made */
    uint64_t user;
    mc_shm_file_t users, keys; /* namespaces; 0: not known */
} told_t;

static mc_shm_file_t namespace_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (mc_shm_file_t){s.st_dev, s.st_ino} : (mc_shm_file_t){0};
}

static bool is_same(const mc_shm_file_t *a, const mc_shm_file_t *b)
{
    return a->ino && a->dev == b->dev && a->ino == b->ino;
}

static bool share_keys(const told_t *a, const told_t *b)
{
    return a->user == b->user && is_same(&a->users, &b->users) && is_same(&a->keys, &b->keys) &&
           is_same(&a->address.pids, &b->address.pids);
}

static mc_shm_access_t access_to(const told_t *own, const told_t *other, mc_shm_access_t wanted)
{
    mc_shm_mapping_t mapping;
    if (other->address.pid == 0 || mc_shm_memory_open(&other->address, 0, &mapping))
        return share_keys(own, other) ? MC_SHM_KEYS : MC_SHM_NONE;
    mc_shm_memory_close(&mapping);
    return wanted == MC_SHM_READ && mc_shm_memory_readable(&other->address) ? MC_SHM_READ
                                                                            : MC_SHM_COPY;
}

/* The least access of this rank to the ranks on its machine, itself included, and at most
 * `wanted`. */
static mc_shm_access_t access_to_all(const meshcoll_oob_t *oob, const int32_t *machine,
                                     const told_t *told, mc_shm_access_t wanted)
{
    mc_shm_access_t least = wanted;
    for (int32_t r = 0; r < oob->size && least > MC_SHM_NONE; r++) {
        if (machine[r] != machine[oob->rank])
            continue;
        const mc_shm_access_t found = access_to(&told[oob->rank], &told[r], wanted);
        least = found < least ? found : least;
    }
    return least;
}

int mc_shm_probe(const meshcoll_oob_t *oob, const int32_t *machine, mc_shm_access_t wanted,
                 mc_shm_access_t *access)
{
    mc_shm_mapping_t mapping = {0};
    told_t mine = {.user = geteuid(),
                   .users = namespace_of("/proc/self/ns/user"),
                   .keys = namespace_of("/proc/self/ns/ipc")};
    void *told = NULL, *found = NULL;
    if (mc_shm_memory_create(0, wanted == MC_SHM_READ, &mapping, &mine.address))
        mine.address = (mc_shm_address_t){.pids = namespace_of("/proc/self/ns/pid")};
    int status = mc_gather(oob, MESHCOLL_OK, &mine, sizeof mine, &told);
    if (!status) {
        const int32_t own = (int32_t)access_to_all(oob, machine, told, wanted);
        status = mc_gather(oob, MESHCOLL_OK, &own, sizeof own, &found);
    }
    mc_shm_memory_close(&mapping);
    if (mine.address.pid)
        close(mine.address.fd);
    int32_t least = (int32_t)wanted;
    for (int32_t r = 0; !status && r < oob->size; r++)
        least = ((const int32_t *)found)[r] < least ? ((const int32_t *)found)[r] : least;
    free(found);
    free(told);
    if (!status)
        *access = (mc_shm_access_t)least;
    return status;
}
