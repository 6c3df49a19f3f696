# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Completion of ipcq-cli in bash. Options, their values and modes are those that --help shows, commands those of .help, so a new
# one needs nothing here; databases, and the tables at the end of the SQL, are the service's, which the bus may start for that.
# What does not answer in two seconds completes nothing, and another machine is not asked, since ssh may want a password.

_ipcq_cli_ask() {
    [ -n "$elsewhere" ] || timeout 2 ipcq-cli --mode=tsv "$@" </dev/null 2>/dev/null
}

# Reads --help: `options` as they stand there, "--mode=" where a value follows; `takes` and `says`, by option, are the name of
# its value, and its sentence.
_ipcq_cli_options() {
    local line name
    while IFS= read -r line; do
        [[ $line =~ ^\ \ (-([A-Za-z0-9]),\ )?(--[a-z-]+)(=([^ ]+))?\ +(.*)$ ]] || continue
        options+=("${BASH_REMATCH[3]}${BASH_REMATCH[4]:+=}")
        for name in "${BASH_REMATCH[3]}" ${BASH_REMATCH[2]:+"-${BASH_REMATCH[2]}"}; do
            takes[$name]=${BASH_REMATCH[5]}
            says[$name]=${BASH_REMATCH[6]}
        done
    done < <(ipcq-cli --help 2>/dev/null)
}

_ipcq_cli_modes() {
    ipcq-cli --help 2>/dev/null | sed -nE '/^Modes:/,/^$/s/^  ([a-z]+) .*/\1/p'
}

# The value of option $1 that begins with $2.
_ipcq_cli_value() {
    case ${takes[$1]} in
    MODE) mapfile -t COMPREPLY < <(compgen -W "$(_ipcq_cli_modes)" -- "$2") ;;
    FILE) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    USER@HOST) mapfile -t COMPREPLY < <(compgen -A hostname -- "${2#@}") ;;
    SQL) _ipcq_cli_sql "$2" ;;
    *) # "How rows come: auto, pipe, channel, dbus"
        [[ ${says[$1]} =~ :\ ([a-z]+(, [a-z]+)+)$ ]] || return 0
        mapfile -t COMPREPLY < <(compgen -W "${BASH_REMATCH[1]//,/}" -- "$2")
        ;;
    esac
}

# The names of tables and views, one a line.
_ipcq_cli_ask_tables() {
    _ipcq_cli_ask "${bus[@]}" "$database" "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')
        AND name GLOB '[A-Za-z_]*' AND name NOT GLOB '*[^A-Za-z0-9_]*'" | tail -n +2
}

# The last word of the SQL under the cursor is completed, and what stands before it is kept; or a command.
_ipcq_cli_sql() {
    local sql=$1 before last table
    sql=${sql#[\"\']}
    [[ $sql == "$1" || $sql != *"${1:0:1}" ]] || return 0 # the quote is closed: there is nothing more to say
    if [[ $sql == .* && $sql != *[[:space:]]* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(ipcq-cli -c .help 2>/dev/null | sed -nE 's/^ *(\.[a-z]+).*/\1/p')" -- "$sql")
        return
    fi
    last=${sql##*[!A-Za-z0-9_]}
    before=${sql%"$last"}
    [ -n "$before" ] && [ -n "$database" ] || return 0
    while read -r table; do
        [[ $table == "$last"* ]] && COMPREPLY+=("$before$table")
    done < <(_ipcq_cli_ask_tables)
    compopt -o nospace
}

# The words of the line up to the cursor, which bash has broken at "=", ":" and "@" as well.
_ipcq_cli_words() {
    local rest=${COMP_LINE:0:COMP_POINT} i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        [[ $i != 0 && $rest != [[:space:]]* ]] || words+=('')
        rest=${rest#"${rest%%[![:space:]]*}"}
        words[-1]+=${COMP_WORDS[i]}
        rest=${rest#"${COMP_WORDS[i]}"}
    done
}

_ipcq_cli() {
    local piece=${COMP_WORDS[COMP_CWORD]} word database='' option='' elsewhere='' waits='' i
    local -a words=() bus=() options=()
    local -A takes=() says=()
    _ipcq_cli_words
    _ipcq_cli_options
    word=${words[-1]}
    [[ $piece == = ]] && piece=''
    COMPREPLY=()

    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        option=''
        case ${words[i]} in
        --system | --user | --address=*) bus+=("${words[i]}") ;;
        --host | --host=* | -H*) elsewhere=yes ;;&
        --wait) waits=yes ;;
        -*)
            [ -n "${takes[${words[i]}]}" ] || continue
            option=${words[i]}
            ((i++))
            [ "$option" != --address ] || bus+=("--address=${words[i]}")
            ;;
        *) [ -n "$database" ] || database=${words[i]} ;;
        esac
    done

    if [ -n "$option" ] && ((i == ${#words[@]})); then # its value is the word under the cursor
        _ipcq_cli_value "$option" "$piece"
    elif [[ $word == --*=* ]]; then
        _ipcq_cli_value "${word%%=*}" "$piece"
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${options[*]}" -- "$word")
        [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
    elif [ -n "$database" ] && [ -n "$waits" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_ipcq_cli_ask_tables)" -- "$piece")
    elif [ -n "$database" ]; then
        _ipcq_cli_sql "$piece"
    else
        mapfile -t COMPREPLY < <(compgen -W "$(_ipcq_cli_ask "${bus[@]}" --list | tail -n +2 | cut -f1)" -- "$piece")
    fi
}

complete -F _ipcq_cli ipcq-cli
