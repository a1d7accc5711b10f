# Helpers of the command's tests. $MESHCOLL is the command, $MESHCOLL_BUILD_DIR where it lies.
set -u
export MESHCOLL_CALIBRATE=${MESHCOLL_CALIBRATE:-off}
MESHCOLL=${MESHCOLL:-${MESHCOLL_BUILD_DIR:-build/test}/meshcoll}
failures=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    printf 'FAILED: %s\n' "$*"
    failures=$((failures + 1))
}

# run STATUS ARGUMENT…: runs the command; leaves $out and $err.
run() {
    local want=$1 got=0
    shift
    "$MESHCOLL" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || got=$?
    out=$(cat "$scratch/out") err=$(cat "$scratch/err")
    [ $got -eq "$want" ] || fail "meshcoll $*: exit status $got, expected $want: $err"
}

# refused TEXT ARGUMENT…: exit status 2, nothing on stdout, one line on stderr that holds TEXT.
refused() {
    local text=$1
    shift
    run 2 "$@"
    [ -z "$out" ] || fail "meshcoll $*: refused, but printed: $out"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "meshcoll $*: expected one line, got: $err"
    [[ $err == *"$text"* ]] || fail "meshcoll $*: expected '$text' in: $err"
}

# Spaces squeezed, for comparing tables.
squeezed() {
    tr -s ' ' <<<"$1" | sed 's/ $//; s/^ //'
}

# has TEXT: $out has it, spaces squeezed, on one line or broken between words.
has() {
    [[ $(squeezed "$out") == *"$1"* || $(tr -s ' \n' ' ' <<<"$out") == *"$1"* ]] || fail "expected '$1' in:"$'\n'"$out"
}

# query EXPRESSION: the Python expression on the JSON j in $out.
query() {
    python3 -c 'import json, sys; j = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1" <<<"$out" 2>&1
}

# gives EXPRESSION VALUE
gives() {
    local got
    got=$(query "$1")
    [ "$got" = "$2" ] || fail "$1 is '$got', expected '$2'"
}

# ranks N STATUS COMMAND…: on N ranks of meshcoll run; leaves $out and $err.
ranks() {
    local n=$1 want=$2 got=0
    shift 2
    "$MESHCOLL" run -n "$n" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || got=$?
    out=$(cat "$scratch/out") err=$(cat "$scratch/err")
    [ $got -eq "$want" ] || fail "$*: exit status $got, expected $want: $err"
}

# mpirun_ranks N COMMAND…: on N ranks of MPI's mpirun; its exit status is the command's.
mpirun_ranks() {
    local n=$1 mpirun flags=()
    shift
    mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:[^=]*=//p' "${MESHCOLL_BUILD_DIR:-build/test}/CMakeCache.txt")
    if "$mpirun" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
        flags=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1
            --mca btl self,vader,tcp --mca btl_vader_single_copy_mechanism none --mca osc '^ucx')
        if [ "$(id -u)" -eq 0 ]; then flags+=(--allow-run-as-root); fi
    fi
    "$mpirun" -n "$n" "${flags[@]}" "$@" </dev/null
}

# has_mpi: was it built with MPI?
has_mpi() {
    compgen -G "${MESHCOLL_BUILD_DIR:-build/test}/libmeshcoll-m*pi*.so" >/dev/null
}

finish() {
    [ $failures -eq 0 ] && echo "all well"
    exit $((failures > 0))
}
