#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/fuzz.sh [--seconds N | --hours N] [--jobs N] [--seed N] [--merge] [--coverage] [--build DIR] [--compile]
#               [TARGET...]
#
# Fuzzes with libFuzzer, under ASan and UBSan: every tests/fuzz/fuzz-TARGET.c, or the named targets. First installs missing
# packages and builds. A target begins with its corpus (tests/fuzz/corpus/TARGET) and its earlier finds, and stops at the
# first input that breaks something. That input is added to the corpus as crash-HASH, and the tests replay it from then on.
# At the end prints the number of inputs and the outcome of each target, in lines that tests/reliability/report.py reads, and
# in a table; both are in DIR/report, too.
#
# --seconds N    time for each target; default 60; 0 only replays
# --hours N      the same in hours
# --jobs N       number of targets at a time; default: the number of processors
# --seed N       seed of the engine's random numbers; by default one is chosen, and printed
# --merge        at the end, adds finds that reach new lines to the corpus
# --coverage     at the end, prints how much of the target's files ("About:") corpus and finds reach: lines and branches
# --build DIR    folder of the build and of the finds; default build-fuzz
# --compile      only installs and builds
#
# Exit code: 0 nothing broke, 1 something did, 2 wrong usage.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

usage() {
    sed -n '4,23s/^# \{0,1\}//p' tools/fuzz.sh
    exit "$1"
}

seconds=60 jobs=$(nproc) seed=$((RANDOM * 32768 + RANDOM + 1)) merge=0 coverage=0 compile=0 build=build-fuzz targets=()
while [ $# -gt 0 ]; do
    case $1 in
    --seconds | --hours | --jobs | --seed)
        [[ ${2-} =~ ^[0-9]+$ ]] || { echo "tools/fuzz.sh: $1 needs a number" >&2; exit 2; } ;;&
    --seconds) seconds=$2; shift 2 ;;
    --hours) seconds=$(($2 * 3600)); shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    --merge) merge=1; shift ;;
    --coverage) coverage=1; shift ;;
    --build) [ $# -gt 1 ] || { echo "tools/fuzz.sh: --build needs a folder" >&2; exit 2; }; build=$2; shift 2 ;;
    --compile) compile=1; shift ;;
    -h | --help) usage 0 ;;
    -*) echo "tools/fuzz.sh: unknown argument $1" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
    esac
done
[ "$jobs" -gt 0 ] || { echo "tools/fuzz.sh: --jobs needs at least 1" >&2; exit 2; }

all() { find tests/fuzz -maxdepth 1 -name 'fuzz-*.c' -printf '%f\n' | sed 's/^fuzz-//; s/\.c$//' | sort; }
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(all)
for target in "${targets[@]}"; do
    [ -e "tests/fuzz/fuzz-$target.c" ] && continue
    echo "tools/fuzz.sh: there is no target $target; there are $(all | tr '\n' ' ')" >&2
    exit 2
done

# make DIR [MESON OPTION...]: builds only the wanted targets. (At -O1 that takes as long.)
make() {
    local dir=$1
    shift
    if [ ! -e "$dir/build.ninja" ]; then
        LLVM_PROFILE_FILE=/dev/null CC=clang meson setup "$dir" -Dwerror=true -Dfuzzing=true -Ddocs=false "$@" \
            >"$dir.log" 2>&1 || { cat "$dir.log" >&2; return 1; }
        rm -f "$dir.log"
    fi
    ninja -C "$dir" --quiet "${targets[@]/#/tests/fuzz/fuzz-}"
}

# The folders of a target. The corpus comes first, because the engine adds the finds of --merge to the first.
corpus() { echo "tests/fuzz/corpus/$1"; }
finds() { echo "$build/finds/$1"; }

# fuzz TARGET: runs the engine; its output goes to a log.
fuzz() {
    local broken=$build/broken/$1 limit=(-max_total_time="$seconds") dictionary=()
    [ "$seconds" -gt 0 ] || limit=(-runs=0)
    [ ! -e "tests/fuzz/$1.dict" ] || dictionary=(-dict="tests/fuzz/$1.dict")
    rm -rf "$broken"
    mkdir -p "$broken" "$(finds "$1")"
    "$build/tests/fuzz/fuzz-$1" -seed="$seed" "${limit[@]}" "${dictionary[@]}" -timeout=25 -print_final_stats=1 \
        -artifact_prefix="$broken/" "$(finds "$1")" "$(corpus "$1")" >"$build/logs/$1" 2>&1
}

# broken TARGET: the inputs that broke it; the folder also has inputs that only took long.
broken() { find "$build/broken/$1" -type f ! -name 'slow-unit-*'; }

# keep TARGET: adds each input that broke something to the corpus.
keep() {
    local input kept
    tail -n 60 "$build/logs/$1" >&2
    broken "$1" | while read -r input; do
        kept=$(corpus "$1")/crash-$(sha1sum <"$input" | head -c 12)
        cp "$input" "$kept"
        echo "tools/fuzz.sh: $1 broke by $kept; again: $build/tests/fuzz/fuzz-$1 $kept" >&2
    done
    echo "tools/fuzz.sh: $1 failed; all that it said is in $build/logs/$1" >&2
}

# figure TARGET NAME: a figure of the statistics at the end of the engine's output. edges: the edges that it reached.
figure() { sed -n "s/^stat::$2: *//p" "$build/logs/$1" | grep . || echo 0; }
inputs() { figure "$1" number_of_executed_units; }
edges() { sed -n 's/^#[0-9].*[[:space:]]cov: \([0-9]*\) .*/\1/p' "$build/logs/$1" | tail -n 1 | grep . || echo 0; }
files() { find "$1" -type f | wc -l; }

# covered TARGET: "LINES% BRANCHES%" of the files that its first comment names. Meson compiles in the build folder, so
# llvm-cov does not know the files by their names in the checkout: this function sums up its output for all files.
covered() {
    local program=$build-coverage/tests/fuzz/fuzz-$1 profile=$build-coverage/$1 about
    # shellcheck disable=SC2046 # it is a list of patterns
    about=$(ls $(sed -n 's/^ \* About: //p' "tests/fuzz/fuzz-$1.c")) || return
    LLVM_PROFILE_FILE=$profile.profraw "$program" -runs=0 "$(finds "$1")" "$(corpus "$1")" >"$profile.log" 2>&1 &&
        llvm-profdata merge -o "$profile.profdata" "$profile.profraw" &&
        llvm-cov report "$program" -instr-profile="$profile.profdata" |
        awk -v about="$about" '
            BEGIN { n = split(about, names, "\n"); for (i = 1; i <= n; i++) wanted[names[i]] = 1 }
            function is_wanted(path) { while (!(path in wanted) && sub("^[^/]*/", "", path)); return path in wanted }
            is_wanted($1) { lines += $8; missed += $9; branches += $11; branches_missed += $12 }
            function share(all, gone) { return all > 0 ? sprintf("%.1f%%", 100 * (all - gone) / all) : "-" }
            END { if (lines == 0) exit 1; print share(lines, missed), share(branches, branches_missed) }'
}

# Prints the input of tests/reliability/report.py: for each target the number of inputs, then their outcome.
said() {
    for target in "${targets[@]}"; do
        echo "# cases: fuzz $target: $(inputs "$target"): inputs by the engine"
        [ ! -e "$build/logs/$target.failed" ] || echo -n "not "
        echo "ok - fuzz $target"
    done
}

table() {
    local format='| %-16s | %10s | %8s | %6s | %5s | %6s | %6s |' lines branches
    # shellcheck disable=SC2059 # two rows of the same widths
    row() { printf "$format" "${@:1:7}"; [ $coverage = 0 ] || printf ' %8s | %8s |' "${@:8}"; echo; }
    echo
    row Target Inputs 'a second' Edges New Corpus Broken Lines Branches
    row ---------------- ---------: -------: -----: ----: -----: -----: -------: -------:
    for target in "${targets[@]}"; do
        lines='' branches=''
        [ $coverage = 0 ] || read -r lines branches < <(covered "$target") || status=1
        row "$target" "$(inputs "$target")" "$(figure "$target" average_exec_per_sec)" "$(edges "$target")" \
            "$(figure "$target" new_units_added)" "$(files "$(corpus "$target")")" "$(broken "$target" | wc -l)" \
            "$lines" "$branches"
    done
}

tools/install-dependencies.sh fuzz || exit 1
make "$build" -Db_sanitize=address,undefined -Db_lundef=false || exit 1
[ $coverage = 0 ] || make "$build-coverage" -Dc_args='-fprofile-instr-generate -fcoverage-mapping' \
    -Dc_link_args=-fprofile-instr-generate -Db_lundef=false || exit 1
[ $compile = 0 ] || exit 0
mkdir -p "$build/logs"

echo "seed $seed: ${targets[*]}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
status=0 running=0
fuzz_or_note() { fuzz "$1" || : >"$build/logs/$1.failed"; }
for target in "${targets[@]}"; do
    rm -f "$build/logs/$target.failed"
    [ $running -lt "$jobs" ] || { wait -n; running=$((running - 1)); }
    fuzz_or_note "$target" &
    running=$((running + 1))
done
wait

for target in "${targets[@]}"; do
    if [ -e "$build/logs/$target.failed" ]; then
        keep "$target"
        status=1
    elif [ $merge = 1 ]; then
        "$build/tests/fuzz/fuzz-$target" -set_cover_merge=1 -use_counters=0 "$(corpus "$target")" "$(finds "$target")" \
            >>"$build/logs/$target" 2>&1 || status=1
    fi
done
{ said; table; } >"$build/report"
cat "$build/report"
exit $status
