#include "job/bootstrap/tree.h"

#include "base/notice.h"
#include "base/system/descriptor.h"
#include "job/network/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each message begins with this. */
typedef struct {
    uint32_t kind, unused;
    uint64_t bytes; /* that follow */
} head_t;
enum { UP = 0x6d637570, DOWN, FAILED };

/* Seconds for a sentence that nobody may wait to read any more. */
enum { LAST_WORDS = 2 };

/* Seconds by which a wait outlasts those of the ranks that are one level nearer to its cause. */
#define LEVEL_SECONDS 0.5

enum { STALL = 256 };

static int32_t subtree(int32_t node, int32_t n)
{
    int64_t first = node, last = node, nodes = 0;
    while (first < n) {
        nodes += (last < n ? last : n - 1) - first + 1;
        first = first * MC_FANOUT + 1;
        last = last * MC_FANOUT + MC_FANOUT;
    }
    return (int32_t)nodes;
}

void mc_tree_init(mc_tree_t *tree, const mc_environment_t *env)
{
    memset(tree, 0, sizeof *tree);
    tree->self = env->self;
    tree->timeout = env->timeout;
    tree->check = env->check;
    tree->parent.fd = -1;
    for (int i = 0; i < MC_FANOUT; i++)
        tree->child[i].fd = -1;
}

void mc_tree_place(mc_tree_t *tree, int32_t node)
{
    tree->node = node;
    for (int32_t i = 0; i < MC_FANOUT; i++) {
        const int64_t number = (int64_t)node * MC_FANOUT + 1 + i;
        if (number >= tree->self.size)
            break;
        tree->child[i].node = (int32_t)number;
        tree->child[i].below = subtree((int32_t)number, tree->self.size);
        tree->n_children = i + 1;
    }
}

void mc_tree_close(mc_tree_t *tree)
{
    mc_descriptor_close(&tree->parent.fd);
    for (int i = 0; i < MC_FANOUT; i++)
        mc_descriptor_close(&tree->child[i].fd);
}

/* Failure -------------------------------------------------------------------------------------- */

static void notify_failed(const mc_branch_t *to, const char *why)
{
    const double deadline = mc_now() + LAST_WORDS;
    const head_t head = {.kind = FAILED, .bytes = strlen(why)};
    if (to->fd >= 0 && !mc_wire_send(to->fd, &head, sizeof head, deadline))
        (void)mc_wire_send(to->fd, why, head.bytes, deadline);
}

/* What has arrived unread would make close() discard what was just sent. */
static void leave(mc_branch_t *branch)
{
    char discarded[4096];
    if (branch->fd < 0)
        return;
    shutdown(branch->fd, SHUT_WR);
    while (recv(branch->fd, discarded, sizeof discarded, MSG_DONTWAIT) > 0) {}
    mc_descriptor_close(&branch->fd);
}

int mc_tree_fail(mc_tree_t *tree, const char *format, ...)
{
    if (!tree->broken) {
        va_list args;
        va_start(args, format);
        mc_number_vprint(tree->why, sizeof tree->why, format, args);
        va_end(args);
        tree->broken = true;
        notify_failed(&tree->parent, tree->why);
        for (int i = 0; i < MC_FANOUT; i++)
            notify_failed(&tree->child[i], tree->why);
        leave(&tree->parent);
        for (int i = 0; i < MC_FANOUT; i++)
            leave(&tree->child[i]);
    }
    return mc_fail(MESHCOLL_ERR_TRANSPORT, "%s", tree->why);
}

static int fail_left(mc_tree_t *tree, const mc_branch_t *branch, int error)
{
    return mc_tree_fail(tree, "rank %d has ended, or cannot be reached from rank %d: %s",
                        branch->rank, tree->self.rank,
                        error == ECONNRESET ? "it closed its connection" : strerror(error));
}

/* Reads the sentence of a neighbour that failed. */
static int pass_on(mc_tree_t *tree, const mc_branch_t *from, uint64_t bytes)
{
    char why[MC_TREE_WHY] = "";
    const double deadline = mc_now() + LAST_WORDS;
    if (bytes >= sizeof why || mc_wire_recv(from->fd, why, bytes, deadline, -1))
        return fail_left(tree, from, ECONNRESET);
    mc_text_clean(why);
    return mc_tree_fail(tree, "%s", why);
}

int mc_tree_take_early(mc_tree_t *tree, mc_branch_t *from)
{
    head_t head = {0};
    const ssize_t n = recv(from->fd, &head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
    if (n == (ssize_t)sizeof head && head.kind == UP && from != &tree->parent && !from->ready) {
        from->ready = true;
        return MESHCOLL_OK;
    }
    const int failed = mc_wire_recv(from->fd, &head, sizeof head, mc_now() + LAST_WORDS, -1);
    if (!failed && head.kind == FAILED)
        return pass_on(tree, from, head.bytes);
    return fail_left(tree, from, failed && failed != ETIMEDOUT ? failed : ECONNRESET);
}

/* Messages ------------------------------------------------------------------------------------- */

/* One exchange. */
typedef struct {
    mc_tree_t *tree;
    double deadline;
    mc_notice_t notice;
    size_t awaited; /* bytes of a message of which only the head has come; 0: none has begun */
} exchange_t;

/* Levels below the root of a tree of n nodes. */
static int height(int32_t n)
{
    int levels = 0;
    for (int64_t nodes = 1, level = 1; nodes < n; nodes += level) {
        level *= MC_FANOUT;
        levels++;
    }
    return levels;
}

static int depth(int32_t node)
{
    int levels = 0;
    for (; node > 0; node = (node - 1) / MC_FANOUT)
        levels++;
    return levels;
}

/* The end of the wait for a rank. A child may wait for those below it; the parent for all others, and who is below it
 * hears from it why it failed. */
static double deadline_of(const exchange_t *x, const mc_branch_t *with)
{
    const mc_tree_t *const tree = x->tree;
    const int levels = with == &tree->parent ? height(tree->self.size) + depth(tree->node) - 1
                                             : height(with->below);
    return x->deadline + LEVEL_SECONDS * levels;
}

/* The head of a message is in a packet of its own, which passes where full ones do not. */
static const char *stall_text(const exchange_t *x, int fd, char text[STALL])
{
    mc_text_t t = mc_text(text, STALL);
    const size_t lost = x->awaited ? x->awaited : mc_wire_unconfirmed(fd);
    if (lost)
        mc_text_add(&t,
                    "; %s, but none of the %zu bytes %s: packets of full size seem to be lost, so "
                    "compare the MTU of both hosts and of what lies between them",
                    x->awaited ? "its message has begun" : "it was sent a message", lost,
                    x->awaited ? "that follow has come" : "at its end has arrived");
    return text;
}

/* Who waits for a child says so. Who waits for its parent mostly waits for what that one waits for: it says so
 * later, and while ranks join leaves it to rank 0, which knows who is missing. */
static void say_waiting(exchange_t *x, const mc_branch_t *branch)
{
    double waited;
    char name[MC_WIRE_NAME], stall[STALL];
    const mc_tree_t *const tree = x->tree;
    const bool up = branch == &tree->parent;
    if (!mc_notice_due(&x->notice, &waited) || tree->made ||
        (up && !x->awaited && (!tree->complete || waited < MC_NOTICE_AGAIN)))
        return;
    fprintf(
        stderr,
        "meshcoll: rank %d has waited %.0f s for rank %d (%s) while a mesh is created, for %g s "
        "in all (MESHCOLL_BOOTSTRAP_TIMEOUT)%s\n",
        tree->self.rank, waited, branch->rank, mc_wire_print_other(branch->fd, name), tree->timeout,
        stall_text(x, branch->fd, stall));
}

/* While a child is waited for, the parent may fail. */
static int move_all(exchange_t *x, const mc_branch_t *with, bool sends, void *data, size_t bytes)
{
    size_t done = 0;
    const int watched = with == &x->tree->parent ? -1 : x->tree->parent.fd;
    const double deadline = deadline_of(x, with);
    for (;;) {
        const double until = mc_notice_until(&x->notice, deadline);
        const int failed = sends ? mc_wire_send_on(with->fd, data, bytes, &done, until)
                                 : mc_wire_recv_on(with->fd, data, bytes, &done, until, watched);
        if (done > 0)
            x->awaited = 0;
        if (failed != ETIMEDOUT || mc_now() >= deadline)
            return failed;
        say_waiting(x, with);
    }
}

static int fail_late(const exchange_t *x, const mc_branch_t *branch)
{
    char stall[STALL];
    return mc_tree_fail(
        x->tree, "rank %d was waited for too long %s: rank %d waited %g s (%s)%s", branch->rank,
        x->tree->made ? "in meshcoll_destroy" : "while a mesh was created", x->tree->self.rank,
        x->tree->timeout, x->tree->made ? "MESHCOLL_TIMEOUT" : "MESHCOLL_BOOTSTRAP_TIMEOUT",
        stall_text(x, branch->fd, stall));
}

static int send_message(exchange_t *x, mc_branch_t *to, uint32_t kind, void *data, size_t bytes)
{
    head_t head = {.kind = kind, .bytes = bytes};
    int failed = move_all(x, to, true, &head, sizeof head);
    if (!failed)
        failed = move_all(x, to, true, data, bytes);
    if (!failed)
        return MESHCOLL_OK;
    /* the reason why it left may have arrived */
    to->ready = true;
    return failed == ETIMEDOUT ? fail_late(x, to) : mc_tree_take_early(x->tree, to);
}

static int recv_message(exchange_t *x, const mc_branch_t *from, uint32_t kind, void *data,
                        size_t bytes)
{
    head_t head;
    mc_tree_t *const tree = x->tree;
    int failed = move_all(x, from, false, &head, sizeof head);
    if (!failed && head.kind == FAILED)
        return pass_on(tree, from, head.bytes);
    if (!failed && (head.kind != kind || head.bytes != bytes))
        return mc_tree_fail(tree,
                            "rank %d exchanges %llu bytes where rank %d expects %zu: do all ranks "
                            "create the same meshes, with the same version of meshcoll?",
                            from->rank, (unsigned long long)head.bytes, tree->self.rank, bytes);
    if (!failed) {
        x->notice = mc_notice_begin();
        x->awaited = bytes;
        failed = move_all(x, from, false, data, bytes);
    }
    if (failed == ECANCELED)
        return mc_tree_take_early(tree, &tree->parent);
    if (failed == ETIMEDOUT)
        return fail_late(x, from);
    x->awaited = 0;
    return failed ? fail_left(tree, from, failed) : MESHCOLL_OK;
}

/* Allgather ------------------------------------------------------------------------------------ */

/* Of a subtree, `entry` bytes for each rank: its number, then its block. */
static int gather(exchange_t *x, const void *in, size_t bytes, char *collected)
{
    mc_tree_t *const tree = x->tree;
    const int64_t rank = tree->self.rank;
    const size_t entry = sizeof rank + bytes;
    memcpy(collected, &rank, sizeof rank);
    memcpy(collected + sizeof rank, in, bytes);
    char *at = collected + entry;
    for (int32_t i = 0; i < tree->n_children; i++) {
        const mc_branch_t *const child = &tree->child[i];
        const size_t below = (size_t)child->below * entry;
        const int status = recv_message(x, child, UP, at, below);
        if (status)
            return status;
        at += below;
    }
    return tree->node == 0
               ? MESHCOLL_OK
               : send_message(x, &tree->parent, UP, collected, (size_t)(at - collected));
}

/* At node 0: by rank. */
static int sort(mc_tree_t *tree, const char *collected, char *out, size_t bytes)
{
    mc_bitmap_t seen;
    int64_t rank = 0;
    int status = mc_bitmap_init(&seen, (uint32_t)tree->self.size);
    if (status)
        return mc_tree_fail(tree, "rank 0: %s", meshcoll_last_error());
    for (int32_t i = 0; i < tree->self.size && !status; i++) {
        memcpy(&rank, collected, sizeof rank);
        collected += sizeof rank;
        if (rank < 0 || rank >= tree->self.size || mc_bitmap_has(&seen, (uint32_t)rank)) {
            status = mc_tree_fail(tree, "the data of the ranks arrived with a rank twice");
            break;
        }
        mc_bitmap_set(&seen, (uint32_t)rank, 1);
        memcpy(out + (size_t)rank * bytes, collected, bytes);
        collected += bytes;
    }
    mc_bitmap_free(&seen);
    return status;
}

int mc_tree_allgather(mc_tree_t *tree, const void *in, void *out, size_t bytes, double deadline)
{
    const size_t n = (size_t)tree->self.size, nodes = (size_t)subtree(tree->node, tree->self.size);
    if (tree->broken)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "%s", tree->why);
    char *const collected = malloc(nodes * (sizeof(int64_t) + bytes));
    if (!collected)
        return mc_tree_fail(tree, "rank %d is out of memory for an exchange", tree->self.rank);
    exchange_t x = {.tree = tree, .deadline = deadline, .notice = mc_notice_begin()};
    int status = gather(&x, in, bytes, collected);
    if (!status)
        status = tree->node == 0 ? sort(tree, collected, out, bytes)
                                 : recv_message(&x, &tree->parent, DOWN, out, n * bytes);
    free(collected);
    for (int32_t i = 0; !status && i < tree->n_children; i++)
        status = send_message(&x, &tree->child[i], DOWN, out, n * bytes);
    return status;
}
