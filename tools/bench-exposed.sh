#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-exposed.sh [ROWS [ROUNDS]]
#
# What docs/performance.md says of Expose=, measured on this machine: the study's table (ROWS, 300,000 by default) published
# whole and exposed, by a daemon on a private bus, in ROUNDS (5) alternating rounds.
set -eu
cd "$(dirname "$0")/.."
. tools/private-bus.sh

rows=${1:-300000} rounds=${2:-5}
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
publish_database "$folder" exposed "$folder/study.sqlite" "the same by Expose="
echo "Expose=study" >>"$folder/config/databases.d/exposed.conf"
start_private_bus "$folder" "$build" "$([ "$(id -u)" != 0 ] || echo nobody)"

"$bench" exposed --user --database=study --exposed=exposed --file="$folder/study.sqlite" --pairs="$rounds"
