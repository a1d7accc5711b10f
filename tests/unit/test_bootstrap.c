/* The bootstrap: what the environment tells, ranks that are processes and gather, and ranks that end. */
#include "job/bootstrap/bootstrap.h"
#include "job/bootstrap/tree.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The environment ------------------------------------------------------------------------------ */

static void set_all(const char *const *pairs)
{
    static const char *const all[] = {"MESHCOLL_LAUNCHER",
                                      "LOCAL_RANK",
                                      "RANK",
                                      "WORLD_SIZE",
                                      "MASTER_ADDR",
                                      "MASTER_PORT",
                                      "MESHCOLL_MASTER_ADDR",
                                      "MESHCOLL_MASTER_PORT",
                                      "OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE",
                                      "PMIX_NAMESPACE",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "PMI_JOBID",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "SLURM_STEP_NODELIST",
                                      "SLURM_JOB_NODELIST",
                                      "SLURM_JOB_ID",
                                      "SLURM_STEP_ID",
                                      "TORCHELASTIC_RUN_ID",
                                      "TORCHELASTIC_RESTART_COUNT",
                                      "MESHCOLL_PORTS",
                                      "MESHCOLL_SECRET",
                                      "MESHCOLL_SECRET_FILE",
                                      "MESHCOLL_BOOTSTRAP_TIMEOUT"};
    for (size_t i = 0; i < MC_COUNT(all); i++)
        unsetenv(all[i]);
    for (; *pairs; pairs += 2)
        setenv(pairs[0], pairs[1], 1);
}
#define SET(...) set_all((const char *const[]){__VA_ARGS__, NULL})

static mc_environment_t job;

static void expect_job(int rank, int size, const char *host, int port, int n_ports)
{
    cr_assert_eq(mc_environment_read(&job), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(job.self.rank, rank);
    cr_expect_eq(job.self.size, size);
    cr_expect_str_eq(job.host, host);
    if (port)
        cr_expect_eq(job.port, port, "%d", job.port);
    cr_expect_eq(job.n_ports, n_ports);
}

static void expect_refused(const char *says)
{
    cr_expect_eq(mc_environment_read(&job), MESHCOLL_ERR_INVALID_ARG);
    cr_expect(strstr(meshcoll_last_error(), says), "%s", meshcoll_last_error());
}

Test(job, without_a_launcher_is_of_one_rank)
{
    SET(NULL);
    cr_assert_eq(mc_environment_read(&job), MESHCOLL_OK);
    cr_expect(job.self.rank == 0 && job.self.size == 1);
    SET("RANK", "", "WORLD_SIZE", "", "OMPI_COMM_WORLD_RANK", "");
    cr_assert_eq(mc_environment_read(&job), MESHCOLL_OK,
                 "an empty variable is one that is not set");
    /* a batch script, and the shell of salloc, have their allocation's variables */
    static const char *const no_steps[] = {"", "4294967290", "4294967291"};
    for (size_t i = 0; i < MC_COUNT(no_steps); i++) {
        SET("SLURM_PROCID", "0", "SLURM_NTASKS", "8", "SLURM_JOB_ID", "12", "SLURM_STEP_ID",
            no_steps[i], "SLURM_JOB_NODELIST", "a");
        cr_assert_eq(mc_environment_read(&job), MESHCOLL_OK);
        cr_expect_eq(job.self.size, 1, "step '%s': %d", no_steps[i], (int)job.self.size);
    }
}

#define AT "MASTER_ADDR", "a", "MASTER_PORT", "1"

Test(job, half_a_pair_is_refused)
{
    SET("RANK", "0", AT);
    expect_refused("RANK is set, but WORLD_SIZE is not");
    SET("WORLD_SIZE", "2", AT);
    expect_refused("WORLD_SIZE is set, but RANK is not");
    SET("WORLD_SIZE", "2", "RANK", "", AT);
    expect_refused("WORLD_SIZE is set, but RANK is not");
    SET("OMPI_COMM_WORLD_RANK", "1", "RANK", "1", "WORLD_SIZE", "2", AT);
    expect_refused("OMPI_COMM_WORLD_RANK is set, but OMPI_COMM_WORLD_SIZE is not");
    SET("SLURM_PROCID", "1", "SLURM_STEP_ID", "0", AT);
    expect_refused("SLURM_PROCID is set, but SLURM_NTASKS is not");
}

Test(job, launchers_that_disagree_are_refused)
{
    SET("RANK", "0", "WORLD_SIZE", "1", "OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "4");
    expect_refused("rank 0 of 1 by RANK and WORLD_SIZE, rank 2 of 4 by OMPI_COMM_WORLD_RANK");
    setenv("MESHCOLL_LAUNCHER", "torchrun", 1);
    cr_expect(mc_environment_read(&job) == MESHCOLL_OK && job.self.size == 1);
    SET("RANK", "0", "WORLD_SIZE", "1", "OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "4",
        "MESHCOLL_LAUNCHER", "openmpi", AT);
    expect_job(2, 4, "a", 1001, MC_ENVIRONMENT_PORTS);
    /* the pods of an operator, and mpirun in one of them */
    SET("RANK", "0", "WORLD_SIZE", "8", "OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "4",
        AT);
    expect_refused("set MESHCOLL_LAUNCHER=torchrun or openmpi");
    SET("PMI_RANK", "0", "PMI_SIZE", "1", "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_STEP_ID",
        "0");
    expect_refused("two launchers disagree");
    SET("MESHCOLL_LAUNCHER", "srun", AT);
    expect_refused("MESHCOLL_LAUNCHER is torchrun, openmpi, pmi or slurm; got 'srun'");
    SET("MESHCOLL_LAUNCHER", "slurm", "RANK", "0", "WORLD_SIZE", "1");
    expect_refused("SLURM_PROCID and SLURM_NTASKS of a step are not set");
}

/* srun starts the agents of torchrun and the daemons of mpirun; a launcher of one process anything. */
Test(job, launchers_may_start_each_other)
{
    SET("RANK", "9", "WORLD_SIZE", "16", "LOCAL_RANK", "1", "SLURM_PROCID", "1", "SLURM_NTASKS",
        "2", "SLURM_STEP_ID", "0", AT);
    expect_job(9, 16, "a", 1001, MC_ENVIRONMENT_PORTS);
    SET("OMPI_COMM_WORLD_RANK", "9", "OMPI_COMM_WORLD_SIZE", "16", "SLURM_PROCID", "1",
        "SLURM_NTASKS", "2", "SLURM_STEP_ID", "0", AT);
    expect_job(9, 16, "a", 1001, MC_ENVIRONMENT_PORTS);
    SET("RANK", "1", "WORLD_SIZE", "2", "OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1",
        AT);
    expect_job(1, 2, "a", 1001, MC_ENVIRONMENT_PORTS);
    SET("PMI_RANK", "1", "PMI_SIZE", "2", "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_STEP_ID",
        "0", AT);
    expect_job(1, 2, "a", 1001, MC_ENVIRONMENT_PORTS);
}

Test(job, is_found_by_each_launcher)
{
    SET("RANK", "3", "WORLD_SIZE", "8", "MASTER_ADDR", "node1", "MASTER_PORT", "29500");
    expect_job(3, 8, "node1", 30500, MC_ENVIRONMENT_PORTS);
    cr_expect_eq(job.timeout, 600);
    SET("RANK", "3", "WORLD_SIZE", "8", "MASTER_ADDR", "node1", "MASTER_PORT", "65000");
    expect_job(3, 8, "node1", 64000, MC_ENVIRONMENT_PORTS);
    SET("RANK", "0", "WORLD_SIZE", "8", "MASTER_ADDR", "node1", "MASTER_PORT", "29500",
        "MESHCOLL_MASTER_PORT", "7000", "MESHCOLL_MASTER_ADDR", "10.0.0.1",
        "MESHCOLL_BOOTSTRAP_TIMEOUT", "30");
    expect_job(0, 8, "10.0.0.1", 7000, 1);
    cr_expect_eq(job.timeout, 30);
    SET("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE", "4",
        "PMIX_NAMESPACE", "77", "SLURM_PROCID", "0", "SLURM_NTASKS", "1");
    expect_job(1, 4, "127.0.0.1", 0, MC_ENVIRONMENT_PORTS);
    cr_expect(job.port >= 20000 && job.port < 28000);
    SET("PMI_RANK", "1", "PMI_SIZE", "4", "MASTER_ADDR", "a", "MASTER_PORT", "100");
    expect_job(1, 4, "a", 1100, MC_ENVIRONMENT_PORTS);
    SET("SLURM_PROCID", "2", "SLURM_NTASKS", "3", "SLURM_STEP_NODELIST", "gpu[07-09],x",
        "SLURM_JOB_ID", "12", "SLURM_STEP_ID", "0");
    expect_job(2, 3, "gpu07", 0, MC_ENVIRONMENT_PORTS);
}

Test(job, addresses_are_told_from_names)
{
    static const struct {
        const char *host;
        bool is_address;
    } hosts[] = {{"10.0.0.1", true},        {"fd00::1", true}, {"fe80::1%eth0", true},
                 {"[fd00::1]", true},       {"node1", false},  {"node1:29500", false},
                 {"10.0.0.1:29500", false}, {"fd00", false},   {"a%b", false}};
    for (size_t i = 0; i < MC_COUNT(hosts); i++) {
        SET("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", hosts[i].host, "MASTER_PORT", "29500");
        cr_assert_eq(mc_environment_read(&job), MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_expect_eq(job.is_address, hosts[i].is_address, "%s", hosts[i].host);
    }
}

Test(job, ports_may_be_pinned)
{
    SET("RANK", "3", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "29500",
        "MESHCOLL_PORTS", "40000-40199");
    expect_job(3, 8, "a", 40000, MC_ENVIRONMENT_PORTS);
    setenv("MESHCOLL_MASTER_PORT", "7000", 1);
    expect_job(3, 8, "a", 7000, 1);
    static const char *const wrong[] = {"40000", "40000-",      "40000-40014",
                                        "0-100", "65530-65600", "40199-40000",
                                        "a-b",   "-1-40000",    "40000-40199 "};
    for (size_t i = 0; i < MC_COUNT(wrong); i++) {
        setenv("MESHCOLL_PORTS", wrong[i], 1);
        expect_refused("MESHCOLL_PORTS is a range of at least 16 ports");
        cr_expect(strstr(meshcoll_last_error(), wrong[i]));
    }
}

Test(job, identities_differ)
{
    unsigned char first[MC_DIGEST];
    SET("RANK", "3", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "1");
    expect_job(3, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
    memcpy(first, job.self.job, sizeof first);
    setenv("RANK", "4", 1);
    expect_job(4, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
    cr_expect_arr_eq(job.self.job, first, sizeof first, "ranks are of one job");
    setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
    expect_job(4, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
    cr_expect_arr_eq(job.self.job, first, sizeof first, "each agent counts its own restarts");
    setenv("TORCHELASTIC_RUN_ID", "other", 1);
    expect_job(4, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
    cr_expect_arr_neq(job.self.job, first, sizeof first, "another run is another job");
    SET("RANK", "3", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "2");
    expect_job(3, 8, "a", 1002, MC_ENVIRONMENT_PORTS);
    cr_expect_arr_neq(job.self.job, first, sizeof first, "another port is another job");
}

Test(job, refuses_what_is_missing_or_wrong)
{
    SET("RANK", "8", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "1");
    expect_refused("RANK is a number from 0 to 7; got '8'");
    SET("RANK", "1x", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "1");
    expect_refused("got '1x'");
    SET("RANK", "1", "WORLD_SIZE", "0", "MASTER_ADDR", "a", "MASTER_PORT", "1");
    expect_refused("WORLD_SIZE is a number from 1");
    SET("RANK", "1", "WORLD_SIZE", "8", "MASTER_PORT", "1");
    expect_refused("set MASTER_ADDR");
    SET("RANK", "1", "WORLD_SIZE", "8", "MASTER_ADDR", "a");
    expect_refused("Set MASTER_PORT");
    SET("RANK", "1", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "70000");
    expect_refused("MASTER_PORT is a number");
    SET("RANK", "1", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "1",
        "MESHCOLL_BOOTSTRAP_TIMEOUT", "soon");
    expect_refused("MESHCOLL_BOOTSTRAP_TIMEOUT is a number");
    SET("RANK", "1", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "1", "MESHCOLL_SECRET",
        "x", "MESHCOLL_SECRET_FILE", "y");
    expect_refused("both set");
}

Test(job, reads_a_secret_of_the_users_own)
{
    char path[] = "/tmp/meshcoll-secret-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, "swordfish\n", 10) == 10);
    SET("RANK", "1", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "1",
        "MESHCOLL_SECRET_FILE", path);
    expect_job(1, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
    const mc_environment_t from_file = job;
    SET("RANK", "1", "WORLD_SIZE", "8", "MASTER_ADDR", "a", "MASTER_PORT", "1", "MESHCOLL_SECRET",
        "swordfish");
    expect_job(1, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
    cr_expect(from_file.self.has_secret && job.self.has_secret);
    cr_expect_arr_eq(from_file.self.key, job.self.key, MC_DIGEST);
    setenv("MESHCOLL_SECRET", "swordfisc", 1);
    expect_job(1, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
    cr_expect_arr_neq(from_file.self.key, job.self.key, MC_DIGEST);
    unsetenv("MESHCOLL_SECRET");
    setenv("MESHCOLL_SECRET_FILE", path, 1);
    cr_assert(ftruncate(fd, 0) == 0 && pwrite(fd, "\n", 1, 0) == 1);
    expect_refused("is empty");
    cr_assert_eq(fchmod(fd, 0640), 0);
    expect_refused("open to others");
    unlink(path);
    expect_refused("No such file");
    setenv("MESHCOLL_SECRET_FILE", "/tmp", 1);
    expect_refused("not a regular file");
    close(fd);
}

Test(job, secrets_have_at_most_4095_bytes)
{
    enum { MOST_BYTES = 4095 };
    char path[] = "/tmp/meshcoll-secret-XXXXXX", secret[MOST_BYTES + 2] = "";
    const int fd = mkstemp(path);
    memset(secret, 's', MOST_BYTES + 1);
    cr_assert(fd >= 0 && write(fd, secret, MOST_BYTES) == MOST_BYTES);
    SET("RANK", "1", "WORLD_SIZE", "8", AT, "MESHCOLL_SECRET", secret);
    expect_refused("MESHCOLL_SECRET is longer than 4095 bytes");
    secret[MOST_BYTES] = '\0';
    setenv("MESHCOLL_SECRET", secret, 1);
    expect_job(1, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
    const mc_environment_t given = job;
    unsetenv("MESHCOLL_SECRET");
    setenv("MESHCOLL_SECRET_FILE", path, 1);
    expect_job(1, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
    cr_expect_arr_eq(given.self.key, job.self.key, MC_DIGEST);
    cr_assert_eq(write(fd, "s", 1), 1);
    expect_refused("longer than 4095 bytes");
    unlink(path);
    close(fd);
}

Test(job, first_host_of_a_list)
{
    static const char *const lists[][2] = {{"node1", "node1"},
                                           {"node1,node2", "node1"},
                                           {"node[3-7,9]", "node3"},
                                           {"n[01-04]-ib,other", "n01-ib"},
                                           {"rack[2,3]node[08-09]", "rack2node08"},
                                           {"n[5]", "n5"}};
    char host[MC_ENVIRONMENT_HOST];
    for (size_t i = 0; i < MC_COUNT(lists); i++) {
        cr_expect(mc_environment_first_host(lists[i][0], host));
        cr_expect_str_eq(host, lists[i][1]);
    }
    cr_expect(!mc_environment_first_host("", host));
    cr_expect(!mc_environment_first_host("node[1-", host));
    cr_expect(!mc_environment_first_host("node[[1]]", host));
    cr_expect(!mc_environment_first_host("node[]", host));
    cr_expect(!mc_environment_first_host("node 1", host));
    cr_expect(!mc_environment_first_host("node1]", host));
    char list[2 * MC_ENVIRONMENT_HOST] = "";
    memset(list, 'n', MC_ENVIRONMENT_HOST - 1);
    cr_expect(mc_environment_first_host(list, host));
    memset(list, 'n', MC_ENVIRONMENT_HOST);
    cr_expect(!mc_environment_first_host(list, host), "no name has %d characters",
              MC_ENVIRONMENT_HOST);
}

Test(bootstrap, names_missing_ranks)
{
    char names[300];
    mc_text_t text = mc_text(names, sizeof names);
    mc_bitmap_t joined;
    cr_assert_eq(mc_bitmap_init(&joined, 100), MESHCOLL_OK);
    mc_bitmap_set(&joined, 0, 3);
    mc_bitmap_set(&joined, 4, 1);
    mc_bitmap_set(&joined, 8, 90);
    cr_expect_eq(mc_join_missing(&joined, 100, &text), 6);
    cr_expect_str_eq(names, "3, 5-7, 98-99");
    mc_bitmap_free(&joined);
}

/* Ranks ---------------------------------------------------------------------------------------- */

enum { MOST = 64 };

typedef struct {
    int size, rounds;
    int ends;    /* this rank ends before the second allgather; -1: none */
    int again;   /* how often it joins once more */
    int refused; /* libcrypto makes no digests for this rank; 0: for all */
    const char *secret;
} trial_t;

/* libcrypto makes no digests in this process; HMACs, for which it asks itself how long they are, it does. */
static bool refuses;

int EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *digest, unsigned *bytes)
{
    int (*next)(EVP_MD_CTX *, unsigned char *, unsigned *) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "EVP_DigestFinal_ex");
    return refuses && !bytes ? 0 : next(context, digest, bytes);
}

static int gather(const meshcoll_oob_t *oob, int round)
{
    const size_t bytes = round % 2 ? 40000 : 8;
    char *const in = calloc(1, bytes), *const out = calloc((size_t)oob->size, bytes);
    snprintf(in, bytes, "%d", oob->rank * 3 + round);
    if (oob->allgather(oob->context, in, out, bytes))
        return 2;
    for (int r = 0; r < oob->size; r++)
        if (atoi(out + (size_t)r * bytes) != r * 3 + round)
            return 3;
    free(in);
    free(out);
    return 0;
}

/* Once more, as for a second mesh while the first is there. */
static int join_again(const mc_environment_t *mine)
{
    mc_bootstrap_t *again;
    if (mc_bootstrap_open(mine, &again))
        return 6;
    const meshcoll_oob_t oob = mc_bootstrap_oob(again);
    const int status = gather(&oob, 1);
    mc_bootstrap_close(again);
    return status;
}

/* Exit status: 0 right, 2 an allgather failed, 3 it was wrong, 4 not joined. */
static int be_rank(const trial_t *t, int rank, int port)
{
    mc_bootstrap_t *bootstrap;
    mc_environment_t mine = {
        .self = {.rank = rank, .size = t->size}, .host = "127.0.0.1", .n_ports = 1, .timeout = 20};
    mine.port = (uint16_t)port;
    mine.self.has_secret = t->secret[0];
    mine.self.key[0] = (unsigned char)t->secret[0];
    alarm(60);
    refuses = t->refused > 0 && rank == t->refused;
    if (mc_bootstrap_open(&mine, &bootstrap))
        return 4;
    const meshcoll_oob_t oob = mc_bootstrap_oob(bootstrap);
    int status = 0;
    for (int i = 0; i < t->rounds && !status; i++) {
        if (i == 1 && rank == t->ends)
            _exit(0);
        status = gather(&oob, i);
    }
    for (int i = 0; i < t->again && !status; i++)
        status = join_again(&mine);
    if (status == 2 && t->ends >= 0) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "rank %d has ended", t->ends);
        status = strstr(mc_bootstrap_failure(bootstrap), wanted) ? 2 : 5;
    }
    mc_bootstrap_close(bootstrap);
    return status;
}

static void run_ranks(const trial_t *t, int how[MOST])
{
    pid_t pid[MOST];
    const int port = 21000 + (int)getpid() % 8000;
    for (int r = 0; r < t->size; r++) {
        pid[r] = fork();
        cr_assert_geq(pid[r], 0);
        if (pid[r] == 0)
            _exit(be_rank(t, r, port));
    }
    for (int r = 0; r < t->size; r++)
        cr_assert_eq(waitpid(pid[r], &how[r], 0), pid[r]);
}

Test(bootstrap, gathers, .timeout = 120)
{
    static const int sizes[] = {1, 2, 3, 5, 6, 21, 22, MOST};
    int how[MOST];
    for (size_t i = 0; i < MC_COUNT(sizes); i++) {
        const trial_t t = {.size = sizes[i], .rounds = 6, .ends = -1, .again = 3, .secret = "x"};
        run_ranks(&t, how);
        for (int r = 0; r < t.size; r++)
            cr_expect(WIFEXITED(how[r]) && WEXITSTATUS(how[r]) == 0, "%d ranks, rank %d: %d",
                      t.size, r, how[r]);
    }
}

/* Whichever rank ends, all others hear which. */
Test(bootstrap, tells_who_ended, .timeout = 120)
{
    static const int ends[] = {0, 1, 9, 23};
    int how[MOST];
    for (size_t i = 0; i < MC_COUNT(ends); i++) {
        const trial_t t = {.size = 24, .rounds = 3, .ends = ends[i], .secret = ""};
        run_ranks(&t, how);
        for (int r = 0; r < t.size; r++)
            cr_expect(WIFEXITED(how[r]) && WEXITSTATUS(how[r]) == (r == ends[i] ? 0 : 2),
                      "rank %d ends, rank %d: %d", ends[i], r, how[r]);
    }
}

Test(bootstrap, fails_where_libcrypto_refuses, .timeout = 120)
{
    const trial_t t = {.size = 2, .rounds = 1, .ends = -1, .refused = 1, .secret = "x"};
    int how[MOST];
    run_ranks(&t, how);
    cr_expect(WIFEXITED(how[0]) && WEXITSTATUS(how[0]) == 2, "%d", how[0]);
    cr_expect(WIFEXITED(how[1]) && WEXITSTATUS(how[1]) == 4, "%d", how[1]);
}

/* 0: signed. */
static int sign(void)
{
    const mc_self_t self = {.rank = 1, .size = 2};
    const mc_challenge_t challenge = {0};
    mc_hello_t hello = {0};
    return mc_handshake_sign_hello(&self, &challenge, &hello);
}

static void greet_late(void)
{
    unsigned char digest[MC_DIGEST] = {0};
    _exit(sign() && mc_digest_extend(digest, "x", 1) ? 0 : 1);
}

/* A monitor may be greeted while its process exits: libcrypto, which crashes then, is not used any more. */
Test(bootstrap, greets_nobody_once_the_process_exits)
{
    int how;
    const pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        alarm(60);
        if (atexit(greet_late) || sign())
            _exit(2);
        exit(3);
    }
    cr_assert_eq(waitpid(pid, &how, 0), pid);
    cr_expect_eq(how, 0, "%d", how);
}

/* Without a secret anyone can sign an answer: the node of the tree that it names must be one. */
Test(bootstrap, refuses_a_place_outside_of_the_tree)
{
    static const struct {
        int32_t index, parent_rank;
        uint32_t family;
        int failed;
    } answers[] = {{1, 0, 0, 0},      {8, 7, 4, 0},      {-5, 0, 0, EPROTO}, {0, 0, 0, EPROTO},
                   {9, 0, 0, EPROTO}, {1, 9, 0, EPROTO}, {1, -1, 0, EPROTO}, {8, 1, 5, EPROTO}};
    const mc_self_t self = {.rank = 3, .size = 9};
    const mc_challenge_t challenge = {0};
    const mc_hello_t hello = {.kind = MC_HELLO_JOIN, .rank = 3, .size = 9};
    int fd[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    for (size_t i = 0; i < MC_COUNT(answers); i++) {
        mc_answer_t sent = {.index = answers[i].index,
                            .parent = {{.family = answers[i].family, .port = 1}},
                            .parent_rank = answers[i].parent_rank},
                    got;
        cr_assert_eq(mc_handshake_answer(&self, fd[0], &challenge, &hello, &sent), 0);
        cr_assert_eq(mc_wire_recv(fd[1], &got, sizeof got, 0, -1), 0);
        cr_expect_eq(mc_handshake_accepted(&self, &challenge, &hello, &got), answers[i].failed,
                     "node %d", answers[i].index);
    }
    close(fd[0]);
    close(fd[1]);
}
