/* Headers of tagged messages, written by hand: rank 0 of three posts sends and receives, and the other two send headers
 * and data that no sender of meshcoll would. Each step is a byte that says what, and what it needs. */
#include "fuzz/fuzz.h"
#include "runtime/message/transfer.h"
#include "support/inproc.h"

enum { RANKS = 3, MOST_STEPS = 96, LARGE = MC_MESSAGE_EAGER + 64 };
enum { HEADER, RECEIVE, SEND, DATA, STEPS };

typedef struct {
    meshcoll_t *rank[RANKS];
    meshcoll_request_t *request[MOST_STEPS];
    meshcoll_received_t received[MOST_STEPS];
    mc_header_t header[MOST_STEPS];
    mc_span_t span[MOST_STEPS];
    mc_io_t io[MOST_STEPS];
    mc_io_queue_t finished;
    mc_peer_t *peer[RANKS]; /* rank 0, as seen by the others */
    char buffer[MOST_STEPS][256], large[LARGE];
    int n;
} world_t;

static void send_raw(world_t *w, int32_t from, uint64_t tag, void *at, size_t bytes)
{
    mc_transport_t *const t = w->rank[from]->transport[0];
    if (!w->peer[from])
        FUZZ_CHECK(t->ops->connect(t, 0, NULL, &w->peer[from]) == MESHCOLL_OK, "connect");
    w->span[w->n] = (mc_span_t){at, bytes};
    w->io[w->n].finished = &w->finished;
    const mc_message_t m = {.tag = tag, .span = &w->span[w->n], .n_spans = 1, .bytes = bytes};
    (void)t->ops->send(w->peer[from], &m, &w->io[w->n]);
}

/* Numbers that matter more often than all others. */
static uint64_t number(fuzz_bytes_t *bytes)
{
    static const uint64_t edges[] = {0,        1,         MC_MESSAGE_INLINE, MC_MESSAGE_INLINE + 1,
                                     256,      257,       MC_MESSAGE_EAGER,  MC_MESSAGE_EAGER + 1,
                                     SIZE_MAX, INT64_MAX, SIZE_MAX / 2 + 1,  UINT32_MAX,
                                     LARGE,    1 << 20};
    uint64_t any = 0;
    const uint8_t which = fuzz_byte(bytes);
    if (which < MC_COUNT(edges))
        return edges[which];
    if (which < 128)
        return which;
    fuzz_fill(bytes, &any, sizeof any);
    return any;
}

static void step(world_t *w, fuzz_bytes_t *bytes)
{
    const uint8_t what = fuzz_byte(bytes), who = fuzz_byte(bytes);
    const int32_t peer = 1 + who % (RANKS - 1), tag = who >> 2 & 3;
    const size_t most = sizeof w->buffer[0];
    const uint64_t n = number(bytes);
    mc_header_t *const header = &w->header[w->n];
    switch (what % STEPS) {
    case HEADER:
        *header = (mc_header_t){.kind = what >> 2, .tag = who >= 128 ? -tag : tag, .bytes = n};
        header->id = fuzz_byte(bytes);
        header->credits = (uint32_t)number(bytes);
        send_raw(w, peer, mc_tag(peer, MC_TAG_MESSAGE, 0), header, sizeof *header);
        break;
    case RECEIVE:
        (void)meshcoll_recv_begin(w->rank[0], w->buffer[w->n], n < most ? n : most, MESHCOLL_UINT8,
                                  who & 64 ? MESHCOLL_ANY_SOURCE : peer,
                                  who & 128 ? MESHCOLL_ANY_TAG : tag, &w->received[w->n],
                                  &w->request[w->n]);
        break;
    case SEND:
        (void)meshcoll_send_begin(w->rank[0], w->large, n < LARGE ? n : LARGE, MESHCOLL_UINT8,
                                  who & 64 ? 0 : peer, tag, &w->request[w->n]);
        break;
    default:
        send_raw(w, peer, mc_tag_data(peer, fuzz_byte(bytes)), w->large, n < LARGE ? n : LARGE);
    }
    w->n++;
}

/* A finished one becomes NULL. */
static void progress(world_t *w)
{
    for (int i = 0; i < w->n; i++)
        if (w->request[i] && meshcoll_test(w->request[i]) != MESHCOLL_IN_PROGRESS)
            w->request[i] = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    world_t *const w = calloc(1, sizeof *w);
    fuzz_bytes_t bytes = {data, data + size};
    FUZZ_CHECK(w && mc_inproc_create("x=3", NULL, w->rank) == MESHCOLL_OK, "a world");
    while (bytes.at < bytes.end && w->n < MOST_STEPS) {
        step(w, &bytes);
        progress(w);
    }
    progress(w);
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(w->rank[r]);
    for (int i = 0; i < w->n; i++)
        meshcoll_free(w->request[i]);
    free(w);
    return 0;
}
