#!/usr/bin/env bash
# Installs into a temporary prefix, moves it, and builds a consumer with find_package and with
# pkg-config.   usage: tests/install/run.sh <build dir> [<C compiler>]
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

# find_package
if ! { cmake -S "$here/consumer" -B "$work/consumer" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$work/prefix" && cmake --build "$work/consumer"; } \
        >"$work/cmake.log" 2>&1; then
    cat "$work/cmake.log"
    echo "find_package(meshcoll): the consumer does not build"
    exit 1
fi
check find_package "$work/consumer/consumer"

# pkg-config
pc=$(find "$work/prefix" -name meshcoll.pc)
[ -n "$pc" ] || { echo "meshcoll.pc was not installed"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs meshcoll)"
"$cc" -o "$work/consumer-pc" "$here/consumer/main.c" "${flags[@]}"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir meshcoll)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    check pkg-config "$work/consumer-pc"

# The public API and nothing else
lib=$(find "$work/prefix" -name libmeshcoll.so)
extra=$(nm -D --defined-only "$lib" | awk '{print $3}' | grep -v '^meshcoll_' || true)
if [ -n "$extra" ]; then
    echo "libmeshcoll.so shows symbols which are not public:"
    echo "$extra"
    exit 1
fi
echo "symbols: ok"
