/** @file
 * Tagged messages between two ranks of a mesh; meshcoll.h includes this file. docs/calling.md says
 * how they travel.
 */
#ifndef MESHCOLL_MESSAGE_H
#define MESHCOLL_MESSAGE_H

#include <meshcoll/datatypes.h>

#ifdef __cplusplus
extern "C" {
#endif

struct meshcoll;
struct meshcoll_request;

/** A receive with these takes messages of any rank, and with any tag. */
enum { MESHCOLL_ANY_SOURCE = -1, MESHCOLL_ANY_TAG = -1 };

/** What a receive has received. */
typedef struct {
    int source;   /**< the rank that sent it */
    int tag;      /**< the tag that it was sent with */
    size_t count; /**< elements of the receive's datatype that were sent, whole ones */
    size_t bytes; /**< bytes that were sent */
} meshcoll_received_t;

/** @name Tagged messages
 * @{ */
/**
 * Send `count` elements to rank `peer`, and receive a message of at most `count` elements from rank
 * `peer`, or MESHCOLL_ANY_SOURCE. Messages match by the mesh, the sender and `tag`, from 0 on; a
 * receive may pass MESHCOLL_ANY_TAG. Of the messages of one rank that match a receive it receives
 * the one that was sent first. They do not mix with collectives, and their calls are not ordered
 * relative to other calls. A rank may send to itself. Both ends should use the same datatype; only
 * bytes are compared. A count of 0 is allowed, with a NULL buffer.
 *
 * The functions with …_begin start and return; *request is the caller's until meshcoll_wait,
 * meshcoll_test or a similar function returns its completion, as for meshcoll_begin. Until then the
 * buffer belongs to the library. In a group they start at once. The others wait for completion.
 *
 * A send is complete when its buffer may be reused: a small message perhaps before it is received,
 * a larger one (above 8 KiB), or one of many that the receiver has not received yet, only when a
 * receive matches it. So two ranks that both send and then receive should use meshcoll_send_begin.
 *
 * `received` may be NULL; it is set before the completion of the receive is returned, and must stay
 * valid until then. ERR_TRUNCATED if the message is longer than `count` elements: the buffer has
 * its beginning, *received its length, and the mesh goes on. Other errors: ERR_INVALID_ARG,
 * ERR_NO_MEMORY, ERR_UNSUPPORTED, ERR_TRANSPORT. A receive that nothing matches ends with
 * meshcoll_destroy, as any running request.
 */
MESHCOLL_API int meshcoll_send(struct meshcoll *mesh, const void *buffer, size_t count,
                               meshcoll_datatype_t datatype, int peer, int tag);
MESHCOLL_API int meshcoll_recv(struct meshcoll *mesh, void *buffer, size_t count,
                               meshcoll_datatype_t datatype, int peer, int tag,
                               meshcoll_received_t *received);
MESHCOLL_API int meshcoll_send_begin(struct meshcoll *mesh, const void *buffer, size_t count,
                                     meshcoll_datatype_t datatype, int peer, int tag,
                                     struct meshcoll_request **request);
MESHCOLL_API int meshcoll_recv_begin(struct meshcoll *mesh, void *buffer, size_t count,
                                     meshcoll_datatype_t datatype, int peer, int tag,
                                     meshcoll_received_t *received,
                                     struct meshcoll_request **request);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
