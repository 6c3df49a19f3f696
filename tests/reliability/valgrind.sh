#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tests/reliability/valgrind.sh PROGRAM [ARGUMENT]...
#
# Runs a test program under valgrind. Exit code 99: it read uninitialised memory, or left a descriptor open that
# it had opened itself; standard error has the details. Else that of the program. Leaks are for AddressSanitizer: test
# programs leave to the kernel what they have at their end.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT

valgrind --log-file="$log" --child-silent-after-fork=yes --error-exitcode=99 --track-fds=yes "$@"
code=$?

# The line after "Open ..." says where it was opened, or that it was inherited. 0 to 2 belong to every process.
left=$(awk '/ Open (file descriptor|AF_)/ { open = $0; next }
            open { if (!/inherited from parent/ && open !~ /descriptor [012]:/) print open; open = "" }' "$log")
[ $code != 99 ] || cat "$log" >&2
[ -z "$left" ] || {
    printf 'left open:\n%s\n' "$left" >&2
    cat "$log" >&2
    code=99
}
exit $code
