#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pins: connections of clients' own, with TEMP tables. No other client sees these, and no statement ever meets another table
in the place of one that is gone."""
import contextlib
import os
import shutil
import signal
import sqlite3
import tempfile
import time

import argument_files
import load_stream
from client import DATABASE, Failure, Run, Text, object_path
from gi.repository import GLib
from harness import CHINOOK, UID_A, UID_B, UID_DAEMON, Service, expect, fds, main, needs_root, processor_time, wait_for
from idle_service import Idle
from load_stream import begin_load, send, stream, wait_for_load
from tap import at_most, equal, test, true
from writers import DB, ask, numbers, writable

DETAILS = {"error-details": GLib.Variant("b", True)}
INSERT = "INSERT INTO written(number) VALUES (?)"
SELECT = "SELECT number FROM written"


def begin(client, mode="pin", **numbers_of):
    options = {"mode": GLib.Variant("s", mode)} | {key: GLib.Variant("t", n) for key, n in numbers_of.items()}
    values, _ = client.database(DB, "Begin", "(a{sv})", options)
    return values[0].get_uint64()


def end(client, method, number):
    client.database(DB, method, "(ta{sv})", number, {})


def refused(names, function, *arguments, **keywords):
    """Fails unless the call returns one of these errors."""
    try:
        result = function(*arguments, **keywords)
        result = result.read() if hasattr(result, "read") else result
    except Failure as failure:
        true(failure.name.removeprefix("org.sqlipc1.Error.") in names, f"{arguments}: {failure}")
        return failure
    raise AssertionError(f"{arguments}: got {result}, expected {names}")


def on(pin):
    return {"pin": GLib.Variant("t", pin)}


def inside(transaction):
    return {"transaction": GLib.Variant("t", transaction)}


def rows(client, sql, options=None):
    return client.query(DB, sql, options=options).read().rows


def count_to(n):
    return f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {n})"


def recovered(service):
    """The numbers of a copy of the file, whose log SQLite must recover."""
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            if os.path.exists(f"{service.written}{suffix}"):
                shutil.copy(f"{service.written}{suffix}", f"{folder}/copy{suffix}")
        with contextlib.closing(sqlite3.connect(f"{folder}/copy")) as db:
            equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "the copy")
            return [number for (number,) in db.execute("SELECT number FROM written ORDER BY number")]


def fill(client, pin, n):
    client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
    for i in range(n):
        equal(client.execute(DB, "INSERT INTO t VALUES(?)", [i], options=on(pin))[0], 1, "changes")


@test
def statements():
    """A TEMP table on a pin: statements of all kinds, also those that change the file by it"""
    for journal in ("wal", "delete"):
        with writable(journal) as service:
            client = service.client()
            expect("NeedsPin", client.execute, DB, "CREATE TEMP TABLE t(a)")
            expect("NeedsPin", client.query, DB, "CREATE TABLE temp.t(a)")
            pin = begin(client)
            fill(client, pin, 3)
            equal(rows(client, "SELECT a FROM temp.t", on(pin)), [[0], [1], [2]], "rows")
            equal(rows(client, "SELECT changes(), total_changes(), last_insert_rowid()", on(pin)), [[1, 3, 3]], "counts")
            equal(rows(client, "UPDATE t SET a = a + 10 RETURNING a", on(pin)), [[10], [11], [12]], "RETURNING")
            equal(client.execute(DB, "INSERT INTO written(number) SELECT a FROM t", options=on(pin))[0], 3, "changes")
            equal(numbers(service), [10, 11, 12], "in the file")
            equal(client.execute(DB, INSERT, [13], options=on(pin))[0], 1, "changes")
            equal(rows(client, "SELECT count(*) FROM written w JOIN t ON w.number = t.a", on(pin)), [[3]], "a join")
            expect("Sql", client.query, DB, "SELECT * FROM t")
            expect("Sql", client.query, DB, "SELECT * FROM none", options=on(pin))
            expect("Sql", client.execute, DB, "CREATE TEMP TABLE t(b)", options=on(pin))
            client.execute(DB, "ALTER TABLE t ADD COLUMN b DEFAULT 5", options=on(pin))
            client.execute(DB, "CREATE UNIQUE INDEX temp.i ON t(a)", options=on(pin))
            expect("Sql", client.execute, DB, "INSERT INTO t VALUES(10, 1)", options=on(pin))
            equal(rows(client, "SELECT sum(a), sum(b) FROM t", on(pin)), [[33, 15]], "after a failure")
            client.execute(DB, "DROP TABLE t", options=on(pin))
            expect("Sql", client.query, DB, "SELECT * FROM t", options=on(pin))
            end(client, "Rollback", pin)
            expect("PinLost", client.query, DB, "SELECT 1", options=on(pin))


@test
def transactions():
    """Transactions on a pin: deferred, to write and to read; COMMIT keeps TEMP rows, ROLLBACK takes them back"""
    for journal in ("wal", "delete"):
        with writable(journal) as service:
            client = service.client()
            pin = begin(client)
            client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
            n = 0
            for mode in ("deferred", "write", "read"):
                for how in ("Rollback", "Commit"):
                    t = begin(client, mode, pin=pin)
                    equal(client.execute(DB, "INSERT INTO t VALUES(1)", options=inside(t))[0], 1, mode)
                    equal(rows(client, "SELECT count(*) FROM t", inside(t)), [[n + 1]], mode)
                    if mode == "read":
                        expect("ReadOnly", client.execute, DB, INSERT, [1], options=inside(t))
                    else:
                        equal(client.execute(DB, INSERT, [1], options=inside(t))[0], 1, mode)
                        equal(rows(client, "SELECT count(*) FROM written", inside(t)), [[len(numbers(service)) + 1]], mode)
                    expect("Busy", begin, client, "read", pin=pin)
                    end(client, how, t)
                    n += how == "Commit"
                    equal(rows(client, "SELECT count(*) FROM t", on(pin)), [[n]], (mode, how))
            equal(len(numbers(service)), 2, "in the file")


@test
def deferred():
    """A transaction on a pin waits for no lock before it writes the file; then what it has read must be true"""
    with writable() as service:
        client, other = service.client(), service.client()
        pin = begin(client)
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
        t = begin(client, "deferred", pin=pin)
        client.execute(DB, "INSERT INTO t VALUES(1)", options=inside(t))
        other.execute(DB, INSERT, [1])
        equal(client.execute(DB, "INSERT INTO written(number) SELECT a + 1 FROM t", options=inside(t))[0], 1, "changes")
        end(client, "Commit", t)
        equal(numbers(service), [1, 2], "in the file")
        t = begin(client, "deferred", pin=pin)
        equal(rows(client, "SELECT count(*) FROM written", inside(t)), [[2]], "a read")
        other.execute(DB, INSERT, [3])
        failure = expect("Busy", client.execute, DB, INSERT, [4], options=inside(t) | DETAILS)
        equal(failure.extended, 517, "SQLITE_BUSY_SNAPSHOT")
        client.execute(DB, "INSERT INTO t VALUES(2)", options=inside(t))
        end(client, "Commit", t)
        equal(rows(client, "SELECT a FROM t", on(pin)), [[1], [2]], "rows")
        equal(numbers(service), [1, 2, 3], "in the file")


@test
def out_of_a_transaction():
    """A pin that is made of an open transaction goes on with that, if what it has read is still true"""
    for journal in ("wal", "delete"):
        with writable(journal) as service:
            client, other = service.client(), service.client()
            for mode in ("deferred", "write", "read"):
                for reads in (False, True):
                    for how in ("Commit", "Rollback"):
                        n = len(numbers(service))
                        t = begin(client, mode)
                        if mode == "write":
                            client.execute(DB, INSERT, [1], options=inside(t))
                        if reads:
                            rows(client, "SELECT * FROM written", inside(t))
                        expect("NeedsPin", client.execute, DB, "CREATE TEMP TABLE t(a)", options=inside(t))
                        pin = begin(client, transaction=t)
                        expect("TransactionEnded", begin, client, transaction=t)
                        client.execute(DB, "CREATE TEMP TABLE t(a)", options=inside(t))
                        client.execute(DB, "INSERT INTO t VALUES(5)", options=inside(t))
                        if mode == "read":
                            expect("ReadOnly", client.execute, DB, INSERT, [1], options=inside(t))
                        else:
                            client.execute(DB, "INSERT INTO written(number) SELECT a FROM t", options=inside(t))
                        end(client, how, t)
                        if how == "Commit":
                            equal(rows(client, "SELECT a FROM t", on(pin)), [[5]], (mode, reads))
                        else:
                            expect("Sql", rows, client, "SELECT a FROM t", on(pin))
                        added = 0 if mode == "read" or how == "Rollback" else 1 + (mode == "write")
                        equal(len(numbers(service)), n + added, (mode, reads, how))
                        end(client, "Rollback", pin)
            if journal == "wal":
                t = begin(client, "deferred")
                rows(client, "SELECT * FROM written", inside(t))
                other.execute(DB, INSERT, [9])
                expect("Busy", begin, client, transaction=t)
                rows(client, "SELECT * FROM written", inside(t))
                end(client, "Rollback", t)


@test
def of_others():
    """No other client reaches a pin: not by its number, and not by a table of the same name"""
    with writable() as service:
        client = service.client()
        pin = begin(client)
        fill(client, pin, 2)
        t = begin(client, "deferred", pin=pin)
        for uid in (None, UID_A if os.geteuid() == 0 else None):
            other = service.client(uid)
            for options in (on(pin), inside(t)):
                failure = expect("PinLost" if "pin" in options else "TransactionEnded", other.query, DB, "SELECT 1",
                                 options=options)
                equal(failure.extended, 0, failure)
            expect("PinLost", begin, other, "read", pin=pin)
            expect("TransactionEnded", begin, other, transaction=t)
            expect("TransactionEnded", end, other, "Rollback", pin)
            expect("PinLost", other.prepare, DB, "SELECT 1", options=on(pin))
            expect("Sql", other.query, DB, "SELECT * FROM t")
            equal(rows(other, "SELECT * FROM sqlite_temp_master"), [], "schema")
            equal(rows(other, "SELECT * FROM sqlite_temp_master", on(begin(other))), [], "schema of its own pin")
        expect("TransactionEnded", client.query, DB, "SELECT 1", options=inside(pin))
        expect("PinLost", client.query, DB, "SELECT 1", options=on(t))
        end(client, "Commit", t)
        equal(rows(client, "SELECT * FROM t", on(pin)), [[0], [1]], "rows")


@test
def lost():
    """Each loss of a pin is an error of the next call: the worker, the file, the client's rights"""
    def by_worker(service):
        for pid in service.workers():
            os.kill(pid, signal.SIGKILL)

    def by_file(service):
        copy = service.data / "copy.sqlite"
        copy.write_bytes(service.written.read_bytes())
        os.rename(copy, service.written)

    def by_rights(service):
        service.database(DB, Path=service.written, Mode="read-only")
        service.driver.manager("Reload")

    for lose in (by_worker, by_file, by_rights):
        for with_transaction in (False, True):
            with writable("delete") as service:
                client = service.client()
                client.execute(DB, "INSERT INTO written(number) VALUES(1)")
                pin = begin(client)
                client.execute(DB, "CREATE TEMP TABLE written(number)", options=on(pin))
                equal(rows(client, SELECT, on(pin)), [], "rows")
                t = begin(client, "deferred", pin=pin) if with_transaction and lose != by_file else None
                lose(service)
                if t:
                    refused(("TransactionEnded", "WorkerLost"), client.query, DB, SELECT, options=inside(t))
                for _ in range(3):
                    refused(("PinLost", "WorkerLost"), client.query, DB, SELECT, options=on(pin))
                expect("PinLost", client.query, DB, SELECT, options=on(pin))
                expect("PinLost", begin, client, "deferred", pin=pin)
                equal(rows(client, SELECT), [[1]], "without the pin")


@test
def quota():
    """PinsMax= holds for a user; a pin that ends, or whose client leaves, counts no more"""
    with writable(limits={"PinsMax": 2}) as service:
        one, two = service.client(), service.client()
        if os.geteuid() == 0:
            service.limits(PinsMax=2, ExemptRoot="no")
        first = begin(one)
        begin(two)
        failure = expect("LimitsExceeded", begin, one)
        true("PinsMax=" in failure.message, failure)
        end(one, "Rollback", first)
        begin(one)
        expect("LimitsExceeded", begin, one)
        two.close()
        wait_for(lambda: len(service.driver.manager("ListTransactions")[0]) == 1, "the pins of a client that left are over")
        begin(one)
        equal({more["mode"] for *_, more in service.driver.manager("ListTransactions")[0]}, {"pin"}, "modes")


@test
def space():
    """TempSizeMax= bounds TEMP tables; a statement past it fails alone"""
    with writable(limits={"TempSizeMax": "8M", "WorkersMax": 1}) as service:
        client = service.client()
        pin = begin(client)
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
        client.execute(DB, "INSERT INTO t VALUES(zeroblob(1000000))", options=on(pin))
        failure = expect("LimitsExceeded", client.execute, DB, "INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL "
                         "SELECT n + 1 FROM c LIMIT 30) SELECT zeroblob(1000000) FROM c", options=on(pin))
        true("TempSizeMax" in failure.message, failure.message)
        equal(rows(client, "SELECT count(*) FROM t", on(pin)), [[1]], "rows")
        equal(client.execute(DB, INSERT, [1], options=on(pin))[0], 1, "changes of the file")


@test
def space_at_commit():
    """TempSizeMax= may be met when a transaction with rows of both kinds commits: nothing is written, and the pin goes on"""
    for journal in ("wal", "delete"):
        with writable(journal, limits={"TempSizeMax": "8M", "WorkersMax": 1}) as service:
            client = service.client()
            pin = begin(client)
            client.execute(DB, f"CREATE TEMP TABLE t AS {count_to(76)} SELECT zeroblob(100000) FROM c", options=on(pin))
            fill_more = f"INSERT INTO t {count_to(4)} SELECT zeroblob(100000) FROM c"  # less than a pin's cache
            for mode, fits in (("write", True), ("write", False), ("deferred", False)):
                t = begin(client, mode, pin=pin)
                client.execute(DB, INSERT, [1], options=inside(t))
                client.execute(DB, fill_more, options=inside(t))
                equal(len(numbers(service)), not fits, "before the commit")
                if fits:
                    end(client, "Commit", t)
                else:
                    failure = expect("LimitsExceeded", end, client, "Commit", t)
                    true("TempSizeMax" in failure.message, failure.message)
                equal(rows(client, "SELECT count(*) FROM t", on(pin)), [[80]], "rows of the pin")
                equal(recovered(service), [1], "rows of the file")


@test
def readers():
    """A user who may only read has TEMP tables, and nothing of the file is changed by them"""
    with writable(WriteUsers="") as service:
        reader = service.client(UID_A) if os.geteuid() == 0 else None
        if not reader:
            return
        service.client().execute(DB, INSERT, [7])
        expect("NeedsPin", reader.query, DB, "CREATE TEMP TABLE t AS SELECT number FROM written")
        pin = begin(reader)
        reader.query(DB, "CREATE TEMP TABLE t AS SELECT number FROM written", options=on(pin)).read()
        equal(reader.execute(DB, "INSERT INTO t VALUES(8)", options=on(pin))[0], 1, "changes")
        sql = "SELECT t.number, changes(), last_insert_rowid() FROM t LEFT JOIN written USING(number)"
        equal(rows(reader, sql, on(pin)),
              [[7, 1, 2], [8, 1, 2]], "rows")
        attempts = (INSERT.replace("?", "1"), "INSERT INTO written(number) SELECT number FROM t", "CREATE TABLE x(a)",
                    "DROP TABLE written",
                    "DELETE FROM main.written", "PRAGMA main.user_version = 3", "CREATE INDEX main.i ON written(t)",
                    "REINDEX", "ANALYZE main", "VACUUM", "ALTER TABLE written ADD COLUMN x")
        for mode in (None, "deferred", "read"):
            t = begin(reader, mode, pin=pin) if mode else None
            for sql in attempts:
                refused(("ReadOnly", "NotAllowed"), reader.execute, DB, sql, options=inside(t) if t else on(pin))
            if t:
                equal(reader.execute(DB, "DELETE FROM t", options=inside(t))[0], 2, "changes")
                end(reader, "Rollback", t)
        equal(rows(reader, "SELECT count(*) FROM t", on(pin)), [[2]], "rows")
        expect("ReadOnly", begin, reader, "write", pin=pin)
        equal(numbers(service), [7], "in the file")


def run_lists(client, options):
    """A list and a load, which add two rows to t each."""
    equal(client.execute_batch(DB, [("INSERT INTO t VALUES(1)",), ("INSERT INTO t VALUES(2)",)], options=options)[0], [1, 1],
          "changes")
    run, pipe = begin_load(client, DB, "INSERT INTO t VALUES(?)", options)
    send(pipe, stream([[1], [2]]))
    equal(wait_for_load(client, DB, run)[0], 2, "rows of the load")


@needs_root
def lists_of_readers():
    """Lists and loads of a user who may only read change TEMP tables: on a pin, in transactions there, and made of them"""
    with writable(WriteUsers="") as service:
        reader = service.client(UID_A)
        for mode in (None, "deferred", "read"):
            for late in (False, True) if mode else (False,):
                t = begin(reader, mode) if late else None
                options = inside(t) if t else {}
                expect("ReadOnly", reader.execute_batch, DB, ["INSERT INTO single VALUES(1)"], options=options)
                expect("ReadOnly", begin_load, reader, DB, "INSERT INTO single VALUES(?)", options)
                pin = begin(reader, transaction=t) if late else begin(reader)
                reader.execute(DB, "CREATE TEMP TABLE t(a)", options=inside(t) if late else on(pin))
                t = t or (begin(reader, mode, pin=pin) if mode else None)
                options = inside(t) if t else on(pin)
                run_lists(reader, options)
                equal(rows(reader, "SELECT count(*) FROM t", options), [[4]], (mode, late))
                both = ["DELETE FROM t", "INSERT INTO single VALUES(1)"]
                expect("ReadOnly", reader.execute_batch, DB, both, options=options)
                equal(rows(reader, "SELECT count(*) FROM t", options), [[4]], (mode, late))
                end(reader, "Rollback", pin)
        equal(ask(service, "SELECT * FROM single"), [], "in the file")


@test
def savepoints():
    """Savepoints in each kind of transaction on a pin, also of a user who may only read"""
    with writable(WriteUsers="") as service:
        for uid in (None, UID_A) if os.geteuid() == 0 else (None,):
            client = service.client(uid)
            pin = begin(client)
            client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
            for mode in ("deferred", "read") if uid else ("deferred", "read", "write"):
                t = begin(client, mode, pin=pin)
                for sql in ("SAVEPOINT a", "INSERT INTO t VALUES(1)", "SAVEPOINT statement", "INSERT INTO t VALUES(2)",
                            "ROLLBACK TO statement", "INSERT INTO t VALUES(3)", "RELEASE statement", "SAVEPOINT lock",
                            "INSERT INTO t VALUES(4)", "ROLLBACK TO lock", "RELEASE a"):
                    equal(client.execute(DB, sql, options=inside(t))[0], sql.startswith("INSERT"), sql)
                for sql in ("RELEASE a", "ROLLBACK TO lock"):
                    expect("Sql", client.execute, DB, sql, options=inside(t))
                end(client, "Commit", t)
                equal(rows(client, "SELECT a FROM t", on(pin)), [[1], [3]], (uid, mode))
                client.execute(DB, "DELETE FROM t", options=on(pin))
            expect("NotAllowed", client.execute, DB, "SAVEPOINT a", options=on(pin))


@needs_root
def new_rights():
    """A reader with a pin gets the right to write: the pin only reads the file, as before, and a new one writes it"""
    with writable(WriteUsers="") as service:
        reader = service.client(UID_A)
        pin = begin(reader)
        fill(reader, pin, 2)
        service.database(DB, Path=service.written, Mode="read-write", WriteUsers="*")
        service.driver.manager("Reload")
        expect("ReadOnly", begin, reader, "write", pin=pin)
        t = begin(reader, "deferred", pin=pin)
        expect("ReadOnly", reader.execute, DB, INSERT, [1], options=inside(t))
        end(reader, "Commit", t)
        expect("ReadOnly", reader.execute, DB, INSERT, [1], options=on(pin))
        equal(rows(reader, "SELECT a FROM t", on(pin)), [[0], [1]], "rows")
        t = begin(reader, "write", pin=begin(reader))
        reader.execute(DB, INSERT, [1], options=inside(t))
        end(reader, "Commit", t)
        equal(numbers(service), [1], "in the file")


@test
def rights():
    """WriteTables= and WriteSchema= hold on a pin, whatever TEMP tables and views are named like"""
    with writable(WriteTables="single") as service:
        client = service.client()
        pin = begin(client)
        for sql in ("CREATE TEMP TABLE written AS SELECT * FROM main.written", "CREATE TEMP VIEW single AS SELECT 1 AS n",
                    "CREATE TEMP TABLE t(a)", "INSERT INTO t VALUES(1)", "INSERT INTO written(number) VALUES(5)",
                    "INSERT INTO main.single SELECT a FROM t", "UPDATE t SET a = 2", "DROP VIEW single"):
            client.query(DB, sql, options=on(pin)).read()
        for sql in ("INSERT INTO main.written(number) SELECT a FROM t", "UPDATE main.written SET number = 1",
                    "DELETE FROM main.written", "CREATE TABLE x(a)", "CREATE TABLE main.t(a)", "DROP TABLE main.single",
                    "CREATE TEMP TRIGGER x AFTER INSERT ON main.single BEGIN DELETE FROM written; END",
                    "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO written(number) VALUES(1); END",
                    "CREATE VIRTUAL TABLE temp.f USING fts5(x)", "ATTACH ':memory:' AS x",
                    "SAVEPOINT x", "BEGIN", "VACUUM", "PRAGMA temp.writable_schema = ON",
                    "ALTER TABLE main.single ADD x",
                    'CREATE TEMP TABLE "sqlipc-service-counts"(a)'):
            refused(("NotAllowed", "ReadOnly"), client.execute, DB, sql, options=on(pin))
        refused(("NotAllowed", "Sql"), client.execute, DB, "UPDATE sqlite_temp_master SET name = 'x'", options=on(pin))
        equal(numbers(service), [], "in the file")
        equal(ask(service, "SELECT n FROM single"), [[1]], "in the file")


@test
def triggers():
    """TEMP triggers are refused, however they are written, also if WriteSchema= allows triggers of the database"""
    with writable(WriteSchema="yes") as service:
        client = service.client()
        pin = begin(client)
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
        for what in ("main.single", "single", "temp.t", "t"):
            for name in ("TEMP TRIGGER x", "TRIGGER temp.x", "TEMPORARY TRIGGER IF NOT EXISTS x",
                         'TRIGGER IF NOT EXISTS "TEMP".x') + (("TRIGGER x",) if what.endswith("t") else ()):
                sql = f"CREATE {name} AFTER INSERT ON {what} BEGIN INSERT INTO written(number) VALUES(1); END"
                for mode in (None, "write", "deferred"):
                    t = begin(client, mode, pin=pin) if mode else None
                    expect("NotAllowed", client.execute, DB, sql, options=inside(t) if t else on(pin))
                    if t:
                        end(client, "Commit", t)
        client.execute(DB, "INSERT INTO single VALUES(1)", options=on(pin))
        equal(numbers(service), [], "rows of a TEMP trigger")
        equal(rows(client, "SELECT count(*), min(type) = 'table' FROM sqlite_temp_master", on(pin)), [[1, 1]], "objects")
        client.execute(DB, "CREATE TRIGGER x AFTER INSERT ON single BEGIN INSERT INTO written(number) VALUES(2); END",
                       options=on(pin))
        client.execute(DB, "INSERT INTO single VALUES(2)", options=on(pin))
        equal(numbers(service), [2], "rows of a trigger of the database")


@test
def waiting():
    """A pin whose transaction has changed only TEMP tables keeps no other writer waiting, however long it stays open"""
    with writable(limits={"TransactionIdleSec": "3600", "TransactionTimeoutSec": "3600"}) as service:
        client, other = service.client(), service.client()
        pin = begin(client)
        t = begin(client, "deferred", pin=pin)
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=inside(t))
        equal(other.execute(DB, INSERT, [1])[0], 1, "changes")
        equal(client.execute(DB, INSERT, [2], options=inside(t))[0], 1, "changes")
        late = other.begin(object_path(DB), DATABASE, "Execute", "(sava{sv}a{sv})", INSERT, [GLib.Variant("x", 3)], {}, {})
        true(not late.is_done(), "another writer waits")
        end(client, "Commit", t)
        late.result()
        equal(numbers(service), [1, 2, 3], "in the file")


@test
def batches_and_statements():
    """ExecuteBatch, prepared statements and Describe on a pin, also while a transaction is open there"""
    with writable() as service:
        client = service.client()
        pin = begin(client)
        batch = [("CREATE TEMP TABLE t(a, b)",), ("INSERT INTO t VALUES(1, 2)",), (INSERT, [1])]
        equal(client.execute_batch(DB, batch, options=on(pin))[0], [0, 1, 1], "changes")
        equal(rows(client, "SELECT * FROM t", on(pin)), [[1, 2]], "rows")
        equal(numbers(service), [1], "in the file")
        t = begin(client, "deferred", pin=pin)
        client.execute(DB, "INSERT INTO t VALUES(3, 4)", options=inside(t))
        statement = client.prepare(DB, "SELECT b FROM t WHERE a = ?", options=on(pin))
        equal(statement.fetch(3, options=inside(t)).read().rows, [[4]], "rows in the transaction")
        end(client, "Rollback", t)
        equal(statement.fetch(3, options=on(pin)).read().rows, [], "rows after it")
        equal(statement.fetch(1, options=on(pin)).read().rows, [[2]], "rows after it")
        expect("Sql", statement.fetch, 1)


@test
def from_files():
    """SQL and parameters in a file (option "arguments") on a pin, and in a transaction there, of each method"""
    large, long = bytes(range(256)) * 8192, " " * 1_200_000
    with writable(limits={"SQLSizeMax": "2M", "RowSizeMax": "8M", "PinsMax": 2}) as service:
        client = service.client()
        pin = begin(client)
        client.execute(DB, "CREATE TEMP TABLE written(a, b)", options=on(pin))

        def call(method, signature, *arguments, content, options):
            with argument_files.file(b"".join(content)) as fd:
                return argument_files.call(client, DB, method, signature, *arguments, fd=fd, options=options)

        def query(sql, values, options):
            content = [argument_files.statement(sql + long, values)]
            values, got = call("Query", "(sava{sv}a{sv})", "", [], {}, content=content, options=options)
            number, handle, columns, info = values
            pipe = got[handle.get_handle()]
            return Run(client, DB, number.get_uint64(), pipe, columns.unpack(), info.unpack()).read().rows

        insert = argument_files.statement("INSERT INTO written VALUES(?, ?)" + long, [1, large])
        n = 0
        for mode in (None, "deferred", "write", "read"):
            t = begin(client, mode, pin=pin) if mode else None
            options = inside(t) if mode else on(pin)
            values, _ = call("Execute", "(sava{sv}a{sv})", "", [], {}, content=[insert], options=options)
            equal(values[0].get_int64(), 1, "changes")
            values, _ = call("ExecuteBatch", "(a(sava{sv})a{sv})", [], content=[insert, insert], options=options)
            equal(values[0].unpack(), [1, 1], "changes")
            values, got = call("Load", "(sa{sv})", "", options=options,
                               content=[argument_files.statement("INSERT INTO written VALUES(?, ?)" + long)])
            send(got[values[1].get_handle()], stream([[i, 0] for i in range(5)]))
            equal(wait_for_load(client, DB, values[0].get_uint64())[0], 5, "rows of the load")
            n += 8
            equal(query("SELECT count(*), sum(b = ?) FROM written", [large], options), [[n, n // 8 * 3]], mode)
            if t:
                end(client, "Commit", t)
        expect("PinLost", query, "SELECT 1", [], on(pin + 1))
        equal(numbers(service), [], "in the file")


@test
def time_zone():
    """The client's time zone holds on a pin, for statements that read and that change TEMP tables"""
    with writable() as service:
        client = service.client()
        pin = begin(client)
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
        for zone, hour in (("UTC0", 12), ("XYZ-3", 15), ("XYZ5", 7)):
            for mode in (None, "deferred", "write"):
                t = begin(client, mode, pin=pin) if mode else None
                options = (inside(t) if t else on(pin)) | {"x-time-zone": GLib.Variant("s", zone)}
                local = "CAST(strftime('%H', '2024-07-01 12:00', 'localtime') AS INTEGER)"
                equal(rows(client, f"SELECT {local}", options), [[hour]], zone)
                client.execute(DB, f"INSERT INTO t SELECT {local}", options=options)
                equal(rows(client, "SELECT a FROM t", options), [[hour]], zone)
                client.execute(DB, "DELETE FROM t", options=options)
                if t:
                    end(client, "Rollback", t)


@test
def many_rows():
    """RETURNING of a TEMP table with more rows than memory holds of them: they wait in a file, which counts and is closed"""
    sql = "UPDATE t SET a = a + 1 RETURNING a, zeroblob(100000)"
    with writable(limits={"TempSizeMax": "64M", "WorkersMax": 1}) as service:
        client = service.client()
        pin = begin(client)
        client.execute(DB, f"CREATE TEMP TABLE t AS {count_to(300)} SELECT n AS a FROM c", options=on(pin))
        (worker,) = service.workers()
        before = len(fds(worker))
        for i in range(3):
            t = begin(client, "deferred", pin=pin)
            equal(len(rows(client, sql, inside(t))), 300, "rows in a transaction")
            end(client, "Rollback", t)
            result = rows(client, sql, on(pin))
            equal(sum(row[0] for row in result), sum(range(1, 301)) + 300 * (i + 1), "rows")
        client.execute(DB, f"INSERT INTO t {count_to(3)} SELECT a FROM t, c", options=on(pin))
        failure = expect("LimitsExceeded", rows, client, sql, on(pin))
        true("TempSizeMax" in failure.message, failure.message)
        equal(rows(client, "SELECT count(*), min(a) FROM t", on(pin)), [[1200, 4]], "the statement is taken back")
        wait_for(lambda: len(fds(worker)) <= before, "files of rows are closed")


@test
def loads():
    """Loads into TEMP tables, of a pin and of its transactions; one that is cancelled leaves no row"""
    with writable() as service:
        client = service.client()
        pin = begin(client)
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
        for mode in (None, "deferred", "write", "read"):
            t = begin(client, mode, pin=pin) if mode else None
            options = inside(t) if mode else on(pin)
            run, pipe = begin_load(client, DB, "INSERT INTO t VALUES(?)", options)
            send(pipe, stream([[i] for i in range(7)]))
            equal(wait_for_load(client, DB, run)[0], 7, "rows")
            run, pipe = begin_load(client, DB, "INSERT INTO t VALUES(?)", options)
            send(pipe, stream([[i] for i in range(3)])[:-40])
            client.cancel(DB, run)
            refused(("Cancelled", "TransactionEnded"), wait_for_load, client, DB, run)
            if t:
                end(client, "Rollback", t)
            equal(rows(client, "SELECT count(*) FROM t", on(pin)), [[7]], mode)


@test
def beside_loads():
    """A pin begins beside a load of another client; a load into a TEMP table may be idle while others wait to write"""
    with writable(limits={"TransactionIdleSec": 1}) as service:
        client, other, waiting = (service.client() for _ in range(3))
        _, pipe = begin_load(other, DB, INSERT)
        pin = begin(client)
        send(pipe, stream([[1]]))
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
        run, pipe = begin_load(client, DB, "INSERT INTO t VALUES(?)", on(pin))
        frames = load_stream.columns(1) + load_stream.rows([[1]]), load_stream.rows([[2]])
        send(pipe, frames[0])
        t = begin(other, "write")
        late = waiting.begin(object_path(DB), DATABASE, "Execute", "(sava{sv}a{sv})", INSERT, [GLib.Variant("x", 3)], {}, {})
        late.result()  # it could write when the transaction had been idle for as long as the load
        expect("TransactionEnded", other.execute, DB, INSERT, [2], options=inside(t))
        send(pipe, frames[1] + load_stream.end(2, b"".join(frames)))
        equal(wait_for_load(client, DB, run)[0], 2, "rows of the load")


@test
def made_of_readers():
    """A pin made of a transaction that has read: its counters are right, and the service leaves no table in temp"""
    with writable() as service:
        client = service.client()
        client.execute(DB, INSERT, [1])
        t = begin(client, "deferred")
        rows(client, "SELECT * FROM written", inside(t))
        pin = begin(client, transaction=t)
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=inside(t))
        states = {number: more["state"] for number, *_, more in service.driver.manager("ListTransactions")[0]}
        equal(states, {t: "idle", pin: "idle"}, "states")
        equal(rows(client, "SELECT changes(), total_changes(), last_insert_rowid()", inside(t)), [[1, 1, 1]], "counters")
        end(client, "Commit", t)
        equal(rows(client, "SELECT count(*) FROM sqlite_temp_master", on(pin)), [[1]], "objects in temp")


@test
def messages():
    """After a statement that needs a pin, a commit that fails says why it fails"""
    with writable(ForeignKeys="yes") as service:
        with contextlib.closing(sqlite3.connect(service.written)) as db:
            db.execute("CREATE TABLE child(a REFERENCES written(number) DEFERRABLE INITIALLY DEFERRED)")
            db.execute("CREATE UNIQUE INDEX numbers ON written(number)")
        client = service.client()
        t = begin(client, "write")
        client.execute(DB, "INSERT INTO child VALUES(1)", options=inside(t))
        expect("NeedsPin", client.execute, DB, "CREATE TEMP TABLE t(a)", options=inside(t))
        true("FOREIGN KEY" in expect("Sql", end, client, "Commit", t).message, "message")


@needs_root
def virtual_tables():
    """A user who may only read makes a TEMP table of an R-Tree, whose module compiles statements that write"""
    with writable(WriteUsers="") as service:
        with contextlib.closing(sqlite3.connect(service.written)) as db:
            db.execute("CREATE VIRTUAL TABLE box USING rtree(id, a, b)")
            db.execute("INSERT INTO box VALUES(1, 2, 3)")
            db.commit()
        client = service.client(UID_A)
        for statements in (("CREATE TEMP TABLE x AS SELECT id FROM box",),
                           ("CREATE TEMP TABLE x(id)", "INSERT INTO x SELECT id FROM box")):
            pin = begin(client)
            for sql in statements:
                client.execute(DB, sql, options=on(pin))
            equal(rows(client, "SELECT id FROM x", on(pin)), [[1]], "rows")
            expect("ReadOnly", client.execute, DB, "INSERT INTO box SELECT 2, id, id FROM x", options=on(pin))


@test
def dumped_table_beside():
    """A dumped R-Tree is checked by its own columns, not by those of a TEMP table with its name"""
    with writable(WriteSchema="yes") as service:
        with contextlib.closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE VIRTUAL TABLE box USING rtree(id, a, b)")
            db.execute("INSERT INTO box VALUES(1, 2, 3)")
            schema = db.execute("SELECT name, sql, rootpage FROM sqlite_schema").fetchall()
            contents = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name, _, page in schema if page > 0}
        row = "INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','{0}','{0}',0,'{1}')"
        client = service.client()
        t = begin(client, "write")
        for name, sql, page in schema:
            client.execute(DB, sql if page > 0 else row.format(name, sql), options=inside(t))
            for values in contents.get(name, ()):
                sql = f"INSERT INTO {name} VALUES({','.join('?' * len(values))})"
                client.execute(DB, sql, list(values), options=inside(t))
        begin(client, transaction=t)
        client.execute(DB, "CREATE TEMP TABLE box(nope)", options=inside(t))
        end(client, "Commit", t)
        equal(rows(client, "SELECT * FROM box"), [[1, 2.0, 3.0]], "rows")


@test
def file_away():
    """A statement fails while the file is away; its TEMP tables are there when it is back"""
    with writable() as service:
        client = service.client()
        pin = begin(client)
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
        away = f"{service.written}-away"
        os.rename(service.written, away)
        expect("FileMissing", client.query, DB, "SELECT count(*) FROM t", options=on(pin))
        expect("FileMissing", client.execute, DB, "INSERT INTO t VALUES(1)", options=on(pin))
        os.rename(away, service.written)
        equal(rows(client, "SELECT count(*) FROM t", on(pin)), [[0]], "rows")


@test
def many():
    """All pins of a user that have read and made large TEMP tables fit in the memory of their worker"""
    with writable(limits={"WorkersMax": 1, "ExemptRoot": "no"}) as service:
        client = service.client()
        rows_of = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1000) SELECT zeroblob(3000) FROM c"
        client.execute(DB, "INSERT INTO written(t) " + rows_of)
        while True:
            try:
                pin = begin(client)
            except Failure as failure:
                true("PinsMax=" in failure.message, failure)
                break
            client.execute(DB, "CREATE TEMP TABLE t AS " + rows_of, options=on(pin))
            equal(rows(client, "SELECT sum(length(t)) FROM written", on(pin)), [[3000000]], "rows")
        equal(rows(client, "SELECT sum(length(t)) FROM written"), [[3000000]], "rows without a pin")


@test
def beside():
    """A statement that does not name the transaction of its pin waits for its end, and keeps no processor busy meanwhile"""
    with writable(limits={"WorkersMax": 1}) as service:
        client = service.client()
        pin = begin(client)
        client.execute(DB, "CREATE TEMP TABLE t(a)", options=on(pin))
        t = begin(client, "deferred", pin=pin)
        client.execute(DB, "INSERT INTO t VALUES(1)", options=inside(t))
        late = client.begin(object_path(DB), DATABASE, "Execute", "(sava{sv}a{sv})", "INSERT INTO t VALUES(2)", [], {},
                            on(pin))
        client.execute(DB, "INSERT INTO t VALUES(3)", options=inside(t))
        (worker,) = service.workers()
        before = processor_time(worker)
        time.sleep(1)
        at_most(processor_time(worker) - before, 0.3, "seconds of the processor")
        true(not late.is_done(), "the statement runs")
        end(client, "Rollback", t)
        late.result()
        equal(rows(client, "SELECT a FROM t", on(pin)), [[2]], "rows")


@test
def refused_commits():
    """A commit that violates deferred keys of TEMP tables leaves the transaction open for a client that can repair it"""
    keeps = {"x-keeps-open": GLib.Variant("b", True)}
    with writable() as service:
        client = service.client()
        pin = begin(client)
        for sql in ("CREATE TEMP TABLE parent(a PRIMARY KEY)",
                    "CREATE TEMP TABLE child(a REFERENCES parent(a) DEFERRABLE INITIALLY DEFERRED)"):
            client.execute(DB, sql, options=on(pin))
        expect("Sql", client.execute, DB, "INSERT INTO child VALUES(1)", options=on(pin))
        for mode in ("deferred", "read", "write"):
            for writes in (False, True):
                if mode == "read" and writes:
                    continue
                n = len(numbers(service))
                t = begin(client, mode, pin=pin)
                if writes:
                    client.execute(DB, INSERT, [7], options=inside(t))
                client.execute(DB, "INSERT INTO child VALUES(1)", options=inside(t))
                for _ in range(2):
                    expect("CommitRefused", client.database, DB, "Commit", "(ta{sv})", t, keeps)
                equal(rows(client, "SELECT count(*) FROM child", inside(t)), [[1]], "rows while it is open")
                client.execute(DB, "INSERT INTO parent VALUES(1)", options=inside(t))
                client.database(DB, "Commit", "(ta{sv})", t, keeps)
                equal(rows(client, "SELECT a FROM child JOIN parent USING(a)", on(pin)), [[1]], (mode, writes))
                equal(len(recovered(service)), n + writes, "rows of the file")
                client.execute_batch(DB, ["DELETE FROM child", "DELETE FROM parent"], options=on(pin))
                t = begin(client, mode, pin=pin)
                client.execute(DB, "INSERT INTO child VALUES(1)", options=inside(t))
                expect("Sql", client.database, DB, "Commit", "(ta{sv})", t, {})
                expect("TransactionEnded", client.query, DB, "SELECT 1", options=inside(t))
                equal(rows(client, "SELECT * FROM child", on(pin)), [], "rows after it")


def log_is_free(service):
    """True if no reader keeps the log from being written back."""
    with contextlib.closing(sqlite3.connect(service.written, timeout=60)) as db:
        return db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


@test
def checkpoints():
    """A pin keeps no snapshot between statements, and one in a transaction that reads is ended when the log has grown"""
    with writable(limits={"WalSizeMax": "128K", "ParkTimeoutRollbackSec": "0.2", "TransactionTimeoutSec": 3600,
                          "TransactionIdleSec": 3600}) as service:
        client, other = service.client(), service.client()
        pin = begin(client)
        fill(client, pin, 3)
        equal(rows(client, "SELECT count(*) FROM written, t", on(pin)), [[0]], "rows")
        other.execute(DB, INSERT, [1])
        true(log_is_free(service), "the pin rests")
        t = begin(client, "deferred", pin=pin)
        client.execute(DB, "INSERT INTO t VALUES(4)", options=inside(t))
        equal(rows(client, "SELECT count(*) FROM t", inside(t)), [[4]], "rows")
        other.execute(DB, INSERT, [2])
        true(log_is_free(service), "its transaction has not read the file")
        equal(rows(client, "SELECT count(*) FROM written", inside(t)), [[2]], "rows")

        def is_over():
            other.execute(DB, "INSERT INTO written(t) SELECT zeroblob(60000)")
            return len(service.driver.manager("ListTransactions")[0]) == 1

        wait_for(is_over, "the transaction is ended", 120)
        expect("TransactionEnded", client.query, DB, "SELECT 1", options=inside(t))
        equal(rows(client, "SELECT count(*) FROM t", on(pin)), [[3]], "rows of the pin, which goes on")
        true(log_is_free(service), "nothing keeps the log")


@test
def unread_rows():
    """A reader of a pin that stops reading is ended as any other, and the pin goes on"""
    with writable(limits={"ParkTimeoutSec": "0.2"}) as service:
        client = service.client()
        pin = begin(client)
        fill(client, pin, 1)
        run = client.query(DB, f"{count_to(900000)} SELECT n, a FROM t, c", options=on(pin))
        client.execute(DB, "INSERT INTO t VALUES(2)", options=on(pin))
        expect("ReaderTooSlow", run.read)
        equal(rows(client, "SELECT count(*) FROM t", on(pin)), [[2]], "rows")


@test
def idle_exit():
    """A pin prevents the idle exit of the service; a client that leaves gives up its pin, and the service exits"""
    with Idle() as service:
        client = service.client()
        values, _ = client.database("chinook", "Begin", "(a{sv})", {"mode": GLib.Variant("s", "pin")})
        pin = values[0].get_uint64()
        service.make_impatient()
        client.query("chinook", "CREATE TEMP TABLE t AS SELECT 5 AS a", options=on(pin)).read()
        for _ in range(3):
            time.sleep(0.2)  # two hundred times IdleExitSec=
            equal(client.query("chinook", "SELECT a FROM t", options=on(pin)).read().rows, [[5]], "rows")
        client.close()
        service.wait_for_exit()


@test
def reloads():
    """A reload that changes nothing of the database leaves pins; one that withdraws it ends them"""
    with writable() as service:
        client = service.client()
        pin = begin(client)
        fill(client, pin, 2)
        service.database("another", Path=CHINOOK)
        service.driver.manager("Reload")
        equal(rows(client, "SELECT count(*) FROM t", on(pin)), [[2]], "rows")
        (service.config_dir / "databases.d" / f"{DB}.conf").unlink()
        service.driver.manager("Reload")
        refused(("org.freedesktop.DBus.Error.UnknownObject",), client.query, DB, "SELECT 1", options=on(pin))
        wait_for(lambda: not service.driver.manager("ListTransactions")[0], "the pin is over")


@needs_root
def places():
    """Pins keep half of all workers at most, also pins of transactions; the other half serves all users"""
    databases = {f"db{i}": CHINOOK for i in range(5)}
    with Service(databases, limits={"WorkersTotalMax": 4}) as service:
        clients = [service.client(uid) for uid in (UID_A, UID_B, UID_DAEMON)]

        def begin_in(client, name, mode="pin", **numbers_of):
            options = {"mode": GLib.Variant("s", mode)} | {key: GLib.Variant("t", n) for key, n in numbers_of.items()}
            return client.database(name, "Begin", "(a{sv})", options)[0][0].get_uint64()

        held = [begin_in(clients[0], "db0"), begin_in(clients[1], "db0")]
        for client, name in ((clients[0], "db1"), (clients[1], "db2"), (clients[2], "db3")):
            failure = expect("LimitsExceeded", begin_in, client, name)
            true("WorkersTotalMax=" in failure.message, failure)
            t = begin_in(client, name, "read")
            expect("LimitsExceeded", begin_in, client, name, transaction=t)
            client.database(name, "Rollback", "(ta{sv})", t, {})
        held.append(begin_in(clients[0], "db0"))  # in the worker that has one
        for _ in range(3):
            for client in clients:
                for name in databases:
                    equal(client.query(name, "SELECT 1").read().rows, [[1]], "rows")
        equal({number for number, *_ in service.driver.manager("ListTransactions")[0]}, set(held), "pins")
        clients[1].close()
        wait_for(lambda: len(service.driver.manager("ListTransactions")[0]) == 2, "the pin is over")
        begin_in(clients[2], "db3")


@needs_root
def small_places():
    """No pin keeps the only worker of others: of the service, of a database, or the last one of its user"""

    def pin_in(client, name):
        return client.database(name, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "pin")})

    refusals = (
        ({"WorkersTotalMax": 1}, "", 0, "WorkersTotalMax="),
        ({}, "[Limits]\nWorkersMax=1\n", 0, "WorkersMax="),
        ({"WorkersMax": 3}, "", 2, "WorkersMax="),
    )
    for limits, text, n, key in refusals:
        with Service({}, limits=limits) as service:
            for i in range(3):
                service.database(f"db{i}", text=f"[Database]\nPath={CHINOOK}\nAllowUsers=*\n{text}")
            service.driver.manager("Reload")
            client, other = service.client(UID_A), service.client(UID_B)
            for i in range(n):
                pin_in(client, f"db{i}")
            true(key in expect("LimitsExceeded", pin_in, client, f"db{n}").message, key)
            for peer in (client, other):
                equal(peer.query(f"db{n}", "SELECT 1").read().rows, [[1]], "rows")


@needs_root
def places_after_reloads():
    """A pin that is begun after a reload of limits is in a worker with the new ones, which counts among half of all, too"""
    limits = {"WorkersTotalMax": 6, "WorkersMax": 6}
    with writable(limits=limits, WriteUsers="*") as service:
        client = service.client(UID_A)
        held = [begin(client)]
        for size in ("10M", "20M"):
            service.limits(**limits, TempSizeMax=size)
            service.driver.manager("Reload")
            held += [begin(client), begin(client)]
        service.limits(**limits, TempSizeMax="30M")
        service.driver.manager("Reload")
        for n in (held[0], held[-1]):
            failure = expect("LimitsExceeded", begin, client)
            true("WorkersTotalMax=" in failure.message, failure)
            fill(client, n, 2)
        end(client, "Rollback", held[0])
        held += [begin(client), begin(client)]
        expect("PinLost", rows, client, "SELECT 1", on(held[0]))
        equal(len(service.driver.manager("ListTransactions")[0]), 6, "pins")


def publish(service, name, journal="wal", **keys):
    """Publishes another database, with two rows in the table f."""
    path = service.data / f"{name}.sqlite"
    if not path.exists():
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA journal_mode = {journal}")
            db.executescript("CREATE TABLE f(n); INSERT INTO f VALUES(1), (2); CREATE VIEW v AS SELECT n AS m FROM f")
    service.database(name, Path=path, **keys)
    service.driver.manager("Reload")
    return path


@test
def attached():
    """ATTACH reads what the client may read, and gives no right to write it, also as two uids"""
    for journal in ("wal", "delete"):
        with writable(journal, WriteUsers="") as service:
            path = publish(service, "other", journal, Mode="read-write", WriteUsers="*")
            publish(service, "hidden", AllowUsers="root")
            publish(service, "part", Expose="v")
            service.client().execute(DB, INSERT, [2])
            for uid in (None, UID_A) if os.geteuid() == 0 else (None,):
                client = service.client(uid)
                expect("NeedsPin", client.execute, DB, "ATTACH 'other' AS x")
                expect("Sql", client.execute, DB, "DETACH x")
                pin = begin(client)
                client.execute(DB, "ATTACH ? AS x", ["other"], options=on(pin))
                equal(rows(client, "SELECT m FROM x.v JOIN written ON m = number", on(pin)), [[2]], "a join")
                expect("NotAllowed", rows, client, "SELECT file FROM pragma_database_list", on(pin))
                equal([(seq, file) for seq, _, file in rows(client, "PRAGMA database_list", on(pin))],
                      [(0, Text(b"")), (2, Text(b""))], "databases, without their files")
                for sql in ("INSERT INTO x.f VALUES(3)", "INSERT INTO f VALUES(3)", "DROP VIEW v", "CREATE TABLE x.t(a)",
                            "PRAGMA x.user_version = 5", "VACUUM x", "CREATE INDEX x.i ON f(n)"):
                    refused(("NotAllowed", "ReadOnly"), client.execute, DB, sql, options=on(pin))
                with contextlib.closing(sqlite3.connect(path, timeout=60)) as db, db:
                    db.execute("INSERT INTO f VALUES(3)")
                equal(rows(client, "SELECT count(*) FROM f", on(pin))[0][0] > 2, True, "rows of another program")
                unknown = expect("UnknownDatabase", client.execute, DB, "ATTACH 'none' AS y", options=on(pin))
                if uid:
                    hidden = expect("UnknownDatabase", client.execute, DB, "ATTACH 'hidden' AS y", options=on(pin))
                    equal(hidden.message.replace("hidden", "none"), unknown.message, "a name that may not be seen")
                else:
                    client.execute(DB, "ATTACH 'hidden' AS h", options=on(pin))
                for name in ("part", str(path), f"file:{path}", "../other", "", ":memory:"):
                    refused(("UnknownDatabase", "NotAllowed"), client.execute, DB, f"ATTACH '{name}' AS y", options=on(pin))
                t = begin(client, "deferred", pin=pin)
                client.execute(DB, "ATTACH 'other' AS y", options=inside(t))
                equal(rows(client, "SELECT min(n) FROM y.f", options=inside(t)), [[1]], "rows")
                expect("Sql", client.execute, DB, "DETACH y", options=inside(t))
                end(client, "Commit", t)
                client.execute(DB, "DETACH y", options=on(pin))
                expect("Sql", client.query, DB, "SELECT * FROM y.f", options=on(pin))
                expect("NotAllowed", client.execute_batch, DB, ["ATTACH 'other' AS z"], options=on(pin))


@test
def attached_no_longer():
    """A reload that takes the right to an attached database away ends the connection that has it"""
    for keys in ({"AllowUsers": "nobody"}, {"Expose": "v"}, None):
        with writable() as service:
            publish(service, "other")
            client = service.client(UID_A if os.geteuid() == 0 else None)
            beside = begin(client)
            pin = begin(client)
            client.execute(DB, "ATTACH 'other' AS x", options=on(pin))
            service.driver.manager("Reload")
            equal(rows(client, "SELECT count(*) FROM x.f", on(pin)), [[2]], "a reload that changes nothing")
            if keys:
                publish(service, "other", **keys)
            else:
                (service.config_dir / "databases.d" / "other.conf").unlink()
                service.driver.manager("Reload")
            if keys == {"AllowUsers": "nobody"} and os.geteuid() != 0:
                continue  # the service's own user may use all databases
            refused(("PinLost", "TransactionEnded"), client.query, DB, "SELECT count(*) FROM x.f", options=on(pin))
            equal(rows(client, "SELECT 1", on(beside)), [[1]], "a pin without it")


@needs_root
def masses():
    """Each user has PinsMax= pins, however many clients there are; a flood of one user leaves those of another alone"""
    with writable(limits={"PinsMax": 8, "WorkersMax": 2, "WorkersTotalMax": 8}, WriteUsers="*") as service:
        other = service.client(UID_B)
        kept = begin(other)
        fill(other, kept, 1)
        clients = [service.client(UID_A) for _ in range(20)]
        for _ in range(3):
            begun = [client.begin(object_path(DB), DATABASE, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "pin")})
                     for client in clients for _ in range(2)]
            n = 0
            for call in begun:
                try:
                    call.result()
                    n += 1
                except Failure as failure:
                    true("PinsMax=" in failure.message, failure)
            equal(n, 8, "pins")
            at_most(len(service.workers()), 4, "workers")
            equal(rows(other, "SELECT a FROM t", on(kept)), [[0]], "rows of the other user")
            for client in clients:
                client.close()
            wait_for(lambda: len(service.driver.manager("ListTransactions")[0]) == 1, "the pins are over")
            clients = [service.client(UID_A) for _ in range(20)]


if __name__ == "__main__":
    main()
