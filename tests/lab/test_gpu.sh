#!/usr/bin/env bash
# Calls on device memory between two and four boxes of the lab, each with a network of its own, on the fake of libcuda.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! why=$(bench/lab/lab check 2>&1); then
    echo "skipped: $why"
    exit 77
fi
name=gpu-$$
down() {
    bench/lab/lab down --name $name
}
trap down EXIT
bench/lab/lab up --name $name --boxes 4 --rate 1gbit
MC_RIG_BOXES=$(bench/lab/lab status --name $name --json |
    python3 -c 'import json, sys; print(*(box["pid"] for box in json.load(sys.stdin)["boxes"]))')
export MC_RIG_BOXES
"$MESHCOLL_BUILD_DIR/tests/device/device_gpu" far_lab
