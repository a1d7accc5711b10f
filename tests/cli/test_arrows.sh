#!/usr/bin/env bash
# scripts/check-arrows.py is green as it is, and red when a room includes one above it or two files need each other.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

root=$(cd "$(dirname "$0")/../.." && pwd)

fresh() { # a copy of the sources to break
    rm -rf "${scratch:?}"/*
    mkdir -p "$scratch/bench" "$scratch/docs/dev"
    cp "$root/docs/dev/architecture.md" "$scratch/docs/dev"
    cp -r "$root/src" "$root/include" "$scratch"
    cp -r "$root/bench/meshcoll-bench" "$scratch/bench"
}

is_red() { # is_red <words of its output…>
    local out
    if out=$(python3 "$root/scripts/check-arrows.py" "$scratch"); then
        fail "green: $1 was put in"
    fi
    for word in "$@"; do
        grep -qF -- "$word" <<<"$out" || fail "'$word' is not in: $out"
    done
}

fresh
python3 "$root/scripts/check-arrows.py" "$scratch" >/dev/null || fail "red as it is"

echo '#include "runtime/handle/handle.h"' >>"$scratch/src/runtime/element/kernels.c"
is_red "src/runtime/element/kernels.c" "runtime/element/ may include base, base/system; not runtime/handle/"

fresh
echo '#include <mpi.h>' >>"$scratch/src/ring/ring.c"
is_red "src/ring/ring.c" "no mpi.h there"

# by call: two sources use each other's functions
fresh
printf 'int mc_one(void);\nint mc_other(void)\n{\n    return mc_one();\n}\n' >"$scratch/src/base/other.c"
printf 'int mc_other(void);\nint mc_one(void)\n{\n    return mc_other();\n}\n' >"$scratch/src/base/one.c"
is_red "a circle" "src/base/one.c needs src/base/other.c (mc_other)" "src/base/other.c needs src/base/one.c (mc_one)"

# by include, around
fresh
echo '#include "base/b.h"' >"$scratch/src/base/a.h"
echo '#include "base/c.h"' >"$scratch/src/base/b.h"
echo '#include "base/a.h"' >"$scratch/src/base/c.h"
is_red "a circle" "src/base/a.h needs src/base/b.h (#include)" "src/base/c.h needs src/base/a.h (#include)"

# an inline function in a header needs what it calls
fresh
printf 'int mc_low(void);\nstatic inline int mc_high(void)\n{\n    return mc_low();\n}\n' >"$scratch/src/base/high.h"
printf '#include "base/high.h"\nint mc_low(void)\n{\n    return mc_high();\n}\n' >"$scratch/src/base/low.c"
is_red "a circle" "src/base/high.h needs src/base/low.c (mc_low)"

# the way of a call: a function that is elsewhere, and one that nothing above it calls
fresh
sed -i 's/^    mc_cache_serve  *call/    mc_cache_serve  bind/' "$scratch/docs/dev/architecture.md"
is_red "bind/ does not define mc_cache_serve"
fresh
sed -i 's/mc_cache_serve(/mc_cache_give(/' "$scratch/src/runtime/call/start.c"
is_red "nothing in src/runtime/call/start.c calls mc_cache_serve"

# names of files and of types
fresh
echo '#include "base/base.h"' >"$scratch/src/mesh/arena.h"
printf 'typedef struct {\n    int x;\n} mc_arena_t;\n' >"$scratch/src/mesh/other.h"
is_red "arena.h is the name of 3, in src/base/arena.h, src/gpu/mesh/arena.h, src/mesh/arena.h" "mc_arena_t is the name of 2"

# a room that nobody knows
fresh
mkdir "$scratch/src/cellar"
echo 'int mc_cellar;' >"$scratch/src/cellar/cellar.c"
is_red "src/cellar is no known room"

finish
