/* Creates a mesh with the caller's allgather. Ranks share a machine if their kernel and
 * namespaces say so. */
#include "base/gather.h"
#include "runtime/create/tuned.h"
#include "runtime/place/places.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a */
static uint64_t hash(uint64_t h, const void *data, size_t n)
{
    const unsigned char *const byte = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ byte[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t hash_path(uint64_t h, const char *path)
{
    struct stat s;
    if (stat(path, &s) == 0) {
        h = hash(h, &s.st_dev, sizeof s.st_dev);
        h = hash(h, &s.st_ino, sizeof s.st_ino);
    }
    return h;
}

/* Equal for ranks that can share memory: the same kernel, host name, IPC namespace and /dev/shm. */
static uint64_t machine_id(void)
{
    char text[256] = "", boot[MC_BOOT_TEXT];
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    mc_boot_id(boot);
    h = hash(h, boot, strlen(boot));
    if (gethostname(text, sizeof text - 1) == 0)
        h = hash(h, text, strlen(text));
    h = hash_path(h, "/proc/self/ns/ipc");
    return hash_path(h, "/dev/shm");
}

/* Maps each id to the lowest rank that has it. `seen` is work space: the first rank of each id. */
static void number_machines(const uint64_t *id, int32_t n, int32_t *seen, int32_t *machine)
{
    int32_t n_seen = 0;
    for (int32_t r = 0; r < n; r++) {
        int32_t i = n_seen - 1;
        while (i >= 0 && id[seen[i]] != id[r])
            i--;
        if (i < 0)
            seen[i = n_seen++] = r;
        machine[r] = seen[i];
    }
}

/* By rank; the caller frees it. */
static int find_machines(const meshcoll_oob_t *oob, int32_t **machine)
{
    const size_t n = (size_t)oob->size;
    const uint64_t mine = machine_id();
    int32_t *const found = calloc(n, sizeof *found), *const seen = calloc(n, sizeof *seen);
    void *id = NULL;
    const int status =
        mc_gather(oob, found && seen ? MESHCOLL_OK : mc_fail_memory("a table of machines"), &mine,
                  sizeof mine, &id);
    if (!status)
        number_machines(id, oob->size, seen, found);
    free(id);
    free(seen);
    *machine = found;
    return status;
}

int meshcoll_create_oob(const meshcoll_oob_t *oob, const meshcoll_params_t *params,
                        meshcoll_t **mesh)
{
    if (!oob || !mesh || !oob->allgather || oob->size < 1 || oob->rank < 0 ||
        oob->rank >= oob->size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_create_oob: expected an allgather, a rank from 0 to size - 1 and "
                       "a pointer to a mesh");
    int32_t *machine;
    mc_place_t *place = NULL;
    int status = find_machines(oob, &machine);
    if (!status)
        status = mc_places_find(oob, machine, &place);
    if (!status) {
        const mc_creation_t creation = {.oob = *oob, .place = place, .params = params};
        status = mc_tuned_create(&creation, mesh);
    }
    free(place);
    free(machine);
    return status;
}
