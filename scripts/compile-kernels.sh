#!/usr/bin/env bash
# Compiles the GPU kernels for one architecture: scripts/compile-kernels.sh NVCC ARCH FOLDER, as
# `scripts/compile-kernels.sh nvcc 90 build/test/device`. Leaves sm_ARCH.cubin, sm_ARCH.ptx and sm_ARCH.log
# there, the last with what ptxas says of each kernel.
# -fmad=false: no multiply and add in one, so that results are those of the host's kernels.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
nvcc=$1 arch=$2 folder=$3
keep=$folder/sm_$arch

mkdir -p "$keep"
if ! "$nvcc" -std=c++17 -O3 -fmad=false -cubin -gencode "arch=compute_$arch,code=sm_$arch" -Xptxas -v \
    -Werror all-warnings -I "$root/src" -I "$root/include" --keep --keep-dir "$keep" \
    -o "$folder/sm_$arch.cubin" "$root/src/gpu/kernel/kernel.cu" >"$folder/sm_$arch.log" 2>&1; then
    grep -v '^ptxas info' "$folder/sm_$arch.log" >&2 || true
    rm -f "$folder/sm_$arch.cubin"
    exit 1
fi
mv "$keep"/kernel*.ptx "$folder/sm_$arch.ptx"
rm -rf "$keep"
