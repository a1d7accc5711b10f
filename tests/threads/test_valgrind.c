/* What a peer writes into a receive (process_vm_writev) is not uninitialised to valgrind. Two ends of the transport in
 * one process, which starts itself again under valgrind. */
#include "transport/shm/shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A sanitizer's program does not run under valgrind. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#endif

#if defined(__has_include) && !defined(SANITIZED)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif

enum { BYTES = 8 << 20, SKIPPED = 77 };

#ifdef VALGRIND_CHECK_MEM_IS_DEFINED

static void need(int good, const char *what)
{
    if (good)
        return;
    printf("%s: %s\n", what, meshcoll_last_error());
    exit(1);
}

static void move(char *from, char *to)
{
    mc_transport_t *t[2];
    mc_peer_t *peer[2];
    mc_io_queue_t finished = {0};
    mc_io_t io[2] = {{.finished = &finished}, {.finished = &finished}};
    for (int32_t r = 0; r < 2; r++) {
        const mc_shm_params_t params = {.dim = "gpu", .n = 2, .rank = r, .access = MC_SHM_READ};
        need(mc_shm_create(&params, &t[r]) == MESHCOLL_OK, "create");
    }
    for (int32_t r = 0; r < 2; r++)
        need(t[r]->ops->connect(t[r], 1 - r, t[1 - r]->address, &peer[r]) == MESHCOLL_OK,
             "connect");
    mc_span_t out = {from, BYTES}, in = {to, BYTES};
    const mc_message_t send = {.tag = 1, .span = &out, .n_spans = 1, .bytes = BYTES};
    const mc_message_t recv = {.tag = 1, .span = &in, .n_spans = 1, .bytes = BYTES};
    need(t[1]->ops->recv(peer[1], &recv, &io[0]) == MESHCOLL_IN_PROGRESS, "recv");
    need(t[0]->ops->send(peer[0], &send, &io[1]) == MESHCOLL_IN_PROGRESS, "send");
    for (int left = 2; left > 0;) {
        t[1]->ops->progress(t[1]);
        t[0]->ops->progress(t[0]); /* helps */
        while (mc_io_pop(&finished))
            left--;
    }
    for (int r = 0; r < 2; r++)
        t[r]->ops->close(t[r]);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!RUNNING_ON_VALGRIND) {
        execlp("valgrind", "valgrind", "-q", argv[0], (char *)NULL);
        puts("skipped: valgrind is not installed");
        return SKIPPED;
    }
    char *const from = malloc(BYTES), *const to = malloc(BYTES);
    need(from && to, "memory");
    memset(from, 7, BYTES);
    need(VALGRIND_CHECK_MEM_IS_DEFINED(to, BYTES) != 0, "valgrind does not look");
    move(from, to);
    need(memcmp(from, to, BYTES) == 0, "what came");
    need(VALGRIND_CHECK_MEM_IS_DEFINED(to, BYTES) == 0, "what the peer wrote is uninitialised");
    free(to);
    free(from);
    return 0;
}

#else

int main(void)
{
    puts("skipped: there is no valgrind/memcheck.h, or a sanitizer instead");
    return SKIPPED;
}

#endif
