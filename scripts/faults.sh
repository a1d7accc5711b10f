#!/usr/bin/env bash
# Jobs in which something goes wrong, each often: builds the preset test and runs tests/faults/run.py with these options.
# usage: scripts/faults.sh [--times 50] [--only A,B] [--where one-box,tcp,2x2,lab]; --list names the scenarios
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake --preset test && cmake --build --preset test --target fault_job --parallel "${JOBS:-2}"; } >"$log" 2>&1; then
    tail -n 60 "$log"
    exit 1
fi
python3 tests/faults/run.py "$@"
