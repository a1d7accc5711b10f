#!/usr/bin/env bash
# Every path, algorithm and collective on every mesh up to 64 ranks in 1D and 2D, on 3D meshes and on 32 x 32, smaller
# meshes first: as far as each collective comes in 2 s. With MESHCOLL_TESTS=all seven of them to the end, and allreduce,
# which has nine tenths of the strategies, as far as it comes in VERIFY_SECONDS (120); `meshcoll verify allreduce --all`
# goes to the end.
set -euo pipefail

short=(--seconds 2)
long=(--seconds "${VERIFY_SECONDS:-120}")
if [ "${MESHCOLL_TESTS:-}" = all ]; then
    short=()
else
    long=("${short[@]}")
fi

# verify COLLECTIVE [OPTION]…
verify() {
    local status=0
    "$MESHCOLL" verify "$1" --all "${@:2}" || status=$?
    # 3: out of time, all proved so far, and the output says what is left
    [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || exit "$status"
}

for collective in bcast reduce scatter gather allgather reduce_scatter alltoall; do
    verify $collective "${short[@]}"
done
verify allreduce "${long[@]}"
