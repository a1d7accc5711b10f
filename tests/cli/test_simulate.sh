#!/usr/bin/env bash
# Simulated times by hand, what is recorded, what is refused; results that do not depend on how many ranks stand for all.
. "$(dirname "$0")/lib.sh"

ring=(simulate allreduce --mesh x=4 --bytes 4000000 --links "x=alpha:1us;beta:1GB/s" --strategy allreduce:ring)
ps='j["strategies"][0]["simulated_ps"]'

# Two leaves with one link up each: six steps of 1 MB; crossed, two messages share a link.
run 0 "${ring[@]}" --network tree=2:1:1GB/s --json
gives "$ps" 6006000000
gives 'j["network"], j["strategies"][0]["busiest"][0]["link"]' "('tree=2:1:1GB/s', 'leaf0.0 up0')"
run 0 "${ring[@]}" --network tree=2:1:1GB/s --order 0,2,1,3 --json
gives "$ps" 12006000000
gives 'j["strategies"][0]["busiest"][0]["busy_ps"]' 12000000000
run 0 "${ring[@]}" --network tree=2:1:1GB/s --slow "leaf1.0 up0:3" --json
gives "$ps" 18001000000
run 0 "${ring[@]}" --late 2:5ms --json
gives "$ps" 11006000000
# Several of each: the second does not replace the first, and a port of the mesh is slow as a link of the network is.
run 0 "${ring[@]}" --late 2:5ms --late 1:1ms --json
gives "$ps" 11006000000
run 0 "${ring[@]}" --late 1:1ms --late 2:5ms --json
gives "$ps" 11006000000
run 0 "${ring[@]}" --network tree=2:1:1GB/s --slow "leaf1.0 up0:3" --slow "leaf0.0 up0:2" --json
gives "$ps" 18001000000
run 0 "${ring[@]}" --slow "x port 2 out:4" --json
gives "$ps" 24001000000
refused "rank 2 is late twice" "${ring[@]}" --late 2:5ms --late 2:1ms
refused "the link 'x port 2 out' is slow twice" "${ring[@]}" --slow "x port 2 out:4" --slow "x port 2 out:2"
refused "no link called 'x port 4 out'" "${ring[@]}" --slow "x port 4 out:4"
refused "no link called 'box port 2 out'" simulate bcast --mesh box=4,gpu=4 --links "box=alpha:1us;beta:1GB/s;ports:1,gpu=shm" \
    --bytes 1M --slow "box port 2 out:4"

# A graph is the same two leaves.
printf '0 a\n1 a\n2 b\n3 b\na b\n' >"$scratch/graph"
run 0 "${ring[@]}" --network "graph=$scratch/graph:1GB/s" --order 0,2,1,3 --json
gives "$ps" 12006000000
gives 'j["strategies"][0]["busiest"][0]["link"]' "a>b"

# With a byte order mark, as editors of Windows write it; names that are no UTF-8, and long ones, in JSON.
printf '\xef\xbb\xbf0 a\r\n1 a\r\n2 b\r\n3 b\r\na b\r\n' >"$scratch/marked"
printf '\xef\xbb\xbf0,2,1,3\r\n' >"$scratch/marked.txt"
run 0 "${ring[@]}" --network "graph=$scratch/marked:1GB/s" --order "$scratch/marked.txt" --json
gives "$ps" 12006000000
long=$(printf 'ä%.0s' $(seq 60))
printf '0 \xe4\n1 \xe4\n2 bc%s\n3 bc%s\n\xe4 bc%s\n' "$long" "$long" "$long" >"$scratch/latin"
run 0 "${ring[@]}" --network "graph=$scratch/latin:1GB/s" --order 0,2,1,3 --json
link='[l["link"] for l in j["strategies"][0]["busiest"] if ">bc" in l["link"]][0]'
gives "len(j['strategies'][0]['busiest']), ascii($link[:4]), set($link[4:])" "(4, \"'\\\\ufffd>bc'\", {'ä'})"
run 0 overlay --mesh x=4 --network "graph=$scratch/latin:1GB/s" --json
gives '"\ufffd" in str(j["given"]["busiest"])' True

# Rates as other tools write them name ours; 0x10 is no number.
for rate in 400Gbps 400Gb/s 400Gbit 400G; do
    refused "got '$rate': write 400Gbit/s" simulate bcast --mesh x=4 --bytes 1M --links "x=alpha:1us;beta:$rate"
    refused "write 400Gbit/s" simulate bcast --mesh x=4 --bytes 1M --network "tree=2:1:$rate"
    refused "write 400Gbit/s" simulate bcast --mesh x=4 --bytes 1M --network "graph=$scratch/graph:$rate"
    printf '0 1 %s\n' $rate >"$scratch/rated"
    refused "write 400Gbit/s" simulate bcast --mesh x=4 --bytes 1M --network "graph=$scratch/rated:1GB/s"
done
refused "got '25GBps': write 25GB/s" simulate bcast --mesh x=4 --bytes 1M --links "x=alpha:1us;beta:25GBps"
refused "got '0x10GB/s'" simulate bcast --mesh x=4 --bytes 1M --links "x=alpha:1us;beta:0x10GB/s"

# A command that is ended leaves no part of a trace.
mkdir "$scratch/ended"
for signal in INT KILL; do
    "$MESHCOLL" simulate allreduce --mesh box=64,gpu=8 --links dgx-h100 --bytes 1G --strategy "allreduce:ring segments=4" \
        --trace "$scratch/ended/t.json" >/dev/null 2>&1 &
    ended=$!
    for i in $(seq 400); do
        ls -l /proc/$ended/fd 2>/dev/null | grep -q "$scratch/ended" && break
        sleep 0.01
    done
    kill -$signal $ended
    { wait $ended; } 2>/dev/null
    [ -z "$(ls "$scratch/ended")" ] || fail "left by $signal: $(ls "$scratch/ended")"
done

# Ranks that stand for all, and all.
many=(simulate allreduce --mesh pod=2,box=8,gpu=4 --links dgx-h100 --bytes 64M --network "tree=8:4:47GB/s/8")
for strategy in hierarchical flat-ring torus; do
    run 0 "${many[@]}" --strategy "$strategy" --json
    few=$(query "$ps") classes=$(query 'j["strategies"][0]["classes"]')
    run 0 "${many[@]}" --strategy "$strategy" --json --whole
    gives "$ps" "$few"
    gives 'j["strategies"][0]["classes"]' 64
    [ "$classes" -lt 64 ] || fail "$strategy: $classes classes of 64 ranks"
done

# The fastest first, beside their prices; the list has what was asked for.
run 0 simulate bcast --mesh box=4,gpu=4 --bytes 16M --network tree=4:1:25Gbit/s --top 6 --json
gives 'len(j["strategies"]), [s["simulated_ps"] for s in j["strategies"]] == sorted(s["simulated_ps"] for s in j["strategies"])' "(6, True)"
gives 'all(s["seconds"] >= 0.99 * j["lower_bound_seconds"] for s in j["strategies"])' True
run 0 simulate bcast --mesh box=4,gpu=4 --bytes 16M --top 2
has "simulated price / price / bound strategy"
has "the busiest links between ports"

# The planner's list, ranked by simulation: as simulate says, and with the places of the list.
plan=(plan allreduce --mesh box=4,gpu=4 --links dgx-h100 --bytes 16M --simulate 5 --network "tree=8:2:47GB/s")
run 0 "${plan[@]}" --json
gives 'len({s["place"] for s in j["simulated"]}), min(s["place"] for s in j["simulated"]), [s["simulated_seconds"] for s in j["simulated"]] == sorted(s["simulated_seconds"] for s in j["simulated"])' \
    "(5, 1, True)"
# The cheapest of each order of phases first: five have five, of which the list has several before the last.
shape='lambda s: __import__("re").sub(r":\w[\w-]*| segments=\d+", "", s["strategy"])'
gives "len({($shape)(s) for s in j['simulated']}), max(s['place'] for s in j['simulated']) > 5" "(5, True)"
fastest=$(query 'j["simulated"][0]["strategy"]') seconds=$(query 'j["simulated"][0]["simulated_seconds"]')
run 0 simulate allreduce --mesh box=4,gpu=4 --links dgx-h100 --bytes 16M --network tree=8:2:47GB/s --strategy "$fastest" --json
gives 'j["strategies"][0]["seconds"]' "$seconds"
run 0 "${plan[@]}"
has "5 in all, simulated on tree=8:2:47GB/s, the fastest first:"
# Without a strategy it simulates what plan puts first, which for this one pacing decides.
paced=(bcast --mesh box=4,gpu=4 --links generic --bytes 256M --json)
run 0 plan "${paced[@]}"
best=$(query 'j["strategies"][0]["strategy"]')
for top in "" "--top 1"; do
    run 0 simulate "${paced[@]}" $top
    gives 'j["strategies"][0]["strategy"]' "$best"
done
order=3,2,1,0,12-15,4-11
run 0 "${plan[@]}" --order $order --json
fastest=$(query 'j["simulated"][0]["strategy"]') other=$(query 'j["simulated"][0]["simulated_seconds"]')
echo $order >"$scratch/order.txt"
run 0 simulate allreduce --mesh box=4,gpu=4 --links dgx-h100 --bytes 16M --network tree=8:2:47GB/s --strategy "$fastest" --order "$scratch/order.txt" --json
gives "j['strategies'][0]['seconds'] == $other, $other != $seconds" "(True, True)"
run 0 "${plan[@]}" --order $order
has "5 in all, simulated on tree=8:2:47GB/s with the ranks in the order given, the fastest first:"
# In another order fewer strategies add up by the aligned tree.
in_order=$(run 0 plan allreduce --mesh box=4,gpu=4 --bytes 1M --reproducible --all --top 10000 --json; query 'len(j["strategies"])')
run 0 plan allreduce --mesh box=4,gpu=4 --bytes 1M --reproducible --all --top 10000 --json --order $order
gives "0 < len(j['strategies']) < $in_order" True
refused "--order goes with --network, --simulate or --reproducible" plan bcast --mesh x=4 --bytes 1M --order 3,2,1,0
# Prices with the network, and the choice by them; in another order of ranks they are others.
on=(allreduce --mesh box=64,gpu=8 --links dgx-h100 --bytes 1G)
run 0 plan "${on[@]}" --json
before=$(query 'j["strategies"][0]["strategy"]')
run 0 plan "${on[@]}" --network tree=64:16:50GB/s/8:2:50GB/s --json
best=$(query 'j["strategies"][0]["strategy"]') price=$(query 'j["strategies"][0]["seconds"]')
gives 'j["network"], "halving-near(box)" in j["strategies"][0]["strategy"]' "('tree=64:16:50GB/s/8:2:50GB/s', True)"
run 0 simulate "${on[@]}" --network tree=64:16:50GB/s/8:2:50GB/s --json
gives 'j["strategies"][0]["strategy"]' "$best"
gives "j['strategies'][0]['price_seconds'] == $price, abs($price / j['strategies'][0]['seconds'] - 1) < 0.05" "(True, True)"
run 0 simulate "${on[@]}" --network tree=64:16:50GB/s/8:2:50GB/s --strategy "$before" --json
gives "j['strategies'][0]['seconds'] > 2 * $price" True
run 0 export allgather --mesh box=16,gpu=1 --bytes 1M --links dgx-h100 --format goal --network tree=4:1:10GB/s --output "$scratch/with"
run 0 export allgather --mesh box=16,gpu=1 --bytes 1M --links dgx-h100 --format goal --output "$scratch/without"
cmp -s "$scratch/with" "$scratch/without" && fail "the network does not count in an export"
run 0 plan allreduce --mesh x=16 --links uniform --bytes 16M --network tree=4:1:1GB/s --phases --strategy "reduce_scatter:halving allgather:doubling segments=8"
has "the links of the network"
refused "--scale goes without --network" plan bcast --mesh x=4 --bytes 1M --scale 8 --network tree=4
refused "room for 2" plan bcast --mesh x=4 --bytes 1M --network tree=2

# The article's 40 GPUs: 390 ms in one ring; composed the network idles (530), in segments it does not (340).
article=(simulate allreduce --mesh box=5,gpu=8 --bytes 1200MB --links
         "box=beta:6GB/s;alpha:20us,gpu=beta:10GB/s;alpha:5us;ports:all" --json --strategy)
for expected in "flat-ring 386 394" "hierarchical 526 534" "hierarchical segments=16 336 344"; do
    run 0 "${article[@]}" "${expected% * *}"
    gives "$(sed 's/.* \([0-9]*\) \([0-9]*\)$/\1 <= j["strategies"][0]["seconds"] * 1e3 <= \2/' <<<"$expected")" True
done

# Every message, as trace events.
run 0 "${ring[@]}" --trace "$scratch/trace.json" --json
out=$(cat "$scratch/trace.json")
gives 'len(j["traceEvents"]), max(e["ts"] + e["dur"] for e in j["traceEvents"])' "(24, 6006.0)"
gives 'sum(e["args"]["bytes"] for e in j["traceEvents"])' 24000000
"$MESHCOLL" simulate bcast --mesh x=4 --bytes 1M --strategy bcast:mst --trace /dev/stderr 2>&1 >/dev/null | cat >"$scratch/piped.json"
out=$(cat "$scratch/piped.json")
gives 'len(j["traceEvents"])' 3

# A training step. By hand, on two ranks: a bucket of 4 MB takes two messages of 2 MB; the second waits for its port, and
# overtakes nothing. Buckets that are ready at once are the segments of one call; those far apart do not meet.
step=(simulate allreduce --links "x=alpha:1us;beta:1GB/s" --json)
ended='[b["ended_ps"] for b in j["buckets"]], j["steps"][-1]["seconds"], j["steps"][-1]["one_by_one_seconds"]'
printf '# by hand\n4MB 0ms\n2MB\t1ms # waits\n' >"$scratch/step"
run 0 "${step[@]}" --mesh x=2 --strategy allreduce:ring --step "$scratch/step"
gives "$ended" "([4002000000, 6004000000], 0.006004, 0.006004)"
printf '\xef\xbb\xbf4MB 0ms\n2MB 10ms\n' >"$scratch/step"
run 0 "${step[@]}" --mesh x=2 --strategy allreduce:ring --step "$scratch/step"
gives "$ended" "([4002000000, 12002000000], 0.012002, 0.012002)"
gives 'j["computed_seconds"], j["bytes"], round(j["steps"][-1]["exposed_seconds"] * 1e6)' "(0.01, 6000000, 2002)"
printf '1MB 0ms\n1MB 0ms\n1MB 0ms\n1MB 0ms\n' >"$scratch/step"
for at in "x=4 allreduce:ring" "a=2,b=3 reduce_scatter:ring(b) allreduce:ring(a) allgather:ring(b)"; do
    part=(--mesh "${at%% *}" --links "uniform,${at%%=*}=gap:0.2us" --network "tree=2:1:1GB/s;ecmp" --json)
    run 0 simulate allreduce "${part[@]}" --strategy "${at#* } segments=2" --step "$scratch/step"
    together=$(query 'max(b["ended_ps"] for b in j["buckets"])')
    gives 'j["steps"][-1]["seconds"] < j["steps"][-1]["one_by_one_seconds"]' True
    run 0 simulate allreduce "${part[@]}" --strategy "${at#* } segments=8" --bytes 4MB
    gives "$ps" "$together"
done

# The article's step: 370 ms, of which the gradients take two thirds. Flat, in one bucket nothing is hidden and in two 122
# ms, as measured (70 to 120 ms); composed, in small buckets, two thirds are.
run 0 "${article[@]:0:4}" "${article[@]:6:3}" --step examples/step.txt
gives '[round(s["seconds"] * 1e3) for s in j["steps"] if "ring(box*gpu)" in s["strategy"]][:2]' "[762, 640]"
gives '[s["buckets"] for s in j["steps"]]' "[1, 2, 4, 16, 64, 8, 1, 2, 4, 16, 64, 8]"
gives 'min(s["exposed_seconds"] for s in j["steps"]) < 0.110 < 0.180 < min(s["exposed_seconds"] for s in j["steps"][:6])' True

printf '4MB 2ms\n4MB 1ms\n' >"$scratch/step"
refused "or is ready before the one above it" "${step[@]}" --mesh x=2 --step "$scratch/step"
echo 4MB >"$scratch/step"
refused "line 1: expected a bucket's bytes and the time" "${step[@]}" --mesh x=2 --step "$scratch/step"
: >"$scratch/step"
refused "expected a line for each bucket" "${step[@]}" --mesh x=2 --step "$scratch/step"
refused "--step goes without --bytes" "${step[@]}" --mesh x=2 --bytes 1M --step "$scratch/step"
printf '1MB 0ms\n%.0s' {1..4096} >"$scratch/step"
refused "expected at most 16 in each of 4096 buckets; got 32768" "${step[@]}" --mesh x=2 \
    --strategy "allreduce:ring segments=32768" --step "$scratch/step"
run 1 "${step[@]}" --mesh x=2 --step /nowhere/step
[[ $err == *"there is no file /nowhere/step"* ]] || fail "strange: $err"

run 1 simulate bcast --mesh x=4 --bytes 1M --trace /nowhere/trace.json
[[ $err == *"/nowhere/trace.json cannot be written: No such file or directory"* ]] || fail "strange: $err"
refused "a network is written as in" simulate bcast --mesh x=4 --bytes 1M --network mesh=4
refused "room for 2" simulate bcast --mesh x=4 --bytes 1M --network tree=2
refused "all dimensions of this mesh are inside of one" simulate bcast --mesh gpu=4 --bytes 1M --network tree=4
refused "'1' is no number from 0 to 3 that is not there yet" simulate bcast --mesh x=4 --bytes 1M --order 0,1,1,3
refused "this one has 3 of them" simulate bcast --mesh x=4 --bytes 1M --order 0,1,2
refused "there is no file crossed.txt" simulate bcast --mesh x=4 --bytes 1M --order crossed.txt
refused "takes a rank below 4 and its delay" simulate bcast --mesh x=4 --bytes 1M --late 4:1ms
refused "no link called 'leaf7.0 up0'" simulate bcast --mesh x=4 --bytes 1M --network tree=2:1:1GB/s --slow "leaf7.0 up0:2"
refused "a factor of at least 1" simulate bcast --mesh x=4 --bytes 1M --slow "leaf0.0 up0"
refused "up to a hundred days" simulate bcast --mesh x=4 --bytes 1T --links "x=alpha:1us;beta:1Kbit/s" --strategy bcast:mst
refused "--bytes is missing" simulate bcast --mesh x=4
refused "--top goes without --strategy" simulate bcast --mesh x=4 --bytes 1M --top 3 --strategy bcast:mst
finish
