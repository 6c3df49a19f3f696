#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-exposed.sh [ROWS [ROUNDS]]
#
# What docs/performance.md says of Expose=, measured on this machine, where tools/bench.sh would measure everything: the
# study's table (ROWS, 300,000) published whole and exposed, by a daemon on a private bus, in ROUNDS (5) alternating rounds.
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
