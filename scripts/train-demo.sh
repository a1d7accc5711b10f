#!/usr/bin/env bash
# Trains a GPT of 11 M parameters in 4 boxes made on this machine (bench/lab, needs root), over Gloo and over meshcoll
# in turn, and draws losses, time per step and one step's timeline: out/train/training.svg and .png. Before that it
# measures the links for meshcoll, as one does once on a cluster.
#   scripts/train-demo.sh [OPTION OF examples/train/train.py…]     as --parallel zero1, --steps 50, --small
#   RATE=1gbit RANKS=8 scripts/train-demo.sh                       200mbit and 4 if not given
# Exit status 77 where this machine can have no boxes, or no torch. docs/training.md shows what comes of it.
set -euo pipefail
cd "$(dirname "$0")/.."

lab=bench/lab/lab
out=out/train
venv=$PWD/build/torch/venv
rate=${RATE:-200mbit}
ranks=${RANKS:-4}
export MESHCOLL_LAB=${MESHCOLL_LAB:-train}

say() { printf '\n== %s\n' "$*"; }
skip() {
    echo "skipped: $*"
    exit 77
}

scripts/deps.sh
if ! why=$("$lab" check 2>&1); then
    skip "no boxes on this machine: $(tail -n 1 <<<"$why")"
fi
missing=()
[ -d /usr/share/games/fortunes ] || missing+=(fortunes)
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
python3 -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || missing+=(python3-dev)
if [ ${#missing[@]} -gt 0 ]; then
    say "installing ${missing[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >/dev/null ||
        skip "apt-get could not install ${missing[*]}"
fi

say "torch, libmeshcoll and the package, in build/torch (the first time some minutes)"
scripts/test-torch.sh texts # one short test
"$venv/bin/python" -c 'import meshcoll.torch' 2>/dev/null || skip "there is no torch: see above"

say "the command meshcoll, in build/torch/tools"
tools=build/torch/tools
{
    cmake -S . -B "$tools" -DCMAKE_BUILD_TYPE=Release -DMESHCOLL_MPI=OFF -DMESHCOLL_CUDA=OFF \
        -DMESHCOLL_BUILD_TESTS=OFF -DMESHCOLL_BUILD_BENCH=OFF -DMESHCOLL_BUILD_EXAMPLES=OFF &&
        cmake --build "$tools" --parallel "${JOBS:-2}"
} >"$tools.log" 2>&1 || {
    tail -n 40 "$tools.log"
    exit 1
}

mkdir -p "$out"
trap '"$lab" down' EXIT
"$lab" up --boxes 4 --rate "$rate"

links=$PWD/$out/links.json
rm -f "$links"
say "meshcoll tune: the links of $ranks ranks"
"$lab" run -n "$ranks" -- "$tools/meshcoll" tune --file "$links"

timeline=(--timeline)
[[ " $* " =~ (fsdp2|hsdp) ]] && timeline=() # no buckets there
for backend in gloo meshcoll; do
    say "$ranks ranks over $backend"
    "$lab" run -n "$ranks" -x MASTER_ADDR=box0 -x GLOO_SOCKET_IFNAME=eth0 -x OMP_NUM_THREADS=1 \
        -x TORCH_CPP_LOG_LEVEL=ERROR -x MESHCOLL_TUNE_FILE="$links" -- \
        "$venv/bin/python" "$PWD/examples/train/train.py" --steps 100 --batch 2 --context 128 --bucket-mb 5 \
        "${timeline[@]}" "$@" --backend "$backend" --out "$PWD/$out/$backend.json"
done

# The distribution's matplotlib is in its own python3, which need not be the first in PATH.
python=python3
"$python" -c 'import matplotlib' 2>/dev/null || python=/usr/bin/python3
"$python" examples/train/draw.py "$out/gloo.json" "$out/meshcoll.json" -o "$out/training.svg" -o "$out/training.png"

say "done"
echo "numbers: $out/gloo.json, $out/meshcoll.json"
echo "picture: $out/training.svg, $out/training.png"
