#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ADBC driver's results: values, types, batches, memory, errors in the middle, and runs that end early."""
import contextlib
import pathlib
import sqlite3
import threading
import time

import adbc_rig  # the environment first
from adbc_rig import breaks_off, connect, fails, rows, service_of_notes, table
import adbc_driver_manager
import pyarrow

from harness import MANAGER, fds, main, rss_anon, wait_for
from tap import at_most, equal, test, true

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
MIB = 1 << 20

exit_stack = contextlib.ExitStack()
service, path = exit_stack.enter_context(service_of_notes())
with contextlib.closing(sqlite3.connect(path)) as db:
    db.executescript("""
        CREATE TABLE kinds (i INTEGER, r REAL, t TEXT, b BLOB, n DECIMAL(10,2), d DATE, x);
        CREATE TABLE late (id INTEGER PRIMARY KEY, value INT);
        CREATE TABLE broken (id INTEGER PRIMARY KEY, text TEXT);
        INSERT INTO broken VALUES (1, 'fine'), (2, CAST(x'ff41' AS TEXT));
    """)
    values = [
        (-(2**63), -0.5, "a\0b", b"\0\xff", 0.99, "2026-03-01", 1),
        (2**63 - 1, float("inf"), "", b"", 5, "2026-03-02", None),
        (2**53 + 1, 5e-324, "ü\U0001f600", b"x" * 70000, None, None, 3),
        (None,) * 7,
    ]
    db.executemany("INSERT INTO kinds VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    db.executemany("INSERT INTO late VALUES (?, ?)", [(i, i if i != 2500 else "text") for i in range(1, 3001)])
    db.commit()


def idle():
    return service.counters()["NRuns"] == 0


@test
def values_of_all_kinds():
    """Each value arrives as it is: extreme numbers, NUL in text, any bytes, NULL"""
    with connect(service, "notes") as connection:
        got = table(connection, "SELECT * FROM kinds")
        types = ["int64", "double", "string", "binary", "double", "string", "int64"]
        equal([str(t) for t in got.schema.types], types, "types")
        equal([tuple(row.values()) for row in got.to_pylist()], values, "values")
        equal(rows(connection, "SELECT * FROM kinds WHERE 0"), [], "no rows")


@test
def found_by_name():
    """Managers find the driver by its manifest, and by the scheme of a URI"""
    uri = f"sqlipc://{service.address}/chinook"
    for arguments in ({"driver": "sqlipc", "uri": uri}, {"uri": uri}):
        with adbc_driver_manager.dbapi.connect(**arguments, autocommit=True) as connection:
            equal(rows(connection, "SELECT count(*) FROM Track"), [(3503,)])
            equal(connection.adbc_current_catalog, "chinook")
            info = connection.adbc_get_info()
            equal((info["vendor_name"], info["driver_adbc_version"]), ("SQLite", 1001000))


@test
def all_of_chinook():
    """Each table of chinook is what sqlite3 reads, in batches of each size"""
    from harness import CHINOOK

    with contextlib.closing(sqlite3.connect(CHINOOK)) as db, connect(service, "chinook") as connection:
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        for (name,) in db.execute(names).fetchall():
            expected = db.execute(f'SELECT * FROM "{name}"').fetchall()
            for options in ({}, {"batch_rows": 7}, {"batch_bytes": 1}, {"infer_rows": 1}):
                equal(rows(connection, f'SELECT * FROM "{name}"', **options), expected, f"{name} {options}")


@test
def batches():
    """A batch has the rows and the bytes that the options allow"""
    with connect(service, "chinook") as connection:
        sizes = [len(b) for b in table(connection, "SELECT TrackId FROM Track", batch_rows=1000).to_batches()]
        equal(sizes, [1000, 1000, 1000, 503], "rows")
        sizes = [len(b) for b in table(connection, "SELECT * FROM Track", batch_bytes=50000).to_batches()]
        true(len(sizes) > 3 and sum(sizes) == 3503, f"sizes {sizes}")
    with connect(service, "chinook", batch_rows=10) as connection, connection.cursor() as cursor:
        equal(cursor.adbc_statement.get_option_int("adbc.sqlipc.batch_rows"), 10, "inherited")


@test
def types_as_the_option_says():
    """Types by declaration, by values, or both; an expression has those of its values"""
    with connect(service, "notes") as connection:
        sql = "SELECT CAST(NULL AS TEXT) AS e, i + 0.5 AS f, x FROM kinds WHERE i > 0 OR i IS NULL ORDER BY i DESC"
        equal([str(t) for t in table(connection, sql).schema.types], ["int64", "double", "int64"], "expressions")
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE odd (a INTEGER, b BLOB); INSERT".split(";")[0])
            cursor.execute("INSERT INTO odd VALUES (1.5, 'text'), (2, 'x')")
        equal([str(t) for t in table(connection, "SELECT * FROM odd").schema.types], ["double", "string"], "auto")
        equal(str(table(connection, "SELECT b FROM odd", types="declared").schema.types[0]), "binary", "declared")
        error = fails("INVALID_DATA", table, connection, "SELECT a FROM odd", types="declared")
        equal(error.facts, {"sqlipc.row": "1", "sqlipc.column": "a"}, "facts")
        equal(str(table(connection, "SELECT n FROM kinds WHERE n = 5", types="values").schema.types[0]), "int64", "values")
        equal(str(table(connection, "SELECT n FROM kinds WHERE n = 5").schema.types[0]), "double", "decimal")
        equal(str(table(connection, "SELECT t FROM kinds WHERE 0", types="values").schema.types[0]), "string", "no values")


@test
def late_misfit():
    """A later value that does not fit is an error with row and column, after the batches before it"""
    with connect(service, "notes") as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlipc.batch_rows": "1000"})
        cursor.execute("SELECT * FROM late ORDER BY id")
        reader = cursor.fetch_record_batch()
        equal([len(reader.read_next_batch()) for _ in range(2)], [1000, 1000], "batches")
        for _ in range(2):
            breaks_off('Row 2500, column "value"', reader.read_next_batch)
        error = fails("INVALID_DATA", table, connection, "SELECT * FROM late ORDER BY id")
        equal(error.facts, {"sqlipc.row": "2500", "sqlipc.column": "value"}, "facts")
        equal(rows(connection, "SELECT count(*) FROM late"), [(3000,)], "the connection goes on")
        equal(len(rows(connection, "SELECT CAST(value AS TEXT) FROM late")), 3000, "with a cast")


@test
def broken_text():
    """TEXT that is not UTF-8 is an error with row and column; or its bytes, by an option"""
    with connect(service, "notes") as connection:
        error = fails("INVALID_DATA", table, connection, "SELECT text FROM broken ORDER BY id")
        equal(error.facts, {"sqlipc.row": "2", "sqlipc.column": "text"}, "facts")
        equal(error.sqlstate, "22021")
        equal(rows(connection, "SELECT text FROM broken ORDER BY id", text="binary"), [(b"fine",), (b"\xffA",)], "binary")


@test
def constant_memory():
    """A large result is read in constant memory"""
    import os

    sql = f"SELECT x, printf('%0400d', x) AS t FROM ({ENDLESS} LIMIT 400000)"
    with connect(service, "chinook", batch_bytes=4 * MIB) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        reader = cursor.fetch_record_batch()
        n, before, most = 0, None, 0
        for batch in reader:
            n += len(batch)
            before = before or rss_anon(os.getpid())
            most = max(most, rss_anon(os.getpid()))
        equal(n, 400000, "rows")
        at_most(most - before, 40 * MIB, "growth for 160 MB of rows")


@test
def early_release():
    """A result that is released early ends its run at the service"""
    with connect(service, "chinook") as connection, connection.cursor() as cursor:
        cursor.execute(ENDLESS)
        reader = cursor.fetch_record_batch()
        equal(reader.read_next_batch().column(0)[0].as_py(), 1)
        true(not service.is_over(), "the run goes on")
        reader.close()
        wait_for(service.is_over, "the run ends")
        cursor.execute(ENDLESS)
        first = cursor.fetch_record_batch()
        first.read_next_batch()
        equal(rows(connection, "SELECT 1"), [(1,)], "another statement beside it")
        cursor.execute("SELECT 5 AS five")  # the result before it becomes stale
        equal(cursor.fetchall(), [(5,)])
        wait_for(idle, "the run ends")


def cancel_when_running(cancel):
    wait_for(lambda: service.counters()["NRuns"] > 0, "the run begins")
    end = time.monotonic() + 60
    while True:  # The service has the run before the driver has its answer.
        with contextlib.suppress(adbc_driver_manager.Error):
            return cancel()
        if time.monotonic() > end:
            raise AssertionError("there was nothing to cancel")
        time.sleep(0.01)


def waits():
    """How often this thread has waited; a wait in steps counts for each."""
    status = pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("voluntary_ctxt_switches")).split()[1])


@test
def cancelling():
    """Statement and connection can be cancelled from another thread; the run ends without another call, the call at once"""
    with connect(service, "chinook") as connection, connection.cursor() as cursor:
        for cancel in (cursor.adbc_cancel, connection.adbc_cancel):
            fails("INVALID_STATE", cancel)
            thread = threading.Thread(target=cancel_when_running, args=(cancel,))
            thread.start()
            waited = waits()
            fails("CANCELLED", cursor.execute, f"SELECT count(*) FROM ({ENDLESS})")
            at_most(waits() - waited, 15, "waits of a call that was cancelled")
            thread.join()
            wait_for(idle, "the run ends")
        cursor.execute(ENDLESS)
        reader = cursor.fetch_record_batch()
        reader.read_next_batch()
        cursor.adbc_cancel()
        breaks_off("cancelled", lambda: [None for _ in reader])
        equal(rows(connection, "SELECT 7"), [(7,)], "the connection goes on")


@test
def threads():
    """Statements of one connection may be used in several threads"""
    problems = []

    def work(connection, number):
        try:
            with connection.cursor() as cursor:
                for _ in range(20):
                    cursor.execute("SELECT ?1 AS n, TrackId FROM Track", (number,))
                    got = cursor.fetch_arrow_table()
                    equal((len(got), set(got.column(0).to_pylist())), (3503, {number}), "rows")
        except Exception as problem:  # noqa: BLE001 - the main thread reports it
            problems.append(problem)

    with connect(service, "chinook", batch_rows=100) as connection:
        workers = [threading.Thread(target=work, args=(connection, number)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    equal(problems, [], "problems")


@test
def forked():
    """A process that was forked cannot use its parent's connection, and is told so; the parent can"""
    import os

    with connect(service, "chinook") as connection:
        equal(rows(connection, "SELECT 1"), [(1,)])
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                fails("INVALID_STATE", rows, connection, "SELECT 2")
                os._exit(7)
            os._exit(1)
        equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7, "exit code of the child")
        equal(rows(connection, "SELECT 3"), [(3,)], "in the parent")


@test
def timeouts():
    """The options of timeouts end a call, or a run"""
    with connect(service, "chinook", run_timeout=0.05) as connection:
        equal(connection.adbc_connection.get_option_float("adbc.sqlipc.run_timeout"), 0.05, "option")
        error = fails("TIMEOUT", rows, connection, f"SELECT count(*) FROM ({ENDLESS})")
        equal(error.facts["sqlipc.error"], "org.sqlipc1.Error.TimedOut", "name")
    with connect(service, "chinook", timeout=0.05) as connection:
        error = fails("TIMEOUT", rows, connection, f"SELECT count(*) FROM ({ENDLESS})")
        equal(error.facts, {}, "the service did not end it")
    wait_for(idle, "the runs end")


@test
def errors():
    """Errors of SQL have SQLite's code and the offset, those of the service their name"""
    with connect(service, "notes") as connection, connection.cursor() as cursor:
        error = fails("INVALID_ARGUMENT", cursor.execute, "SELECT nothing FROM note")
        equal(error.facts, {"sqlipc.error": "org.sqlipc1.Error.Sql", "sqlite.code": "1", "sqlite.extended_code": "1",
                            "sqlipc.sql_offset": "7"}, "facts")
        equal(error.sqlstate, "42000")
        cursor.execute("INSERT INTO note VALUES (100, 'same')")
        error = fails("INTEGRITY", cursor.execute, "INSERT INTO note VALUES (101, 'same')")
        equal((error.sqlstate, error.facts["sqlite.code"], error.facts["sqlite.extended_code"]), ("23000", "19", "2067"))
        cursor.execute("DELETE FROM note")
        fails("INVALID_ARGUMENT", cursor.execute, "SELECT 1; SELECT 2")
    with connect(service, "nowhere") as connection:
        equal(fails("NOT_FOUND", rows, connection, "SELECT 1").sqlstate, "3D000")
    with connect(service, "chinook") as connection:
        equal(fails("UNAUTHORIZED", rows, connection, "DELETE FROM Genre").sqlstate, "25006")


@test
def error_in_the_stream():
    """An error after the first batches has its details, too"""
    sql = f"SELECT abs(CASE x WHEN 5000 THEN 1 << 63 ELSE x END) FROM ({ENDLESS})"
    with connect(service, "chinook", batch_rows=100) as connection:
        error = fails("INVALID_ARGUMENT", rows, connection, sql)
        true("integer overflow" in str(error), str(error))
        equal(error.facts["sqlite.code"], "1")


@test
def restart():
    """After a restart of the service the connection works again"""
    with connect(service, "chinook") as connection:
        equal(rows(connection, "SELECT 1"), [(1,)])
        service.stop()
        fails("IO", rows, connection, "SELECT 1")
        service.start()
        equal(rows(connection, "SELECT 2"), [(2,)])


@test
def nothing_is_kept():
    """Connections, statements and results leave neither descriptors nor memory behind"""
    import os

    def work():
        with connect(service, "notes") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM kinds")
            cursor.fetch_arrow_table()
            cursor.execute(ENDLESS)
            cursor.fetch_record_batch().read_next_batch()
            fails("INVALID_ARGUMENT", cursor.execute, "SELECT nothing")
            cursor.adbc_ingest("kept", pyarrow.table({"a": ["x" * 1000] * 100}), mode="replace")
            connection.adbc_get_objects(catalog_filter="notes").read_all()

    for _ in range(10):
        work()
    before, memory = sorted(fds(os.getpid()).values()), rss_anon(os.getpid())
    for _ in range(100):
        work()
    equal(len(fds(os.getpid())), len(before), "descriptors")
    at_most(rss_anon(os.getpid()) - memory, 10 * MIB, "growth in 100 rounds")


@test
def end():
    """The service is left with nothing"""
    wait_for(lambda: service.driver.properties(MANAGER)["NRuns"] == 0, "no run is left")
    exit_stack.close()


if __name__ == "__main__":
    true(adbc_rig.DRIVER.exists(), "the driver is built")
    main()
