#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each kind of bad input has its own error with a sentence, and does not affect other users: after each, a point query of
another user is answered."""
import ctypes
import os
import sqlite3
import subprocess

from client import Broken, Failure, Gio, GLib, Text, same_rows
from harness import CHINOOK, PATIENT, UID_A, Service, expect, main
from results import make_extremes
from tap import Skip, equal, test, true

CLONE_NEWNS = 0x00020000
LIBC = ctypes.CDLL(None)
SORT = """WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT 20000)
          SELECT x, randomblob(1000) AS r FROM n ORDER BY r LIMIT 1 OFFSET 19998"""

service = Service(
    {"chinook": CHINOOK},
    limits={**PATIENT, "HeapMax": "64M", "TempSizeMax": "8M", "RowSizeMax": "1M"},
)


def add(name, build=None, **keys):
    """Publishes a database made by `build(path)`."""
    path = service.data / f"{name}.sqlite"
    if build:
        build(path)
    service.database(name, Path=path, **keys)
    return path


def corrupt(path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t(a, b)")
    db.executemany("INSERT INTO t VALUES(?, ?)", [(n, "x" * 500) for n in range(2000)])
    db.commit()
    db.close()
    with open(path, "r+b") as file:
        for page in range(3, os.path.getsize(path) // 4096):
            file.seek(page * 4096)
            file.write(b"\xde\xad\xbe\xef" * 1024)


def alien(path):
    """Makes a table whose collation and index function exist only in the program that made it."""
    db = sqlite3.connect(path)
    db.create_collation("klingon", lambda a, b: (a > b) - (a < b))
    db.execute("CREATE TABLE t(a TEXT COLLATE klingon)")
    db.execute("INSERT INTO t VALUES('x')")
    db.commit()
    db.close()


add("corrupt", corrupt)


def modular(path):
    """Makes a virtual table whose module exists only in the program that made it."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA writable_schema = 1")
    db.execute("INSERT INTO sqlite_schema VALUES('table', 't', 't', 0, 'CREATE VIRTUAL TABLE t USING frobnicator(a)')")
    db.commit()
    db.close()


add("modular", modular)
add("not-a-database", lambda path: path.write_bytes(b"this is a text file, and no database at all\n" * 200))
add("alien", alien)
vanished = add("vanished", lambda path: sqlite3.connect(path).close() or path.write_bytes(b""))
add("extremes", make_extremes)
service.driver.manager("Reload")
client = service.client()
other = service.client(UID_A if os.geteuid() == 0 else None)


def refused(name, sql, database="chinook", **keywords):
    """Fails unless every method that runs a query returns this error, and the other user is served; returns the failure."""
    failure = expect(name, client.query_rows, database, sql, **keywords)
    expect(name, lambda: client.query(database, sql, **keywords).read())
    expect(name, lambda: client.all_rows(database, sql, **keywords))
    other.point()
    return failure


@test
def unknown_database():
    """Unknown database"""
    expect("UnknownDatabase", client.manager, "GetDatabase", "(sa{sv})", "nosuch")
    expect("org.freedesktop.DBus.Error.UnknownObject", client.query, "nosuch", "SELECT 1")
    other.point()


@test
def handle_of_nothing():
    """An unreadable value is InvalidArgs, in each argument that takes one, and clients cannot fill the log with it"""
    nothing = GLib.Variant("h", 7)
    for options, parameters in (({"x-mine": nothing}, []), ({"max-bytes": nothing}, []), ({}, [nothing])):
        try:
            client.database("chinook", "QueryRows", "(sava{sv}a{sv})", "SELECT ?", parameters, {}, options)
            raise AssertionError("it was taken")
        except Failure as failure:
            true(failure.name.endswith((".InvalidArgs", ".InvalidOption", ".ParameterType")), str(failure))
    true("failed" not in service.log_text(), service.log_text())
    other.point()


@test
def statement_of_another_client():
    """Statements and runs of another client, and numbers that never existed"""
    statement = client.prepare("chinook", "SELECT * FROM Track")
    run = statement.fetch()
    for number in (statement.number, 1, 0, 2**53, 2**64 - 1):
        expect("UnknownStatement", other.finalize, "chinook", number)
        expect("UnknownStatement", other.database, "chinook", "Fetch", "(tava{sv}a{sv})", number, [], {}, {})
    for number in (run.number, 1, 2**64 - 1):
        expect("UnknownRun", other.cancel, "chinook", number)
        expect("UnknownRun", other.next_rows, "chinook", number)
    equal(len(run.read().rows), 3503, "rows of the run that others tried to cancel")
    statement.close()
    other.point()


@test
def statement_on_another_database():
    """A statement belongs to the object that it was prepared on"""
    statement = client.prepare("chinook", "SELECT 1")
    expect("UnknownStatement", client.finalize, "extremes", statement.number)
    statement.close()


@test
def finalized_statement():
    """Finalized statement, ended run"""
    statement = client.prepare("chinook", "SELECT 1")
    run = statement.fetch()
    run.read()
    client.cancel("chinook", run.number)
    statement.close()
    expect("UnknownStatement", client.finalize, "chinook", statement.number)
    expect("UnknownStatement", statement.fetch)
    expect("UnknownRun", client.cancel, "chinook", run.number)
    other.point()


@test
def reader_that_closed_its_pipe():
    """Fetch after the read end was closed is PipeClosed"""
    statement = client.prepare("chinook", "SELECT 1")
    client.drop(statement.pipe)
    expect("PipeClosed", statement.fetch)
    client.finalize("chinook", statement.number)
    other.point()


@test
def busy_statement():
    """Fetch while the last run goes on is Busy"""
    statement = client.prepare("chinook", "SELECT * FROM Track a, Track b")
    run = statement.fetch()
    expect("Busy", statement.fetch)
    run.cancel()
    expect_cancelled(run)
    equal(len(client.query("chinook", "SELECT 1").read().rows), 1, "rows")
    statement.close()
    other.point()


def expect_cancelled(run):
    try:
        run.read()
    except Failure as failure:
        equal(failure.name, "org.sqlipc1.Error.Cancelled", "the end of a cancelled run")
        return
    raise AssertionError("a cancelled run came to its end")


@test
def sentence_for_glib():
    """GLib's clients, which expect only a message in an error, show it"""
    for method, signature, rest in (("Prepare", "(sa{sv})", ({},)), ("QueryRows", "(sava{sv}a{sv})", ([], {}, {}))):
        try:
            client.connection.call_sync(
                "org.sqlipc1", "/org/sqlipc1/database/chinook", "org.sqlipc1.Database", method,
                GLib.Variant(signature, ("SELECT nowhere FROM Track", *rest)), None, Gio.DBusCallFlags.NONE, -1, None,
            )
        except GLib.Error as error:
            true("no such column: nowhere" in error.message, error.message)
        else:
            raise AssertionError("no error")


@test
def invalid_sql():
    """The error for invalid SQL has the position"""
    failure = refused("Sql", "SELECT nothing FROM Track", options={"error-details": True})
    equal((failure.extended, failure.offset), (1, 7), "SQLite's code and offset")
    true("nothing" in failure.message, failure.message)
    failure = expect("Sql", client.prepare, "chinook", "SELECT nothing FROM Track", options={"error-details": True})
    equal((failure.extended, failure.offset), (1, 7), "SQLite's code and offset in Prepare's error")
    for sql in ("SELEC 1", "SELECT * FROM nosuch", "SELECT (", "\N{SNOWMAN}"):
        refused("Sql", sql)
    expect("Sql", client.prepare, "chinook", "SELEC 1")


@test
def error_of_the_first_step():
    """An error of the first step has SQLite's message and code, also if the statement was compiled before"""
    sql, options = "SELECT abs(-9223372036854775808 + 0 * AlbumId) FROM Album", {"error-details": True}
    for _ in range(3):
        failure = refused("Sql", sql, options=options)
        equal((failure.message, failure.extended), ("integer overflow", 1), "sentence and code")


@test
def empty_and_several_statements():
    """Nothing, comments only, several statements"""
    for sql in ("", " ", ";", "-- nothing", "/* nothing */ ;;"):
        refused("EmptyStatement", sql)
    for sql in ("SELECT 1; SELECT 2", "SELECT 1;; SELECT 2", "; SELECT 1; nonsense"):
        refused("SeveralStatements", sql)
    for sql in ("SELECT 1;", "SELECT 1; -- that was all", "SELECT 1 /* all */ ; ;  "):
        equal(client.query("chinook", sql).read().rows, [[1]], sql)


@test
def prepare_that_exhausts():
    """SQL that doubles at each of its levels is refused before it fills memory or time"""
    sql = (
        "WITH c0(x) AS (SELECT 1)"
        + "".join(f", c{n}(x) AS (SELECT x FROM c{n - 1} UNION ALL SELECT x FROM c{n - 1})" for n in range(1, 22))
        + " SELECT count(*) FROM c21"
    )
    for call in (client.prepare, client.query, client.query_rows):
        try:
            call("chinook", sql)
            raise AssertionError("it was compiled")
        except Failure as failure:
            # HeapMax= or PrepareTimeoutSec=, whichever this machine comes to first; test_quotas.py takes them one by one.
            true(failure.name.endswith((".OutOfMemory", ".TimedOut")), str(failure))
        other.point()
    client.point()


@test
def minutes_in_one_function():
    """A function that computes for minutes: its worker ends, the next query works, others are answered meanwhile"""
    sql = "SELECT instr(hex(zeroblob(450000)), hex(zeroblob(225000)) || 'b')"
    try:
        run = client.query("chinook", sql, options={"timeout-usec": 500000})
        other.point()
        run.read()
        raise AssertionError("it came to an end")
    except Broken:
        pass  # the worker was killed: END or ERROR cannot be written any more
    except Failure as failure:
        true(failure.name in ("org.sqlipc1.Error.TimedOut", "org.sqlipc1.Error.WorkerLost"), str(failure))
    other.point()
    client.point()


@test
def minutes_in_a_loop():
    """A loop that never ends: TimedOut at the run's timeout"""
    failure = refused(
        "TimedOut",
        "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
        options={"timeout-usec": 300000},
    )
    true(failure.message, "no sentence")


@test
def temporary_space():
    """A query that fills temporary space: LimitsExceeded, and the space is free again"""
    refused(
        "LimitsExceeded",
        """WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT 100000)
                          SELECT x, randomblob(1000) AS r FROM n ORDER BY r LIMIT 1 OFFSET 99998""",
    )
    client.point()


@test
def writes():
    """Writes of every kind, ATTACH, unsafe PRAGMAs, extensions"""
    for sql in (
        "INSERT INTO Genre(Name) VALUES('x')",
        "UPDATE Genre SET Name = 'x'",
        "DELETE FROM Genre",
        "DROP TABLE Genre",
        "CREATE TABLE t(a)",
        "CREATE INDEX i ON Genre(Name)",
        "ALTER TABLE Genre ADD x",
        "REINDEX",
        "VACUUM",
        "ANALYZE",
        "WITH x AS (SELECT 1) DELETE FROM Genre",
    ):
        try:
            refused("ReadOnly", sql)
        except AssertionError as problem:
            raise AssertionError(f"{sql}: {problem}") from None
    for sql in (
        "ATTACH '/etc/passwd' AS p",
        "VACUUM INTO '/tmp/x'",
        "PRAGMA writable_schema = 1",
        "PRAGMA temp_store_directory = '/tmp'",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT a",
        "SELECT load_extension('x')",
        "SELECT writefile('/tmp/x', 'y')",
    ):
        failure = None
        try:
            client.query_rows("chinook", sql)
        except Failure as problem:
            failure = problem
        true(failure, f"{sql} was allowed")
        kind = failure.name.rsplit(".", 1)[1]
        true(kind in ("ReadOnly", "NotAllowed", "MissingFunction", "NeedsPin"), f"{sql}: {failure}")
    other.point()


@test
def corrupt_file():
    """A corrupt file, and one that is no database"""
    refused("Corrupt", "SELECT sum(length(b)) FROM t", "corrupt")
    refused("Corrupt", "SELECT * FROM sqlite_schema", "not-a-database")
    client.point()


@test
def vanished_file():
    """A file that does not exist (any more)"""
    same_rows(client.query("vanished", "SELECT count(*) FROM sqlite_schema").read().rows, [[0]])
    vanished.unlink()
    refused("FileMissing", "SELECT count(*) FROM sqlite_schema", "vanished")
    true(not vanished.exists(), "the daemon made the file again")
    client.point()


@test
def missing_function_and_collation():
    """Functions, collations and modules that the daemon lacks, by name"""
    failure = refused("MissingFunction", "SELECT frobnicate(Name) FROM Track")
    true("frobnicate" in failure.message, failure.message)
    failure = refused("MissingCollation", "SELECT * FROM t ORDER BY a", "alien")
    true("klingon" in failure.message, failure.message)
    failure = refused("MissingModule", "SELECT * FROM t", "modular")
    true("frobnicator" in failure.message, failure.message)
    same_rows(client.query("alien", "SELECT a FROM t").read().rows, [[Text(b"x")]])


@test
def row_over_the_limit():
    """A row over RowSizeMax"""
    size = 1024 * 1024
    equal(
        client.query("chinook", f"SELECT length(x), x FROM (SELECT zeroblob({size - 4096}) AS x)").read().rows[0][0],
        size - 4096,
        "length",
    )
    refused("RowTooLarge", f"SELECT zeroblob({size + 1})")
    run = client.query("chinook", f"SELECT 1 AS x UNION ALL SELECT zeroblob({size + 1})")
    expect("RowTooLarge", run.read)


@test
def page_sizes():
    """Page sizes that are no power of two, too small, too large, of another type"""
    for size in (0, 1, 4095, 4097, 2048, 65535, 1048577, 2097152, 2**32 - 1):
        expect("InvalidOption", client.prepare, "chinook", "SELECT 1", {"page-size": size})
        expect("InvalidOption", client.query, "chinook", "SELECT 1", options={"page-size": size})
    for value in (GLib.Variant("s", "4096"), GLib.Variant("i", 4096), GLib.Variant("t", 4096)):
        expect("InvalidOption", client.prepare, "chinook", "SELECT 1", {"page-size": value})
    other.point()


@test
def page_versions():
    """Versions of pages: 0 and other types are refused; the service writes no later version than the client offers"""
    for value in (0, GLib.Variant("s", "1"), GLib.Variant("t", 1)):
        expect("InvalidOption", client.prepare, "chinook", "SELECT 1", {"page-version": value})
        expect("InvalidOption", client.query, "chinook", "SELECT 1", options={"page-version": value})
    for options in (None, {"page-version": 1}, {"page-version": 2**32 - 1}):
        equal(client.prepare("chinook", "SELECT 1", options).info["page-version"], 1, "Prepare")
        equal(client.query("chinook", "SELECT 1", options=options).info["page-version"], 1, "Query")
    expect("UnknownOption", client.query_rows, "chinook", "SELECT 1", options={"page-version": 1})
    other.point()


@test
def other_options():
    """Unknown options are refused by name, except extensions (x-); known options have a range"""
    word = GLib.Variant("s", "value")
    for call in (
        lambda o: client.prepare("chinook", "SELECT 1", o),
        lambda o: client.query("chinook", "SELECT 1", options=o),
        lambda o: client.query_rows("chinook", "SELECT 1", options=o),
        lambda o: client.open_rows("chinook", "SELECT 1", options=o),
        lambda o: client.manager("ListDatabases", options=o),
        lambda o: client.manager("Reload", options=o),
        lambda o: client.manager("ListStatements", options=o),
        lambda o: client.manager("ListRuns", options=o),
    ):
        failure = expect("UnknownOption", call, {"frobnicate": word})
        true("frobnicate" in failure.message, failure.message)
        call({"x-frobnicate": word})
    statement, (run, _, _) = client.prepare("chinook", "SELECT 1"), client.open_rows("chinook", "SELECT 1")
    for call in (
        lambda o: client.database("chinook", "Fetch", "(tava{sv}a{sv})", statement.number, [], {}, o),
        lambda o: client.database("chinook", "NextRows", "(ta{sv})", run, o),
        lambda o: client.database("chinook", "Cancel", "(ta{sv})", run, o),
        lambda o: client.database("chinook", "Finalize", "(ta{sv})", statement.number, o),
        lambda o: client.manager("GetDatabase", "(sa{sv})", "chinook", options=o),
        lambda o: client.manager("CancelRun", "(ta{sv})", run, options=o),
    ):
        expect("UnknownOption", call, {"frobnicate": word})
    statement.close()
    for key, value in (
        ("timeout-usec", GLib.Variant("t", 0)),
        ("timeout-usec", GLib.Variant("u", 1)),
        ("max-bytes", GLib.Variant("u", 0)),
        ("max-bytes", GLib.Variant("u", 1048577)),
        ("max-bytes", GLib.Variant("s", "1")),
    ):
        expect("InvalidOption", client.query_rows, "chinook", "SELECT 1", options={key: value})
    expect("UnknownOption", client.query_rows, "chinook", "SELECT 1", options={"page-size": 4096})
    other.point()


@test
def text_that_dbus_refuses():
    """TEXT that no D-Bus string carries arrives as bytes, and column names and messages are made safe"""
    rows = client.query_rows("extremes", "SELECT value FROM extreme WHERE kind = 'odd text' ORDER BY id")[1]
    expected = client.query("extremes", "SELECT value FROM extreme WHERE kind = 'odd text' ORDER BY id").read().rows
    same_rows(rows, expected)
    equal(len(rows), 8, "rows")
    columns, rows, _ = client.query_rows("extremes", "SELECT * FROM odd_names")
    equal([name for name, _, _ in columns], ["plain", "a\ufffdb"], "names")
    equal([bytes(more.get("name-bytes", b"")) for _, _, more in columns], [b"", "a\ufdd0b".encode()], "their bytes")
    same_rows(rows, [[1, 2]])
    other.point()


@test
def sql_with_a_nul():
    """D-Bus itself carries no NUL in SQL; a statement in odd but valid Unicode is compiled"""
    equal(client.query("chinook", "SELECT '\U0001F600'").read().rows, [[Text("\U0001F600".encode())]], "row")


@test
def disk_of_temporary_files_is_full():
    """No space left for temporary files: NoSpace, and the next query works"""
    if os.geteuid() != 0 or LIBC.unshare(CLONE_NEWNS) != 0:
        raise Skip("needs root and a mount namespace, for a small file system")
    with Service({"chinook": CHINOOK}, start=False) as small:
        folder = small.data / "temporary"
        folder.mkdir()
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=1777", "tmpfs", folder], check=True)
        small.environment["SQLITE_TMPDIR"] = str(folder)
        small.start()
        one = small.client()
        failure = expect("NoSpace", lambda: one.query("chinook", SORT).read())
        true("temporary" in failure.message, failure.message)
        one.point()
        subprocess.run(["umount", "--lazy", folder], check=True)


@test
def worker_that_cannot_start():
    """A missing worker program: Internal; one that ends at once: WorkerLost. The service stays up"""
    for program, error, line in (
        ("/nonexistent/sqlipc-worker", "Internal", "Cannot start a worker"),
        ("/bin/false", "WorkerLost", "exited with status 1"),
    ):
        with Service({"chinook": CHINOOK}, environment={"SQLIPC_WORKER_PATH": program}) as lame:
            one = lame.client()
            for call in (one.prepare, one.query, one.query_rows, one.open_rows):
                failure = expect(error, call, "chinook", "SELECT 1")
                true("worker process" in failure.message, failure.message)
            true(lame.is_idle(), f"left behind: {lame.counters()}")
            equal(lame.log_text().count(line), 1, f"lines of the log: {line}")


@test
def wrong_method_arguments():
    """Wrong signatures and unknown methods are refused by the D-Bus standard errors"""
    expect("org.freedesktop.DBus.Error.InvalidArgs", client.database, "chinook", "Prepare", "(s)", "SELECT 1")
    expect("org.freedesktop.DBus.Error.UnknownMethod", client.database, "chinook", "Nosuch", "(a{sv})", {})
    other.point()


main(service)
