#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-exposed.sh [ROUNDS]
#
# What docs/performance.md says of Expose=, measured on this machine, where tools/bench.sh would measure everything: the
# study's table published whole and exposed, by a daemon on a private bus, in ROUNDS (5) alternating rounds.
set -eu
cd "$(dirname "$0")/.."
. tools/bench-setup.sh

tools/install-dependencies.sh demo
build_release
make_bench_folder
publish_datasets normal
start_daemon

"$bench" exposed --user --folder="$folder/data" --rounds="${1:-5}"
