#!/usr/bin/env bash
# Four users with nothing but a clean clone: what README tells each of them, from the build to the first result, and the
# seconds that it took. Run by scripts/test.sh --all.   usage: tests/install/users.sh [pytorch|c|mpi|student]…
# Limits, after the packages (and torch): PyTorch 120 s, C 90 s, MPI 60 s, student 60 s; a machine of fewer or busy cores
# takes longer, and is told of without failing. PyTorch needs torch ($PYTHON) and PyPI.
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# A user's environment: none of ours.
clean() {
    env -i HOME="$work/home" PATH="$work/prefix/bin:$PATH" LANG=C.UTF-8 PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig" \
        LD_LIBRARY_PATH="$work/prefix/lib" CMAKE_PREFIX_PATH="$work/prefix" OMPI_ALLOW_RUN_AS_ROOT=1 \
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_pml=ob1 "$@"
}

git clone -q "$source" "$work/meshcoll"
mkdir -p "$work/home"
cd "$work/meshcoll"

install() { # once: the seconds count for each user of the library
    [ -z "${built:-}" ] || return 0
    local begin=$SECONDS
    # a compiler that warns of what ours does not ends no build
    clean env CFLAGS=-Wsign-conversion cmake --preset release >"$work/log" 2>&1 && clean cmake --build --preset release >>"$work/log" 2>&1 &&
        clean cmake --install build/release --prefix "$work/prefix" >>"$work/log" 2>&1 || {
        tail -n 40 "$work/log"
        echo "the build of README failed"
        exit 1
    }
    built=$((SECONDS - begin))
}

prints() { # prints TEXT COMMAND…: its output has the text
    local text=$1
    shift
    "$@" >"$work/out" 2>&1 && grep -qF -- "$text" "$work/out" && return
    echo "FAILED: $*: expected '$text' in:"
    cat "$work/out"
    failed=1
}

user() { # user NAME LIMIT: plays it
    local begin took build=0
    if [ "$1" != pytorch ]; then
        install
        build=$built
    fi
    begin=$SECONDS
    "play_$1" || return 0 # it has said why it is left out
    took=$((build + SECONDS - begin))
    echo "$1: $took s from the clone to the first result, asked at most $2"
    [ "$took" -le "$2" ] || echo "$1: slower than asked, on $(nproc) cores with a load of $(cut -d' ' -f1 /proc/loadavg)"
}

play_c() {
    sed -n '/^```c$/,/^```$/p' README.md | grep -v '^```' >"$work/program.c"
    read -ra flags <<<"$(clean pkg-config --cflags --libs meshcoll)"
    clean cc "$work/program.c" "${flags[@]}" -o "$work/program"
    prints "rank 3 of 4 on " clean meshcoll run -n 4 "$work/program"
    prints ": 4" clean meshcoll run -n 4 "$work/program"
}

play_mpi() {
    if ! command -v mpicc >/dev/null || [ ! -e "$work/prefix/lib/pkgconfig/meshcoll-mpi.pc" ]; then
        echo "mpi: left out, there is no MPI here"
        return 1
    fi
    read -ra flags <<<"$(clean pkg-config --cflags --libs meshcoll-mpi)"
    clean mpicc examples/mpi.c "${flags[@]}" -o "$work/mpi"
    prints "from rank 0 on sum up to 1" clean mpirun -n 4 "$work/mpi"
}

play_student() {
    prints "no strategy is faster than 336 ms" clean meshcoll plan bcast --mesh box=4,gpu=4 --links lab --bytes 8M --top 3
    prints "drawn in" clean meshcoll trace bcast --mesh box=4,gpu=4 --strategy option1 --svg "$work/picture.svg"
    prints "all right" clean meshcoll verify allreduce --mesh box=4,gpu=8 --strategy hierarchical
    prints "stored in" clean meshcoll run -n 4 meshcoll tune --seconds 2
}

# Its virtual environment has the packages of the one with torch, as links: torch takes gigabytes. It types README's
# lines after the first, which installs torch.
play_pytorch() {
    local python=${PYTHON:-$source/build/torch/venv/bin/python} packages
    if ! "$python" -c 'import torch' 2>/dev/null; then
        echo "pytorch: left out, $python has no torch (scripts/test-torch.sh makes it; \$PYTHON names another)"
        return 1
    fi
    if ! clean "$python" -m pip download --quiet --no-deps --dest "$work/reached" scikit-build-core >"$work/log" 2>&1; then
        echo "pytorch: left out, PyPI cannot be reached: $(tail -n 1 "$work/log")"
        return 1
    fi
    "$python" -m venv "$work/venv"
    packages=$("$work/venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')
    ln -s "$("$python" -c 'import site; print(site.getsitepackages()[0])')"/* "$packages" 2>/dev/null || true
    rm -f "$packages"/meshcoll*
    printf '#!/bin/sh\nexec %s/venv/bin/python -m torch.distributed.run "$@"\n' "$work" >"$work/venv/bin/torchrun"
    chmod +x "$work/venv/bin/torchrun"
    begin=$SECONDS # of user
    sed -n '/^pip install torch$/,/^```$/p' README.md | sed '1d;$d' >"$work/lines"
    grep -q '^pip install ./python' "$work/lines" || { echo "FAILED: README's lines for PyTorch are not the ones known here"; failed=1; }
    prints "loss" clean PATH="$work/venv/bin:$PATH" OMP_NUM_THREADS=1 bash -ec "$(cat "$work/lines")"
}

users=("$@")
[ ${#users[@]} -gt 0 ] || users=(c mpi student pytorch)
for name in "${users[@]}"; do
    case $name in
    pytorch) user pytorch 120 ;;
    c) user c 90 ;;
    mpi | student) user "$name" 60 ;;
    *)
        echo "users.sh: expected pytorch, c, mpi or student, got '$name'" >&2
        exit 2
        ;;
    esac
done
exit $failed
