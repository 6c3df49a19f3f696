#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""CPython's own tests of sqlite3, with sqlipc in its place. Those that fail are in cpython-differences.txt, each for a
difference that docs/programs.md describes.

usage: test_cpython.py [--verbose] [CASE]...
"""

import contextlib
import sqlite3
import subprocess
import sys

import outcomes
from harness import BUILD_ROOT, SOURCE_ROOT, main
from python_service import PythonService
from suites import VERBOSE, Suites
from tap import diagnose, equal, make_for_file, skip_file, test

HERE = SOURCE_ROOT / "tests/programs"
VERSION = (3, 11)  # of Python, whose tests the list is about
FOLDER = BUILD_ROOT / "tests/programs/cpython"
if sys.version_info[:2] != VERSION:
    skip_file("the list of differences is about the tests of Python " + ".".join(map(str, VERSION)))
make_for_file(HERE / "make-cpython-tests.sh", FOLDER, "CPython's tests cannot be fetched")
MODULES = sorted(path.stem for path in (FOLDER / "test_sqlite3").glob("test_*.py"))
N_DATABASES = 150  # tests that fail leave some locked

service = PythonService()
pool = service.data / "pool"
pool.mkdir()
for i in range(N_DATABASES):
    path = pool / f"pool-{i}.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = wal")
    service.database(path.stem, Path=path, Mode="read-write", WriteSchema="yes")
service.driver.manager("Reload")
suites = Suites("cpython", "Difference", {}, folder="programs", page="programs")


@test
def cpython():
    """CPython's tests of sqlite3 pass, except for the list"""
    command = [sys.executable, HERE / "cpython_suite.py", service.address, pool, FOLDER, *MODULES]
    done = subprocess.run(command, cwd=service.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    found = outcomes.read(output)
    if VERBOSE or sorted(found) != MODULES:
        diagnose(output)
    equal(sorted(found), MODULES, "modules that ran")
    suites.compare_all(found)


main(service)
