#include "transport/ucx_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_rdma(const char *name)
{
    static const char *const rdma[] = {"rc", "dc", "ud", "ib"}; /* rc_x, rc_verbs, … */
    for (size_t i = 0; i < MC_COUNT(rdma); i++)
        if (strncmp(name, rdma[i], strlen(rdma[i])) == 0)
            return true;
    return false;
}

static bool names_rdma(const char *tls)
{
    bool rdma = false;
    for (const char *name = tls; *name && *name != '@' && !rdma; name += strcspn(name, ",@")) {
        name += strspn(name, ",");
        rdma = is_rdma(name);
    }
    return rdma;
}

/* Does a list of transports name this one? */
static bool has_name(const char *tls, const char *wanted)
{
    for (const char *name = tls; *name; name += strspn(name, ",")) {
        const size_t n = strcspn(name, ",@");
        if (n == strlen(wanted) && memcmp(name, wanted, n) == 0)
            return true;
        name += n;
        if (*name == '@')
            break;
    }
    return false;
}

bool mc_ucx_names_tcp(const char *tls)
{
    return has_name(tls, "tcp") && !names_rdma(tls);
}

/*
 * Over TCP a rendezvous costs a round trip behind the data queued in the link, for each segment of
 * a pipeline; eager messages stream. So messages of any size are eager, unless the user sets a
 * threshold. RDMA and shared memory keep UCX's threshold: their rendezvous saves a copy.
 */
bool mc_ucx_streams(const char *tls)
{
    const size_t length = strcspn(tls, "@");
    const bool no_sm = length == 3 && memcmp(tls, "^sm", 3) == 0; /* others may leave RDMA */
    return (no_sm || mc_ucx_names_tcp(tls)) && access("/sys/class/infiniband", F_OK) != 0;
}

/* Is there a network device of this name: an interface, or an RDMA device with its port, "mlx5_0:1"? */
static bool has_device(const char *name, size_t n)
{
    static const char *const folders[] = {"/sys/class/net", "/sys/class/infiniband"};
    char path[128];
    const char *const port = memchr(name, ':', n);
    const int length = (int)(port ? port - name : (ptrdiff_t)n);
    for (size_t i = 0; i < MC_COUNT(folders) && length > 0 && !memchr(name, '/', n); i++) {
        snprintf(path, sizeof path, "%s/%.*s", folders[i], length, name);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

bool mc_ucx_has_tcp(const char *tls)
{
    return *tls == '^' ? !has_name(tls + 1, "tcp") : has_name(tls, "tcp") || has_name(tls, "all");
}

/* Does a list of transports name one that needs network devices? What it excludes leaves some. */
static bool uses_network(const char *tls)
{
    return *tls == '^' || mc_ucx_has_tcp(tls) || names_rdma(tls);
}

/* RDMA devices have names of their own, and no address by which ranks have met: UCX knows which are near. TCP alone
 * does not take them. */
const char *mc_ucx_devices(const char *tls, const char *found)
{
    const char *const own = getenv("MESHCOLL_NET_DEVICES");
    if (!uses_network(tls) || strchr(tls, '@'))
        return "";
    if (own && *own)
        return own;
    if (getenv("UCX_NET_DEVICES") ||
        (access("/sys/class/infiniband", F_OK) == 0 && !mc_ucx_names_tcp(tls)))
        return "";
    for (const char *name = found; *name; name += strspn(name, ",")) {
        const size_t n = strcspn(name, ",");
        if (!has_device(name, n)) /* /sys shows another namespace's */
            return "";
        name += n;
    }
    return found;
}

/* UCX does without a device that is missing, and would bind to the others. `from`: where the list was given. */
static int check_list(const char *devices, const char *from, const char *dim)
{
    for (const char *name = devices; name; name = strchr(name, ',')) {
        name += *name == ',';
        const size_t n = strcspn(name, ",");
        if (!has_device(name, n))
            return mc_fail(MESHCOLL_ERR_TRANSPORT,
                           "dimension %s: there is no network device '%.*s'%s on this machine; "
                           "`ls /sys/class/net /sys/class/infiniband` lists those there are",
                           dim, (int)n, name, from);
    }
    return MESHCOLL_OK;
}

/* Without devices of its own, a dimension binds to those of UCX_NET_DEVICES: a list of names, or "all". A list that
 * excludes ("^eth0") or has patterns ("mlx5_*") requires no device. */
static int check_environment(const char *tls, const char *dim)
{
    const char *const devices = getenv("UCX_NET_DEVICES");
    if (!devices || strcmp(devices, "all") == 0 || strpbrk(devices, "^*?[") || !uses_network(tls))
        return MESHCOLL_OK;
    if (!*devices)
        return mc_fail(MESHCOLL_ERR_TRANSPORT,
                       "dimension %s: UCX_NET_DEVICES is empty, so that '%s' has no network "
                       "device: unset it, or name devices",
                       dim, tls);
    return check_list(devices, ", which UCX_NET_DEVICES names,", dim);
}

int mc_ucx_check_devices(const char *tls, const char *devices, const char *dim)
{
    return devices ? check_list(devices, "", dim) : check_environment(tls, dim);
}
