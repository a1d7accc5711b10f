#!/usr/bin/env bash
# Jobs in networks as they are: firewalls, bridges, namespaces.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 tests/lab/network.py "$@"
