#!/bin/bash
# The lab's own test: brings labs up, looks whether they are what they claim, breaks them, clears up.
# Exit status 0: none failed (skipped counts as that). usage: selftest.sh
cd "$(dirname "$(readlink -f "$0")")" || exit 1
LAB=$PWD/lab
NAME=selftest-$$
export MESHCOLL_LAB=$NAME
passed=0 failed=0 skipped=0

ok()   { passed=$((passed + 1)); echo "ok      $*"; }
bad()  { failed=$((failed + 1)); echo "FAILED  $*"; }
skip() { skipped=$((skipped + 1)); echo "skipped $*"; }
is()   { if [ "$2" = "$3" ]; then ok "$1"; else bad "$1: expected '$2', got '$3'"; fi; }
finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" = 0 ]; exit; }

reason=$("$LAB" check 2>&1)
case $? in
    0) ok "lab check: $reason" ;;
    3) skip "all of it: $reason"; finish ;;
    *) bad "lab check: $reason"; finish ;;
esac

work=$(mktemp -d /tmp/lab-selftest.XXXXXX)
trap '"$LAB" down >/dev/null 2>&1; "$LAB" down --name "$NAME-b" >/dev/null 2>&1; rm -rf "$work"' EXIT

# What a lab could leave on the machine: names, links, processes (by their mark or what they run).
traces() {
    ip netns list
    ip -o link | sed 's/^[0-9]*: //; s/[@:].*//' | sort
    local dir mark
    for dir in /proc/[0-9]*; do
        mark=$(tr '\0' '\n' 2>/dev/null < "$dir/environ" | grep -a "^MESHCOLL_LAB_HOLDER=$NAME")
        [ -n "$mark" ] && echo "process ${dir#/proc/} $mark"
    done
    stays
    ls -d "/run/meshcoll-lab/$NAME"* 2>/dev/null
    find /sys/fs/cgroup -maxdepth 2 -name "meshcoll-lab-$NAME*" 2>/dev/null
}
nothing_left() { is "$1: no namespace, link, process, cgroup or directory is left" "$before" "$(traces)"; }
in_box() { local box=$1; shift; "$LAB" exec "$box" -- "$@"; }
stays() { local exe; for exe in /proc/[0-9]*/exe; do    # pids of the copy of sleep below
    [ "$(readlink "$exe")" = "$work/stay" ] && basename "${exe%/exe}"; done; }
running() { stays | wc -l; }
until_true() { local _; for _ in $(seq 100); do "$@" && return; sleep 0.1; done; false; }
all_gone() { [ "$(running)" = 0 ]; }
some_there() { [ "$(running)" -ge "$1" ]; }

cp "$(command -v sleep)" "$work/stay"
before=$(traces)

# --- up --------------------------------------------------------------------------------------------
"$LAB" up --boxes 2 --rate 200mbit > "$work/out" 2>&1
is "up" 0 $?
cat "$work/out"; cp "$work/out" "$work/first"
"$LAB" up --boxes 2 --rate 200mbit | grep -q "was up already"
is "a second up says that it is there" 0 $?
"$LAB" up --boxes 3 > "$work/out" 2>&1
is "up with other settings is refused" 1 $?
"$LAB" status --json | python3 -c 'import json, sys; s = json.load(sys.stdin); assert s["state"] == "up" and len(s["boxes"]) == 2'
is "status --json" 0 $?
"$LAB" up --rate fast 2> "$work/out"
is "a wrong rate is a usage error" 2 $?

# --- a box is a machine of its own -----------------------------------------------------------------
is "own host name" "box0 box1" "$(in_box box0 hostname) $(in_box 1 hostname)"
in_box box0 touch /dev/shm/here
is "own /dev/shm" "" "$(in_box box1 ls /dev/shm)"
is "a box's /dev/shm is not the machine's" "" "$(ls /dev/shm/here 2>/dev/null)"
in_box box0 ipcmk -M 4096 > /dev/null
is "own System V shared memory" "1 0" "$(in_box box0 sh -c 'ipcs -m | grep -c ^0x') $(in_box box1 sh -c 'ipcs -m | grep -c ^0x')"
"$LAB" exec box0 -- "$work/stay" 100 & run=$!
until_true some_there 1
is "own processes" "1 0" "$(in_box box0 pgrep -cx stay) $(in_box box1 pgrep -cx stay)"
kill $run; wait $run
is "exec passes signals on" "143 0" "$? $(running)"
is "names resolve" "10.77.0.2 10.77.0.254" "$(in_box box0 sh -c 'getent hosts box1; getent hosts head' | awk '{print $1}' | xargs)"
is "the machine's own network is out of reach" "eth0 lo" "$(in_box box0 sh -c 'ip -o link' | sed 's/^[0-9]*: //; s/[@:].*//' | sort | xargs)"

# How the cores are shared: rank by rank, which takes one group for all.
groups() { local box; for box in box0 box1; do in_box $box sh -c 'grep -c "/meshcoll-lab-'"$NAME"'$" /proc/self/cgroup'; done | xargs; }
if grep -q "box by box" "$work/first"; then
    skip "one scheduling group for all boxes: $(cat "$work/first")"
elif [ "$(cat /proc/sys/kernel/sched_autogroup_enabled 2>/dev/null)" = 1 ] && ! grep -qE '(:|,)cpu(,[^:]*)?:/.+|^0::/.+' /proc/self/cgroup; then
    is "one scheduling group for all boxes" "1 1" "$(groups)"
fi

# --- shaping ---------------------------------------------------------------------------------------
# transfer MB [LAB]: payload Mbit/s of one TCP connection from box0 to box1
transfer() {
    "$LAB" exec --name "${2:-$NAME}" box1 -- python3 -c '
import socket, time
s = socket.create_server(("", 5001))
c, _ = s.accept()
n, t = len(c.recv(1 << 16)), time.monotonic()      # the first bytes came above the rate: the burst
first = n
while (got := len(c.recv(1 << 20))): n += got
print(int((n - first) * 8 / (time.monotonic() - t) / 1e6))' & local server=$!
    "$LAB" exec --name "${2:-$NAME}" box0 -- python3 -c '
import socket, sys, time
for _ in range(100):
    try: c = socket.create_connection(("box1", 5001)); break
    except OSError: time.sleep(0.05)
b = bytes(1 << 20)
for _ in range(int(sys.argv[1])): c.sendall(b)' "$1"
    wait $server
}
within() { [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; is "$1: $2 Mbit/s of payload, expected $3 to $4" 0 $?; }
within "TCP across boxes at 200mbit" "$(transfer 32)" 170 200

"$LAB" up --boxes 2 --rate none --name "$NAME-b" > "$work/out"
is "a second lab beside the first" 0 $?
within "TCP across boxes unshaped" "$(transfer 512 "$NAME-b")" 1000 1000000
"$LAB" down --name "$NAME-b" > "$work/out"
is "the first is still up when the second is down" "lab '$NAME' is up" "$("$LAB" status --name "$NAME" | head -1)"

# --- Docker hosts: bridges with the same addresses in each box ----------------------------------------
"$LAB" up --bridges 99 2> "$work/out"
is "--bridges of too many is a usage error" 2 $?
"$LAB" up --boxes 2 --rate none --bridges 2 --name "$NAME-b" > "$work/out"
is "two Docker hosts" 0 $?
bridges() { "$LAB" exec --name "$NAME-b" "$1" -- ip -br -4 addr | awk '/^docker/ {print $1, $2, $3}' | xargs; }
for _ in $(seq 50); do # the kernel tells of the carrier a little later
    case "$(bridges box0) $(bridges box1)" in *DOWN*) sleep 0.1 ;; *) break ;; esac
done
is "each has bridges that are in use" "docker0 UP 172.17.0.1/16 docker1 UP 172.18.0.1/16" "$(bridges box0)"
is "... with the same addresses" "$(bridges box0)" "$(bridges box1)"
is "the ranks get no UCX_NET_DEVICES" "0" \
    "$("$LAB" run --name "$NAME-b" -n 2 --dry-run -- true | grep -c UCX_NET_DEVICES)"
"$LAB" down --name "$NAME-b" > "$work/out"

# --- a torus: a NIC for each dimension ---------------------------------------------------------------
"$LAB" up --torus 4 2> "$work/out"
is "--torus of one dimension is a usage error" 2 $?
"$LAB" up --torus 2x2 --boxes 4 2> "$work/out"
is "--torus and --boxes together are a usage error" 2 $?
"$LAB" up --torus 2x2 --rate 50mbit --queue 80ms --name "$NAME-b" > "$work/out"
is "a torus of 2x2" 0 $?
nics() { "$LAB" exec --name "$NAME-b" "$1" -- sh -c 'cat /sys/class/net/eth*/statistics/tx_bytes' | xargs; }
# crossed BOX FROM TO: by which NICs of BOX a message of 1 MB between two others (or itself) leaves it
crossed() {
    local from to
    from=$(nics "$1")
    "$LAB" exec --name "$NAME-b" "$3" -- python3 -c '
import socket
c, _ = socket.create_server(("", 5002)).accept()
while c.recv(1 << 20): pass' & local server=$!
    "$LAB" exec --name "$NAME-b" "$2" -- python3 -c '
import socket, sys, time
for _ in range(100):
    try: c = socket.create_connection((sys.argv[1], 5002)); break
    except OSError: time.sleep(0.05)
c.sendall(bytes(1000000))' "$3"
    wait $server
    to=$(nics "$1")
    echo "$from $to" | awk '{for (i = 1; i <= 2; i++) if ($(i+2) - $i > 900000) printf "eth%d ", i - 1}' | xargs
}
is "along the first dimension by eth0" "eth0" "$(crossed box0 box0 box2)"
is "along the second by eth1" "eth1" "$(crossed box0 box0 box1)"
is "to the opposite box: first by eth0" "eth0" "$(crossed box0 box0 box3)"
is "... and through the box between, by its eth1" "eth1" "$(crossed box2 box0 box3)"
is "the head reaches all" "4" "$(for box in box0 box1 box2 box3; do "$LAB" exec --name "$NAME-b" head -- python3 -c '
import socket, sys
try: socket.create_connection((sys.argv[1], 5003), 5)
except ConnectionRefusedError: print("there")' $box; done | grep -c there)"
"$LAB" down --name "$NAME-b" > "$work/out"

# --- MPI -------------------------------------------------------------------------------------------
cat > "$work/hello.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, size;
    char host[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host);
    printf("rank %d of %d on %s\n", rank, size, host);
    char *vector = calloc(4 << 20, 1);
    MPI_Bcast(vector, 4 << 20, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return argc > 1 ? atoi(argv[1]) : 0;
}
END
received() { in_box "$1" cat /sys/class/net/eth0/statistics/rx_bytes; }
mpi_tests() {
    local from moved
    from=$(received box1)
    "$LAB" run -n 4 --timeout 60 -- "$work/hello" > "$work/out" 2> "$work/err"
    is "an MPI program runs" 0 $?
    is "two ranks in each box, box by box" "box0 box0 box1 box1" "$(sort "$work/out" | awk '{print $NF}' | xargs)"
    moved=$(( $(received box1) - from ))
    [ "$moved" -gt 4000000 ]
    is "MPI_Bcast of 4 MiB crosses the wire: $moved bytes came into box1" 0 $?
    "$LAB" run -n 3 --timeout 60 -- "$work/hello" 2> /dev/null | grep -c "box0" | grep -qx 2
    is "3 ranks in 2 boxes: the first gets one more" 0 $?
    "$LAB" run --slots 1,2 --timeout 60 -- "$work/hello" 2> /dev/null | grep -c "box1" | grep -qx 2
    is "--slots 1,2" 0 $?
    "$LAB" run -n 2 -- "$work/hello" 7 > "$work/out" 2>&1
    is "the exit status passes through" 7 $?
}
if command -v mpirun > /dev/null; then
    if command -v mpicc > /dev/null && mpicc -o "$work/hello" "$work/hello.c"; then
        mpi_tests
    else
        skip "MPI hello: no mpicc that works"
    fi
    is "-x reaches the ranks" "there there" "$("$LAB" run -n 2 -x GREETING=there -- sh -c 'echo $GREETING' 2> /dev/null | xargs)"

    # --- endings: of a run, by time, by signals, by kill -9 ---------------------------------------
    "$LAB" run -n 4 --timeout 2 -- "$work/stay" 100 > "$work/out" 2>&1
    is "--timeout ends a run with 124" 124 $?
    is "nothing of it runs on" 0 "$(running)"
    "$LAB" run -n 2 -- sh -c "setsid $work/stay 100 > /dev/null 2>&1 & : > /dev/shm/left" > "$work/out" 2>&1
    is "what a program leaves in the boxes is killed: processes" 0 "$(running)"
    is "what a program leaves in the boxes is removed: shared memory" "" "$(in_box box0 ls /dev/shm; in_box box1 ls /dev/shm)"
    # A non-interactive shell starts jobs with SIGINT ignored: env gives it back, as a terminal would.
    env --default-signal=INT "$LAB" run -n 4 -- "$work/stay" 100 > "$work/out" 2>&1 & run=$!
    until_true some_there 4
    kill -INT $run; wait $run
    is "Ctrl-C ends a run with 130" 130 $?
    is "nothing of it runs on after Ctrl-C" 0 "$(running)"
    "$LAB" run -n 4 -- "$work/stay" 100 > "$work/out" 2>&1 & run=$!
    until_true some_there 4
    kill -9 $run; wait $run 2> /dev/null
    until_true all_gone
    is "kill -9 of 'lab run' ends its ranks" 0 $?
    "$LAB" run -n 4 -- "$work/stay" 100 > "$work/out" 2>&1 & run=$!
    until_true some_there 4
    # shellcheck disable=SC2046
    kill -9 $(stays) 2> /dev/null; wait $run
    is "kill -9 of the ranks ends the run with 137" 137 $?
    "$LAB" run -n 4 -- "$work/stay" 100 > "$work/out" 2>&1 & run=$!
    until_true some_there 4
    "$LAB" down > "$work/out"
    is "down during a run" 0 $?
    wait $run 2> /dev/null
    nothing_left "down during a run"
else
    skip "MPI: no mpirun"
    "$LAB" down > "$work/out"
fi

# --- broken labs -----------------------------------------------------------------------------------
"$LAB" down | grep -q "was down already"
is "a second down does nothing" 0 $?
for after in 0.12 0.2 0.3 0.4; do
    "$LAB" up --boxes 4 > "$work/out" 2>&1 & up=$!
    sleep $after
    kill -9 $up 2> /dev/null; wait $up 2> /dev/null
    state=$("$LAB" status --name "$NAME" | head -1)
    "$LAB" down > "$work/out" 2>&1
    nothing_left "kill -9 of 'lab up' after $after s (${state##*is }), then down"
done
# in the middle of it: on a quick machine it is over sooner
for after in 0.25 0.15 0.08 0.04; do
    "$LAB" up --boxes 4 > "$work/out" 2>&1 & up=$!
    sleep $after
    kill -TERM $up 2> /dev/null; wait $up 2> /dev/null; status=$?
    [ $status -ne 0 ] && break
    "$LAB" down > "$work/out" 2>&1
done
nothing_left "SIGTERM to 'lab up' after $after s (status $status)"
"$LAB" up --boxes 2 --rate 200mbit > "$work/out"
kill -9 "$("$LAB" status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["boxes"][1]["pid"])')"
until_true eval '[ "$("$LAB" status | head -1)" = "lab '"'$NAME'"' is broken" ]'
is "status sees that a box died" 0 $?
"$LAB" run -n 2 -- true 2> "$work/out"
is "run in a broken lab is refused" 1 $?
cat "$work/out"
"$LAB" up --boxes 2 --rate 200mbit > "$work/out" 2>&1
is "up makes a broken lab anew" 0 $?
rm -rf "/run/meshcoll-lab/$NAME"
"$LAB" down > "$work/out"
nothing_left "down without the lab's own notes"
finish
