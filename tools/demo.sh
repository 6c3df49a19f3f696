#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/demo.sh [BUILD]
#
# Shows sqlipc from a bare checkout to rows, in a minute or two: installs missing packages (Debian), builds, makes two real
# databases in a temporary folder, starts a private bus that starts the daemon on the first call, and queries it in each
# possible way. Prints each command before it runs. On a terminal it offers to end in the shell. Leaves only the build
# folder, build-demo, also after Ctrl-C. BUILD: another one, which may be there.
set -eu
cd "$(dirname "$0")/.."

. tools/private-bus.sh

build=$(realpath -m "${1:-build-demo}")

if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# Prints a command as a user would type it, then runs it.
run() {
    local word line='$'
    for word; do
        case $word in
        *\'*) line+=" \"$word\"" ;;
        '' | *[!A-Za-z0-9_./:=,@%+-]*) line+=" '$word'" ;;
        *) line+=" $word" ;;
        esac
    done
    printf '\n%s\n' "$line"
    "$@"
}

title "Installing what is missing, and building"
tools/install-dependencies.sh demo
if [ ! -e "$build/build.ninja" ]; then
    meson setup "$build" --buildtype=release -Dtests=false -Ddocs=false >/dev/null
fi
ninja -C "$build" --quiet
echo "Built in $build"
PATH=$build/tools/cli:$build/tools/ctl:$build/tools/bench:$PATH

title "Two databases: this machine's packages, and the table of the 2010 study"
make_private_folder sqlipc-demo
run tools/packages-database.py "$folder/packages.sqlite"
run sqlipc-bench dataset --rows=30000 "$folder/study.sqlite"

title "They are published by configuration, a file each"
publish_database "$folder" packages "$folder/packages.sqlite" "Packages installed on this machine"
publish_database "$folder" study "$folder/study.sqlite" "30,000 rows of 31 columns"
run cat "$folder/config/databases.d/packages.conf"

title "A private bus, which knows how to start the daemon"
start_private_bus "$folder" "$build"
run cat "$folder/services/org.sqlipc1.service" "$folder/start-sqlipcd"

title "The shared databases (the first call makes the bus start the daemon)"
run busctl --user tree org.sqlipc1
run ipcq-cli --user --list

title "Rows as D-Bus values, with any D-Bus tool"
run busctl --user call org.sqlipc1 /org/sqlipc1/database/packages org.sqlipc1.Database QueryRows 'sava{sv}a{sv}' \
    'SELECT name, version FROM package ORDER BY installed_size DESC LIMIT 3' 0 0 0

title "Rows through a pipe, with ipcq-cli: the packages that most others need, with their files"
run ipcq-cli --user packages "SELECT p.name, p.version, round(p.installed_size / 1024.0, 1) AS MiB,
    count(DISTINCT d.package) AS needed_by, (SELECT count(*) FROM file f WHERE f.package = p.name) AS files
  FROM package p JOIN dependency d ON d.depends_on = p.name AND d.kind = 'Depends'
 GROUP BY p.name, p.architecture ORDER BY needed_by DESC LIMIT 8"
run ipcq-cli --user --mode=csv -p kind=Pre-Depends packages \
    'SELECT package, depends_on, version_constraint FROM dependency WHERE kind = :kind ORDER BY package LIMIT 5'

title "A database that programs write to: four of them at once, each row durable"
printf '%s\n' 'CREATE TABLE note(id INTEGER PRIMARY KEY, author TEXT, text TEXT);' >"$folder/note.sql"
run sqlipcctl --user --config-dir="$folder/config" create notes "$folder/notes.sqlite" --schema="$folder/note.sql" --reload
run ipcq-cli --user notes "INSERT INTO note(author, text) VALUES('demo', 'the first') RETURNING id"
printf '\n$ %s\n' 'for author in ann bob cid dee; do ipcq-cli --user notes <$author.sql & done; wait   # 25 statements each'
writers=()
for author in ann bob cid dee; do
    for text in {1..25}; do
        echo "INSERT INTO note(author, text) VALUES('$author', 'note $text');"
    done >"$folder/$author.sql"
    ipcq-cli --user notes <"$folder/$author.sql" &
    writers+=($!)
done
wait "${writers[@]}"
run ipcq-cli --user notes 'SELECT author, count(*) AS rows FROM note GROUP BY author'

title "An error points at its place"
run ipcq-cli --user packages 'SELECT name, sise FROM package' 2>&1 || true

title "The whole table of the study, every value copied, beside the same loop over SQLite in process"
run sqlipc-bench fetch --user --database=study --file="$folder/study.sqlite"

title "The service at work, and its users' rights (a reader of an endless result runs beside)"
ipcq-cli --user --mode=csv study 'WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n' \
    >/dev/null 2>&1 &
reader=$!
run sqlipcctl --user top --count=2 | cat
run sqlipcctl --user runs
kill "$reader"
run sqlipcctl --user --config-dir="$folder/config" security study
run sqlipcctl --user --config-dir="$folder/config" check

title "The shell"
if [ -t 0 ] && [ -t 1 ]; then
    read -r -p "Open the shell on these databases? [Y/n] " answer || answer=n
    case $answer in
    [nN]*) ;;
    *)
        trap : INT # Ctrl-C is the shell's now
        run ipcq-cli --user packages || true
        ;;
    esac
else
    echo "On a terminal, tools/demo.sh offers it here: ipcq-cli --user packages"
fi

title "That was all. Bus, daemon and databases are removed now; tests/run.sh runs the tests."
