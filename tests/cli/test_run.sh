#!/usr/bin/env bash
# meshcoll run: starts ranks, passes signals on, stops the rest when one fails, and says which.
. "$(dirname "$0")/lib.sh"

examples=$(cd "${MESHCOLL_BUILD_DIR:-build/test}" && pwd)/examples
unset MESHCOLL_MESH MESHCOLL_SECRET MESHCOLL_SECRET_FILE MESHCOLL_LINKS MESHCOLL_TRANSPORTS
export MESHCOLL_TUNE_FILE=$scratch/none.json

# runs PID: it does, and is no zombie that nobody has waited for
runs() {
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) && [ "$state" != Z ]
}

# What the ranks see.
run 0 run -n 3 --tag-output sh -c 'echo "$RANK of $WORLD_SIZE, local $LOCAL_RANK of $LOCAL_WORLD_SIZE"; echo $MASTER_ADDR >&2'
[ "$(sort <<<"$out")" = "[0] 0 of 3, local 0 of 3
[1] 1 of 3, local 1 of 3
[2] 2 of 3, local 2 of 3" ] || fail "strange: $out"
[ "$(grep -c '^\[[0-2]\] 127.0.0.1$' <<<"$err")" -eq 3 ] || fail "strange: $err"
run 0 run -n 2 sh -c '[ ${#MESHCOLL_SECRET} -eq 32 ] && [ "$MASTER_PORT" -gt 0 ] && [ "$MESHCOLL_MASTER_PORT" -gt 0 ]'
run 0 run -n 4 --boxes 2 sh -c 'echo $MESHCOLL_MESH'
has "box=2,gpu=2"
run 0 run -n 8 --boxes 3 sh -c 'echo $MESHCOLL_MESH'
has "box=3+3+2"
# options end where the program begins
run 0 run -n 1 -- sh -c 'printf "%s " "$@"' sh -n 7 --help
has "-n 7 --help"
run 0 run -n 1 echo --boxes 3 --
has "--boxes 3 --"
# lines longer than the buffer, and a last one without an end
run 0 run -n 1 --tag-output sh -c 'printf "%05000d" 7; printf "\nlast"'
has "[0] last"
[ "$(tr -d '\n' <<<"$out" | sed 's/\[0\] //g')" = "$(printf '%05000dlast' 7)" ] || fail "a long line was cut"
# standard input is rank 0's
"$MESHCOLL" run -n 2 --tag-output cat <<<"for rank 0" >"$scratch/out"
[ "$(cat "$scratch/out")" = "[0] for rank 0" ] || fail "strange: $(cat "$scratch/out")"

# Failures.
run 7 run -n 4 sh -c '[ $RANK = 2 ] && exit 7; exec sleep 60'
[[ $err == "meshcoll run: rank 2 (process "*") exited with status 7; stopping 3 others" ]] || fail "strange: $err"
run 137 run -n 2 sh -c '[ $RANK = 1 ] && kill -9 $$; exec sleep 60'
[[ $err == *"rank 1 (process "*") was ended by signal 9, Killed; stopping 1 other" ]] || fail "strange: $err"
# who ignores SIGTERM is killed, with what it started
begin=$SECONDS
run 1 run -n 2 --grace 1 sh -c '[ $RANK = 1 ] && sleep 0.3 && exit 1; trap "" TERM; sleep 61 & echo $! >'"$scratch"'/left; wait; wait'
[ $((SECONDS - begin)) -lt 60 ] || fail "it took $((SECONDS - begin)) s"
sleep 0.2
! runs "$(cat "$scratch/left")" || fail "a process was left behind"
run 127 run -n 2 nosuchprogram
[[ $err == "meshcoll run: nosuchprogram cannot be started: No such file or directory" ]] || fail "strange: $err"
run 126 run -n 2 /etc/passwd

# Signals.
"$MESHCOLL" run -n 3 --tag-output sh -c 'trap "echo usr1" USR1; trap "exit 3" TERM; echo up; while :; do sleep 0.05; done' \
    >"$scratch/signals" 2>"$scratch/err" &
pid=$!
until [ "$(grep -c up "$scratch/signals")" -eq 3 ]; do sleep 0.05; done
kill -USR1 $pid
until [ "$(grep -c usr1 "$scratch/signals")" -eq 3 ]; do sleep 0.05; done
kill -TERM $pid
got=0
wait $pid || got=$?
[ $got -eq 3 ] || fail "exit status $got after SIGTERM, expected the ranks' 3"
# Who started it ignored and blocked signals: it ends, its ranks have none ignored or blocked, and SIGTERM ends it.
deaf() {
    timeout -s KILL 60 python3 -c 'import os, signal, sys
for s in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1): signal.signal(s, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM))
os.execv(sys.argv[1], sys.argv[1:])' "$MESHCOLL" "$@"
}
got=$(deaf run -n 2 --tag-output sed -nE 's/^(SigBlk|SigIgn):\t0*/\1 /p' /proc/self/status 2>&1) || fail "deaf: $?"
[ "$(sort <<<"$got" | tr '\n' ';')" = "[0] SigBlk ;[0] SigIgn ;[1] SigBlk ;[1] SigIgn ;" ] || fail "the ranks have: $got"
deaf verify bcast --mesh x=4 --jobs 2 >/dev/null || fail "meshcoll verify: $?"
deaf run -n 2 sh -c 'touch "'"$scratch"'/deaf.$RANK"; exec sleep 60' 2>"$scratch/err" &
until [ -e "$scratch/deaf.0" ] && [ -e "$scratch/deaf.1" ]; do sleep 0.05; done
pkill -TERM -P "$(pgrep -P $! -x timeout)" -x meshcoll
got=0
wait $! || got=$?
[ $got -eq 143 ] || fail "exit status $got after SIGTERM, expected 143"
# killed itself, it takes its ranks along
"$MESHCOLL" run -n 2 sh -c 'echo $$ >"'"$scratch"'/pid.$RANK"; exec sleep 60' &
pid=$!
until [ -s "$scratch/pid.0" ] && [ -s "$scratch/pid.1" ]; do sleep 0.05; done
kill -KILL $pid
{ wait $pid; } 2>/dev/null
sleep 0.3
for r in 0 1; do ! runs "$(cat "$scratch/pid.$r")" || fail "rank $r was left behind"; done

refused "how many ranks?" run true
refused "which program?" run -n 2
refused "--ranks takes a number from 1 to 4096; got '0'" run -n 0 true
refused "2 ranks cannot play 3 boxes" run -n 2 --boxes 3 true
refused "there is no option '--rank-file'" run -n 2 --rank-file x true

# The examples.
if [ ! -x "$examples/allreduce" ]; then
    [ $failures -eq 0 ] || finish
    echo "skipped: the examples are not built"
    exit 77
fi
for example in allreduce group nonblocking overlap persistent training; do
    run 0 run -n 4 "$examples/$example"
done
# MASTER_PORT is the program's, as for PyTorch's store
run 0 run -n 2 python3 -c 'import os, socket, subprocess, sys
at = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = socket.create_server(at) if os.environ["RANK"] == "0" else None
sys.exit(subprocess.call(sys.argv[1:]))' "$examples/allreduce"
run 0 run -n 4 --boxes 2 "$examples/allreduce"
has "4 ranks as box=2,gpu=2: sum of element 0 is 6"
MESHCOLL_LIBCUDA=/no/driver.so run 0 run -n 4 "$MESHCOLL" topo
has "gpu=4: 4 ranks on 1 machine, found"
export MESHCOLL_LIBCUDA=off # the same on a machine with GPUs
run 0 run -n 4 "$MESHCOLL" topo
has "rank=4: 4 ranks on 1 machine, found"
[ "$(grep -c '^links: ' <<<"$out")" -eq 1 ] || fail "expected one rank's words in:"$'\n'"$out"
run 0 "topo"
has "rank=1: 1 rank on 1 machine, found"

# libmeshcoll.so and what uses it alone load no MPI.
for file in "$(dirname "$MESHCOLL")/libmeshcoll.so" "$examples/allreduce"; do
    if ldd "$file" | grep -iE 'libmpi|libpmpi|mpich'; then fail "$file loads MPI"; fi
done
finish
