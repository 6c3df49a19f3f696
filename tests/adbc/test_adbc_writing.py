#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ADBC driver writes: parameters, loads, bulk ingest, transactions; and tells about databases, tables and columns."""
import concurrent.futures
import contextlib
import datetime
import os
import signal
import sqlite3
import threading
import time

from adbc_rig import breaks_off, connect, fails, rows, service_of_notes
import adbc_driver_manager
import pyarrow

from clocks import clocks_of_our_libraries
from harness import PATIENCE, children, main, wait_for
from tap import equal, test, true

# Driver and library go by it, and so all limits of theirs.
clocks = clocks_of_our_libraries()
exit_stack = contextlib.ExitStack()
service, path = exit_stack.enter_context(service_of_notes())


def content(sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def notes():
    return content("SELECT id, text FROM note ORDER BY id")


@contextlib.contextmanager
def empty_notes(**keywords):
    """A connection and a cursor, with an empty table."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM note")
        db.commit()
    with connect(service, "notes", **keywords) as connection, connection.cursor() as cursor:
        yield connection, cursor


@test
def pragmas():
    """PRAGMAs with which a program begins, and statements that have nothing to do"""
    for autocommit in (True, False):
        with connect(service, "notes", autocommit=autocommit) as connection, connection.cursor() as cursor:
            for sql, expected in (
                ("PRAGMA foreign_keys = ON", []),
                ("PRAGMA synchronous = NORMAL", []),
                ("PRAGMA busy_timeout = 5000", [(5000,)]),
                ("PRAGMA foreign_keys", [(1,)]),
                ("DROP TABLE IF EXISTS nowhere", []),
                ("CREATE TABLE IF NOT EXISTS note(x)", []),
            ):
                cursor.execute(sql)
                equal(cursor.fetchall() if expected else [], expected, sql)
            if not autocommit:
                connection.commit()


@test
def rebuilding_a_table():
    """PRAGMA foreign_keys = OFF holds for the connection, so that a table is rebuilt without loss of the rows below it"""
    sqls = (
        "CREATE TABLE parent(id INTEGER PRIMARY KEY)",
        "CREATE TABLE child(parent REFERENCES parent ON DELETE CASCADE)",
        "INSERT INTO parent VALUES (1)",
        "INSERT INTO child VALUES (1), (1)",
        "PRAGMA foreign_keys = OFF",
    )
    with connect(service, "notes", autocommit=True) as connection, connection.cursor() as cursor:
        for sql in sqls:
            cursor.execute(sql)
        connection.adbc_connection.set_autocommit(False)
        for sql in ("CREATE TABLE new(id INTEGER PRIMARY KEY)", "DROP TABLE parent", "ALTER TABLE new RENAME TO parent"):
            cursor.execute(sql)
        connection.commit()
        connection.adbc_connection.set_autocommit(True)
        equal(content("SELECT count(*) FROM child"), [(2,)], "rows of the child")
        with connect(service, "notes", autocommit=True) as other, other.cursor() as beside:
            fails("INTEGRITY", beside.execute, "INSERT INTO child VALUES (1)")
        cursor.execute("INSERT INTO child VALUES (1)")
        cursor.execute("DROP TABLE child")
        cursor.execute("DROP TABLE parent")


@test
def parameters():
    """Values are bound by position and by name, one set or many"""
    with empty_notes() as (_, cursor):
        cursor.execute("SELECT ?1 AS a, ?2 AS b, typeof(?3) AS c", (2**62, b"\0", None))
        equal(cursor.fetchall(), [(2**62, b"\0", "null")])
        cursor.execute("SELECT :b AS b, :a AS a", {"a": 1, "b": "x"})
        equal(cursor.fetchall(), [("x", 1)], "by name")
        many = pyarrow.record_batch({"id": [1, 59, 3]})
        with connect(service, "chinook") as connection, connection.cursor() as other:
            other.execute("SELECT Name FROM Artist WHERE ArtistId = ?", many)
            equal(other.fetchall(), [("AC/DC",), ("Santana",), ("Aerosmith",)], "rows of each set")
        fails("INVALID_ARGUMENT", cursor.execute, "SELECT ?, ?", (1,))
        fails("INVALID_ARGUMENT", cursor.execute, "SELECT :a", {"b": 1})


@test
def many_rows():
    """executemany() loads rows in one transaction: all of them or none"""
    with empty_notes() as (_, cursor):
        cursor.executemany("INSERT INTO note VALUES (?, ?)", [(i, f"n{i}") for i in range(1000)])
        equal(cursor.rowcount, 1000)
        equal(len(notes()), 1000)
        clash = [(2000, "a"), (2001, "b"), (5, "c")]
        error = fails("INTEGRITY", cursor.executemany, "INSERT INTO note VALUES (?, ?)", clash)
        true("row 3" in str(error), str(error))
        equal(len(notes()), 1000, "after a failure")
        cursor.executemany("UPDATE note SET text = :t WHERE id = :i", [{"i": 1, "t": "x"}, {"i": 2, "t": "y"}])
        equal(notes()[1:3], [(1, "x"), (2, "y")], "by name")
        cursor.executemany("DELETE FROM note WHERE id = ?", [(1,)])
        equal((cursor.rowcount, len(notes())), (1, 999), "one row")
        # What cannot be loaded runs row by row, in one transaction.
        fails("INTEGRITY", cursor.executemany, "INSERT INTO note VALUES (?, ?) RETURNING id", [(3000, "q"), (3000, "r")])
        equal(content("SELECT count(*) FROM note WHERE id = 3000"), [(0,)], "RETURNING")
        cursor.executemany("SELECT ?", [(1,), (2,)])
        cursor.execute("INSERT INTO note VALUES (?, ?) RETURNING id", pyarrow.table({"i": [4000, 4001], "t": ["s", "t"]}))
        equal(cursor.fetchall(), [(4000,), (4001,)], "rows of RETURNING")


ODD = pyarrow.table(
    {
        "i8": pyarrow.array([-128, None], pyarrow.int8()),
        "u64": pyarrow.array([2**63 - 1, 0], pyarrow.uint64()),
        "flag": [True, False],
        "half": pyarrow.array([1.5, None], pyarrow.float16()),
        "f": pyarrow.array([0.25, -1], pyarrow.float32()),
        "text": ["ü\0x", ""],
        "large": pyarrow.array(["a", None], pyarrow.large_string()),
        "view": pyarrow.array(["short", "longer than twelve bytes"], pyarrow.string_view()),
        "bytes": [b"\xff\0", b""],
        "fixed": pyarrow.array([b"abc", b"def"], pyarrow.binary(3)),
        "day": [datetime.date(2026, 3, 1), datetime.date(1969, 12, 31)],
        "time": [datetime.time(1, 2, 3, 4), None],
        "moment": pyarrow.array([datetime.datetime(2026, 3, 1, 12, 30), None], pyarrow.timestamp("ms")),
        "zoned": pyarrow.array([0, None], pyarrow.timestamp("s", "Europe/Berlin")),
        "kind": pyarrow.array(["red", "green"]).dictionary_encode(),
        "nothing": pyarrow.nulls(2),
        'quo"te': [1, 2],
    }
)
ODD_ROWS = [
    (-128, 2**63 - 1, 1, 1.5, 0.25, "ü\0x", "a", "short", b"\xff\0", b"abc", "2026-03-01", "01:02:03.000004",
     "2026-03-01 12:30:00.000", "1970-01-01 00:00:00+00:00", "red", None, 1),
    (None, 0, 0, None, -1.0, "", None, "longer than twelve bytes", b"", b"def", "1969-12-31", None, None, None, "green",
     None, 2),
]


@test
def ingest_types():
    """Ingest writes each type of Arrow that SQLite has a place for"""
    with empty_notes() as (_, cursor):
        equal(cursor.adbc_ingest("odd", ODD, mode="replace"), 2)
        equal(content("SELECT * FROM odd"), ODD_ROWS)
        declared = {name: kind for name, kind in content("SELECT name, type FROM pragma_table_info('odd')")}
        equal((declared["i8"], declared["half"], declared["day"], declared["fixed"], declared["nothing"]),
              ("INTEGER", "REAL", "TEXT", "BLOB", ""), "declared types")
        cursor.adbc_ingest("odd", ODD.slice(1), mode="replace")  # a table with an offset
        equal(content("SELECT * FROM odd"), ODD_ROWS[1:], "slice")
        decimals = pyarrow.table({"d": pyarrow.array([1, 2], pyarrow.decimal128(10, 2))})
        true('"d"' in str(fails("NOT_IMPLEMENTED", cursor.adbc_ingest, "no", decimals)), "the column is named")
        large = pyarrow.table({"u": pyarrow.array([1, 2**63], pyarrow.uint64())})
        error = fails("INVALID_DATA", cursor.adbc_ingest, "no", large)
        equal(error.facts, {"sqlipc.row": "2", "sqlipc.column": "u"}, "facts")
        equal(content("SELECT name FROM sqlite_schema WHERE name = 'no'"), [], "nothing is left of a failure")


@test
def ingest_modes():
    """Ingest creates, appends, replaces; and checks that the table is as the mode wants it"""
    data = pyarrow.table({"a": [1, 2]})
    with empty_notes() as (_, cursor):
        fails("NOT_FOUND", cursor.adbc_ingest, "modes", data, mode="append")
        equal(cursor.adbc_ingest("modes", data, mode="create"), 2)
        fails("ALREADY_EXISTS", cursor.adbc_ingest, "modes", data, mode="create")
        cursor.adbc_ingest("modes", data, mode="append")
        cursor.adbc_ingest("modes", data, mode="create_append")
        equal(content("SELECT count(*) FROM modes"), [(6,)])
        fails("ALREADY_EXISTS", cursor.adbc_ingest, "modes", pyarrow.table({"b": [1]}), mode="append")
        cursor.adbc_ingest("modes", pyarrow.table({"b": ["x"]}), mode="replace")
        equal(content("SELECT * FROM modes"), [("x",)], "replaced")
        batches = pyarrow.RecordBatchReader.from_batches(data.schema, iter(data.to_batches() * 3))
        equal(cursor.adbc_ingest("stream", batches, mode="replace"), 6, "of a stream")
        cursor.adbc_ingest("none", data.slice(2), mode="create")
        equal(content("SELECT count(*) FROM none"), [(0,)], "no rows")
        fails("NOT_IMPLEMENTED", cursor.adbc_ingest, "t", data, temporary=True)
        fails("UNAUTHORIZED", cursor.adbc_ingest, "t", data, catalog_name="chinook")
    with connect(service, "chinook") as connection, connection.cursor() as cursor:
        equal(cursor.adbc_ingest("elsewhere", data, catalog_name="notes"), 2, "another catalog")
        cursor.execute("SELECT TrackId, Name FROM Track")
        with connection.cursor() as other:  # a result of the same connection is what is bound
            equal(other.adbc_ingest("copied", cursor.fetch_record_batch(), mode="create", catalog_name="notes"), 3503)
    equal(content("SELECT count(*), sum(TrackId) FROM copied"), [(3503, 3503 * 3504 // 2)])


@test
def transactions():
    """Without autocommit the first statement begins a transaction, which commit and rollback end"""
    with empty_notes(autocommit=False) as (connection, cursor):
        equal(rows(connection, "SELECT count(*) FROM note"), [(0,)])
        cursor.execute("INSERT INTO note VALUES (1, 'a')")
        equal(rows(connection, "SELECT count(*) FROM note"), [(1,)], "inside")
        equal(notes(), [], "outside")
        connection.commit()
        equal(notes(), [(1, "a")], "committed")
        cursor.adbc_ingest("late", pyarrow.table({"a": [1]}))
        cursor.execute("SELECT * FROM late")  # only the transaction has this table
        equal(cursor.fetchall(), [(1,)])
        cursor.executemany("INSERT INTO note VALUES (?, ?)", [(2, "b"), (3, "c")])
        fails("INVALID_STATE", connection.adbc_connection.set_options, **{"adbc.connection.catalog": "chinook"})
        connection.rollback()
        equal((notes(), content("SELECT name FROM sqlite_schema WHERE name = 'late'")), ([(1, "a")], []), "rolled back")
        cursor.execute("INSERT INTO note VALUES (4, 'd')")
        connection.adbc_connection.set_autocommit(True)
        equal(notes(), [(1, "a"), (4, "d")], "autocommit commits")
        fails("INVALID_STATE", connection.adbc_connection.commit)
    with empty_notes(autocommit=False) as (connection, cursor):
        cursor.execute("INSERT INTO note VALUES (1, 'a')")
    equal(notes(), [], "a connection that is closed rolls back")


@test
def transactions_that_read_first():
    """Without autocommit a write after a read is refused if another program has written in between"""
    with empty_notes(autocommit=False) as (connection, cursor), connect(service, "notes", autocommit=False) as other:
        equal(rows(connection, "SELECT count(*) FROM note"), [(0,)])
        equal(rows(other, "SELECT count(*) FROM note"), [(0,)])
        cursor.execute("INSERT INTO note SELECT 1, count(*) FROM note")
        connection.commit()
        with other.cursor() as second:
            error = fails("INVALID_STATE", second.execute, "INSERT INTO note SELECT 2, count(*) FROM note")
            true("has changed since this transaction has read it" in str(error), str(error))
            equal((error.sqlstate, error.facts["sqlite.extended_code"]), ("40001", "517"), "codes")
            equal(rows(other, "SELECT count(*) FROM note"), [(0,)], "the same state")
            other.rollback()
            equal(rows(other, "SELECT count(*) FROM note"), [(1,)], "the next transaction")
            second.execute("INSERT INTO note SELECT 2, count(*) FROM note")
            other.commit()
    equal(notes(), [(1, 0), (2, 1)], "both")


@test
def unknown_commits():
    """A commit whose outcome is unknown does not succeed the second time; rollback() leaves the transaction"""
    with empty_notes(autocommit=False) as (connection, cursor):
        cursor.execute("INSERT INTO note VALUES (1, 'a')")
        os.kill(service.pid(), signal.SIGSTOP)  # it never reads Commit
        connection.adbc_connection.set_options(**{"adbc.sqlipc.timeout": "0.1"})
        for _ in range(2):
            equal(fails("IO", connection.commit).sqlstate, "08007", "no answer in time")
        service.kill()
        service.start()
        connection.adbc_connection.set_options(**{"adbc.sqlipc.timeout": str(PATIENCE)})
        for _ in range(2):
            equal(fails("IO", connection.commit).sqlstate, "08007", "the service was lost")
        fails("IO", rows, connection, "SELECT 1")
        fails("IO", connection.rollback)
        equal(rows(connection, "SELECT count(*) FROM note"), [(0,)], "the next transaction")
        connection.commit()


def result_of(cursor, sql):
    """The result of SQL that was not compiled before, as dbapi does."""
    cursor.adbc_statement.set_sql_query(sql)
    handle, _ = cursor.adbc_statement.execute_query()
    return pyarrow.RecordBatchReader._import_from_c(handle.address)


def update(cursor, sql):
    cursor.adbc_statement.set_sql_query(sql)
    return cursor.adbc_statement.execute_update()


def ids_then(ids, act, *batch):
    """A stream of bound values, of which the last batch is only there after `act`."""
    schema = pyarrow.schema({"id": pyarrow.int64()})

    def batches():
        yield pyarrow.record_batch({"id": ids})
        act()
        yield from (pyarrow.record_batch({"id": [i]}) for i in batch)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def each_cancel(function):
    """Makes a test for each of the two functions that cancel: the test gets its name, and `choose(connection, cursor)`. The
    library waits as long as the service needs to say how it ended what was cancelled."""
    for name in ("statement", "connection"):

        def one(name=name):
            with clocks.standing():
                function(lambda connection, cursor: cursor.adbc_cancel if name == "statement" else connection.adbc_cancel)

        one.__name__ = f"{function.__name__}_{name}"
        one.__doc__ = f"{function.__doc__} ({name})"
        test(one)
    return function


@contextlib.contextmanager
def in_thread(function, *arguments):
    """Calls the function meanwhile, and raises its errors."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(function, *arguments)
        yield future
        future.result()


def cancel_if_busy(cancel):
    """True if there was something to cancel."""
    with contextlib.suppress(adbc_driver_manager.Error):
        cancel()
        return True
    return False


def cancel_after(seconds, cancel, stop):
    time.sleep(seconds)
    while not stop.is_set() and not cancel_if_busy(cancel):
        pass


def cancel_busy(cancel):
    wait_for(lambda: cancel_if_busy(cancel), "there is something to cancel")


def cancel_running(cancel):
    wait_for(lambda: service.counters()["NRuns"] > 0, "the run begins")
    cancel_busy(cancel)


LARGE = 20000
NUMBERS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x"
LARGE_SQL = f"INSERT INTO note {NUMBERS}, printf('%0100d', x) FROM c LIMIT {LARGE} RETURNING id, text"
ENDLESS = f"INSERT INTO note (id) {NUMBERS} FROM c"


@each_cancel
def cancelled_too_late(choose):
    """A stream of a write that has taken effect is not cancelled: its rows come, and say so"""
    for autocommit in (True, False):
        with empty_notes(autocommit=autocommit) as (connection, cursor):
            stream = result_of(cursor, "INSERT INTO note VALUES (1, 'a') RETURNING id")
            choose(connection, cursor)()
            equal(stream.read_all().to_pylist(), [{"id": 1}], "rows")
            if not autocommit:
                connection.commit()
            equal(notes(), [(1, "a")], "written")
    with empty_notes() as (connection, cursor):
        cursor.adbc_statement.set_options(**{"adbc.sqlipc.infer_rows": "1", "adbc.sqlipc.batch_rows": "100"})
        stream = result_of(cursor, LARGE_SQL)
        stream.read_next_batch()
        choose(connection, cursor)()
        try:
            equal(sum(batch.num_rows for batch in stream), LARGE - 100, "rows")
        except OSError as error:
            true("the statement took effect" in str(error), str(error))
        equal(content("SELECT count(*) FROM note"), [(LARGE,)], "written")
        equal(rows(connection, "SELECT count(*) FROM note"), [(LARGE,)], "the connection goes on")


@each_cancel
def cancelled_while_writing(choose):
    """A write that is cancelled while it runs has written nothing, and says so, with and without a stream"""
    for execute in (result_of, update):
        for sql in (ENDLESS, ENDLESS + " RETURNING id"):
            with empty_notes() as (connection, cursor):
                with in_thread(cancel_running, choose(connection, cursor)):
                    fails("CANCELLED", execute, cursor, sql)
                equal(notes(), [], "nothing")
                equal(rows(connection, "SELECT 1"), [(1,)], "the connection goes on")


@each_cancel
def cancelled_between_rows(choose):
    """A cancellation between two rows of values: nothing is written, or the outcome is said to be unknown"""
    insert, returning = "INSERT INTO note (id) VALUES (?)", "INSERT INTO note (id) VALUES (?) RETURNING id"
    for sql in (insert, returning):
        with empty_notes() as (connection, cursor):
            fails("CANCELLED", cursor.executemany, sql, ids_then([1, 2], choose(connection, cursor), 3))
            equal(notes(), [], f"one transaction: {sql}")
        with empty_notes() as (connection, cursor):
            error = fails("IO", cursor.execute, sql, ids_then([1, 2], choose(connection, cursor), 3))
            equal((error.sqlstate, error.facts["sqlipc.error"]), ("08007", "org.sqlipc1.Error.OutcomeUnknown"), sql)
            true("cancelled. The statement took effect for rows" in str(error), str(error))
            equal(len(notes()), 2, "those before")
        with empty_notes() as (connection, cursor):
            cursor.execute(sql, ids_then([1, 2], choose(connection, cursor)))
            equal(len(notes()), 2, "after the last row there is nothing to cancel")
    with empty_notes() as (connection, cursor):
        fails("CANCELLED", cursor.execute, "SELECT ?", ids_then([1, 2], choose(connection, cursor), 3))
    with empty_notes() as (connection, cursor):
        cursor.adbc_statement.set_options(**{"adbc.sqlipc.infer_rows": "1", "adbc.sqlipc.batch_rows": "1"})
        cursor.execute(returning, ids_then([1, 2], lambda: None, 3))
        reader = cursor.fetch_record_batch()
        equal(reader.read_next_batch().to_pylist(), [{"id": 1}])
        choose(connection, cursor)()
        breaks_off("took effect for rows of values before", lambda: [None for _ in reader])
        true(0 < len(notes()) < 3, "those before")


@each_cancel
def cancelled_ingest(choose):
    """An ingest that is cancelled between two batches has made and written nothing"""
    with empty_notes() as (connection, cursor):
        fails("CANCELLED", cursor.adbc_ingest, "ingested", ids_then([1, 2], choose(connection, cursor), 3), mode="create")
        equal(content("SELECT name FROM sqlite_schema WHERE name = 'ingested'"), [], "tables")
        equal(cursor.adbc_ingest("note", ids_then([1, 2], lambda: None, 3), mode="append"), 3, "the next one")
        equal(len(notes()), 3)


TWO_IDS = pyarrow.table({"id": [1, 2]})
ENDLESS_LOAD = f"INSERT INTO note (id) {NUMBERS} + ? FROM c"


def cancel_waiting(cancel):
    """Cancels a load of which the service most likely has all rows; before that, it is cancelled as well."""
    wait_for(lambda: service.counters()["NRuns"] > 0, "the load begins")
    time.sleep(0.1)
    cancel_busy(cancel)


@each_cancel
def cancelled_load(choose):
    """A load that waits for another writer, or runs, when it is cancelled has written nothing, also later"""
    with empty_notes() as (connection, cursor):
        with connect(service, "notes", autocommit=False, transaction="write") as holder:
            rows(holder, "SELECT 1")
            with in_thread(cancel_waiting, choose(connection, cursor)):
                fails("CANCELLED", cursor.executemany, "INSERT INTO note (id) VALUES (?)", TWO_IDS)
            holder.rollback()
        equal(notes(), [], "nothing")
        with in_thread(cancel_waiting, choose(connection, cursor)):
            fails("CANCELLED", cursor.executemany, ENDLESS_LOAD, TWO_IDS)
        cursor.executemany("INSERT INTO note (id) VALUES (?)", TWO_IDS)
        equal(len(notes()), 2, "the next load")


@each_cancel
def cancelled_load_in_a_transaction(choose):
    """A load that is cancelled in a transaction takes that along"""
    with empty_notes(autocommit=False) as (connection, cursor):
        cursor.execute("INSERT INTO note (id) VALUES (-1)")
        with in_thread(cancel_waiting, choose(connection, cursor)):
            fails("CANCELLED", cursor.executemany, ENDLESS_LOAD, TWO_IDS)
        fails("INVALID_STATE", cursor.execute, "INSERT INTO note (id) VALUES (-2)")
        fails("INVALID_STATE", connection.commit)
        connection.rollback()
        equal(notes(), [], "nothing")
        cursor.executemany("INSERT INTO note (id) VALUES (?)", TWO_IDS)
        connection.commit()
        equal(len(notes()), 2, "the next transaction")


@contextlib.contextmanager
def out_of_time():
    """Once the function that this yields was called, and a run computes, time passes for the library until the block ends.
    Before that it stands still: only what waits for the run is out of time."""
    begun, over = threading.Event(), threading.Event()

    def go_on():
        begun.wait()
        wait_for(lambda: over.is_set() or "running" in service.states(), "the run begins")
        while not over.is_set():
            clocks.go_on(1)
            time.sleep(0.01)

    with clocks.standing(), in_thread(go_on):
        try:
            yield begun.set
        finally:
            over.set()
            begun.set()


@test
def timeouts_of_loads():
    """A load that does not end in time is cancelled, with and without a transaction, and has written nothing"""
    with empty_notes(timeout=0.2) as (connection, cursor), out_of_time() as begin:
        try:
            raise AssertionError(f"the load ended: {cursor.executemany(ENDLESS_LOAD, ids_then([1, 2], begin, 3))}")
        except adbc_driver_manager.Error as error:  # a slow service does not say in time that it has cancelled the load
            true(error.status_code.name == "TIMEOUT" or error.sqlstate == "08007", str(error))
    wait_for(lambda: service.counters()["NRuns"] == 0, "the load is cancelled")
    equal(notes(), [], "nothing")
    with empty_notes(timeout=0.2, autocommit=False) as (connection, cursor), out_of_time() as begin:
        fails("TIMEOUT", cursor.executemany, ENDLESS_LOAD, ids_then([1, 2], begin, 3))
        fails("INVALID_STATE", connection.commit)
    equal(notes(), [], "nothing")


@each_cancel
def cancelled_at_random(choose):
    """At each moment of a cancellation the answer agrees with what is written"""
    outcomes = {"OK": 0, "CANCELLED": 0, "IO": 0}
    with empty_notes() as (connection, cursor):
        for i in range(300):
            sql = f"INSERT INTO note (id) VALUES ({i})" + (" RETURNING id" if i % 2 else "")
            stop = threading.Event()
            thread = threading.Thread(target=cancel_after, args=(i % 30 / 20000, choose(connection, cursor), stop))
            thread.start()
            try:
                if i % 3:
                    update(cursor, sql)
                else:
                    result_of(cursor, sql).read_all()
                outcome = "OK"
            except adbc_driver_manager.Error as error:
                outcome = error.status_code.name
                true(outcome == "CANCELLED" or error.sqlstate == "08007", str(error))
            except pyarrow.ArrowInvalid as error:
                raise AssertionError(f"a stream without another cause: {error}") from None
            except OSError as error:
                outcome = "IO"
                true("unknown" in str(error) or "took effect" in str(error), str(error))
            stop.set()
            thread.join()
            outcomes[outcome] += 1
            written = content(f"SELECT count(*) FROM note WHERE id = {i}") == [(1,)]
            if outcome != "IO":
                equal(written, outcome == "OK", f"{sql}: {outcome}")
    print("#", outcomes)


@test
def cancelled_commits():
    """The outcome of a cancelled commit is unknown, and told when its answer comes; or not, if the service is killed"""
    for killed in (False, True):
        with empty_notes(autocommit=False) as (connection, cursor):
            cursor.execute("INSERT INTO note VALUES (1, 'a')")
            os.kill(service.pid(), signal.SIGSTOP)
            with in_thread(cancel_busy, connection.adbc_cancel):
                equal(fails("IO", connection.commit).sqlstate, "08007", "no answer yet")
            if killed:
                for _ in range(2):  # a bus that has answered twice has passed on what was sent before
                    true(service.has_owner(), "the name has an owner")
                service.kill()
                service.start()
                equal(fails("IO", connection.commit).sqlstate, "08007", "the service was lost")
                fails("IO", connection.rollback)
            else:
                os.kill(service.pid(), signal.SIGCONT)
                connection.commit()
                equal(notes(), [(1, "a")], "committed")
        true(len(notes()) <= 1, "one or none")


@test
def killed_while_writing():
    """If the service is killed while a statement writes, or its rows are read, the outcome is unknown"""

    def kill_running():
        wait_for(lambda: service.counters()["NRuns"] > 0, "the run begins")
        service.kill()

    for execute in (result_of, update):
        with empty_notes() as (connection, cursor):
            with in_thread(kill_running):
                equal(fails("IO", execute, cursor, ENDLESS).sqlstate, "08007")
            service.start()
            equal(rows(connection, "SELECT count(*) FROM note"), [(0,)], "rows")
    with empty_notes() as (connection, cursor):
        cursor.adbc_statement.set_options(**{"adbc.sqlipc.infer_rows": "1", "adbc.sqlipc.batch_rows": "100"})
        stream = result_of(cursor, LARGE_SQL)
        stream.read_next_batch()
        service.kill()
        breaks_off("It is unknown whether the statement took effect", lambda: [None for _ in stream])
        service.start()
        equal(content("SELECT count(*) FROM note"), [(LARGE,)], "written")


@test
def killed_while_reading():
    """A query is repeated if the service is killed while it runs: without end, until another program ends it"""
    sql = f"{NUMBERS[:-len(') SELECT x')]} WHERE x < (SELECT text FROM note)) SELECT max(x) FROM c"
    with contextlib.ExitStack() as stack:
        killed, file = stack.enter_context(service_of_notes(activation=True))
        db = stack.enter_context(contextlib.closing(sqlite3.connect(file, check_same_thread=False)))
        db.execute("INSERT INTO note VALUES (1, 1000000000000000)")
        db.commit()

        def kill_running():
            wait_for(lambda: "running" in killed.states(), "the query runs")
            db.execute("UPDATE note SET text = 10")
            db.commit()
            os.kill(killed.pid(), signal.SIGKILL)

        with connect(killed, "notes") as connection, in_thread(kill_running):
            equal(rows(connection, sql), [(10,)], "the query that was repeated")


@test
def timeouts_of_writes():
    """After a timeout it is unknown if a statement took effect, unless it only reads or has a transaction"""
    for execute in (result_of, update):
        for sql in (ENDLESS, ENDLESS + " RETURNING id"):
            with empty_notes(timeout=0.2) as (connection, cursor), out_of_time() as begin:
                begin()
                equal(fails("IO", execute, cursor, sql).sqlstate, "08007", sql)
            wait_for(lambda: service.counters()["NRuns"] == 0, "the run ends")
    with empty_notes() as (connection, cursor):
        cursor.adbc_statement.set_options(**{"adbc.sqlipc.infer_rows": "1", "adbc.sqlipc.batch_rows": "1"})
        cursor.execute(f"SELECT 1 AS n UNION ALL SELECT count(*) FROM ({NUMBERS} FROM c)")
        reader = cursor.fetch_record_batch()
        reader.read_next_batch()
        connection.adbc_connection.set_options(**{"adbc.sqlipc.timeout": "0.2"})
        try:
            raise AssertionError(f"the reader went on: {reader.read_next_batch()}")
        except OSError as error:
            equal(str(error), "No answer within 0.2 s.", "no word of an unknown outcome")
    with empty_notes(timeout=0.2, autocommit=False) as (connection, cursor), out_of_time() as begin:
        begin()
        fails("TIMEOUT", update, cursor, ENDLESS)
    wait_for(lambda: service.counters()["NRuns"] == 0, "the runs end")
    equal(notes(), [])


@test
def results_that_fit_no_type():
    """If only the result of a write fails, the error does not say that nothing was written"""
    returning = "RETURNING CAST(x'ff' AS TEXT) AS t"
    with empty_notes() as (connection, cursor):
        error = fails("IO", lambda: cursor.execute(f"INSERT INTO note (id) VALUES (1) {returning}").fetchall())
        true("not valid UTF-8" in str(error), str(error))
        equal((error.sqlstate, error.facts["sqlipc.column"]), ("08007", "t"))
        breaks_off("statement took effect", result_of(cursor, f"INSERT INTO note (id) VALUES (2) {returning}").read_all)
        equal(len(notes()), 2, "written")
        fails("INVALID_DATA", lambda: cursor.execute("SELECT CAST(x'ff' AS TEXT) AS t").fetchall())
        breaks_off("Set adbc.sqlipc.text", result_of(cursor, "SELECT CAST(x'ff' AS TEXT) AS t").read_all)
        error = fails("IO", cursor.execute, "INSERT INTO note (id) VALUES (?) RETURNING id", pyarrow.table({"i": [5, 5]}))
        true("UNIQUE" in str(error) and "took effect for rows of values before" in str(error), str(error))
        equal(len(notes()), 3, "the first one")


@test
def transactions_that_read():
    """A transaction that reads sees one state, and has one result at a time"""
    with empty_notes(autocommit=False, transaction="read") as (connection, cursor), connect(service, "notes") as other:
        equal(rows(connection, "SELECT count(*) FROM note"), [(0,)])
        rows(other, "INSERT INTO note VALUES (1, 'a')")
        equal(rows(connection, "SELECT count(*) FROM note"), [(0,)], "the same state")
        cursor.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c")
        reader = cursor.fetch_record_batch()
        reader.read_next_batch()
        fails("INVALID_STATE", rows, connection, "SELECT 1")
        connection.commit()
        breaks_off("The transaction has ended", reader.read_next_batch)
        equal(rows(connection, "SELECT count(*) FROM note"), [(1,)], "the next transaction")
        catalogs = connection.adbc_get_objects(catalog_filter="notes").read_all().to_pylist()
        true(catalogs[0]["catalog_db_schemas"][0]["db_schema_tables"], "objects in a transaction that reads")


@test
def read_only():
    """A connection that only reads refuses to write"""
    with empty_notes() as (connection, cursor):
        connection.adbc_connection.set_options(**{"adbc.connection.readonly": "true"})
        equal(rows(connection, "SELECT 1"), [(1,)])
        equal(fails("INVALID_STATE", cursor.execute, "INSERT INTO note VALUES (1, 'a')").sqlstate, "25006")
        fails("INVALID_STATE", cursor.adbc_ingest, "t", pyarrow.table({"a": [1]}))
        fails("INVALID_STATE", cursor.executemany, "INSERT INTO note VALUES (?, ?)", [(1, "a"), (2, "b")])
        equal(notes(), [])


def objects(connection, **keywords):
    reader = connection.adbc_get_objects(**keywords)
    found = reader.read_all()
    found.validate(full=True)
    return {row["catalog_name"]: row["catalog_db_schemas"] for row in found.to_pylist()}


@test
def temp_tables_that_are_lost():
    """If the list of objects finds out that TEMP tables are lost, it fails: no later call tells it"""
    with empty_notes() as (connection, cursor):
        cursor.execute("INSERT INTO note VALUES (1, 'file')")
        cursor.execute("CREATE TEMP TABLE note AS SELECT 'temp' AS text")
        equal(rows(connection, "SELECT text FROM note"), [("temp",)])
        workers = children(service.pid())
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        wait_for(lambda: not set(workers) & set(children(service.pid())), "the service knows")
        error = fails("INVALID_STATE", objects, connection, depth="tables", table_name_filter="note")
        true("TEMP tables" in str(error), str(error))
        equal(rows(connection, "SELECT text FROM note"), [("file",)])
        true(objects(connection, depth="tables", table_name_filter="note")["notes"], "objects")


@test
def temp_tables_beside_others():
    """What is told about a table of the database is right beside a TEMP table of its name, which a name alone means"""
    with empty_notes() as (connection, cursor):
        cursor.execute("CREATE TABLE below(id INTEGER PRIMARY KEY, note REFERENCES note, text UNIQUE)")
        before = objects(connection, catalog_filter="notes")
        cursor.execute("CREATE TEMP TABLE note(a, b, c, id PRIMARY KEY)")
        cursor.execute("CREATE TEMP TABLE below(x PRIMARY KEY, y UNIQUE)")
        cursor.execute("CREATE TEMP TABLE more(x)")
        equal(objects(connection, catalog_filter="notes"), before, "objects")
        equal(connection.adbc_get_table_schema("note").names, ["a", "b", "c", "id"], "a name alone")
        equal(connection.adbc_get_table_schema("note", catalog_filter="notes").names, ["id", "text"], "with its catalog")
        fails("NOT_FOUND", connection.adbc_get_table_schema, "more", catalog_filter="notes")
        cursor.adbc_ingest("note", pyarrow.table({"id": [1], "text": ["file"]}), mode="append", catalog_name="notes")
        with connection.cursor() as other:
            other.adbc_ingest("note", pyarrow.table({"a": [1, 2]}), mode="append")
        equal(rows(connection, "SELECT count(*) FROM temp.note"), [(2,)], "an ingest by the name alone")
        for mode, n in (("replace", 1), ("append", 2), ("create_append", 3)):
            data = pyarrow.table({"id": [1], "note": [1], "text": [None]})
            cursor.adbc_ingest("below", data, mode=mode, catalog_name="notes")
            equal(content("SELECT count(*) FROM below"), [(n,)], f"an ingest with its catalog, {mode}")
        fails("ALREADY_EXISTS", cursor.adbc_ingest, "below", pyarrow.table({"id": [1]}), catalog_name="notes")
        equal(rows(connection, "SELECT count(*) FROM temp.below"), [(0,)], "the TEMP table")
        equal(notes(), [(1, "file")], "the table")
        cursor.execute("DROP TABLE main.below")


@test
def one_result_on_a_pin():
    """A connection with TEMP tables, or settings of its own, refuses at once what would wait for an open result"""
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
    for sql in ("CREATE TEMP TABLE mine(a)", "PRAGMA recursive_triggers = ON", "CREATE VIEW temp.mine AS SELECT 1"):
        with empty_notes() as (connection, cursor), connection.cursor() as second:
            cursor.execute(endless)
            reader = cursor.fetch_record_batch()
            reader.read_next_batch()
            equal(rows(connection, "SELECT 1"), [(1,)], "without a pin")
            reader.close()
            second.execute(sql)
            cursor.execute(endless)
            reader = cursor.fetch_record_batch()
            reader.read_next_batch()
            for call in (
                lambda connection=connection: rows(connection, "SELECT 1"),
                lambda second=second: second.execute("INSERT INTO note VALUES (1, 'a')"),
                lambda second=second: second.executemany("INSERT INTO note VALUES (?, ?)", [(1, "a"), (2, "b")]),
                lambda second=second: second.adbc_prepare("SELECT 1"),
                lambda second=second: second.adbc_execute_schema("SELECT 1"),
                lambda second=second: second.adbc_ingest("note", pyarrow.table({"id": [1]}), mode="append"),
                lambda connection=connection: connection.adbc_get_table_schema("note"),
                lambda connection=connection: connection.adbc_get_objects(catalog_filter="notes"),
            ):
                true("one statement at a time" in str(fails("INVALID_STATE", call)), sql)
            equal(reader.read_next_batch().num_rows > 0, True, "the result goes on")
            equal(len(connection.adbc_get_table_schema("Genre", catalog_filter="chinook")), 2, "another database")
            reader.close()
            with connection.cursor() as chinook:  # a result of another database, which goes into the TEMP table
                connection.adbc_connection.set_options(**{"adbc.connection.catalog": "chinook"})
                chinook.execute("SELECT TrackId AS a FROM Track")
                reader = chinook.fetch_record_batch()
                connection.adbc_connection.set_options(**{"adbc.connection.catalog": "notes"})
                equal(rows(connection, "SELECT 1"), [(1,)], "beside a result of another database")
                if "TABLE" in sql:
                    equal(second.adbc_ingest("mine", reader, mode="append"), 3503, "its rows")
            equal(rows(connection, "SELECT 1"), [(1,)], "after it")
            equal(notes(), [], "nothing was written")
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300000) SELECT x FROM c"
    with empty_notes(autocommit=False, transaction="write") as (connection, cursor):
        cursor.execute("CREATE TEMP TABLE mine(a)")
        cursor.execute(many)
        reader = cursor.fetch_record_batch()
        reader.read_next_batch()
        rows(connection, "INSERT INTO mine VALUES (1)")
        equal(rows(connection, "SELECT a FROM mine"), [(1,)], "in a transaction that writes, rows wait in a file")
        true(len(reader.read_all()) > 200000, "the rows that have waited")


@test
def catalogs():
    """Databases are catalogs with tables, columns and constraints, as the filters choose"""
    with connect(service, "chinook") as connection:
        equal(objects(connection, depth="catalogs"), {"chinook": None, "notes": None})
        equal(objects(connection, depth="db_schemas", catalog_filter="c%"),
              {"chinook": [{"db_schema_name": "", "db_schema_tables": None}]})
        equal(objects(connection, catalog_filter="nothing"), {})
        equal(objects(connection, catalog_filter="notes", db_schema_filter="main"), {"notes": []})
        tables = objects(connection, depth="tables", catalog_filter="chinook", table_name_filter="playlist%")
        equal([(t["table_name"], t["table_type"], t["table_columns"]) for t in tables["chinook"][0]["db_schema_tables"]],
              [("Playlist", "table", None), ("PlaylistTrack", "table", None)], "tables")
        equal(objects(connection, depth="tables", catalog_filter="chinook", table_types_filter=["view"])["chinook"],
              [{"db_schema_name": "", "db_schema_tables": []}], "views")
        full = objects(connection, catalog_filter="chinook", table_name_filter="PlaylistTrack", column_name_filter="Track__")
        (one,) = full["chinook"][0]["db_schema_tables"]
        (column,) = one["table_columns"]
        equal([column[key] for key in ("column_name", "ordinal_position", "xdbc_type_name", "xdbc_is_nullable")],
              ["TrackId", 2, "INTEGER", "NO"], "column")
        equal([(c["constraint_type"], c["constraint_column_names"]) for c in one["table_constraints"]],
              [("PRIMARY KEY", ["PlaylistId", "TrackId"]), ("FOREIGN KEY", ["TrackId"]), ("FOREIGN KEY", ["PlaylistId"])])
        (usage,) = one["table_constraints"][1]["constraint_column_usage"]
        equal([usage[key] for key in ("fk_catalog", "fk_db_schema", "fk_table", "fk_column_name")],
              ["chinook", "", "Track", "TrackId"], "usage")
        equal(connection.adbc_get_table_types(), ["table", "view"])
        unique = objects(connection, catalog_filter="notes", table_name_filter="note")["notes"][0]["db_schema_tables"][0]
        equal([c["constraint_type"] for c in unique["table_constraints"]], ["UNIQUE", "PRIMARY KEY"], "unique")


@test
def broken_catalog():
    """A database that cannot be read has no schemas; asked for by its name, it is an error"""
    (service.data / "broken.sqlite").write_bytes(b"this is no database" * 100)
    service.database("broken", Path=service.data / "broken.sqlite")
    service.driver.manager("Reload")
    with connect(service, "chinook") as connection:
        found = objects(connection, depth="tables")
        equal((found["broken"], len(found)), (None, 3))
        fails("IO", lambda: objects(connection, depth="tables", catalog_filter="broken"))


@test
def broken_objects():
    """Objects that SQLite cannot compile are listed without columns, names are valid UTF-8, and all others are complete"""
    import broken_schema

    path = broken_schema.make(service.data / "odd.sqlite")
    service.database("odd", Path=path)
    service.driver.manager("Reload")
    with connect(service, "odd") as connection:
        (schema,) = objects(connection, catalog_filter="odd")["odd"]
        tables = {one["table_name"]: one for one in schema["db_schema_tables"]}
        unreadable = {name for name, one in tables.items() if one["table_columns"] is None}
        equal(unreadable, set(broken_schema.UNREADABLE) - {"computed"}, "objects without columns")
        true(all(tables[name]["table_constraints"] is None for name in unreadable), "nor constraints")
        equal([column["column_name"] for column in tables["good"]["table_columns"]], ["id", "text", "twice"])
        equal([column["column_name"] for column in tables["good_view"]["table_columns"]], ["id", "upper"])
        for name, column in ((broken_schema.ODD_TABLE, broken_schema.ODD_COLUMN), (broken_schema.ODD_VIEW,) * 2):
            shown = tables[name.decode(errors="replace")]["table_columns"][0]["column_name"]
            equal(shown[1:], column.decode(errors="replace")[1:], f"columns of {name}")
        true(f"non{broken_schema.NONCHARACTER}" in tables, "a noncharacter")
        error = fails("INVALID_ARGUMENT", rows, connection, 'SELECT * FROM "no odd table"')
        equal(str(error).count("\ufffd"), 3, f"characters that are replaced in {error}")
        equal(fails("INVALID_ARGUMENT", connection.adbc_get_table_schema, "no table").facts["sqlipc.error"],
              "org.sqlipc1.Error.Sql")
        equal(len(tables), len(schema["db_schema_tables"]), "names that are told apart")


@test
def schemas():
    """Schemas of tables, of results before they are executed, and of parameters"""
    with connect(service, "chinook") as connection, connection.cursor() as cursor:
        equal(str(connection.adbc_get_table_schema("Genre")).split("\n"), ["GenreId: int64", "Name: string"])
        fails("NOT_FOUND", connection.adbc_get_table_schema, "nothing")
        equal(connection.adbc_get_table_schema("note", catalog_filter="notes").names, ["id", "text"], "another catalog")
        schema = cursor.adbc_execute_schema("SELECT TrackId, Name, 1 + 1 AS two FROM Track")
        equal([str(t) for t in schema.types], ["int64", "string", "int64"], "results")
        equal(cursor.adbc_prepare("SELECT :id, ?").names, [":id", ""], "parameters")
        fails("NOT_IMPLEMENTED", cursor.adbc_execute_partitions, "SELECT 1")
        fails("NOT_IMPLEMENTED", connection.adbc_get_statistics)
        fails("NOT_IMPLEMENTED", cursor.execute, b"a plan")


def schema_of(cursor, sql):
    return [str(t) for t in cursor.adbc_execute_schema(sql).types]


@test
def schema_of_values():
    """A schema before the execution has the types that the executed result has, also of expressions; nothing is written"""
    with connect(service, "notes") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE mixed (a INTEGER, b BLOB, c)")
        cursor.execute("INSERT INTO mixed VALUES (1.5, 'text', x'00'), (2, 'x', NULL)")
        for sql in (
            "SELECT 'a' || 'b', 1, 1.5, x'00', NULL, 1 + 0.5",
            "SELECT * FROM mixed",
            "SELECT c, max(a) FROM mixed",
            "SELECT b FROM mixed WHERE 0",
            "SELECT 1 WHERE 0",
            "PRAGMA table_info(mixed)",
        ):
            for types in ("auto", "declared", "values"):
                cursor.adbc_statement.set_options(**{"adbc.sqlipc.types": types})
                told = schema_of(cursor, sql)
                cursor.execute(sql)
                equal(told, [str(t) for t in cursor.fetch_record_batch().schema.types], f"{sql}, {types}")
        cursor.adbc_statement.set_options(**{"adbc.sqlipc.types": "auto"})
        # All types that SQLite's driver of arrow-adbc chooses for these: only values tell it, and int64 is for no values.
        equal(schema_of(cursor, "SELECT 'a', 1, 1.5, x'00', NULL"), ["string", "int64", "double", "binary", "int64"])
        equal(schema_of(cursor, "INSERT INTO mixed (a) VALUES (7) RETURNING a"), ["int64"], "a declared type")
        fails("NOT_IMPLEMENTED", schema_of, cursor, "INSERT INTO mixed (a) VALUES (7) RETURNING a + 1")
        fails("NOT_IMPLEMENTED", schema_of, cursor, "SELECT ? || 'x'")
        equal(schema_of(cursor, "INSERT INTO mixed (a) VALUES (7)"), [], "no columns")
        equal(rows(connection, "SELECT count(*) FROM mixed WHERE a = 7"), [(0,)], "nothing ran")
        cursor.execute("DROP TABLE mixed")


@test
def schema_of_bound_values():
    """Bound values decide about types, and remain bound for the execution"""
    with connect(service, "notes") as connection, connection.cursor() as cursor:
        statement = cursor.adbc_statement
        for values, expected in (([1, 2], "int64"), (["a", "b"], "string"), ([None, 1.5], "double"), ([], "int64")):
            batch = pyarrow.record_batch([pyarrow.array(values, expected)], names=["v"])
            for bind in (lambda b=batch: statement.bind(b), lambda b=batch: statement.bind_stream(stream_of(b, b))):
                statement.set_sql_query("SELECT ? AS v")
                bind()
                for _ in range(2):
                    schema = imported(pyarrow.Schema, statement.execute_schema())
                    equal(str(schema.field(0).type), expected, f"before {values}")
                stream, _ = statement.execute_query()
                got = imported(pyarrow.RecordBatchReader, stream).read_all()
                equal(str(got.schema.field(0).type), expected, f"after {values}")
                equal(got.column(0).to_pylist()[: len(values)], values, "rows")
                true(len(got) in (len(values), 2 * len(values)), "each row once")


def imported(kind, handle):
    return kind._import_from_c(handle.address)


def stream_of(*batches):
    return pyarrow.RecordBatchReader.from_batches(batches[0].schema, batches)


@test
def schema_of_changed_tables():
    """The schema of a prepared statement is the present one, also if a table has changed since"""
    with connect(service, "notes") as connection, connection.cursor() as cursor, connection.cursor() as other:
        other.execute("CREATE TABLE changing (id INTEGER PRIMARY KEY)")
        statement = cursor.adbc_statement
        insert = adbc_driver_manager.AdbcStatement(connection.adbc_connection)
        insert.set_sql_query("INSERT INTO changing DEFAULT VALUES RETURNING *")
        statement.set_sql_query("SELECT * FROM changing")
        for each in (statement, insert):
            each.prepare()
        other.execute("ALTER TABLE changing ADD COLUMN note TEXT")
        for each in (statement, insert):
            schema = imported(pyarrow.Schema, each.execute_schema())
            equal(schema.names, ["id", "note"], "a new column")
        other.execute("DROP TABLE changing")
        fails("INVALID_ARGUMENT", statement.execute_schema)
        insert.close()


@test
def no_bound_rows():
    """Bound data without rows runs nothing: a query has its columns and no rows, and nothing is changed"""
    empty = pyarrow.record_batch([pyarrow.array([], "int64")], names=["id"])
    with connect(service, "notes") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE filled (id INTEGER PRIMARY KEY, text TEXT)")
        cursor.execute("INSERT INTO filled VALUES (1, 'one'), (2, 'two')")
        statement = cursor.adbc_statement
        for bind in (lambda: statement.bind(empty), lambda: statement.bind_stream(stream_of(empty)),
                     lambda: statement.bind_stream(stream_of(empty, empty))):
            for sql, names, types in (
                ("SELECT id, text, id || 'x' FROM filled WHERE id > ?", ["id", "text", "id || 'x'"],
                 ["int64", "string", "int64"]),
                ("INSERT INTO filled (id) VALUES (?)", [], []),
                ("DELETE FROM filled WHERE id > ? RETURNING text", ["text"], ["string"]),
            ):
                statement.set_sql_query(sql)
                bind()
                stream, affected = statement.execute_query()
                got = imported(pyarrow.RecordBatchReader, stream).read_all()
                equal((got.schema.names, [str(t) for t in got.schema.types], len(got), affected), (names, types, 0, 0), sql)
                bind()
                equal(statement.execute_update(), 0, f"rows that {sql} affected")
        statement.set_sql_query("SELECT nothing FROM filled WHERE id = ?")
        bind()
        fails("INVALID_ARGUMENT", statement.execute_query)
        equal(rows(connection, "SELECT count(*), max(id) FROM filled"), [(2, 2)], "unchanged")
        cursor.execute("DROP TABLE filled")


@test
def temp_tables_of_readers():
    """Without autocommit, and in an ingest, TEMP tables need no right to write, and no turn to write"""
    service.database("only-read", Path=path, Mode="read-only")
    service.driver.manager("Reload")
    data = pyarrow.table({"a": [1, 2]})
    with empty_notes() as (_, holder), connect(service, "notes", autocommit=False) as writer, writer.cursor() as writing:
        holder.execute("INSERT INTO note VALUES (1, 'file')")
        writing.execute("INSERT INTO note VALUES (2, 'open')")
        for name in ("only-read", "notes"):
            for autocommit in (False, True):
                what = f"{name}, autocommit {autocommit}"
                with connect(service, name, autocommit=autocommit) as connection, connection.cursor() as cursor:
                    cursor.execute("/* own */ CREATE TEMP TABLE mine(a)")
                    cursor.execute("INSERT INTO mine VALUES (0)")
                    if not autocommit:
                        connection.commit()
                        cursor.execute("UPDATE mine SET a = a + 1")
                        connection.rollback()
                    equal(rows(connection, "SELECT a FROM mine"), [(0,)], what)
                    equal(rows(connection, "SELECT * FROM note"), [(1, "file")], what)
                    if not autocommit:
                        connection.rollback()
        writer.rollback()
    with connect(service, "only-read") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE mine(a)")
        for autocommit in (True, False):
            connection.adbc_connection.set_autocommit(autocommit)
            for mode in ("append", "create_append"):
                equal(cursor.adbc_ingest("mine", data, mode=mode), 2, f"{mode}, autocommit {autocommit}")
            if not autocommit:
                connection.adbc_connection.rollback()
        equal(rows(connection, "SELECT count(*) FROM mine"), [(4,)], "ingested")
        connection.adbc_connection.set_autocommit(True)
        fails("UNAUTHORIZED", cursor.adbc_ingest, "note", pyarrow.table({"id": [5]}), mode="append")


@test
def end():
    """The service is left with nothing"""
    exit_stack.close()


if __name__ == "__main__":
    main()
