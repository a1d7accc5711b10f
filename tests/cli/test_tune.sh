#!/usr/bin/env bash
# meshcoll tune on four ranks of this machine: what it prints and keeps, that a mesh finds it, that links are what was measured,
# and that they predict what the benchmark measures.
. "$(dirname "$0")/lib.sh"

build=${MESHCOLL_BUILD_DIR:-build/test}
unset MESHCOLL_LINKS MESHCOLL_MESH MESHCOLL_TRANSPORTS
export MESHCOLL_TUNE_FILE=$scratch/deep/links.json

# taken MESH LINKS: a mesh of MPI's ranks takes them without being told to.
taken() {
    [ ! -x "$build/tests/mpi/test_tuned" ] || mpirun_ranks 4 "$build/tests/mpi/test_tuned" "$@" >"$scratch/out" 2>&1 ||
        fail "test_tuned $1: $(cat "$scratch/out")"
}

# predicts MESH: small and large collectives take within a factor of 8 of what the tuned links say, the median of all
# strategies. A machine whose cores are shared is noisy; a number that is off by ten is none.
bench=$build/meshcoll-bench
predicts() {
    local collective
    rm -f "$scratch"/rows.*
    for collective in allgather allreduce; do
        ranks 4 0 "$bench" --mesh "$1" --collective $collective --sizes 64,4M --strategies named -w 3 -n 15 --max-time 0.3 \
            --json "$scratch/rows.$collective"
    done
    python3 - "$scratch"/rows.* <<'PYTHON'
import json, statistics, sys
rows = [row for path in sys.argv[1:] for row in json.load(open(path))["rows"]]
off = {}
for row in rows:
    off.setdefault(row["bytes"], []).append(row["median_s"] / row["predicted_s"])
print({size: round(statistics.median(ratios), 3) for size, ratios in off.items()})
sys.exit(not (len(off) == 2 and all(1 / 8 < statistics.median(ratios) < 8 for ratios in off.values())))
PYTHON
}

# quiet: do programs that spin on all cores get nine tenths of them, and so nobody else more than a tenth?
quiet() {
    python3 - <<'PYTHON'
import multiprocessing, os, sys, time
def share(_):
    end, cpu = time.monotonic() + 0.5, time.process_time()
    while time.monotonic() < end:
        pass
    return (time.process_time() - cpu) / 0.5
cores = len(os.sched_getaffinity(0))
with multiprocessing.Pool(cores) as pool:
    sys.exit(sum(pool.map(share, range(cores), 1)) < 0.9 * cores)
PYTHON
}

# predicted MESH: its tuned links predict, or those of one of two further tunings. Programs beside this one turn a time
# of 10 us into a time slice of 4 ms: what is measured then says nothing about links.
predicted() {
    local try said busy=no
    for try in 1 2 3; do
        local -x MESHCOLL_TUNE_FILE=$MESHCOLL_TUNE_FILE
        if [ $try -gt 1 ]; then
            MESHCOLL_TUNE_FILE=$scratch/again.json
            ranks 4 0 "$MESHCOLL" tune --mesh "$1" --seconds 3
        fi
        quiet || busy=yes
        said=$(predicts "$1") && return
        quiet || busy=yes
    done
    if [ $busy = yes ]; then
        echo "not compared: predictions of $1, as other programs take this machine's cores: $said"
    else
        fail "links of $1 predict badly: $said"
    fi
}

# derived: the links in $out that are not what it says was measured, but for the steps to which they are rounded; unless they
# are the untuned ones.
derived() {
    query '", ".join(
        link["dim"] + "." + name
        for link in j["links"] for seen in j["measured"] if seen["dim"] == link["dim"] and not j["held_out"]["worse"]
        for name, a, b, most in (
            ("beta", link["beta"] * seen["lines"] / link["ports"], seen["beta_together"], 1.15),
            ("ports", link["ports"], min(max(round(seen["lines"] * seen["beta_alone"] / seen["beta_together"]), 1), seen["lines"]), 1.001))
        if not b / most < a < b * most)'
}

begin=$(date +%s)
ranks 4 0 "$MESHCOLL" tune --mesh box=2,gpu=2 --seconds 3
[ $(($(date +%s) - begin)) -lt 60 ] || fail "three seconds took $(($(date +%s) - begin))"
has "links of box=2,gpu=2 on 1 machine with "
has "stored in $MESHCOLL_TUNE_FILE"
[ "$(grep -c '^as text: ' <<<"$out")" -eq 1 ] || fail "expected one rank's words in:"$'\n'"$out"
[[ $err != *$'\r'* ]] || fail "a progress bar, but no terminal"
links=$(sed -n 's/^as text: //p' <<<"$out")

# Every number is one: measured, positive, and of a kind the text form has.
[[ $links =~ ^box=alpha:[0-9.]+[a-z]*s\;(gap:[0-9.]+[a-z]*s?\;)?(cpu:[0-9.]+[a-z]*s\;)?beta:[0-9.]+.*\;pulled:no,gpu=alpha:[0-9.]+[a-z]*s\;(gap:[0-9.]+[a-z]*s?\;)?(cpu:[0-9.]+[a-z]*s\;)?beta:.*\;pulled:yes$ ]] ||
    fail "strange links: $links"
run 0 plan allreduce --mesh box=2,gpu=2 --links "$links" --bytes 1M --json
gives 'all(l["alpha"] > 0 and l["beta"] > 0 and l["gamma"] > 0 for l in j["links"])' True
gives '[l["ports"] in (1, 2) for l in j["links"]]' "[True, True]"

# They say what was measured, and how long collectives take.
if [ -x "$bench" ]; then
    predicted box=2,gpu=2
fi

taken box=2,gpu=2 "$links"

# A second mesh has an entry beside it; tuned twice, it is replaced, although a version that had more fields wrote it.
for turn in 1 2; do
    [ $turn -eq 1 ] || sed -i 's/"links": "gpu=[^"]*pulled:yes/&;incast:1.35/' "$MESHCOLL_TUNE_FILE"
    ranks 4 0 "$MESHCOLL" tune --mesh gpu=4 --seconds 1 --json
    gives 'j["command"], j["mesh"]["text"], j["links"][0]["dim"]' "('tune', 'gpu=4', 'gpu')"
    strange=$(derived)
    [ -z "$strange" ] || fail "links are not what was measured: $strange"
    gives 'all(len(s["seconds"]) == len(j["strategies"]["bytes"]) == 8 and min(s["seconds"]) > 0 for s in j["strategies"]["strategies"])' True
    gives 'sorted(j)' "['cluster', 'command', 'file', 'held_out', 'links', 'links_text', 'measured', 'memory', 'mesh', 'rounds', 'seconds', 'strategies']"
    # each collective has its rows, unless they were slower than untuned at sizes held out
    gives '(j["held_out"]["worse"] == 0) <= (len({s["collective"] for s in j["strategies"]["strategies"]}) == 8)' True
done
if [ -x "$bench" ]; then
    predicted gpu=4
else
    echo "there is no meshcoll-bench in this build: predictions are not compared"
fi
out=$(cat "$MESHCOLL_TUNE_FILE")
gives 'sorted(e["mesh"] for e in j["clusters"].values())' "['box=2,gpu=2', 'gpu=4']"
gives 'all({"links", "ranks", "machines", "cpu", "cores", "transports", "date", "command", "provenance"} < set(e) for e in j["clusters"].values())' True
taken box=2,gpu=2 "$links"

# Boxes of unequal sizes: the link between them, and one for gpu and fold, from the fullest box.
ranks 4 0 "$MESHCOLL" tune --mesh box=2+1+1 --seconds 2 --json
gives 'j["mesh"]["text"]' "box=2+1+1"
gives '[m["dim"] for m in j["measured"]], all(m["beta_together"] > 0 for m in j["measured"])' "(['box', 'gpu', 'fold'], True)"
links=$(query 'j["links_text"]')
taken box=2+1+1 "$links"

# What cannot be is told by one rank, before anything is measured.
tuning_refused() { # tuning_refused STATUS TEXT ARGUMENT…
    local status=$1 text=$2
    shift 2
    ranks 4 "$status" "$MESHCOLL" tune "$@"
    [ "$(grep -c '^meshcoll tune: ' <<<"$err")" -eq 1 ] || fail "expected one line from us, got: $err"
    [[ $err == *"meshcoll tune: "*"$text"* ]] || fail "expected '$text' in: $err"
}
tuning_refused 2 "box=2,gpu=2 would fit" --mesh box=2,gpu=3
tuning_refused 2 "--seconds takes a number from 1 to 600" --seconds 0
tuning_refused 2 "one argument too many" box=4
tuning_refused 2 "--memory takes host or device" --memory pinned
MESHCOLL_LIBCUDA=off tuning_refused 1 "there is no CUDA driver here" --memory device
echo '{"version": 1,' >"$scratch/broken.json"
tuning_refused 1 "broken.json is not a valid file of tuned links" --file "$scratch/broken.json"
[ "$(cat "$scratch/broken.json")" = '{"version": 1,' ] || fail "a broken file was overwritten"
tuning_refused 1 "cannot be written" --mesh gpu=4 --seconds 1 --file /proc/meshcoll/links.json

run 0 tune --help
has "--seconds N"
has "examples:"
finish
