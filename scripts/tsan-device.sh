#!/usr/bin/env bash
# The device executor's tests under clang's thread sanitizer, in build/tsan-device: scripts/tsan-device.sh [TEST…]
# Without address randomisation (setarch -R), which the sanitizer's map of memory does not always allow.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in clang setarch; do
    if ! command -v $program >/dev/null; then
        echo "skipped: $program is not installed"
        exit 77
    fi
done
build=build/tsan-device
cmake -S . -B $build -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g" \
    -DMESHCOLL_SANITIZE=thread -DMESHCOLL_MPI=OFF -DMESHCOLL_CUDA=OFF -DMESHCOLL_BUILD_BENCH=OFF \
    -DMESHCOLL_BUILD_TOOLS=OFF -DMESHCOLL_BUILD_EXAMPLES=OFF >/dev/null
cmake --build $build --target device_walk --parallel "${JOBS:-2}" >$build/log 2>&1 || {
    cat $build/log
    exit 1
}
tests=("$@")
[ ${#tests[@]} -gt 0 ] || mapfile -t tests < <($build/tests/device/device_walk || true)
for name in "${tests[@]}"; do
    TSAN_OPTIONS=halt_on_error=1 setarch "$(uname -m)" -R $build/tests/device/device_walk "$name"
    echo "$name: no race"
done
