#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# make-rqlited.sh FOLDER
#
# Builds rqlite's server as FOLDER/rqlited, from the module that go.mod names, for the tests of its engine. One that is there
# is kept. Several processes may call it at once. Debian 12's Go is too old; exit code 1, with the reason, if it cannot be
# built.
set -eu
here=$(dirname "$(realpath "$0")")
folder=$1

PATH=$PATH:/usr/local/go/bin
mkdir -p "$folder"
folder=$(realpath "$folder")
exec 9>"$folder/lock"
flock 9
cmp -s "$here/go.mod" "$folder/complete" && exit 0
command -v go >/dev/null || { echo "there is no Go" >&2 && exit 1; }
cd "$here"
CGO_CFLAGS='-O1' go build -mod=readonly -trimpath -ldflags='-s -w' -o "$folder/rqlited" \
    github.com/rqlite/rqlite/v8/cmd/rqlited
cp "$here/go.mod" "$folder/complete"
