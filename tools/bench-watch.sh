#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-watch.sh [ROUNDS]
#
# Measures how soon a program knows of a commit, beside PostgreSQL's LISTEN, and the cost of watches for programs that write
# (sqlipc-bench watch). Builds a release, starts a private bus with the daemon on it and PostgreSQL, as another user if you
# are root. The time of a commit is that of the disk of ${TMPDIR:-/tmp}; in memory, as TMPDIR=/dev/shm, watches show more.
# shellcheck disable=SC2154 # bench-setup.sh sets folder, bench, postgres
set -eu
cd "$(dirname "$0")/.."
. tools/bench-setup.sh

rounds=${1:-5}
build_release
make_bench_folder
mkdir -p "$folder/data"
"$bench" dataset --kind=write_wal "$folder/data/write_wal.sqlite"
publish_datasets
start_postgres
start_daemon
"$bench" watch --user --folder="$folder/data" --postgres="$postgres" --rounds="$rounds"
