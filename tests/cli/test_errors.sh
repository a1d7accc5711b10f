#!/usr/bin/env bash
# What does not fit is refused: exit status 2 and one line that says what was expected.
. "$(dirname "$0")/lib.sh"

bcast=(plan bcast --mesh box=4,gpu=8)
ring=(trace allreduce --mesh x=4 --strategy allreduce:ring)

refused "expected one of plan, trace, verify, count, list, topo, run, overlay, simulate, status, tune, export, help" nonsense
refused "there is no command 'nonsense'" help nonsense
# A slip is told with what was meant: of commands, options, collectives, strategies, algorithms and presets of links.
refused "there is no command 'paln': did you mean plan?" paln
refused "there is no option '--mehs=4': did you mean --mesh?" plan bcast --mehs=4
refused "there is no collective 'bcats': did you mean bcast?" plan bcats --mesh x=4 --bytes 1
refused "bcast has no strategy named 'flat-rign': did you mean flat-ring?" "${bcast[@]}" --bytes 1K --strategy flat-rign
refused "no strategy named 'option9'; named ones: option1" "${bcast[@]}" --bytes 1K --strategy option9 # which one is not known
refused "bcast has no algorithm 'mts': did you mean mst?" "${bcast[@]}" --bytes 1K --strategy "bcast:mts(box)"
refused "there is no link preset 'dgx-h10': did you mean dgx-h100?" "${bcast[@]}" --bytes 1K --links dgx-h10
refused "there are more than 3 extents without names" plan bcast --mesh 2x2x2x2 --bytes 1K

refused "which collective? expected one of bcast, reduce" plan --mesh x=4 --bytes 1K
refused "there is no collective 'allsum'; expected one of bcast" plan allsum --mesh x=4 --bytes 1
refused "--mesh is missing" plan bcast --bytes 1K
refused "as in box=4,gpu=8" plan bcast --mesh 4x8x --bytes 1K
refused "as in box=4,gpu=8" plan bcast --mesh box=0 --bytes 1K
refused "as in box=4,gpu=8" plan bcast --mesh "x=4
y=2" --bytes 1K
refused "a mesh has at most 2^22 = 4194304 ranks" plan reduce --mesh gpu=1000,x=3,y=4,numa=65536 --bytes 1
refused "a mesh has at most 2^22 = 4194304 ranks" plan allreduce --mesh a=2147483647 --bytes 1
refused "beta of a link is 0, or from 1e-30 to 1000 seconds a byte; got '1e305s/B'" \
    plan bcast --mesh gpu=4 --bytes 1 --links "gpu=alpha:1us;beta:1e305s/B"
refused "4194304 ranks are too many to follow" verify allreduce --mesh a=2048,b=2048
refused "65536 ranks with 65536 chunks each are too many" verify allreduce --mesh a=65536 --strategy "allreduce:ring(a)"
refused "too many to show" trace allreduce --mesh a=4194304 --strategy "allreduce:ring(a)"
refused "--bytes is missing" "${bcast[@]}"
refused "a number and optionally K, M, G or T" "${bcast[@]}" --bytes lots
refused "a number and optionally K, M, G or T" "${bcast[@]}" --bytes -1
refused "--bytes needs a value" "${bcast[@]}" --bytes
refused "there is no option '--byte-count'; expected one of --mesh, --bytes" "${bcast[@]}" --byte-count 3
refused "there is no option '-x'" "${bcast[@]}" -x
refused "one argument too many" "${bcast[@]}" reduce --bytes 1K
refused "--top takes a number from 1" "${bcast[@]}" --bytes 1K --top 0
refused "--top takes a number from 1" "${bcast[@]}" --bytes 1K --top ten
refused "--max-segments takes a power of two, as in 64; got '3'" "${bcast[@]}" --bytes 1K --max-segments 3
refused "--max-segments takes a number from 1 to 32768" "${bcast[@]}" --bytes 1K --max-segments 65536
refused "--root takes a rank from 0 to 31; got '32'" "${bcast[@]}" --bytes 1K --root 32
refused "--root takes a rank from 0 to 31; got '-1'" "${bcast[@]}" --bytes 1K --root -1
refused "allreduce has no root" plan allreduce --mesh x=4 --bytes 1K --root 1
refused "no strategy named 'option9'" "${bcast[@]}" --bytes 1K --strategy option9
refused "has no algorithm 'rings'" "${bcast[@]}" --bytes 1K --strategy "bcast:rings(box)"
refused "is not a dimension of mesh box=4,gpu=8" "${bcast[@]}" --bytes 1K --strategy "bcast:mst(rack)"
refused "must end with gpu in state replica" "${bcast[@]}" --bytes 1K --strategy "bcast:mst(box)"
refused "" "${bcast[@]}" --bytes 1K --links no-such-links
refused "two sizes, as in 1K..64M" "${bcast[@]}" --sweep 1K
refused "to a larger one" "${bcast[@]}" --sweep 1M..1K
refused "--sweep goes without --bytes" "${bcast[@]}" --sweep 1K..1M --bytes 3

refused "--strategy is missing" trace allreduce --mesh x=4
refused "--rank goes with --explain" "${ring[@]}" --rank 1
refused "--rank takes a rank from 0 to 3" "${ring[@]}" --explain --rank 4
refused "got '1-2,2'" "${ring[@]}" --explain --rank 1-2,2
refused "--timeline takes a run's file" trace --timeline run.json
refused "--timeline takes a run's file" "${ring[@]}" --timeline run.json --svg run.svg
refused "--during goes with --timeline" "${ring[@]}" --during 1ms-2ms
refused "expected a timeline that meshcoll-bench" trace --timeline /nowhere/run.json --svg run.svg
refused "--width takes a number" "${ring[@]}" --width 3

refused "expected either --mesh MESH" verify
refused "--all goes without --mesh" verify --all --mesh x=4
refused "--strategy goes with a collective" verify --mesh x=4 --strategy bcast:mst
refused "--root goes with a collective" verify --all --root 3
refused "--dims takes 1, 2 and 3" verify --all --dims 4
refused "--dims takes 1, 2 and 3" verify --all --dims 1,
refused "as in box=4,gpu=8" verify --all --large 32y32
refused "--root takes a rank" verify bcast --mesh x=4 --root some

refused "--ranks takes a number from 2" count --ranks 1
refused "leave one of them out" count --ranks 4 --mesh x=4
refused "--mesh takes one of 2 to 512 ranks; x=1 has 1" count --mesh x=1
refused "--mesh takes one of 2 to 512 ranks" count --mesh x=32,y=32
refused "--bytes: a size is a number" count --bytes much
refused "one argument too many" count 8
refused "there is no list of 'presets'" list presets

# Without arguments: how it is used, and not successful.
run 2
[[ $err == *"usage: meshcoll COMMAND"* ]] || fail "no usage in: $err"

# Help is no error, for each command.
run 0 --help
for command in plan trace verify count list topo run overlay simulate status tune export; do
    has "$command "
    run 0 help $command
    has "examples:"
    help=$out
    run 0 $command --help
    [ "$out" = "$help" ] || fail "help $command and $command --help differ"
    run 0 --help
done
run 0 --version
[[ $out =~ ^meshcoll\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "a strange version: $out"

# A full disk is told.
if [ -w /dev/full ]; then
    got=0
    "$MESHCOLL" plan bcast --mesh box=2 --bytes 1K --json >/dev/full 2>"$scratch/err" || got=$?
    [ "$got $(wc -l <"$scratch/err")" = "1 1" ] || fail "JSON on a full disk: $got, $(cat "$scratch/err")"
    got=0
    "$MESHCOLL" list >/dev/full 2>/dev/null || got=$?
    [ $got -eq 1 ] || fail "a full disk: exit status $got, expected 1"
fi
# Files on a full disk stay as they were.
mkdir "$scratch/full"
if unshare -m mount -t tmpfs none "$scratch/full" 2>/dev/null; then
    for writer in "export allreduce --mesh x=64 --bytes 1M --format goal --output" "topo --mesh box=8,gpu=8 --svg" \
        "simulate bcast --mesh box=4,gpu=4 --bytes 1M --svg" "simulate allreduce --mesh x=64 --bytes 1M --trace" \
        "trace bcast --mesh box=4,gpu=4 --strategy option2 --svg"; do
        # shellcheck disable=SC2086
        got=$(unshare -m bash -c 'mount -t tmpfs -o size=8k none "$1"; echo kept >"$1/file"
            "${@:2}" "$1/file" >/dev/null; echo $?; cat "$1/file"; ls -A "$1"' full "$scratch/full" "$MESHCOLL" $writer \
            2>"$scratch/err" | xargs)
        [ "$got" = "1 kept file" ] && grep -q "file cannot be written: No space left" "$scratch/err" ||
            fail "$writer on a full disk: $got, $(cat "$scratch/err")"
    done
fi
finish
