#include "transport/shm/shm_probe.h"

#include <sys/stat.h>
#include <unistd.h>

static mc_shm_file_t namespace_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (mc_shm_file_t){s.st_dev, s.st_ino} : (mc_shm_file_t){0};
}

static bool is_same(const mc_shm_file_t *a, const mc_shm_file_t *b)
{
    return a->ino && a->dev == b->dev && a->ino == b->ino;
}

static bool share_keys(const mc_shm_published_t *a, const mc_shm_published_t *b)
{
    return a->user == b->user && is_same(&a->users, &b->users) && is_same(&a->keys, &b->keys) &&
           is_same(&a->address.pids, &b->address.pids);
}

void mc_shm_probe_open(mc_shm_probe_t *probe)
{
    mc_shm_probe_t p = {.published = {.user = geteuid(),
                                      .users = namespace_of("/proc/self/ns/user"),
                                      .keys = namespace_of("/proc/self/ns/ipc")}};
    if (mc_shm_memory_create(0, false, &p.mapping, &p.published.address))
        p.published.address = (mc_shm_address_t){.pids = namespace_of("/proc/self/ns/pid")};
    *probe = p;
}

void mc_shm_probe_close(const mc_shm_probe_t *probe)
{
    mc_shm_memory_close(&probe->mapping);
    if (probe->published.address.pid)
        close(probe->published.address.fd);
}

static const mc_shm_published_t *told_by(const mc_shm_ranks_t *ranks, int32_t rank)
{
    return (const void *)((const char *)ranks->published + (size_t)rank * ranks->stride);
}

static mc_shm_access_t copies_from(const mc_shm_published_t *own, const mc_shm_published_t *other)
{
    mc_shm_mapping_t mapping;
    if (other->address.pid == 0 || mc_shm_memory_open(&other->address, 0, &mapping))
        return share_keys(own, other) ? MC_SHM_KEYS : MC_SHM_NONE;
    mc_shm_memory_close(&mapping);
    return MC_SHM_COPY;
}

mc_shm_access_t mc_shm_probe_copies(const mc_shm_ranks_t *ranks)
{
    mc_shm_access_t least = MC_SHM_COPY;
    for (int32_t r = 0; r < ranks->n && least > MC_SHM_NONE; r++) {
        if (ranks->machine[r] != ranks->machine[ranks->rank])
            continue;
        const mc_shm_access_t found = copies_from(told_by(ranks, ranks->rank), told_by(ranks, r));
        least = found < least ? found : least;
    }
    return least;
}

mc_shm_access_t mc_shm_probe_reads(const mc_shm_ranks_t *ranks)
{
    for (int32_t r = 0; r < ranks->n; r++)
        if (ranks->machine[r] == ranks->machine[ranks->rank] &&
            !mc_shm_memory_readable(&told_by(ranks, r)->address))
            return MC_SHM_COPY;
    return MC_SHM_READ;
}
