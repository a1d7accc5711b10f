#!/usr/bin/env bash
# The five ways to allreduce, counted on 4, 5 and 8 ranks, and six on meshes.
. "$(dirname "$0")/lib.sh"

# way: (sent in D, time steps, most a rank handles in a step in D), for p ranks
check='[[w["way"], w["counted"]["sent"], w["counted"]["time_steps"], w["counted"]["step_most"]] for w in j["ways"][1:]]'

run 0 count --ranks 4 --json
gives "$check" "[['star', '6', 6, '1'], ['binary tree', '6', 4, '1'], ['naive ring', '6', 6, '1'], ['ring', '6', 6, '1/2']]"
gives 'j["ways"][0]["counted"]["sent"]' 12
gives 'j["ways"][0]["counted"]["time_steps"] >= 3' True

run 0 count --ranks 8 --json --bytes 2M
gives "$check" "[['star', '14', 14, '1'], ['binary tree', '14', 6, '1'], ['naive ring', '14', 14, '1'], ['ring', '14', 14, '1/4']]"
gives 'j["ways"][0]["counted"]["sent"]' 56
gives 'j["bytes"]' 2097152
gives 'j["ways"][4]["counted"]["sent_bytes"] == 14 * 2**21' True
gives '[w["estimate"]["total"] for w in j["ways"]]' "[56.0, 14.0, 48.0, 32.0, 32.0]"
gives '[w["counted"]["sent"] == w["counted"]["received"] for w in j["ways"]]' "[True, True, True, True, True]"

run 0 count --ranks 5 --json
gives "$check" "[['star', '8', 8, '1'], ['binary tree', '8', 6, '1'], ['naive ring', '8', 8, '1'], ['ring', '8', 8, '2/5']]"

run 0 count
has "five ways to allreduce on p = 8 ranks, each with a vector of D = 1 MiB"
has "full mesh 56 D 112 D D p(p-1) = 56 D, sent"
has "star 14 D 28 D 2D(p-1) = 14 D, sent 14 2 D root: D(p-1) = 7 D"
has "binary tree 14 D 28 D < 6Dp = 48 D, both ends 6 2 log p = 6 D <= 3D = 3 D"
has "naive ring 14 D 28 D ~ 4Dp = 32 D, both ends 14 2p = 16 D 2D = 2 D"
has "ring 14 D 28 D ~ 4Dp = 32 D, both ends 14 2p = 16 1/4 D 2D/p = 0.25 D"

# On a mesh: all ranks as one line, what crosses boxes, and the way through the mesh. A ring of 2 x 4 ranks
# has two hops out of a box; four lines across two boxes carry a quarter of D each, there and back.
over='[[w["counted"]["sent"], w["counted"]["sent_over"]["box"]] for w in j["ways"][1:]]'
run 0 count --mesh box=2,gpu=4 --json
gives "$over" "[['14', '8'], ['14', '2'], ['14', '3'], ['14', '7/2'], ['14', '2']]"
gives 'j["ways"][0]["counted"]["sent_over"]' "{'box': '32', 'gpu': '24'}"
gives 'j["ways"][4]["strategy"], j["ways"][5]["estimate"]' "('allreduce:ring(box*gpu)', None)"
gives 'j["mesh"]["text"], j["ranks"]' "('box=2,gpu=4', 8)"
# 4 + 3 + 1: of 8 * 7 messages 4 * 3 + 3 * 2 stay in their boxes; one line of three boxes carries D.
run 0 count --mesh box=4+3+1 --json
gives 'j["ways"][0]["counted"]["sent_over"]["box"], j["ways"][5]["counted"]["sent_over"]["box"]' "('38', '4')"
run 0 count --mesh box=4+3+1
has "six ways to allreduce on p = 8 ranks, box=4+3+1, each with a vector of D = 1 MiB"
has "hierarchical 14 D 4 D 28 D - 8 - D -"
has "hierarchical, reduce:mst(fold) reduce_scatter:ring(gpu)"
# One dimension is one line.
run 0 count --mesh box=1,gpu=4 --json
gives 'len(j["ways"])' 5
finish
