#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/analyse.sh [CHECK]...
#
# Checks the code by other means than its tests. Without arguments it runs all checks, which takes hours on two cores:
#
#   compilers    gcc and clang, at -O0, and at -O3 with link-time optimization and without assertions: no warning, and the
#                unit and fuzz suites pass in each
#   analyzer     gcc -fanalyzer: no finding except those of tools/analyse-suppressions.txt, which has their reasons
#   tidy         clang-tidy, including its static analyzer: the same
#   valgrind     the unit suite, and the supervisor under a client's calls: no uninitialised memory is read, no
#                memory is lost, no descriptor is left open
#   abi          libsqlipc against client-lib/libsqlipc.abi, its ABI at the last release: nothing was removed or changed
#   coverage     lines and branches that the suites unit, fuzz, bus and reliability run, by file; then code that is not run
#   32-bit       as root: the suites unit, fuzz, bus and cli in a 32-bit Debian, which is installed into build-analyse
#
# All builds are in build-analyse. The last line is "N passed, N failed"; exit code 0 if nothing failed.
#
# tools/analyse.sh --update-abi     after a release: writes client-lib/libsqlipc.abi again
set -u
cd "$(dirname "$0")/.." || exit 1
readonly checks=(compilers analyzer tidy valgrind abi coverage 32-bit)
readonly folder=build-analyse suppressions=tools/analyse-suppressions.txt
passed=0 failed=0

# verdict NAME COMMAND...: counts the command as passed or failed, by its exit code.
verdict() {
    local name=$1
    shift
    printf '== %s\n' "$name"
    if "$@"; then
        passed=$((passed + 1))
        echo "ok - $name"
    else
        failed=$((failed + 1))
        echo "not ok - $name"
    fi
}

# configure NAME CC [MESON OPTION...]
configure() {
    local dir=$folder/$1 cc=$2
    shift 2
    mkdir -p "$folder"
    [ -e "$dir/build.ninja" ] || CC=$cc meson setup "$dir" -Dwerror=true -Ddocs=false "$@" >"$dir.log" 2>&1 || {
        cat "$dir.log"
        return 1
    }
}

unit_tests() {
    meson test -C "$1" --no-rebuild --print-errorlogs --suite unit --suite fuzz >"$1.tests" 2>&1 || {
        cat "$1.tests"
        return 1
    }
}

build_and_test() {
    configure "$@" && ninja -C "$folder/$1" --quiet && unit_tests "$folder/$1"
}

compilers() {
    local cc release=(--buildtype=release -Db_lto=true -Db_ndebug=true)

    for cc in gcc clang; do
        verdict "$cc -O0" build_and_test "$cc-O0" $cc --buildtype=debug
        if [ $cc = clang ]; then # bitcode needs its own linker, and its own archiver
            export CC_LD=lld AR=llvm-ar
        fi
        verdict "$cc -O3, LTO, NDEBUG" build_and_test "$cc-O3" $cc "${release[@]}"
        unset CC_LD AR
    done
}

# is_suppressed FILE CLASS WORDS: true if a line of the suppressions names this finding.
is_suppressed() {
    local file class words

    while read -r file class words; do
        # shellcheck disable=SC2053 # a file may be *
        [[ $1 == $file && $2 == "$class" && $3 == "$words"* ]] && return
    done < <(grep -v '^#' $suppressions)
    return 1
}

# unsuppressed LOG: prints the findings that are not suppressed, a line each.
unsuppressed() {
    local finding file class

    sed 's/\x1b\[[0-9;]*m//g' "$1" | grep -aE '^[^ :]+:[0-9]+:[0-9]+: (warning|error): .*\[[a-zA-Z0-9.,=-]+\]$' |
        sed -E "s#^([^:]*/)?(\.\./)+##; s#^$PWD/##" | sort -u |
        while IFS= read -r finding; do
            file=${finding%%:*} class=${finding##*\[} class=${class%\]}
            is_suppressed "$file" "${class%%,*}" "${finding#*: *: }" || printf '%s\n' "$finding"
        done
}

no_findings() {
    local found

    found=$(unsuppressed "$1")
    [ -z "$found" ] || { printf '%s\n' "$found"; return 1; }
}

analyzer() {
    configure analyzer gcc -Dwerror=false -Dtests=false -Dc_args=-fanalyzer || return
    ninja -C $folder/analyzer -t clean >/dev/null # a file that is not compiled has no findings
    ninja -k0 -C $folder/analyzer >$folder/analyzer.findings 2>&1 || { tail $folder/analyzer.findings; return 1; }
    no_findings $folder/analyzer.findings
}

tidy() {
    configure tidy clang -Dtests=false || return
    run-clang-tidy -quiet -p $folder/tidy "$PWD/(daemon|client-lib|dbus-interfaces|tools)/" \
        >$folder/tidy.findings 2>/dev/null
    grep -q 'clang-tidy' $folder/tidy.findings || { echo "run-clang-tidy did not run"; return 1; }
    no_findings $folder/tidy.findings
}

valgrind_tests() {
    configure valgrind gcc -Dinvariants=true && ninja -C $folder/valgrind --quiet &&
        tests/reliability/valgrind-unit-tests.sh $folder/valgrind &&
        meson test -C $folder/valgrind --no-rebuild --print-errorlogs reliability-valgrind
}

build_library() {
    configure abi gcc --buildtype=debug &&
        ninja -C $folder/abi --quiet "client-lib/$(readlink $folder/abi/client-lib/libsqlipc.so.0)"
}

# Writes file names without their folders, which would be those of this machine. The public header is copied to a folder of
# its own, since abidw takes all types for private if it gets the file itself.
abi_description() {
    mkdir -p $folder/abi/public && cp client-lib/sqlipc.h $folder/abi/public/
    abidw --no-show-locs --no-corpus-path --no-comp-dir-path --drop-private-types --headers-dir $folder/abi/public \
        $folder/abi/client-lib/libsqlipc.so.0 | sed -E "s#( path=')[^']*/#\\1#"
}

abi() {
    build_library && SQLIPC_BUILD_ROOT=$PWD/$folder/abi SQLIPC_SOURCE_ROOT=$PWD /usr/bin/python3 tests/lint/test_abi.py
}

# All programs add their counts to one set of files. Some are of other users, so the files are made beforehand
# and open to all users (a umask for all tests would change the result of the file rules). Workers count,
# too, since their filter allows locks. Counts of a killed process are lost. Each assertion has a branch that is never taken.
coverage() {
    local build=$folder/coverage program r

    configure coverage gcc --buildtype=debug -Db_coverage=true -Dinvariants=true && ninja -C $build --quiet || return
    find $build -name '*.gcda' -delete
    find $build -type d -exec chmod a+rwx {} +
    (umask 0 && for program in supervisor/sqlipcd worker/sqlipc-worker ../tools/cli/ipcq-cli ../tests/bus/library-client; do
        "$build/daemon/$program" --version </dev/null
    done) >/dev/null 2>&1
    meson test -C $build --no-rebuild --print-errorlogs --timeout-multiplier=3 --suite unit --suite fuzz --suite bus \
        --suite reliability >$build.tests 2>&1 || tail -n 12 $build.tests
    gcovr --root . --filter 'daemon/' --filter 'client-lib/' --filter 'dbus-interfaces/' --object-directory $build \
        --exclude-branches-by-pattern '.*\bassert\(' --print-summary --csv $build.csv --txt $build.txt \
        --html-details $build.html --fail-under-line 95
    r=$?
    coverage_table $build.csv | tee $build.md
    awk '$3 != $2 || NF < 4' $build.txt
    return $r
}

# coverage_table CSV: prints the files, least covered first, as Markdown.
coverage_table() {
    printf '| File | Lines | of | %% | Branches | of | %% |\n|---|---:|---:|---:|---:|---:|---:|\n'
    awk -F, 'NR > 1 && $2 > 0 { printf "%.1f,%s\n", 100 * $3 / $2, $0 }' "$1" | sort -t, -k1,1n -k2,2 |
        awk -F, '{ printf "| %s | %d | %d | %s | %d | %d | %s |\n", $2, $4, $3, $1, $7, $6,
                   ($6 > 0 ? sprintf("%.1f", 100 * $7 / $6) : "") }'
}

# A 32-bit Debian, installed once. It can read the checkout, but cannot write to it.
thirty_two_bits() {
    local root=$PWD/$folder/i386 packages

    [ "$(id -u)" = 0 ] || { echo "needs root"; return 1; }
    packages=gcc,libc6-dev,dpkg-dev,meson,ninja-build,pkgconf,libsystemd-dev,libglib2.0-dev,libsqlite3-dev,libseccomp-dev
    packages+=,libgcrypt20-dev,libsmartcols-dev,libreadline-dev,zlib1g-dev,python3,python3-docutils,systemd,dbus-daemon
    packages+=,python3-gi,python3-pyte,sqlite3,gnuplot-nox,less
    [ -e "$root/done" ] ||
        debootstrap --arch=i386 --variant=minbase --include=$packages bookworm "$root" >"$root.log" 2>&1 ||
        { tail "$root.log" && return 1; }
    touch "$root/done"
    mkdir -p "$root/src"
    unshare --mount --pid --fork --kill-child -- bash -euc '
        mount --make-rprivate /
        mount --bind "$1" "$1" # tests there mount, too, which takes a root that is a mount point
        mount --bind . "$1/src"
        mount -o remount,bind,ro "$1/src"
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec setarch i686 chroot "$1" bash -euc "
            [ -e /build/build.ninja ] || meson setup /build /src -Dwerror=true -Dinvariants=true -Ddocs=false
            ninja -C /build --quiet
            meson test -C /build --no-rebuild --print-errorlogs --suite unit --suite fuzz --suite bus --suite cli"
    ' bash "$root" >"$root.tests" 2>&1 || { tail -n 40 "$root.tests"; return 1; }
    grep -E '^(Ok|Fail):' "$root.tests"
}

case ${1-} in
-h | --help)
    sed -n '4,24s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
--update-abi)
    tools/install-dependencies.sh analyse && build_library && abi_description >client-lib/libsqlipc.abi
    exit
    ;;
esac
[ $# -gt 0 ] || set -- "${checks[@]}"
for check; do
    case " ${checks[*]} " in
    *" $check "*) ;;
    *)
        echo "tools/analyse.sh: unknown check $check, there are: ${checks[*]}" >&2
        exit 2
        ;;
    esac
done

tools/install-dependencies.sh analyse || exit 1
for check; do
    case $check in
    compilers) compilers ;;
    analyzer) verdict "gcc -fanalyzer" analyzer ;;
    tidy) verdict "clang-tidy" tidy ;;
    valgrind) verdict "valgrind" valgrind_tests ;;
    abi) verdict "ABI of libsqlipc" abi ;;
    coverage) verdict "coverage of daemon and library" coverage ;;
    32-bit) verdict "32 bits" thirty_two_bits ;;
    esac
done
printf '\n%d passed, %d failed\n' $passed $failed
[ $failed = 0 ]
