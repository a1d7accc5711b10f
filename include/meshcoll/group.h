/** @file
 * Groups of ranks: meshes of some ranks of a mesh; meshcoll.h includes this file. docs/calling.md says what
 * they cost. Groups of calls are meshcoll_group_begin and meshcoll_group_end of meshcoll.h.
 */
#ifndef MESHCOLL_GROUP_H
#define MESHCOLL_GROUP_H

#include <meshcoll/datatypes.h>

#ifdef __cplusplus
extern "C" {
#endif

struct meshcoll;

/**
 * Creates a mesh of the `n` ranks `ranks` of `parent`, which may be a group or a sub-mesh. They are
 * distinct, in any order; rank i of the group is ranks[i]. Exactly these ranks call it, all with the
 * same list and tag. No other rank takes part or is waited for.
 *
 * `tag`, from 0 on, tells creations apart that run at the same time on the same parent; others may all
 * pass 0. Let one thread of a rank create its groups (docs/limits.md). Ranks that create several groups one after
 * another must not wait in a circle: all ranks create the groups that they share in the same order.
 *
 * If the ranks are all those at some coordinates of each dimension of `parent`, the group's mesh has
 * the dimensions in which they differ: ranks 0, 1, 4 and 5 of "box=4,gpu=2" make "box=2,gpu=2". Else it
 * is found from the machines that they run on, as meshcoll_create does. Its links are those of
 * `parent`, at their full speed. Strategies forced by the environment hold where they fit it.
 *
 * A group shares the connections of `parent`, and its lock and progress thread, so a failure of one is
 * a failure of all. It may be used concurrently with others. A rank can be in 4095 groups and
 * sub-meshes at once. meshcoll_destroy destroys the group, on each of its ranks.
 *
 * Errors: ERR_INVALID_ARG (a rank out of range, or twice; this rank is not in the list; the tag is
 * negative; a group of calls is open on `parent`), ERR_MISMATCH where ranks that call it disagree about
 * the list (they may also wait for each other forever), ERR_UNSUPPORTED where no context is left, and
 * the error of a mesh that failed before.
 */
MESHCOLL_API int meshcoll_create_group(struct meshcoll *parent, const int *ranks, int n, int tag,
                                       struct meshcoll **group);

#ifdef __cplusplus
}
#endif

#endif
