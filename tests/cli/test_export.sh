#!/usr/bin/env bash
# What is exported, read back by tests/cli/read_exports.py, and what is refused.
. "$(dirname "$0")/lib.sh"

read_back() { # read_back FORMAT PYTHON
    "$2" tests/cli/read_exports.py "$1" "$MESHCOLL" "$scratch" || fail "$1"
}
read_back goal python3
read_back msccl python3
chakra=
if ! "$MESHCOLL" export bcast --mesh x=2 --bytes 1 --format chakra --output "$scratch/et" >"$scratch/out" 2>&1; then
    grep -q 'built without protobuf-c: install' "$scratch/out" || fail "chakra: $(cat "$scratch/out")"
    chakra="built without protobuf-c"
else
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import google.protobuf' 2>/dev/null && break || python=
    done
    if [ -n "$python" ]; then read_back chakra "$python"; else chakra="no python3-protobuf"; fi
fi

small=(export allreduce --mesh x=4 --bytes 4096 --strategy allreduce:ring)
# Sums take the links' gamma: 1024 bytes, a nanosecond each.
run 0 "${small[@]}" --format goal --links "x=alpha:1us;beta:1GB/s;gamma:1GB/s"
[ "$(grep -c ': calc 1024$' <<<"$out")" -eq 12 ] || fail "expected 12 sums of 1024 ns in:"$'\n'"$out"
run 0 "${small[@]}" --format goal --output "$scratch/ring.goal"
has "4 ranks, 48 steps: $scratch/ring.goal"
# The umask's mode, or that of the file before it; a link stays one.
chmod 640 "$scratch/ring.goal"
ln -s ring.goal "$scratch/link.goal"
for name in ring link new; do
    (umask 077; run 0 "${small[@]}" --format goal --output "$scratch/$name.goal"; exit $failures) || fail "$name.goal"
done
got=$(cd "$scratch" && stat -c '%N %a' ring.goal link.goal new.goal | tr -d "'" | xargs)
[ "$got" = "ring.goal 640 link.goal -> ring.goal 777 new.goal 600" ] || fail "names and modes: $got"
cmp "$scratch/ring.goal" "$scratch/new.goal" || fail "what is written beside is another"
run 1 "${small[@]}" --format goal --output -
[[ $err == *'expected the name of a file; got "-"'* ]] || fail "strange: $err"
# 72 chunks in a message are two pieces for MSCCL.
run 0 export allreduce --mesh x=2,y=72 --bytes 1M --format msccl \
    --strategy "allreduce:doubling(x) reduce_scatter:ring(y) allgather:ring(y)"
[[ $out == *' cnt="71" '* && $out != *' cnt="72" '* ]] || fail "pieces of: $(grep -o 'cnt="[0-9]*"' <<<"$out" | sort | uniq -c)"
# Without a strategy the planner's.
run 0 plan bcast --mesh box=4,gpu=4 --bytes 16M --json
best=$(query 'j["strategies"][0]["strategy"]')
run 0 export bcast --mesh box=4,gpu=4 --bytes 16M --format goal --strategy "$best"
forced=$out
run 0 export bcast --mesh box=4,gpu=4 --bytes 16M --format goal
[ "$out" = "$forced" ] || fail "without a strategy it is not $best"

refused "--format takes goal, msccl or chakra; got 'dot'" "${small[@]}" --format dot
refused "--format takes goal, msccl or chakra; got ''" "${small[@]}"
refused "expected --output PREFIX" "${small[@]}" --format chakra
refused "--bytes is missing" export allreduce --mesh x=4 --format goal
refused "an export has room for 4194304 steps" export allreduce --mesh x=1025 --bytes 1G --strategy allreduce:ring --format goal
refused "an MSCCL file names no root, so that bcast has none" export bcast --mesh x=4 --bytes 1M --format msccl
echo kept >"$scratch/none.xml"
refused "MSCCL has room for 256 steps in a thread block" export allreduce --mesh x=4 --bytes 1M --format msccl \
    --strategy "allreduce:ring segments=64" --output "$scratch/none.xml"
[ "$(cat "$scratch/none.xml")" = kept ] || fail "a plan was refused, and the file written"
refused "MSCCL has room for 4096 nodes of XML a rank" export allgather --mesh x=32 --bytes 1M --format msccl \
    --strategy "allgather:fullmesh segments=64"
refused "MSCCL has room for 1024 GPUs, and this mesh has 1025 ranks" export allreduce --mesh x=1025 --bytes 1M \
    --format msccl --strategy allreduce:doubling
refused "MSCCL has room for 32 peers a direction" export allreduce --mesh x=40 --bytes 1M --format msccl --strategy allreduce:fullmesh
run 1 "${small[@]}" --format goal --output /nowhere/ring.goal
[[ $err == *"/nowhere/ring.goal cannot be written"* ]] || fail "strange: $err"

[ -z "$chakra" ] || [ $failures -gt 0 ] || { echo "skipped: $chakra, so Chakra's traces were not read"; exit 77; }
finish
