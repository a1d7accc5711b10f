#!/usr/bin/env bash
# meshcoll status: what the ranks of a running job wait for, and which one keeps them waiting.
. "$(dirname "$0")/lib.sh"

job=${MESHCOLL_BUILD_DIR:-build/test}/tests/status/job
unset MESHCOLL_MESH MESHCOLL_SECRET MESHCOLL_SECRET_FILE MESHCOLL_LINKS MESHCOLL_TRANSPORTS MESHCOLL_MONITOR MESHCOLL_TIMEOUT
export MESHCOLL_TUNE_FILE=$scratch/none.json
export MESHCOLL_STRATEGY_ALLREDUCE=flat-fullmesh # each rank waits for each

# start: a job of 4 ranks, of which the last sleeps; leaves $launcher and the ranks' processes in ${pid[…]}.
start() {
    : >"$scratch/job" # of the job before, which the background empties a moment later
    "$MESHCOLL" run -n 4 --tag-output "$job" >"$scratch/job" 2>"$scratch/job.err" &
    launcher=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(grep -c ready "$scratch/job")" -eq 4 ] && break
        sleep 0.05
    done
    [ "$(grep -c ready "$scratch/job")" -eq 4 ] || fail "the job does not run: $(cat "$scratch/job.err")"
    for r in 0 1 2 3; do
        pid[r]=$(sed -n "s/^\[$r\] ready //p" "$scratch/job")
    done
}

stop() {
    kill -CONT "${pid[@]}"
    kill $launcher
    wait $launcher
}

# until_has TEXT PID: asks until the answer has the text, for ranks may not have come so far yet.
until_has() {
    for ((i = 0; i < 100; i++)); do
        run 0 status "$2"
        [[ $(squeezed "$out") == *"$1"* ]] && return
        sleep 0.1
    done
    has "$1"
}

# Three ranks wait for the one that sleeps.
declare -a pid
start
# it has not been waiting for so long, or is not if it never was
until_has "cause: rank 3 has not made allreduce of 2 float64, 16 B (call 2): it " "${pid[0]}"
[[ $out == *"(call 2): it "*" waiting in the library"* ]] || fail "no reason in: $out"
has "rank process host place state"
has "3 ${pid[3]} $(hostname | cut -c 1-39) - does not wait"
[ "$(grep -c ': allreduce of 2 float64, 16 B (call 2), ' <<<"$out")" -ge 1 ] || fail "nobody waits in: $out"
[ "$(grep -c ' from rank 3' <<<"$out")" -ge 1 ] || fail "nobody waits for rank 3 in: $out"
has "rank 3: 2 calls made; "
[[ $out == *"rank 3: 2 calls made; "*" waiting in the library"* ]] || fail "no state of rank 3 in: $out"
# the one that sleeps answers as well, and the launcher knows its ranks
until_has "cause: rank 3 has not made allreduce" "${pid[3]}"
until_has "cause: rank 3 has not made allreduce" $launcher
# a rank that is stopped does not
kill -STOP "${pid[3]}"
until_has "cause: rank 3 does not answer: it is stopped, has ended or cannot be reached" "${pid[1]}"
has "3 ${pid[3]} $(hostname | cut -c 1-39) - does not answer"
# another user is told nothing
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --clear-groups true 2>/dev/null; then
    setpriv --reuid=65534 --clear-groups "$MESHCOLL" status "${pid[0]}" >"$scratch/out" 2>"$scratch/err" &&
        fail "another user was told: $(cat "$scratch/out")"
    [[ $(cat "$scratch/err") == *"belongs to user 0"* ]] || fail "strange: $(cat "$scratch/err")"
    [ ! -s "$scratch/out" ] || fail "another user was told: $(cat "$scratch/out")"
fi
stop

# Without monitors nobody can be asked.
MESHCOLL_MONITOR=off start
refused "has no mesh, or one with MESHCOLL_MONITOR=off" status "${pid[0]}"
stop

refused "which process" status
refused "expected the number of a process, got 'x1'" status x1
refused "expected the number of a process, got '-1'" status -- -1
refused "has no mesh" status $$
refused "there is no process" status 2147483647
finish
