/*
 * Segments of shared memory, one per rank and transport. Others find it as a descriptor of its owner,
 * /proc/PID/fd/N, so that nothing is left behind however a process ends. It has a channel for
 * each rank of the machine that may send to the owner.
 */
#ifndef MC_TRANSPORT_SHM_MEMORY_H
#define MC_TRANSPORT_SHM_MEMORY_H

#include "transport/shm/shm.h"

#include <stdatomic.h>
#include <sys/types.h>

/* A message of up to MC_SHM_SMALL bytes is in its slot's cache lines, one of up to MC_SHM_PAGE in the page of that slot,
 * a larger one in those of several: its receiver copies a piece while its sender writes the next. Above MC_SHM_EAGER its
 * receiver reads it. Its sender helps (shm_share.h) from a smaller size on, unless it shares its core or is sent to itself, and
 * has no time for that: from what `meshcoll tune` found (link.h), or MC_SHM_PIECES. On two Xeon cores (model 167) a broadcast of 16 KiB took 2.6 us in pieces of 4 KiB, 2.8 in 8, 2.9 in 2
 * and 3.1 by reading; of 32 KiB 4.6 in pieces and 3.5 by both; among 4 ranks on the two of 32 and 64 KiB 7.9 and 14.3 us in
 * pieces, 12.6 and 17.0 else; an alltoall with messages of 32 and 64 KiB 4.7 and 8.8 in pieces, 5.3 and 9.1 else. */
enum { MC_SHM_SLOTS = 32, MC_SHM_SMALL = 104, MC_SHM_PAGE = 4096 };
enum { MC_SHM_PIECES = (32 << 10) - 1, MC_SHM_EAGER = 64 << 10 };
_Static_assert(MC_SHM_PAGE % MC_PIECE_UNIT == 0, "elements are not cut");

typedef enum {
    MC_SHM_MESSAGE, /* of `bytes`; what is more than a page follows in pieces */
    MC_SHM_OFFER,   /* of `bytes`, in the sender's memory: word = {its io, data, 0} or {its io,
                       spans, how many} */
    MC_SHM_LEFT,    /* the same; its sender does not help to move it */
    MC_SHM_TAKEN,   /* to the sender: word = {its io}; the receiver has read it */
    MC_SHM_GIVE,    /* to the sender: word = {its io, the receiver's io}; give it in pieces */
    MC_SHM_PIECE,   /* of a message: tag = the receiver's io; 0: of the one that began last */
    MC_SHM_POSTED,  /* of `bytes`, on the sender's board: word = {0, where, which post} */
    MC_SHM_SHARE /* to the sender: word = {its io, where to write, which sharing}; help me read it */
} mc_shm_kind_t;

/* Two cache lines, which come to a reader at once. It holds something new when `turn` is the lap its reader is in. */
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

/* How far a message is that both its ends move: its receiver reads from the front, its sender writes from the back. */
typedef struct {
    _Alignas(
        64) _Atomic uint64_t claimed; /* which sharing, pages at the front, pages at the back */
    _Atomic uint64_t given;           /* bytes written by the sender; all ones: it cannot */
} mc_shm_share_t;

/* From one rank to one other, who owns the memory. */
typedef struct {
    _Alignas(64) _Atomic uint64_t taken; /* slots its reader is done with */
    _Atomic uint32_t wanted;             /* its writer sleeps until there is room */
    mc_shm_share_t share;                /* of a message to this channel's writer */
    mc_shm_slot_t slot[MC_SHM_SLOTS];
    _Alignas(4096) char page[MC_SHM_SLOTS][MC_SHM_PAGE];
} mc_shm_channel_t;

/* What several ranks read of one: its owner writes it here once. Two that read one process's memory by the kernel wait for
 * each other, page by page (Chakraborty et al., Cluster 2017): 256 KiB for 3 ranks on 2 cores took 50 to 70 us, through a
 * board 27. Messages are there one behind the other, from its beginning again where all have been read. */
enum { MC_SHM_POSTS = 16, MC_SHM_BOARD = 1 << 20 };
typedef struct {
    _Alignas(64) _Atomic uint64_t filled; /* bytes */
    _Alignas(64) _Atomic uint32_t left;   /* readers and writer who are not done with it */
} mc_shm_post_t;
typedef struct {
    mc_shm_post_t post[MC_SHM_POSTS];
    _Alignas(4096) char data[MC_SHM_BOARD];
} mc_shm_board_t;

enum { MC_SHM_WHY = 256 };
/* What a segment begins with; its last digits change with the layout of what follows. */
#define MC_SHM_MAGIC UINT64_C(0x6d636d6573680001)
typedef struct {
    uint64_t magic;
    uint64_t cookie; /* random: a descriptor of that number may be another's by now */
    _Alignas(64) _Atomic uint32_t asleep; /* its owner waits for a datagram */
    _Atomic uint32_t failed; /* its owner's mesh did: its messages may have changed since */
    char why[MC_SHM_WHY];    /* set before that */
    _Alignas(4096) mc_shm_board_t board;
    mc_shm_channel_t from[];
} mc_shm_segment_t;

/* Which file it is, on this kernel. */
typedef struct {
    uint64_t dev, ino;
} mc_shm_file_t;

/* What others need to find it. A process's number means another process in another PID namespace. */
typedef struct {
    uint64_t cookie, at; /* `at`: where the owner has it */
    mc_shm_file_t file, pids;
    pid_t pid;
    int32_t fd;
} mc_shm_address_t;

typedef struct {
    mc_shm_segment_t *segment;
    size_t bytes;
    bool readable; /* this process lets its memory be read for as long */
} mc_shm_mapping_t;

/* `readable`: where only parents may trace their children (Yama), any process of this user may trace this one, until the
 * last such mapping is closed. The kernel does not tell what was allowed before; afterwards nothing is. */
int mc_shm_memory_create(int32_t n, bool readable, mc_shm_mapping_t *mapping,
                         mc_shm_address_t *address);
/* A file that is not the segment expected is refused before anything of it is opened, mapped or read. */
int mc_shm_memory_open(const mc_shm_address_t *address, int32_t n, mc_shm_mapping_t *mapping);
void mc_shm_memory_close(const mc_shm_mapping_t *mapping);
/* Is its owner's process there, and has not closed it? Another may have its number by now: then it seems so. */
bool mc_shm_memory_is_there(const mc_shm_address_t *address);

/* Datagram sockets by which sleepers are woken; names follow the cookies. */
int mc_shm_bell_open(const mc_shm_address_t *address, int *fd);
void mc_shm_bell_ring(int fd, const mc_shm_address_t *address);
void mc_shm_bell_quiet(int fd);

/* May this process read the owner's memory? */
bool mc_shm_memory_readable(const mc_shm_address_t *address);

#endif
