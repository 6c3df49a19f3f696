#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-exposed.sh [ROWS [ROUNDS]]
#
# Measures the cost of Expose= on this machine (tools/bench.sh measures everything else): publishes the study's table (ROWS,
# 300,000) whole and exposed, by a daemon on a private bus, and queries both in ROUNDS (5) alternating rounds.
# shellcheck disable=SC2154 # bench-setup.sh sets folder, bench and the servers
set -eu
cd "$(dirname "$0")/.."
. tools/bench-setup.sh

tools/install-dependencies.sh demo
build_release
make_bench_folder
mkdir "$folder/data"
"$bench" dataset --rows="${1:-300000}" "$folder/data/study.sqlite"
publish_datasets
start_daemon

"$bench" exposed --user --folder="$folder/data" --rounds="${2:-5}"
