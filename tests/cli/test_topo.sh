#!/usr/bin/env bash
# meshcoll topo: a mesh given, ranks of this machine, and ranks bound to NUMA nodes that hwloc is told of.
. "$(dirname "$0")/lib.sh"

build=${MESHCOLL_BUILD_DIR:-build/test}
unset MESHCOLL_LINKS MESHCOLL_MESH MESHCOLL_TRANSPORTS HWLOC_SYNTHETIC HWLOC_THISSYSTEM
export MESHCOLL_TUNE_FILE=$scratch/links.json

# drawn EXPRESSION VALUE: of the picture's texts t and its elements e
drawn() {
    local got
    got=$(python3 -c 'import sys, xml.etree.ElementTree as x
e = list(x.parse(sys.argv[1]).iter()); t = [i.text for i in e if i.tag.endswith("}text")]
print(eval(sys.argv[2]))' "$scratch/topo.svg" "$1" 2>&1)
    [ "$got" = "$2" ] || fail "$1 in the picture is '$got', expected '$2'"
}

# Without ranks.
run 0 topo --mesh box=2,gpu=4 --links dgx-h100 --svg "$scratch/topo.svg"
has "box=2,gpu=4: 8 ranks, given"
has "links: dgx-h100, as given"
has "0 0-3"
has "1 4-7"
drawn '[i for i in t if i.isdigit()]' "['0', '1', '2', '3', '4', '5', '6', '7']"
drawn '[i for i in t if i.startswith("box ")]' "['box 0', 'box 1']"
drawn '[i for i in t if "GB/s" in i]' "['1/β 47 GB/s', '1/β 370 GB/s']"
run 0 topo --mesh rack=3,box=20,gpu=4 --json --svg "$scratch/topo.svg"
gives 'len(j["ranks"]), j["ranks"][81]["coords"], j["machines"], j["origin"]' "(240, [1, 0, 1], 0, 'given')"
gives 'j["links_source"]' "the preset generic, as none are given"
drawn '[t.count("and 9 more"), sum(i.isdigit() for i in t)]' "[3, 132]"
run 0 topo --mesh box=100,gpu=2
has "… and 36 more rows"
# What few links have gets a column only where one has it.
run 0 topo --mesh box=2 --links "box=alpha:7us;beta:1GB/s"
has "link α, a message 1/β, bandwidth 1/γ, sums ports"
has "7.00 us 1 GB/s - 1 a box"
run 0 topo --mesh box=2,gpu=4 --links "box=alpha:9us;gap:2us;beta:1GB/s;burst:64KiB;window:1MiB,gpu=alpha:1us;cpu:3us;\
beta:2GB/s;ports:4"
has "g, in a row 1/β, bandwidth 1/γ, sums ports window burst cpu, of all"
has "2.00 us 1 GB/s - 1 a box 1 MiB 64 KiB 0 s"
run 0 topo --mesh gpu=4 --links "shm,measured=1KiB/1MiB;bcast bcast:star(gpu) 1us/90us"
has "measured 1 KiB 1 MiB"
has "bcast:star(gpu) 1.00 us 90.0 us"
refused "a mesh is written" topo --mesh box
refused "nosuch" topo --mesh box=2 --links nosuch
run 1 topo --mesh box=2 --svg /nowhere/topo.svg
[[ $err == *"/nowhere/topo.svg cannot be written"* ]] || fail "strange: $err"
run 1 topo --mesh box=2 --svg -
[ ! -e - ] || fail "--svg - writes a file of that name"

# A machine in a file, without a job: two sockets, each with a NUMA node below a cache of two cores. Files that cannot be
# read are told, once, with what is done instead.
python3 - "$scratch/node.xml" <<'XML'
import itertools, sys
number = itertools.count(2)
def object(kind, first, n, inside="", node=None, **attributes):
    mask, nodes = hex((1 << n) - 1 << first), hex(1 << first // 2 if node is None else node)
    said = "".join(f' {k}="{v}"' for k, v in attributes.items())
    return (f'<object type="{kind}" gp_index="{next(number)}" cpuset="{mask}" complete_cpuset="{mask}" nodeset="{nodes}" '
            f'complete_nodeset="{nodes}"{said}>{inside}</object>')
def core(i):
    return object("Core", i, 1, object("PU", i, 1, os_index=i), os_index=i)
def socket(i):
    memory = object("NUMANode", 2 * i, 2, os_index=i, local_memory=1 << 30)
    cache = object("L3Cache", 2 * i, 2, memory + core(2 * i) + core(2 * i + 1), cache_size=1 << 25, depth=3,
                   cache_linesize=64, cache_associativity=16, cache_type=0)
    return object("Package", 2 * i, 2, cache, os_index=i)
machine = object("Machine", 0, 4, socket(0) + socket(1), node=3, os_index=0, allowed_cpuset="0xf", allowed_nodeset="0x3")
open(sys.argv[1], "w").write('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
                             f'<topology version="2.0">\n{machine}\n</topology>\n')
XML
sed 's/version="2.0"/version="3.0"/' "$scratch/node.xml" >"$scratch/later.xml"
run 0 topo --file "$scratch/node.xml"
has "numa=2,rank=2: 4 ranks on 1 machine, found with one for each core"
has "1 0 2 node.xml 1 1 2"
run 0 topo --file "$scratch/node.xml" --mesh gpu=4 --links lab --json
gives 'j["mesh"]["text"], j["links_source"], [r["numa_node"] for r in j["ranks"]]' \
    "('gpu=4', 'lab, as given', [0, 0, 1, 1])"
run 1 topo --file /nowhere.xml
[[ $err == *"/nowhere.xml cannot be read: No such file"* ]] || fail "strange: $err"
run 1 topo --file "$0"
[[ $err == *"is not a topology that hwloc reads here"* ]] || fail "strange: $err"
run 2 run -n 1 "$MESHCOLL" topo --file "$scratch/node.xml"
if [ "$(nproc)" -ge 2 ] && [ "$(nproc)" -eq "$(nproc --all)" ]; then
    for file in /nowhere.xml "$0" "$scratch/later.xml"; do
        instead='the machine itself is asked instead'
        [ "$file" != "$scratch/later.xml" ] || instead='\(where ranks are bound stays unknown\|.* is asked instead\)'
        HWLOC_XMLFILE=$file "$MESHCOLL" run -n 2 taskset -c 0 "$MESHCOLL" topo >"$scratch/out" 2>"$scratch/err" ||
            fail "$file: $(cat "$scratch/err")"
        [ "$(grep -c "HWLOC_XMLFILE: $file .*; $instead" "$scratch/err")" -eq 1 ] ||
            fail "$file is not told of once: $(cat "$scratch/err")"
        grep -q 'stays unknown' "$scratch/err" || grep -q 'NUMA node' "$scratch/out" || fail "no bindings with $file: $(cat "$scratch/out")"
    done
fi

# Ranks of this machine, as if it had no GPUs.
export MESHCOLL_LIBCUDA=off
ranks 4 0 "$MESHCOLL" topo
has "rank=4: 4 ranks on 1 machine, found"
has "links: the preset generic, as none are given and none are tuned"
[ "$(grep -c '^links: ' <<<"$out")" -eq 1 ] || fail "expected one rank's words in:"$'\n'"$out"
ranks 4 0 "$MESHCOLL" topo --mesh box=2,gpu=2 --links lab --json
gives 'j["mesh"]["text"], j["origin"], j["machines"], j["links_source"]' "('box=2,gpu=2', 'given', 1, 'lab, as given')"
gives '[(r["rank"], r["coords"], r["machine_of"]) for r in j["ranks"]][2]' "(2, [1, 0], 0)"
ranks 4 0 env MESHCOLL_MESH=2x2 "$MESHCOLL" topo # a program's mesh as well
has "box=2,gpu=2: 4 ranks on 1 machine, given"
ranks 4 2 "$MESHCOLL" topo --mesh box=3,gpu=2
[ "$(grep -c '^meshcoll topo: .*box=2,gpu=2 would fit' <<<"$err")" -eq 1 ] || fail "strange: $err"
# Machines that nothing else tells apart.
ranks 4 0 sh -c 'MESHCOLL_HOST_ID=$((RANK / 2)) exec "$1" topo --json' sh "$MESHCOLL"
gives 'j["mesh"]["text"], j["machines"], [r["machine_of"] for r in j["ranks"]]' "('box=2,rank=2', 2, [0, 0, 2, 2])"

# Boxes of unequal sizes: a row for each line along fold, and in the picture the ranks that there are.
run 0 topo --mesh box=5+2 --svg "$scratch/topo.svg"
has "0 0 0-2"
has "0 1 3 4"
has "1 1 6"
drawn '[i for i in t if i and i.isdigit()]' "['0', '1', '2', '3', '4', '5', '6']"

# Tuned links are found, and said to be.
ranks 4 0 "$MESHCOLL" tune --mesh gpu=4 --seconds 1
ranks 4 0 "$MESHCOLL" topo
has "links: measured by meshcoll tune, in $MESHCOLL_TUNE_FILE"
export MESHCOLL_TUNE_FILE=$scratch/none.json

# Two NUMA nodes of half the processors each, and ranks bound to one of each in turn.
cpus=$(nproc --all)
if [ "$cpus" -ge 2 ] && [ "$(nproc)" -eq "$cpus" ]; then
    cat >"$scratch/bound" <<BOUND
export HWLOC_SYNTHETIC="numa:2 core:$((cpus / 2)) pu:1" HWLOC_THISSYSTEM=1
exec taskset -c \$((RANK % 2 * ($cpus / 2))) "\$@"
BOUND
    ranks 4 0 bash "$scratch/bound" "$MESHCOLL" topo --json --svg "$scratch/topo.svg"
    gives 'j["mesh"]["text"], j["origin"]' "('numa=2,rank=2', 'found')"
    gives '[(r["rank"], r["coords"], r["numa_node"]) for r in j["ranks"]]' \
        "[(0, [0, 0], 0), (2, [0, 1], 0), (1, [1, 0], 1), (3, [1, 1], 1)]"
    gives '[r["cpus"] for r in j["ranks"]]' "['0', '0', '$((cpus / 2))', '$((cpus / 2))']"
    drawn '"node 0" in t and "node 1" in t' True
    # and a program finds the same, and computes on it
    ranks 4 0 bash "$scratch/bound" "$build/examples/allreduce"
    has "4 ranks as numa=2,rank=2: sum of element 0 is 6"
else
    echo "no ranks are bound: $(nproc) of $cpus processors may be used"
fi

run 0 topo --help
has "--svg FILE"
finish
