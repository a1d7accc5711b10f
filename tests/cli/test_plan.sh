#!/usr/bin/env bash
# Rankings, terms and crossings, on links simple enough to check by hand.
. "$(dirname "$0")/lib.sh"

# α = 1 us, β = 1 ns/B everywhere, a port for every rank.
mesh=(--mesh box=8,gpu=8 --links uniform)

run 0 plan bcast "${mesh[@]}" --bytes 64M --top 4
has "bcast of 64 MiB on box=8,gpu=8, 64 ranks, root 0"
has "# time / best / bound strategy"
has "4 "
has "all phases"
[ "$(grep -c '^ *[0-9]* .*(.*)' <<<"$out")" -ge 4 ] || fail "expected 4 strategies in:"$'\n'"$out"

# Option 2 costs (log c + log r + c-1) α and [2(c-1)/c + log r / c] nβ.
run 0 plan bcast "${mesh[@]}" --bytes 1M --strategy option2
has "scatter:mst(box) box 3α + 7/8 nβ"
has "bcast:mst(gpu) gpu 3α + 3/8 nβ"
has "allgather:ring(box) box 7α + 7/8 nβ"
has "all phases box 10α + 7/4 nβ"
has "gpu 3α + 3/8 nβ"
run 0 plan bcast "${mesh[@]}" --bytes 1000000 --strategy option2 --json
gives 'round(j["strategies"][0]["seconds"] * 1e9)' $((13 * 1000 + 2125000))
gives 'j["strategies"][0]["phases"][0]["terms"][0]' "{'dim': 'box', 'alpha': '3', 'row': '0', 'beta': '7/8', 'gamma': '0', 'messages': 7, 'volume': '3/2'}"
gives 'j["lower_bound_seconds"] <= j["best_seconds"] <= j["strategies"][0]["seconds"]' True

# What each call takes besides is in the times, once.
two_shots=(plan allreduce --mesh gpu=8 --bytes 512K
    --strategy "reduce_scatter:fullmesh(gpu) allgather:fullmesh(gpu)")
run 0 "${two_shots[@]}" --links nvlink4
has "gpu 1.90 us 600 ns 370 GB/s 1111 GB/s 4.50 us 1 a rank"
has "gpu: the receivers copy"
has "besides its phases a call takes 4.50 us, which the time above contains"
run 0 "${two_shots[@]}" --links nvlink4 --json
with=$(query 'round(j["strategies"][0]["seconds"] * 1e9)')
gives 'j["links"][0]["call"]' 4.5e-06
run 0 "${two_shots[@]}" --links "gpu=nvlink4;call:0" --json
gives 'round(j["strategies"][0]["seconds"] * 1e9)' $((with - 4500))

# A strategy that reduces says what summing costs.
run 0 plan allreduce "${mesh[@]}" --bytes 1M --strategy flat-ring
has "reduce_scatter:ring(box*gpu) box 63α + 63/64 nβ + 63/64 nγ"

# Segments: the fill, then one after the other.
run 0 plan bcast --mesh x=4 --links uniform --bytes 4M --strategy "bcast:chain(x) segments=4"
has "n = 1 MiB, the bytes of one segment"
has "then 3 more segments"

# The interval is what the phases above keep the busiest links for: on box 103 and 99.7 us.
run 0 plan allreduce --mesh box=16,gpu=8 --links dgx-h100 --bytes 256M --strategy "reduce_scatter:halving(gpu) \
reduce_scatter:halving(box) allgather:doubling(box) allgather:doubling(gpu) segments=8"
has "reduce_scatter:halving(box) box 4α + 15/128 nβ + 15/128 nγ 103 us"
has "allgather:doubling(box) box 4α + 15/128 nβ 99.7 us"
has "then 7 more segments, one every 203 us, the time each occupies the links of box: 1.82 ms in all"
# Ranks that share cores do the wire's work too: both times add up.
run 0 plan bcast --mesh x=2 --bytes 4M --links "x=alpha:1us;gap:500ns;beta:1GB/s;cpu:1us" --strategy "bcast:chain(x) segments=4"
has "then 3 more segments, one every 1.05 ms, the time each occupies the links of x and the cores that ranks share"
run 0 plan bcast --mesh x=2 --bytes 400 --links "x=alpha:1us;gap:500ns;beta:1GB/s;cpu:1us" --strategy "bcast:chain(x) segments=4"
has "one every 1.60 us"
# Receivers that copy do all the work.
run 0 plan bcast --mesh x=1,y=2 --bytes 4M --links "shm,y=shm;cpu:1us" --strategy "bcast:chain(y) segments=4"
has "the time each occupies the cores that ranks share: 425 us in all"

# The ranking is in order, within what was asked for, and starts with the best.
run 0 plan allreduce --mesh box=4,gpu=4 --bytes 1M --json --top 50
gives 'len(j["strategies"])' 50
gives 'all(a["seconds"] <= b["seconds"] for a, b in zip(j["strategies"], j["strategies"][1:]))' True
gives 'j["strategies"][0]["times_best"]' 1.0
gives 'min(s["times_bound"] for s in j["strategies"]) >= 1' True
gives 'j["considered"] > 1000' True

# Each order of phases is shown once, by its cheapest strategy and with the place of that one among all; the named ones
# are shown with their best number of segments, and how many more are within 2 % is said.
shapes() {
    python3 - "$scratch/all.json" "$scratch/shapes" <<'PYTHON'
import json, re, sys
plan = json.load(open(sys.argv[1]))
text = open(sys.argv[2]).read()
seen, want = set(), []
for place, one in enumerate(plan["strategies"], 1):
    shape = re.sub(r" segments=\d+", "", re.sub(r":[a-z]+\(", "(", one["strategy"]))
    if shape not in seen:
        seen.add(shape)
        if want and "%.3g" % want[-1][3] == "%.3g" % one["seconds"]:
            want[-1][2] += 1
        else:
            want.append([place, one["strategy"], 0, one["seconds"]])
rows = re.sub(r"\n {20,}", " ", text)  # a strategy may go on in the next line
got = [[int(m[1]), m[2], int(m[4] or 0)] for m in
       re.finditer(r"^ +(\d+) +\S+ \S+ +\S+ +\S+ +(.*?)( \((\d+) others? tied\))?$", rows, re.M)]
assert got == [row[:3] for row in want[:10]], (got, want[:10])
assert any(row[2] for row in got), got
close = sum(one["times_best"] <= 1.02 for one in plan["strategies"])
shown = sum(plan["strategies"][place - 1]["times_best"] <= 1.02 for place, _, _ in got)
assert close == plan["within_2_percent"]
assert f"\n{close - shown} other strategies are within 2 %" in text, (close, shown)
priced = {re.sub(r" segments=\d+", "", one["strategy"]): one for one in plan["strategies"]}
for one in plan["named"]:
    row = re.search(rf"^ +{one['name']} +\S+ \S+ +(\S+) +\S+ +(\d+)$", text, re.M)
    assert row and float(row[1]) == round(one["times_best"], 2) and int(row[2]) == one["segments"], one["name"]
    twin = priced.get(re.sub(r" segments=\d+", "", one["strategy"]))
    assert not twin or (twin["seconds"], twin["segments"]) == (one["seconds"], one["segments"]), one["name"]
assert {"option1", "option2", "option3", "flat-ring"} <= {one["name"] for one in plan["named"]}
PYTHON
}
run 0 plan bcast --mesh box=8,gpu=8 --bytes 64M --json --top 100000
cp "$scratch/out" "$scratch/all.json"
run 0 plan bcast --mesh box=8,gpu=8 --bytes 64M --top 10
[[ $out == "The fastest is scatter:star(gpu) bcast:chain(box) allgather:doubling(gpu)"$'\n'"segments=128: 24.5 ms, 14 % above what the network allows."* ]] ||
    fail "it does not begin with the answer: $out"
cp "$scratch/out" "$scratch/shapes"
shapes || fail "strange shapes in:"$'\n'"$out"
run 0 plan bcast --mesh box=8,gpu=8 --bytes 64M --all --top 4
has "the 4 cheapest:"
has "4 24.5 ms 1.00 1.14 scatter:star(gpu) bcast:chain(box) allgather:fullmesh(gpu) segments=128"
run 0 plan allreduce --mesh rack=2,box=4,gpu=8 --bytes 4M
has "no other is among the 40 cheapest"
has "at least 3"
run 0 plan allreduce --mesh rack=2,box=4,gpu=8 --bytes 4M --json
gives 'len(j["strategies"]), j["within_2_percent"]' "(3, None)"

# In more dimensions the search is a beam, which may leave something out.
run 0 plan allreduce --mesh a=4,b=2,c=3,d=5 --links uniform --bytes 1M
has "perhaps another is among the 40 cheapest"

# What does not commute: nothing that starts elsewhere than at rank 0, as rings do.
run 0 plan allreduce --mesh box=4,gpu=4 --bytes 64M --in-order --all --top 1000
has "in the order of ranks"
has "reduce:mst(gpu)"
! grep -q "reduce:chain\|reduce_scatter:" <<<"$out" || fail "a strategy out of order: $out"
run 0 plan reduce --mesh box=4,gpu=4 --bytes 1M --in-order --json
gives 'j["in_order"]' True
refused "does not reduce in the order of ranks" \
    plan allreduce --mesh box=4,gpu=4 --bytes 1M --in-order --strategy flat-ring
refused "--in-order is for what reduces" plan bcast --mesh box=4,gpu=4 --bytes 1M --in-order

# Where options cross: option 1 has 6α + 6nβ, 2 has 13α + 17/8 nβ, 3 has 20α + 63/32 nβ.
run 0 plan bcast "${mesh[@]}" --sweep 1K..64M
has "option1 is cheaper than option2 below 1.764 KiB (1806 bytes)"
has "option2 is cheaper than option3 below 43.75 KiB (44800 bytes)"
has "1 KiB"
has "scatter:mst(box) bcast:mst(gpu) allgather:doubling(box)"
run 0 plan bcast "${mesh[@]}" --sweep 1K..64M --json
gives '[round(c["bytes"]) for c in j["crossings"]]' "[1806, 3473, 44800]"
gives 'j["best"][0]["from"], j["best"][-1]["to"]' "(1024, 67108864)"
gives 'all(a["to"] + 1 == b["from"] for a, b in zip(j["best"], j["best"][1:]))' True
gives 'all(a["strategy"] != b["strategy"] for a, b in zip(j["best"], j["best"][1:]))' True

# With a burst of B, beta counts as beta n / (n + B): they cross where n n / (n + B) is what n was above.
run 0 plan bcast "${mesh[@]},box=burst:1MiB,gpu=burst:1MiB" --sweep 1K..4M --json
gives '[round(c["bytes"]) for c in j["crossings"]]' "[44436, 62107, 240294]"
# Measured strategies are the only ones, and the table says what they are by the model.
run 0 plan bcast --mesh gpu=4 --links "shm,measured=1KiB/1MiB;bcast bcast:star(gpu) 1us/90us;bcast bcast:mst(gpu) 2us/80us" --bytes 1MiB
has "2 strategies were measured"
has "measured: 80.0 us; by the model: "
# A ring does not reduce in order, so the model prices what does.
run 0 plan reduce_scatter --in-order --mesh gpu=4 --links "shm,measured=1KiB;reduce_scatter reduce_scatter:ring(gpu) 1us" --bytes 1KiB
has "strategies were priced"
[[ $out != *"by the model"* ]] || fail "a priced strategy is not measured: $out"

# Rack and box share the box's NIC.
run 0 plan bcast --mesh rack=2,box=2,gpu=4 --links lab --bytes 1M --json
gives '[l["wire"] for l in j["links"]]' "['box', 'box', 'gpu']"
gives '1 < j["best_seconds"] / j["lower_bound_seconds"] < 1.06' True

# Two sides: half of the vector each, in half the time of the flat ring where links are alike.
run 0 plan allreduce --mesh x=4,y=4 --links uniform --bytes 64M --strategy torus
has "n = 32 MiB, the bytes of one segment"
has "A reduce_scatter:ring(y) y 3α + 3/4 nβ + 3/4 nγ"
has "B all phases x 6α + 3/2 nβ + 3/4 nγ 66.1 ms y 6α + 3/8 nβ + 3/16 nγ"
has "a segment of each side, side by side: 66.1 ms"
run 0 plan allreduce --mesh x=8,y=8 --links uniform --bytes 64M --json
gives '" | " in j["strategies"][0]["strategy"]' True
gives '[p["side"] for p in j["strategies"][0]["phases"]]' "[1, 1, 1, 1, 2, 2, 2, 2]"
run 0 plan allreduce --mesh box=8,gpu=8 --links lab --bytes 64M --json
gives '"|" in j["strategies"][0]["strategy"]' False

# Reproducible: boxes of 4 cost no more, boxes of 6 are no block of the tree that all sums follow.
run 0 plan allreduce --mesh box=4,gpu=4 --links lab --bytes 1M --reproducible --json
gives 'any(":ring(" in s["strategy"].split("allgather")[0] for s in j["strategies"])' False
gives 'j["reproducible"]' True
run 0 plan allreduce --mesh box=4+2 --sweep 1K..1M --reproducible
has "reproducible"
! grep -q option1 <<<"$out" || fail "an option that boxes of unequal sizes may not take: $out"
run 0 plan bcast --mesh box=4+3+1 --bytes 1M --json
free=$(query 'j["strategies"][0]["strategy"]')
run 0 plan bcast --mesh box=4+3+1 --bytes 1M --json --reproducible
gives 'j["strategies"][0]["strategy"]' "$free"
refused "between boxes of unequal sizes the aligned tree" plan reduce --mesh box=4+2 --bytes 1M --reproducible \
    --strategy "reduce:mst(fold) reduce:mst(gpu) reduce:mst(box)"
refused "not the first of its line along fold" plan reduce --mesh box=4+2 --bytes 1M --in-order --root 1 \
    --strategy "reduce:mst(fold) reduce:mst(gpu) reduce:mst(box)"
refused "adds up blocks of 6 ranks" plan allreduce --mesh box=2,gpu=6 --bytes 1M --reproducible \
    --strategy "allreduce:aligned(gpu) allreduce:aligned(box)"
refused "does not bracket 12 ranks as the aligned tree does" plan allreduce --mesh box=2,gpu=6 \
    --bytes 1M --reproducible --strategy "allreduce:ring(box*gpu)"

# On one dimension options 1 and 2 are the same.
run 0 plan bcast --mesh x=8 --links uniform --sweep 1K..1M
has "option1 and option2 cost the same at every size"

# From a mesh to larger ones: the table is what plan says of each mesh, and no flat ring or tree beats the choice.
scale=(--mesh box=8,gpu=8 --scale 64,1024 --bytes 1M,256M --links "dgx-h100,gpu=nvlink4;pulled:no | generic")
run 0 plan "${scale[@]}" --json
gives 'len(j["scale"])' $((8 * 2 * 2 * 3))
gives 'min(c[k]["seconds"] / c["best"]["seconds"] for c in j["scale"] for k in ("ring", "mst") if c[k]) >= 1' True
gives 'min(c["best"]["seconds"] / c["lower_bound_seconds"] for c in j["scale"]) >= 1' True
gives 'sorted({c["collective"] for c in j["scale"] if not c["ring"]})' "['gather', 'scatter']"
gives 'all(c["mst"] for c in j["scale"])' True
one='[c for c in j["scale"] if (c["links"], c["bytes"], c["collective"], c["mesh"]["ranks"]) == ("generic", 268435456, "allreduce", 8192)][0]'
best=$(query "$one['best']") ring=$(query "$one['ring']['seconds']") bound=$(query "$one['lower_bound_seconds']")
run 0 plan allreduce --mesh box=1024,gpu=8 --bytes 256M --json
gives '{k: j["strategies"][0][k] for k in ("strategy", "seconds")}' "$best"
gives '[s["seconds"] for s in j["named"] if s["name"] == "flat-ring"][0]' "$ring"
gives 'j["lower_bound_seconds"]' "$bound"
run 0 plan allreduce "${scale[@]}"
has "256 MiB, generic:"
has "| | box=8,gpu=8 | ring | MST | / bound | box=64,gpu=8 | ring | MST | / bound | box=1024,gpu=8 |"
[ "$(grep -c '^| allreduce |' <<<"$out")" -eq 4 ] || fail "expected a row for each size and links in: $out"
run 0 plan --mesh gpu=4 --scale 1 --bytes 0 --in-order --reproducible
has "| bcast |"
refused "--scale goes without --root" plan bcast "${scale[@]}" --root 1
refused "boxes of one size" plan bcast --mesh box=4+2 --scale 8 --bytes 1M
refused "takes extents of the outermost dimension" plan bcast --mesh box=2,gpu=8 --scale 8,x --bytes 1M
refused "at most 4194304 ranks" plan bcast --mesh box=2,gpu=8 --scale 600000 --bytes 1M
refused "there is no link preset 'none'" plan bcast --mesh box=2,gpu=8 --scale 8 --bytes 1M --links "generic | none"
refused "--bytes is missing" plan bcast --mesh box=2,gpu=8 --scale 8
refused "at most 7 extents" plan bcast --mesh box=2,gpu=8 --scale 1,2,3,4,5,6,7,8 --bytes 1M

# docs/links.md shows what composition gains on two islands of PCIe cards.
run 0 plan allreduce --mesh island=2,gpu=4 --scale 4 --bytes 8K,128K,512K,8M,256M --links "island=upi,gpu=pcie4"
rows=$(sed -n 's/^| allreduce //p' <<<"$out")
[ "$(wc -l <<<"$rows")" -eq 5 ] || fail "expected a row for each size in: $out"
while IFS= read -r row; do
    grep -qF "$row" docs/links.md || fail "docs/links.md has another row for: $row"
done <<<"$rows"

# Three dimensions and one rank are no special cases.
run 0 plan bcast --mesh rack=2,box=4,gpu=8 --bytes 1M --top 3
run 0 plan allreduce --mesh x=1 --bytes 1M
run 0 plan gather --mesh box=2,gpu=3 --bytes 0 --root 4
# names as other libraries and people write them
run 0 plan all_reduce --mesh 2x3 --bytes 1K
has "allreduce of 1 KiB on box=2,gpu=3, 6 ranks"
run 0 plan broadcast --mesh x=4 --bytes 1K
has "bcast of 1 KiB on x=4"
run 0 plan all-to-all --mesh x=4 --bytes 1K
has "alltoall of 1 KiB on x=4"
run 0 plan reduce-scatter --mesh box=2,gpu=3 --bytes 1K --phases

# A size is shown as it is given.
run 0 plan bcast --mesh 4x4 --bytes 8MB
has "bcast of 8 MB on box=4,gpu=4"
run 0 plan bcast --mesh 2x3x4 --bytes 8MB
has "bcast of 8 MB on rack=2,box=3,gpu=4"
run 0 plan bcast --mesh 16 --bytes 8MB
has "bcast of 8 MB on gpu=16"

# A page has 80 columns.
fits() {
    run 0 "$@"
    local wide
    wide=$(python3 -c 'import sys; [print(line) for line in sys.stdin.read().splitlines() if len(line) > 80]' <<<"$out")
    [ -z "$wide" ] || fail "$*: over 80 columns: $wide"
}
fits plan allreduce --mesh rack=2,box=4,gpu=8 --bytes 1M --links dgx-h100 --phases
fits plan bcast --mesh box=8,gpu=8 --links uniform --sweep 1K..64M
fits plan allreduce --mesh x=4,y=4 --links uniform --bytes 64M --strategy torus
fits plan bcast --mesh 4x4 --links lab --bytes 8M --simulate 3 --network tree=4:1:25Gbit/s
fits list
finish
