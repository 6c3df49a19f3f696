#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-many.sh [ROUNDS]
#
# Measures what a point query costs if each goes to a random one of 1, 4, 50 and 200 databases, over one connection
# (sqlipc-bench many). Builds a release, makes and publishes the databases, starts a private bus with the daemon on it, as
# another user if you are root.
# shellcheck disable=SC2154 # bench-setup.sh sets folder, bench
set -eu
cd "$(dirname "$0")/.."
. tools/bench-setup.sh

rounds=${1:-5}
build_release
make_bench_folder
mkdir -p "$folder/data/many"
"$bench" dataset --kind=point --rows=1000 "$folder/data/many/0.sqlite"
for ((i = 0; i < 200; i++)); do
    [ "$i" = 0 ] || cp "$folder/data/many/0.sqlite" "$folder/data/many/$i.sqlite"
    publish_database "$folder" "many-$i" "$folder/data/many/$i.sqlite" "one of many"
done
start_daemon
"$bench" many --user --folder="$folder/data" --rounds="$rounds"
