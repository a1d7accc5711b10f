#!/usr/bin/env bash
# Completion offers each command, each option of each command as its help has it, and the collectives.
. "$(dirname "$0")/lib.sh"

PATH=$(dirname "$MESHCOLL"):$PATH
. docs/completion/meshcoll.bash

# offers WORD…: what completion offers behind `meshcoll WORD…`, on one line, sorted.
offers() {
    COMP_WORDS=(meshcoll "$@")
    COMP_CWORD=$#
    _meshcoll
    printf '%s\n' "${COMPREPLY[@]}" | sort | xargs
}

same() {
    [ "$1" = "$2" ] || fail "offered: $1"$'\n'"expected: $2"
}

# main.c says what is expected where there is no such command; options.c, where there is no such option.
run 2 no-such-command
commands=$(sed 's/.*expected one of //; s/,//g' <<<"$err" | tr ' ' '\n' | sort | xargs)
[[ $commands == *plan*trace* ]] || fail "which commands? $err"
same "$(offers "")" "$commands"
same "$(offers help "")" "$commands"
same "$(offers pl)" "plan"
for command in $commands; do
    [ "$command" = help ] && continue
    run 2 "$command" --no-such-option
    options=$(sed 's/.*expected one of //; s/,//g' <<<"$err" | tr ' ' '\n' | sort | xargs)
    [[ $options == *--help* ]] || fail "which options has $command? $err"
    same "$(offers "$command" --)" "$options"
done
same "$(offers plan all)" "allgather allreduce alltoall"
same "$(offers plan "")" "allgather allreduce alltoall bcast gather reduce reduce_scatter scatter"
same "$(offers list "")" ""

if command -v zsh >/dev/null; then
    got=$(zsh -fc 'compadd() { print -l -- $found }; _files() { print files }
        words=(meshcoll "") CURRENT=2; source docs/completion/_meshcoll' | sort | xargs)
    same "$got" "$commands"
    got=$(zsh -fc 'compadd() { print -l -- $found }; words=(meshcoll plan -) CURRENT=3 PREFIX=-; source docs/completion/_meshcoll')
    [[ $got == *--mesh*--bytes* ]] || fail "zsh is offered: $got"
    got=$(zsh -fc 'compadd() { print -l -- $found }; words=(meshcoll plan "") CURRENT=3 PREFIX=; source docs/completion/_meshcoll' | sort | xargs)
    same "$got" "$(offers plan "")"
fi
finish
