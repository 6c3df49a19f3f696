# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Completion of sqlipcctl in bash. Verbs and options are those that --help shows, so a new one needs nothing here; names and
# numbers are the service's, which the bus may start for that. What does not answer in two seconds completes nothing.

_sqlipcctl_ask() {
    timeout 2 sqlipcctl "$@" 2>/dev/null
}

# Options as --help shows them, "--delay=" where a value follows.
_sqlipcctl_options() {
    sqlipcctl "$@" --help 2>/dev/null | sed -nE 's/^  (-[a-zA-Z], )?(--[a-z-]+=?).*/\2/p'
}

_sqlipcctl_verbs() {
    sqlipcctl --help 2>/dev/null | sed -nE '/^Verbs:/,/^$/s/^  ([a-z]+) .*/\1/p'
}

# The value of option $1 that begins with $2.
_sqlipcctl_value() {
    case $1 in
    --config-dir) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    --schema | --to | --queries) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    --allow-user | --write-user | --service-user) mapfile -t COMPREPLY < <(compgen -u -- "$2") ;;
    --json) mapfile -t COMPREPLY < <(compgen -W 'pretty short off' -- "$2") ;;
    --mode) mapfile -t COMPREPLY < <(compgen -W 'read-only read-write' -- "$2") ;;
    --host | -H) mapfile -t COMPREPLY < <(compgen -A hostname -- "$2") ;;
    --allow-group | --write-group) mapfile -t COMPREPLY < <(compgen -g -- "$2") ;;
    --sort | -s)
        mapfile -t COMPREPLY < <(compgen -W 'bytes rows runs parked queued statements channels total' -- "$2")
        ;;
    esac
}

# Word $2 of verb $1, from 1, that begins with $3; the rest of the arguments say which bus.
_sqlipcctl_word() {
    local verb=$1 number=$2 begin=$3
    shift 3
    case $verb,$number in
    status,1 | security,1 | cat,1 | edit,1 | remove,1 | backup,1 | vacuum,1 | integrity,1 | migrate,1)
        mapfile -t COMPREPLY < <(compgen -W "$(_sqlipcctl_ask "$@" list --no-legend | cut -d' ' -f1)" -- "$begin")
        ;;
    cancel,*)
        mapfile -t COMPREPLY < <(compgen -W "$(_sqlipcctl_ask "$@" runs --no-legend | cut -d' ' -f1)" -- "$begin")
        ;;
    check,1 | add,2 | create,2 | backup,2) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$begin") ;;
    esac
}

_sqlipcctl() {
    # bash breaks words at "=" and ":" as well: what is completed is the piece, what was said before are whole words
    local piece=${COMP_WORDS[COMP_CWORD]} line=${COMP_LINE:0:COMP_POINT} word verb='' option='' elsewhere='' i n=0
    local -a words bus=()
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    word=${words[-1]}
    [[ $piece == = ]] && piece=''
    COMPREPLY=()

    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        option=''
        case ${words[i]} in
        --system | --user | --address=* | --config-dir=*) bus+=("${words[i]}") ;;
        --host=* | --machine=* | -H?* | -M?*) elsewhere=yes ;;
        --host | --machine | -H | -M)
            option=${words[i]} elsewhere=yes
            ((i++))
            ;;
        --address | --config-dir)
            option=${words[i]}
            bus+=("$option=${words[i + 1]}")
            ((i++))
            ;;
        --allow-user | --allow-group | --expose | --description | --service-user | --to | --queries | --type | --delay | -d | --count | -n | --sort | -s)
            option=${words[i]}
            ((i++))
            ;;
        -*) ;;
        *) if [ -z "$verb" ]; then verb=${words[i]}; else ((n++)); fi ;;
        esac
    done

    if [[ $word == --*=* ]]; then
        _sqlipcctl_value "${word%%=*}" "$piece"
    elif [ -n "$option" ] && ((i == ${#words[@]})); then # its value is the word under the cursor
        _sqlipcctl_value "$option" "$piece"
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_sqlipcctl_options ${verb:+"$verb"})" -- "$word")
        [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
    elif [ -z "$verb" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_sqlipcctl_verbs)" -- "$word")
    elif [ -z "$elsewhere" ]; then # of another machine nothing is asked: ssh might want a password
        _sqlipcctl_word "$verb" $((n + 1)) "$piece" "${bus[@]}"
    fi
}

complete -F _sqlipcctl sqlipcctl
