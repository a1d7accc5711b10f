#!/usr/bin/env bash
# Ranks choose alone, and must choose alike on processors of different models: the same choices, and the same
# costs to the last digit, from code with fused multiply and add and wide vectors, and from a libm that was told
# that there are none.
set -u
programs=${MESHCOLL_BUILD_DIR:-build/test}/tests/alike
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ ! -x "$programs/choices_fma" ]; then
    echo "skipped: this compiler has no -mfma"
    exit 77
fi
if ! grep -qw fma /proc/cpuinfo || ! grep -qw avx2 /proc/cpuinfo; then
    echo "skipped: this processor has no fused multiply and add"
    exit 77
fi
# what libm need not round exactly: processors have versions of their own
inexact='(log|log2|log10|log1p|exp|exp2|expm1|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|hypot|cbrt)[fl]?'
if command -v nm >/dev/null && nm -u "$programs/choices_fma" | grep -E " $inexact(@|\$)"; then
    echo "FAILED: what chooses calls these, which are not the same on all processors"
    exit 1
fi
"$programs/choices_plain" >"$scratch/plain" || exit 1
"$programs/choices_fma" >"$scratch/fma" || exit 1
GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX2_Usable,-FMA_Usable \
    "$programs/choices_plain" >"$scratch/old" || exit 1
[ "$(wc -l <"$scratch/plain")" -eq 1200 ] || { echo "FAILED: expected 1200 choices"; exit 1; }
for other in fma old; do
    if ! cmp -s "$scratch/plain" "$scratch/$other"; then
        echo "FAILED: choices differ ($other):"
        diff "$scratch/plain" "$scratch/$other" | head -20
        exit 1
    fi
done
echo "1200 choices alike"
