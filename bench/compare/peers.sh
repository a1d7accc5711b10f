#!/usr/bin/env bash
# Builds the peer program against Open MPI and MPICH, into build/peers (or the folder given).
#   peers.sh [FOLDER]
# Open MPI is the machine's own. MPICH is fetched as Debian packages and unpacked beside it, not
# installed: installed, it would take over mpirun and mpicc. What is missing is told in one line, kept
# in FOLDER/NAME.missing, and no failure; without any peer the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=bench/compare
to=${1:-build/peers}
mkdir -p "$to"
to=$(cd "$to" && pwd)
root=$to/mpich
lib=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
source=("$here/peer.c" bench/common/gate.c)
cflags=(-std=gnu11 -O2 -Wall -Wextra)

say() { printf 'peers: %s\n' "$*"; }

missing() { # missing NAME WHY
    rm -f "$to/peer-$1"
    printf '%s\n' "$2" >"$to/$1.missing"
    say "$1 is missing: $2"
}

built() {
    rm -f "$to/$1.missing"
    say "built $to/peer-$1"
}

build_openmpi() {
    local mpicc
    if ! mpicc=$(command -v mpicc.openmpi || command -v mpicc); then
        missing openmpi "no mpicc.openmpi or mpicc in PATH (apt-get install libopenmpi-dev)"
    elif ! "$mpicc" "${cflags[@]}" -o "$to/peer-openmpi" "${source[@]}" -lm; then
        missing openmpi "$mpicc does not compile $here/peer.c"
    else
        built openmpi
    fi
}

fetch_mpich() { # into $root; the reason on stdout where it fails
    local packages=(mpich libmpich12 libmpich-dev libslurm38) debs=$to/debs new=$root.new deb
    [ -e "$root/complete" ] && return 0
    command -v apt-get dpkg >/dev/null || { echo "no apt-get and dpkg here"; return 1; }
    mkdir -p "$debs"
    say "apt-get download ${packages[*]} (into $debs), then dpkg -x (into $root); nothing is installed" >&2
    (cd "$debs" && apt-get -q download "${packages[@]}") >"$to/download.log" 2>&1 || {
        echo "apt-get download failed: $(grep -m1 '^E:' "$to/download.log" || tail -n 1 "$to/download.log")"
        return 1
    }
    rm -rf "$new" "$root"
    for deb in "$debs"/*.deb; do
        dpkg -x "$deb" "$new" || { echo "dpkg -x $deb failed"; return 1; }
    done
    touch "$new/complete"
    mv "$new" "$root"
}

build_mpich() {
    local why lacks
    if ! why=$(fetch_mpich); then
        missing mpich "$why"
        return
    fi
    lacks=$(LD_LIBRARY_PATH=$root/$lib ldd "$root/$lib/libmpich.so.12" "$root/usr/bin/mpiexec.hydra" |
        sed -n 's/^[[:space:]]*\(.*\) => not found.*/\1/p' | sort -u | tr '\n' ' ')
    if [ -n "$lacks" ]; then
        missing mpich "this machine lacks what it needs: ${lacks% }"
    elif ! gcc "${cflags[@]}" -o "$to/peer-mpich" "${source[@]}" -I "$root/usr/include/${lib##*/}/mpich" \
        -L "$root/$lib" -Wl,-rpath,"$root/$lib" -lmpich -lm ||
        ! gcc "${cflags[@]}" -shared -fPIC -o "$to/yield.so" "$here/yield.c" -ldl; then
        missing mpich "gcc does not compile $here/peer.c with it"
    else
        built mpich
    fi
}

build_openmpi
build_mpich
[ -e "$to/peer-openmpi" ] || [ -e "$to/peer-mpich" ]
