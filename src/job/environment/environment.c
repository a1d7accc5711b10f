#include "job/environment/environment.h"

#include "base/system/descriptor.h"
#include "base/system/ports.h"
#include "job/environment/launcher.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* PORT_OFFSET: on MASTER_PORT itself, torchrun's agent or PyTorch's rank 0 has its store. The offset leaves room for
 * jobs whose MASTER_PORTs follow each other. Derived ports lie below the range of outgoing connections. */
enum { PORT_OFFSET = 1000, PORT_MOST = 65535, DERIVED_FIRST = 20000, DERIVED_SETS = 1000 };
enum { SECRET_MOST = 4095 };
enum { TIMEOUT = 600 }; /* seconds; how long torchrun's agents wait for each other */

/* Identity ------------------------------------------------------------------------------------- */

/* Adds the value of a variable, also where there is none: true if there is one. */
static bool add_id(const char *name, mc_self_t *self, int *status)
{
    const char *const value = name ? mc_variable(name) : NULL;
    if (!*status)
        *status = mc_digest_extend(self->job, value ? value : "", value ? strlen(value) + 1 : 1);
    return value;
}

/* The process at the other end of PMI_FD has started all ranks of this host. */
static bool add_starter(mc_self_t *self, int *status)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    const char *const text = mc_variable("PMI_FD");
    if (!text || getsockopt((int)strtol(text, NULL, 10), SOL_SOCKET, SO_PEERCRED, &who, &bytes) ||
        who.pid <= 0)
        return false;
    if (!*status)
        *status = mc_digest_extend(self->job, &who.pid, sizeof who.pid);
    return true;
}

/* What tells the job from others. *unique: the launcher tells it, besides what the user says. MPICH's mpiexec tells
 * nothing itself; on several hosts it has a step of its own for its agents. */
static int find_id(mc_launcher_id_t launcher, mc_self_t *self, bool *unique)
{
    const mc_launcher_t *const l = &mc_launchers[launcher], *const slurm = &mc_launchers[MC_SLURM];
    int status = mc_digest_extend(self->job, l->rank, strlen(l->rank) + 1);
    bool known = false;
    for (size_t i = 0; i < MC_COUNT(l->id); i++)
        known |= add_id(l->id[i], self, &status);
    if (launcher == MC_PMI && !known && mc_launcher_is_local(launcher)) {
        known = add_starter(self, &status);
    } else if (launcher == MC_PMI && !known && mc_launcher_in_step() &&
               !mc_launcher_is_local(MC_SLURM)) {
        for (size_t i = 0; i < MC_COUNT(slurm->id); i++)
            known |= add_id(slurm->id[i], self, &status);
    }
    (void)add_id("MESHCOLL_MASTER_PORT", self, &status);
    (void)add_id("MASTER_PORT", self, &status);
    *unique = known && launcher != MC_TORCHRUN;
    return status;
}

/* Where rank 0 listens ------------------------------------------------------------------------- */

/* Slurm's own list of its step; that of the job where another launcher started the ranks in an allocation: a step of
 * its daemons may lack the host where it runs itself. */
static const char *find_hosts(mc_launcher_id_t launcher)
{
    const bool by_srun =
        launcher == MC_SLURM || (launcher == MC_PMI && !mc_variable("MPI_LOCALNRANKS"));
    const char *const list = by_srun ? mc_variable("SLURM_STEP_NODELIST") : NULL;
    return launcher == MC_TORCHRUN ? NULL : list ? list : mc_variable("SLURM_JOB_NODELIST");
}

/* "10.0.0.1", "fd00::1" or "fd00::1%eth0", not a name, nor one with a port. */
static bool is_address(const char *host)
{
    char address[MC_ENVIRONMENT_HOST];
    unsigned char any[sizeof(struct in6_addr)];
    snprintf(address, sizeof address, "%.*s", (int)strcspn(host, "%"), host);
    return inet_pton(strchr(address, ':') ? AF_INET6 : AF_INET, address, any) == 1;
}

/* A name has no colon: with one it is an address, or has a port. */
static int set_host(const char *variable, mc_environment_t *env)
{
    const char *const host = mc_variable(variable);
    const size_t n = strlen(host);
    const bool bracketed = n > 2 && host[0] == '[' && host[n - 1] == ']';
    bool is_host = true;
    if (n >= MC_ENVIRONMENT_HOST)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s is longer than %d characters", variable,
                       MC_ENVIRONMENT_HOST - 1);
    snprintf(env->host, sizeof env->host, "%.*s", (int)(bracketed ? n - 2 : n), host + bracketed);
    env->is_address = is_address(env->host);
    for (const char *c = env->host; *c; c++)
        is_host &= mc_hosts_letter(*c) && (*c != ':' || env->is_address);
    return is_host ? MESHCOLL_OK
                   : mc_fail(MESHCOLL_ERR_INVALID_ARG,
                             "%s is a name or an address, without a scheme and a port, which "
                             "MASTER_PORT tells; got '%s'",
                             variable, host);
}

static int find_host(mc_launcher_id_t launcher, mc_environment_t *env)
{
    const bool own = mc_variable("MESHCOLL_MASTER_ADDR");
    if (own || mc_variable("MASTER_ADDR")) {
        const int status = set_host(own ? "MESHCOLL_MASTER_ADDR" : "MASTER_ADDR", env);
        env->only_there = !status && own && env->is_address;
        return status;
    }
    env->only_there = env->is_address = mc_launcher_is_local(launcher);
    if (env->is_address) {
        strcpy(env->host, "127.0.0.1");
        return MESHCOLL_OK;
    }
    env->hosts = find_hosts(launcher);
    if (env->hosts && mc_hosts_get(env->hosts, 0, env->host))
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "%s and %s are set, but not where rank 0 listens: set "
                   "MASTER_ADDR (or MESHCOLL_MASTER_ADDR) on all ranks",
                   mc_launchers[launcher].rank, mc_launchers[launcher].size);
}

/* A set of ports from what tells the job from others. */
static void derive_ports(mc_environment_t *env)
{
    uint32_t n;
    memcpy(&n, env->self.job, sizeof n);
    env->port = (uint16_t)(DERIVED_FIRST + n % DERIVED_SETS * MC_ENVIRONMENT_PORTS);
    env->n_ports = MC_ENVIRONMENT_PORTS;
}

static int find_ports(bool unique, mc_environment_t *env)
{
    long port = 0;
    int status = MESHCOLL_OK;
    mc_ports_t pinned;
    if (mc_ports_read(&pinned))
        return MESHCOLL_ERR_INVALID_ARG;
    if (mc_variable("MESHCOLL_MASTER_PORT")) {
        status = mc_variable_number("MESHCOLL_MASTER_PORT", 1, PORT_MOST, &port);
        env->port = (uint16_t)port;
        env->n_ports = 1;
    } else if (pinned.first) {
        env->port = (uint16_t)(pinned.first - MC_PORTS_MEET);
        env->n_ports = MC_PORTS_MEET;
    } else if (mc_variable("MASTER_PORT")) {
        status = mc_variable_number("MASTER_PORT", 1, PORT_MOST, &port);
        port += port + PORT_OFFSET + MC_ENVIRONMENT_PORTS > PORT_MOST ? -PORT_OFFSET : PORT_OFFSET;
        env->port = (uint16_t)port;
        env->n_ports = MC_ENVIRONMENT_PORTS;
    } else if (unique) {
        derive_ports(env);
    } else {
        status =
            mc_fail(MESHCOLL_ERR_INVALID_ARG, "which port does rank 0 listen on? Set MASTER_PORT, "
                                              "or MESHCOLL_MASTER_PORT, on all ranks");
    }
    return status;
}

/* The secret ----------------------------------------------------------------------------------- */

static int fail_secret(const char *path, const char *why)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "MESHCOLL_SECRET_FILE %s %s", path, why);
}

static int take_secret(const char *secret, size_t bytes, mc_self_t *self)
{
    self->has_secret = bytes > 0;
    return bytes > 0 ? mc_digest_extend(self->key, secret, bytes) : MESHCOLL_OK;
}

static int read_secret(const char *path, int fd, mc_self_t *self)
{
    enum { ROOM = SECRET_MOST + 1 };
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        return fail_secret(path, "is not a regular file");
    if (s.st_mode & (S_IRWXG | S_IRWXO))
        return fail_secret(path, "is open to others: chmod 600 makes it the user's own");
    char *const secret = malloc(ROOM);
    if (!secret)
        return mc_fail_memory("a secret");
    const ssize_t n = read(fd, secret, ROOM);
    size_t bytes = n > 0 ? (size_t)n : 0;
    while (bytes > 0 && secret[bytes - 1] == '\n')
        bytes--;
    /* an empty secret would let anyone join */
    const int status =
        bytes == 0 || n == ROOM
            ? fail_secret(path, "cannot be read, is empty, or is longer than 4095 bytes")
            : take_secret(secret, bytes, self);
    explicit_bzero(secret, ROOM);
    free(secret);
    return status;
}

static int find_secret(mc_self_t *self)
{
    const char *const secret = mc_variable("MESHCOLL_SECRET");
    const char *const path = mc_variable("MESHCOLL_SECRET_FILE");
    if (secret && path)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "MESHCOLL_SECRET and MESHCOLL_SECRET_FILE are both set; "
                       "expected one of them");
    if (secret && strlen(secret) > SECRET_MOST)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "MESHCOLL_SECRET is longer than %d bytes",
                       SECRET_MOST);
    if (!path)
        return take_secret(secret, secret ? strlen(secret) : 0, self);
    const int fd = mc_descriptor(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0)
        return fail_secret(path, strerror(errno));
    const int status = read_secret(path, fd, self);
    close(fd);
    return status;
}

int mc_environment_read(mc_environment_t *env)
{
    mc_launcher_id_t launcher;
    long timeout = TIMEOUT;
    mc_environment_t e = {.self.size = 1};
    int status = mc_launcher_find(&launcher, &e.self.rank, &e.self.size);
    if (!status && mc_variable("MESHCOLL_BOOTSTRAP_TIMEOUT"))
        status = mc_variable_number("MESHCOLL_BOOTSTRAP_TIMEOUT", 1, 1000000, &timeout);
    e.timeout = (double)timeout;
    if (!status && e.self.size > 1) {
        bool unique;
        status = find_id(launcher, &e.self, &unique);
        if (!status)
            status = find_host(launcher, &e);
        if (!status)
            status = find_ports(unique, &e);
        if (!status)
            status = find_secret(&e.self);
    }
    if (!status)
        *env = e;
    explicit_bzero(e.self.key, sizeof e.self.key);
    return status;
}
