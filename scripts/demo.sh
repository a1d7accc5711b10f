#!/usr/bin/env bash
# What meshcoll is about, in 2 minutes once the packages are there: measures the links of a cluster of 4 boxes made on
# this machine (bench/lab, needs root), plans a broadcast on them, then races composed strategies, flat ones and MPI's
# own. Where no cluster can be had, plain local ranks in virtual boxes.
# Leaves numbers and a picture in out/demo/.   usage: scripts/demo.sh [--long]
#   --long: 20 s of measuring, 14 sizes to 8 MiB, all strategies, each as its text is: about 8 minutes
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
    "") long= ;;
    --long) long=yes ;;
    *)
        echo "demo.sh: expected --long or nothing, got '$1'" >&2
        exit 2
        ;;
esac
mesh=box=4,gpu=4
out=out/demo
build=build/release
lab=bench/lab/lab
export MESHCOLL_TUNE_FILE=$PWD/$out/links.json

# Messages that are sent whole overflow the queue of a box's NIC, which the model knows nothing of: in segments what is
# predicted is what is measured (docs/demo.md).
seconds=10 sizes=1024,4096,16384,65536,262144,1048576,2097152,4194304 plan=4M
strategies="best,option1 segments=32,option2 segments=32,option3 segments=32,flat-mst,flat-ring"
rounds=(-w 1 -n 10 --max-time 0.5)
about="the build takes a minute, measuring the links 15 s, the race 45 s"
if [ -n "$long" ]; then
    seconds=20 plan=8M rounds=(-w 2 --max-time 3)
    sizes=$(seq 10 23 | while read -r i; do echo $((1 << i)); done | paste -sd,)
    strategies=option1,option2,option3,option2-inner,option3-inner,flat-mst,flat-ring,best
    about="the build takes a minute, measuring the links 25 s, all of it 8 minutes"
fi
tune=("$build/meshcoll" tune --mesh "$mesh" --seconds "$seconds")
race=(
    "$build/meshcoll-bench" --collective bcast --mesh "$mesh" --strategies "$strategies" --flat mpi --sizes "$sizes"
    "${rounds[@]}" --csv "$out/bcast.csv" --json "$out/bcast.json"
)

say() { printf '\n== %s\n' "$*"; }

say "packages"
scripts/deps.sh
begin=$SECONDS
say "building; from here on: $about"
log=$(mktemp)
if ! { cmake --preset release && cmake --build --preset release --target meshcoll_tool meshcoll_bench; } \
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

say "measuring its links, 16 ranks at work ($seconds s and a little)"
"${start[@]}" "${tune[@]}" >"$out/tune.txt" || { cat "$out/tune.txt"; exit 1; }
sed -n '/^ *link /,/^$/p' "$out/tune.txt"
links=$(python3 -c 'import json, sys
print(next(iter(json.load(open(sys.argv[1]))["clusters"].values()))["links"])' "$MESHCOLL_TUNE_FILE")

say "the plan for a broadcast of ${plan%M} MiB on them"
"$build/meshcoll" plan bcast --mesh "$mesh" --bytes "$plan" --links "$links" --top 3 |
    sed -n '1,/^$/p; /^no strategy/,/^named/{/^named/!p}'

say "the race: predicted, run, checked"
"${start[@]}" "${race[@]}" | scripts/demo-show.py progress "$sizes"

# The distribution's matplotlib is in its own python3, which need not be the first in PATH.
python=python3
"$python" -c 'import matplotlib' 2>/dev/null || python=/usr/bin/python3
"$python" bench/plot.py "$out/bcast.json" -o "$out/bcast.svg" -o "$out/bcast.png"

say "what it showed, after $((SECONDS - begin)) s"
scripts/demo-show.py table "$out/bcast.json"
echo
echo "every row:  $out/bcast.csv, $out/bcast.json"
echo "picture:    $out/bcast.svg, $out/bcast.png"
echo "read on:    docs/demo.md"
