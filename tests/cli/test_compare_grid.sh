#!/usr/bin/env bash
# bench/compare's clusters: how they are written, their lower bounds, and how ranks are started on them.
# Nothing is measured and no lab is made.
. "$(dirname "$0")/lib.sh"

# grid EXPRESSION: of bench/compare's own code, with `c("4x4")` for a cluster of the lab at 200 Mbit/s.
grid() {
    python3 -B - "$1" <<'PYTHON' 2>&1
import sys
sys.path.insert(0, "bench/compare")
import contenders, grid
def c(text): return grid.lab_cluster(text, "200mbit")
try: print(eval(sys.argv[1]))
except grid.UsageError as error: print(f"refused: {error}")
PYTHON
}

# is VALUE EXPRESSION
is() {
    local got
    got=$(grid "$2")
    [ "$got" = "$1" ] || fail "$2 is '$got', expected '$1'"
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
for wrong in 4+ +4 4+4 2x4+4 4+0 4x+3 4+3,1 4+-1 4 x 0x4; do
    [[ $(grid "c('$wrong')") == "refused: expected --meshes like "*"came '$wrong'" ]] || fail "$wrong: $(grid "c('$wrong')")"
done

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
for mesh in 4x4 8x2 4+3+1 2x8+4; do
    dims=$(grid "c('$mesh').mesh")
    for collective in bcast reduce scatter gather allgather reduce_scatter allreduce alltoall; do
        run 0 plan "$collective" --mesh "$dims" --links "lab,box=beta:40ns;ports:1" --bytes 80M --top 1 --json
        ours=$(grid "c('$mesh').bound('$collective', 80 << 20)")
        gives "abs(j['lower_bound_seconds'] / $ours - 1) < 1e-9 or (j['lower_bound_seconds'], $ours)" True
    done
done
finish
