#!/usr/bin/env bash
# What meshcoll is about, in a few minutes: shows the plan of a broadcast on 4 boxes of 4 ranks, then
# races the composed strategies, the flat ones and MPI's own on a cluster of 4 boxes made on this
# machine (bench/lab, needs root), or on plain local ranks where that cannot be had.
# Leaves numbers and a picture in out/demo/.
set -euo pipefail
cd "$(dirname "$0")/.."

mesh=box=4,gpu=4
out=out/demo
build=build/release
lab=bench/lab/lab
# shellcheck disable=SC2054  # the commas are the tools' own
race=(
    "$build/meshcoll-bench" --collective bcast --mesh "$mesh"
    --strategies option1,option2,option3,flat-mst,flat-ring --flat mpi
    -b 1K -e 8M -f 4 --csv "$out/bcast.csv" --json "$out/bcast.json"
)

say() { printf '\n== %s\n' "$*"; }

say "building (the first time takes a minute)"
scripts/deps.sh
log=$(mktemp)
if ! { cmake --preset release && cmake --build --preset release --parallel "$(nproc)"; } \
    >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "demo.sh: the build failed; all of its output: $log" >&2
    exit 1
fi
rm -f "$log"
mkdir -p "$out"

say "the plan for a broadcast of 8 MiB on $mesh"
"$build/meshcoll" plan bcast --mesh "$mesh" --bytes 8M

if why=$("$lab" check 2>&1); then
    say "a cluster of 4 boxes, 200 Mbit/s each, on this machine"
    trap '"$lab" down' EXIT
    "$lab" up --boxes 4 --rate 200mbit
    "$lab" run -n 16 -- "${race[@]}"
else
    say "no cluster on this machine, 16 local ranks in virtual boxes instead"
    echo "the lab says: $(tail -n 1 <<<"$why")"
    echo "here all links are equally fast: the numbers show that it runs, not which strategy wins"
    as_root=()
    [ "$(id -u)" -eq 0 ] && as_root=(--allow-run-as-root)
    MESHCOLL_BOXES=4 mpirun -n 16 --oversubscribe --bind-to none "${as_root[@]}" \
        --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl self,vader,tcp "${race[@]}"
fi

# The distribution's matplotlib is in its own python3, which need not be the first in PATH.
python=python3
"$python" -c 'import matplotlib' 2>/dev/null || python=/usr/bin/python3
"$python" bench/plot.py "$out/bcast.json" -o "$out/bcast.svg"
"$python" bench/plot.py "$out/bcast.json" -o "$out/bcast.png"

say "done"
echo "numbers: $out/bcast.csv, $out/bcast.json"
echo "picture: $out/bcast.svg, $out/bcast.png"
