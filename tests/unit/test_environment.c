/* What the environment tells of a job: its launcher, ranks, address, ports and secret. */
#include "job/environment/environment.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_all(const char *const *pairs)
{
    static const char *const all[] = {"MESHCOLL_LAUNCHER",
                                      "HOROVOD_RANK",
                                      "HOROVOD_SIZE",
                                      "HOROVOD_LOCAL_SIZE",
                                      "HOROVOD_GLOO_RENDEZVOUS_PORT",
                                      "MV2_COMM_WORLD_RANK",
                                      "MV2_COMM_WORLD_SIZE",
                                      "MV2_COMM_WORLD_LOCAL_SIZE",
                                      "MPIRUN_ID",
                                      "JSM_NAMESPACE_RANK",
                                      "JSM_NAMESPACE_SIZE",
                                      "JSM_NAMESPACE_LOCAL_SIZE",
                                      "FLUX_TASK_RANK",
                                      "FLUX_JOB_SIZE",
                                      "FLUX_JOB_NNODES",
                                      "FLUX_JOB_ID",
                                      "PMIX_RANK",
                                      "OMPI_COMMAND",
                                      "PRTE_LAUNCHED",
                                      "PMI_ID",
                                      "PALS_RANKID",
                                      "ALPS_APP_PE",
                                      "PMI_FD",
                                      "PMI_LOCAL_SIZE",
                                      "MPI_LOCALNRANKS",
                                      "I_MPI_HYDRA_UUID",
                                      "SLURM_STEP_NUM_NODES",
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
    expect_refused(
        "MESHCOLL_LAUNCHER is torchrun, horovod, openmpi, mvapich, jsrun, flux, pmi or slurm; "
        "got 'srun'");
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

/* On one host all is in the environment; on several, rank 0's is one of an allocation's. */
Test(job, is_found_by_launchers_of_mpi_and_others)
{
    static const struct {
        const char *rank, *size, *here, *whole, *id;
    } one_host[] = {
        {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE", "4", "HOROVOD_GLOO_RENDEZVOUS_PORT"},
        {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "4",
         "MPIRUN_ID"},
        {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_SIZE", "4",
         "PMIX_NAMESPACE"},
        {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_JOB_NNODES", "1", "FLUX_JOB_ID"},
        {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "4", "I_MPI_HYDRA_UUID"},
        {"PMI_RANK", "PMI_SIZE", "PMI_LOCAL_SIZE", "4", "PMI_JOBID"}};
    for (size_t i = 0; i < MC_COUNT(one_host); i++) {
        SET(one_host[i].rank, "3", one_host[i].size, "4", one_host[i].here, one_host[i].whole,
            one_host[i].id, "77", "PMIX_RANK", "3", "PMI_ID", "3");
        expect_job(3, 4, "127.0.0.1", 0, MC_ENVIRONMENT_PORTS);
        cr_expect(job.only_there && job.port >= 20000 && job.port < 28000);
        unsetenv(one_host[i].id);
        expect_refused("Set MASTER_PORT");
        setenv(one_host[i].here, "2", 1);
        expect_refused("set MASTER_ADDR");
        setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
        setenv(one_host[i].id, "78", 1);
        expect_job(3, 4, "n1", 0, MC_ENVIRONMENT_PORTS);
        cr_expect_str_eq(job.hosts, "n[1-2]");
        cr_expect(!job.only_there && !job.is_address);
    }
    /* the step of a step's daemons may lack a host */
    SET("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE", "2",
        "PMIX_NAMESPACE", "77", "SLURM_PROCID", "0", "SLURM_NTASKS", "1", "SLURM_STEP_ID", "0",
        "SLURM_STEP_NODELIST", "n2", "SLURM_JOB_NODELIST", "n[1-2]");
    expect_job(1, 4, "n1", 0, MC_ENVIRONMENT_PORTS);
    SET("SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_STEP_ID", "0", "SLURM_JOB_ID", "5",
        "SLURM_STEP_NODELIST", "n2", "SLURM_JOB_NODELIST", "n[1-2]", "SLURM_STEP_NUM_NODES", "1");
    expect_job(1, 2, "127.0.0.1", 0, MC_ENVIRONMENT_PORTS);
}

/* MPICH's mpiexec has no name for its job: on one host who started the ranks tells it, on several the step of its
 * agents, of which this process is one. */
Test(job, of_mpich_is_found)
{
    char number[16];
    int ends[2];
    unsigned char first[MC_DIGEST];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    snprintf(number, sizeof number, "%d", ends[0]);
    SET("PMI_RANK", "1", "PMI_SIZE", "4", "MPI_LOCALNRANKS", "4", "PMI_FD", number);
    expect_job(1, 4, "127.0.0.1", 0, MC_ENVIRONMENT_PORTS);
    memcpy(first, job.self.job, sizeof first);
    const pid_t pid = fork();
    if (pid == 0) {
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        snprintf(number, sizeof number, "%d", ends[0]);
        setenv("PMI_FD", number, 1);
        _exit(mc_environment_read(&job) || memcmp(job.self.job, first, sizeof first) == 0);
    }
    int ended = -1;
    cr_assert(waitpid(pid, &ended, 0) == pid && ended == 0, "another starter is another job");
    close(ends[0]);
    close(ends[1]);
    expect_refused("Set MASTER_PORT");
    SET("PMI_RANK", "1", "PMI_SIZE", "4", "MPI_LOCALNRANKS", "2", "SLURM_JOB_ID", "7",
        "SLURM_STEP_ID", "0", "SLURM_PROCID", "0", "SLURM_NTASKS", "4", "SLURM_STEP_NUM_NODES", "2",
        "SLURM_JOB_NODELIST", "n[1-2]");
    expect_job(1, 4, "n1", 0, MC_ENVIRONMENT_PORTS);
    setenv("SLURM_STEP_NUM_NODES", "1", 1); /* of a shell, from which several may be started */
    expect_refused("Set MASTER_PORT");
}

/* Nobody computes alone because only a part of a launcher's variables is understood. */
Test(job, a_rank_of_an_unknown_number_is_refused)
{
    static const char *const known[] = {"PMIX_RANK", "PMI_ID", "PALS_RANKID", "ALPS_APP_PE"};
    for (size_t i = 0; i < MC_COUNT(known); i++) {
        SET(known[i], "0");
        expect_refused("so this is one of several processes, but no variable says of how many");
        cr_expect(strstr(meshcoll_last_error(), known[i]));
        SET(known[i], "2", "PMI_RANK", "2", "PMI_SIZE", "4", AT);
        expect_job(2, 4, "a", 1001, MC_ENVIRONMENT_PORTS);
        SET(known[i], "1", "SLURM_PROCID", "0", "SLURM_NTASKS", "1", "SLURM_STEP_ID", "0");
        expect_refused(known[i]); /* prterun in a step of one process */
        SET(known[i], "1", "RANK", "5", "WORLD_SIZE", "8", "LOCAL_RANK", "1", AT);
        expect_job(5, 8, "a", 1001, MC_ENVIRONMENT_PORTS);
        SET(known[i], "1", "RANK", "0", "WORLD_SIZE", "1", AT);
        expect_refused(known[i]);
    }
    SET("PMIX_RANK", "0", "OMPI_COMMAND", "./a"); /* MPI_Init of a process without a launcher */
    cr_expect(mc_environment_read(&job) == MESHCOLL_OK && job.self.size == 1);
    SET("PMIX_RANK", "0", "OMPI_COMMAND", "./a", "PRTE_LAUNCHED", "1");
    expect_refused("PMIX_RANK is 0");
}

Test(job, addresses_are_told_from_names)
{
    static const struct {
        const char *host;
        bool is_address;
    } hosts[] = {{"10.0.0.1", true}, {"fd00::1", true}, {"fe80::1%eth0", true}, {"[fd00::1]", true},
                 {"node1", false},   {"fd00", false},   {"a%b", false}};
    for (size_t i = 0; i < MC_COUNT(hosts); i++) {
        SET("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", hosts[i].host, "MASTER_PORT", "29500");
        cr_assert_eq(mc_environment_read(&job), MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_expect_eq(job.is_address, hosts[i].is_address, "%s", hosts[i].host);
    }
    static const char *const wrong[] = {
        "node1:29500", "10.0.0.1:29500", "tcp://10.0.0.1", "tcp://node1:29500", "[fd00::1]:1",
        "[node1]:1",   "node 1",         "node1/",         "node1,node2"};
    for (size_t i = 0; i < MC_COUNT(wrong); i++) {
        SET("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", wrong[i], "MASTER_PORT", "29500");
        expect_refused("MASTER_ADDR is a name or an address, without a scheme and a port");
        cr_expect(strstr(meshcoll_last_error(), wrong[i]));
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

Test(job, hosts_of_a_list)
{
    static const char *const lists[][2] = {
        {"node1", "node1"},
        {"node1,node2", "node1 node2"},
        {"node[3-5,9]", "node3 node4 node5 node9"},
        {"n[08-11]-ib,other", "n08-ib n09-ib n10-ib n11-ib other"},
        {"rack[2,3]node[08-09]", "rack2node08 rack3node08 rack2node09 rack3node09"},
        {"n[5]", "n5"}};
    static const char *const wrong[] = {"",       "node[1-", "node[[1]]", "node[]",
                                        "node 1", "node1]",  "node[2-1]", "node[1-99999999999]",
                                        ","};
    char host[MC_ENVIRONMENT_HOST], all[256];
    for (size_t i = 0; i < MC_COUNT(lists); i++) {
        mc_text_t text = mc_text(all, sizeof all);
        for (uint64_t k = 0; mc_hosts_get(lists[i][0], k, host); k++)
            mc_text_add(&text, "%s%s", k ? " " : "", host);
        cr_expect_str_eq(all, lists[i][1]);
    }
    for (size_t i = 0; i < MC_COUNT(wrong); i++)
        cr_expect(!mc_hosts_get(wrong[i], 0, host), "'%s'", wrong[i]);
    cr_expect(!mc_hosts_get("a,b[", 1, host));
    char list[2 * MC_ENVIRONMENT_HOST] = "";
    memset(list, 'n', MC_ENVIRONMENT_HOST - 1);
    cr_expect(mc_hosts_get(list, 0, host));
    memset(list, 'n', MC_ENVIRONMENT_HOST);
    cr_expect(!mc_hosts_get(list, 0, host), "no name has %d characters", MC_ENVIRONMENT_HOST);
}
