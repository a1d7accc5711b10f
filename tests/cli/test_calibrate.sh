#!/usr/bin/env bash
# Links that are measured when a mesh is created: measured once, kept for the next job, and taken again if they are right;
# what wins over them; and what happens to ranks that are killed or stopped meanwhile.
. "$(dirname "$0")/lib.sh"

build=$(cd "${MESHCOLL_BUILD_DIR:-build/test}" && pwd)
job=$build/tests/status/job
unset MESHCOLL_MESH MESHCOLL_LINKS MESHCOLL_TRANSPORTS
export MESHCOLL_TUNE_FILE=$scratch/none.json XDG_CACHE_HOME=$scratch/cache
export MESHCOLL_CALIBRATE=5 MESHCOLL_LOG=info # half a second in one box

# created [VARIABLE=VALUE …]: makes a mesh of 2 ranks; leaves what it says of its links in $links. Where the time does not
# suffice beside busy programs, it is doubled from then on, unless it is given.
created() {
    for (( ; ; )); do
        rm -f "$scratch/explained"
        env "$@" MESHCOLL_EXPLAIN="$scratch/explained" "$MESHCOLL" run -n 2 "$program" >"$scratch/out" 2>"$scratch/err" ||
            fail "$*: exit status $?: $(cat "$scratch/err")"
        links=$(sed -n 's/^links: //p' "$scratch/explained")
        if ! grep -q " ms did not suffice for " "$scratch/err" || [[ "$*" == *MESHCOLL_CALIBRATE=* ]] || [ -z "${MESHCOLL_CALIBRATE:-}" ] ||
            ((2 * MESHCOLL_CALIBRATE > 600)); then
            break
        fi
        MESHCOLL_CALIBRATE=$((2 * MESHCOLL_CALIBRATE))
    done
}

# kept: the files that are there
kept() {
    find "$scratch/cache" -type f 2>/dev/null | sort
}

program=$build/examples/allreduce
if [ ! -x "$program" ] || [ ! -x "$job" ]; then
    echo "skipped: built without examples or tests"
    exit 77
fi

# Measured, and kept for the next one, which takes the same.
number='[0-9.]+[a-zA-Z]*'
created
first=$links
[[ $links =~ ^(gpu|rank)=alpha:$number\;(gap:$number\;)?beta:[0-9.]+[a-zA-Z/]+\;gamma:[0-9.]+[a-zA-Z/]+\;((cpu|eager):$number\;)?ports:1\;pulled:yes,\ calibrated\ when\ a\ mesh\ was\ created\ here$ ]] ||
    fail "strange links: $links"
[ "$(kept | wc -l)" -eq 1 ] || fail "expected one file, found: $(kept)"
file=$(kept)
sed -n 2p "$file" | grep -q "^\(gpu\|rank\)=2 on 1 machine with .* of .*, \(gpu\|rank\)=shm$" || fail "strange key: $(cat "$file")"
# All that say which links a mesh has say these: the log of the job that measures them, and what shows the mesh.
said() { grep -qF "meshcoll: links calibrated when a mesh was created here: ${first%,*}" "$scratch/err" || fail "$1 logs other links: $(cat "$scratch/err")"; }
said "the first job"
ranks 2 0 "$MESHCOLL" topo --json
gives 'j["links_source"]' "calibrated when a mesh was created here"
XDG_CACHE_HOME=$scratch/other ranks 2 0 "$MESHCOLL" topo
has "links: the preset generic, until a job measures them: none are given, tuned or kept"
before=$(stat -c '%y %i' "$file")
created
said "the second job"
[ "$links" = "$first" ] || fail "the second mesh has $links, the first had $first"
[ "$(stat -c '%y %i' "$file")" = "$before" ] || fail "they were measured again"

# What a file says is taken only if it is whole.
sed -i '3s/alpha:[^;]*/alpha:1s/' "$file"
created
[[ $links == *=alpha:*"calibrated when a mesh was created here" && $links != *alpha:1s* ]] || fail "a changed file: $links"
[ "$(stat -c '%y %i' "$file")" != "$before" ] || fail "a changed file was not replaced"
: >"$file"
created
[ -s "$file" ] || fail "an empty file was not replaced"

# Another mesh of the same ranks has its own.
created MESHCOLL_MESH=box=2
[[ $links == box=alpha:*calibrated* ]] || fail "strange links of box=2: $links"
[ "$(kept | wc -l)" -eq 2 ] || fail "expected two files, found: $(kept)"
# So have other devices of UCX, and cores that ranks share.
created UCX_NET_DEVICES=lo
[ "$(kept | wc -l)" -eq 3 ] || fail "expected three files, found: $(kept)"
created MESHCOLL_NET_DEVICES=lo
[ "$(kept | wc -l)" -eq 4 ] || fail "expected four files, found: $(kept)"
if command -v taskset >/dev/null; then
    taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')" env MESHCOLL_EXPLAIN=/dev/null "$MESHCOLL" run -n 2 "$program" >"$scratch/out" 2>&1 ||
        fail "on one core: $(cat "$scratch/out")"
    grep -q "shared cores" $(kept) || fail "ranks that share a core have the links of others: $(kept)"
fi

# A folder that cannot be written is no error.
created XDG_CACHE_HOME=/proc/none
[[ $links == *calibrated* ]] || fail "without a folder: $links"
created -u HOME XDG_CACHE_HOME=
[[ $links == *calibrated* ]] || fail "without a home: $links"

# A time that is too short: the next job takes more. Three times: it does without, one that is told for how long does not.
rm -rf "$XDG_CACHE_HOME"
for n in 1 2 3; do
    created MESHCOLL_CALIBRATE=0.0000001 MESHCOLL_LOG=info
    grep -q "links are not calibrated: 0 ms did not suffice for \(gpu\|rank\); MESHCOLL_CALIBRATE says" "$scratch/err" ||
        fail "try $n says nothing: $(cat "$scratch/err")"
    [ "$(sed -n 3p "$(kept)" | tr -cd '?' | wc -c)" -eq $n ] || fail "try $n: $(cat "$(kept)")"
    cp "$(kept)" "$scratch/tried-$n"
done
(unset MESHCOLL_CALIBRATE && created MESHCOLL_LOG=info && grep -q "calibrated as with MESHCOLL_CALIBRATE=off: the time of 3 tries did not suffice" "$scratch/err" && [ "$links" = "the preset generic, which is the default" ]) ||
    fail "three jobs had too little time, and another one measured"
cp "$scratch/tried-1" "$(kept)"
(unset MESHCOLL_CALIBRATE && created MESHCOLL_LOG=info && grep -q "calibrated as with MESHCOLL_CALIBRATE=0.2: the time of 1 tries did not suffice" "$scratch/err") ||
    fail "after a job that had too little time the next one takes no more: $(cat "$scratch/err")"
created
[[ $links == *calibrated* ]] || fail "told for how long: $links"
file=$(kept)

# What wins over them, and off.
created MESHCOLL_CALIBRATE=off
[ "$links" = "the preset generic, which is the default" ] || fail "off: $links"
created MESHCOLL_LINKS=uniform
[[ $links == "uniform, given by MESHCOLL_LINKS" ]] || fail "MESHCOLL_LINKS: $links"
key=$(sed -n 2p "$file")
printf '{"version": 1, "clusters": {"%s": {"links": "gpu=alpha:7us;beta:1GB/s;gamma:0;ports:1;pulled:yes"}}}' "$key" >"$scratch/tuned.json"
created MESHCOLL_TUNE_FILE="$scratch/tuned.json"
[[ $links == "measured by meshcoll tune, in $scratch/tuned.json" ]] || fail "a file of tune: $links"
if env MESHCOLL_CALIBRATE=soon "$MESHCOLL" run -n 2 "$program" >"$scratch/out" 2>"$scratch/err"; then
    fail "MESHCOLL_CALIBRATE=soon was taken"
fi
grep -q "MESHCOLL_CALIBRATE: expected off, or seconds up to 600" "$scratch/err" || fail "strange: $(cat "$scratch/err")"

# Two jobs at once; with checks, and with a limit of time.
rm -rf "$XDG_CACHE_HOME"
"$MESHCOLL" run -n 2 "$program" >"$scratch/one" 2>&1 &
created MESHCOLL_CHECK=1 MESHCOLL_TIMEOUT=30
wait $! || fail "one of two at once: $(cat "$scratch/one")"
[ "$(kept | wc -l)" -eq 1 ] || fail "expected one file, found: $(kept)"

# A rank that is killed, or stopped, while all measure is named as in any call. One box takes a tenth of the seconds.
rm -rf "$XDG_CACHE_HOME"
port=$((20000 + $$ % 10000))
start() { # start [VARIABLE=VALUE …]: four ranks that measure a network for long (memory is not measured on few cores); leaves their processes in ${pid[@]}
    pid=()
    for rank in 0 1 2 3; do
        env "$@" MESHCOLL_MESH=x=4 MESHCOLL_TRANSPORTS=x=tcp,self MESHCOLL_CALIBRATE=600 RANK=$rank WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port MESHCOLL_SECRET=0123456789abcdef0123456789abcdef \
            "$job" >"$scratch/out.$rank" 2>"$scratch/err.$rank" &
        pid+=($!)
    done
    port=$((port + 1))
    # their monitors are connected, so that they measure
    for ((i = 0; i < 600; i++)); do
        "$MESHCOLL" status "${pid[0]}" >"$scratch/status" 2>&1
        [ "$(grep "^ *[0-3] " "$scratch/status" | grep -cv "does not answer")" -eq 4 ] && return
        sleep 0.05
    done
    fail "they do not measure: $(cat "$scratch/status" "$scratch"/err.?)"
}
named() { # named TEXT: the other ranks end with an error, and say TEXT
    local rank
    for rank in 0 1 3; do
        if wait "${pid[rank]}"; then fail "rank $rank has made a mesh"; fi
        grep -q "$1" "$scratch/err.$rank" || fail "rank $rank: expected '$1' in: $(cat "$scratch/err.$rank")"
    done
}
start
kill -9 "${pid[2]}"
named "rank 2"
wait "${pid[2]}" 2>/dev/null
start MESHCOLL_TIMEOUT=7
kill -STOP "${pid[2]}"
named "rank 2\|does not answer: it is stopped" # one that gets no core does not either
# They have said so before, as all that wait for long.
grep -q "has waited [56] s while links are calibrated, .*: rank [0-3]" "$scratch"/err.[013] ||
    fail "nobody says that it waits: $(cat "$scratch"/err.?)"
kill -9 "${pid[2]}"
wait "${pid[2]}" 2>/dev/null
[ -z "$(kept)" ] || fail "half a measurement was kept: $(kept)"
finish
