#!/usr/bin/env bash
# Installs into a temporary prefix, moves it, and builds consumers of both libraries with find_package and
# with pkg-config. libmeshcoll.so needs no MPI.   usage: tests/install/run.sh <build dir> [<C compiler>]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${1:?usage: tests/install/run.sh <build dir> [<C compiler>]}
cc=${2:-cc}

if grep -Eq '^MESHCOLL_SANITIZE:STRING=.+' "$build/CMakeCache.txt"; then
    echo "skipped: a sanitizer build is not installed"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! cmake --install "$build" --prefix "$work/first" >"$work/install.log" 2>&1; then
    cat "$work/install.log"
    echo "the install failed"
    exit 1
fi
mv "$work/first" "$work/prefix"    # what is installed must not know where it was

expected=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")

check() { # check <how> <program>
    local got
    got=$("$2")
    if [ "$got" != "$expected success" ]; then
        echo "$1: the consumer printed \"$got\", expected \"$expected success\""
        exit 1
    fi
    echo "$1: ok"
}

mpi=OFF
if [ -n "$(find "$work/prefix" -name 'libmeshcoll-mpi.so')" ]; then mpi=ON; fi

# find_package
if ! { cmake -S "$here/consumer" -B "$work/consumer" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$work/prefix" -DWITH_MPI="$mpi" && cmake --build "$work/consumer"; } \
        >"$work/cmake.log" 2>&1; then
    cat "$work/cmake.log"
    echo "find_package(meshcoll): the consumer does not build"
    exit 1
fi
check find_package "$work/consumer/consumer"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [ $mpi = ON ]; then check "find_package, mpi" "$work/consumer/consumer-mpi"; fi

# pkg-config
pc=$(find "$work/prefix" -name meshcoll.pc)
[ -n "$pc" ] || { echo "meshcoll.pc was not installed"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs meshcoll)"
"$cc" -o "$work/consumer-pc" "$here/consumer/main.c" "${flags[@]}"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir meshcoll)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
check pkg-config "$work/consumer-pc"
if [ $mpi = ON ]; then
    read -ra flags <<<"$(pkg-config --cflags --libs meshcoll-mpi)"
    mpicc -o "$work/consumer-mpi-pc" "$here/consumer/mpi.c" "${flags[@]}"
    check "pkg-config, mpi" "$work/consumer-mpi-pc"
else
    echo "mpi: not built"
fi

# Pages: their links lead to what is installed, and the license is there.
docs=$(find "$work/prefix" -path '*/doc/meshcoll')
for file in README.md LICENSE docs/calling.md docs/pictures/race.svg examples/four.graph; do
    [ -s "$docs/$file" ] || { echo "the pages are incomplete: $docs/$file was not installed"; exit 1; }
done
python3 - "$docs" <<'PYTHON'
import pathlib, re, sys
pages = sorted(pathlib.Path(sys.argv[1]).rglob("*.md"))
links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))]
dead = [f"{page}: {link}" for page, link in links if not re.match(r"\w+:", link) and not (page.parent / link).exists()]
if dead or len(links) < 200:
    sys.exit("\n".join(["dead links in installed pages:", *dead, f"{len(links)} links"]))
print(f"pages: {len(links)} links, ok")
PYTHON

# The public API, and nothing else but two functions that stand in for UCX's (src/transport/sockets.c)
stand_in='^ucs_socket_(accept|create)$'
for lib in $(find "$work/prefix" -name 'libmeshcoll.so' -o -name 'libmeshcoll-mpi.so'); do
    extra=$(nm -D --defined-only "$lib" | awk '{print $3}' | grep -v '^meshcoll_' | grep -vE "$stand_in" || true)
    if [ -n "$extra" ]; then
        echo "$lib shows symbols which are not public:"
        echo "$extra"
        exit 1
    fi
done
# Each function stays: a program that was linked with an earlier version finds it (docs/compatibility.md).
for name in meshcoll meshcoll-mpi; do
    lib=$(find "$work/prefix" -name "lib$name.so")
    [ -n "$lib" ] || continue
    nm -D --defined-only "$lib" | awk '{print $3}' | grep -vE "$stand_in" | sort >"$work/symbols"
    if ! diff "$here/$name.symbols" "$work/symbols"; then
        echo "lib$name.so has other functions than tests/install/$name.symbols: add new ones there; none may go (docs/compatibility.md)"
        exit 1
    fi
done
echo "symbols: ok"

# A program of another MPI is told so, in both directions; each finds its own library.
if [ $mpi = ON ] && command -v mpicc.openmpi >/dev/null && command -v mpicc.mpich >/dev/null; then
    for is in openmpi mpich; do
        "mpicc.$is" -shared -fPIC -D_GNU_SOURCE -I"$here/../../src" -I"$work/prefix/include" "$here/../../src/mpi/create_mpi.c" \
            -L"$work/prefix/lib" -lmeshcoll -o "$work/libfor-$is.so"
    done
    for is in openmpi mpich; do
        for for in openmpi mpich; do
            "mpicc.$is" -I"$work/prefix/include" "$here/consumer/mpi.c" -L"$work/prefix/lib" -lmeshcoll "$work/libfor-$for.so" \
                -Wl,-rpath,"$work" -o "$work/mixed" 2>"$work/mixed.log"
            said=$("$work/mixed" 2>&1) || true
            [ "$said" = "$expected $([ $is = $for ] && echo success || echo "an argument is invalid")" ] ||
                { echo "a program of $is with the library for $for said: $said"; exit 1; }
        done
    done
    echo "MPIs: ok"
fi

# A tool that intercepts MPI sees none of the library's own calls.
lib=$(find "$work/prefix" -name 'libmeshcoll-mpi.so')
if [ -n "$lib" ] && nm -D --undefined-only "$lib" | grep -E ' MPI_'; then
    echo "libmeshcoll-mpi.so calls MPI_ functions instead of PMPI_"
    exit 1
fi
echo "PMPI: ok"

# MPI is not loaded with libmeshcoll.so or the programs, directly or through another library.
for file in "$(find "$work/prefix" -name libmeshcoll.so)" "$work/prefix"/bin/meshcoll "$work/prefix"/bin/meshcoll-bench; do
    if [ -e "$file" ] && ldd "$file" | grep -iE 'libmpi|libpmpi|mpich'; then
        echo "$(basename "$file") needs MPI"
        exit 1
    fi
done
echo "no MPI: ok"
