/* Programs that have closed descriptors 0 to 2, as daemons do, and go on writing to them: nothing of the library's lies
 * there. */
#include "base/base.h"

#include <meshcoll/env.h>

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 3, CALLS = 200, ELEMENTS = 3000 };

/* Closed, or /dev/null, which fits where libraries would open something else. */
static bool is_harmless(int fd)
{
    struct stat s;
    return fstat(fd, &s) != 0 || (S_ISCHR(s.st_mode) && s.st_rdev == makedev(1, 3));
}

/* Exit status: 0 right, 1 a call failed, 2 a result was wrong, 3 a descriptor of 0 to 2 is in use. */
static int use_mesh(meshcoll_t *mesh)
{
    static float in[ELEMENTS], out[ELEMENTS];
    for (int i = 0; i < CALLS; i++) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++) {
            if (!is_harmless(fd))
                return 3;
            (void)!write(fd, "a line of the program's log\n", 28);
        }
        for (int k = 0; k < ELEMENTS; k++)
            in[k] = (float)(i + k + meshcoll_rank(mesh));
        if (meshcoll_allreduce(mesh, in, out, i % 2 ? ELEMENTS : 2, MESHCOLL_FLOAT32, MESHCOLL_SUM))
            return 1;
        for (int k = 0; k < (i % 2 ? ELEMENTS : 2); k++)
            if (out[k] != (float)(RANKS * (i + k) + RANKS * (RANKS - 1) / 2))
                return 2;
    }
    return 0;
}

static void close_all(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd);
}

static int count_sockets(void)
{
    enum { MOST = 256 };
    struct stat s;
    int n = 0;
    for (int fd = 0; fd < MOST; fd++)
        n += fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode);
    return n;
}

/* Until a connection has come that no call of this rank has asked for; it is accepted all the same. */
static void await_connection(int before)
{
    for (int ms = 0; count_sockets() == before && ms < 5000; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* `late`: the descriptors are closed when the mesh is there, which has no connections yet. */
static int be_rank(int rank, int port, const char *transports, bool late)
{
    char text[16];
    meshcoll_t *mesh;
    const meshcoll_params_t params = {
        .size = sizeof params, .mesh = "gpu=3", .transports = transports, .links = "uniform"};
    alarm(60);
    snprintf(text, sizeof text, "%d", rank);
    setenv("RANK", text, 1);
    snprintf(text, sizeof text, "%d", RANKS);
    setenv("WORLD_SIZE", text, 1);
    snprintf(text, sizeof text, "%d", port);
    setenv("MESHCOLL_MASTER_PORT", text, 1);
    setenv("MESHCOLL_MASTER_ADDR", "127.0.0.1", 1);
    if (!late)
        close_all();
    if (meshcoll_create_env(&params, &mesh))
        return 1;
    if (late) {
        close_all();
        const int sockets = count_sockets();
        if (rank == RANKS - 1)
            await_connection(sockets);
    }
    const int status = use_mesh(mesh);
    meshcoll_destroy(mesh);
    return status;
}

static void run_ranks(const char *transports, bool late)
{
    pid_t pid[RANKS];
    int how;
    const int port = 21000 + (int)getpid() % 8000;
    for (int r = 0; r < RANKS; r++) {
        pid[r] = fork();
        cr_assert_geq(pid[r], 0);
        if (pid[r] == 0)
            _exit(be_rank(r, port, transports, late));
    }
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(waitpid(pid[r], &how, 0), pid[r]);
        cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "%s, rank %d: status %x", transports, r,
                  (unsigned)how);
    }
}

Test(descriptors, of_shared_memory_lie_above_2, .timeout = 120)
{
    run_ranks("gpu=shm", false);
}

Test(descriptors, of_a_network_lie_above_2, .timeout = 120)
{
    run_ranks("gpu=tcp,self", false);
}

Test(descriptors, made_when_0_to_2_were_closed_after_the_creation_lie_above_2, .timeout = 120)
{
    run_ranks("gpu=tcp,self", true);
}
