#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# fetch-proxy.sh FOLDER
#
# Copies ShardingSphere-Proxy, with what it needs, to FOLDER/lib, in the versions that pom.xml names. A copy that is there is
# kept. Several processes may call it at once. Exit code 1, with the reason, if it cannot be fetched or run.
set -eu
here=$(dirname "$(realpath "$0")")
folder=$1

mkdir -p "$folder"
folder=$(realpath "$folder")
exec 9>"$folder/lock"
flock 9
for program in java mvn; do
    command -v $program >/dev/null || { echo "there is no $program" >&2 && exit 1; }
done
cmp -s "$here/pom.xml" "$folder/complete" && exit 0
mvn --quiet --batch-mode --file "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/lib" >&2
cp "$here/pom.xml" "$folder/complete"
