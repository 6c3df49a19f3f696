#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench.sh [--size=tiny|normal|full | --full] [--report=DIRECTORY]
#
# Measures everything on this machine and writes it as one page, DIRECTORY/index.html (build-bench/report), with report.json
# and the charts beside it. Builds a release, makes the datasets, starts a private bus with the daemon on it (as another user
# if you are root), and PostgreSQL and MariaDB if they are installed; stops all of them.
#
# Takes ten minutes and 3 GB of memory and of ${TMPDIR:-/tmp}; at the published sizes (--full) an hour and 12 GB.
# Exit code: 0 measured, 1 something failed (the page shows what), 2 wrong usage.
# shellcheck disable=SC2154 # bench-setup.sh sets folder, bench and the servers
set -eu
cd "$(dirname "$0")/.."
. tools/bench-setup.sh

usage() {
    sed -n '4,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

size=normal report=$PWD/build-bench/report
for argument; do
    case $argument in
    --size=tiny | --size=normal | --size=full) size=${argument#*=} ;;
    --full) size=full ;;
    --report=?*) report=$(cd "$OLDPWD" && realpath -m "${argument#*=}") ;;
    *) usage ;;
    esac
done

tools/install-dependencies.sh bench
build_release
make_bench_folder
"$bench" dataset --all="$folder/data" --size="$size"
publish_datasets
start_postgres
start_mariadb
start_daemon

"$bench" report "$report" --user --folder="$folder/data" --size="$size" --cold \
    ${postgres:+--postgres="$postgres" --engine=postgres} ${mariadb:+--mariadb="$mariadb"} && code=0 || code=$?
echo "$report/index.html"
exit "$code"
