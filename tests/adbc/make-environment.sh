#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# make-environment.sh FOLDER [REQUIREMENTS]
#
# Makes a Python environment with the packages of REQUIREMENTS; by default that is requirements.txt beside this file, for the
# tests of the ADBC driver. It also sees the packages of the system, because the rigs need python3-gi. An environment that
# is complete is kept. Several processes may call it at once.
set -eu
folder=$1
requirements=${2:-$(dirname "$(realpath "$0")")/requirements.txt}

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
cmp -s "$requirements" "$folder/complete" && exit 0
/usr/bin/python3 -m venv --clear --system-site-packages --without-pip "$folder/python"
/usr/bin/python3 -m pip --python "$folder/python/bin/python" install --quiet --disable-pip-version-check --no-compile \
    --no-deps -r "$requirements"
cp "$requirements" "$folder/complete"
