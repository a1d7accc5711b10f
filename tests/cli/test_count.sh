#!/usr/bin/env bash
# The five ways to allreduce, counted on 4, 5 and 8 ranks.
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
finish
