#!/usr/bin/env bash
# run.sh NAME [libFuzzer option…]: runs the fuzz target NAME over its kept corpus, then for FUZZ_SECONDS (60) on inputs of
# its own, always with the same seed. What it found is in $MESHCOLL_BUILD_DIR/tests/fuzz/found/NAME, and an input that
# fails beside it; the last lines say how to run that again.
set -euo pipefail
cd "$(dirname "$0")/../.."

name=$1
shift
build=${MESHCOLL_BUILD_DIR:-$PWD/build/fuzz}
seconds=${FUZZ_SECONDS:-60}
program=$build/tests/fuzz/fuzz_$name
found=$build/tests/fuzz/found/$name
failed=$build/tests/fuzz/failed-$name-

# A few inputs take milliseconds: an input of 10 s, or of 1 GiB, is a failure.
options=(-seed=1 -max_len=4096 -timeout=10 -rss_limit_mb=1024 -verbosity=0 -print_final_stats=1
    -artifact_prefix="$failed")
if [ -f "tests/fuzz/$name.dict" ]; then
    options+=(-dict="tests/fuzz/$name.dict")
fi
if [ "$seconds" -eq 0 ]; then
    options+=(-runs=0)
else
    options+=(-max_total_time="$seconds")
fi

# UCX hooks the allocator, as the sanitizer does; no target needs it.
export ASAN_OPTIONS=quarantine_size_mb=64:${ASAN_OPTIONS:-}
export UCX_MEM_MMAP_HOOK_MODE=none UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
rm -rf "$found" "$failed"*
mkdir -p "$found"
if ! "$program" "${options[@]}" "$@" "$found" "tests/fuzz/corpus/$name"; then
    for input in "$failed"*; do
        [ -f "$input" ] || continue
        echo "fuzz.$name failed; run that input again with: $program $input"
    done
    exit 1
fi
