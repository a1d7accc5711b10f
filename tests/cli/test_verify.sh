#!/usr/bin/env bash
# meshcoll verify: one strategy, one mesh, small sweeps, and being out of time.
. "$(dirname "$0")/lib.sh"

run 0 verify allreduce --mesh box=4,gpu=8 --strategy hierarchical
has "collective meshes strategies worlds in flight"
has "allreduce 1 1 1 1"
has "verified: 1 world, all right"
has "in program order with 1 message in flight from one rank to another"
run 0 verify bcast --mesh box=3,gpu=5 --strategy option2 --root all
has "bcast 1 1 15"
run 0 verify scatter --mesh x=20 --strategy scatter:mst
has "scatter 1 1 3"
run 0 verify reduce --mesh x=7 --strategy reduce:long --root 6
has "reduce 1 1 1"

# Boxes of unequal sizes: all that the rule lets pass, and a reason for what it does not.
run 0 verify --mesh box=3+2+1 --jobs 2
has "all right"
refused "fold 0" verify allreduce --mesh box=3+2+1 --strategy "allreduce:doubling(box) reduce:mst(fold) bcast:mst(fold)"

# All strategies of all collectives; every root, and in three segments too.
run 0 verify --mesh x=2,y=2 --jobs 1
for collective in bcast reduce scatter gather allgather reduce_scatter allreduce alltoall "in all"; do
    has "$collective "
done
# 4 lines and 1 + 2 + 2 + 3 grids, or 6 and 2 + 4 grids more, for each of 8 collectives
ranks=4 meshes=12
[ "${MESHCOLL_TESTS:-}" != all ] || ranks=6 meshes=20
run 0 verify --all --max-ranks $ranks --dims 1,2 --large none --json
gives 'j["complete"]' True
gives 'j["in_all"]["meshes"]' $((8 * meshes))
run 0 verify gather --all --max-ranks 12 --large 4x5x3
has "gather "

# Out of time: exit status 3, and how much was done.
run 3 verify allreduce --mesh x=16,y=20 --jobs 1 --seconds 1
has "0 of 1"
has "out of time"
finish
