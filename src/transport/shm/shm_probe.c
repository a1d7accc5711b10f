#include "transport/shm/shm_memory.h"

#include "base/system/descriptor.h"
#include "base/system/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <unistd.h>

/* Goes with its last process, as it is removed at once; until then Linux lets others attach it. */
static void create_keyed(mc_shm_probe_t *p)
{
    if (getrandom(&p->published.cookie, sizeof p->published.cookie, 0) !=
        (ssize_t)sizeof p->published.cookie)
        return;
    const int key = shmget(IPC_PRIVATE, sizeof p->published.cookie, IPC_CREAT | 0600);
    if (key < 0)
        return;
    void *const at = shmat(key, NULL, 0);
    shmctl(key, IPC_RMID, NULL);
    if (at == (void *)-1) /* NOLINT */
        return;
    p->keyed = at;
    *p->keyed = p->published.cookie;
    p->published.key = key;
}

/* Does UCX's sysv transport work with that rank? It attaches memory by its key, and looks for the process in /proc,
 * where hidepid hides those that this one may not trace. */
static bool shares_keys(const mc_shm_published_t *other)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)other->pid);
    const int seen = other->key < 0 ? -1 : mc_descriptor(open(path, O_RDONLY | O_CLOEXEC));
    if (seen < 0)
        return false;
    close(seen);
    uint64_t *const at = shmat(other->key, NULL, 0);
    if (at == (void *)-1) /* NOLINT */
        return false;
    const bool same = *at == other->cookie;
    shmdt(at);
    return same;
}

void mc_shm_probe_open(mc_shm_probe_t *probe)
{
    mc_shm_probe_t p = {.published = {.pid = getpid(), .key = -1}};
    if (mc_shm_memory_create(0, false, &p.mapping, &p.published.address)) {
        mc_log(MC_LOG_WARN, "the ranks of this machine share no memory files: %s",
               meshcoll_last_error());
        p.published.address = (mc_shm_address_t){0};
    }
    create_keyed(&p);
    *probe = p;
}

void mc_shm_probe_close(const mc_shm_probe_t *probe)
{
    if (probe->keyed)
        shmdt(probe->keyed);
    mc_shm_memory_close(&probe->mapping);
    if (probe->published.address.file.pid)
        close(probe->published.address.file.fd);
}

static const mc_shm_published_t *told_by(const mc_shm_ranks_t *ranks, int32_t rank)
{
    return (const void *)((const char *)ranks->published + (size_t)rank * ranks->stride);
}

static bool opens(const mc_shm_published_t *other)
{
    mc_shm_mapping_t mapping;
    if (other->address.file.pid == 0 || mc_shm_memory_open(&other->address, 0, &mapping))
        return false;
    mc_shm_memory_close(&mapping);
    return true;
}

static bool all_pass(const mc_shm_ranks_t *ranks, bool (*test)(const mc_shm_published_t *other))
{
    for (int32_t r = 0; r < ranks->n; r++)
        if (ranks->machine[r] == ranks->machine[ranks->rank] && !test(told_by(ranks, r)))
            return false;
    return true;
}

mc_shm_access_t mc_shm_probe_copies(const mc_shm_ranks_t *ranks)
{
    return all_pass(ranks, opens)         ? MC_SHM_COPY
           : all_pass(ranks, shares_keys) ? MC_SHM_KEYS
                                          : MC_SHM_NONE;
}

static bool reads(const mc_shm_published_t *other)
{
    return mc_shm_memory_readable(&other->address);
}

mc_shm_access_t mc_shm_probe_reads(const mc_shm_ranks_t *ranks)
{
    return all_pass(ranks, reads) ? MC_SHM_READ : MC_SHM_COPY;
}
