#!/usr/bin/env bash
# A ring's order on a network: the lecture's four nodes, an order that other commands take, and what is refused.
. "$(dirname "$0")/lib.sh"

four=(overlay --mesh x=4 --network graph=examples/four.graph:1GB/s)
run 0 "${four[@]}" --json
gives 'j["given"]["stretch"], j["given"]["busiest"][0]["messages"], j["boxes"]' "(3.5, 2, 4)"
gives 'j["better"]["stretch"], j["better"]["busiest"][0]["messages"], j["order"], j["improved"]' "(2.5, 1, '0,2,3,1', True)"
run 0 "${four[@]}"
has "given 3.50 2 0.5 GB/s"
has "better 2.50 1 1 GB/s"
has "s>m 2 0.5 GB/s"
[ "$(tail -n 1 <<<"$out")" = 0,2,3,1 ] || fail "the order comes last: $out"
run 0 "${four[@]}" --order 0,2,3,1
has "given 2.50 1 1 GB/s"
has "no better order was found"

# The order that it finds is what it measures, and a ring is simulated faster by it.
tree=(--mesh box=16,gpu=8 --links dgx-h100 --network "tree=16:8:50GB/s;ecmp")
run 0 overlay "${tree[@]}" --json
better=$(query 'j["better"]') order=$(query 'j["order"]')
gives 'j["better"]["seconds_per_byte"] < j["given"]["seconds_per_byte"]' True
run 0 overlay "${tree[@]}" --order "$order" --json
gives 'j["given"]' "$better"
gives 'sorted(int(a) for a in j["order"].split(",")[0].split("-"))[0] == int("'"$order"'".split("-")[0])' True
rings=(simulate allreduce "${tree[@]}" --bytes 256M --strategy hierarchical --json)
run 0 "${rings[@]}"
before=$(query 'j["strategies"][0]["seconds"]')
echo "$order" >"$scratch/order.txt"
run 0 "${rings[@]}" --order "$scratch/order.txt"
gives "j['strategies'][0]['seconds'] < 0.8 * $before" True

# 10,240 nodes in a random order, in a second of one core, at most twenty: none of their links is shared after it.
python3 -c 'import random; random.seed(3); n = list(range(10240)); random.shuffle(n); print(*n, sep=",")' >"$scratch/drawn.txt"
ulimit -St 20
run 0 overlay --mesh node=10240 --network torus=16x16x40:50GB/s --order "$scratch/drawn.txt" --json
ulimit -St "$(ulimit -Ht)"
gives 'j["better"]["stretch"], j["better"]["busiest"][0]["messages"], j["given"]["busiest"][0]["messages"] > 5' "(1.0, 1, True)"

refused "--network is missing" overlay --mesh x=4
refused "boxes of equal sizes" overlay --mesh box=8+8+4 --network tree=4
refused "all dimensions of this mesh are inside of one" overlay --mesh gpu=4 --network tree=4
refused "the order has rank 8, of another box, behind rank 0" overlay "${tree[@]}" --order 0,8,1-7,9-127
refused "room for 2" overlay --mesh x=4 --network tree=2
finish
