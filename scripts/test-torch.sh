#!/usr/bin/env bash
# The backend of torch.distributed (python/): a virtual environment with torch, libmeshcoll and the package in
# build/torch, then python/tests. The first time it downloads torch, from PyPI with CUDA's libraries: 3 GB, and 9 GB of
# disk. Not part of scripts/test.sh.
#   scripts/test-torch.sh [NAME…]     only tests whose name has one of these texts
#   scripts/test-torch.sh --suite     also the tests of a backend that PyTorch ships, at 4 and 8 ranks: 10 more minutes
#   TORCH_TESTS=FOLDER                with --suite: PyTorch's test/distributed, whose tests of Gloo then run, too
#   MESHCOLL_DIR=build/test           takes libmeshcoll from a build tree, instead of building it
#   TORCH=torch==2.9.1                another version of torch; a fresh BUILD folder with it
# Closing line: "N passed, N failed, N skipped"; exit 1 when anything failed.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build/torch}
torch=${TORCH:-torch}
cpu_index=https://download.pytorch.org/whl/cpu
# what torch imports, and its tests; the other packages that its wheel on PyPI asks for are CUDA's libraries
needs=(typing_extensions sympy networkx jinja2 fsspec filelock numpy setuptools expecttest)
room_gb=9
counts='^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'

skip() {
    echo "skipped: $*"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

quietly() { # quietly WHAT COMMAND…: output only when it fails
    local what=$1
    shift
    if "$@" >"$build/log" 2>&1; then return 0; fi
    tail -n 40 "$build/log"
    echo "FAILED: $what"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

mkdir -p "$build"
build=$(cd "$build" && pwd)
venv=$build/venv
python=$venv/bin/python

if ! "$python" -c 'import torch, scikit_build_core, expecttest' 2>/dev/null; then
    free_gb=$(($(df -Pk "$build" | awk 'NR == 2 { print $4 }') / 1024 / 1024))
    [ "$free_gb" -ge $room_gb ] || skip "torch needs $room_gb GB of disk in $build, which has $free_gb GB"
    python3 -c 'import ensurepip' 2>/dev/null || skip "python3 -m venv is not installed (Debian: python3-venv)"
    [ -x "$python" ] || quietly "python3 -m venv" python3 -m venv "$venv"
    pip=("$python" -m pip install --quiet --disable-pip-version-check)
    if ! "${pip[@]}" scikit-build-core "${needs[@]}" >"$build/log" 2>&1; then
        skip "PyPI cannot be reached: $(tail -n 1 "$build/log")"
    fi
    if ! "${pip[@]}" "$torch" --index-url "$cpu_index" >"$build/log" 2>&1 &&
        ! "${pip[@]}" --no-deps "$torch" >"$build/log" 2>&1; then
        skip "$torch cannot be downloaded: $(tail -n 1 "$build/log")"
    fi
    # a wheel with CUDA that does not start without its libraries gets them
    if ! "$python" -c 'import torch' 2>/dev/null; then
        quietly "import torch" "${pip[@]}" "$torch"
    fi
fi

if [ -z "${MESHCOLL_DIR:-}" ]; then
    scripts/deps.sh
    quietly "configuring libmeshcoll" cmake -S . -B "$build/lib" -DCMAKE_BUILD_TYPE=Release -DMESHCOLL_MPI=OFF \
        -DMESHCOLL_BUILD_TESTS=ON -DMESHCOLL_BUILD_BENCH=OFF -DMESHCOLL_BUILD_EXAMPLES=OFF \
        -DMESHCOLL_BUILD_TOOLS=OFF
    quietly "building libmeshcoll" cmake --build "$build/lib" --parallel "${JOBS:-2}" \
        --target meshcoll fakecuda on_double
    MESHCOLL_DIR=$build/lib
fi
tree=$(cd "$MESHCOLL_DIR" && pwd)
export MESHCOLL_DIR=$tree

# CUDA tensors, on the fake of libcuda
fakecuda=$tree/tests/device/libfakecuda.so on_double=$tree/tests/device/on_double
if [ ! -e "$fakecuda" ] || [ ! -e "$on_double/libmeshcoll.so" ]; then
    export MESHCOLL_NO_DOUBLE="$tree has no fake of libcuda: build its targets fakecuda and on_double"
    fakecuda=
elif ! "$python" -c 'from torch import Stream; Stream.native_handle' 2>/dev/null; then
    export MESHCOLL_NO_DOUBLE="a device of one's own cannot tell this torch the handle of a stream"
    fakecuda=
fi
quietly "building the package" env CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-2}" \
    "$python" -m pip install --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
    --config-settings=build-dir="$build/module" --config-settings=cmake.define.MESHCOLL_FAKECUDA="$fakecuda" ./python
"$python" -c 'import torch, meshcoll.torch as m; print("torch", torch.__version__ + ", libmeshcoll", m.version())'

export MESHCOLL_TUNE_FILE=$build/none.json # no measurements that happen to be on this machine
if [ -n "$fakecuda" ]; then
    export MESHCOLL_FAKECUDA=$fakecuda MESHCOLL_ON_DOUBLE=$on_double
    MESHCOLL_DOUBLE=$(find "$build/module" -name '_double*.so' -print -quit)
    export MESHCOLL_DOUBLE
fi
status=0
: >"$build/counts"
for tests in run launchers example; do
    "$python" "python/tests/$tests.py" "$@" | tee "$build/log" | sed -E "/$counts/d" || status=1
    tail -n 1 "$build/log" | grep -E "$counts" >>"$build/counts" ||
        echo "0 passed, 1 failed, 0 skipped" >>"$build/counts" # it did not come to its end
done
awk '{ p += $1; f += $3; s += $5 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$build/counts"
exit $status
