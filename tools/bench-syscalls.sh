#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/bench-syscalls.sh
#
# Counts the system calls for docs/performance.md with strace, in client, supervisor and worker, after all of them are warm:
# per point query over the bus (prepared, and by Query) and on a channel, and per MB of the study's table. Takes half a
# minute. Needs the right to ptrace the service, which runs as another user if you are root.
set -eu
cd "$(dirname "$0")/.."
. tools/private-bus.sh

build=$PWD/build-bench
point='SELECT * FROM point WHERE id = ?1'

tools/install-dependencies.sh demo bench
if [ ! -e "$build/build.ninja" ]; then
    meson setup "$build" --buildtype=release -Db_lto=true -Dtests=false -Ddocs=false >/dev/null
fi
ninja -C "$build" --quiet

make_private_folder sqlipc-bench
chmod 755 "$folder" # the daemon's user goes through it
bench=$build/tools/bench/sqlipc-bench
for kind in point study; do
    "$bench" dataset --kind=$kind --size=normal "$folder/$kind.sqlite"
    publish_database "$folder" $kind "$folder/$kind.sqlite" "of sqlipc-bench"
done
start_private_bus "$folder" "$build" "$([ "$(id -u)" != 0 ] || echo nobody)"

# Columns 4 and 6 of strace's table are the count and the name; a count of errors may be between them.
print_calls() {
    awk -v who="$1" -v unit="$2" -v n="$3" '
        $1 ~ /^[0-9.]+$/ && $NF != "total" && $4 >= n / 100 { list = list sprintf("  %s %.2f", $NF, $4 / n); sum += $4 }
        END { printf "    %-11s %6.2f per %s:%s\n", who, sum / n, unit, list }' "$4"
}

# count TITLE UNIT TIMES BYTES_PER_UNIT ASK_OPTION... : with BYTES_PER_UNIT 0 it counts per run
count() {
    local title=$1 unit=$2 times=$3 per=$4 pid ended n who tracers=()
    shift 4
    coproc "$bench" ask --user --times="$times" "$@"
    # shellcheck disable=SC2153 # COPROC is what coproc sets
    read -r _ pid <&"${COPROC[0]}"
    pids=([client]=$pid [supervisor]=$(pgrep -n -f "^$build/daemon/supervisor/sqlipcd --user --config-dir=$folder"))
    pids[worker]=$(pgrep -d, -P "${pids[supervisor]}" -x sqlipc-worker)
    for who in client supervisor worker; do
        strace -q -f -c -o "$folder/$who.calls" -p "${pids[$who]}" 2>/dev/null &
        tracers+=($!)
    done
    for who in client supervisor; do
        until grep -q '^TracerPid:.*[1-9]' "/proc/${pids[$who]}/status"; do sleep 0.05; done
    done
    until grep -q '^TracerPid:.*[1-9]' "/proc/${pids[worker]%%,*}/status"; do sleep 0.05; done
    echo >&"${COPROC[1]}"
    read -r ended <&"${COPROC[0]}"
    kill -INT "${tracers[@]}"
    wait "${tracers[@]}" || true
    echo >&"${COPROC[1]}"
    wait "$COPROC_PID"

    n=$times
    [ "$per" = 0 ] || n=$(awk -v per="$per" '{ print $6 / per }' <<<"$ended")
    printf '%s (%s)\n' "$title" "${ended#done }"
    for who in client supervisor worker; do
        print_calls "$who" "$unit" "$n" "$folder/$who.calls"
    done
}

declare -A pids
count 'Prepared, over the bus' query 1000 0 --transport=pipe --keys=100000 point "$point"
count 'Query, over the bus' query 1000 0 --transport=pipe --query --keys=100000 point "$point"
if busctl --user get-property org.sqlipc1 /org/sqlipc1 org.sqlipc1.Manager Features | grep -q '"channel"'; then
    count 'Prepared, on a channel' query 10000 0 --transport=channel --keys=100000 point "$point"
    count 'Query, on a channel' query 10000 0 --transport=channel --query --keys=100000 point "$point"
fi
count 'The whole table of the study' MB 1 1e6 --transport=pipe study 'SELECT * FROM study'
