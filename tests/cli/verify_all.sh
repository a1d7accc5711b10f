#!/usr/bin/env bash
# Every path, algorithm and collective on every mesh up to 64 ranks in 1D and 2D, on 3D meshes and on 32 x 32; of
# allreduce, which has nine tenths of the strategies, as far as it comes in VERIFY_SECONDS (120):
# `meshcoll verify --all` goes to the end.
set -euo pipefail

for collective in bcast reduce scatter gather allgather reduce_scatter alltoall; do
    "$MESHCOLL" verify $collective --all
done
status=0
"$MESHCOLL" verify allreduce --all --seconds "${VERIFY_SECONDS:-120}" || status=$?
# 3: out of time, all proved so far, and the output says what is left
[ "$status" -eq 0 ] || [ "$status" -eq 3 ]
