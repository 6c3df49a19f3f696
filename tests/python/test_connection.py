#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the package has beyond PEP 249: transactions, rows, adapters, converters, errors, copies."""

import concurrent.futures
import contextlib
import datetime
import itertools
import os
import re
import resource
import sqlite3
import subprocess
import sys
import threading
import time
import tracemalloc

import broken_schema
import sqlipc
import sqlipc._copy
from harness import PATIENCE, PATIENT, main, wait_for
from python_service import SCHEMA, SLOWLY, Killer, PythonService, interrupt_load, raises
from sqlipc._errors import error_of_code
from tap import at_most, equal, test, true

service = PythonService()
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
OTHER = service.add("other", "CREATE TABLE t(a);", journal="delete")


def count(name="notes", table="note"):
    """The number of rows that another connection sees."""
    with contextlib.closing(service.connect(name)) as db:
        return db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


@test
def legacy_transactions():
    """isolation_level begins a transaction before INSERT, and no other statement; None never does"""
    with contextlib.closing(service.connect()) as db:
        db.execute("SELECT * FROM note").fetchall()
        equal(db.in_transaction, False, "in_transaction after a query")
        db.execute("INSERT INTO note(text) VALUES ('a')")
        equal((db.in_transaction, count()), (True, 0), "before the commit")
        db.commit()
        equal((db.in_transaction, count()), (False, 1), "after the commit")
        db.isolation_level = None
        db.execute("INSERT INTO note(text) VALUES ('b')")
        equal((db.in_transaction, count()), (False, 2), "without an isolation_level")
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO note(text) VALUES ('c')")
        equal((db.in_transaction, count()), (True, 2), "after BEGIN")
        db.execute("ROLLBACK")
        equal((db.in_transaction, count()), (False, 2), "after ROLLBACK")
        db.isolation_level = "EXCLUSIVE"
        raises(ValueError, setattr, db, "isolation_level", "SOMETIMES")
        raises(TypeError, setattr, db, "isolation_level", 1)
        raises(sqlipc.OperationalError, db.execute, "COMMIT")
        raises(sqlipc.OperationalError, db.execute, "ROLLBACK")
        db.execute("BEGIN")
        raises(sqlipc.OperationalError, db.execute, "BEGIN")
        db.rollback()
    service.empty()


@test
def blocks():
    """A with block commits, or rolls back after an exception, and does not close"""
    with contextlib.closing(service.connect()) as db:
        with db:
            db.execute("INSERT INTO note(text) VALUES ('kept')")
        with contextlib.suppress(ZeroDivisionError), db:
            db.execute("INSERT INTO note(text) VALUES ('dropped')")
            _ = 1 / 0
        equal(db.execute("SELECT text FROM note").fetchall(), [("kept",)], "rows")
    service.empty()


@test
def autocommit():
    """autocommit as in PEP 249 and Python 3.12"""
    with contextlib.closing(service.connect(autocommit=False)) as db:
        equal(db.in_transaction, True, "in_transaction")
        db.execute("SELECT * FROM note").fetchall()
        db.execute("INSERT INTO note(text) VALUES ('a')")
        equal(count(), 0, "rows before commit()")
        db.commit()
        equal((db.in_transaction, count()), (True, 1), "after commit()")
        with db:
            db.execute("INSERT INTO note(text) VALUES ('b')")
        equal(count(), 2, "rows after a block")
        db.execute("INSERT INTO note(text) VALUES ('c')")
    equal(count(), 2, "close() rolls back")
    with contextlib.closing(service.connect(autocommit=True)) as db:
        db.execute("INSERT INTO note(text) VALUES ('d')")
        equal((db.in_transaction, count()), (False, 3), "with autocommit")
        db.execute("BEGIN")
        db.execute("DELETE FROM note")
        db.commit()  # no effect
        equal(db.in_transaction, True, "commit() with autocommit")
        db.execute("ROLLBACK")
        db.autocommit = False
        equal(db.in_transaction, True, "after setting autocommit")
        raises(ValueError, setattr, db, "autocommit", 7)
    service.empty()


@test
def read_transactions():
    """A transaction that has only read sees one state, delays no writer, and may write later, unless others have written"""
    with contextlib.closing(service.connect()) as db, contextlib.closing(service.connect(isolation_level=None)) as writer:
        db.execute("BEGIN")
        equal(db.execute("SELECT count(*) FROM note").fetchone(), (0,), "rows")
        writer.execute("INSERT INTO note(text) VALUES ('meanwhile')")
        equal(db.execute("SELECT count(*) FROM note").fetchone(), (0,), "rows of the same state")
        error = raises(sqlipc.OperationalError, db.execute, "INSERT INTO note(text) VALUES ('own')")
        equal((error.sqlite_errorname, error.sqlite_errorcode), ("SQLITE_BUSY_SNAPSHOT", 517), "error")
        true("database is locked" in str(error), str(error))
        equal(db.in_transaction, True, "in_transaction")
        equal(db.execute("SELECT count(*) FROM note").fetchone(), (0,), "rows after the error")
        db.rollback()
        db.execute("BEGIN")
        equal(db.execute("SELECT count(*) FROM note").fetchone(), (1,), "rows of the next transaction")
        db.execute("INSERT INTO note(text) VALUES ('own')")
        equal(db.execute("SELECT count(*) FROM note").fetchone(), (2,), "rows in the transaction that writes")
        db.commit()
    equal(count(), 2, "rows in the end")
    service.empty()


SELECT, ADD = "SELECT n FROM number", "UPDATE number SET n = n + 1"
ADDS = "UPDATE number SET n = n + 1 RETURNING n"
# Steps of two connections to one database.
RACES = {
    "both read, then write": (
        ("a", "BEGIN"), ("b", "BEGIN"), ("a", SELECT), ("b", SELECT), ("a", ADD), ("b", ADD), ("b", SELECT),
        ("b", "ROLLBACK"), ("a", "COMMIT"), ("b", "BEGIN"), ("b", SELECT), ("b", ADD), ("b", "COMMIT"), ("a", SELECT),
    ),
    "write first": (("a", "BEGIN"), ("b", ADD), ("a", ADD), ("a", SELECT), ("a", "COMMIT"), ("b", SELECT)),
    "savepoint first": (
        ("a", "SAVEPOINT s"), ("b", ADD), ("a", SELECT), ("a", ADDS), ("a", "ROLLBACK TO s"), ("a", SELECT), ("a", ADD),
        ("a", "RELEASE s"), ("b", SELECT),
    ),
    "savepoints before and after a read": (
        ("a", "BEGIN"), ("a", "SAVEPOINT s"), ("a", SELECT), ("a", "SAVEPOINT t"), ("a", "ROLLBACK TO x"), ("a", ADD),
        ("a", "ROLLBACK TO t"), ("a", SELECT), ("a", ADDS), ("a", "RELEASE s"), ("a", "RELEASE t"), ("a", "COMMIT"),
        ("b", SELECT),
    ),
    "an error first": (("a", "BEGIN"), ("a", "SELECT x"), ("b", ADD), ("a", ADD), ("a", "COMMIT"), ("b", SELECT)),
    "an explanation": (("a", "BEGIN"), ("a", SELECT), ("a", "EXPLAIN " + ADD), ("b", SELECT), ("a", ADD), ("a", "COMMIT")),
}  # fmt: skip
RACES_WITH_A_LOG = {
    "old": (
        ("a", "BEGIN"), ("a", SELECT), ("b", ADD), ("a", SELECT), ("a", ADD), ("a", ADDS), ("a", SELECT), ("a", "COMMIT"),
        ("a", SELECT),
    ),
    "old schema": (
        ("a", "BEGIN"), ("a", SELECT), ("b", ADD), ("a", "CREATE TABLE other(x)"), ("a", SELECT), ("a", "ROLLBACK"),
    ),
    "old since a savepoint": (
        ("a", "SAVEPOINT s"), ("a", SELECT), ("b", ADD), ("a", ADD), ("a", "ROLLBACK TO s"), ("a", ADD), ("a", "RELEASE s"),
        ("a", SELECT),
    ),
    "old since a pragma": (
        ("a", "BEGIN"), ("a", "PRAGMA user_version"), ("b", ADD), ("a", ADD), ("a", "ROLLBACK"), ("a", SELECT),
    ),
    "beside a writer": (
        ("a", "BEGIN"), ("a", SELECT), ("b", "BEGIN IMMEDIATE"), ("a", ADD), ("b", "ROLLBACK"), ("a", ADD), ("a", "COMMIT"),
        ("b", SELECT),
    ),
}  # fmt: skip


def race(steps, a, b):
    """Returns the outcomes of the steps."""
    outcomes = []
    with contextlib.closing(a), contextlib.closing(b):
        for connection in (a, b):  # knows the schema then, or sqlite3's first error may be SQLITE_SCHEMA
            connection.execute(SELECT).fetchall()
        for who, sql in steps:
            try:
                rows = {"a": a, "b": b}[who].execute(sql).fetchall()
                outcomes.append((who, sql, rows if "EXPLAIN" not in sql else len(rows) > 0))
            except (sqlipc.Error, sqlite3.Error) as error:
                outcomes.append((who, sql, error.sqlite_errorname))
    return outcomes


@test
def races():
    """Two connections that read and then write get the same rows and errors as with sqlite3, also beside sqlite3"""
    for journal in ("wal", "delete"):
        path = service.add(f"races-{journal}", "CREATE TABLE number(n)", journal)

        def past(path=path):
            return sqlite3.connect(path, isolation_level=None, timeout=0)

        def through(name=f"races-{journal}"):
            return service.connect(name, isolation_level=None)

        def reset(path=path):
            with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as db:
                db.execute("DELETE FROM number")
                db.execute("INSERT INTO number VALUES (0)")
                db.commit()

        for name, steps in (RACES | (RACES_WITH_A_LOG if journal == "wal" else {})).items():
            reset()
            expected = race(steps, past(), past())
            for kind, a, b in (("both", through, through), ("the first", through, past), ("the second", past, through)):
                reset()
                equal(race(steps, a(), b()), expected, f"{journal}, {name}, {kind} through the service")


@test
def no_update_is_lost():
    """Threads read a number, add 1 and write it, in transactions of each kind: it becomes the number of commits"""
    n_each = 30
    for journal in ("wal", "delete"):
        service.add(f"sums-{journal}", "CREATE TABLE number(n); INSERT INTO number VALUES (0)", journal)

        def add(how, name=f"sums-{journal}"):
            keywords = {"autocommit": False} if how == "autocommit" else {"isolation_level": None}
            n = 0
            with contextlib.closing(service.connect(name, **keywords)) as db:
                while n < n_each:
                    try:
                        if how != "autocommit":
                            db.execute(how)
                        (value,) = db.execute(SELECT).fetchone()
                        time.sleep(0)
                        db.execute("UPDATE number SET n = ?", (value + 1,))
                        db.commit()
                        n += 1
                    except sqlipc.OperationalError as error:
                        if error.sqlite_errorname not in ("SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_ABORT_ROLLBACK"):
                            raise
                        db.rollback()
            return n

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            ways = ("BEGIN", "SAVEPOINT s", "autocommit", "BEGIN IMMEDIATE")
            total = sum(pool.map(add, ways))
        with contextlib.closing(service.connect(f"sums-{journal}")) as db:
            equal(db.execute(SELECT).fetchone(), (total,), f"{journal}: the number")


@test
def savepoints():
    """SAVEPOINT, ROLLBACK TO and RELEASE; the first one begins a transaction, and its release commits"""
    with contextlib.closing(service.connect(isolation_level=None)) as db:
        db.execute("SAVEPOINT one")
        db.execute("INSERT INTO note(text) VALUES ('a')")
        db.execute("SAVEPOINT two")
        db.execute("INSERT INTO note(text) VALUES ('b')")
        db.execute("ROLLBACK TO two")
        db.execute("RELEASE two")
        equal((db.in_transaction, count()), (True, 0), "before the release")
        db.execute("RELEASE SAVEPOINT one")
        equal((db.in_transaction, count()), (False, 1), "after the release")
        db.execute("BEGIN")
        db.execute("SAVEPOINT one")
        db.execute("RELEASE one")
        equal(db.in_transaction, True, "a savepoint within BEGIN")
        db.execute("ROLLBACK")
    service.empty()


@test
def savepoints_that_fail():
    """A savepoint counts as open, or as gone, only after the service has run the statement"""
    with contextlib.closing(service.connect(isolation_level=None)) as db:
        original = db._core.run

        def fails(sql):
            """Runs a statement that is interrupted before it is sent."""

            async def interrupted(*arguments):
                db._core.run = original
                raise error_of_code("INTERRUPT", "interrupted")

            db._core.run = interrupted
            error = raises(sqlipc.OperationalError, db.execute, sql)
            equal(error.sqlite_errorname, "SQLITE_INTERRUPT", sql)

        fails("SAVEPOINT one")
        equal(db.in_transaction, False, "after a SAVEPOINT that has failed to begin a transaction")
        db.execute("INSERT INTO note(text) VALUES ('a')")
        equal(count(), 1, "rows, outside of a transaction")
        db.execute("SAVEPOINT one")
        db.execute("INSERT INTO note(text) VALUES ('b')")
        fails("SAVEPOINT one")
        equal(db.in_transaction, True, "after a SAVEPOINT that has failed in a transaction")
        fails("RELEASE x")
        db.execute("SAVEPOINT two")
        fails("ROLLBACK TO one")
        fails("RELEASE two")
        equal(db._core.savepoints, ["one", "two"], "the open savepoints")
        db.execute("RELEASE one")
        equal((db.in_transaction, count()), (False, 2), "after the release of the first one, which commits")
        db.execute("BEGIN")
        fails("SAVEPOINT one")
        equal(db.in_transaction, True, "BEGIN stays")
        raises(sqlipc.OperationalError, db.execute, "RELEASE one")
        db.execute("ROLLBACK")
        service.kill()
        service.start()
        db.execute("BEGIN")
        db.execute("SAVEPOINT one")
        service.kill()
        service.start()
        raises(sqlipc.OperationalError, db.execute, "SAVEPOINT two")
        raises(sqlipc.OperationalError, db.execute, "COMMIT")
        db.execute("ROLLBACK")
        equal((db.in_transaction, db._core.savepoints), (False, []), "after the service was killed")
    with contextlib.closing(service.connect(autocommit=False)) as db:
        db.execute("SAVEPOINT one")
        db.execute("INSERT INTO note(text) VALUES ('c')")
        db.execute("RELEASE one")
        equal((db.in_transaction, count()), (True, 2), "a savepoint of a transaction that autocommit=False has begun")
        db.rollback()
        equal(count(), 2, "rows after rollback()")
    service.empty()


@test
def open_cursors_do_not_block():
    """A cursor whose rows are half read goes on after writes, commits and transactions of its connection"""
    for name, table in (("notes", "note(text)"), ("other", "t(a)")):
        with contextlib.closing(service.connect(name)) as db:
            db.executemany(f"INSERT INTO {table} VALUES (?)", [(f"{i:01000}",) for i in range(5000)])
            db.commit()
            column = table[:-1].partition("(")[2]
            rows = db.execute(f"SELECT {column} FROM {table.partition('(')[0]}")
            seen = [next(rows)]
            with db:
                db.execute(f"INSERT INTO {table} VALUES ('more')")
            seen.append(next(rows))
            db.execute("BEGIN")
            db.execute("SELECT 1").fetchall()
            inner = db.execute(f"SELECT {column} FROM {table.partition('(')[0]}")
            next(inner)
            for _ in range(3):
                db.execute("SELECT 2").fetchone()
            equal(len(inner.fetchall()), 5000, "rows of the inner cursor")
            db.rollback()
            equal(len(rows.fetchall()) + len(seen), 5000, "rows of the outer cursor")
            db.execute(f"DELETE FROM {table.partition('(')[0]}")
            db.commit()


@test
def executemany():
    """executemany() writes rows from lists and iterators, which may use the connection"""
    with contextlib.closing(service.connect()) as db:
        db.executemany("INSERT INTO note(id, text) VALUES (:n, :t)", [{"n": i, "t": str(i)} for i in range(100)])
        equal(db.execute("SELECT count(*), sum(id) FROM note").fetchone(), (100, 4950), "rows from mappings")
        error = raises(sqlipc.IntegrityError, db.executemany, "INSERT INTO note(id) VALUES (?)", [(200,), (7,)])
        equal(error.sqlite_errorname, "SQLITE_CONSTRAINT_PRIMARYKEY", "error")
        equal(db.execute("SELECT count(*) FROM note").fetchone(), (101,), "rows after the failure")
        db.execute("DELETE FROM note WHERE id = 200")
        db.commit()

        def rows():
            for i in range(25000):
                if i % 9000 == 0:
                    db.execute("SELECT count(*) FROM note").fetchone()
                yield (1000 + i,)

        equal(db.executemany("INSERT INTO note(id) VALUES (?)", rows()).rowcount, 25000, "rowcount of an iterator")
        db.rollback()
        db.isolation_level = None
        equal(db.executemany("UPDATE note SET text = ? WHERE id = ?", [("x", 1), ("y", -1)]).rowcount, 1, "UPDATE")
        equal(db.executemany("INSERT INTO note(id) VALUES (?)", []).rowcount, 0, "no rows")
        equal(db.executemany("INSERT INTO note(id) VALUES (?) RETURNING id", [(500,), (501,)]).rowcount, 2, "RETURNING")
        for sql, values in (("SELECT ?", [(1,)]), ("INSERT INTO note(id) VALUES (?)", [(1, 2)])):
            raises(sqlipc.ProgrammingError, db.executemany, sql, values)
        raises(TypeError, db.executemany, "INSERT INTO note(id) VALUES (?)", 5)
    service.empty()


@test
def executescript():
    """executescript() commits first, and runs triggers whole"""
    with contextlib.closing(service.connect()) as db:
        db.execute("INSERT INTO note(text) VALUES ('a')")
        db.executescript(
            "CREATE TABLE log(a); CREATE TRIGGER tr AFTER INSERT ON note BEGIN INSERT INTO log VALUES (';'); SELECT 1; END;"
            "INSERT INTO note(text) VALUES ('b'); -- ;\n SELECT * FROM note; BEGIN; DELETE FROM note; ROLLBACK"
        )
        equal((db.in_transaction, count(), count(table="log")), (False, 2, 1), "after the script")
        raises(sqlipc.OperationalError, db.executescript, "SELECT 1; SELEC 2; DELETE FROM note")
        equal(count(), 2, "rows after a script that failed")
        db.executescript("DROP TRIGGER tr; DROP TABLE log")
        raises(ValueError, db.executescript, "SELECT 1;\0")
        raises(TypeError, db.executescript, b"SELECT 1")
        db.executescript("EXPLAIN QUERY PLAN CREATE TRIGGER tr AFTER INSERT ON note BEGIN SELECT 1; DELETE FROM note; END;")
        equal(count(), 2, "rows after a trigger was explained")
    for text, is_complete in (
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("", False),
        (";", True),
        ("CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1;", False),
        ("EXPLAIN QUERY PLAN CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1;", False),
        ("SELECT 1; /* open", False),
    ):
        equal(sqlipc.complete_statement(text), is_complete, f"complete_statement({text!r})")
    service.empty()


@test
def returning():
    """The rows of RETURNING, with rowcount and lastrowid"""
    with contextlib.closing(service.connect()) as db:
        cursor = db.execute("INSERT INTO note(text) VALUES ('a'), ('b') RETURNING id, text")
        equal((cursor.rowcount, cursor.lastrowid), (2, 2), "rowcount and lastrowid")
        equal(cursor.fetchall(), [(1, "a"), (2, "b")], "rows")
        db.rollback()
    sqlipc.register_converter("marked", lambda value: b"<" + value + b">")

    def broken(value):
        raise KeyError(value)

    sqlipc.register_converter("broken", broken)
    for autocommit in (True, False):
        keywords = {"detect_types": sqlipc.PARSE_COLNAMES, "autocommit": autocommit}
        with contextlib.closing(service.connect(**keywords)) as db:
            db.text_factory = bytes
            cursor = db.execute("INSERT INTO note(text) VALUES ('a') RETURNING text, text AS 'x [marked]'")
            equal((cursor.fetchall(), cursor.description[1][0]), ([(b"a", b"<a>")], "x"), "converted values")
            db.text_factory = str
            for sql, kind in (
                ("INSERT INTO note(text) VALUES ('b'), ('c') RETURNING text AS 'x [broken]'", KeyError),
                ("INSERT INTO note(text) VALUES ('d') RETURNING cast(x'ff' AS text)", sqlipc.OperationalError),
            ):
                cursor = db.execute(sql)  # the row that cannot be read is written
                equal(cursor.rowcount, 1 if "'d'" in sql else 2, "rowcount")
                raises(kind, cursor.fetchone)
            equal(db.execute("SELECT count(*) FROM note").fetchone(), (4,), "rows")
            db.rollback()
        service.empty()


def writes_while_it_reads(connect):
    """The rows, and then the table, of a program that changes each row of a large result while it reads it."""
    with contextlib.closing(connect(isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        seen = []
        for number, text in db.execute("SELECT id, text FROM note ORDER BY id"):
            seen.append((number, len(text)))
            db.execute("UPDATE note SET text = ? WHERE id = ?", (f"{number} was read", number))
        big = db.execute("SELECT zeroblob(12000000), 1 UNION ALL SELECT zeroblob(9000000), 2").fetchall()
        returned = db.execute(
            "INSERT INTO note(text) SELECT printf('%d%.*c', value, 30000, 'x') FROM (WITH RECURSIVE c(value) AS (SELECT 1000"
            " UNION ALL SELECT value + 1 FROM c WHERE value < 1500) SELECT value FROM c) RETURNING id, text"
        ).fetchall()
        db.execute("COMMIT")
        return (
            seen,
            [(len(blob), number) for blob, number in big],
            [(number, len(text)) for number, text in returned],
            db.execute("SELECT id, substr(text, 1, 20) FROM note ORDER BY id").fetchall(),
        )


@test
def large_results_of_a_writer():
    """A transaction that writes reads results of any size, with rows of more than 8 MiB, while it writes; RETURNING, too"""
    path = service.add("large", "CREATE TABLE note(id INTEGER PRIMARY KEY, text UNIQUE);")
    rows = [(i, f"{i}" + "y" * 50_000) for i in range(1, 601)]  # 30 MB
    results = []
    for connect in (lambda **k: service.connect("large", **k), lambda **k: sqlite3.connect(path, **k)):
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM note")
            db.executemany("INSERT INTO note VALUES (?, ?)", rows)
        results.append(writes_while_it_reads(connect))
    equal(results[0], results[1], "as with sqlite3")
    equal(len(results[0][0]), 600, "rows that were read")


@test
def large_values():
    """A row that can be stored can be read: values of 70 MB, which are larger together"""
    path = service.add("larger", "CREATE TABLE t(a, b);")
    sql = "INSERT INTO t VALUES (zeroblob(70000000), CAST(zeroblob(1) || zeroblob(40000000) AS BLOB))"
    with contextlib.closing(service.connect("larger", isolation_level=None)) as db:
        db.execute(sql)
        lengths = [len(value) for value in db.execute("SELECT * FROM t").fetchone()]
    with contextlib.closing(sqlite3.connect(path)) as db:
        equal(lengths, [len(value) for value in db.execute("SELECT * FROM t").fetchone()], "lengths")


def write_large(connect, **keywords):
    """The outcomes of statements with SQL of 2 to 17 MB, and with values of 2 to 20 MB."""
    long, blob = "x" * 3_000_000, bytes(range(256)) * 80_000
    seen = []
    with contextlib.closing(connect(**keywords)) as db:
        cursor = db.execute(f"INSERT INTO t VALUES ('{long}', ?)", (blob[:2_000_000],))
        seen.append((cursor.rowcount, cursor.lastrowid))
        db.execute("INSERT INTO t VALUES (:a, :b)", {"a": long, "b": blob})
        db.executemany("INSERT INTO t VALUES (?, ?)", [(i, blob[i:3_000_000]) for i in range(5)])
        db.execute(f"UPDATE t SET a = length(a) /* {long * 5} */ WHERE b = ?", (blob,))
        seen.append(db.execute(f"SELECT count(*), sum(b = ?) /* {long} */ FROM t", (blob[1:3_000_000],)).fetchall())
        row = db.execute("INSERT INTO t VALUES (?, ?) RETURNING b, length(a)", (long, blob[:5_000_000])).fetchone()
        seen.append((row[0] == blob[:5_000_000], row[1]))
        if not keywords:
            db.commit()
        db.executescript(f"INSERT INTO t VALUES ('{long}', 1); INSERT INTO t SELECT length('{long}'), 2;")
        db.commit()
        seen.append(db.execute("SELECT length(a), length(b), typeof(a) FROM t").fetchall())
    return seen


@test
def large_statements():
    """SQL of 17 MB less, and values of 20 MB, in transactions and outside: the same as with sqlite3"""
    for keywords in ({}, {"isolation_level": None}):
        path = service.add(f"sizes{len(keywords)}", "CREATE TABLE t(a, b);")
        ours = write_large(lambda name=f"sizes{len(keywords)}", **k: service.connect(name, **k), **keywords)
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM t")
        theirs = write_large(lambda path=path, **k: sqlite3.connect(path, **k), **keywords)
        equal(ours, theirs, f"as with sqlite3, {keywords}")


@test
def long_tokens():
    """Looking at SQL with a long literal, comment or name takes copies of it, not memory for each character"""
    from sqlipc import _sql

    long = "x" * 300_000
    for form in ("'*'", '"*"', "`*`", "[*]", "e'*'", "$$*$$", "$a$*$a$", "/* * */", "-- *", "*", ":*", "1*", "é*"):
        for dialect in (_sql.SQLITE, _sql.POSTGRESQL):
            tracemalloc.start()
            _sql.analyse("SELECT " + form.replace("*", long), dialect)
            at_most(tracemalloc.get_traced_memory()[1], 20 * len(long), f"bytes at the peak, {form}, {dialect}")
            tracemalloc.stop()


@test
def too_many_parameters():
    """More parameters than VariablesMax= allows: the error names the key, on each way to run a statement"""
    with contextlib.closing(service.connect(isolation_level=None)) as db:
        for n in (32_767, 60_000):
            rows = ", ".join(["(?)"] * n)
            for sql in (f"SELECT count(*) FROM (VALUES {rows})", f"INSERT INTO thing(a) VALUES {rows}", f"SELECT ?{n}"):
                error = raises(sqlipc.OperationalError, db.execute, sql, [1] * n)
                true("VariablesMax=" in str(error), error)
        equal(db.execute("SELECT count(*) FROM thing").fetchone(), (0,), "rows")


@test
def rows_with_names():
    """Row: by number, slice and name; keys, length, equality, hash; and other row factories"""
    with contextlib.closing(service.connect("chinook")) as db:
        db.row_factory = sqlipc.Row
        sql = "SELECT ArtistId, Name FROM Artist ORDER BY 1 LIMIT 2"
        first, second = db.execute(sql)
        equal((first["artistid"], first["NAME"], first[0], first[-1], first[0:1]), (1, "AC/DC", 1, "AC/DC", (1,)), "values")
        equal(
            (first.keys(), len(first), tuple(first), dict(first)["Name"]),
            (["ArtistId", "Name"], 2, (1, "AC/DC"), "AC/DC"),
            "as a whole",
        )
        raises(IndexError, lambda: first["nothing"])
        raises(IndexError, lambda: first[2])
        again = db.execute(sql).fetchall()
        equal(
            (first == again[0], first != again[0], first == second, hash(first) == hash(again[0])),
            (True, False, False, True),
            "comparisons",
        )
        equal(first == (1, "AC/DC"), False, "comparison with a tuple")
        true(isinstance(db.execute(sql).fetchmany(1)[0], sqlipc.Row), "fetchmany()")
        db.row_factory = lambda cursor, row: {column[0]: value for column, value in zip(cursor.description, row)}
        equal(db.execute(sql).fetchone(), {"ArtistId": 1, "Name": "AC/DC"}, "a factory of our own")
        cursor = db.cursor()
        cursor.row_factory = None
        equal(cursor.execute(sql).fetchone(), (1, "AC/DC"), "a cursor without one")
        db.row_factory = None

        class Strange(sqlipc.Cursor):
            pass

        true(type(db.cursor(Strange)) is Strange, "cursor(factory)")
        db.text_factory = bytes
        equal(db.execute("SELECT 'ä'").fetchone(), ("ä".encode(),), "text_factory bytes")
        db.text_factory = lambda text: text.decode("latin-1")
        equal(db.execute("SELECT 'ä'").fetchone(), ("Ã¤",), "another text_factory")
        db.text_factory = str
        error = raises(sqlipc.OperationalError, lambda: db.execute("SELECT CAST(x'ff41' AS TEXT) AS bad").fetchone())
        true("Could not decode to UTF-8 column 'bad'" in str(error), error)


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)


class Conforming(Point):
    def __conform__(self, protocol):
        return f"{self.x}/{self.y}" if protocol is sqlipc.PrepareProtocol else None


@test
def adapters_and_converters():
    """register_adapter, __conform__, register_converter; by declared types and by names of columns"""
    sqlipc.register_adapter(Point, lambda point: f"{point.x};{point.y}")
    sqlipc.register_converter("point", lambda text: Point(*map(int, text.split(b";"))))
    day, moment = datetime.date(2026, 2, 3), datetime.datetime(2026, 2, 3, 4, 5, 6, 700)
    with contextlib.closing(service.connect(detect_types=sqlipc.PARSE_DECLTYPES | sqlipc.PARSE_COLNAMES)) as db:
        db.execute("CREATE TABLE typed(p point, d date, t timestamp, n number(10))")
        db.executemany("INSERT INTO typed VALUES (?, ?, ?, ?)", [(Point(1, 2), day, moment, 5), (None, None, None, None)])
        rows = db.execute("SELECT * FROM typed ORDER BY rowid").fetchall()
        equal(rows, [(Point(1, 2), day, moment, 5), (None, None, None, None)], "rows by declared types")
        cursor = db.execute('SELECT \'3;4\' AS "p [point]", 1 AS "q [nothing]"')
        equal([column[0] for column in cursor.description], ["p", "q"], "names")
        equal(cursor.fetchone(), (Point(3, 4), 1), "by the name of the column")
        equal(db.execute("SELECT ?", (Conforming(5, 6),)).fetchone(), ("5/6",), "__conform__")
        sqlipc.register_converter("failing", lambda text: 1 / 0)
        raises(ZeroDivisionError, lambda: db.execute('SELECT 1 AS "x [failing]"').fetchone())
        db.execute("DROP TABLE typed")
    with contextlib.closing(service.connect()) as db:
        equal(db.execute('SELECT ? AS "x [date]"', (day,)).fetchone(), ("2026-02-03",), "without detect_types")
        equal(sqlipc.adapt(Point(1, 1)), "1;1", "adapt()")
        raises(sqlipc.ProgrammingError, sqlipc.adapt, object())
        service.empty()


@test
def errors():
    """Classes, sqlite_errorcode, sqlite_errorname and the service's names"""
    with contextlib.closing(service.connect()) as db, contextlib.closing(service.connect("chinook")) as reader:
        db.execute("INSERT INTO note VALUES (1, 'a')")
        for connection, sql, kind, name, service_error in (
            (db, "SELEC 1", sqlipc.OperationalError, "SQLITE_ERROR", "Sql"),
            (db, "SELECT * FROM nothing", sqlipc.OperationalError, "SQLITE_ERROR", "Sql"),
            (db, "SELECT nothing()", sqlipc.OperationalError, "SQLITE_ERROR", "Sql"),
            (db, "INSERT INTO note VALUES (2, 'a')", sqlipc.IntegrityError, "SQLITE_CONSTRAINT_UNIQUE", "Sql"),
            (db, "INSERT INTO note VALUES (1, 'b')", sqlipc.IntegrityError, "SQLITE_CONSTRAINT_PRIMARYKEY", "Sql"),
            (db, "INSERT INTO note VALUES ('x', 'b')", sqlipc.IntegrityError, "SQLITE_MISMATCH", "Sql"),
            (db, "ATTACH ':memory:' AS x", sqlipc.DatabaseError, "SQLITE_AUTH", "NotAllowed"),
            (reader, "DELETE FROM Artist", sqlipc.OperationalError, "SQLITE_READONLY", "ReadOnly"),
            (reader, "CREATE TABLE x(a)", sqlipc.OperationalError, "SQLITE_READONLY", "ReadOnly"),
        ):
            error = raises(kind, connection.execute, sql)
            got = (error.sqlite_errorname, error.service_error)
            equal(got, (name, f"org.sqlipc1.Error.{service_error}"), f"names for {sql}")
            equal(error.sqlite_errorcode, getattr(sqlipc, name), f"code for {sql}")
        equal(raises(sqlipc.OperationalError, db.execute, "SELECT 1 FORM x y").sql_offset is None, False, "sql_offset")
        db.rollback()
    with contextlib.closing(service.connect("nothing")) as db:
        error = raises(sqlipc.OperationalError, db.execute, "SELECT 1")
        equal(error.sqlite_errorname, "SQLITE_CANTOPEN", "name for a database that does not exist")
    raises(sqlipc.OperationalError, sqlipc.connect, "x", bus="unix:path=/nonexistent")
    for arguments in (
        {"database": "x", "uri": True},
        {"database": "sqlipc://user/x?mode=ro", "uri": True},
        {"database": "sqlipc://user/x#y", "uri": True},
        {"database": "sqlipc://user/x", "uri": True, "bus": "system"},
        {"database": "x", "bus": "unix:path=/bus", "host": "box"},
    ):
        raises(sqlipc.ProgrammingError, sqlipc.connect, **arguments)
    for method in ("create_function", "set_authorizer", "blobopen", "serialize", "load_extension", "getconfig"):
        with contextlib.closing(service.connect()) as db:
            raises(sqlipc.NotSupportedError, getattr(db, method), "x")


@test
def locked():
    """A transaction waits for another one as long as the timeout says"""
    with contextlib.closing(service.connect(timeout=0.2)) as db, contextlib.closing(service.connect()) as other:
        other.execute("INSERT INTO note(text) VALUES ('a')")
        error = raises(sqlipc.OperationalError, db.execute, "INSERT INTO note(text) VALUES ('b')")
        equal((str(error), error.sqlite_errorname, db.in_transaction), ("database is locked", "SQLITE_BUSY", False), "error")
        other.rollback()
        db.execute("INSERT INTO note(text) VALUES ('b')")
        db.rollback()


def locks(connect, path, timeout, level):
    """What a connection with this timeout meets: no lock, that of another connection, none, that of a program, none."""
    write = "INSERT INTO note(text) VALUES (?)"
    outcomes = []

    def attempt(db, sql=write, parameters=("a",)):
        try:
            db.execute(sql, parameters)
        except Exception as error:  # noqa: BLE001 - of sqlite3 or of sqlipc
            outcomes.append((type(error).__name__, str(error), error.sqlite_errorname))
        else:
            outcomes.append((db.in_transaction, db.total_changes))
        db.rollback()

    with (
        contextlib.closing(connect(timeout=timeout, isolation_level=level)) as db,
        contextlib.closing(connect(timeout=PATIENCE)) as other,
    ):
        attempt(db)
        other.execute(write, ("b",))
        attempt(db)
        attempt(db, "BEGIN IMMEDIATE", ())
        other.commit()
        attempt(db)
        with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as program:
            program.execute("BEGIN IMMEDIATE")
            attempt(db)
            program.execute("ROLLBACK")
            attempt(db)
            program.execute("BEGIN EXCLUSIVE")
            for _ in range(2):  # the second time the statement is known
                attempt(db, "SELECT count(*) FROM note", ())
            program.execute("ROLLBACK")
        other.execute(write, ("c",))
        with contextlib.closing(connect(timeout=timeout, isolation_level=level)) as fresh:
            attempt(fresh)
            other.rollback()
            attempt(fresh)
    return outcomes


@test
def lock_timeout():
    """A timeout of 0, or a short one, counts from a lock on, in transactions or not: the same outcomes as with sqlite3"""
    long = {"BusyTimeoutSec": 3600, "TransactionTimeoutSec": 3600, "TransactionIdleSec": 3600}  # no wait ends by itself
    with PythonService(limits=long) as own:
        for journal in ("wal", "delete"):
            path = own.add(f"locks-{journal}", "CREATE TABLE note(text)", journal)
            for timeout, level in itertools.product((0, 0.05, -1), ("DEFERRED", "IMMEDIATE", None)):

                def past(path=path, **keywords):
                    return sqlite3.connect(path, **keywords)

                def through(name=f"locks-{journal}", **keywords):
                    return own.connect(name, **keywords)

                expected = locks(past, path, timeout, level)
                equal(locks(through, path, timeout, level), expected, f"{journal}, timeout={timeout}, {level}")


@test
def no_lock_is_left():
    """With a timeout of 0 nothing meets a lock that is gone: of a closed connection, of a program that was killed"""
    path = service.add("left", "CREATE TABLE note(text); INSERT INTO note VALUES ('a')", "delete")
    write = "INSERT INTO note(text) VALUES ('b')"
    with contextlib.closing(service.connect("left", isolation_level=None, timeout=0)) as db:
        db.execute(write)
        for _ in range(50):
            with contextlib.closing(service.connect("left")) as other:
                other.execute(write)
            db.execute(write)
        # The journal of the program is rolled back by whoever comes next.
        program = (
            "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None); "
            "db.execute('PRAGMA cache_size = 1'); db.execute('BEGIN IMMEDIATE'); "
            "db.execute('INSERT INTO note SELECT hex(zeroblob(1000)) FROM note, note AS n'); os.kill(os.getpid(), 9)"
        )
        for sql in ("SELECT count(*) FROM note", write):
            subprocess.run([sys.executable, "-c", program, path], check=False)
            true(os.path.exists(f"{path}-journal"), "the program was killed in its transaction")
            db.execute(sql).fetchall()
        equal(db.execute("SELECT count(*) FROM note").fetchall(), [(53,)], "rows")


@test
def lock_timeout_with_temp_tables():
    """A statement that changes only TEMP tables waits for no transaction"""
    with contextlib.closing(service.connect()) as other, contextlib.closing(service.connect(timeout=0)) as db:
        other.execute("INSERT INTO note(text) VALUES ('a')")
        db.isolation_level = None
        for sql in ("CREATE TEMP TABLE x(a)", "INSERT INTO x VALUES (1)", "UPDATE x SET a = 2"):
            db.execute(sql)
        db.executemany("INSERT INTO x VALUES (?)", [(1,), (2,)])
        equal(db.execute("SELECT a FROM x").fetchall(), [(2,), (1,), (2,)], "rows")
        error = raises(sqlipc.OperationalError, db.execute, "INSERT INTO thing VALUES (1, 2, 3)")
        equal(str(error), "database is locked", "error")


@test
def lock_timeout_of_old_service():
    """A service that does not know the limit: the whole call is limited, and not refused"""
    with contextlib.closing(service.connect(timeout=PATIENCE)) as db, contextlib.closing(service.connect()) as other:
        core, wait_open = db._core, db._core.wait_open

        async def refuse(transaction):
            if core.begin_seconds >= 0:
                return await wait_open(transaction)
            error = sqlipc.ProgrammingError("Option \"lock-wait-usec\" is unknown.")
            error.service_error = "org.sqlipc1.Error.UnknownOption"
            raise error

        core.wait_open = refuse
        db.execute("INSERT INTO note(text) VALUES ('a')")
        db.commit()
        equal(core.begin_seconds, PATIENCE, "the limit of the call")
        core.begin_seconds = 0.2
        other.execute("BEGIN IMMEDIATE")
        error = raises(sqlipc.OperationalError, db.execute, "INSERT INTO note(text) VALUES ('b')")
        equal((str(error), error.sqlite_errorname, db.in_transaction), ("database is locked", "SQLITE_BUSY", False), "error")
    service.empty()


@test
def lost_transaction():
    """If the service ends a transaction, the next statement fails, and a new one can begin"""
    with contextlib.closing(service.connect()) as db:
        db.execute("INSERT INTO note(text) VALUES ('a')")
        service.kill()
        service.start()
        error = raises(sqlipc.OperationalError, db.execute, "INSERT INTO note(text) VALUES ('b')")
        true(
            error.service_error in ("org.sqlipc1.Error.TransactionEnded", "org.sqlipc1.Error.DaemonLost"),
            error.service_error,
        )
        db.rollback()
        db.execute("INSERT INTO note(text) VALUES ('c')")
        db.commit()
        equal(db.execute("SELECT text FROM note").fetchall(), [("c",)], "rows")
    service.empty()


@test
def lost_until_rolled_back():
    """After a transaction was lost, nothing succeeds until rollback(): no statement, no load, no commit(), in each mode"""
    write = "INSERT INTO note(text) VALUES (?)"
    modes = ({}, {"isolation_level": "IMMEDIATE"}, {"isolation_level": None}, {"autocommit": False}, {"autocommit": True})
    # None: commit() is the first to learn it
    endings = ("INSERT INTO note(text) VALUES ('b')", "SELECT 1", None)
    for mode, ending in itertools.product(modes, endings):
        with contextlib.closing(service.connect(**mode)) as db:
            explicit = None in mode.values() or True in mode.values()
            by_statement = mode.get("autocommit") is True  # there commit() and rollback() do nothing, as in sqlite3
            commit = (lambda db=db: db.execute("COMMIT")) if by_statement else db.commit
            if explicit:
                db.execute("BEGIN")
            db.execute(write, ("a",))
            service.kill()
            service.start()
            if ending is not None:
                try:
                    db.execute(ending)
                    raise AssertionError(f"{mode}: {ending} worked")
                except sqlipc.DatabaseError:
                    pass
            for _ in range(2):
                error = raises(sqlipc.OperationalError, commit)
                equal(error.service_error, "org.sqlipc1.Error.TransactionEnded", f"{mode}, {ending}: of commit")
                equal(error.sqlite_errorname, "SQLITE_ABORT_ROLLBACK", "likewise")
                true(db.in_transaction, f"{mode}, {ending}: not told to roll back")
                raises(sqlipc.OperationalError, db.execute, write, ("b",))
                raises(sqlipc.OperationalError, db.execute, "SELECT 1")
                raises(sqlipc.OperationalError, db.executemany, write, [("b",)] * 3)
                raises(sqlipc.OperationalError, db.executescript, "DELETE FROM note; SELECT 1")
                raises(sqlipc.OperationalError, db.execute, "SAVEPOINT s")
            if by_statement:
                db.execute("ROLLBACK")
            else:
                db.rollback()
            equal(count(), 0, f"{mode}, {ending}: rows")
            equal(db.execute("SELECT 2").fetchone(), (2,), "a query behind it")
            if explicit:
                db.execute("BEGIN")
            db.execute(write, ("c",))
            commit()
        equal(count(), 1, f"{mode}, {ending}: rows of the next transaction")
        service.empty()


def broken_after(n):
    yield from ((1000 + i,) for i in range(n))
    raise KeyError("broken")


class RowsThatFail(list):
    def __iter__(self):
        yield self[0]
        raise OverflowError("no more")


MANY_THAT_FAIL = (
    ("INSERT INTO note(id) VALUES (?)", lambda: [(1,), (2,), (1,), (3,)]),
    ("INSERT INTO note(id) VALUES (?)", lambda: ((1,), (2,), (1,), (3,))),
    ("INSERT INTO note(id) VALUES (?)", lambda: iter([(1,), (2,), (1,), (3,)])),
    ("INSERT INTO note(id) VALUES (?)", lambda: [(1,), (1,)]),
    ("INSERT INTO note(id) VALUES (?) RETURNING id", lambda: [(1,), (2,), (1,), (3,)]),
    ("INSERT OR ROLLBACK INTO note(id) VALUES (?)", lambda: [(1,), (2,), (1,), (3,)]),
    ("INSERT OR FAIL INTO note(id) SELECT value FROM json_each(?)", lambda: [("[1, 2]",), ("[3, 4, 1, 5]",), ("[6]",)]),
    ("INSERT INTO note(id) VALUES (?)", lambda: [(1,), (2, 3), (4,)]),
    ("INSERT INTO note(id) VALUES (?)", lambda: [(1,), (object(),), (4,)]),
    ("INSERT INTO note(id) VALUES (?)", lambda: [(1,), (2**70,), (4,)]),
    ("INSERT INTO note(text) VALUES (?)", lambda: [("a",), ("\ud800",), ("b",)]),
    ("INSERT INTO note(text) VALUES (?)", lambda: [(object(),), ("a",)]),
    ("INSERT INTO note(text) VALUES (?)", lambda: [("a",), ("b",), (2**70,)]),
    ("INSERT INTO note(text) VALUES (?)", lambda: RowsThatFail([("a",), ("b",)])),
    ("INSERT INTO note(id) VALUES (?)", lambda: broken_after(3)),
    ("INSERT INTO note(id) VALUES (?)", lambda: broken_after(0)),
    ("INSERT INTO note(id) VALUES (?)", lambda: broken_after(15000)),
    ("INSERT INTO note(id) VALUES (?)", lambda: iter([*((1000 + i,) for i in range(12000)), (1003,), (7,)])),
    ("UPDATE note SET id = ? WHERE id = 501", lambda: [(501,), (500,), (502,)]),
    ("DELETE FROM note WHERE id = ? / (? < 9) + 500", lambda: [(0, 1), (1, 2, 3)]),
)


def failed_many(db, sql, rows, begins):
    """What executemany() tells, and what it leaves."""
    db.execute("DELETE FROM note")
    db.executemany("INSERT INTO note(id, text) VALUES (?, ?)", [(500, "x"), (501, "y")])
    if db.in_transaction:
        db.commit()
    if begins:
        db.execute("BEGIN")
        db.execute("INSERT INTO note(id) VALUES (900)")
    before, seen = db.total_changes, []
    try:
        db.executemany(sql, rows)
    except Exception as error:
        seen = [type(error).__name__, getattr(error, "sqlite_errorname", None)]
        seen += [str(error)] if seen[1] else []
    seen += [db.in_transaction, db.total_changes - before, db.execute("SELECT id, text FROM note ORDER BY id").fetchall()]
    if db.in_transaction:
        db.rollback()
    return [*seen, db.execute("SELECT count(*), max(id) FROM note").fetchall()]


@test
def many_that_fail():
    """executemany() that fails leaves the rows before it, in a transaction and alone, as sqlite3 does"""
    service.add("many", SCHEMA)
    for level, begins in (("", False), ("", True), (None, False), (None, True)):
        ours = service.connect("many", isolation_level=level)
        theirs = sqlite3.connect(":memory:", isolation_level=level)
        with contextlib.closing(ours), contextlib.closing(theirs):
            theirs.executescript(SCHEMA)
            for i, (sql, rows) in enumerate(MANY_THAT_FAIL):
                seen, expected = (failed_many(db, sql, rows(), begins) for db in (ours, theirs))
                if "SQLITE_MISUSE" in expected and "RETURNING" in sql:
                    continue  # a defect of executemany() in Python 3.13
                equal(seen, expected, f"{i}: {sql}, isolation_level {level}, begins: {begins}")


@test
def many_without_memory():
    """A row of executemany() that needs more memory than there is leaves the rows before it, too"""
    with PythonService(limits={**PATIENT, "HeapMax": "64M"}) as small:
        rows = [(1,), (2,), (60_000_000,), (4,)]
        for level in (None, ""):
            with contextlib.closing(small.connect(isolation_level=level)) as db:
                error = raises(MemoryError, db.executemany, "INSERT INTO note(id) SELECT length(hex(zeroblob(?)))", rows)
                equal(str(error).startswith("row "), False, str(error))
                equal(db.execute("SELECT id FROM note").fetchall(), [(2,), (4,)], level)
                db.execute("DELETE FROM note")


@test
def many_whose_end_is_lost():
    """An error that comes after all rows were given sends none of them again, because they may be written"""
    service.add("end", SCHEMA)
    for failure, begins in itertools.product((OverflowError, UnicodeError, sqlipc.OperationalError), (False, True)):
        with contextlib.closing(service.connect("end", isolation_level=None)) as db:
            core, finish, error = db._core, db._core.finish, failure("the answer was lost")

            async def lose(load, is_within, finish=finish, error=error):
                await finish(load, is_within)
                raise error

            core.finish = lose
            db.execute("BEGIN" if begins else "SELECT 1")
            raises(failure, db.executemany, "INSERT INTO note(text) VALUES (?)", [("a",), ("b",), ("c",)])
            equal(db.execute("SELECT text FROM note").fetchall(), [("a",), ("b",), ("c",)], f"{failure}, begins: {begins}")
            db.execute("ROLLBACK" if begins else "DELETE FROM note")


FILLS = "INSERT INTO thing(a) SELECT randomblob(1000) FROM note a, note b", "INSERT INTO thing(a) VALUES (zeroblob(3000000))"


def full_disk(db, sql):
    """What a program sees whose database may not grow."""
    seen = []
    for statement in ("BEGIN", "INSERT INTO note(text) VALUES ('a')", sql, "INSERT INTO note(text) VALUES ('b')",
                      "COMMIT", "INSERT INTO note(text) VALUES ('c')", "SELECT text FROM note WHERE id > 100",
                      "ROLLBACK"):  # fmt: skip
        try:
            seen.append(db.execute(statement).fetchall())
        except Exception as error:
            seen.append((type(error).__name__, error.sqlite_errorname))
        seen.append(db.in_transaction)
    return seen


@test
def rolled_back_by_a_full_disk():
    """After SQLITE_FULL has rolled a transaction back, in_transaction tells it, and the program goes on, as with sqlite3"""
    numbers = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < 100) SELECT x FROM c"
    fill = f"INSERT INTO note(id) {numbers}"
    path = service.add("small", f"{SCHEMA}; {fill};")
    service.database("small", Path=path, Mode="read-write", DatabaseSizeMax="1M")
    service.driver.manager("Reload")
    for sql in FILLS:
        theirs = sqlite3.connect(":memory:", isolation_level=None)
        ours = service.connect("small", isolation_level=None)
        with contextlib.closing(ours), contextlib.closing(theirs):
            ours.execute("DELETE FROM note WHERE id > 100")
            theirs.executescript(f"{SCHEMA}; {fill}; PRAGMA max_page_count = 256")
            seen = full_disk(ours, sql)
            equal(seen, full_disk(theirs, sql), sql)
            true(("OperationalError", "SQLITE_FULL") in seen, seen)


@test
def commit_that_fails():
    """A commit that is refused keeps the transaction; `with` rolls back, and the next transaction works"""
    path = service.add(
        "deferred", "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(p REFERENCES p DEFERRABLE INITIALLY DEFERRED)"
    )
    service.database("deferred", Path=path, Mode="read-write", ForeignKeys="yes")
    service.driver.manager("Reload")
    with contextlib.closing(service.connect("deferred")) as db:
        db.execute("INSERT INTO c VALUES (7)")
        raises(sqlipc.IntegrityError, db.commit)
        error = raises(sqlipc.IntegrityError, db.commit)
        equal((error.sqlite_errorname, db.in_transaction), ("SQLITE_CONSTRAINT_FOREIGNKEY", True), "the second commit")
        db.execute("INSERT INTO p VALUES (7)")
        db.commit()
        db.execute("DELETE FROM c")
        db.execute("DELETE FROM p")
        db.commit()
        try:
            with db:
                db.execute("INSERT INTO c VALUES (7)")
            raise AssertionError("the block worked")
        except sqlipc.IntegrityError:
            equal(db.in_transaction, False, "behind the block")
        with db:
            db.execute("INSERT INTO p VALUES (1)")
        equal(db.execute("SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM c)").fetchone(), (1, 0), "rows")


@test
def interrupt():
    """interrupt() from another thread ends a query; the connection works on"""
    with contextlib.closing(service.connect("chinook")) as db:
        begun = threading.Event()
        db.set_trace_callback(lambda sql: begun.set())

        def later():
            begun.wait()
            while not done:
                db.interrupt()
                time.sleep(0.05)

        done = []
        thread = threading.Thread(target=later)
        thread.start()
        error = raises(sqlipc.OperationalError, db.execute, ENDLESS)
        done.append(1)
        thread.join()
        equal(error.sqlite_errorname, "SQLITE_INTERRUPT", "name")
        db.set_trace_callback(None)
        equal(db.execute("SELECT 1").fetchone(), (1,), "afterwards")
        db.set_run_timeout(0.05)
        raises(sqlipc.OperationalError, db.execute, ENDLESS)
        db.set_run_timeout(None)
        equal(db.execute("SELECT 1").fetchone(), (1,), "without a limit again")


@test
def interrupted_load_that_waits():
    """interrupt() ends a load that waits for another writer, also after all its rows were sent; nothing is written"""
    rows = [(1,)] * 3

    def interrupt_later(db):
        wait_for(lambda: patient.counters()["NRuns"] > 0, "the load begins")
        time.sleep(0.1)  # so that all rows are sent, most likely; before that, an interruption ends it as well
        db.interrupt()

    with contextlib.ExitStack() as stack:
        patient = stack.enter_context(PythonService(limits=PATIENT))
        holder = stack.enter_context(contextlib.closing(patient.connect(isolation_level=None)))
        db = stack.enter_context(contextlib.closing(patient.connect(autocommit=True, check_same_thread=False)))
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        holder.execute("BEGIN IMMEDIATE")
        done = pool.submit(interrupt_later, db)
        error = raises(sqlipc.OperationalError, db.executemany, "INSERT INTO thing(a) VALUES (?)", rows)
        done.result()
        equal(error.sqlite_errorname, "SQLITE_INTERRUPT", "name")
        holder.execute("ROLLBACK")
        equal(holder.execute("SELECT count(*) FROM thing").fetchone(), (0,), "rows")
        equal(db.executemany("INSERT INTO thing(a) VALUES (?)", rows).rowcount, 3, "the next load")


@test
def interrupted_loads_of_an_iterator():
    """interrupt() of executemany() that has several loads: all is rolled back, so the outcome is not unknown"""
    rows = [(i,) for i in range(sqlipc._core.CHUNK_ROWS)]
    for within in (False, True):
        with contextlib.closing(service.connect(isolation_level=None)) as db:
            if within:
                db.execute("BEGIN")
                db.execute("INSERT INTO thing(a) VALUES ('before')")
            interrupt_load(db._core)
            error = raises(sqlipc.OperationalError, db.executemany, "INSERT INTO thing(a) VALUES (?)", iter(rows))
            equal((error.sqlite_errorname, error.service_error), ("SQLITE_INTERRUPT", None), str(error))
            equal((str(error), db.in_transaction), ("interrupted", within), "text, in_transaction")
            equal(db.execute("SELECT a FROM thing").fetchall(), [("before",)] * within, f"rows, within={within}")


@test
def interrupted_writes():
    """interrupt() of a write: an error with SQLITE_INTERRUPT means that nothing was written, in each mode"""
    n = 0
    rows = [(str(j),) for j in range(10000)]
    for autocommit, i in itertools.product((True, False), range(20)):
        service.empty()
        with contextlib.closing(service.connect(autocommit=autocommit)) as db:
            timer = threading.Timer(0.0005 * i, db.interrupt)
            timer.start()
            told = True
            try:
                if i % 2:
                    db.executemany("INSERT INTO note(text) VALUES (?)", rows)
                else:
                    values = (str(list(range(10000))),)
                    db.execute(f"INSERT INTO note(text) SELECT value FROM json_each(?) WHERE {SLOWLY}", values)
            except sqlipc.OperationalError as error:
                told = None if error.service_error == "org.sqlipc1.Error.OutcomeUnknown" else False
                equal(told is False, error.sqlite_errorname == "SQLITE_INTERRUPT", f"{i}: {error}")
            timer.join()
            n += told is False
            if told is None:
                continue
            try:
                db.commit()
            except sqlipc.OperationalError as error:
                equal((error.sqlite_errorname, told), ("SQLITE_ABORT_ROLLBACK", False), f"{i}: {error}")
        equal(count(), 10000 if told else 0, f"autocommit={autocommit}, {i}: rows, told {told}")
    service.empty()
    true(n > 0, "none was interrupted")


@test
def trace():
    """set_trace_callback() sees each statement"""
    with contextlib.closing(service.connect("chinook")) as db:
        seen = []
        db.set_trace_callback(seen.append)
        db.execute("SELECT 1").fetchall()
        db.execute("SELECT 1").fetchall()
        db.set_trace_callback(None)
        db.execute("SELECT 2").fetchall()
        equal(seen, ["SELECT 1", "SELECT 1"], "statements")


COPIED = """
PRAGMA user_version = 7;
PRAGMA application_id = 99;
CREATE TABLE plain(a, b DEFAULT 5);
INSERT INTO plain VALUES (1, 'it''s'), (2.5, NULL), (x'00ff', 'ä' || char(10)), (9223372036854775807, 1e300);
DELETE FROM plain WHERE a = 1;
CREATE TABLE keyed(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO keyed VALUES ('x', 1), ('y', 2);
CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, v);
INSERT INTO counted(v) VALUES ('one'), ('two');
DELETE FROM counted WHERE id = 2;
CREATE TABLE computed(a, b GENERATED ALWAYS AS (a * 2));
INSERT INTO computed(a) VALUES (4);
CREATE TABLE "odd ""name"(  "a b" );
INSERT INTO "odd ""name" VALUES ('z');
CREATE INDEX by_b ON plain(b);
CREATE VIEW seen AS SELECT k FROM keyed;
CREATE TRIGGER tr AFTER INSERT ON plain BEGIN INSERT INTO keyed VALUES (new.a, 3); END;
CREATE VIRTUAL TABLE words USING fts5(body);
INSERT INTO words VALUES ('some words');
"""


def contents(path):
    """All that can be seen of a file: schema, rows with rowids, and properties."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        schema = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
        tables = [row[1] for row in schema if row[0] == "table" and not row[1].startswith("words_")]
        rows = {}
        for table in tables:
            quoted = '"' + table.replace('"', '""') + '"'
            rowid = "" if table == "keyed" else "rowid, "
            rows[table] = db.execute(f"SELECT {rowid}* FROM {quoted} ORDER BY 1").fetchall()
        found = db.execute("SELECT rowid FROM words WHERE words MATCH 'some'").fetchall()
        check = db.execute("PRAGMA integrity_check").fetchall()
        pragmas = [
            db.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id", "encoding", "page_size")
        ]
        return schema, rows, found, check, pragmas


def published_broken(name, **keywords):
    path = broken_schema.make(service.data / f"{name}.sqlite", "wal", **keywords)
    service.database(name, Path=path, Mode="read-write", WriteSchema="yes")
    service.driver.manager("Reload")
    return path


@test
def copies_beside_broken_objects():
    """iterdump() has every object, whether it compiles or not; one that cannot be copied is named"""
    path = published_broken("lacking", odd_names=False)
    with contextlib.closing(service.connect("lacking")) as db, contextlib.closing(sqlite3.connect(path)) as direct:
        lines = "".join(db.iterdump())
        for (sql,) in direct.execute("SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'words_%'"):
            true(sql in lines or sql.replace("'", "''") in lines, f"{sql} in {lines}")
        for ours, theirs in ((one.execute("SELECT * FROM sqlite_schema").fetchall() for one in (db, direct)),):
            equal(ours, theirs, "schema")
        for name in broken_schema.UNREADABLE:
            errors = []
            for one in (db, direct):
                try:
                    one.execute(f'SELECT * FROM "{name}"').fetchall()
                except (sqlipc.Error, sqlite3.Error) as error:
                    errors.append(str(error))
            equal(errors[:1] * 2, errors, f"what is said of {name}")
        for (name,) in direct.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')").fetchall():
            if name not in broken_schema.UNREADABLE:
                equal(*(one.execute(f'SELECT * FROM "{name}"').fetchall() for one in (db, direct)), f"rows of {name}")
        error = raises(sqlipc.OperationalError, db.backup, service.folder / "lacking.sqlite")
        equal(str(error), "table sorted: no such collation sequence: absent", "what cannot be copied")
        equal(error.sqlite_errorname, "SQLITE_ERROR_MISSING_COLLSEQ", "its code")
        true(not (service.folder / "lacking.sqlite").exists(), "an unfinished copy")
    published_broken("odd")
    with contextlib.closing(service.connect("odd")) as db:
        error = raises(sqlipc.OperationalError, db.execute, 'SELECT * FROM "no odd table"')
        equal(str(error), "no such table: main.g" + "\ufffd" * 3, "bytes that are not UTF-8")
        error = raises(sqlipc.OperationalError, lambda: list(db.iterdump()))
        true("Could not decode to UTF-8 column 'name' with text 't" in str(error), str(error))


@test
def errors_of_copies():
    """An error of a copy keeps its codes; it names an object only if the object is the reason"""
    names = ("ERROR", "ERROR_MISSING_COLLSEQ", "BUSY", "BUSY_SNAPSHOT", "INTERRUPT", "FULL")
    for name, kind in itertools.product(names, (sqlipc.OperationalError, sqlite3.OperationalError)):
        told = error_of_code(name, "no")
        failure = kind("no")
        failure.sqlite_errorcode, failure.sqlite_errorname = told.sqlite_errorcode, told.sqlite_errorname
        if kind is sqlipc.OperationalError:
            failure.service_error = "org.sqlipc1.Error.Sql"

        def fail(failure=failure):
            with sqlipc._copy._about("table", "t"):
                raise failure

        error = raises(sqlipc.OperationalError, fail)
        equal(str(error), "table t: no" if name.startswith("ERROR") else "no", f"text of {name}")
        equal((error.sqlite_errorcode, error.sqlite_errorname), (told.sqlite_errorcode, told.sqlite_errorname), "codes")
        equal(error.service_error, getattr(failure, "service_error", None), "error of the service")


@test
def copies():
    """backup() into a file and into sqlite3 copies everything; iterdump() is what sqlite3 writes"""
    path = service.add("copied", COPIED)
    with contextlib.closing(service.connect("copied")) as db:
        calls = []
        db.backup(service.folder / "copy.sqlite", pages=1, progress=lambda *arguments: calls.append(arguments))
        equal(contents(service.folder / "copy.sqlite"), contents(path), "copy in a file")
        true(len(calls) > 3 and calls[-1][0] == sqlite3.SQLITE_DONE and calls[-1][1] == 0, calls)
        with contextlib.closing(sqlite3.connect(service.folder / "second.sqlite")) as target:
            db.backup(target)
        equal(contents(service.folder / "second.sqlite"), contents(path), "copy through sqlite3")
        raises(TypeError, db.backup, 5)
        raises(sqlipc.NotSupportedError, db.backup, "x", name="temp")
        with contextlib.closing(sqlite3.connect(path)) as direct:
            # Virtual tables, which write to the schema, are dumped by Python 3.13 and later.
            ours, theirs = (
                [line for line in one.iterdump() if not re.search("words|writable", line)] for one in (db, direct)
            )
            equal(ours, theirs, "dump")
        with contextlib.closing(sqlite3.connect(service.folder / "third.sqlite")) as target:
            target.executescript("".join(db.iterdump()))
            equal(target.execute("SELECT * FROM keyed").fetchall(), [("x", 1), ("y", 2)], "rows of a loaded dump")
        with db:  # within a transaction, with its changes
            db.execute("INSERT INTO computed(a) VALUES (77)")
            true(any("77" in line for line in db.iterdump()), "dump within a transaction")
        equal(sorted(p.name for p in service.folder.iterdir() if ".sqlipc-backup" in p.name), [], "temporary folders")


@test
def listed():
    """databases() lists what the user may use"""
    with contextlib.closing(service.connect()) as db:
        names = [name for name, _, _ in db.databases()]
        true({"chinook", "notes"} <= set(names) and names == sorted(names), names)
        modes = {name: mode for name, _, mode in db.databases()}
        equal((modes["chinook"], modes["notes"]), ("read-only", "read-write"), "modes")


@test
def a_thousand_connections():
    """Of 1,000 connections of one user, more than there are channels for, each reads and writes, and none is refused; nor is
    a program that prepares a statement by name"""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    many = {"max_connections_per_user": 10000, "max_completed_connections": 10000}
    with PythonService(bus_limits=many, limits={"ChannelsMax": 700}) as crowded, contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(contextlib.closing(crowded.connect(isolation_level=None))) for _ in range(1000)
        ]
        for times in range(3):  # SQL that comes again is prepared
            for i, db in enumerate(connections):
                db.execute("INSERT INTO thing VALUES (?, ?, 0)", (i, times))
                equal(db.execute("SELECT a + ? FROM thing WHERE rowid = ?", (0, 1)).fetchall(), [(0,)], "row")
        equal(crowded.counters()["NStatements"], 256, "statements, which is all that the user may have")
        held = [crowded.client().prepare("chinook", "SELECT 1") for _ in range(2)]
        for statement in held:
            statement.close()
        with contextlib.closing(sqlite3.connect(crowded.notes)) as db:
            equal(db.execute("SELECT count(*), count(DISTINCT a) FROM thing").fetchall(), [(3000, 1000)], "rows")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@test
def killed_while_it_reads():
    """SELECT is repeated if the service is killed, and fails if that happens repeatedly; its outcome is never unknown"""
    with PythonService(activation=True) as killed:
        for name in ("notes", "chinook"):
            with contextlib.closing(killed.connect(name)) as db:
                killer = Killer(killed, 18)
                while killer.read_on():
                    try:
                        equal(db.execute(f"SELECT 6 * ? WHERE {SLOWLY}", (7,)).fetchall(), [(42,)], name)
                    except sqlipc.OperationalError as error:
                        true(error.service_error != "org.sqlipc1.Error.OutcomeUnknown", str(error))
            equal(killer.n_killed, 36, "kills")


main(service)
