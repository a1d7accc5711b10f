#!/usr/bin/env bash
# MESHCOLL_LOG: what a job says of itself, once; and variables that mean nothing.
. "$(dirname "$0")/lib.sh"

program=$(cd "${MESHCOLL_BUILD_DIR:-build/test}" && pwd)/examples/allreduce
unset MESHCOLL_LINKS MESHCOLL_MESH MESHCOLL_TRANSPORTS MESHCOLL_LOG
export MESHCOLL_CALIBRATE=off MESHCOLL_TUNE_FILE=$scratch/none.json

# said TEXT TIMES: so many lines of $err have it
said() {
    [ "$(grep -cF -- "$1" <<<"$err")" -eq "$2" ] || fail "expected '$1' $2 times in:"$'\n'"$err"
}

ranks 4 0 "$program"
[ -z "$err" ] || fail "said without being asked: $err"

MESHCOLL_LOG=INFO ranks 4 0 "$program"
said "meshcoll: version $("$MESHCOLL" --version | cut -d' ' -f2), UCX " 1
said ": 4 ranks on 1 machine" 1
said "meshcoll: mesh $(sed -n 's/.*4 ranks as \([^:]*\):.*/\1/p' <<<"$out" | head -n 1), found: " 1
said ": transport shm, ranks " 1
said "meshcoll: links of the default preset: " 1
said "meshcoll: allreduce of " 1
said "; 64 MiB " 8
said "GPUs: " 0
said " differs from rank 0: " 0
[ "$(grep -cv '^meshcoll: ' <<<"$err")" -eq 0 ] || fail "lines of something else: $err"

# what only some ranks have: a core to share with nobody, a driver of GPUs
core=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
fake=$(cd "${MESHCOLL_BUILD_DIR:-build/test}" && pwd)/tests/device/libfakecuda.so
MESHCOLL_LOG=info MESHCOLL_LIBCUDA=off ranks 3 0 sh -c '[ $RANK = 2 ] || exec taskset -c "$0" "$1"; exec "$1"' "$core" "$program"
if [ "$(nproc)" -gt 1 ]; then
    said ", more ranks than cores: 3 ranks on 1 machine" 1
    said "rank 2 differs from rank 0: version " 1
    said ", a core for each rank" 1
    said " differs from rank 0: " 1
fi
if [ -e "$fake" ]; then
    MESHCOLL_LOG=info ranks 3 0 sh -c '[ $RANK = 1 ] || export MESHCOLL_LIBCUDA="$0"; exec "$1"' "$fake" "$program"
    if grep -qF "built with -DMESHCOLL_CUDA=OFF" <<<"$err"; then
        said ", a CUDA driver that is not used: 3 ranks on 1 machine" 1
    else
        said ", a CUDA driver: 3 ranks on 1 machine" 1
        said "GPUs: the CUDA driver takes calls on their memory" 1
    fi
    said "rank 1 differs from rank 0: version " 1
    said " differs from rank 0: " 1
fi

MESHCOLL_LOG=debug MESHCOLL_MESH=box=2,gpu=2 MESHCOLL_TRANSPORTS='box=tcp,self;gpu=shm' ranks 4 0 "$program"
said "mesh box=2,gpu=2, as the program or MESHCOLL_MESH gives it" 1
said "box: transport tcp,self" 1
for r in 0 1 2 3; do said "rank $r is process " 1; done
said " on box=2,gpu=2: " "$(grep -c ' predicted$' <<<"$err")"
[[ $err == *"allreduce of "*" predicted"* ]] || fail "no choice of the call: $err"

# in a file, which the ranks share; warnings too
MESHCOLL_LOG=warn:$scratch/log MESHCOLL_MESHH=box=2 ranks 4 0 "$program"
[ -z "$err" ] || fail "beside the file: $err"
[ "$(cat "$scratch/log")" = "meshcoll: MESHCOLL_MESHH means nothing: did you mean MESHCOLL_MESH?" ] ||
    fail "the file has: $(cat "$scratch/log")"

MESHCOLL_STRATEGY_ALLREDUC=flat-ring MESHCOLL_QQQQQQQQQQQQ=1 ranks 4 0 "$program"
said "MESHCOLL_STRATEGY_ALLREDUC means nothing: did you mean MESHCOLL_STRATEGY_ALLREDUCE?" 1
said "MESHCOLL_QQQQQQQQQQQQ means nothing: man 7 meshcoll lists the variables" 1

MESHCOLL_LOG=loud ranks 1 0 "$program"
said 'MESHCOLL_LOG takes warn, info or debug, and a file behind a colon if not stderr, as info:/tmp/job.log; got "loud"' 1
MESHCOLL_LOG=info:/nowhere/log ranks 1 0 "$program"
said "MESHCOLL_LOG: /nowhere/log cannot be written (No such file or directory): stderr has it" 1

# every variable that a source reads is known
cd "$(dirname "$0")/../.." || exit 1
grep -rhoE '"MESHCOLL_[A-Z_]+"' --include='*.[ch]' --include='*.py' --include='*.cpp' src bench python/src python/cpp |
    tr -d '"' | grep -v '_$' | sort -u >"$scratch/read"
grep -vxF -f <(grep -rhoE '"MESHCOLL_[A-Z_]+"' src/runtime/place/variables.c src/runtime/place/settings.h | tr -d '"') \
    "$scratch/read" >"$scratch/unknown" && fail "not in src/runtime/place/variables.c: $(cat "$scratch/unknown")"
finish
