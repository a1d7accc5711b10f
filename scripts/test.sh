#!/usr/bin/env bash
# What a change has to pass. Closing line: "N passed, N failed, N skipped"; exit 1 when anything failed.
#   scripts/test.sh          the checks of the sources, the preset "test" and its tests: 10 minutes on 2 cores,
#                            once the packages are there
#   scripts/test.sh --all    also the long forms of these tests (MESHCOLL_TESTS=all), what README
#                            tells four users (tests/install/users.sh), CMake's other build types without tests,
#                            a build without MPI with the tests that this concerns, unit and smoke tests under the
#                            address and undefined-behaviour sanitizers together, the threaded tests under the thread
#                            sanitizer, the fuzz targets for FUZZ_SECONDS each (30), and PyTorch's tests of Gloo where
#                            torch is installed: 35 minutes
set -euo pipefail
cd "$(dirname "$0")/.."

all=
case "${1:-}" in
    "") ;;
    --all) all=yes ;;
    *)
        echo "test.sh: expected --all or nothing, got '$1'" >&2
        exit 2
        ;;
esac

jobs=${JOBS:-2}
passed=0
failed=0
skipped=0

say() { printf '\n== %s\n' "$*"; }

# check <name> <command…>: one check, counted as one test
check() {
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "FAILED: $name"
        failed=$((failed + 1))
    fi
}

quietly() { # quietly <command…>: output only when it fails
    local log
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        rm -f "$log"
        return 0
    fi
    tail -n 60 "$log"
    rm -f "$log"
    return 1
}

build() { # build <preset>
    local cuda=()
    if [ "$1" = test ] && [ -n "$all" ] && PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
        cuda=(-DMESHCOLL_CUDA=ON) # every kernel, GPU or not
    fi
    quietly cmake --preset "$1" "${cuda[@]}" && quietly cmake --build --preset "$1" --parallel "$jobs"
}

# build_type <preset> <type>: libraries and programs alone, without a warning
build_type() {
    quietly cmake --preset "$1" -B "build/types/$2" -DCMAKE_BUILD_TYPE="$2" -DMESHCOLL_WERROR=ON -DMESHCOLL_BUILD_TESTS=OFF \
        -DMESHCOLL_BUILD_EXAMPLES=OFF && quietly cmake --build "build/types/$2" --parallel "$jobs"
}

# tests <preset>: builds, runs the preset's tests, adds their counts to ours
tests() {
    local preset=$1 junit="$PWD/build/$1/junit.xml" summary counts
    say "$preset: build"
    if ! build "$preset"; then
        echo "FAILED: the $preset build"
        failed=$((failed + 1))
        return 0
    fi
    say "$preset: tests"
    rm -f "$junit"
    # ctest's own exit status is not used: a run that dies leaves no file, and that is counted.
    ctest --preset "$preset" --parallel "$jobs" --no-tests=error --output-junit "$junit" || true
    if ! summary=$(scripts/ctest-summary.py "$junit"); then
        echo "FAILED: ctest --preset $preset left no result"
        failed=$((failed + 1))
        return 0
    fi
    echo
    sed '$d' <<<"$summary"
    read -ra counts <<<"$(tail -n 1 <<<"$summary")"
    passed=$((passed + counts[0]))
    failed=$((failed + counts[1]))
    skipped=$((skipped + counts[2]))
}

python_syntax() {
    local files
    mapfile -t files < <(find scripts tests bench -name '*.py' -type f 2>/dev/null | sort)
    [ ${#files[@]} -eq 0 ] && return 0
    python3 - "${files[@]}" <<'PYTHON' && echo "python: ${#files[@]} files parse"
import ast, sys
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        ast.parse(file.read(), name)
PYTHON
}

shell_syntax() {
    local file files bad=0
    mapfile -t files < <(find scripts tests bench .ci -name '*.sh' -type f 2>/dev/null | sort)
    for file in "${files[@]}" .ci/run; do
        bash -n "$file" || bad=1
    done
    [ $bad -eq 0 ] && echo "shell: ${#files[@]} files parse"
}

# fuzz: the targets of tests/fuzz, where clang can link them
fuzz() {
    if scripts/can-fuzz.sh; then
        tests fuzz
        return
    fi
    say "fuzz"
    echo "skipped: fuzz: clang with libFuzzer and its sanitizers is not installed (Debian: clang, libclang-rt-dev)"
    skipped=$((skipped + 1))
}

# torch_suite: PyTorch's tests of Gloo over the backend, where scripts/test-torch.sh has made its environment
torch_suite() {
    local last
    say "PyTorch's tests of Gloo"
    if [ ! -x build/torch/venv/bin/python ] || [ ! -e "${TORCH_TESTS:-}/test_c10d_gloo.py" ]; then
        echo "skipped: PyTorch's tests of Gloo: run scripts/test-torch.sh once, which installs torch, and set" \
            "TORCH_TESTS to PyTorch's folder test/distributed"
        skipped=$((skipped + 1))
        return
    fi
    last=$(scripts/test-torch.sh --suite "tests of Gloo" | tee /dev/stderr | tail -n 1) || true
    if [[ ! $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        echo "FAILED: scripts/test-torch.sh did not come to its end"
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    skipped=$((skipped + BASH_REMATCH[3]))
}

# left_behind: what is in memory and in temporary folders now; the tests leave nothing there
left_behind() {
    find /dev/shm -mindepth 1 -maxdepth 1 2>/dev/null
    find "${TMPDIR:-/tmp}" -mindepth 1 -maxdepth 1 -name '*meshcoll*' 2>/dev/null
}

nothing_stays() { # nothing_stays <what was there before>
    local more
    more=$(comm -13 <(sort <<<"$1") <(left_behind | sort))
    [ -z "$more" ] || {
        echo "the tests left behind:"
        echo "$more"
        return 1
    }
}

scripts/deps.sh
there=$(left_behind)

say "sources"
check arrows scripts/check-arrows.py
check style scripts/check-style.sh
check python python_syntax
check shell shell_syntax

if [ -n "$all" ]; then
    export MESHCOLL_TESTS=all
fi
tests test
if [ -n "$all" ]; then
    say "four users, from a clean clone to the first result"
    check users tests/install/users.sh
    say "other presets and build types"
    check debug build_type debug Debug
    for type in RelWithDebInfo MinSizeRel; do
        check "$type" build_type release "$type"
    done
    tests nompi
    tests asan
    tests tsan
    # two at a time, as $jobs says: ten targets of 30 s take less than 3 minutes
    export FUZZ_SECONDS=${FUZZ_SECONDS:-30}
    fuzz
    torch_suite
fi

check leftovers nothing_stays "$there"

printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
