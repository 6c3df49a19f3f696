#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""PEP 249, point by point."""

import contextlib
import datetime
import inspect
import os
import signal
import sqlite3
import subprocess
import sys
import time

import sqlipc
from harness import main
from python_service import PythonService, raises
from tap import equal, test, true

service = PythonService()


@test
def module():
    """Globals, constructors, type objects and the hierarchy of exceptions"""
    equal((sqlipc.apilevel, sqlipc.paramstyle), ("2.0", "qmark"), "globals")
    true(sqlipc.threadsafety in (0, 1, 2, 3), "threadsafety")
    true(callable(sqlipc.connect), "connect()")
    parents = {
        "Warning": Exception,
        "Error": Exception,
        "InterfaceError": sqlipc.Error,
        "DatabaseError": sqlipc.Error,
        "DataError": sqlipc.DatabaseError,
        "OperationalError": sqlipc.DatabaseError,
        "IntegrityError": sqlipc.DatabaseError,
        "InternalError": sqlipc.DatabaseError,
        "ProgrammingError": sqlipc.DatabaseError,
        "NotSupportedError": sqlipc.DatabaseError,
    }
    for name, parent in parents.items():
        equal(getattr(sqlipc, name).__bases__, (parent,), f"bases of {name}")
        true(getattr(sqlipc.Connection, name) is getattr(sqlipc, name), f"Connection.{name}")
    equal(sqlipc.Date(2026, 1, 2), datetime.date(2026, 1, 2), "Date()")
    equal(sqlipc.Time(1, 2, 3), datetime.time(1, 2, 3), "Time()")
    equal(sqlipc.Timestamp(2026, 1, 2, 3, 4, 5), datetime.datetime(2026, 1, 2, 3, 4, 5), "Timestamp()")
    now = time.time()
    equal(sqlipc.DateFromTicks(now), datetime.datetime.fromtimestamp(int(now)).date(), "DateFromTicks()")
    equal(sqlipc.TimeFromTicks(now), datetime.datetime.fromtimestamp(int(now)).time(), "TimeFromTicks()")
    equal(sqlipc.TimestampFromTicks(now), datetime.datetime.fromtimestamp(int(now)), "TimestampFromTicks()")
    equal(bytes(sqlipc.Binary(b"\0\xff")), b"\0\xff", "Binary()")
    for name, types in {"STRING": "TEXT", "BINARY": "BLOB", "NUMBER": "INTEGER", "DATETIME": "TIMESTAMP"}.items():
        true(getattr(sqlipc, name) == types and getattr(sqlipc, name) != "other", name)
    true(sqlipc.ROWID != "TEXT", "ROWID")


@test
def connection():
    """close, commit, rollback, cursor; nothing works after close()"""
    db = service.connect()
    equal(db.commit(), None, "commit() without a transaction")
    equal(db.rollback(), None, "rollback() without a transaction")
    cursor = db.cursor()
    true(cursor.connection is db, "Cursor.connection")
    db.close()
    db.close()
    for method in (db.commit, db.rollback, db.cursor, db.__enter__, lambda: db.execute("SELECT 1")):
        raises(sqlipc.ProgrammingError, method)
    for method in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, lambda: cursor.execute("SELECT 1")):
        raises(sqlipc.ProgrammingError, method)
    raises(sqlipc.ProgrammingError, sqlipc.Connection.__new__(sqlipc.Connection).cursor)
    raises(sqlipc.ProgrammingError, sqlipc.Cursor.__new__(sqlipc.Cursor).execute, "SELECT 1")


@test
def description_and_rowcount():
    """description has seven items for each column; rowcount is -1 where it is not known"""
    with contextlib.closing(service.connect()) as db:
        cursor = db.cursor()
        equal((cursor.description, cursor.rowcount, cursor.lastrowid), (None, -1, None), "before the first statement")
        cursor.execute("SELECT 1 AS one, 'x' AS two")
        equal(cursor.description, (("one",) + (None,) * 6, ("two",) + (None,) * 6), "description")
        equal(cursor.rowcount, -1, "rowcount of a query")
        cursor.execute("SELECT id FROM note WHERE 0")
        equal([column[0] for column in cursor.description], ["id"], "description without rows")
        cursor.execute("INSERT INTO note(text) VALUES ('a')")
        equal((cursor.description, cursor.rowcount, cursor.lastrowid), (None, 1, 1), "after an INSERT")
        cursor.executemany("INSERT INTO note(text) VALUES (?)", [("b",), ("c",)])
        equal((cursor.rowcount, cursor.lastrowid), (2, 1), "after executemany()")
        cursor.execute("UPDATE note SET text = text || '!' WHERE id > 1")
        equal(cursor.rowcount, 2, "after an UPDATE")
        cursor.execute("DELETE FROM note WHERE id = -1")
        equal(cursor.rowcount, 0, "after a DELETE of nothing")
        equal(db.total_changes, 5, "total_changes")
        db.rollback()
        equal(db.execute("SELECT count(*) FROM note").fetchone(), (0,), "rows after rollback()")


@test
def fetch():
    """fetchone, fetchmany, fetchall, arraysize, iteration, and their ends"""
    with contextlib.closing(service.connect("chinook")) as db:
        cursor = db.cursor()
        for method, empty in ((cursor.fetchone, None), (cursor.fetchall, []), (cursor.fetchmany, [])):
            equal(method(), empty, "rows without a query")
        cursor.execute("SELECT ArtistId FROM Artist WHERE ArtistId <= 10 ORDER BY 1")
        equal(cursor.fetchone(), (1,), "fetchone()")
        equal(cursor.fetchmany(), [(2,)], "fetchmany()")
        cursor.arraysize = 3
        equal(cursor.fetchmany(), [(3,), (4,), (5,)], "fetchmany() with an arraysize")
        equal(cursor.fetchmany(2), [(6,), (7,)], "fetchmany(2)")
        equal(cursor.fetchmany(0), [], "fetchmany(0)")
        equal(next(cursor), (8,), "next()")
        equal(cursor.fetchall(), [(9,), (10,)], "fetchall()")
        equal((cursor.fetchone(), cursor.fetchmany(5), cursor.fetchall(), list(cursor)), (None, [], [], []), "after the end")
        equal(len(list(db.execute("SELECT * FROM Track"))), 3503, "rows of an iteration")
        equal(len(db.execute("SELECT * FROM Track").fetchmany(10**6)), 3503, "rows of a large fetchmany()")
        cursor.execute("SELECT 1")
        cursor.close()
        cursor.close()
        raises(sqlipc.ProgrammingError, cursor.fetchone)
        raises(sqlipc.ProgrammingError, cursor.execute, "SELECT 1")
        equal((cursor.setinputsizes([1]), cursor.setoutputsize(1), cursor.setoutputsize(1, 2)), (None,) * 3, "sizes")


@test
def rows_left_unread():
    """A statement of which only the first row was read runs again and again beside small results"""
    with contextlib.closing(service.connect(isolation_level=None)) as db:
        db.executemany("INSERT INTO thing(a) VALUES (?)", [("x" * 100,)] * 1000)
        for i in range(6):
            equal(db.execute("SELECT a FROM thing").fetchone(), ("x" * 100,), "a row")
            if i:
                equal(db.execute("SELECT count(*) FROM thing").fetchone(), (1000,), "number of rows")
    service.empty()


@test
def rows_left_unread_and_kills():
    """The same beside 40 kills of the service, between the statements"""
    with PythonService(activation=True) as killed, contextlib.closing(killed.connect(isolation_level=None)) as db:
        db.executemany("INSERT INTO thing(a) VALUES (?)", [("x" * 100,)] * 1000)
        for i in range(40):
            equal(db.execute("SELECT a FROM thing").fetchone(), ("x" * 100,), f"a row, {i}")
            os.kill(killed.pid(), signal.SIGKILL)
            equal(db.execute("SELECT count(*) FROM thing").fetchone(), (1000,), f"number of rows, {i}")


@test
def parameters():
    """qmark, numbered and named parameters; wrong ones are ProgrammingError"""
    with contextlib.closing(service.connect("chinook")) as db:

        def one(sql, values):
            return db.execute(sql, values).fetchone()

        equal(one("SELECT ?, ?", (1, "a")), (1, "a"), "a tuple")
        equal(one("SELECT ?, ?", [1, "a"]), (1, "a"), "a list")
        equal(one("SELECT ?, ?", range(2)), (0, 1), "another sequence")
        equal(one("SELECT ?2, ?1", (1, 2)), (2, 1), "numbers")
        equal(one("SELECT :a, @b, $c, :a", {"a": 1, "b": 2, "c": 3, "d": 4}), (1, 2, 3, 1), "names")
        equal(one("SELECT :a, :b", (1, 2)), (1, 2), "names by their order")
        equal(one('SELECT \'?\', ":a", [?] FROM (SELECT 1 AS ":a", 2 AS [?]) -- ?\n', ()), ("?", 1, 2), "quoted ones")

        class Defaults(dict):
            def __missing__(self, key):
                return key + "!"

        equal(one("SELECT :a, :b", Defaults(a=1)), (1, "b!"), "a mapping with __missing__")
        for sql, values in (
            ("SELECT ?", ()),
            ("SELECT ?", (1, 2)),
            ("SELECT :a", {"b": 1}),
            ("SELECT ?", {"a": 1}),
            ("SELECT ?", (object(),)),
            ("SELECT ?", 5),
            ("SELECT ?", {1, 2}),
            ("SELECT 1; SELECT 2", ()),
            ("SELECT 1\0", ()),
        ):
            raises(sqlipc.ProgrammingError, one, sql, values)
        raises(OverflowError, one, "SELECT ?", (2**63,))
        raises(UnicodeEncodeError, one, "SELECT ?", ("\ud800",))
        raises(TypeError, one, b"SELECT 1", ())
        raises(TypeError, one, None, ())
        equal(
            one(
                "SELECT 1",
                (),
            ),
            (1,),
            "the connection works on",
        )


@test
def types():
    """Every storage class comes back as it was bound"""
    values = (
        None,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        True,
        0.5,
        -1e308,
        float("inf"),
        "",
        "a\0b",
        "äöü €𝄞",
        b"",
        b"\0\xff",
        bytearray(b"x"),
        memoryview(b"yz"),
    )
    with contextlib.closing(service.connect()) as db:
        for value in values:
            (back,) = db.execute("SELECT ?", (value,)).fetchone()
            wanted = bytes(value) if isinstance(value, (bytearray, memoryview)) else value
            equal((back, type(back)), (wanted, int if value is True else type(wanted)), f"value for {value!r}")
        equal(db.execute("SELECT ?", (float("nan"),)).fetchone(), (None,), "NaN")
        db.executemany("INSERT INTO thing VALUES (?, ?, typeof(?2))", [(i, value) for i, value in enumerate(values)])
        rows = db.execute("SELECT b FROM thing ORDER BY a").fetchall()
        wanted = [bytes(v) if isinstance(v, (bytearray, memoryview)) else v for v in values]
        equal([row[0] for row in rows], wanted, "values after executemany()")
        db.rollback()
        big = "x" * 3_000_000
        equal(db.execute("SELECT ?, ?", (big, big.encode())).fetchone(), (big, big.encode()), "large values")


@test
def empty_statements():
    """Nothing to run is no error"""
    with contextlib.closing(service.connect("chinook")) as db:
        for sql in ("", " ", ";", "-- comment", "/* comment */"):
            cursor = db.execute(sql)
            equal((cursor.description, cursor.fetchall()), (None, []), f"result of {sql!r}")


@test
def imported_modules():
    """The import loads little more than that of sqlite3; other modules follow with the first call that needs them"""

    def loaded(name):
        program = f"import sys; before = set(sys.modules); import {name}; print(*set(sys.modules) - before)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    ours = {name for name in loaded("sqlipc") if name.partition(".")[0] != "sqlipc"}
    equal(sorted(ours - loaded("sqlite3") - {"errno", "itertools"}), [], "modules that sqlite3 does without")
    equal(ours & {"re", "sqlite3", "threading", "typing", "urllib"}, set(), "modules for later")
    from sqlipc import Change, Live, Watch, complete_statement  # noqa: F401 - the names are there nevertheless

    true({"Change", "Live", "Watch", "complete_statement", "connect"} <= set(dir(sqlipc)), dir(sqlipc))
    raises(AttributeError, getattr, sqlipc, "Changes")


@test
def names_of_sqlite3():
    """A program for sqlite3 finds what it imports, also in sqlipc.dbapi2"""
    import sqlipc.dbapi2

    for name in set(dir(sqlite3)) | set(dir(sqlite3.dbapi2)):
        theirs = getattr(sqlite3, name)
        if name.startswith(("_", "SQLITE_DBCONFIG_")) or (inspect.ismodule(theirs) and name != "dbapi2"):
            continue
        ours = getattr(sqlipc, name)
        if isinstance(theirs, int) and name != "threadsafety":
            equal(ours, theirs, name)
        equal(callable(ours), callable(theirs), f"{name} is callable")
        true(name == "dbapi2" or getattr(sqlipc.dbapi2, name) is ours, f"{name} in dbapi2")
    with contextlib.closing(service.connect()) as db, contextlib.closing(sqlite3.connect(":memory:")) as direct:
        missing = [name for name in dir(direct) if not hasattr(db, name)]
        missing += [name for name in dir(direct.cursor()) if not hasattr(db.cursor(), name)]
        missing += [name for name in dir(sqlite3.Row) if not hasattr(sqlipc.Row, name)]
        equal([name for name in missing if not name.startswith("_")], [], "methods and attributes")
    raises(TypeError, sqlipc.Blob)


@test
def docstrings():
    """Everything public has a docstring, and the stubs name it"""
    from pathlib import Path

    import sqlipc.aio

    folder = Path(sqlipc.__file__).parent
    true((folder / "py.typed").exists(), "py.typed")
    for module, stub in ((sqlipc, "__init__.pyi"), (sqlipc.aio, "aio.pyi")):
        text = (folder / stub).read_text()
        for name in dir(module):
            thing = getattr(module, name)
            public = not name.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing))
            if not public or not thing.__module__.startswith("sqlipc" if module is sqlipc else module.__name__):
                continue
            true(inspect.getdoc(thing), f"docstring of {name}")
            true(name in text, f"{name} in {stub}")
            for attribute, value in vars(thing).items() if inspect.isclass(thing) else ():
                if (
                    attribute.startswith("_")
                    or not (callable(value) or isinstance(value, property))
                    or inspect.isclass(value)
                ):
                    continue
                true(inspect.getdoc(value), f"docstring of {name}.{attribute}")
                true(f"{attribute}" in text, f"{name}.{attribute} in {stub}")


main(service)
