#!/usr/bin/env bash
# bench/compare's clusters: how they are written, their lower bounds, and how ranks are started on them.
# Nothing is measured and no lab is made.
. "$(dirname "$0")/lib.sh"

# grid EXPRESSION [FILE]: of bench/compare's own code, with `c("4x4")` for a cluster of the lab at 200 Mbit/s.
grid() {
    python3 -B - "$@" <<'PYTHON' 2>&1
import json, sys
sys.path.insert(0, "bench/compare")
import contenders, grid
def c(text):
    return grid.lab_cluster(text, "200mbit")
def refused(text):
    try:
        return not c(text)
    except grid.UsageError as error:
        return str(error).startswith("expected --meshes like ") and str(error).endswith(f"came '{text}'")
def differing(path):
    """How many plans there are, and those whose bound is another than ours."""
    keys = {"box=4,gpu=4": "4x4", "box=8,gpu=2": "8x2"}
    plans = [json.loads(line) for line in open(path)]
    def ours(p):
        text = p["mesh"]["text"]
        return c(keys.get(text, text[len("box="):])).bound(p["collective"], p["bytes"])
    return len(plans), [(p["mesh"]["text"], p["collective"]) for p in plans
                        if abs(p["lower_bound_seconds"] / ours(p) - 1) > 1e-9]
print(eval(sys.argv[1]))
PYTHON
}

# is VALUE EXPRESSION [FILE]
is() {
    local got want=$1
    shift
    got=$(grid "$@")
    [ "$got" = "$want" ] || fail "$1 is '$got', expected '$want'"
}

is "([4, 4, 4, 4], 'box=4,gpu=4', 16)" '(c("4x4").in_box, c("4x4").mesh, c("4x4").ranks)'
is "([4, 4, 4, 4], 'rack=2,box=2,gpu=4', 16)" '(c("2x2x4").in_box, c("2x2x4").mesh, c("2x2x4").ranks)'
is "([4, 3, 1], 'box=4+3+1', 8)" '(c("4+3+1").in_box, c("4+3+1").mesh, c("4+3+1").ranks)'
is "([8, 8, 4], 'box=2x8+4', 20)" '(c("2x8+4").in_box, c("2x8+4").mesh, c("2x8+4").ranks)'
is "4x4: 4 boxes of 4 ranks, 200mbit" 'c("4x4").title()'
is "4+3+1: boxes of 4, 3 and 1 ranks, 200mbit" 'c("4+3+1").title()'
is "[80, 4080]" 'c("2x8+4").sizes("alltoall", [64, 4096])' # equal blocks on 20 ranks
is "[64, 4096]" 'c("2x8+4").sizes("bcast", [64, 4096])'
is "(2, 3)" 'tuple(one.boxes for one in grid.clusters({"meshes": "2x4,4+3+1", "one_box": "none", "bind": "none", "rate": "none"}))'
wrong="4+ +4 4+4 2x4+4 4+0 4x+3 4+3,1 4+-1 4 x 0x4"
is "[]" "[w for w in '$wrong'.split() if not refused(w)]"

# How ranks are started: the same slots for everybody.
command='" ".join(contenders.Contender("x", "X", "", ["--over", "ucx"], []).command(c("4+3+1"), "l", ["p"])[1:])'
is "run --name l --slots 4,3,1 --over ucx -- p" "$command"

for bind in core none; do # who is bound, by each launcher; "none" is said to Open MPI, which binds by itself
    one="grid.one_box('4', '$bind')"
    for mpi in openmpi openmpi5; do
        is "True" "('core:overload-allowed' in contenders.openmpi($one, 'mpirun', '$mpi', {})[1]) == ('$bind' == 'core')"
    done
    is "$bind" "$one.bind"
done

# Open MPI 5 in the lab: PRRTE's own names, and what the user says is said once.
got=$(python3 -B -c 'import sys, types; sys.path.insert(0, "bench/lab"); import launch
print(*launch.openmpi5_command("mpirun", types.SimpleNamespace(dir="/d"), "box0:2", 2, "tcp", {"X": "1"}, ["--mca", "pml", "y"]))' 2>&1)
for part in ' --prtemca plm_ssh_agent /' ' --prtemca plm_ssh_no_tree_spawn 1 ' ' --prtemca prte_if_include ' \
    ' --mca btl self,sm,tcp ' ' -x X --mca pml y'; do
    [[ $got == *"$part"* && $got != *"pml ob1"* ]] || fail "lab run --mpi openmpi5 starts '$got', expected '$part' in it"
done

# A barrier is one cell, without bytes and without a bound.
is "([0], None, '-')" '(c("4x4").sizes("barrier", [8, 64]), c("4x4").bound("barrier", 0), grid.size_text(0))'

# What is resumed makes no lab where nothing is left: a cell without a time, or a regret, is.
left() { # MADE-UP-CHANGE
    python3 -B - "$1" <<'PYTHON' 2>&1
import importlib.machinery, importlib.util, sys
sys.path.insert(0, "bench/compare")
import contenders, grid, measure, store
loader = importlib.machinery.SourceFileLoader("compare", "bench/compare/compare")
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
loader.exec_module(compare)
s = measure.Session.__new__(measure.Session)
s.settings = {"sizes": [64], "turns": 1, "regret": True, "prune": 1.5, "cell_seconds": 1.0}
s.collectives, s.tune_file, s.build, s.find_peers = ["bcast", "barrier"], "", "", lambda cluster: []
s.store = store.Store("", {"cells": [], "regrets": {}})
s.store.save = lambda: None
for name, size in ("bcast", 64), ("barrier", 0):
    for turn in 0, 1:
        for who in contenders.MINE:
            s.store.add_cell({"cluster": "4x4", "turn": turn, "contender": who, "collective": name, "bytes": size,
                              "median_s": 1.0})
    s.store.add_regret("4x4", name, size, {"regret": 0.0})
exec(sys.argv[1])
print(compare.anything_left(s, grid.lab_cluster("4x4", "200mbit")))
PYTHON
}
for one in "False:" 'True:s.store.data["cells"][3]["failed"] = "hung"' 'True:s.settings["turns"] = 2' \
    'True:s.store.data["regrets"]["4x4 barrier 0"] = {"failed": "the budget was over"}' 'True:s.settings["sizes"] = [64, 512]'; do
    [ "$(left "${one#*:}")" = "${one%%:*}" ] || fail "anything left after '${one#*:}': $(left "${one#*:}"), expected ${one%%:*}"
done

# The forced grid is the one that docs/benchmarks.md states: a row for each, an algorithm for each collective or "-".
got=$(python3 -B - <<'PYTHON' 2>&1
import sys
sys.path.insert(0, "bench/compare")
import forced
lines = [line.strip("| \n").split(" | ") for line in open("docs/benchmarks.md", encoding="utf-8")]
head = next(cells for cells in lines if cells[:3] == ["row", "bcast", "reduce"])
said = lines[lines.index(head) + 2:]
for row, cells in zip(forced.openmpi(False) + forced.mpich() + forced.intel(), said):
    assert f"`{row.name}`" in cells[0], (row.name, cells)
    for collective, cell in zip(head[1:], cells[1:]):
        assert cell.startswith(row.algorithms.get(collective, "-").partition(" ")[0]), (row.name, collective, cell)
    assert set(row.algorithms) <= set(head), row.algorithms
print("the same")
PYTHON
)
[ "$got" = "the same" ] || fail "docs/benchmarks.md has another grid than forced.py: $got"

# Sizes whose blocks are rounded stand in the column of what was asked for.
is "[8, 64, 64, 1048576]" '[grid.column(size, asked) for size, asked in ((64, [8, 512]), (64, [8, 64, 512]), (80, [8, 64, 512]),
    (1048572, [262144, 1048576]))]'

# The planner's first is raced against a choice that has other segments, and not against itself.
for one in "a segments=64:['b']" "a segments=128:['a segments=64', 'b']"; do
    got=$(python3 -B -c 'import sys; sys.path.insert(0, "bench/compare"); import regret
print(regret.rivals(["a segments=64", "b"], sys.argv[1]))' "${one%%:*}" 2>&1)
    [ "$got" = "${one#*:}" ] || fail "rivals of '${one%%:*}' are $got, expected ${one#*:}"
done

# One report of several runs: times are of the first that has them, regrets may be of another, and both say where they are from.
record() { # DIR TURNS REGRET SIZES, then CONTENDER:BYTES:SECONDS[:LATE]...
    python3 - "$scratch/$1" "${@:2}" <<'PYTHON'
import json, os, sys
folder, turns, regret, sizes, *cells = sys.argv[1:]
sizes, cells = [int(one) for one in sizes.split(",")], [one.split(":") for one in cells]
at = "2026-01-02T03:04:05Z"
os.makedirs(folder)
json.dump({"version": 3, "collectives": ["bcast"], "events": [at + " done"], "contenders": {}, "missing": {},
           "settings": {"meshes": "4x4", "one_box": "none", "rate": "200mbit", "sizes": sizes, "turns": int(turns), "pages": "huge",
                        "bind": "core", "tune_seconds": 9, "near": 1.25,
                        "iterations": 60, "cell_seconds": 1.0, "top": 8, "plausible": 3.0, "prune": 1.5,
                        "regret": regret != "no", "quick": False},
           "machine": {"date": at, "command": "made up", "host": "h", "cpu": "c", "cores": 2, "memory_bytes": 1, "system": "s",
                       "load_before": 0, "commit": os.path.basename(folder), "meshcoll": "m", "compiler": "cc"},
           "tunes": {"4x4": {"mesh": "box=4,gpu=4", "links": "lab"}},
           "cells": [{"cluster": "4x4", "turn": 1, "contender": name, "collective": "bcast",
                      "group": "forced" if "!" in name else "default", "bytes": int(size),
                      "median_s": float(time), "late": int(*late), "wrong": 0, "strategy": "s", "predicted_s": 1.0}
                     for name, size, time, *late in cells],
           "regrets": {} if regret == "no" else {f"4x4 bcast {sizes[0]}": {
               "regret": float(regret), "choice": "a", "best": "b", "tried": [], "final": []}}},
          open(folder + "/results.json", "w"))
PYTHON
}
record first 1 no 8,1048576 meshcoll:8:0.003 mpich:8:0.004 meshcoll:1048576:0.05 mpich:1048576:0.039:60 'mpich!x:8:0.001'
record second 1 0.3 8,8388608 meshcoll:8:0.009 mpich:8:0.001 meshcoll:8388608:0.4 mpich:8388608:0.5
reports() {
    local want=$1 got=0
    shift
    (cd "$scratch" && "$OLDPWD/bench/compare/compare" --report-of "$@" >said 2>&1) || got=$?
    [ $got -eq "$want" ] || fail "--report-of $*: exit status $got, expected $want: $(cat "$scratch/said")"
}
reports 1 first second -o both # 1: a cell of the second was not tried for regret
for row in '|  | 8 B | 1 MiB | 8 MiB |' '| bcast | 0.75 | **1.28** | 0.80 |' '| bcast | 1.19 | 1.19 |' '| bcast | **30.0 %** |' \
    '**Of different commits: first, second.**' '| `second` | 2026-01-02T03:04:05Z |' 'links as tuned (first)' \
    '|  | over the bound at 8 MiB <= 1.10 | mean over best peer <= 1.00 | over best peer <= 1.25 in every cell | beside: forced, mean |' \
    '| 4x4 | **1.19 (bcast)** | 0.92 (bcast) | **1.28 (bcast 1 MiB [late: mpich]), 2 of 3** | 1.45 (bcast) |' \
    '- 4x4, over best peer <= 1.25 in every cell: bcast 1 MiB [late: mpich] 1.28' \
    '| 4x4 (second) | regret | 1 cell | done |'; do
    grep -qF -- "$row" "$scratch/both/report.md" || fail "expected '$row' in:"$'\n'"$(cat "$scratch/both/report.md")"
done

reports 2 first second -o first
grep -q 'without results of its own, whose report would be lost; came first' "$scratch/said" || fail "said: $(cat "$scratch/said")"
reports 2 first third -o both
sed -i 's/"cores": 2/"cores": 3/' "$scratch/second/results.json"
reports 2 first second -o both
grep -q 'expected runs of one cores in one report, came 2 and 3' "$scratch/said" || fail "said: $(cat "$scratch/said")"

# The bounds of REFERENCE.md §5 as they were for equal boxes, by hand; of 2 x 4 ranks, times n.
is "[1, 1, 0.5, 0.5, 0.5, 0.5, 1.0, 2.0]" '[grid.volume(k, [4, 4]) for k in ("bcast", "reduce", "scatter", "gather",
    "allgather", "reduce_scatter", "allreduce", "alltoall")]'
# 4, 3 and 1: the root's box of 4 sends 4/8; the box of 1 takes 7/8; the box of 4 sends 4 ranks' halves.
is "[1, 1, 0.5, 0.5, 0.875, 0.875, 2.0]" '[grid.volume(k, [4, 3, 1]) for k in ("bcast", "reduce", "scatter", "gather",
    "allgather", "reduce_scatter", "alltoall")]'
is "0.875 0.875" '"{} {}".format(*(grid.volume(k, [1, 3, 4]) for k in ("scatter", "gather")))' # a root in the box of 1

# The library's bound is the same where the network is the bottleneck and the root's box the largest.
for mesh in box=4,gpu=4 box=8,gpu=2 box=4+3+1 box=2x8+4; do
    for collective in bcast reduce scatter gather allgather reduce_scatter allreduce alltoall; do
        run 0 plan "$collective" --mesh "$mesh" --links "lab,box=beta:200Mbit/s;ports:1" --bytes 80M --top 1 --json
        printf '%s\n' "$out" | tr -d '\n' >>"$scratch/plans"
        echo >>"$scratch/plans"
    done
done
is "(32, [])" 'differing(sys.argv[2])' "$scratch/plans"
finish
