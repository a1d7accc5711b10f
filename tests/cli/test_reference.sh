#!/usr/bin/env bash
# The reference is whole: Doxygen has nothing to say about the public headers, and the man pages have an entry for every
# command, every option of it, every variable and every field of a link, and for nothing else.
. "$(dirname "$0")/lib.sh"

man=docs/man

# same WHAT IN_PAGE IN_PROGRAM: two lists of names are the same set.
same() {
    local lacks stale
    lacks=$(comm -13 <(sort -u <<<"$2") <(sort -u <<<"$3") | xargs)
    stale=$(comm -23 <(sort -u <<<"$2") <(sort -u <<<"$3") | xargs)
    [ -z "$lacks" ] || fail "$1: the page lacks $lacks"
    [ -z "$stale" ] || fail "$1: the page has $stale, which is not there"
}

# entries FROM TO PAGE: the options that have an entry (.It Fl) between two headings, as --name or -n.
entries() {
    awk -v from="$1" -v to="$2" 'index($0, from) == 1 { on = 1; next } on && $0 ~ to { exit } on' "$3" |
        sed -n 's/^\.It \(Fl .*\)/\1/p' | grep -oE 'Fl -?[A-Za-z-]+' | sed 's/^Fl /-/'
}

# offered: the options in the help that $out holds; those without a name of their own are left out.
offered() {
    grep -oE -- '^  (-[a-z], )?--[a-z-]+' <<<"$out" | tr -d ' ' | tr , '\n'
}

# A section for each command, in it an entry for each of its options and for no other. What commands share has one above.
shared=$(entries '.Sh DESCRIPTION' '^\.Ss' $man/meshcoll.1)
[ "$(wc -w <<<"$shared")" -ge 6 ] || fail "expected the shared options in $man/meshcoll.1, got: $shared"
run 0 --help
commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$out" | grep -vx help)
[ "$(wc -w <<<"$commands")" -ge 6 ] || fail "expected the commands in: $out"
same "commands of meshcoll.1" "$(sed -n 's/^\.Ss //p' $man/meshcoll.1)" "$commands"
everywhere=
for command in $commands; do
    run 0 "$command" --help
    everywhere+=$(offered)$'\n'
    own=$(entries ".Ss $command" '^\.S[sh]' $man/meshcoll.1)
    same "options of meshcoll $command" "$own" "$(offered | grep -vxF -e "$(comm -23 <(sort -u <<<"$shared") <(sort -u <<<"$own"))")"
    # what the help says an option takes, it takes: without it the command refuses
    for option in $(sed -nE 's/^  (--[a-z-]+) [A-Z].*/\1/p' <<<"$out"); do
        [ "$command" = tune ] || refused "$option needs a value" "$command" "$option"
    done
done
same "shared options of meshcoll.1" "$shared" "$(comm -12 <(sort -u <<<"$shared") <(sort -u <<<"$everywhere"))"

# The benchmark, where it is built.
bench=$(dirname "$MESHCOLL")/meshcoll-bench
if [ -x "$bench" ]; then
    out=$("$bench" --help)
    [ "$(offered | wc -w)" -ge 20 ] || fail "expected the options of meshcoll-bench in: $out"
    same "options of meshcoll-bench" "$(entries '.Sh DESCRIPTION' '^\.Sh' $man/meshcoll-bench.1)" "$(offered)"
fi

# Algorithms: a row for each.
run 0 list algorithms --json
same "algorithms of docs/algorithms.md" "$(sed -nE 's/^\| `([a-z_]+:[a-z-]+)` .*/\1/p' docs/algorithms.md)" \
    "$(query '"\n".join(a["collective"] + ":" + a["name"] for a in j["algorithms"])')"

# Variables: what src asks the environment for; one that ends in _ goes on with a collective's name.
same "variables of meshcoll.7" "$(sed -nE 's/^\.It Ev (MESHCOLL_[A-Z_]+).*/\1/p' $man/meshcoll.7)" \
    "$(grep -rhoE --exclude=variables.c '"MESHCOLL_[A-Z_]+"' src | tr -d '"')"
for variable in $(sed -nE 's/^\.It Ev (MESHCOLL_[A-Z]+[A-Z_]*[A-Z]).*/\1/p' $man/meshcoll.7); do
    grep -qF "\`$variable" docs/calling.md || fail "docs/calling.md does not name $variable"
done

# Fields of a link: what the library says there are, and what the grammars of both pages have, one by one.
run 2 plan bcast --mesh x=2 --bytes 1 --links x=no:1
fields=$(sed -n 's/.*a link has \(.*\), but.*/\1/p' <<<"$err" | tr -d ',' | sed 's/ and / /' | tr ' ' '\n')
[ "$(wc -w <<<"$fields")" -ge 11 ] || fail "expected the fields of a link in: $err"
for page in $man/meshcoll.7 docs/links.md; do
    same "fields of a link in $page" \
        "$(sed -n '/^field  *= /,/^table/p' $page | grep -oE '"[a-z]+:"' | tr -d '":')" "$fields"
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
