#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/install-dependencies.sh GROUP...
#
# Installs the missing Debian packages for a group of tasks: build, test, demo, package, glib, fuzz, gate, bench, screenshots
# (each with the groups that it depends on). Uses sudo if you are not root. Fetches package lists only if a package is
# missing and cannot be installed with the present lists. Prints what it installs, and nothing if nothing is missing.
#
# Exit code: 0 everything is installed, 1 a package is missing and cannot be installed, 2 wrong usage.
set -eu

# dpkg-dev: tells meson the folder of this architecture's libraries.
build=(gcc libc6-dev dpkg-dev meson ninja-build pkgconf libsystemd-dev libglib2.0-dev libsqlite3-dev libseccomp-dev
    libgcrypt20-dev libsmartcols-dev libreadline-dev zlib1g-dev libpq-dev libcurl4-openssl-dev libyajl-dev python3
    python3-dev python3-docutils)
# libsqlipc-glib: introspection, Vala and its pages. GObject and GIO are in libglib2.0-dev.
glib=(gobject-introspection libgirepository1.0-dev valac gi-docgen)
# busctl is in systemd, dbus-daemon in dbus-daemon.
demo=("${build[@]}" systemd dbus-daemon)
# dpkg-buildpackage is in dpkg-dev. systemd.pc, which tells meson the folders of units, is in systemd.
package=("${build[@]}" "${glib[@]}" build-essential debhelper dh-python lintian systemd)
# The second compiler; C++ for the public header; sqlite3's shell, to compare our output with; the container of
# the system suite, with polkit and a bus for each user in it; the second shell with completions; the program for charts; a
# terminal's screen for the tests of the prompt; the pager; folders for packages from Python's registry, and pip; Qt's
# generator of code for D-Bus interfaces (of Qt 5, and without Qt's headers, which are 30 packages: the test that compiles
# its output is skipped without them); JavaScript, and GTK on an X server without a screen, for libsqlipc-glib; a server for
# the engine postgresql, certificates for it, and a network namespace; programs that the manual's examples call.
test=("${demo[@]}" "${package[@]}" clang g++ binutils git sqlite3 util-linux python3-gi dbus dbus-broker systemd-container
    systemd-sysv polkitd dbus-user-session libpam-systemd zsh gnuplot-nox python3-pip python3-pyte python3-venv less
    qtbase5-dev-tools gjs gir1.2-gtk-4.0 libgtk-4-dev xvfb valgrind fonts-dejavu-core postgresql openssl iproute2 man-db
    procps acl jq)
# The other databases that the benchmarks measure: MariaDB's programs without its service (PostgreSQL has no such package),
# and my_print_defaults, which mariadb-install-db calls and which is in mariadb-client-core. strace counts system calls.
bench=("${demo[@]}" gnuplot-nox postgresql libpq-dev mariadb-server-core mariadb-client-core libmariadb-dev strace)
# The engine of tools/fuzz.sh, its sanitizers, and the program that counts the lines that it reached.
fuzz=("${build[@]}" clang libclang-rt-dev llvm)
# Programs for the steps of .ci/run besides the tests, and the servers that a test compares with us or uses to reach us
# (ssh). Elsewhere the test skips these, so that no test starts services on a user's machine. And Qt's headers, and Java with
# Maven for a distributed database, which are many packages for one test each. debootstrap makes the other Debian.
gate=("${test[@]}" "${bench[@]}" "${fuzz[@]}" shellcheck valgrind abigail-tools openssh-client openssh-server
    qtbase5-dev default-jre-headless maven debootstrap)
# Programs for the checks of tools/analyse.sh.
analyse=("${gate[@]}" clang-tidy gcovr lld llvm)
# A terminal, and GTK, on an X server without a screen, a program that types keys, and one that takes pictures.
screenshots=("${demo[@]}" "${glib[@]}" gir1.2-gtk-4.0 python3-gi sqlite3 gnuplot-nox xvfb xterm xdotool imagemagick
    fonts-dejavu-core)

usage() {
    sed -n '4,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

wanted=()
[ $# -gt 0 ] || usage
for group; do
    case $group in
    analyse) wanted+=("${analyse[@]}") ;;
    bench) wanted+=("${bench[@]}") ;;
    build) wanted+=("${build[@]}") ;;
    demo) wanted+=("${demo[@]}") ;;
    fuzz) wanted+=("${fuzz[@]}") ;;
    gate) wanted+=("${gate[@]}") ;;
    glib) wanted+=("${build[@]}" "${glib[@]}") ;;
    package) wanted+=("${package[@]}") ;;
    screenshots) wanted+=("${screenshots[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    *) usage ;;
    esac
done

missing() {
    local package
    for package in "${wanted[@]}"; do
        # shellcheck disable=SC2016 # dpkg expands it
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done | sort -u
}

command -v dpkg-query >/dev/null || {
    echo "install-dependencies.sh: this is no Debian; needed is what these packages hold: ${wanted[*]}" >&2
    exit 1
}

mapfile -t packages < <(missing)
[ ${#packages[@]} -gt 0 ] || exit 0
echo "Installing ${packages[*]}"

as_root=()
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
        echo "install-dependencies.sh: needs root, or sudo, to install: ${packages[*]}" >&2
        exit 1
    }
    as_root=(sudo)
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)

# The present package lists may be old. If they work, this saves a minute; otherwise fetch new ones and try again.
install() { "${apt[@]}" install -qq -y --no-install-recommends "${packages[@]}"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install >"$log" 2>&1 || { "${apt[@]}" update -qq >"$log" 2>&1 && install >>"$log" 2>&1; } || {
    cat "$log" >&2
    exit 1
}

mapfile -t packages < <(missing)
[ ${#packages[@]} -eq 0 ] || {
    echo "install-dependencies.sh: still missing: ${packages[*]}" >&2
    exit 1
}
