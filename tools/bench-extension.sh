#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-extension.sh [--rows=100000] [--pairs=7]
#
# Compares SQLite's extension (sqlipc-extension(7)) with ATTACH of the same file and with a copy of the table: processor time
# with that of the service, and time, of statements that read the table of a study of 2010, or join it with a table of the
# program. Prints medians, with the least and the most. A ratio is that of a pair; below 1 the extension was faster. Builds a
# release, and starts a private bus with the daemon on it, as another user if you are root; stops both.
#
# Exit code: 0 measured, 1 something failed, 2 wrong usage.
# shellcheck disable=SC2154 # bench-setup.sh sets folder, bench and build
set -eu
cd "$(dirname "$0")/.."
. tools/bench-setup.sh

rows=100000 pairs=7
for argument; do
    case $argument in
    --rows=[1-9]*) rows=${argument#*=} ;;
    --pairs=[1-9]*) pairs=${argument#*=} ;;
    *) sed -n '4,12s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done

tools/install-dependencies.sh demo
build_release
make_bench_folder
mkdir "$folder/data"
"$bench" dataset --quiet --rows="$rows" "$folder/data/study.sqlite"
publish_datasets
start_daemon
tools/bench-extension.py "$build/client-lib/extension/sqlipc.so" "$folder" "$pairs"
