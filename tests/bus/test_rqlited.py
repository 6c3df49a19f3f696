#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The engine with rqlite itself: the tests that otherwise run with its imitation, with three nodes; and tests of SQLite
databases, with the same file on a node. Of these, rqlite-differences.txt has those that fail.

usage: test_rqlited.py [--verbose] [TEST]...
"""
import os
import subprocess

from harness import BUILD_ROOT, SOURCE_ROOT, main
from suites import Suites
from tap import diagnose, equal, make_for_file, test

FOLDER = BUILD_ROOT / "tests/rqlite"
SUITES = (
    "bus/parameters", "bus/batches", "bus/writes", "bus/library_writes", "bus/library_batches", "cli/commands", "cli/query",
    "python/dbapi",
)  # fmt: skip

make_for_file(SOURCE_ROOT / "tests/rqlite/make-rqlited.sh", FOLDER, "rqlite cannot be built")


def passes(*command):
    environment = os.environ | {"SQLIPC_RQLITED": str(FOLDER / "rqlited"), "SQLIPC_SOURCE_ROOT": str(SOURCE_ROOT)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0 or "\nnot ok" in output:
        diagnose(output[-10000:])
    equal((done.returncode, "\nnot ok" in output), (0, False), f"outcome of {command[-1]}")


@test
def cluster():
    """any node may be asked, reads are as new as their level says, and a leader that is killed loses no write"""
    passes(BUILD_ROOT / "tests/unit/test-rqlite-cluster")


@test
def values():
    """values of each declared type, errors, writes, windows, and random queries, which SQLite answers the same"""
    passes(BUILD_ROOT / "tests/unit/test-rqlite-engine")


@test
def jobs():
    """jobs of several clients in one request, lists, loads"""
    passes(BUILD_ROOT / "tests/unit/test-rqlite-jobs")


@test
def engine():
    """rows, windows, watches and passwords, through the service"""
    passes("/usr/bin/python3", SOURCE_ROOT / "tests/bus/test_engine_rqlite.py")


@test
def migration():
    """chinook moves there"""
    passes("/usr/bin/python3", SOURCE_ROOT / "tests/bus/test_migrate_rqlite.py")


suites = Suites(
    "rqlite", "Difference on rqlite", {"SQLIPC_TEST_RQLITE": "1", "SQLIPC_RQLITED": str(FOLDER / "rqlited")}
)
for each in SUITES:
    suites.add(each)


@test
def documented():
    """Each difference of the list is described in the documentation, and each that is described there is in the list"""
    suites.check_documentation()


main()
