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

refused "too many to show" trace allreduce --mesh x=100 --strategy allreduce:ring
# Boxes of 2 and 1: rank 0 gathers rank 1's blocks, exchanges with rank 2 for both, and hands on what came.
run 0 trace alltoall --mesh box=2+1 --strategy hierarchical --messages --width 300
has "rank 0 a0 b0 c0 d0 a0,b0 a1,b1 c0 c1 a0 a1 a2,b2 c1 a0 a1 a2 c1"
has "step 0 1>0: a..d"
has "step 1 0>2: c..d 2>0: a..b"
has "step 2 0>1: a..d"
finish
