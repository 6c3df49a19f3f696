#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ADBC driver, called by a program in C: objects are released in any order, and nothing leaks."""
import contextlib
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from harness import BUILD_ROOT, main, wait_for  # noqa: E402
from library import service_of_notes  # noqa: E402
from tap import equal, test  # noqa: E402

PROGRAM = BUILD_ROOT / "tests/adbc/adbc-client"
exit_stack = contextlib.ExitStack()
service, path = exit_stack.enter_context(service_of_notes())


def case(name, title):
    def one():
        done = subprocess.run([PROGRAM, service.address, name], env=service.environment, capture_output=True, text=True,
                              check=False)
        equal((done.returncode, done.stderr), (0, ""), "exit code and messages")
        wait_for(lambda: service.counters()["NRuns"] == 0, "its runs end")

    one.__name__, one.__doc__ = name, title
    test(one)


case("orders", "Statement, connection, database and result are released in each order")
case("batches", "A batch outlives its connection, and its columns each other")
case("endless", "Results become stale, are cancelled, and are released unread")
case("errors", "Errors of statements and streams, for each version of their struct")
case("writes", "Bound rows are taken, replaced, loaded and ingested")
case("metadata", "Objects, information and schemas")
case("cancelled", "A cancelled connection ends the streams of its functions and statements that are not read to their end")


@test
def end():
    """The service is left with nothing"""
    exit_stack.close()


if __name__ == "__main__":
    main()
