#!/usr/bin/env bash
# The benchmarks on a tiny range: exit status, tables, JSON and CSV, the picture.
# usage: run.sh collectives|datatypes|usage|plot|plan|timeline|device|nccl SOURCE BUILD MPIRUN…
set -euo pipefail

what=$1 source=$2 build=$3
shift 3
run=("$@")
bench=$build/meshcoll-bench
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

tiny() { # tiny COLLECTIVE OPTIONS…
    "${run[@]}" "$bench" --collective "$1" --mesh box=2,gpu=2 --links lab -b 64 -e 4K -f 8 -w 1 -n 3 \
        "${@:2}"
}

check_numbers() { # check_numbers FILE COLLECTIVE: JSON and CSV agree, and nothing is wrong
    python3 - "$1" "$2" <<'PYTHON'
import csv, json, sys

path, collective = sys.argv[1:]
whole = json.load(open(path + ".json", encoding="utf-8"))
meta, rows = whole["meta"], whole["rows"]
assert meta["collective"] == collective and meta["mesh"] == "box=2,gpu=2" and meta["ranks"] == 4, meta
assert {row["bytes"] for row in rows} == {64, 512, 4096}, rows
assert {"best", "mpi"} < {row["label"] for row in rows}, rows
for row in rows:
    assert row["wrong"] == 0, row
    assert 0 < row["min_s"] <= row["median_s"] <= row["p99_s"], row
    assert row["iterations"] == 3 and (row["bound_s"] is None or row["bound_s"] > 0), row
    if row["label"] == "mpi":
        assert row["predicted_s"] is None and row["sent_box"] is None, row
    else:
        assert row["predicted_s"] > 0 and row["sent_box"] > 0, row
lines = [line for line in open(path + ".csv", encoding="utf-8") if not line.startswith("#")]
table = list(csv.DictReader(lines))
assert [row["label"] for row in table] == [row["label"] for row in rows], table
assert all(list(a) == list(b) for a, b in zip(table, rows)), "CSV and JSON differ in columns"
PYTHON
}

test_collectives() {
    local collective
    for collective in bcast reduce scatter gather allgather reduce_scatter allreduce alltoall; do
        tiny "$collective" --root 2 --strategies best,named --flat mpi --json "$out/a.json" \
            --csv "$out/a.csv" >"$out/table" || { cat "$out/table"; fail "$collective"; }
        check_numbers "$out/a" "$collective" || fail "numbers of $collective"
        grep -q '^# every result was right' "$out/table" || fail "$collective: no closing line"
        tiny "$collective" --root 1 --strategies named --flat mpi --in-place --datatype int64 \
            --op max >"$out/table" || { cat "$out/table"; fail "$collective in place"; }
    done
    tiny bcast --strategies best --sizes 8,1K,3000 --csv "$out/s.csv" >"$out/table" || fail "--sizes"
    [ "$(grep -v '^#' "$out/s.csv" | cut -d, -f1 | paste -sd' ')" = "bytes 8 1024 3000" ] ||
        { cat "$out/s.csv"; fail "--sizes"; }
    tiny bcast --strategies best --sizes 8,1K,3000 --csv - >"$out/table" || fail "--csv -"
    [ ! -e - ] || fail "--csv - writes a file of that name"
    [ "$(grep -v '^#' "$out/table" | cut -d, -f1 | paste -sd' ')" = "bytes 8 1024 3000" ] ||
        { cat "$out/table"; fail "--csv -"; }
    local parent=$out/full
    mkdir "$parent"
    if unshare -m mount -t tmpfs none "$parent" 2>/dev/null; then
        unshare -m bash -c 'mount -t tmpfs -o size=4k none "$1"; "${@:2}" --json "$1/a.json"; ls -A "$1"' full "$parent" \
            "${run[@]}" "$bench" --collective bcast -b 64 -e 64 -w 1 -n 1 --strategies best,named >"$out/table" 2>&1
        grep -q 'a.json cannot be written: No space left' "$out/table" || { cat "$out/table"; fail "a full disk"; }
        ! grep -qx 'a.json.tmp' "$out/table" || fail "what could not be written is left behind"
    fi
    tiny bcast --strategies all -n 1 -w 0 >"$out/table" || { cat "$out/table"; fail "all strategies"; }
    tiny scatter --strategies best --flat mpi --gate "$out/gate" --json "$out/a.json" >"$out/table" ||
        { cat "$out/table"; fail "--gate"; }
    grep -q '"clock": "gate"' "$out/a.json" || fail "the gate is not in the JSON"
    [ ! -e "$out/gate" ] || fail "the gate's file is still there"
    tiny barrier --strategies best,named --flat mpi --gate "$out/gate" --json "$out/a.json" >"$out/table" ||
        { cat "$out/table"; fail "barrier"; }
    grep -q '^# every result was right' "$out/table" || fail "barrier: no closing line"
    python3 - "$out/a.json" <<'PYTHON' || fail "numbers of barrier"
import json, sys
whole = json.load(open(sys.argv[1], encoding="utf-8"))
assert whole["meta"]["collective"] == "barrier" and whole["meta"]["datatype"] is None, whole["meta"]
assert {"best", "mpi"} < {row["label"] for row in whole["rows"]}, whole["rows"]
for row in whole["rows"]:
    assert row["bytes"] == 0 and row["bound_s"] is None and row["wrong"] == 0 and row["median_s"] > 0, row
PYTHON
    tiny allreduce --op min --datatype float64 --strategies best --min-time 0.05 --max-time 1 \
        >"$out/table" || { cat "$out/table"; fail "min-time"; }
}

test_datatypes() { # every datatype, and every operation with some of them
    local pair
    for pair in int8:sum int16:prod uint8:bor uint16:band uint32:lxor uint64:max int32:land int8:lor \
        float16:sum bfloat16:sum float8_e4m3:sum float8_e5m2:sum float16:avg bfloat16:prod \
        float32:avg int64:avg complex64:sum complex64:prod complex128:avg uint8:bxor \
        float32_int32:minloc float64_int32:maxloc int32_int32:maxloc int64_int32:minloc \
        float64_int64:minloc int64_int64:maxloc bool:band bool:max bool:lxor; do
        tiny allreduce --datatype "${pair%:*}" --op "${pair#*:}" --strategies best,flat-ring -n 1 -w 0 \
            >"$out/table" || { cat "$out/table"; fail "$pair"; }
        grep -q '^# every result was right' "$out/table" || fail "$pair: no closing line"
    done
    for pair in complex128:prod float64_int32:minloc uint16:bxor; do
        tiny reduce_scatter --datatype "${pair%:*}" --op "${pair#*:}" --strategies best --flat mpi -n 1 -w 0 \
            >"$out/table" || { cat "$out/table"; fail "$pair beside MPI"; }
    done
    refuses 'float16 supports sum, min, max, prod, avg' tiny allreduce --datatype float16 --op band
    refuses 'MPI has no bfloat16' tiny allreduce --datatype bfloat16 --flat mpi
    refuses 'MPI has no avg' tiny allreduce --op avg --flat mpi
}

refuses() { # refuses PATTERN COMMAND…: exit status 2 and one line of our own that matches
    local pattern=$1 code=0
    shift
    "$@" >"$out/table" 2>"$out/errors" || code=$?
    [ $code -eq 2 ] || fail "expected exit status 2, came $code: ${*: -3}"
    [ "$(grep -c '^meshcoll-bench: ' "$out/errors")" -eq 1 ] || fail "not one line: ${*: -3}"
    grep -q "^meshcoll-bench: .*$pattern" "$out/errors" || { cat "$out/errors"; fail "$pattern"; }
}

test_usage() {
    refuses 'expected one of bcast' tiny allsum
    refuses "there is no option '--speed'" tiny bcast --speed 3
    refuses 'got "fast"' tiny bcast --rate fast
    refuses 'no size' tiny bcast -b 1M -e 1K
    refuses '--sizes: expected each larger' tiny bcast --sizes 64,8
    refuses '--sizes: expected bytes' tiny bcast --sizes 8,many
    refuses '--timeline-bytes' tiny bcast --timeline-bytes many
    refuses '.' tiny bcast --strategies 'bcast:mst(nowhere)'
    refuses '.' tiny bcast --mesh box=3,gpu=2
    refuses '--gate: expected to make a new file' tiny bcast --gate "$out"
    # without MPI, and without ranks that are each alone
    "$build/meshcoll" run -n 2 "$bench" --strategies best -b 64 -e 64 -n 3 >"$out/table" || fail "meshcoll run"
    grep -q '^# mesh .*(2 ranks)' "$out/table" || { cat "$out/table"; fail "ranks of meshcoll run"; }
    refuses 'one rank has nobody to exchange with' "$bench"
    "$build/meshcoll" run -n 1 "$bench" --strategies best -b 64 -e 64 -n 3 >"$out/table" || fail "one rank that is meant"
    refuses 'MPI says rank [01] of 1 where the launcher says [01] of 2' "$build/meshcoll" run -n 2 "$bench" --flat mpi
    if ldd "$bench" | grep -i libmpi; then fail "meshcoll-bench is linked with MPI"; fi
    # once, and before MPI starts: with this it would not
    [ "$("${run[@]}" "$bench" --help | grep -c -- '--strategies LIST')" = 1 ] || fail "--help"
    [ "$(OMPI_MCA_btl=none "$bench" --version | grep -c '^meshcoll-bench [0-9]')" = 1 ] ||
        fail "--version"
}

test_plot() {
    local python
    for python in python3 /usr/bin/python3 none; do
        "$python" -c 'import matplotlib' 2>/dev/null && break
    done
    if [ "$python" = none ]; then
        echo "skipped: no python3 here has matplotlib (apt-get install python3-matplotlib)"
        exit 77
    fi
    tiny bcast --strategies best,named --flat mpi --json "$out/b.json" --csv "$out/b.csv" >/dev/null
    "$python" "$source/bench/plot.py" "$out/b.json" -o "$out/b.svg" -o "$out/b.png"
    "$python" "$source/bench/plot.py" "$out/b.csv" -o "$out/c.svg" --only best,mpi
    grep -q '<svg' "$out/b.svg" || fail "b.svg is no SVG"
    grep -q 'box=2,gpu=2' "$out/c.svg" || fail "the title of c.svg does not name the mesh"
    [ "$(head -c 4 "$out/b.png" | tail -c 3)" = PNG ] || fail "b.png is no PNG"
    echo '{}' >"$out/empty.json"
    "$python" "$source/bench/plot.py" "$out/empty.json" 2>"$out/errors" && fail "took an empty file"
    grep -q '^plot.py: ' "$out/errors" || fail "no word about an empty file"
}

test_plan() {
    "$build/meshcoll-bench-plan" --quick >"$out/table" || fail "exit status $?"
    # sizes are the same on every machine; times are not
    [ "$(grep -c '^pass: .* bytes' "$out/table")" -eq 2 ] || { cat "$out/table"; fail "plan sizes"; }
}

check_timeline() { # check_timeline FILE COLLECTIVE BYTES: steps, both ends of messages, numbers, picture
    python3 - "$@" <<'PYTHON'
import json, sys, xml.etree.ElementTree as tree

path, collective, size = sys.argv[1:]
whole = json.load(open(path + ".json", encoding="utf-8"))
about, events = whole["otherData"], whole["traceEvents"]
assert about["collective"] == collective and about["bytes"] == int(size), about
assert about["mesh"] == "box=2,gpu=2" and about["ranks"] == 4 and about["seconds"] > 0, about

spans = [event for event in events if event["ph"] == "X"]
slack = 0.01 + about["clock_error_s"] * 1e6     # µs; times are rounded
steps, ends, lanes = {}, {}, {}
for e in spans:
    args = e["args"]
    key = "local" if e["cat"] == "local" else "message"
    assert key not in steps.setdefault((e["pid"], args["step"]), {}), e     # every step once …
    steps[e["pid"], args["step"]][key] = e
    assert e["dur"] >= 0 and -slack <= e["ts"] <= about["seconds"] * 1e6 + slack, e
    assert args["ready_us"] > -slack, e
    if key == "message":
        pair = (e["pid"], args["peer"]) if e["name"] == "send" else (args["peer"], e["pid"])
        assert e["name"] not in ends.setdefault((*pair, args["message"]), {}), e
        ends[(*pair, args["message"])][e["name"]] = e
        lanes.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
for rank in range(4):                                                       # … of every rank
    numbers = sorted(step for pid, step in steps if pid == rank)
    assert numbers and numbers == list(range(len(numbers))), (rank, numbers)
for both in steps.values():
    if len(both) == 2:      # a message, and its reduction after it
        message, local = both["message"], both["local"]
        assert message["args"]["op"] == "recv_reduce" and local["name"] == "reduce", both
        assert local["ts"] >= message["ts"] + message["dur"] - slack, both
assert ends
for pair, both in ends.items():
    send, recv = both["send"], both["recv"]
    assert send["args"]["bytes"] == recv["args"]["bytes"] > 0, pair
    assert send["args"]["dim"] == recv["args"]["dim"], pair
    assert recv["ts"] >= send["ts"] - slack, (pair, send, recv)
    assert recv["ts"] + recv["dur"] >= send["ts"] - slack, (pair, send, recv)
for lane in lanes.values():                     # Perfetto wants no overlap within a thread
    lane.sort()
    assert all(b[0] >= a[1] - slack for a, b in zip(lane, lane[1:])), lane
busy = sorted(dim["busy"] for dim in about["dims"])
assert 0 < busy[-1] <= 1 and 0 <= about["two_at_once"] <= busy[-2] + 1e-9, about
assert len(about["boxes"]) == 2, about
for box in about["boxes"]:
    at_once = sum(end - begin for begin, end in box["at_once_us"]) / about["seconds"] / 1e6
    assert abs(at_once - box["two_at_once"]) < 1e-6, box

drawn = tree.parse(path + ".svg").getroot()
titles = [t.text for t in drawn.iter("{http://www.w3.org/2000/svg}title")]
assert len(titles) == len(spans), (len(titles), len(spans))
assert sum(text.startswith("rank 3, step 0: ") for text in titles) > 0, titles
of = [element.get("class") for element in drawn.iter() if element.tag.endswith("}path")]
assert sum((name or "").startswith("c") for name in of) == len(ends), of
PYTHON
}

drawn() { # drawn FILE OPTION…: its picture
    "$build/meshcoll" trace --timeline "$@" >"$out/drawn" || fail "trace --timeline: $*"
}

test_timeline() {
    tiny allreduce --strategies "reduce_scatter:ring(gpu) allreduce:ring(box) allgather:ring(gpu),flat-mst" \
        --flat mpi --timeline "$out/a" >"$out/table" || { cat "$out/table"; fail "allreduce"; }
    [ "$(grep -c 'two at once' "$out/table")" -eq 2 ] || { cat "$out/table"; fail "no numbers"; }
    ls "$out"/a-*.json >"$out/list"
    [ "$(wc -l <"$out/list")" -eq 2 ] || { cat "$out/list"; fail "not one file per strategy"; }
    tiny bcast --strategies 'bcast:chain(box) bcast:star(gpu) segments=4' --timeline "$out/b" \
        --timeline-bytes 64K >"$out/table" || { cat "$out/table"; fail "bcast"; }
    for file in "$out"/a-*.json "$out/b.json"; do
        drawn "$file" --svg "${file%.json}.svg"
    done
    while read -r file; do
        check_timeline "${file%.json}" allreduce 4096 || fail "$file"
    done <"$out/list"
    check_timeline "$out/b" bcast 65536 || fail "b.json"
    drawn "$out/b.json" --rank 2-3 --during 0us-1s --svg "$out/c.svg"
    grep -q 'rank [01],' "$out/c.svg" && fail "c.svg has more than ranks 2 and 3"
    echo '{}' >"$out/empty.json"
    "$build/meshcoll" trace --timeline "$out/empty.json" --svg "$out/d.svg" 2>"$out/errors" && fail "took an empty file"
    grep -q 'expected a timeline that meshcoll-bench' "$out/errors" || fail "no word about an empty file"
}

on_double() { # on_double: GPUs of the fake of libcuda, with few threads
    export MESHCOLL_LIBCUDA=$build/tests/device/libfakecuda.so MESHCOLL_GPU_BLOCKS=1
    tiny bcast --memory device --strategies best -n 1 -w 0 >"$out/table" 2>"$out/errors" && return
    if grep -q 'built without nvcc' "$out/errors"; then
        echo "skipped: the library was built without nvcc, so calls on device memory are refused"
        exit 77
    fi
    cat "$out/table" "$out/errors"
    fail "on the fake of libcuda"
}

check_device() { # check_device FILE COLLECTIVE LABELS: rates as nccl-tests defines them, and nothing is wrong
    python3 - "$@" <<'PYTHON'
import json, sys

path, collective, labels = sys.argv[1:]
whole = json.load(open(path, encoding="utf-8"))
meta, rows = whole["meta"], whole["rows"]
assert meta["memory"] == "device" and meta["gpu"] == "fake GPU", meta
assert {row["label"] for row in rows} == set(labels.split(",")), rows
assert ("nccl" in labels) == (meta["nccl"] == "2.18.0"), meta
factor = {"allreduce": 2 * 3 / 4, "bcast": 1, "reduce": 1}.get(collective, 3 / 4)
for row in rows:
    assert row["wrong"] == 0 and 0 < row["min_s"] <= row["median_s"], row
    assert abs(row["algbw_Bps"] * row["median_s"] / row["bytes"] - 1) < 1e-6, row
    assert abs(row["busbw_Bps"] / row["algbw_Bps"] / factor - 1) < 1e-6, row
    assert row["sent_box"] is None, row
    assert (row["cpu_s"] is not None) == (meta["clock"] == "events") == (meta["enqueue"] == 3), row
    assert row["cpu_s"] is None or 0 < row["cpu_s"] < 0.1, row
PYTHON
}

test_device() {
    local collective
    refuses 'there is no CUDA driver here' env MESHCOLL_LIBCUDA=off "${run[@]}" "$bench" --memory device
    refuses 'add --memory device' tiny bcast --enqueue 3
    refuses 'goes without --gate' tiny bcast --memory device --enqueue 3 --gate "$out/gate"
    refuses 'it has no buffers' tiny barrier --memory device
    refuses 'expected host or device' tiny bcast --memory card
    on_double
    for collective in bcast reduce scatter gather allgather reduce_scatter allreduce alltoall; do
        tiny "$collective" --memory device --strategies best --root 2 --json "$out/a.json" >"$out/table" ||
            { cat "$out/table"; fail "$collective on device memory"; }
        check_device "$out/a.json" "$collective" best || fail "numbers of $collective"
        grep -q '^# every result was right' "$out/table" || fail "$collective: no closing line"
        grep -q '^#.* algbw  *busbw .*#wrong' "$out/table" || fail "$collective: no columns"
        tiny "$collective" --memory device --enqueue 3 --in-place --strategies best --json "$out/a.json" \
            >"$out/table" || { cat "$out/table"; fail "$collective enqueued"; }
        check_device "$out/a.json" "$collective" best || fail "numbers of $collective, enqueued"
    done
    for collective in allreduce allgather; do
        for how in "" "--enqueue 2"; do
            # shellcheck disable=SC2086 # two words, or none
            FAKE_SPOIL=1 tiny "$collective" --memory device --strategies best $how >"$out/table" &&
                fail "a wrong result of $collective was not noticed"
            grep -q '^# WRONG: [1-9]' "$out/table" || { cat "$out/table"; fail "no word of it"; }
        done
    done
}

test_nccl() {
    local collective
    refuses 'NCCL works on the memory of GPUs' tiny bcast --flat nccl
    refuses 'expected mpi or nccl' tiny bcast --flat rccl
    refuses 'NCCL has no float32_int32' tiny allreduce --datatype float32_int32 --op minloc --memory device --flat nccl
    on_double
    refuses 'there is no NCCL here (.*install libnccl2' \
        env MESHCOLL_LIBNCCL="$out/none.so" "${run[@]}" "$bench" --memory device --flat nccl
    export MESHCOLL_LIBNCCL=$build/tests/device/libfakenccl.so
    refuses 'could not make a communicator: as the fake was told' \
        env FAKE_NCCL_FAILS=1 "${run[@]}" "$bench" --memory device --flat nccl
    for collective in bcast reduce allgather reduce_scatter allreduce; do
        tiny "$collective" --memory device --flat nccl --strategies best --root 1 --json "$out/a.json" \
            >"$out/table" || { cat "$out/table"; fail "$collective beside NCCL"; }
        check_device "$out/a.json" "$collective" best,nccl || fail "numbers of $collective beside NCCL"
        [ "$collective" = allreduce ] || [ "$collective" = allgather ] || continue
        tiny "$collective" --memory device --flat nccl --enqueue 3 --in-place --strategies best \
            --json "$out/a.json" >"$out/table" || { cat "$out/table"; fail "$collective enqueued beside NCCL"; }
        check_device "$out/a.json" "$collective" best,nccl || fail "numbers of $collective, enqueued"
    done
    # The fake has no sends and receives; that they are what runs, and that a failure is told, shows here.
    tiny alltoall --memory device --flat nccl --strategies best >"$out/table" 2>"$out/errors" &&
        fail "an alltoall of a NCCL without sends"
    grep -q 'NCCL could not send: the fake has none' "$out/errors" || { cat "$out/errors"; fail "alltoall"; }
}

"test_$what"
