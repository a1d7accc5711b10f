#!/usr/bin/env bash
# The textbook's trace of the ring, and what else meshcoll trace shows.
. "$(dirname "$0")/lib.sh"

# Steps 0, 1 and 2 side by side, as in the textbook.
run 0 trace allreduce --mesh x=4 --strategy "allreduce:ring(x)" --width 120
has "step 0 step 1 step 2"
has "a0 b0 c0 d0d3 a0 b0 c0c3c2 d0d3 a0 b0b3b2b1 c0c3c2 d0d3"
has "a1a0 b1 c1 d1 a1a0 b1 c1 d1d0d3 a1a0 b1 c1c0c3c2 d1d0d3"
has "a2 b2b1 c2 d2 a2a1a0 b2b1 c2 d2 a2a1a0 b2b1 c2 d2d1d0d3"
has "a3 b3 c3c2 d3 a3 b3b2b1 c3c2 d3 a3a2a1a0 b3b2b1 c3c2 d3"
for rank in 0 1 2 3; do
    has "rank $rank"
done
# The allgather follows: in step 3 rank 0 gets a, the slice rank 3 has complete.
has "step 3 step 4 step 5"
has "rank 0 a3a2a1a0 b0b3b2b1 c0c3c2 d0d3 a3a2a1a0 b0b3b2b1 c0c3c2 d2d1d0d3"
[ "$(squeezed "$out" | grep -c 'a3a2a1a0 b0b3b2b1 c1c0c3c2 d2d1d0d3$')" -eq 4 ] ||
    fail "expected the whole sum on 4 ranks in:"$'\n'"$out"
wide=$out

# The algorithm without a dimension is the one along all of them.
run 0 trace allreduce --mesh x=4 --strategy allreduce:ring --width 120
[ "$out" = "$wide" ] || fail "allreduce:ring and allreduce:ring(x) differ"

# A narrow page: below one another, no line longer than the page unless one state is.
run 0 trace bcast --mesh x=4 --strategy bcast:mst --width 40
has "start step 0 step 1"
run 0 trace allreduce --mesh x=4 --strategy allreduce:ring --width 40
[ "$(grep -c '^ *step [0-9]$' <<<"$out")" -eq 6 ] || fail "expected steps alone on their lines in:"$'\n'"$out"
if grep -q ' $' <<<"$out"; then fail "a line ends with a space"; fi

# Five ranks: who sends which slice.
run 0 trace allreduce --mesh x=5 --strategy allreduce:ring --messages
has "step 0 0>1: a 1>2: b 2>3: c 3>4: d 4>0: e"
has "step 4 0>1: b 1>2: c 2>3: d 3>4: e 4>0: a"

# Only the root has something at first; missing chunks are shown as such.
run 0 trace scatter --mesh x=3 --strategy scatter:mst --root 2
has "rank 2 a2 b2 c2"
has "rank 0 - - -"

# An alltoall: blocks by destination become blocks by source, dimension by dimension; of three phases
# the second's are in the other half of SCRATCH.
run 0 trace alltoall --mesh box=2,gpu=2 --strategy hierarchical --width 120
has "rank 1 a1 b1 c1 d1 b0 b1 d0 d1 b0 b1 b2 b3"
run 0 trace alltoall --mesh x=2,y=2,z=2 --strategy hierarchical --width 200
has "rank 0 a0 b0 c0 d0 e0 f0 g0 h0 a0 a1 c0 c1 e0 e1 g0 g1 a0 a1 a2 a3 e0 e1 e2 e3 a0 a1 a2 a3 a4 a5 a6 a7"

# More chunks than letters.
run 0 trace allgather --mesh x=28 --strategy allgather:ring --width 500
has "z25"
has "ab27"

# Two dimensions, merged, segments, an algorithm that needs all messages of a step at once.
run 0 trace allreduce --mesh box=2,gpu=2 --strategy "hierarchical segments=2"
run 0 trace allgather --mesh box=2,gpu=3 --strategy allgather:fullmesh
has "5 time steps"
run 0 trace bcast --mesh x=1 --strategy bcast:mst
has "0 time steps"

run 0 trace reduce --mesh x=3 --strategy reduce:chain --explain
has "reduce on x=3, rank 0 of 3, root 0"
has "recv_reduce"
run 0 trace allreduce --mesh box=32,gpu=32 --strategy flat-ring --explain --rank 700
has "rank 700 of 1024"
run 0 trace reduce --mesh x=4 --strategy reduce:chain --explain --rank 1-2
[ "$(grep -c "^reduce on x=4, rank [12] of 4" "$scratch/out")" -eq 2 ] || fail "not ranks 1 and 2: $(cat "$scratch/out")"

# drawn MESSAGES_OF_PHASE… -- ARGUMENT…: the picture is XML of at most 60 KiB, 900 pixels wide, and has a panel for each phase
# that sends: as many arrows as messages, in a colour of its own, and a tile for every rank.
drawn() {
    local want=()
    while [ "$1" != -- ]; do want+=("$1") && shift; done
    shift
    run 0 trace "$@" --json --svg "$scratch/trace.svg"
    python3 - "$scratch/trace.svg" "$scratch/out" "${want[@]}" <<'PYTHON' || fail "the picture of trace $*"
import collections, json, os, re, sys, xml.etree.ElementTree as xml
svg, out, want = sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3:]]
plan = json.load(open(out))
messages = collections.Counter(m["phase"] for step in plan["steps"] for m in step["messages"])
root = xml.parse(svg).getroot()
text = [e.text for e in root.iter() if e.tag.endswith("}text")]
style = next(e.text for e in root.iter() if e.tag.endswith("}style"))
arrows = {int(e.get("class").split("p")[1]): len(list(e)) for e in root.iter() if (e.get("class") or "").startswith("a p")}
colors = [re.search(rf"\.p{phase}\{{stroke:(#\w+);marker-end", style)[1] for phase in arrows]
ranks = sum(e.tag.endswith("}use") for e in root)
assert [messages[phase] for phase in sorted(messages)] == want, messages
assert arrows == messages, (arrows, messages)
assert len(set(colors)) == len(colors), colors
assert ranks == len(arrows) * len(plan["start"]), ranks
assert root.get("width") == "900" and os.path.getsize(svg) < 60 * 1024, os.path.getsize(svg)
assert any(f"{sum(want)} messages in {len(plan['steps'])} time steps" in t for t in text), text
PYTHON
}
drawn 3 12 48 -- bcast --mesh box=4,gpu=4 --strategy option2
[ "$(grep -c '>box [0-3]<' "$scratch/trace.svg")" -eq 12 ] || fail "expected 4 boxes in each of 3 panels"
for words in '1. scatter along box' 'scatter:mst(box), steps 0–1' '2α + 3/4 nβ' '2 messages in a row, 3/4 n bytes' \
    '2. bcast along gpu' '3. allgather along box' '7α + 2nβ in all'; do
    grep -qF "$words" "$scratch/trace.svg" || fail "no '$words' in the picture"
done
"$MESHCOLL" trace bcast --mesh box=4,gpu=4 --strategy option2 --svg "$scratch/again.svg" >"$scratch/out" ||
    fail "trace --svg: exit status $?"
grep -qx "drawn in $scratch/again.svg" "$scratch/out" || fail "strange: $(cat "$scratch/out")"
cmp -s "$scratch/again.svg" docs/pictures/bcast-option2.svg ||
    fail "docs/pictures/bcast-option2.svg is not what trace --svg draws"
drawn 24 -- allreduce --mesh x=8 --strategy "allreduce:doubling(x)"
drawn 2 5 -- bcast --mesh box=4+3+1 --strategy option1
drawn 12 12 24 -- allreduce --mesh a=2,b=2,c=3 --strategy "allreduce:doubling(a) allreduce:doubling(b) allreduce:fullmesh(c)"
drawn 15 -- bcast --mesh box=4,gpu=4 --strategy flat-mst
drawn 48 48 48 48 48 48 48 48 -- allreduce --mesh x=4,y=4 --strategy torus
refused "take a smaller mesh or fewer segments" trace bcast --mesh box=8,gpu=8 --strategy option3 --svg "$scratch/none.svg"
[ ! -e "$scratch/none.svg" ] || fail "a picture that has no room was begun"
refused "--svg goes without --explain" trace bcast --mesh x=2 --strategy bcast:mst --explain --svg "$scratch/none.svg"
run 1 trace bcast --mesh x=2 --strategy bcast:mst --svg /nowhere/trace.svg
[[ $err == *"/nowhere/trace.svg cannot be written"* ]] || fail "strange: $err"

refused "too many to show" trace allreduce --mesh x=100 --strategy allreduce:ring
# Boxes of 2 and 1: rank 0 gathers rank 1's blocks, exchanges with rank 2 for both, and hands on what came.
run 0 trace alltoall --mesh box=2+1 --strategy hierarchical --messages --width 300
has "rank 0 a0 b0 c0 d0 a0,b0 a1,b1 c0 c1 a0 a1 a2,b2 c1 a0 a1 a2 c1"
has "step 0 1>0: a..d"
has "step 1 0>2: c..d 2>0: a..b"
has "step 2 0>1: a..d"

# best: what plan puts first, in as few segments as it has.
run 0 plan bcast --mesh box=4,gpu=2 --bytes 8M --links lab --top 1 --json
best=$(query 'j["strategies"][0]["strategy"].split(" segments")[0]')
[ -n "$best" ] || fail "no best strategy"
run 0 trace bcast --mesh box=4,gpu=2 --strategy best --bytes 8M --links lab
has "bcast on box=4,gpu=2, root 0: $best"
run 0 plan bcast --mesh box=4,gpu=4 --bytes 256M --top 1 --json
paced=$(query 'j["strategies"][0]["strategy"].split(" segments")[0]')
run 0 trace bcast --mesh box=4,gpu=4 --strategy best --bytes 256M
has "bcast on box=4,gpu=4, root 0: $paced"
run 0 trace bcast --mesh box=4,gpu=2 --strategy best --bytes 8 --links lab
[[ $out != *": $best"* ]] || fail "8 bytes take the way of 8 MiB: $out"
refused "--bytes and --links go with --strategy best" trace bcast --mesh x=4 --strategy bcast:mst --bytes 8M
refused "--bytes and --links go with --strategy best" trace bcast --mesh x=4 --strategy bcast:mst --links lab

# A timeline's message, 10 us on its way: of a part of that time the picture shows the same part of its line.
python3 - "$scratch/run.json" <<'PYTHON'
import json, sys
ends = [{"ph": "X", "name": name, "pid": rank, "tid": 1 - rank, "ts": 0, "dur": 10,
         "args": {"step": 0, "segment": 0, "peer": 1 - rank, "message": 0, "dim": "x", "chunks": "0…0", "bytes": 8}}
        for rank, name in ((0, "send"), (1, "recv"))]
json.dump({"otherData": {"mesh": "x=2", "seconds": 10e-6}, "traceEvents": ends}, open(sys.argv[1], "w"))
PYTHON
line() { # line OPTION…: where it begins and ends
    run 0 trace --timeline "$scratch/run.json" --svg "$scratch/run.svg" "$@"
    sed -n 's/.*<path d="M\([0-9.]*\) \([0-9.]*\)L\([0-9.]*\) \([0-9.]*\)" class="c0".*/\1 \2 \3 \4/p' "$scratch/run.svg"
}
python3 - "$(line)" "$(line --during 2us-6us)" <<'PYTHON' || fail "a part of a message's line bends"
import sys
x1, y1, x2, y2, left, top, right, bottom = map(float, " ".join(sys.argv[1:]).split())
assert y1 < y2 and (left, right) == (x1, x2), sys.argv
assert abs(top - (y1 + 0.2 * (y2 - y1))) < 0.11 and abs(bottom - (y1 + 0.6 * (y2 - y1))) < 0.11, sys.argv
PYTHON
finish
