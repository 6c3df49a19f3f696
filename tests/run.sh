#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tests/run.sh [--all] [--suite NAME]... [--long] [--report]
#
# Builds and tests everything, from a bare checkout on: installs what is missing, then builds with gcc in build-gcc, where
# warnings are errors, and runs all suites but "slow": the tests that need much time, for which others try less of the same.
#
# --all          also the suite slow, and more builds, in parallel:
#                build-asan     gcc with ASan and UBSan            all suites; build-gcc leaves out what does the same there
#                build-clang    clang, warnings are errors         compiled only
# --suite NAME   only this suite (unit, bus, cli, python, programs, lint, system, fuzz, reliability, slow), again for another
# --long         the tests with random input and load try more (tests/bus/sizes.py)
# --report       at the end a table of the cases that the suites reliability and fuzz tried, also in build-gcc/report.md
#
# The last line is "N passed, N failed", with ", N skipped" where something was. Exit code: 0 if something ran and nothing
# failed. What a test printed is in BUILD/meson-logs/testlog.txt.
set -u
cd "$(dirname "$0")/.." || exit 1

suites=() all=0 report=0
while [ $# -gt 0 ]; do
    case $1 in
    --suite) [ $# -gt 1 ] || { echo "tests/run.sh: --suite needs a name" >&2; exit 2; }; suites+=(--suite "$2"); shift 2 ;;
    --suite=*) suites+=(--suite "${1#*=}"); shift ;;
    --all) all=1; shift ;;
    --long) export SQLIPC_TEST_LONG=1; shift ;;
    --report) report=1; shift ;;
    -h | --help) sed -n '4,17s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "tests/run.sh: unknown argument $1" >&2; exit 2 ;;
    esac
done

logs=() broken=0

say() { printf '\n== %s\n' "$*"; }

# took SINCE WHAT: SINCE is a value of SECONDS. .ci/run repeats these lines at its end.
took() { printf 'took %5d s: %s\n' $((SECONDS - $1)) "$2"; }

# configure DIR CC [MESON OPTION...]: a build directory that exists is kept, with the options of today.
configure() {
    local dir=$1 cc=$2
    shift 2
    if [ -e "$dir/build.ninja" ]; then
        meson configure "$dir" -Dwerror=true "$@" >/dev/null
    else
        CC=$cc meson setup "$dir" -Dwerror=true "$@" >"$dir.log" 2>&1 || { cat "$dir.log"; return 1; }
        rm -f "$dir.log"
    fi
}

# build DIR CC [MESON OPTION...]
build() {
    local since=$SECONDS
    say "building $1 ($2 ${*:3})"
    if ! configure "$@" || ! ninja -C "$1" --quiet; then
        echo "tests/run.sh: $1 does not build" >&2
        broken=$((broken + 1))
        return 1
    fi
    took "$since" "building $1"
}

# check DIR [MESON OPTION...]: runs the suites; the verdict is read from meson's log, so that TAP subtests count. Most tests
# wait for most of their time, so four of them run at once for each processor, or three if another build goes on beside them:
# three leave a sixth of two processors idle. A busy machine is no failure.
check() {
    local since=$SECONDS
    say "testing $1 ${suites[*]:-all suites} ${*:2}"
    rm -f "$1/meson-logs/testlog.json"
    meson test -C "$1" --no-rebuild --print-errorlogs --num-processes $(($(nproc) * (4 - all))) --timeout-multiplier 4 \
        "${suites[@]}" "${@:2}"
    logs+=("$1/meson-logs/testlog.json")
    took "$since" "testing $1"
}

say "installing what is missing"
tools/install-dependencies.sh test || exit 1
took 0 "installing"

# On two bare cores this takes 140 s, and 164 s with -O2, whose warnings come from the release of .ci/run.
build build-gcc gcc -Doptimization=1 -Dinvariants=true
built=$?
if [ $all = 1 ]; then
    # Tests leave processors idle while they wait, so the other builds are made beside them, at the lowest priority.
    output=$(mktemp)
    (
        renice -n 19 -p "$BASHPID" >/dev/null
        # With -O1 and no more than line numbers for reports, gcc needs half the time, and the tests need no longer.
        build build-asan gcc -Doptimization=1 -Ddebug=false -Dc_args=-g1 -Dinvariants=true -Db_sanitize=address,undefined
        # For its warnings, which do not depend on optimization; nothing runs, and the pages are made by build-gcc.
        build build-clang clang -Doptimization=0 -Ddebug=false -Ddocs=false -Dintrospection=disabled
        exit $broken
    ) >"$output" 2>&1 &
    aside=$!
    # Ctrl-C does not reach what runs in the background.
    trap 'kill $(pgrep -P "$aside") "$aside"; rm -f "$output"' EXIT
fi
# tests/meson.build says what "either" and "slow" are.
if [ $built = 0 ]; then
    if [ $all = 1 ]; then
        check build-gcc --no-suite either
    elif [[ " ${suites[*]} " =~ " "(slow|programs)" " ]]; then
        check build-gcc
    else
        check build-gcc --no-suite slow
    fi
fi
if [ $all = 1 ]; then
    since=$SECONDS
    wait "$aside" || broken=$((broken + $?))
    trap - EXIT
    cat "$output"
    rm -f "$output"
    took "$since" "waiting for the other builds"
    # It fails again if build-asan does not build.
    ninja -C build-asan --quiet >/dev/null && check build-asan
fi

if [ $report = 1 ]; then
    say "faults and attacks"
    /usr/bin/python3 tests/reliability/report.py "${logs[@]}" | tee build-gcc/report.md
    [ "${PIPESTATUS[0]}" = 0 ] || broken=$((broken + 1))
fi

say "result"
exec /usr/bin/python3 tests/summary.py --broken "$broken" "${logs[@]}"
