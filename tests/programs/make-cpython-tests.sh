#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# make-cpython-tests.sh FOLDER
#
# Puts CPython's tests of sqlite3 into FOLDER/test_sqlite3, from Debian's source package of the Python that runs the tests,
# because no binary package has them. The package lists of sources are fetched into the folder, so that those of the machine
# stay as they are. A folder that is complete is kept. Several processes may call it at once.
set -eu
folder=$1

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$(cat "$folder/complete" 2>/dev/null)" = "$version" ] && exit 0
rm -rf "$folder"/{sources,lists,download,test_sqlite3}
mkdir -p "$folder"/{sources,lists/partial,download}
# The same archives, with the word for sources in both forms of a list.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
    [ -e "$list" ] && sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$list" >"$folder/sources/$(basename "$list")"
done
options=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$folder/sources" -o "Dir::State::Lists=$folder/lists"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=)
apt-get "${options[@]}" update -qq >&2
(cd "$folder/download" && apt-get "${options[@]}" source -qq --download-only --tar-only "python$version" >&2)
tar -xf "$folder"/download/*.orig.tar.* -C "$folder" --wildcards --strip-components=3 '*/Lib/test/test_sqlite3'
rm -rf "$folder"/{sources,lists,download}
echo "$version" >"$folder/complete"
