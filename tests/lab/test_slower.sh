#!/usr/bin/env bash
# A network that becomes slower under a job. It measures, so it runs alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 tests/lab/network.py slower
