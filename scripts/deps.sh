#!/usr/bin/env bash
# Installs what meshcoll needs, from the distribution (Debian, Ubuntu). Does nothing when all of it
# is there, whoever brought it.
set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }
lib() { pkg-config --exists "$1" 2>/dev/null; }
# The distribution's modules are in its own python3, which need not be the first in PATH.
module() {
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$1') is None)" \
            2>/dev/null && return 0
    done
    return 1
}

missing=()
need() { # need <Debian package> <test…>
    local package=$1
    shift
    "$@" || missing+=("$package")
}

need build-essential have cc
need cmake have cmake
need ninja-build have ninja
need pkg-config have pkg-config
need libopenmpi-dev have mpicc
need openmpi-bin have mpirun
need libucx-dev lib "ucx >= 1.13"
need libhwloc-dev lib hwloc
need libjansson-dev lib jansson
need libcriterion-dev lib criterion
need python3 have python3
need python3-matplotlib module matplotlib
need iproute2 have ip
need doxygen have doxygen
if [ -n "${CC:-}" ] && ! have "$CC"; then
    missing+=("$(basename "$CC")")
fi

[ ${#missing[@]} -eq 0 ] && exit 0

if ! have apt-get; then
    echo "deps.sh: missing, by their Debian names: ${missing[*]}" >&2
    echo "deps.sh: there is no apt-get here: install them with this system's package manager" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! have sudo; then
        echo "deps.sh: missing: ${missing[*]}" >&2
        echo "deps.sh: neither root nor sudo: run as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

echo "deps.sh: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" >>"$log" 2>&1
}
# The package lists may be old or absent: try without, then with fresh ones.
if ! apt install --no-install-recommends "${missing[@]}"; then
    if ! apt update || ! apt install --no-install-recommends "${missing[@]}"; then
        tail -n 20 "$log" >&2
        echo "deps.sh: apt-get could not install: ${missing[*]}" >&2
        exit 1
    fi
fi
