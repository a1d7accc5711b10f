#!/usr/bin/env bash
# Each public header compiles alone, in the oldest and the newest languages that programs are written in.
. "$(dirname "$0")/lib.sh"

# compiles HEADER COMPILER SUFFIX STANDARD…
compiles() {
    local header=$1 compiler=$2 suffix=$3 standard
    shift 3
    echo "#include <meshcoll/$header>" >"$scratch/header.$suffix"
    for standard in "$@"; do
        "$compiler" -std="$standard" -pedantic-errors -Wall -Wextra -Werror -Iinclude "${mpi[@]}" -fsyntax-only \
            "$scratch/header.$suffix" 2>"$scratch/log" || fail "$header, $standard: $(grep -m 1 error "$scratch/log")"
    done
}

cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || echo "without C++: there is no $cxx"
for path in include/meshcoll/*.h; do
    mpi=()
    if [ "$path" = include/meshcoll/mpi.h ]; then # MPI's own header comes as one of the system
        command -v mpicc >/dev/null || continue
        for word in $(mpicc -showme:compile 2>/dev/null || true); do
            [[ $word == -I* ]] && mpi+=(-isystem "${word#-I}")
        done
        [ ${#mpi[@]} -gt 0 ] || continue
    fi
    compiles "${path##*/}" "${CC:-cc}" c c89 c99 c11
    command -v "$cxx" >/dev/null && compiles "${path##*/}" "$cxx" cpp c++98 c++20
done

exit $((failures > 0))
