#!/usr/bin/env bash
# instructions.sh [PROGRAM]: instructions per operation of 8 bytes and rank, by part of the library,
# under callgrind; the numbers are the same each time. PROGRAM: build/release/meshcoll-bench-own.
# --functions MESH COLLECTIVE: of one row, function by function.
set -euo pipefail

program=build/release/meshcoll-bench-own
[[ ${1:-} == --* || -z ${1:-} ]] || { program=$1; shift; }
command -v valgrind callgrind_annotate >/dev/null || {
    echo "instructions.sh: valgrind is missing; apt install valgrind" >&2
    exit 77
}
[[ -x $program ]] || { echo "instructions.sh: there is no $program; build it first" >&2; exit 2; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Self cost by function, between the first and the last operation only. Twice as many operations less
# once as many: what the first run takes on top (memory, connections) is left out.
count() { # MESH COLLECTIVE OPERATIONS
    valgrind --tool=callgrind --callgrind-out-file="$out/cg" --toggle-collect='own_*' \
        "$program" -n "$3" --mesh "$1" --collective "$2" >/dev/null 2>"$out/err" || {
        cat "$out/err" >&2
        exit 1
    }
    callgrind_annotate --threshold=100 "$out/cg" |
        sed -nE 's/^ *([0-9,]+) \([ 0-9.]+%\) +.*:([A-Za-z_0-9.'"'"'@]+)( \[.*)?$/\1 \2/p' |
        tr -d , | sed -E "s/'[0-9]+//"
}

row() { # MESH COLLECTIVE RANKS
    count "$1" "$2" 200 >"$out/once"
    count "$1" "$2" 400 >"$out/twice"
    awk -v ranks="$3" -v mesh="$1" -v collective="$2" -v functions="${functions:-}" '
        function part(f) {
            if (f ~ /^(inproc_|add_half|take_spare|mc_hash_|move_bytes|settle)/) return "transport"
            if (f ~ /^own_|^mc_now|clock_gettime|^check$/) return "bench"
            return "library"
        }
        NR == FNR { once[$2] += $1; next }
        { twice[$2] += $1 }
        END {
            for (f in twice) {
                n = (twice[f] - once[f]) / 200 / ranks
                sum[part(f)] += n
                if (functions && n >= 0.5) printf "%10.1f  %-10s %s\n", n, part(f), f | "sort -rn"
            }
            close("sort -rn")
            printf "%-10s %-10s %10.0f %10.0f\n", mesh, collective, sum["library"], sum["transport"]
        }' "$out/once" "$out/twice"
}

ranks() { # of a mesh "x=4,y=4"
    local n=1 extent
    for extent in ${1//[^0-9]/ }; do n=$((n * extent)); done
    echo "$n"
}

if [[ ${1:-} == --functions ]]; then
    functions=1 row "$2" "$3" "$(ranks "$2")"
    exit
fi
printf '%-10s %-10s %10s %10s   instructions per operation and rank\n' mesh collective library transport
for collective in blocking in-turn fresh; do row x=1 "$collective" 1; done
for collective in allreduce bcast; do
    for mesh in x=2 x=4 x=8 x=4,y=4; do
        row "$mesh" "$collective" "$(ranks "$mesh")"
    done
done
