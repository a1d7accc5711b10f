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
wanted=()
need() { # need <Debian package> <test…>
    local package=$1
    shift
    "$@" || missing+=("$package")
}
want() { # want <Debian package> <test…>: what only some of the tests need, and are skipped without
    local package=$1
    shift
    "$@" || wanted+=("$package")
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
need libssl-dev lib "libcrypto >= 3.0"
need libcriterion-dev lib criterion
need python3 have python3
need python3-matplotlib module matplotlib
need iproute2 have ip
need doxygen have doxygen
want nftables have nft # tests/lab: firewalls
want libprotobuf-c-dev lib libprotobuf-c # meshcoll export --format chakra
want protobuf-c-compiler have protoc-c
want python3-protobuf module google.protobuf
want clang have clang
want libclang-rt-dev "$(dirname "$0")/can-fuzz.sh" # libFuzzer
if [ -n "${CC:-}" ] && ! have "$CC"; then
    missing+=("$(basename "$CC")")
fi

[ ${#missing[@]} -eq 0 ] && [ ${#wanted[@]} -eq 0 ] && exit 0
# Without what is only wanted, nothing here fails.
give_up() {
    [ ${#missing[@]} -gt 0 ] && return
    echo "deps.sh: going on without ${wanted[*]}: the tests that need it are skipped"
    exit 0
}

if ! have apt-get; then
    give_up
    echo "deps.sh: missing, by their Debian names: ${missing[*]}" >&2
    echo "deps.sh: there is no apt-get here: install them with this system's package manager" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! have sudo; then
        give_up
        echo "deps.sh: missing: ${missing[*]}" >&2
        echo "deps.sh: neither root nor sudo: run as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" >>"$log" 2>&1
}
# The package lists may be old or absent: try without, then with fresh ones.
get() {
    echo "deps.sh: installing $*"
    apt install --no-install-recommends "$@" && return
    apt update && apt install --no-install-recommends "$@"
}
if [ ${#missing[@]} -gt 0 ] && ! get "${missing[@]}"; then
    tail -n 20 "$log" >&2
    echo "deps.sh: apt-get could not install: ${missing[*]}" >&2
    exit 1
fi
missing=()
if [ ${#wanted[@]} -gt 0 ] && ! get "${wanted[@]}"; then
    give_up
fi
