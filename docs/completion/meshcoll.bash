# bash completion for meshcoll: commands, collectives and options, as the command's own help names them.
_meshcoll() {
    local current=${COMP_WORDS[COMP_CWORD]} help words=""
    if ((COMP_CWORD == 1)) || [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == help ]]; then
        words=$("${COMP_WORDS[0]}" help 2>/dev/null | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
    else
        help=$("${COMP_WORDS[0]}" "${COMP_WORDS[1]}" --help 2>/dev/null)
        if [[ $current == -* ]]; then
            words=$(sed -n '/^options:/,/^$/s/^  \(-., \)*\(--[a-z-]*\).*/\2/p' <<<"$help")
        elif [[ $COMP_CWORD -eq 2 && $help == *COLLECTIVE* ]]; then
            words=$("${COMP_WORDS[0]}" list collectives 2>/dev/null | sed -n '/^  collective /,/^$/{/^  collective /d;s/^  \([a-z_]*\) .*/\1/p;}')
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _meshcoll meshcoll
