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
is "(2, 3)" 'tuple(one.boxes for one in grid.clusters({"meshes": "2x4,4+3+1", "one_box": "none", "rate": "none"}))'
wrong="4+ +4 4+4 2x4+4 4+0 4x+3 4+3,1 4+-1 4 x 0x4"
is "[]" "[w for w in '$wrong'.split() if not refused(w)]"

# How ranks are started: the same slots for everybody.
command='" ".join(contenders.Contender("x", "X", "", lab=["--over", "ucx"]).command(c("4+3+1"), "l", ["p"])[1:])'
is "run --name l --slots 4,3,1 --over ucx -- p" "$command"

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
