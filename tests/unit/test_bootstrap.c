/* The bootstrap: ranks that are processes and gather, and ranks that end. */
#include "job/bootstrap/bootstrap.h"
#include "job/bootstrap/seek.h"
#include "job/bootstrap/tree.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
#define LIMIT 1.0

typedef struct {
    int size, rounds;
    int ends;  /* this rank ends before the second allgather; -1: none */
    int again; /* how often it joins once more */
    int stopped; /* the rank before this one is stopped there, where the time limit is LIMIT; 0: none */
    int refused; /* libcrypto makes no digests for this rank; 0: for all */
    const char *secret;
    const char *hosts; /* Slurm's list; NULL: none */
    const char *at;    /* where rank 0 listens; NULL: everywhere */
} trial_t;

/* libcrypto makes no digests in this process; HMACs, for which it asks itself how long they are, it does. */
static bool refuses;

int EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *digest, unsigned *bytes)
{
    int (*next)(EVP_MD_CTX *, unsigned char *, unsigned *) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "EVP_DigestFinal_ex");
    return refuses && !bytes ? 0 : next(context, digest, bytes);
}

/* A resolver that knows *.here and *.gone, where nobody listens, says nothing of *.dead, and does not know *.none. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    const char *const dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".none") == 0)
        return EAI_NONAME;
    if (dot && strcmp(dot, ".dead") == 0)
        pause();
    const bool here = dot && strcmp(dot, ".here") == 0, gone = dot && strcmp(dot, ".gone") == 0;
    return next(here ? "127.0.0.7" : gone ? "127.0.0.8" : name, service, hints, found);
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
    if (rank == 0 && t->at) {
        strcpy(mine.host, t->at);
        mine.only_there = mine.is_address = true;
    } else if (t->hosts && mc_hosts_get(t->hosts, 0, mine.host)) {
        mine.hosts = t->hosts;
    }
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
        if (i == 1 && t->stopped)
            mc_bootstrap_made(bootstrap, LIMIT);
        while (i == 1 && rank == t->stopped - 1)
            pause();
        status = gather(&oob, i);
    }
    for (int i = 0; i < t->again && !status; i++)
        status = join_again(&mine);
    if (status == 2 && (t->ends >= 0 || t->stopped)) {
        char wanted[64];
        snprintf(wanted, sizeof wanted,
                 t->stopped ? "rank %d was waited for too long" : "rank %d has ended",
                 t->stopped ? t->stopped - 1 : t->ends);
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
        if (r != t->stopped - 1)
            cr_assert_eq(waitpid(pid[r], &how[r], 0), pid[r]);
    if (!t->stopped)
        return;
    kill(pid[t->stopped - 1], SIGKILL);
    cr_assert_eq(waitpid(pid[t->stopped - 1], &how[t->stopped - 1], 0), pid[t->stopped - 1]);
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

/* Whichever rank is stopped, wherever it is in the tree: who waits for one that waits for it does not blame that one. */
Test(bootstrap, tells_who_is_stopped, .timeout = 120)
{
    enum { SIZE = 7 };
    int how[MOST];
    for (int stopped = 1; stopped <= SIZE; stopped += 3) {
        const trial_t t = {.size = SIZE, .rounds = 3, .ends = -1, .stopped = stopped, .secret = ""};
        run_ranks(&t, how);
        for (int r = 0; r < t.size; r++)
            cr_expect(r == stopped - 1 || (WIFEXITED(how[r]) && WEXITSTATUS(how[r]) == 2),
                      "rank %d is stopped, rank %d: %d", stopped - 1, r, how[r]);
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

/* Rank 0 is on any host of a step, and Slurm's names need no resolver on its own host. */
Test(bootstrap, finds_rank_0_on_a_host_of_the_list, .timeout = 120)
{
    static const struct {
        const char *hosts, *at;
    } lists[] = {{"a.gone,b.none,c.here,d.gone", "127.0.0.7"},
                 {"n[01-20].gone,c.here", "127.0.0.7"},
                 {"a.none,b.none", "127.0.0.1"},
                 {"a.dead", "127.0.0.1"}};
    int how[MOST];
    for (size_t i = 0; i < MC_COUNT(lists); i++) {
        const trial_t t = {.size = 3,
                           .rounds = 1,
                           .ends = -1,
                           .secret = "x",
                           .hosts = lists[i].hosts,
                           .at = lists[i].at};
        run_ranks(&t, how);
        for (int r = 0; r < t.size; r++)
            cr_expect(WIFEXITED(how[r]) && WEXITSTATUS(how[r]) == 0, "%s, rank %d: %d", t.hosts, r,
                      how[r]);
    }
}

Test(bootstrap, asks_slurm_for_addresses)
{
    char folder[] = "/tmp/meshcoll-scontrol-XXXXXX", path[64], variable[64];
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/scontrol", folder);
    snprintf(variable, sizeof variable, "%s:/usr/bin:/bin", folder);
    setenv("PATH", variable, 1);
    FILE *const script = fopen(path, "we");
    cr_assert(script);
    fputs("#!/bin/sh\n[ \"$*\" = \"-o show node a.none,b.none\" ] || exit 1\n"
          "echo 'NodeName=a.none Arch=x NodeAddr=10.0.0.1 NodeHostName=vm'\n"
          "echo 'NodeName=b.none NodeAddr=b.none NodeHostName=vm'\n"
          "echo 'NodeName=b.none NodeAddr=fd00::2'\n",
          script);
    fclose(script);
    cr_assert_eq(chmod(path, 0700), 0);
    mc_names_t names = {.host = {"a.none", "b.none"}, .n = 2, .of_slurm = true};
    static const char *const wanted[] = {"10.0.0.1", "b.none", "fd00::2"};
    mc_slurm_ask(&names);
    cr_assert_eq(names.n, (int)MC_COUNT(wanted), "%d", names.n);
    for (int i = 0; i < names.n; i++)
        cr_expect_str_eq(names.host[i], wanted[i]);
    unlink(path);
    mc_slurm_ask(&names);
    cr_expect_eq(names.n, 0, "without scontrol: %d", names.n);
    rmdir(folder);
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
