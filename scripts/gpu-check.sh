#!/usr/bin/env bash
# What one machine's GPUs can show of calls on device memory: builds with nvcc, checks the kernels' machine code,
# runs all ranks in one grid of the first GPU, processes that share it by the stream executor, times what one GPU can,
# and, where there are several GPUs, runs a process for each of them by either executor, with meshcoll-bench beside NCCL
# where that is installed.
# scripts/gpu-check.sh [BUILD FOLDER]: build/test. MESHCOLL_LIBCUDA=build/test/tests/device/libfakecuda.so is
# a dry run on the fake, whose times say nothing. The last lines are a table: what ran, and figures beside what is
# asked of them; exit 1 if something failed. A figure that is missed is no failure.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
build=${1:-build/test}
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
table=() failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

note() { # note WHAT RESULT
    table+=("$(printf '%-44s %s' "$1" "$2")")
}

step() { # step WHAT COMMAND…: its last line is kept; all of it is in $folder/said
    local what=$1 said status
    shift
    "$@" >"$folder/said" 2>&1
    status=$?
    cat "$folder/said"
    said=$(tail -n 1 "$folder/said")
    case $status in
    0) note "$what" "right: $said" ;;
    77) note "$what" "$said" ;;
    *) note "$what" "FAILED ($status): $said" && failed=1 ;;
    esac
}

[ -x "$nvcc" ] || { echo "skipped: there is no nvcc on PATH or in /usr/local/cuda/bin"; exit 77; }
gpus=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || true)
count=0
[ -z "$gpus" ] || count=$(wc -l <<<"$gpus")
double=${MESHCOLL_LIBCUDA:+yes}
most=40
[ -z "$double" ] || most=2

if [ "$build" = build/test ]; then
    cmake --preset test -DMESHCOLL_CUDA=ON >/dev/null || exit 1
fi
targets=(meshcoll meshcoll_tool meshcoll_bench device_one_grid device_processes device_figures)
cmake --build "$build" -j "${GPU_CHECK_JOBS:-$(nproc)}" --target "${targets[@]}" || exit 1

note "GPUs" "${gpus:-none that nvidia-smi knows}"
step "machine code of the kernels" scripts/check-kernels.sh "$build/device"
step "all ranks in one grid" "$build/tests/device/device_one_grid" "$most"
for n in 2 4; do
    step "$n processes on one GPU" "$build/tests/device/device_processes" "$n" 1
done
if [ "$count" -ge 2 ]; then
    n=$((count > 8 ? 8 : count))
    for executor in kernel stream; do
        step "$n processes on $n GPUs, by $executor" \
            env MESHCOLL_GPU_EXECUTOR=$executor "$build/tests/device/device_processes" "$n" "$n"
    done
else
    note "a process for each GPU" "not run: this needs two GPUs"
fi

# Figures: on the fake the program is only tried, with short vectors.
step "figures of one GPU" "$build/tests/device/device_figures" ${double:+4096}
while IFS= read -r line; do
    table+=("  ${line#figure: }")
done < <(grep '^figure: ' "$folder/said")

bench() { # bench RANKS OPTIONS…
    local ranks=$1 few=()
    shift
    [ -z "$double" ] || few=(-e 64K -n 2 -w 1)
    "$build/meshcoll" run -n "$ranks" "$build/meshcoll-bench" --collective allreduce \
        --mesh "gpu=$ranks" --links dgx-h100 --memory device --strategies best -b 8K -e 256M -f 8 \
        ${few[@]+"${few[@]}"} "$@"
}
rows() { # the table of the bench
    while IFS= read -r line; do
        table+=("  $line")
    done < <(grep -E '^(#  *bytes|  *[0-9])' "$folder/said")
}
if [ "$count" -ge 2 ] || [ -n "$double" ]; then
    ranks=${double:+2}
    step "meshcoll-bench, blocking" bench "${ranks:-$count}"
    rows
    nccl=()
    ldconfig -p | grep -q 'libnccl\.so\.2' && [ -z "$double" ] && nccl=(--flat nccl)
    step "meshcoll-bench, enqueued${nccl[0]:+, beside NCCL}" bench "${ranks:-$count}" --enqueue 20 ${nccl[@]+"${nccl[@]}"}
    rows
else
    step "meshcoll-bench, enqueued, one rank" bench 1 --enqueue 20
    rows
    note "meshcoll-bench on several GPUs" "not run: this needs two GPUs"
fi

if [ "$count" -ge 1 ]; then
    "$nvcc" -I include examples/gpu_allreduce.cu -L "$build" -lmeshcoll -Xlinker "-rpath=$PWD/$build" \
        -o "$folder/gpu_allreduce" || exit 1
    for n in $(seq 2 $((count > 2 ? count : 2))); do
        step "examples/gpu_allreduce.cu, $n processes" "$build/meshcoll" run -n "$n" "$folder/gpu_allreduce"
    done
else
    note "examples/gpu_allreduce.cu" "not run: this needs a GPU"
fi

printf '\n'
printf '%s\n' "${table[@]}"
exit $failed
