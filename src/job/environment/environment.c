#include "job/environment/environment.h"

#include "base/system/descriptor.h"
#include "base/system/ports.h"
#include "job/environment/launcher.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* PORT_OFFSET: on MASTER_PORT itself, torchrun's agent or PyTorch's rank 0 has its store. The offset leaves room for
 * jobs whose MASTER_PORTs follow each other. Derived ports lie below the range of outgoing connections. */
enum { PORT_OFFSET = 1000, PORT_MOST = 65535, DERIVED_FIRST = 20000, DERIVED_SETS = 1000 };
enum { SECRET_MOST = 4095 };
enum { TIMEOUT = 600 }; /* seconds; how long torchrun's agents wait for each other */

/* Identity ------------------------------------------------------------------------------------- */

static int find_id(const mc_launcher_t *l, mc_self_t *self)
{
    const char *const names[] = {l->id[0], l->id[1], "MESHCOLL_MASTER_PORT", "MASTER_PORT"};
    int status = mc_digest_extend(self->job, l->rank, strlen(l->rank) + 1);
    for (size_t i = 0; i < MC_COUNT(names) && !status; i++) {
        const char *const value = names[i] ? mc_variable(names[i]) : NULL;
        status = mc_digest_extend(self->job, value ? value : "", value ? strlen(value) + 1 : 1);
    }
    return status;
}

/* Where rank 0 listens ------------------------------------------------------------------------- */

/* Of names and addresses. */
static bool is_host_letter(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-._:%", c));
}

/* Writes the first of "01-04,7]…" and returns what follows the bracket; NULL: it is no such list. */
static const char *add_first(const char *list, mc_text_t *host)
{
    const size_t digits = strspn(list, "0123456789");
    const char *const end = list + strspn(list, "0123456789-,");
    if (digits == 0 || digits >= MC_ENVIRONMENT_HOST || *end != ']')
        return NULL;
    mc_text_add(host, "%.*s", (int)digits, list);
    return end + 1;
}

bool mc_environment_first_host(const char *list, char host[MC_ENVIRONMENT_HOST])
{
    char found[MC_ENVIRONMENT_HOST];
    mc_text_t text = mc_text(found, sizeof found);
    while (*list && *list != ',' && text.length < sizeof found) {
        if (*list == '[') {
            list = add_first(list + 1, &text);
            if (!list)
                return false;
        } else if (is_host_letter(*list)) {
            mc_text_add(&text, "%c", *list++);
        } else {
            return false;
        }
    }
    if (text.length == 0 || text.length >= sizeof found)
        return false;
    strcpy(host, found);
    return true;
}

static bool is_local(mc_launcher_id_t launcher)
{
    const char *const local = mc_variable("OMPI_COMM_WORLD_LOCAL_SIZE");
    return launcher == MC_OPEN_MPI && local && strcmp(local, getenv("OMPI_COMM_WORLD_SIZE")) == 0;
}

static bool derive_host(mc_launcher_id_t launcher, char host[MC_ENVIRONMENT_HOST])
{
    const char *list = mc_variable("SLURM_STEP_NODELIST");
    list = list ? list : mc_variable("SLURM_JOB_NODELIST");
    if (is_local(launcher))
        strcpy(host, "127.0.0.1");
    return is_local(launcher) || ((launcher == MC_SLURM || launcher == MC_PMI) && list &&
                                  mc_environment_first_host(list, host));
}

/* "10.0.0.1", "fd00::1" or "fd00::1%eth0", not a name, nor one with a port. */
static bool is_address(const char *host)
{
    char address[MC_ENVIRONMENT_HOST];
    unsigned char any[sizeof(struct in6_addr)];
    snprintf(address, sizeof address, "%.*s", (int)strcspn(host, "%"), host);
    return inet_pton(strchr(address, ':') ? AF_INET6 : AF_INET, address, any) == 1;
}

static int set_host(const char *host, mc_environment_t *env)
{
    const size_t n = strlen(host);
    const bool bracketed = n > 2 && host[0] == '[' && host[n - 1] == ']';
    if (n >= MC_ENVIRONMENT_HOST)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "the master's address is longer than %d characters",
                       MC_ENVIRONMENT_HOST - 1);
    snprintf(env->host, sizeof env->host, "%.*s", (int)(bracketed ? n - 2 : n), host + bracketed);
    return MESHCOLL_OK;
}

static int find_host(mc_launcher_id_t launcher, mc_environment_t *env)
{
    const char *const own = mc_variable("MESHCOLL_MASTER_ADDR"), *const given =
                                                                     mc_variable("MASTER_ADDR");
    if (own || given) {
        const int status = set_host(own ? own : given, env);
        env->is_address = !status && is_address(env->host);
        env->only_there = own && env->is_address;
        return status;
    }
    env->only_there = env->is_address = is_local(launcher);
    if (derive_host(launcher, env->host))
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "%s and %s are set, but not where rank 0 listens: set "
                   "MASTER_ADDR (or MESHCOLL_MASTER_ADDR) on all ranks",
                   mc_launchers[launcher].rank, mc_launchers[launcher].size);
}

/* A set of ports from what tells the job from others. */
static bool derive_ports(mc_launcher_id_t launcher, mc_environment_t *env)
{
    uint32_t n;
    if (launcher == MC_TORCHRUN || !mc_launchers[launcher].id[0] ||
        !mc_variable(mc_launchers[launcher].id[0]))
        return false;
    memcpy(&n, env->self.job, sizeof n);
    env->port = (uint16_t)(DERIVED_FIRST + n % DERIVED_SETS * MC_ENVIRONMENT_PORTS);
    env->n_ports = MC_ENVIRONMENT_PORTS;
    return true;
}

static int find_ports(mc_launcher_id_t launcher, mc_environment_t *env)
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
    } else if (!derive_ports(launcher, env)) {
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
        status = find_id(&mc_launchers[launcher], &e.self);
        if (!status)
            status = find_host(launcher, &e);
        if (!status)
            status = find_ports(launcher, &e);
        if (!status)
            status = find_secret(&e.self);
    }
    if (!status)
        *env = e;
    explicit_bzero(e.self.key, sizeof e.self.key);
    return status;
}
