# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# tools/bench.sh and tools/bench-exposed.sh source this file, in the folder above. It starts the programs to measure. All
# their files are in one folder, `folder`; both end with the script, see private-bus.sh.
#
#   build_release                sets `build` and `bench`, the program
#   make_bench_folder            sets `folder`; all users may read files in it
#   publish_datasets             publishes those in $folder/data; study also as `exposed`, with Expose=, and as
#                                `exposed-barrier`, with SecurityBarrier= too; those of `write` for writing
#   start_daemon                 on a private bus, as another user if you are root
#   start_postgres               sets `postgres`, the address for sqlipc-bench, and publishes the server as `postgres`,
#                                before the daemon is started; Debian's package must be installed
#   start_mariadb                sets `mariadb`, the same; does nothing if MariaDB is not installed
. tools/private-bus.sh

servers=() postgres='' mariadb=''
as_other=()
[ "$(id -u)" != 0 ] || as_other=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups)

build_release() {
    local again=
    build=$PWD/build-bench
    # shellcheck disable=SC2034 # for those who source this
    bench=$build/tools/bench/sqlipc-bench
    # Configures an existing build again: a server's client library may have been installed since.
    [ ! -e "$build/build.ninja" ] || again=--reconfigure
    meson setup $again "$build" --buildtype=release -Db_lto=true -Dtests=false -Ddocs=false >/dev/null
    ninja -C "$build" --quiet
}

stop_servers() {
    [ ${#servers[@]} -gt 0 ] || return 0
    kill "${servers[@]}" 2>/dev/null || true
    wait "${servers[@]}" 2>/dev/null || true
}

make_bench_folder() {
    make_private_folder sqlipc-bench
    trap 'stop_servers; leave_nothing' EXIT
    chmod 755 "$folder"
}

publish_datasets() {
    local file name
    for file in "$folder"/data/*.sqlite; do
        name=$(basename "$file" .sqlite)
        publish_database "$folder" "$name" "$file" "dataset $name of sqlipc-bench"
        case $name in write_*) echo "Mode=read-write" >>"$folder/config/databases.d/$name.conf" ;; esac
        # Its log keeps its size, as that of a program that opens the file.
        case $name in write_study) echo "WalSizeMax=1G" >>"$folder/config/databases.d/$name.conf" ;; esac
    done
    # The daemon must own what it writes, and the folder.
    [ "$(id -u)" != 0 ] || find "$folder/data" '(' -type d -o -name 'write_*.sqlite' ')' -exec chown nobody: {} +
    for name in exposed exposed-barrier; do
        publish_database "$folder" "$name" "$folder/data/study.sqlite" "study by Expose="
        echo "Expose=study study_shown" >>"$folder/config/databases.d/$name.conf"
    done
    echo "SecurityBarrier=yes" >>"$folder/config/databases.d/exposed-barrier.conf"
}

start_daemon() {
    start_private_bus "$folder" "$build" "$([ "$(id -u)" != 0 ] || echo nobody)"
}

# Makes a folder for a server.
make_server_folder() {
    mkdir -m 700 "$folder/$1"
    [ ${#as_other[@]} -eq 0 ] || chown nobody: "$folder/$1"
}

# start_server NAME COMMAND...: starts a server that writes to NAME.log and runs until the script ends
start_server() {
    local name=$1
    shift
    "${as_other[@]}" "$@" >>"$folder/$name.log" 2>&1 &
    servers+=($!)
}

# wait_for_server NAME COMMAND...: waits until COMMAND succeeds, because the server answers
wait_for_server() {
    local name=$1
    shift
    for _ in {1..300}; do
        ! "$@" >/dev/null 2>&1 || return 0
        kill -0 "${servers[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "$name does not start:" >&2
    cat "$folder/$name.log" >&2
    return 1
}

# The table of `bulk`, 182 MB of values, must fit into the memory of both servers, as it fits into the page cache. By default
# MariaDB would read it from disk, and PostgreSQL would not keep a table that is larger than a quarter of its buffers.
# MariaDB sends a result in pieces of net-buffer-length; 64 KiB take less processor time than the default of 16.
start_postgres() {
    local programs own=$folder/postgres
    programs=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin | sort -V | tail -1)
    make_server_folder postgres
    "${as_other[@]}" "$programs/initdb" -D "$own/data" --auth=trust --username=bench --encoding=UTF8 --no-locale \
        >"$folder/postgres.log" 2>&1 || { cat "$folder/postgres.log" >&2 && return 1; }
    start_server postgres "$programs/postgres" -D "$own/data" -k "$own" -c listen_addresses= -c shared_buffers=1GB
    # The folder is closed: only root and its owner can reach the socket in it.
    wait_for_server postgres "$programs/pg_isready" -h "$own"
    # shellcheck disable=SC2034 # for those who source this
    postgres="host=$own user=bench dbname=postgres"
    printf '%s\n' >"$folder/config/databases.d/postgres.conf" "[Database]" "Engine=postgresql" "Connection=$postgres" \
        "Mode=read-write" "WriteSchema=yes"
}

start_mariadb() {
    local own=$folder/mariadb
    command -v mariadbd >/dev/null || return 0
    make_server_folder mariadb
    "${as_other[@]}" mariadb-install-db --no-defaults --datadir="$own/data" --auth-root-authentication-method=normal \
        >"$folder/mariadb.log" 2>&1 || { cat "$folder/mariadb.log" >&2 && return 1; }
    start_server mariadb mariadbd --no-defaults --datadir="$own/data" --socket="$own/socket" --pid-file="$own/pid" \
        --skip-networking --innodb-buffer-pool-size=512M --net-buffer-length=64K
    wait_for_server mariadb test -S "$own/socket"
    # shellcheck disable=SC2034 # for those who source this
    mariadb="root@$own/socket/test"
}
