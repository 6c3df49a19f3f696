#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tests/reliability/valgrind-unit-tests.sh BUILD
#
# The unit tests of a build directory under valgrind (valgrind.sh). Left out are programs that it cannot run (SQLite prints
# with long double, which has 64 bits there; seccomp), and those that start other programs.
exec meson test -C "$1" --no-rebuild --print-errorlogs --timeout-multiplier=10 --suite unit \
    --wrap="$(cd "$(dirname "$0")" && pwd)/valgrind.sh" \
    bench cli-caret cli-parameter config errors library-{channel,cursor,error,loop,parameters,statement} \
    page-{decoder,encoder,refused,statement} parameters pipe-budget protocol
