# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Completion of ipcq-cli in bash. Options and modes are those that --help shows, so a new one needs nothing here; databases,
# and the tables at the end of the SQL, are the service's, which the bus may start for that. What does not answer in two
# seconds completes nothing.

_ipcq_cli_ask() {
    timeout 2 ipcq-cli --mode=tabs "$@" 2>/dev/null | tail -n +2
}

# Options as --help shows them, "--mode=" where a value follows.
_ipcq_cli_options() {
    ipcq-cli --help 2>/dev/null | sed -nE 's/^  (-[a-z], )?(--[a-z-]+=?).*/\2/p'
}

_ipcq_cli_modes() {
    ipcq-cli --help 2>/dev/null | sed -nE '/^Modes:/,/^$/s/^  ([a-z]+) .*/\1/p'
}

# Tables and views of database $1, as a word of SQL.
_ipcq_cli_tables() {
    local database=$1
    shift
    _ipcq_cli_ask "$@" "$database" "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')
        AND name GLOB '[A-Za-z_]*' AND name NOT GLOB '*[^A-Za-z0-9_]*'"
}

# The last word of the SQL under the cursor is completed, and what stands before it is kept.
_ipcq_cli_sql() {
    local sql=$1 database=$2 before last table
    shift 2
    sql=${sql#[\"\']}
    last=${sql##*[!A-Za-z0-9_]}
    before=${sql%"$last"}
    [ -n "$before" ] || return 0
    while read -r table; do
        [[ $table == "$last"* ]] && COMPREPLY+=("$before$table")
    done < <(_ipcq_cli_tables "$database" "$@")
    compopt -o nospace
}

_ipcq_cli() {
    # bash breaks words at "=" and ":" as well: what is completed is the piece, what was said before are whole words
    local piece=${COMP_WORDS[COMP_CWORD]} line=${COMP_LINE:0:COMP_POINT} word database='' option='' i
    local -a words bus=()
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    word=${words[-1]}
    [[ $piece == = ]] && piece=''
    COMPREPLY=()

    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        option=''
        case ${words[i]} in
        --system | --user | --address=*) bus+=("${words[i]}") ;;
        --address)
            bus+=("--address=${words[i + 1]}")
            ((i++))
            ;;
        --mode | -m | --parameter | -p | --null)
            option=${words[i]}
            ((i++))
            ;;
        -*) ;;
        *) # what follows the database is SQL, of any number of words
            database=${words[i]}
            break
            ;;
        esac
    done

    if [ -n "$database" ]; then
        _ipcq_cli_sql "$piece" "$database" "${bus[@]}"
    elif [[ $option == --mode || $option == -m ]] && ((i == ${#words[@]})) || [[ $word == --mode=* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_ipcq_cli_modes)" -- "$piece")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_ipcq_cli_options)" -- "$word")
        [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
    elif [ -z "$option" ] || ((i < ${#words[@]})); then
        mapfile -t COMPREPLY < <(compgen -W "$(_ipcq_cli_ask "${bus[@]}" --list | cut -f1)" -- "$piece")
    fi
}

complete -F _ipcq_cli ipcq-cli
