#!/usr/bin/env bash
# The lab's own test: boxes are apart, the rate holds, nothing is left behind.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! why=$(bench/lab/lab check 2>&1); then
    echo "skipped: $why"
    exit 77
fi
exec bench/lab/selftest.sh
