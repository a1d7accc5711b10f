#!/usr/bin/env bash
# What meshcoll is about, in a few minutes: measures the links of a cluster of 4 boxes made on this
# machine (bench/lab, needs root), plans a broadcast on them, then races the composed strategies, the
# flat ones and MPI's own. Where no cluster can be had, plain local ranks in virtual boxes.
# Leaves numbers and a picture in out/demo/.
set -euo pipefail
cd "$(dirname "$0")/.."

mesh=box=4,gpu=4
out=out/demo
build=build/release
lab=bench/lab/lab
export MESHCOLL_TUNE_FILE=$PWD/$out/links.json
# shellcheck disable=SC2054  # the commas are the tools' own
tune=("$build/meshcoll" tune --mesh "$mesh" --seconds 20)
# shellcheck disable=SC2054
race=(
    "$build/meshcoll-bench" --collective bcast --mesh "$mesh"
    --strategies option1,option2,option3,option2-inner,option3-inner,flat-mst,flat-ring,best
    --flat mpi -b 1K -e 8M -f 2 -w 2 --max-time 3
    --csv "$out/bcast.csv" --json "$out/bcast.json"
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

if why=$("$lab" check 2>&1); then
    say "a cluster of 4 boxes, 200 Mbit/s each, on this machine"
    trap '"$lab" down' EXIT
    "$lab" up --boxes 4 --rate 200mbit
    start=("$lab" run -n 16 --)
    race+=(--rate 200mbit)
else
    say "no cluster on this machine, 16 local ranks in virtual boxes instead"
    echo "the lab says: $(tail -n 1 <<<"$why")"
    echo "here all links are equally fast: the numbers show that it runs, not which strategy wins"
    start=(mpirun -n 16 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1
        --mca pml ob1 --mca btl self,vader,tcp)
    [ "$(id -u)" -eq 0 ] && start+=(--allow-run-as-root)
fi

say "measuring its links, 16 ranks at work (20 s)"
"${start[@]}" "${tune[@]}"
links=$(python3 -c 'import json, sys
print(next(iter(json.load(open(sys.argv[1]))["clusters"].values()))["links"])' "$MESHCOLL_TUNE_FILE")

say "the plan for a broadcast of 8 MiB on them"
"$build/meshcoll" plan bcast --mesh "$mesh" --bytes 8M --links "$links" --top 5

say "the race: predicted, run, checked (some minutes)"
"${start[@]}" "${race[@]}"

# The distribution's matplotlib is in its own python3, which need not be the first in PATH.
python=python3
"$python" -c 'import matplotlib' 2>/dev/null || python=/usr/bin/python3
"$python" bench/plot.py "$out/bcast.json" -o "$out/bcast.svg" -o "$out/bcast.png"

say "done"
echo "numbers: $out/bcast.csv, $out/bcast.json"
echo "picture: $out/bcast.svg, $out/bcast.png"
echo "what they show: docs/demo.md"
