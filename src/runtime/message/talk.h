/* Where the tagged messages of a family arrive, and their progress. */
#ifndef MC_MESSAGE_TALK_H
#define MC_MESSAGE_TALK_H

#include "runtime/message/transfer.h"

/* Makes the messages of a handle, where it has none so far, and listens. */
int mc_talk_open(meshcoll_t *h);
/* Of a handle that is to be freed: nothing that arrives is passed on to it, now and later. */
void mc_talk_leave(meshcoll_t *h);
/* Of a job, once its transports are closed. */
void mc_talk_free(mc_job_t *job);

#endif
