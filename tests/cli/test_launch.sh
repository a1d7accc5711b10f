#!/usr/bin/env bash
# meshcoll_create_env by torchrun's variables: all examples run, and who does not belong to the job is refused with one line
# while the job goes on, or ends with a sentence.
. "$(dirname "$0")/lib.sh"

examples=$(cd "${MESHCOLL_BUILD_DIR:-build/test}" && pwd)/examples
if [ ! -x "$examples/allreduce" ]; then
    echo "skipped: the examples are not built"
    exit 77
fi
for variable in $(env | sed -nE 's/^((MESHCOLL|OMPI|PMIX?|PALS|ALPS|MV2|JSM|FLUX|HOROVOD|SLURM|TORCHELASTIC)_[A-Z_]*|(LOCAL_)?RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)=.*/\1/p'); do
    case $variable in MESHCOLL_BUILD_DIR) ;; *) unset "$variable" ;; esac
done
export MESHCOLL_TUNE_FILE=$scratch/none.json MASTER_ADDR=127.0.0.1 MESHCOLL_BOOTSTRAP_TIMEOUT=20
export MASTER_PORT=$((20000 + $$ % 7000))
pids=()

# rank R [NAME=VALUE…] PROGRAM…: starts one in the background; its output is in $scratch/R.out and R.err
rank() {
    local r=$1
    shift
    RANK=$r WORLD_SIZE=${size:-4} timeout 60 env "$@" >"$scratch/$r.out" 2>"$scratch/$r.err" </dev/null &
    pids[r]=$!
}

# ends R STATUS [TEXT]: it ends so, with TEXT on stderr
ends() {
    local got=0
    wait "${pids[$1]}" || got=$?
    [ $got -eq "$2" ] || fail "rank $1: exit status $got, expected $2: $(cat "$scratch/$1.err")"
    [ -z "${3:-}" ] || grep -qF -- "$3" "$scratch/$1.err" || fail "rank $1: expected '$3' in: $(cat "$scratch/$1.err")"
}

# one_line R TEXT: stderr is one line, which has TEXT
one_line() {
    [ "$(wc -l <"$scratch/$1.err")" -eq 1 ] || fail "rank $1: expected one line, got: $(cat "$scratch/$1.err")"
    grep -qF -- "$2" "$scratch/$1.err" || fail "rank $1: expected '$2' in: $(cat "$scratch/$1.err")"
}

# port: where rank 0 listens, once it does
port() {
    local i p=$((MASTER_PORT + 1000))
    for i in $(seq 200); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null; then break; fi
        sleep 0.05
    done
    echo $p
}

# All examples, in one box and in boxes that are given.
for mesh in "" box=2,gpu=2; do
    for example in allreduce group nonblocking overlap persistent training; do
        [ "$example $mesh" != "training box=2,gpu=2" ] || mesh=
        for r in 0 1 2 3; do rank $r ${mesh:+MESHCOLL_MESH=$mesh} "$examples/$example"; done
        for r in 0 1 2 3; do ends $r 0; done
        MASTER_PORT=$((MASTER_PORT + 1))
    done
done
grep -q "worst weight" "$scratch/0.out" || fail "training printed: $(cat "$scratch/0.out")"

# As Slurm, Open MPI on one host, and PMI tell it.
none=(-u RANK -u WORLD_SIZE -u MASTER_ADDR -u MASTER_PORT)
for r in 0 1 2 3; do
    rank $r "${none[@]}" SLURM_PROCID=$r SLURM_NTASKS=4 SLURM_STEP_NODELIST=localhost,other SLURM_JOB_ID=$$ \
        SLURM_STEP_ID=0 "$examples/allreduce"
done
for r in 0 1 2 3; do ends $r 0; done
for r in 0 1 2 3; do
    rank $r "${none[@]}" OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 \
        PMIX_NAMESPACE=$$ SLURM_PROCID=0 SLURM_NTASKS=1 "$examples/allreduce"
done
for r in 0 1 2 3; do ends $r 0; done
for r in 0 1 2 3; do
    rank $r -u RANK -u WORLD_SIZE PMI_RANK=$r PMI_SIZE=4 "$examples/allreduce"
done
for r in 0 1 2 3; do ends $r 0; done
grep -q "4 ranks as \(gpu\|rank\)=4" "$scratch/0.out" || fail "rank 0 printed: $(cat "$scratch/0.out")"
MASTER_PORT=$((MASTER_PORT + 1))

# Of MPICH's mpiexec on one host, which has no name for its job; and of a node whose name only Slurm knows.
if command -v mpiexec.hydra >/dev/null; then
    env "${none[@]}" timeout 60 mpiexec.hydra -n 4 "$examples/allreduce" >"$scratch/out" 2>&1 || fail "mpiexec.hydra: $(cat "$scratch/out")"
    grep -q "4 ranks as" "$scratch/out" || fail "mpiexec.hydra: $(cat "$scratch/out")"
fi
for r in 0 1 2 3; do
    rank $r "${none[@]}" SLURM_PROCID=$r SLURM_NTASKS=4 SLURM_STEP_NODELIST=a.invalid,b.invalid SLURM_JOB_ID=$$ \
        SLURM_STEP_ID=1 SLURM_STEP_NUM_NODES=2 "$examples/allreduce"
done
for r in 0 1 2 3; do ends $r 0; done

# Half of what a launcher tells, and an address with a port, are errors at once; meshcoll run goes by neither.
for variable in PMIX_RANK PMI_ID PALS_RANKID ALPS_APP_PE; do
    rank 0 "${none[@]}" $variable=0 "$examples/allreduce"
    ends 0 1 "$variable is 0, so this is one of several processes, but no variable says of how many"
done
for address in 127.0.0.1:29500 tcp://127.0.0.1 localhost:29500; do
    rank 1 MASTER_ADDR=$address "$examples/allreduce"
    ends 1 1 "MASTER_ADDR is a name or an address, without a scheme and a port, which MASTER_PORT tells; got '$address'"
done
PMIX_RANK=3 FLUX_TASK_RANK=3 FLUX_JOB_SIZE=9 ranks 2 0 "$examples/allreduce"
has "2 ranks as"

# Launchers that disagree, as an operator's variables and mpirun do, are an error of every rank, never four jobs of one.
for r in 0 1 2 3; do
    rank $r RANK=0 WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 "$examples/allreduce"
done
for r in 0 1 2 3; do ends $r 1 "two launchers disagree"; done
rank 0 -u RANK "$examples/allreduce"
ends 0 1 "WORLD_SIZE is set, but RANK is not"
# A program of MPI that meshcoll run starts twice is alone twice.
if [ -x "$examples/../meshcoll-bench-calls" ]; then
    "$MESHCOLL" run -n 2 "$examples/../meshcoll-bench-calls" --sizes 8 >"$scratch/out" 2>&1 && fail "it ran alone"
    grep -q "MPI_COMM_WORLD has one process, but this is rank [01] of 2" "$scratch/out" ||
        fail "meshcoll-bench-calls said: $(cat "$scratch/out")"
fi

# The command without what it needs to find its rank 0.
MASTER_ADDR='' SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 run 2 topo
[[ $err == *"SLURM_PROCID and SLURM_NTASKS are set, but not where rank 0 listens"* ]] || fail "topo said: $err"

# Names and IPv6.
for host in localhost $(grep -qs 00000001 /proc/net/if_inet6 && echo ::1); do
    for r in 0 1 2 3; do rank $r MASTER_ADDR=$host "$examples/allreduce"; done
    for r in 0 1 2 3; do ends $r 0; done
    MASTER_PORT=$((MASTER_PORT + 1))
done
rank 1 MASTER_ADDR=no.such.host.invalid MESHCOLL_BOOTSTRAP_TIMEOUT=1 "$examples/allreduce"
ends 1 1 "(no.such.host.invalid, from port"

# A secret, in the environment and in a file.
printf 'of the job\n' >"$scratch/secret"
chmod 600 "$scratch/secret"
for r in 0 1 2; do rank $r MESHCOLL_SECRET="of the job" "$examples/allreduce"; done
rank 3 MESHCOLL_SECRET_FILE="$scratch/secret" "$examples/allreduce"
for r in 0 1 2 3; do ends $r 0; done
MASTER_PORT=$((MASTER_PORT + 1))
chmod 644 "$scratch/secret"
rank 1 MESHCOLL_SECRET_FILE="$scratch/secret" "$examples/allreduce"
ends 1 1 "is open to others"

# A wrong secret is refused at once, on both sides with one line, and the job goes on.
rank 0 MESHCOLL_SECRET=right "$examples/allreduce"
rank 3 MESHCOLL_SECRET=wrong "$examples/allreduce"
ends 3 1
one_line 3 "its secret differs"
for r in 1 2 3; do rank $r MESHCOLL_SECRET=right "$examples/allreduce"; done
for r in 0 1 2 3; do ends $r 0; done
one_line 0 "as rank 3: its secret differs"
MASTER_PORT=$((MASTER_PORT + 1))

# Garbage on the port, a connection without a word, another job's rank, another number of ranks.
rank 0 "$examples/allreduce"
at=$(port)      # which is also the connection without a word
printf 'GET / HTTP/1.0\r\n\r\n' >"/dev/tcp/127.0.0.1/$at"
head -c 5000000 /dev/urandom 2>/dev/null >"/dev/tcp/127.0.0.1/$at" || true
rank 1 WORLD_SIZE=5 "$examples/allreduce"
ends 1 1
one_line 1 "its number of ranks differs"
rank 1 TORCHELASTIC_RUN_ID=other MESHCOLL_BOOTSTRAP_TIMEOUT=1 "$examples/allreduce"
ends 1 1
one_line 1 "within 1 s"
for r in 1 2 3; do rank $r "$examples/allreduce"; done
for r in 0 1 2 3; do ends $r 0; done
for words in "closed without a greeting" "no greeting of meshcoll" "as rank 1: its number of ranks differs" \
    "it belongs to another job"; do
    grep -qF "$words" "$scratch/0.err" || fail "expected '$words' in: $(cat "$scratch/0.err")"
done
grep -qvE "^meshcoll: rank 0 refused a connection from 127.0.0.1:[0-9]+: " "$scratch/0.err" &&
    fail "strange: $(cat "$scratch/0.err")"
[ "$(wc -l <"$scratch/0.err")" -eq 5 ] || fail "expected 5 lines: $(cat "$scratch/0.err")"
MASTER_PORT=$((MASTER_PORT + 1))

# A rank twice: the second is refused.
rank 0 "$examples/allreduce"
rank 1 "$examples/allreduce"
sleep 0.5
first=${pids[1]}
rank 1 "$examples/allreduce"
ends 1 1 "another process has joined as that rank"
pids[1]=$first
for r in 2 3; do rank $r "$examples/allreduce"; done
for r in 0 1 2 3; do ends $r 0; done
one_line 0 "as rank 1: another process has joined as that rank"
MASTER_PORT=$((MASTER_PORT + 1))

# Two jobs with the same variables: no mesh has ranks of both, and both hear why.
rank 0 "$examples/allreduce"
first=${pids[0]}
at=$(port)
cp "$scratch/0.err" "$scratch/first.err"
RANK=0 WORLD_SIZE=4 timeout 60 "$examples/allreduce" >"$scratch/second.out" 2>"$scratch/second.err" && fail "a second rank 0"
grep -q "are both rank 0 of a job with the same variables" "$scratch/second.err" || fail "second: $(cat "$scratch/second.err")"
ends 0 1 "are both rank 0 of a job with the same variables"
MASTER_PORT=$((MASTER_PORT + 1))

# Another user of the machine takes no part in a job without a secret, and no rank joins his.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && setpriv --reuid 65534 --clear-groups test -x "$examples/allreduce"; then
    as_nobody=(setpriv --reuid 65534 --clear-groups)
    rank 3 MESHCOLL_BOOTSTRAP_TIMEOUT=2 "${as_nobody[@]}" "$examples/allreduce"
    sleep 0.3
    rank 0 "$examples/allreduce"
    ends 3 1 "another user"
    for r in 1 2 3; do rank $r "$examples/allreduce"; done
    for r in 0 1 2 3; do ends $r 0; done
    [ "$(grep -c "another user" "$scratch/0.err")" -le 1 ] || fail "rank 0: $(cat "$scratch/0.err")"
    MASTER_PORT=$((MASTER_PORT + 1))
    rank 0 MESHCOLL_BOOTSTRAP_TIMEOUT=3 "${as_nobody[@]}" "$examples/allreduce"
    at=$(port)
    rank 1 MESHCOLL_BOOTSTRAP_TIMEOUT=1 "$examples/allreduce"
    ends 1 1 "a process of another user listens there"
    ends 0 1 "3 of 4 ranks did not join"
    MASTER_PORT=$((MASTER_PORT + 1))
fi

# Missing ranks are named, by all that came, which outlast a rank 0 that is slow.
size=6
for r in 0 2 5; do rank $r MESHCOLL_BOOTSTRAP_TIMEOUT=2 "$examples/allreduce"; done
sleep 1.3
kill -STOP -- "-${pids[0]}"
sleep 1.7
kill -CONT -- "-${pids[0]}"
for r in 0 2 5; do
    ends $r 1
    one_line $r "3 of 6 ranks did not join within 2 s (MESHCOLL_BOOTSTRAP_TIMEOUT): ranks 1, 3-4"
done
size=4
MASTER_PORT=$((MASTER_PORT + 1))
rank 1 MESHCOLL_BOOTSTRAP_TIMEOUT=1 "$examples/allreduce"
ends 1 1 "Connection refused"

# Rank 0's port is in use, as MASTER_PORT is by torchrun's store: the next one is taken.
python3 -c 'import socket, sys, time
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True); time.sleep(60)' $((MASTER_PORT + 1000)) >"$scratch/store" &
store=$!
until grep -q ready "$scratch/store"; do sleep 0.05; done
for r in 0 1 2 3; do rank $r "$examples/allreduce"; done
for r in 0 1 2 3; do ends $r 0; done
kill $store

# Without a launcher's word on the network rank 0 listens on all addresses, at an address in MESHCOLL_MASTER_ADDR on that
# only, and not when all have joined.
if command -v ss >/dev/null; then
    for only in "" MESHCOLL_MASTER_ADDR=127.0.0.1; do
        MASTER_PORT=$((MASTER_PORT + 20))
        rank 0 $only "$examples/allreduce"
        at=$(port)
        listens=$(ss -Hltn "sport = :$at" | awk '{print $4}')
        [[ $listens =~ ^${only:+127.0.0.1}(\*|0.0.0.0)?:$at$ ]] || fail "rank 0 listens on: $listens"
        for r in 1 2 3; do rank $r $only "$examples/allreduce"; done
        for r in 0 1 2 3; do ends $r 0; done
        [ -z "$(ss -Hltn "sport = :$at")" ] || fail "rank 0 still listens"
    done
fi

# An operator's master knows itself as localhost, the others its name. The rank beside it is reached by the others, too.
MASTER_PORT=$((MASTER_PORT + 20))
name=$(hostname -I 2>/dev/null | awk '{print $1}')
if [ -n "$name" ]; then
    size=7
    rank 0 MASTER_ADDR=localhost "$examples/allreduce"
    rank 1 MASTER_ADDR=localhost "$examples/allreduce"
    sleep 0.5
    for r in 2 3 4 5 6; do rank $r MASTER_ADDR="$name" "$examples/allreduce"; done
    for r in 0 1 2 3 4 5 6; do ends $r 0; done
    size=4
fi
MASTER_PORT=$((MASTER_PORT + 20))

# An address in brackets, as in URLs.
if grep -qs 00000001 /proc/net/if_inet6; then
    for r in 0 1 2 3; do rank $r MASTER_ADDR=[::1] "$examples/allreduce"; done
    for r in 0 1 2 3; do ends $r 0; done
    MASTER_PORT=$((MASTER_PORT + 20))
fi

# Strangers who say nothing on seven of eight ports delay nobody.
python3 -c 'import socket, sys, time
s = [socket.create_server(("", int(sys.argv[1]) + i)) for i in range(7)]
print("ready", flush=True); time.sleep(60)' $((MASTER_PORT + 1000)) >"$scratch/strangers" &
strangers=$!
until grep -q ready "$scratch/strangers"; do sleep 0.05; done
begin=$SECONDS
for r in 0 1 2 3; do rank $r "$examples/allreduce"; done
for r in 0 1 2 3; do ends $r 0; done
[ $((SECONDS - begin)) -lt 20 ] || fail "strangers delayed the ranks for $((SECONDS - begin)) s"
kill $strangers
MASTER_PORT=$((MASTER_PORT + 20))

# Who waits says so.
rank 0 MESHCOLL_BOOTSTRAP_TIMEOUT=7 "$examples/allreduce"
rank 2 MESHCOLL_BOOTSTRAP_TIMEOUT=7 bash -c '"$0"; status=$?; times >&2; exit $status' "$examples/allreduce"
MASTER_PORT=$((MASTER_PORT + 20)) rank 3 MESHCOLL_BOOTSTRAP_TIMEOUT=6 "$examples/allreduce"
ends 0 1 "meshcoll: rank 0 has waited 5 s for 2 of 4 ranks: 1, 3; it listens on "
grep -qE "listens on .*:[0-9]+.*, for 7 s in all \(MESHCOLL_BOOTSTRAP_TIMEOUT\)" "$scratch/0.err" || fail "$(cat "$scratch/0.err")"
ends 2 1 "2 of 4 ranks did not join"
tail -1 "$scratch/2.err" | awk -F'[ms ]+' '{ exit $1 * 60 + $2 + $3 * 60 + $4 >= 0.3 }' || fail "waiting takes processor time: $(tail -1 "$scratch/2.err")"
ends 3 1 "meshcoll: rank 3 has tried for 5 s to reach rank 0 (127.0.0.1, from port"
grep -q "goes on for .*MESHCOLL_BOOTSTRAP_TIMEOUT.*Connection refused" "$scratch/3.err" || fail "$(cat "$scratch/3.err")"
MASTER_PORT=$((MASTER_PORT + 20))
finish
