#!/usr/bin/env bash
# Exit status 0 where clang links libFuzzer and its sanitizers, which the fuzz targets (tests/fuzz) need.
set -euo pipefail

program=$(mktemp)
trap 'rm -f "$program"' EXIT
echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return !d && n; }' |
    clang -fsanitize=fuzzer,address,undefined -x c -o "$program" - 2>/dev/null
