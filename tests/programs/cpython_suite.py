# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs CPython's tests of sqlite3 with sqlipc in its place.

usage: cpython_suite.py ADDRESS POOL TESTS MODULE...

The folder POOL has the files of databases that are published by the names of the files, TESTS has the folder test_sqlite3. A
connection to ":memory:" gets a database that is empty, and so does each path that a test uses for the first time.
"""

import contextlib
import gc
import os
import pathlib
import sqlite3 as real
import sys
import test
import unittest

import outcomes
import sqlipc
import sqlipc._core
import sqlipc._errors
import sqlipc.dbapi2

ADDRESS, POOL, TESTS, *MODULES = sys.argv[1:]
free = sorted(pathlib.Path(POOL).glob("*.sqlite"))
published = {file.stem for file in free}
used, names = [], {}


def locate(database, bus, host, uri):
    """In the place of the function of sqlipc that turns the name of a database into a place."""
    path = os.fsdecode(database)
    if path in published:  # another connection of ours, to the same database
        return path, ADDRESS, None
    if uri:
        raise sqlipc.NotSupportedError("a URI that names a file")
    if "\0" in path:
        raise ValueError("embedded null byte")
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise sqlipc._errors.error_of_code("CANTOPEN", "unable to open database file")
    if path in ("", ":memory:") or path not in names:
        used.append(free.pop())
        names[path] = used[-1].stem
    return names[path], ADDRESS, None


def empty(file):
    """False: a connection that a test has left open has locked it."""
    try:
        with contextlib.closing(real.connect(":memory:")) as nothing, contextlib.closing(real.connect(file, 0)) as db:
            db.execute("BEGIN EXCLUSIVE")  # backup() would wait for ever
            db.rollback()
            nothing.backup(db)
    except real.OperationalError:
        return False
    return True


class Result(outcomes.Outcomes):
    """Empties the databases that the last test has used."""

    def startTest(self, case):  # noqa: N802 - the name is unittest's
        gc.collect()  # Before that the last test holds its connections.
        locked = [file for file in used if not empty(file)]  # A rollback may still be under way.
        free.extend(file for file in used if file not in locked)
        used[:] = locked
        names.clear()
        super().startTest(case)


sqlipc._core.locate = locate
sys.modules |= {"sqlite3": sqlipc, "sqlite3.dbapi2": sqlipc.dbapi2}
test.__path__.append(TESTS)
for name in MODULES:
    unittest.defaultTestLoader.loadTestsFromName("test.test_sqlite3." + name).run(Result())
