#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-shell.sh [--rows=300000] [--pairs=11]
#
# Compares ipcq-cli with sqlite3 on the same file: the time from the start to the prompt; whole processes that write a table
# of 31 columns to /dev/null, as CSV and as JSON, in turn, and that import it from CSV; and the highest memory use of
# ipcq-cli. Prints medians, with the least and the most. A ratio is that of a pair; below 1 ipcq-cli was faster. Builds a
# release, and starts a private bus with the daemon on it, as another user if you are root; stops both.
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
    *) sed -n '4,12s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done

command -v sqlite3 >/dev/null || { echo "bench-shell: needs sqlite3, the shell" >&2 && exit 1; }
tools/install-dependencies.sh demo
build_release
make_bench_folder
mkdir "$folder/data"
"$bench" dataset --quiet --rows="$rows" "$folder/data/study.sqlite"
for file in data/write_study imported; do
    "$bench" dataset --quiet --kind=write_study "$folder/$file.sqlite"
done
publish_datasets
start_daemon
tools/bench-shell.py "$build/tools/cli/ipcq-cli" "$folder" "$pairs"
