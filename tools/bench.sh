#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench.sh [ROWS [ROUNDS]]
#
# What README says of speed and memory, measured on this machine: makes the study's table (ROWS, 300,000 by default),
# starts a private bus and on it the daemon, as another user than the client where you are root, and runs sqlipc-bench
# against both, in ROUNDS (7) alternating rounds. Takes a minute; wants 1 GiB of memory and 250 MB below ${TMPDIR:-/tmp}.
set -eu
cd "$(dirname "$0")/.."
. tools/private-bus.sh

rows=${1:-300000} rounds=${2:-7}
build=$PWD/build-bench

tools/install-dependencies.sh demo
if [ ! -e "$build/build.ninja" ]; then
    meson setup "$build" --buildtype=release -Dtests=false -Ddocs=false >/dev/null
fi
ninja -C "$build" --quiet

make_private_folder sqlipc-bench
chmod 755 "$folder" # the daemon's user goes through it
bench=$build/tools/bench/sqlipc-bench
"$bench" dataset --rows="$rows" "$folder/study.sqlite"
publish_database "$folder" study "$folder/study.sqlite" "the table of the study of 2010"
start_private_bus "$folder" "$build" "$([ "$(id -u)" != 0 ] || echo nobody)"

"$bench" fetch --user --database=study --file="$folder/study.sqlite" --pairs="$rounds"
"$bench" first-row --user --database=study --file="$folder/study.sqlite"
"$bench" first-row --user --database=study --file="$folder/study.sqlite" --cold
# A row that is found just before a scan without end, which never fills a page.
"$bench" first-row --user --database=study --file="$folder/study.sqlite" \
    --sql='WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x = 1'
