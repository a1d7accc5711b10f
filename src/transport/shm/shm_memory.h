/*
 * Segments of shared memory, one per rank and transport, with a channel for each rank of the
 * machine that may send to the owner; a channel takes memory when its ranks connect.
 */
#ifndef MC_TRANSPORT_SHM_MEMORY_H
#define MC_TRANSPORT_SHM_MEMORY_H

#include "base/system/sealed.h"
#include "transport/shm/shm.h"

#include <stdatomic.h>
#include <sys/types.h>

/* A message of up to MC_SHM_SMALL bytes lies in its slot, one of up to MC_SHM_PAGE in a page, a
 * larger one, up to mc_transport_t.eager, on the sender's board. The receiver reads longer ones, and those without
 * room there, from the sender's memory, or asks for them in pieces of a page. */
enum { MC_SHM_SLOTS = 32, MC_SHM_SMALL = 104, MC_SHM_PAGE = 4096, MC_SHM_EAGER = 64 << 10 };
_Static_assert(MC_SHM_PAGE % MC_PIECE_UNIT == 0, "elements are not cut");

typedef enum {
    MC_SHM_MESSAGE, /* of `bytes`, at most a page */
    MC_SHM_OFFER,   /* of `bytes`, in the sender's memory: word = {its io, address, 0}, or
                     {its io, address of its spans, how many} */
    MC_SHM_TAKEN,   /* to the sender: word = {its io}; the receiver has the message */
    MC_SHM_GIVE, /* to the sender: word = {its io, the receiver's io, bytes that it has}; send the rest in
                       pieces */
    MC_SHM_PIECE,  /* of a message: tag = the receiver's io */
    MC_SHM_POSTED, /* of `bytes`, on the sender's board: word = {0, offset, index of the post} */
    MC_SHM_SHARE   /* to the sender: word = {its io, where to write, number of the sharing}; help
                      to move it */
} mc_shm_kind_t;

/* Two cache lines, which a reader fetches together (mc_shm_news). The slot has something new
 * when `turn` is one more than the number of slots that were read before. */
enum { MC_SHM_SLOT_BYTES = 128 };
typedef struct {
    _Alignas(MC_SHM_SLOT_BYTES) _Atomic uint32_t turn;
    uint32_t kind;
    uint64_t tag, bytes;
    union {
        char data[MC_SHM_SMALL];
        uint64_t word[3];
    };
} mc_shm_slot_t;

/* Progress of a message that both ends move: the receiver reads from the front, the sender
 * writes from the back. */
typedef struct {
    /* Number of the sharing, pages claimed from the front, pages claimed from the back. */
    _Alignas(64) _Atomic uint64_t claimed;
    _Atomic uint64_t given; /* bytes the sender has written; all ones: it cannot */
} mc_shm_share_t;

/* From one rank to the owner of the memory. */
typedef struct {
    _Alignas(64) _Atomic uint64_t taken; /* slots that the reader has released */
    _Atomic uint32_t wanted;             /* the writer sleeps until there is room */
    mc_shm_share_t share;                /* of a message in the opposite direction */
    mc_shm_slot_t slot[];
} mc_shm_channel_t;

/* Messages that the owner copies for their receivers, once for several: two ranks that read one process's memory
 * serialise in the kernel, page by page (Chakraborty et al., Cluster 2017). Messages follow each other, and start again
 * at offset 0 where all there have been read. */
enum { MC_SHM_POSTS = 64, MC_SHM_BOARD = 4 << 20 };
typedef struct {
    _Alignas(64) _Atomic uint64_t filled; /* bytes */
    _Alignas(64) _Atomic uint32_t left;   /* readers and writer that are not done yet */
} mc_shm_post_t;
typedef struct {
    mc_shm_post_t post[MC_SHM_POSTS];
    _Alignas(4096) char data[MC_SHM_BOARD]; /* as much of it as the segment's shape says */
} mc_shm_board_t;

/* What all channels and boards of n ranks have; less where many ranks share a machine, as there are n * n
 * channels. Slots and pages are powers of two. */
typedef struct {
    uint32_t slots, pages; /* of a channel: at most MC_SHM_SLOTS */
    size_t board;          /* bytes: at most MC_SHM_BOARD */
} mc_shm_shape_t;
mc_shm_shape_t mc_shm_shape(int32_t n);

enum { MC_SHM_WHY = 256 };
/* Starts each segment. Its last digits change with the layout below. */
#define MC_SHM_MAGIC UINT64_C(0x6d636d6573680003)
/* Behind it lie the board, the pages of all channels, and the channels. */
typedef struct {
    _Alignas(4096) uint64_t magic;
    uint64_t cookie; /* random: the descriptor's number may name another file by now */
    _Alignas(64) _Atomic uint32_t asleep; /* the owner waits for a datagram */
    _Atomic uint32_t failed; /* the owner's mesh failed: its messages may have changed since */
    char why[MC_SHM_WHY];    /* the reason, written before `failed` */
} mc_shm_segment_t;

static inline mc_shm_board_t *mc_shm_board(mc_shm_segment_t *segment)
{
    return (mc_shm_board_t *)(segment + 1);
}
/* Of the channel from rank i of n. */
mc_shm_channel_t *mc_shm_channel(mc_shm_segment_t *segment, int32_t n, int32_t i);
char *mc_shm_pages(mc_shm_segment_t *segment, int32_t n, int32_t i);

/* A PID namespace. */
typedef struct {
    uint64_t dev, ino;
} mc_shm_pids_t;

/* What peers need to open a segment. */
typedef struct {
    uint64_t cookie, at; /* `at`: address in the owner's process */
    mc_sealed_t file;    /* pid 0: none */
    mc_shm_pids_t pids;  /* the owner's */
} mc_shm_address_t;

typedef struct {
    mc_shm_segment_t *segment;
    size_t bytes;
    bool readable; /* this process permits reads of its memory while it is mapped */
} mc_shm_mapping_t;

/* `readable`: where Yama lets only parents trace their children, any process of this user may
 * trace this one until the last such mapping is closed. The kernel does not tell what was
 * permitted before, so afterwards nothing is. */
int mc_shm_memory_create(int32_t n, bool readable, mc_shm_mapping_t *mapping,
                         mc_shm_address_t *address);
/* Refuses a file other than the expected segment before it opens it for access, maps or reads
 * it. */
int mc_shm_memory_open(const mc_shm_address_t *address, int32_t n, mc_shm_mapping_t *mapping);
void mc_shm_memory_close(const mc_shm_mapping_t *mapping);
/* The mapping permits no more reads. */
void mc_shm_memory_forbid(mc_shm_mapping_t *mapping);
/* Does the owner's process exist, with the descriptor open? True as well if another process has
 * the PID by now, and where the kernel denies the answer. */
bool mc_shm_memory_is_there(const mc_shm_address_t *address);

/* Datagram sockets that wake sleeping ranks; their names derive from the cookies. */
int mc_shm_bell_open(const mc_shm_address_t *address, int *fd);
void mc_shm_bell_ring(int fd, const mc_shm_address_t *address);
void mc_shm_bell_quiet(int fd);

/* May this process read the owner's memory? */
bool mc_shm_memory_readable(const mc_shm_address_t *address);

/*
 * What access the ranks of one machine have to each other's memory: each tries all others. Each
 * publishes a small segment; others open it, and later read the memory of its process.
 */

/* What each rank publishes, plain memory: a segment, and System V memory with a cookie. */
typedef struct {
    mc_shm_address_t address; /* without a process: none could be made */
    uint64_t cookie;
    pid_t pid;
    int32_t key; /* of System V memory; -1: none could be made */
} mc_shm_published_t;

typedef struct {
    mc_shm_mapping_t mapping;
    uint64_t *keyed; /* the System V memory; NULL: none */
    mc_shm_published_t published;
} mc_shm_probe_t;

void mc_shm_probe_open(mc_shm_probe_t *probe);
void mc_shm_probe_close(const mc_shm_probe_t *probe);

/* The ranks that take part, by rank as gathered; what they published is `stride` bytes apart. */
typedef struct {
    const int32_t *machine; /* as in boxes.h */
    int32_t n, rank;
    const void *published;
    size_t stride;
} mc_shm_ranks_t;

/* The least access of this rank to the ranks of its machine, itself included, COPY at most. */
mc_shm_access_t mc_shm_probe_copies(const mc_shm_ranks_t *ranks);
/* READ if this rank may read the memory of all ranks of its machine, else COPY. They must have
 * allowed it, with a transport of access READ. */
mc_shm_access_t mc_shm_probe_reads(const mc_shm_ranks_t *ranks);

#endif
