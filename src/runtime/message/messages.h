/* Notes: small tagged messages of the library itself. Tags of notes and of the caller's messages never
 * match each other. The caller holds the mesh's lock. */
#ifndef MC_MESSAGE_MESSAGES_H
#define MC_MESSAGE_MESSAGES_H

#include "runtime/message/transfer.h"

enum { MC_NOTE_BYTES = MC_MESSAGE_INLINE };

/* Starts to send a note to, or to receive one from, a mesh rank other than this one. `tag` may be any
 * number. The caller waits for the transfer and drops it; `note` is valid until then. */
int mc_note_send(meshcoll_t *h, int32_t rank, int32_t tag, const void *note, size_t bytes,
                 mc_transfer_t **transfer);
int mc_note_recv(meshcoll_t *h, int32_t rank, int32_t tag, void *note, size_t bytes,
                 mc_transfer_t **transfer);
/* Drops a transfer, of which a receive may be incomplete: then it receives nothing any more. NULL is
 * allowed. */
void mc_note_drop(meshcoll_t *h, mc_transfer_t *transfer);

/* Where the tagged messages of a family arrive, and their progress (talk.c). */

/* Makes the messages of a handle, where it has none so far, and listens. */
int mc_talk_open(meshcoll_t *h);
/* Of a handle that is to be freed: nothing that arrives is passed on to it, now and later. */
void mc_talk_leave(meshcoll_t *h);
/* Of a job, once its transports are closed. */
void mc_talk_free(mc_job_t *job);

#endif
