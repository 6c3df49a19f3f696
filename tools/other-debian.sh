#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/other-debian.sh [SUITE [CMD [ARG...]]]
#
# Runs CMD as root in a clone of HEAD in a bare system of Debian's SUITE, which is thrown away afterwards. Without SUITE it
# is the release next to this machine's: trixie (13) on bookworm (12), and bookworm elsewhere. Without CMD it builds all that
# packages hold, warnings being errors, and runs the unit tests. Packages come from this machine's own source.
#
# Needs root, and debootstrap. Exit code: CMD's; 77 if it cannot run here, for which it says why.
set -eu
cd "$(dirname "$0")/.."

skip() {
    echo "other-debian.sh: not run: $*"
    exit 77
}

here=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
suite=${1:-$([ "$here" = bookworm ] && echo trixie || echo bookworm)}
shift $(($# > 0))
if [ $# = 0 ]; then
    # shellcheck disable=SC2016 # not expanded here
    set -- sh -euc 'tools/install-dependencies.sh glib || exit 77
        CC=gcc meson setup build -Dwerror=true --buildtype=debugoptimized -Dinvariants=true >build.log || {
            cat build.log
            exit 1
        }
        ninja -C build --quiet
        meson test -C build --no-rebuild --suite unit --print-errorlogs --timeout-multiplier 4'
fi

[ "$(id -u)" = 0 ] || skip "needs root"
command -v debootstrap >/dev/null || skip "needs debootstrap"
# Either format of sources; those of security updates and of other projects have no release's own packages.
source=$(grep -rhE '^(URIs:|deb )' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
    sed -E 's/^URIs: *//; s/^deb +(\[[^]]*\] +)?//; s/ .*//' | grep -E '/debian/?$' | head -n 1) || true
[ -n "$source" ] || skip "this machine names no source of Debian's packages"

root=$(mktemp -d "${TMPDIR:-/var/tmp}/other-debian.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
unshare --mount --pid --fork -- mount -t tmpfs tmpfs "$root" 2>/dev/null || skip "may not mount in a namespace"
/usr/lib/apt/apt-helper download-file "${source%/}/dists/$suite/Release" "$root/Release" >/dev/null 2>&1 ||
    skip "the source of packages has no $suite, or cannot be reached"

echo "Installing a bare Debian $suite"
debootstrap --variant=minbase --include=ca-certificates,git "$suite" "$root/system" "$source" >"$root/log" 2>&1 || {
    tail -n 20 "$root/log"
    skip "debootstrap failed"
}
echo "deb $source $suite main" >"$root/system/etc/apt/sources.list"
# How this machine reaches its source, and the certificates that it trusts.
apt-config dump | grep -iE '^Acquire::(http|https|Retries)\b' >"$root/system/etc/apt/apt.conf.d/90other-debian" || true
cp /etc/resolv.conf "$root/system/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/system/etc/ssl/certs/"
mkdir "$root/system/project"
git clone --quiet --no-hardlinks . "$root/system/project/sqlipc"

# The namespaces end with the command, and with them its mounts and all that it started.
environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8)
for name in http_proxy https_proxy no_proxy; do
    [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done
# shellcheck disable=SC2016 # the shell in the namespace expands it
unshare --mount --pid --fork --kill-child -- bash -euc '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    mount -t tmpfs tmpfs "$root/tmp"
    exec chroot "$root" /usr/bin/env -i "$@"' bash "$root/system" "${environment[@]}" \
    sh -c 'cd /project/sqlipc && exec "$@"' sh "$@"
