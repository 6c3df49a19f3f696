#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# make-environment.sh FOLDER
#
# Makes a Python environment with the packages of requirements.txt, for the tests of the ADBC driver. It also sees the
# packages of the system, because the rigs need python3-gi. An environment that is complete is kept. Several processes may
# call it at once.
set -eu
here=$(dirname "$(realpath "$0")")
folder=$1

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
cmp -s "$here/requirements.txt" "$folder/complete" && exit 0
/usr/bin/python3 -m venv --clear --system-site-packages --without-pip "$folder/python"
/usr/bin/python3 -m pip --python "$folder/python/bin/python" install --quiet --disable-pip-version-check --no-compile \
    --no-deps --only-binary :all: -r "$here/requirements.txt"
cp "$here/requirements.txt" "$folder/complete"
