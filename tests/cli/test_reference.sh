#!/usr/bin/env bash
# The reference is whole: Doxygen has nothing to say about the public headers, and the man pages name every
# command, every option and every variable.
. "$(dirname "$0")/lib.sh"

man=docs/man

# named TEXT FILE…: a man page says TEXT, as a whole word.
named() {
    local text=$1
    shift
    grep -Eq -- "(^|[^A-Za-z0-9_-])$text([^A-Za-z0-9_-]|\$)" "$@" || fail "no word of '$text' in $*"
}

# Commands with their options; in mdoc --json is "Fl -json".
run 0 --help
commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$out")
[ "$(wc -w <<<"$commands")" -ge 8 ] || fail "expected the commands in: $out"
for command in $commands; do
    named "Cm $command" $man/meshcoll.1
    [ "$command" = help ] && continue
    run 0 "$command" --help
    for option in $(grep -o '^  --[a-z-]*' <<<"$out"); do
        named "Fl ${option#-}" $man/meshcoll.1
    done
done
# Those of the benchmark, where it is built.
bench=$(dirname "$MESHCOLL")/meshcoll-bench
options=
if [ -x "$bench" ]; then
    options=$("$bench" --help | grep -oE -- '^  (-[a-z], )?--[a-z-]+' | tr -d ,)
    [ "$(wc -w <<<"$options")" -ge 20 ] || fail "expected the options of meshcoll-bench, got: $options"
fi
for option in $options; do
    named "Fl ${option#-}" $man/meshcoll-bench.1
done

# Variables: what src asks the environment for; one that ends in _ goes on with a collective's name.
variables=$(grep -rhoE '(given|getenv|name\[[0-9]+\] =) ?\(?"MESHCOLL_[A-Z_]+"' src |
    grep -oE 'MESHCOLL_[A-Z_]+' | sort -u)
[ "$(wc -w <<<"$variables")" -ge 8 ] || fail "expected the variables of src, got: $variables"
for variable in $variables; do
    named "Ev $variable" $man/meshcoll.7
done

# Fields of a link: what the library says there are.
run 2 plan bcast --mesh x=2 --bytes 1 --links x=no:1
fields=$(sed -n 's/.*a link has \(.*\), but.*/\1/p' <<<"$err" | tr -d ',' | sed 's/ and / /')
[ "$(wc -w <<<"$fields")" -ge 11 ] || fail "expected the fields of a link in: $err"
for field in $fields; do
    named "$field:" $man/meshcoll.7
    named "$field:" docs/links.md
done

# Pages are right by whoever can judge; mdoc's strict reader first.
for page in "$man"/*.[17]; do
    if command -v mandoc >/dev/null; then
        said=$(mandoc -T lint -W warning "$page" 2>&1)
    elif command -v groff >/dev/null; then
        said=$(groff -mdoc -ww -Tascii -z "$page" 2>&1)
    else
        said=
    fi
    [ -z "$said" ] || fail "$said"
done

if ! command -v doxygen >/dev/null; then
    [ $failures -eq 0 ] || finish
    echo "skipped: doxygen is not installed, so the headers' comments were not judged"
    exit 77
fi
{ cat docs/Doxyfile && echo "OUTPUT_DIRECTORY = $scratch/reference"; } >"$scratch/Doxyfile"
said=$(doxygen "$scratch/Doxyfile" 2>&1) || fail "doxygen: exit status $?"
[ -z "$said" ] || fail "doxygen: $said"
page=$scratch/reference/html/meshcoll_8h.html
grep -q 'the mesh does not fit' "$page" || fail "no text of ERR_MESH in the reference"
finish
