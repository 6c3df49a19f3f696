#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-shell.sh [--rows=300000] [--pairs=11]
#
# ipcq-cli beside sqlite3 on the same file: whole processes that write a table of 31 columns to /dev/null, as CSV and as
# JSON, in turn. Prints for each mode the medians, and the median of the pairs' ratios: below 1 ipcq-cli was faster. Builds
# a release, and starts a private bus with the daemon on it, as another user where you are root; stops both.
#
# Exit code: 0 measured, 1 something failed, 2 wrong usage.
# shellcheck disable=SC2154 # bench-setup.sh sets folder, bench and build
set -eu
cd "$(dirname "$0")/.."
. tools/bench-setup.sh

rows=300000 pairs=11
for argument; do
    case $argument in
    --rows=[1-9]*) rows=${argument#*=} ;;
    --pairs=[1-9]*) pairs=${argument#*=} ;;
    *) sed -n '4,10s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done

# seconds COMMAND...: of the wall clock, that it takes
seconds() {
    local start=$EPOCHREALTIME
    "$@" >/dev/null
    awk -v start="$start" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.4f\n", end - start }'
}

# median COLUMN FILE
median() {
    cut -d ' ' -f "$1" "$2" | sort -g |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

command -v sqlite3 >/dev/null || { echo "bench-shell: needs sqlite3, the shell" >&2 && exit 1; }
tools/install-dependencies.sh demo
build_release
make_bench_folder
mkdir "$folder/data"
"$bench" dataset --quiet --rows="$rows" "$folder/data/study.sqlite"
publish_datasets
start_daemon

cli=$build/tools/cli/ipcq-cli
sql='SELECT * FROM study'
for mode in csv json; do
    "$cli" --user --mode="$mode" study "$sql" >/dev/null # the service runs, the file is read
    sqlite3 -"$mode" "$folder/data/study.sqlite" "$sql" >/dev/null
    for ((i = 0; i < pairs; i++)); do
        ours=$(seconds "$cli" --user --mode="$mode" study "$sql")
        theirs=$(seconds sqlite3 -"$mode" "$folder/data/study.sqlite" "$sql")
        echo "$ours $theirs $(awk -v a="$ours" -v b="$theirs" 'BEGIN { print a / b }')"
    done >"$folder/$mode"
    printf '%-5s ipcq-cli %.3f s  sqlite3 %.3f s  ratio %.2f  (%d rows, %d pairs)\n' "$mode" "$(median 1 "$folder/$mode")" \
        "$(median 2 "$folder/$mode")" "$(median 3 "$folder/$mode")" "$rows" "$pairs"
done
