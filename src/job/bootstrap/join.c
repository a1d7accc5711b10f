#include "job/bootstrap/tree.h"

#include "base/notice.h"
#include "base/system/descriptor.h"
#include "base/system/log.h"
#include "job/bootstrap/seek.h"
#include "job/handshake/acceptor.h"
#include "job/network/peer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Accepting ------------------------------------------------------------------------ */

/* Connected neighbours. A child may be ready for the first exchange before all others are there;
 * then it has nothing more to say, and is watched for its end only. */
typedef struct {
    struct pollfd poll[MC_FANOUT + 2];
    mc_branch_t *branch[MC_FANOUT + 2]; /* NULL: another rank 0 */
    int n;
} watched_t;

static watched_t watch(mc_tree_t *tree, int rival)
{
    watched_t w = {.n = 0};
    if (rival >= 0)
        w.poll[w.n++] = (struct pollfd){.fd = rival, .events = POLLIN};
    for (int i = -1; i < MC_FANOUT; i++) {
        mc_branch_t *const b = i < 0 ? &tree->parent : &tree->child[i];
        if (b->fd < 0)
            continue;
        w.branch[w.n] = b;
        w.poll[w.n++] = (struct pollfd){
            .fd = b->fd, .events = b->ready ? POLLRDHUP : (short)(POLLIN | POLLRDHUP)};
    }
    return w;
}

static int take_event(mc_tree_t *tree, mc_branch_t *branch, int rival)
{
    if (branch)
        return mc_tree_take_early(tree, branch);
    return mc_rival_accept(rival) ? mc_tree_fail(tree, "%s", meshcoll_last_error()) : MESHCOLL_OK;
}

/* The next connection of a rank; ERR_TRANSPORT: a neighbour failed. IN_PROGRESS: the time is over. */
static int next_pending(mc_tree_t *tree, mc_acceptor_t *acceptor, int rival, double deadline,
                        mc_pending_t *pending)
{
    int which = 0, failed, status = MESHCOLL_OK;
    do {
        const watched_t w = watch(tree, rival);
        const double soon = mc_now() + MC_TREE_CHECK;
        failed = mc_acceptor_wait(acceptor, tree->check && soon < deadline ? soon : deadline,
                                  w.poll, w.n, &which, pending);
        if (failed == ECANCELED)
            status = take_event(tree, w.branch[which], rival);
        else if (failed == ETIMEDOUT && tree->check && tree->check())
            status = mc_tree_fail(tree, "%s", meshcoll_last_error());
    } while (!status && (failed == ECANCELED || (failed == ETIMEDOUT && mc_now() < deadline)));
    if (status)
        return status;
    if (failed == ETIMEDOUT)
        return MESHCOLL_IN_PROGRESS;
    return failed ? mc_tree_fail(tree, "rank %d cannot wait for connections: %s", tree->self.rank,
                                 strerror(failed))
                  : MESHCOLL_OK;
}

/* Rank 0: registering -------------------------------------------------------------------------- */

typedef struct {
    mc_tree_t *tree;
    mc_acceptor_t *acceptor;
    mc_bitmap_t joined;
    mc_endpoint_t (*listens)[MC_ENDPOINTS]; /* by node */
    int32_t *rank;                          /* by node */
    int32_t n;                              /* nodes so far */
    unsigned char start[MC_NONCE];
    mc_notice_t notice;
    int rival; /* -1: none is looked for */
} registry_t;

int32_t mc_join_missing(const mc_bitmap_t *joined, int32_t n, mc_text_t *text)
{
    enum { MOST_NAMED = 16 };
    int32_t missing = 0, named = 0;
    for (int32_t first = 0, end; first < n; first = end + 1) {
        end = first;
        while (end < n && !mc_bitmap_has(joined, (uint32_t)end))
            end++;
        missing += end - first;
        if (end == first || named > MOST_NAMED)
            continue;
        if (named++ == MOST_NAMED)
            mc_text_add(text, ", …");
        else if (end - first == 1)
            mc_text_add(text, "%s%d", named > 1 ? ", " : "", first);
        else
            mc_text_add(text, "%s%d-%d", named > 1 ? ", " : "", first, end - 1);
    }
    return missing;
}

static void say_missing(registry_t *r)
{
    double waited;
    char names[300], where[512];
    mc_text_t text = mc_text(names, sizeof names), at = mc_text(where, sizeof where);
    if (!mc_notice_due(&r->notice, &waited))
        return;
    const int32_t n = mc_join_missing(&r->joined, r->tree->self.size, &text);
    mc_seek_where(r->acceptor->listener, &at);
    mc_log(MC_LOG_WARN,
           "rank 0 has waited %.0f s for %d of %d ranks: %s; it listens on %s, for %g s "
           "in all (MESHCOLL_BOOTSTRAP_TIMEOUT)",
           waited, n, r->tree->self.size, names, where, r->tree->timeout);
}

static int fail_missing(const registry_t *r)
{
    char names[300];
    mc_text_t text = mc_text(names, sizeof names);
    const int32_t n = mc_join_missing(&r->joined, r->tree->self.size, &text);
    return mc_tree_fail(r->tree,
                        "%d of %d ranks did not join within %g s (MESHCOLL_BOOTSTRAP_TIMEOUT): "
                        "rank%s %s",
                        n, r->tree->self.size, r->tree->timeout, n == 1 ? "" : "s", names);
}

static mc_answer_code_t judge(const registry_t *r, const mc_hello_t *hello)
{
    const mc_self_t *const self = &r->tree->self;
    if (hello->generation != self->generation || hello->kind != MC_HELLO_JOIN)
        return MC_ANSWER_LATER;
    if (hello->size != self->size)
        return MC_ANSWER_SIZE;
    if (hello->rank < 1 || hello->rank >= self->size)
        return MC_ANSWER_RANK;
    return mc_bitmap_has(&r->joined, (uint32_t)hello->rank) ? MC_ANSWER_TWICE : MC_ANSWER_OK;
}

/* Once a process, however many meshes it creates. */
static void warn_of_strangers(const registry_t *r, const mc_pending_t *pending)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!r->tree->self.has_secret && mc_peer_find(pending->fd) != MC_PEER_OURS &&
        !atomic_flag_test_and_set(&warned))
        mc_log(MC_LOG_WARN,
               "rank 0 accepts ranks from elsewhere (%s) without a secret: anybody who "
               "reaches its port may join; MESHCOLL_SECRET or MESHCOLL_SECRET_FILE on all ranks "
               "keeps others out",
               pending->name);
}

/* A child of rank 0 keeps its connection; the others are sent to their parents. */
static void enter(registry_t *r, const mc_pending_t *pending)
{
    const int32_t node = r->n, parent = (node - 1) / MC_FANOUT;
    const mc_hello_t *const hello = &pending->hello;
    mc_answer_t answer = {.code = MC_ANSWER_OK, .index = node, .parent_rank = r->rank[parent]};
    if (parent > 0)
        memcpy(answer.parent, r->listens[parent], sizeof answer.parent);
    memcpy(answer.start, r->start, sizeof answer.start);
    warn_of_strangers(r, pending); /* which may hang up when it has its answer */
    if (mc_handshake_answer(&r->tree->self, pending->fd, &pending->challenge, hello, &answer)) {
        close(pending->fd); /* it comes again */
        return;
    }
    mc_bitmap_set(&r->joined, (uint32_t)hello->rank, 1);
    r->rank[node] = hello->rank;
    memcpy(r->listens[node], hello->listens, sizeof hello->listens);
    r->n++;
    if (parent > 0) {
        close(pending->fd);
        return;
    }
    r->tree->child[node - 1].fd = pending->fd;
    r->tree->child[node - 1].rank = hello->rank;
}

static int register_ranks(registry_t *r, double deadline)
{
    mc_pending_t pending;
    while (r->n < r->tree->self.size) {
        const double until = mc_notice_until(&r->notice, deadline);
        const int status = next_pending(r->tree, r->acceptor, r->rival, until, &pending);
        if (status == MESHCOLL_IN_PROGRESS && mc_now() >= deadline)
            return fail_missing(r);
        say_missing(r);
        if (status == MESHCOLL_IN_PROGRESS)
            continue;
        if (status)
            return status;
        const mc_answer_code_t code = judge(r, &pending.hello);
        if (code == MC_ANSWER_OK)
            enter(r, &pending);
        else
            mc_acceptor_refuse(r->acceptor, &pending, code);
    }
    return MESHCOLL_OK;
}

static int receive_ranks(const mc_environment_t *env, mc_tree_t *tree, double deadline)
{
    const size_t n = (size_t)tree->self.size;
    int listener = -1;
    registry_t r = {.tree = tree, .n = 1, .notice = mc_notice_begin()};
    mc_tree_place(tree, 0);
    if (getrandom(r.start, sizeof r.start, 0) != (ssize_t)sizeof r.start)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank 0 has no random numbers: %s", strerror(errno));
    int status = mc_rival_claim(env, &r.rival);
    if (status)
        return status;
    status = mc_seek_listen(env, &listener);
    if (status) {
        mc_descriptor_close(&r.rival);
        return status;
    }
    r.acceptor = calloc(1, sizeof *r.acceptor);
    r.listens = calloc(n, sizeof *r.listens);
    r.rank = calloc(n, sizeof *r.rank);
    if (!r.acceptor || !r.listens || !r.rank || mc_bitmap_init(&r.joined, (uint32_t)n)) {
        close(listener);
        status = mc_fail_memory("the ranks of the job");
    } else {
        mc_bitmap_set(&r.joined, 0, 1);
        mc_acceptor_open(r.acceptor, &tree->self, listener);
        status = register_ranks(&r, deadline);
        mc_acceptor_close(r.acceptor);
        mc_bitmap_free(&r.joined);
    }
    free(r.rank);
    free(r.listens);
    free(r.acceptor);
    mc_descriptor_close(&r.rival);
    return status;
}

/* The other ranks ------------------------------------------------------------------------------ */

static mc_branch_t *missing_child(mc_tree_t *tree, const mc_hello_t *hello)
{
    for (int32_t i = 0; i < tree->n_children; i++)
        if (hello->kind == MC_HELLO_CHILD && hello->generation == tree->self.generation &&
            tree->child[i].node == hello->index && tree->child[i].fd < 0)
            return &tree->child[i];
    return NULL;
}

/* All have joined, or rank 0 would have failed first, but these came no further. */
static int fail_alone(mc_tree_t *tree, const mc_acceptor_t *acceptor, int32_t n)
{
    char where[200];
    mc_text_t at = mc_text(where, sizeof where);
    mc_seek_where(acceptor->listener, &at);
    return mc_tree_fail(tree,
                        "rank %d waited %g s for %d rank%s to connect to it, at %s "
                        "(MESHCOLL_BOOTSTRAP_TIMEOUT): where a firewall opens some ports only, "
                        "MESHCOLL_PORTS says which",
                        tree->self.rank, tree->timeout, n, n == 1 ? "" : "s", where);
}

static int receive_children(mc_tree_t *tree, mc_acceptor_t *acceptor, double deadline)
{
    mc_pending_t pending;
    for (int32_t n = 0; n < tree->n_children;) {
        const int status = next_pending(tree, acceptor, -1, deadline, &pending);
        if (status == MESHCOLL_IN_PROGRESS)
            return fail_alone(tree, acceptor, tree->n_children - n);
        if (status)
            return status;
        mc_branch_t *const child = missing_child(tree, &pending.hello);
        const bool known = pending.hello.rank > 0 && pending.hello.rank < tree->self.size;
        mc_answer_t answer = {.code = MC_ANSWER_OK};
        if (!child || !known) {
            mc_acceptor_refuse(acceptor, &pending, known ? MC_ANSWER_TWICE : MC_ANSWER_RANK);
        } else if (mc_handshake_answer(&tree->self, pending.fd, &pending.challenge, &pending.hello,
                                       &answer)) {
            close(pending.fd);
        } else {
            child->fd = pending.fd;
            child->rank = pending.hello.rank;
            n++;
        }
    }
    return MESHCOLL_OK;
}

static int join_rank0(const mc_environment_t *env, mc_tree_t *tree, double deadline)
{
    mc_seek_t seek;
    int status = mc_seek_rank0(env, &tree->self, deadline, &seek);
    if (status)
        return status;
    const double later = mc_now() + tree->timeout + MC_TREE_GRACE;
    mc_tree_place(tree, seek.answer.index);
    status = mc_digest_extend(tree->self.job, seek.answer.start, sizeof seek.answer.start);
    if (status)
        close(seek.fd);
    else
        status = mc_seek_parent(&tree->self, &seek, later, &tree->parent.fd);
    tree->parent.rank = seek.answer.parent_rank;
    mc_acceptor_t *const acceptor = status ? NULL : calloc(1, sizeof *acceptor);
    if (!status && !acceptor)
        status = mc_tree_fail(tree, "rank %d is out of memory", tree->self.rank);
    if (status) {
        close(seek.listener);
        return status;
    }
    mc_acceptor_open(acceptor, &tree->self, seek.listener);
    const int lacks = mc_acceptor_reserve(acceptor, (int)tree->n_children);
    status = lacks ? mc_tree_fail(tree, "rank %d cannot take %d connections: %s (ulimit -n)",
                                  tree->self.rank, (int)tree->n_children, strerror(lacks))
                   : receive_children(tree, acceptor, later);
    mc_acceptor_close(acceptor);
    free(acceptor);
    return status;
}

int mc_join(const mc_environment_t *env, mc_tree_t *tree)
{
    const double deadline = mc_now() + tree->timeout;
    return tree->self.rank == 0 ? receive_ranks(env, tree, deadline)
                                : join_rank0(env, tree, deadline);
}
