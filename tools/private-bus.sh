# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Scripts source this file to get a bus of their own that activates the daemon of a build tree. All its files are in one
# folder. Bus and folder are removed when the script ends, also by Ctrl-C.
#
#   make_private_folder PREFIX               sets `folder`
#   publish_database FOLDER NAME FILE DESCRIPTION
#   start_private_bus FOLDER BUILD [USER]    USER (root only): the daemon's user; sets DBUS_SESSION_BUS_ADDRESS
#                                            with the engines of servers, if the build tree has them
#   stop_private_bus                         the daemon ends with its bus, and its workers with the daemon

private_bus_pid='' folder=''

leave_nothing() {
    trap '' INT TERM HUP
    stop_private_bus
    [ -z "$folder" ] || rm -rf "$folder"
}

make_private_folder() {
    trap leave_nothing EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    folder=$(mktemp -d "${TMPDIR:-/tmp}/$1.XXXXXX")
}

publish_database() {
    mkdir -p "$1/config/databases.d"
    printf '%s\n' >"$1/config/databases.d/$2.conf" "[Database]" "Path=$3" "Description=$4"
}

start_private_bus() {
    local folder=$1 build=$2 as=
    [ -z "${3:-}" ] || as="setpriv --reuid=$3 --regid=$(id -g "$3") --clear-groups "
    mkdir -p "$folder/services"
    # Activation needs only this file; an installation has it in /usr/share/dbus-1, with an Exec= line that names sqlipcd.
    printf '%s\n' >"$folder/services/org.sqlipc1.service" "[D-BUS Service]" "Name=org.sqlipc1" "Exec=$folder/start-sqlipcd"
    # The engines' socket ends with the daemon, its parent. It is in a folder of the daemon's user.
    install -d -m 700 ${3:+-o "$3"} "$folder/engines"
    cat >"$folder/start-sqlipcd" <<END
#!/bin/sh
SQLIPC_WORKER_PATH='$build/daemon/worker/sqlipc-worker'
SQLIPC_ENGINE_SOCKET='$folder/engines/socket'
export SQLIPC_WORKER_PATH SQLIPC_ENGINE_SOCKET
if [ -x '$build/daemon/worker/sqlipc-engine' ] && command -v systemd-socket-activate >/dev/null; then
    rm -f "\$SQLIPC_ENGINE_SOCKET"
    ${as:-setpriv }--pdeathsig=TERM systemd-socket-activate --accept --seqpacket --listen="\$SQLIPC_ENGINE_SOCKET" \
        '$build/daemon/worker/sqlipc-engine' 2>'$folder/engines/log' &
    while [ ! -S "\$SQLIPC_ENGINE_SOCKET" ] && kill -0 \$! 2>/dev/null; do sleep 0.05; done
fi
exec $as'$build/daemon/supervisor/sqlipcd' --user --config-dir='$folder/config'
END
    chmod +x "$folder/start-sqlipcd"
    # Other users than the bus's own may connect, because the daemon may run as another user.
    cat >"$folder/bus.conf" <<END
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=$folder/bus</listen>
  <auth>EXTERNAL</auth>
  <servicedir>$folder/services</servicedir>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
END
    # The bus runs in a session of its own: Ctrl-C on the terminal must not reach bus and daemon.
    setsid dbus-daemon --config-file="$folder/bus.conf" --nofork --nopidfile 2>"$folder/bus.log" &
    private_bus_pid=$!
    for _ in {1..1200}; do # it is there at once, or the machine is busy
        [ -S "$folder/bus" ] && break
        sleep 0.05
    done
    export DBUS_SESSION_BUS_ADDRESS=unix:path=$folder/bus
}

stop_private_bus() {
    [ -n "$private_bus_pid" ] || return 0
    kill "$private_bus_pid" 2>/dev/null || true
    wait "$private_bus_pid" 2>/dev/null || true
    private_bus_pid=
}
