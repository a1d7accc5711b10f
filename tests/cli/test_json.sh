#!/usr/bin/env bash
# Each command's JSON parses and has the keys docs/command.md promises.
. "$(dirname "$0")/lib.sh"

# keys EXPRESSION KEY…
keys() {
    local expression=$1 key
    shift
    for key in "$@"; do
        gives "'$key' in $expression" True
    done
}

run 0 plan bcast --mesh box=2,gpu=4 --bytes 1M --root 3 --json
keys j command collective mesh links_given links root bytes lower_bound_seconds best_seconds considered exhaustive strategies
keys 'j["strategies"][0]' strategy segments seconds times_best times_bound terms phases
keys 'j["strategies"][0]["phases"][0]' phase segment_seconds terms busy_terms
keys 'j["links"][0]' dim alpha gap beta gamma ports pulled streams wire window burst cpu
keys 'j["strategies"][0]["terms"][0]' dim alpha row beta gamma messages volume
keys 'j["mesh"]' text ranks dims

run 0 plan bcast --mesh box=2,gpu=4 --sweep 1K..1M --json
keys j sweep best crossings
keys 'j["best"][0]' from to strategy least_segments most_segments seconds_from seconds_to
keys 'j["crossings"][0]' between bytes cheaper_below cheaper_above

run 0 trace allreduce --mesh x=3 --strategy allreduce:ring --json
keys j command collective mesh strategy start steps
gives 'j["start"][1]' "['a1', 'b1', 'c1']"
gives 'len(j["steps"])' 4
gives 'j["steps"][0]["state"][1][0]' a1a0
gives 'j["steps"][0]["messages"][0]' "{'from': 0, 'to': 1, 'phase': 0, 'chunks': 'a'}"

run 0 trace allreduce --mesh x=3 --strategy allreduce:ring --explain --rank 1 --json
gives '[p["rank"] for p in j["plans"]]' "[1]"
gives 'j["plans"][0]["steps"][0].startswith("send -> 2")' True

run 0 verify bcast --mesh x=3,y=2 --json
keys j command collectives in_all seconds complete failure
gives 'j["complete"], j["failure"]' "(True, None)"
gives 'j["collectives"][0]["collective"], j["in_all"]["meshes"]' "('bcast', 1)"
gives 'j["in_all"]["worlds"] == 6 * j["in_all"]["strategies"]' True
keys 'j["collectives"][0]' meshes meshes_asked strategies worlds in_flight in_flight_at
gives 'j["collectives"][0]["in_flight"] in (1, 2)' True
gives 'j["in_all"]["in_flight_at"].startswith("meshcoll verify bcast --mesh x=3,y=2 --strategy")' True

run 0 count --json
keys j command ranks mesh bytes unit ways
keys 'j["ways"][0]' way strategy counted estimate note

run 0 list --json
keys j command mesh collectives algorithms strategies links
gives 'len(j["collectives"])' 8
keys 'j["algorithms"][0]' collective name slices composite keeps_order reproducible_on
gives '[a["reproducible_on"] for a in j["algorithms"] if a["collective"] == "allreduce" and a["name"] in ("aligned", "ring")]' "['any', None]"
keys 'j["links"]["links"][0]' name provenance alpha beta gamma ports pulled
keys 'j["links"]["clusters"][0]' name provenance network inside
gives 'all(s["strategy"] for s in j["strategies"])' True
run 0 list strategies --mesh box=4+3+1 --json
gives '[s["strategy"] for s in j["strategies"] if s["name"] == "hierarchical" and s["collective"] == "alltoall"]' \
    "['gather:mst(fold) alltoall:pairwise(gpu) alltoall:pairwise(box) scatter:mst(fold)']"
gives '[s["strategy"] for s in j["strategies"] if s["name"] == "flat-pairwise"]' "['alltoall:pairwise(box*gpu*fold)']"
run 0 list links --json
gives '"collectives" in j' False
run 0 list algorithms
has "alltoall:pairwise a block for every other rank"
has "alltoall:digits pairwise along each digit"
finish
