/*
 * Flushes: whatever its transports have accepted of a request goes out before the request counts as complete, as the
 * caller may compute without progress afterwards.
 *
 * A transport has one flush in flight, which all who ask after it began wait for, and then for the next one. It waits
 * for everything sent through the transport, including messages of other requests to receivers that are not there yet;
 * if those wait for this request, waiting for the flush would deadlock. So while others run, a request gives up after a
 * number of polls without an event: those of a waiting rank before it sleeps, and a few sleeps, in which the wire
 * drains. A message gives up even where nothing else runs, as the messages before it may be complete and not yet on the
 * wire. Requests that may give up do not wait for a flush that one has given up.
 */
#ifndef MC_RUNTIME_FLUSH_H
#define MC_RUNTIME_FLUSH_H

#include "runtime/handle/request.h"

/* What the request has sent through these transports (bits, mc_transport_t.place) goes out. OK: at once; IN_PROGRESS:
 * mc_flush_check follows at each poll; or an error. */
int mc_flush_begin(const meshcoll_request_t *r, uint32_t transports, mc_flush_t *f);
/* `events`: of this poll. */
int mc_flush_check(const meshcoll_request_t *r, mc_flush_t *f, uint32_t events);
/* Polls the flushes in flight, if any. One that fails ends the mesh. */
void mc_flush_poll(mc_job_t *job);

#endif
