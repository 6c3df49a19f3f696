#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# boot-systemd.sh [options] [--] CMD [ARG...]
#
# Runs a command in a container that is thrown away: its PID 1 is a real systemd, its system bus a real one, its root an
# overlay over this machine's. Needs root, and a cgroup2 mount. Nothing is registered with the machine's own systemd.
#
#   -l DIR              copy DIR (a DESTDIR tree: usr/, etc/ ...) over the root before boot; again for more
#   -b SRC[:DST]        bind-mount SRC read-write (for results); again for more
#   -B broker|daemon    which system bus (default: broker)
#   -u USER             run CMD as USER (default: root)
#   -d DIR              working directory of CMD inside
#   -e VAR=VALUE        environment of CMD; again for more
#   -J FILE             write the container's journal to FILE (a path outside, not under /run) at the end
#   -v                  print timings on stderr
#
# Exit status: CMD's own (255 if it died by a signal); 125 when the container did not boot.
#
# Two stages. The first, outside, owns a cgroup and promises that nothing of the run outlives it, whatever happens. The
# second runs in mount, pid and cgroup namespaces of its own, builds the root, boots it, and runs CMD.
set -u

die() {
    echo "boot-systemd.sh: $*" >&2
    exit 125
}

cgroup2_mount() {
    awk '{ for (i = 7; i <= NF; i++) if ($i == "-" && $(i+1) == "cgroup2") { print $5; exit } }' /proc/self/mountinfo
}

# Removes cgroups of runs that were killed before they could.
remove_stale() {
    local dir
    for dir in "$1"/sqlipc-test.*; do
        [ -d "$dir" ] && ! kill -0 "${dir##*.}" 2>/dev/null && find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null
    done
    return 0
}

cleanup() {
    # Every process of the run, whatever it forked.
    echo 1 >"$cgroup/cgroup.kill"
    [ -z "${child:-}" ] || wait "$child" 2>/dev/null
    for _ in {1..100}; do
        find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null
        [ -d "$cgroup" ] || return 0
        sleep 0.02
    done
    echo "boot-systemd.sh: could not remove $cgroup" >&2
}

outside() {
    [ "$(id -u)" = 0 ] || die "must be root"
    local mount
    mount=$(cgroup2_mount)
    [ -n "$mount" ] || die "no cgroup2 mount"
    remove_stale "$mount"
    cgroup=$mount/sqlipc-test.$$
    mkdir "$cgroup" || die "cannot make $cgroup"
    trap cleanup EXIT
    trap 'exit 143' TERM
    trap 'exit 130' INT
    trap 'exit 129' HUP
    # --pdeathsig with --kill-child: even SIGKILL of this shell takes the whole run down. The parent of unshare stays outside
    # the cgroup, so it is there to reap its child after cgroup.kill. </dev/stdin: background jobs get /dev/null else.
    BOOT_STAGE=inside BOOT_BEGAN=$EPOCHREALTIME BOOT_CGROUP=$cgroup setpriv --pdeathsig KILL \
        unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
        bash -c 'echo 0 > "$BOOT_CGROUP/cgroup.procs" && exec unshare --cgroup "$0" "$@"' "$0" "$@" </dev/stdin &
    child=$!
    wait $child
    exit $?
}

layers=() binds=() options=() bus=broker verbose=0 journal=

parse() {
    while [ $# -gt 0 ]; do
        case $1 in
        -l) layers+=("$2"); shift 2 ;;
        -b) binds+=(--bind="$2"); shift 2 ;;
        -B) bus=$2; shift 2 ;;
        -u) options+=(--uid="$2"); shift 2 ;;
        -d) options+=(--working-directory="$2"); shift 2 ;;
        -e) options+=(--setenv="$2"); shift 2 ;;
        -J) journal=$2; shift 2 ;;
        -v) verbose=1; shift ;;
        --) shift; break ;;
        -*) die "unknown option $1" ;;
        *) break ;;
        esac
    done
    [ $# -gt 0 ] || die "no command"
    command=("$@")
    case $bus in
    broker) bus_unit=dbus-broker.service ;;
    daemon) bus_unit=dbus.service ;;
    *) die "-B takes broker or daemon" ;;
    esac
    [ -e /usr/lib/systemd/system/$bus_unit ] || die "$bus_unit is not installed"
}

make_root() {
    # systemd-nspawn's own state goes into this /run, not the machine's.
    mount -n -t tmpfs -o mode=755 tmpfs /run || die "tmpfs"
    # cgroup2 alone, rooted at our own cgroup by the namespace.
    mount -n -t cgroup2 cgroup2 /sys/fs/cgroup || die "cgroup2"
    state=/run/sqlipc-test root=/run/sqlipc-test/root units=/run/sqlipc-test/root/etc/systemd/system
    mkdir -p $state/upper $state/work $root
    mount -n -t overlay overlay -o lowerdir=/,upperdir=$state/upper,workdir=$state/work $root || die "overlay"
    local layer
    for layer in "${layers[@]}"; do
        cp -a --no-preserve=ownership "$layer/." $root/ || die "layer $layer"
    done
}

# Masks what has no purpose in a container and costs time at boot, and makes the target to boot into.
write_units() {
    local unit
    mkdir -p $units
    for unit in systemd-firstboot systemd-update-utmp systemd-random-seed systemd-sysctl systemd-modules-load \
        systemd-binfmt \
        systemd-pcrphase systemd-pcrphase-sysinit systemd-journal-flush systemd-journal-catalog-update systemd-hwdb-update \
        ldconfig \
        systemd-machine-id-commit systemd-update-done systemd-repart systemd-remount-fs systemd-tmpfiles-setup-dev \
        kmod-static-nodes systemd-udevd systemd-timesyncd; do
        ln -sfn /dev/null $units/$unit.service
    done
    for unit in cryptsetup.target integritysetup.target veritysetup.target dev-hugepages.mount dev-mqueue.mount \
        proc-sys-fs-binfmt_misc.automount sys-fs-fuse-connections.mount sys-kernel-config.mount sys-kernel-debug.mount \
        sys-kernel-tracing.mount systemd-ask-password-console.path systemd-ask-password-wall.path systemd-initctl.socket \
        systemd-journald-audit.socket systemd-tmpfiles-clean.timer; do
        ln -sfn /dev/null $units/$unit
    done
    rm -f $root/etc/fstab $units/dbus.service
    [ $bus = daemon ] || ln -s /usr/lib/systemd/system/$bus_unit $units/dbus.service
    echo sqlipc-test >$root/etc/hostname
    cat >$units/sqlipc-test.target <<END
[Unit]
Requires=basic.target
After=basic.target
Wants=sqlipc-test-ready.service
AllowIsolate=yes
END
    cat >$units/sqlipc-test-ready.service <<END
[Unit]
After=basic.target dbus.socket dbus.service
Wants=dbus.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo ready > /run/sqlipc-test-ready'
END
}

# The capabilities are systemd-nspawn's default on purpose: no CAP_SYS_TIME, SYS_MODULE, SYS_RAWIO, so nothing inside can
# set the machine's clock or load modules. Only its system call filter is widened: bpf() for DevicePolicy= and
# IPAddressDeny=, @keyring for KeyringMode=.
boot() {
    mkfifo $state/ready
    systemd-nspawn --quiet -D $root -M sqlipc-test --register=no --keep-unit --private-network \
        --resolv-conf=off --timezone=off --link-journal=no --console=pipe \
        --system-call-filter=bpf --system-call-filter=@keyring \
        --bind=$state/ready:/run/sqlipc-test-ready "${binds[@]}" --boot -- \
        systemd.unit=sqlipc-test.target systemd.log_target=journal </dev/null >$state/console 2>&1 &
    nspawn=$!
    local ready attempt
    exec {ready}<>$state/ready
    for ((attempt = 0; ; attempt++)); do
        read -t 0.5 -r _ <&$ready && break
        kill -0 $nspawn 2>/dev/null && [ $attempt -lt 600 ] || { cat $state/console >&2; die "did not boot"; }
    done
    read -r leader _ </proc/$nspawn/task/$nspawn/children
}

run_command() {
    # Doubled dollars: PID 1 would expand ${X} and $$ in arguments.
    # -r: where we run in a chroot ourselves, the root of its mount namespace is not the container's root
    nsenter -t "$leader" -a -r -w systemd-run --quiet --pipe --wait --collect --service-type=exec --setenv=PATH="$PATH" \
        "${options[@]}" -- "${command[@]//\$/\$\$}"
}

power_off() {
    # To systemd: start poweroff.target.
    kill -s RTMIN+4 "$leader"
    { sleep 10; kill -KILL "$leader"; } 2>/dev/null &
    local watchdog=$!
    wait $nspawn
    kill $watchdog 2>/dev/null
}

# In a chroot the kernel refuses user namespaces, which PrivateUsers= of a unit needs; and if this runs in a chroot,
# so would the container. Entering one's own mount namespace leads to its real root, and from there ours becomes it.
leave_chroot() {
    local here real
    exec {here}</
    real=$(nsenter --mount=/proc/self/ns/mnt stat -c %d:%i /)
    if [ "$real" = "$(stat -c %d:%i /)" ] || [ -n "${BOOT_CHROOT:-}" ]; then
        exec {here}<&-
        return
    fi
    # shellcheck disable=SC2016 # the shell there expands it
    BOOT_CHROOT=left exec nsenter --mount=/proc/self/ns/mnt bash -c '
        cd "/proc/self/fd/$1" || exit 125
        if pivot_root . . && umount -l .; then cd "$2"; else BOOT_CHROOT=kept exec chroot . "${@:3}"; fi
        exec "${@:3}"' bash "$here" "$PWD" "$(realpath "$0")" "$@"
}

inside() {
    leave_chroot "$@"
    parse "$@"
    make_root
    write_units
    boot
    local booted=$EPOCHREALTIME
    run_command
    local status=$? ran=$EPOCHREALTIME
    [ -z "$journal" ] || nsenter -t "$leader" -a -r -w journalctl --no-pager -o short-precise >"$journal"
    power_off
    [ $verbose = 0 ] || awk -v a="$BOOT_BEGAN" -v b="$booted" -v c="$ran" -v d="$EPOCHREALTIME" \
        'BEGIN { printf "boot-systemd.sh: boot %.3f s, command %.3f s, shutdown %.3f s\n", b-a, c-b, d-c }' >&2
    exit $status
}

if [ "${BOOT_STAGE:-outside}" = outside ]; then
    outside "$@"
else
    inside "$@"
fi
