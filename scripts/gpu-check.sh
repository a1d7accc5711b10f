#!/usr/bin/env bash
# What one machine's GPUs can show of calls on device memory: builds with nvcc, checks the kernels' machine code,
# runs all ranks in one grid of the first GPU, and, where there are several GPUs, a process for each of them.
# scripts/gpu-check.sh [BUILD FOLDER]: build/release. MESHCOLL_LIBCUDA=build/release/tests/device/libfakecuda.so is
# a dry run on the double. The last lines are a table; exit 1 if something failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
build=${1:-build/release}
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
table=() failed=0

note() { # note WHAT RESULT
    table+=("$(printf '%-44s %s' "$1" "$2")")
}

step() { # step WHAT COMMAND…: its last line is kept
    local what=$1 said status
    shift
    said=$("$@" 2>&1)
    status=$?
    printf '%s\n' "$said"
    case $status in
    0) note "$what" "right: ${said##*$'\n'}" ;;
    77) note "$what" "${said##*$'\n'}" ;;
    *) note "$what" "FAILED ($status): ${said##*$'\n'}" && failed=1 ;;
    esac
}

[ -x "$nvcc" ] || { echo "skipped: there is no nvcc on PATH or in /usr/local/cuda/bin"; exit 77; }
gpus=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || true)
count=0
[ -z "$gpus" ] || count=$(wc -l <<<"$gpus")

if [ "$build" = build/release ]; then
    cmake --preset release -DMESHCOLL_CUDA=ON >/dev/null || exit 1
fi
cmake --build "$build" -j "$(nproc)" --target meshcoll meshcoll_tool device_one_grid || exit 1

note "GPUs" "${gpus:-none that nvidia-smi knows}"
step "machine code of the kernels" scripts/check-kernels.sh "$build/device"
step "all ranks in one grid" "$build/tests/device/device_one_grid" 40
if [ "$count" -ge 2 ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "$nvcc" -I include examples/gpu_allreduce.cu -L "$build" -lmeshcoll -Xlinker "-rpath=$PWD/$build" \
        -o "$folder/gpu_allreduce" || exit 1
    for n in $(seq 2 "$count"); do
        step "a process for each of $n GPUs" "$build/meshcoll" run -n "$n" "$folder/gpu_allreduce"
    done
else
    note "a process for each GPU" "not run: this needs two GPUs"
fi

printf '\n'
printf '%s\n' "${table[@]}"
exit $failed
