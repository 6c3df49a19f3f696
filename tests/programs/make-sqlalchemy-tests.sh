#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# make-sqlalchemy-tests.sh FOLDER
#
# Puts SQLAlchemy's tests into FOLDER/tests, from the source package of the version that requirements.txt names, because the
# packages that can be installed do not have them. A folder that is complete is kept. Several processes may call it at once.
set -eu
folder=$1
wanted=$(grep '^SQLAlchemy==' "$(dirname "$(realpath "$0")")/requirements.txt")

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
[ "$(cat "$folder/complete" 2>/dev/null)" = "$wanted" ] && exit 0
rm -rf "$folder"/{download,tests}
mkdir -p "$folder"/{download,tests}
fetch() {
    /usr/bin/python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
        --dest "$folder/download" "$@" "$wanted" >&2
}
fetch --no-build-isolation || fetch # pip looks at the metadata, for which the system's setuptools do, if there are any
tar -xf "$folder"/download/*.tar.gz -C "$folder/tests" --wildcards --strip-components=1 \
    '*/test' '*/setup.cfg' '*/lib/sqlalchemy/testing/plugin'
rm -rf "$folder/download"
echo "$wanted" >"$folder/complete"
