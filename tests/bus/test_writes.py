#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Statements that write, from the call to the row in the file: each way to send one, errors in the middle of a batch,
rights, and many writers at once beside readers and programs that open the file themselves.
"""
import contextlib
import shutil
import sqlite3
import subprocess
import sys
import time

from channel import Channel
from client import Failure, Text
from harness import PATIENCE, PATIENT, UID_A, UID_B, UID_DAEMON, expect, main, needs_root, wait_for
from library import Library, each_way
from tap import Skip, equal, test, true
from writers import DB, Book, Crowd, ask, numbers, writable

SCAN = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
UNIQUE = 2067  # SQLITE_CONSTRAINT_UNIQUE


@test
def execute():
    """Execute: the number of changes, and the row is in the file when the reply arrives"""
    for journal in ("wal", "delete"):
        with writable(journal) as service:
            client = service.client()
            for n in range(3):
                changes, more = client.execute(DB, "INSERT INTO written(number, t) VALUES (?, :text)", [n], {"text": "x"})
                equal((changes, more.get("last-rowid")), (1, n + 1), "changes and rowid")
                equal(numbers(service), list(range(n + 1)), "rows in the file")
            equal(client.execute(DB, "UPDATE written SET t = 'y' WHERE number > 0")[0], 2, "rows that were updated")
            equal(client.execute(DB, "DELETE FROM written WHERE number = 7")[0], 0, "rows that were deleted")
            expect("Sql", client.execute, DB, "INSERT INTO nothing VALUES (1)")
            expect("NotAllowed", client.execute, DB, "INSERT INTO written(number) VALUES (8) RETURNING id")
            expect("NotAllowed", client.execute, DB, "SELECT 1")
            expect("SeveralStatements", client.execute, DB, "DELETE FROM written; DELETE FROM written")
            equal(ask(service, "SELECT number, t FROM written"), [[0, "x"], [1, "y"], [2, "y"]], "rows")


@test
def much_is_replaced():
    """A statement that replaces more than TempSizeMax= says that it does; the same in parts works"""
    with writable(limits={"TempSizeMax": "4M", "WorkersMax": 1}) as service:
        client = service.client()
        fill = """INSERT INTO written(number, t) WITH RECURSIVE n(x) AS (
                  VALUES (1) UNION ALL SELECT x + 1 FROM n LIMIT 20000)"""
        equal(client.execute(DB, fill + " SELECT x, hex(zeroblob(400)) FROM n")[0], 20000, "rows")
        failure = expect("LimitsExceeded", client.execute, DB, "UPDATE written SET t = t || 'x'")
        true("change fewer rows at a time" in str(failure), f"it says: {failure}")
        for part in range(10):
            client.execute(DB, "UPDATE written SET t = t || 'x' WHERE (id - 1) / 2000 = ?", [part])
        equal(ask(service, "SELECT count(*), min(length(t)) FROM written"), [[20000, 801]], "rows")


@test
def execute_by_busctl():
    """Execute by busctl, which any administrator has"""
    if not shutil.which("busctl"):
        raise Skip("busctl is not installed")
    with writable() as service:
        command = ["busctl", f"--address={service.address}", "call", "org.sqlipc1", f"/org/sqlipc1/database/{DB}",
                   "org.sqlipc1.Database", "Execute", "sava{sv}a{sv}", "INSERT INTO written(number) VALUES (?), (?)",
                   "2", "x", "17", "x", "18", "0", "0"]  # fmt: skip
        done = service.run(*command)
        true(done.returncode == 0 and done.stdout.startswith(b"xa{sv} 2 "), f"busctl says {done.stdout + done.stderr}")
        equal(numbers(service), [17, 18], "rows")


@test
def query_returning():
    """Query with RETURNING: rows that were inserted, more than a page of them, and the changes at the end"""
    with writable() as service:
        client = service.client()
        sql = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 20000)"
        result = client.query(DB, f"{sql} INSERT INTO written(number) SELECT x FROM n RETURNING number, id").read()
        equal(result.rows, [[n, n] for n in range(1, 20001)], "rows")
        equal((result.end.n_changes, result.end.last_rowid), (20000, 20000), "changes and rowid")
        equal(numbers(service), list(range(1, 20001)), "rows in the file")
        result = client.query(DB, "DELETE FROM written WHERE number > 5").read()
        equal((result.columns, result.rows, result.end.n_changes), ([], [], 19995), "a statement without rows")
        equal(client.query(DB, "SELECT 1").read().end.n_changes, None, "changes of a query")


@test
def returned_too_late():
    """A reader that does not take the rows of RETURNING keeps no other writer waiting"""
    with writable("delete", limits=PATIENT) as service:
        sql = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 60000)"
        held = service.client().query(DB, f"{sql} INSERT INTO written(number) SELECT x FROM n RETURNING number, 'some text'")
        client = service.client()
        for n in range(20):
            equal(client.execute(DB, "INSERT INTO single VALUES (?)", [n])[0], 1, "changes")
        equal(held.counted()[1], 60000, "rows that are read at last")


@test
def fetch():
    """A prepared INSERT is run again and again, down one pipe"""
    with writable() as service:
        statement = service.client().prepare(DB, "INSERT INTO written(number) VALUES (?1)")
        equal((statement.columns, statement.info.get("readonly")), ([], False), "columns, and whether it only reads")
        for n in range(50):
            end = statement.fetch(n).read().end
            equal((end.n_changes, end.last_rowid, end.n_rows), (1, n + 1, 0), "changes, rowid, rows")
        equal(numbers(service), list(range(50)), "rows")


@each_way
def library(transport):
    """libsqlipc: prepared and one-shot statements"""
    with writable() as service, Library(service, transport) as library:
        library.ok(f"prepare {DB} INSERT INTO written(number) VALUES (?1)")
        for n in range(30):
            library.ok(f"bind 1 i {n}")
            library.ok("execute")
            equal(library.ask("rows 0"), ([], "end 0"), "rows")
        library.ok(f"query {DB} INSERT INTO written(number) VALUES (30) RETURNING number")
        equal(library.ask("rows 0"), ([[30]], "end 1"), "rows that are returned")
        library.ok(f"query {DB} DELETE FROM written WHERE number = 0")
        equal(library.ask("rows 0"), ([], "end 0"), "rows")
        equal(numbers(service), list(range(1, 31)), "rows in the file")


@test
def failure_in_the_middle():
    """Of many requests that are sent at once, those that fail change nothing, and no other is affected"""
    for journal in ("wal", "delete"):
        for clause in ("", " OR ROLLBACK", " OR FAIL"):
            with writable(journal) as service:
                channel = Channel(service.client(), DB)
                statement = channel.prepare(f"INSERT{clause} INTO single VALUES (?1)")
                channel.statement(statement)
                wanted = [n % 40 for n in range(100)]
                sent = [channel.fetch(statement, n) for n in wanted]
                for place, number in enumerate(sent):
                    if place < 40:
                        equal(channel.read(number).end.n_changes, 1, f"changes of request {place}")
                    else:
                        equal(expect("Sql", channel.read, number).extended, UNIQUE, f"error of request {place}")
                equal(ask(service, "SELECT n FROM single ORDER BY n"), [[n] for n in range(40)], f"rows,{clause} {journal}")
                channel.close()


@test
def part_of_a_statement():
    """A statement that fails at its third row leaves none of them"""
    with writable() as service:
        client = service.client()
        details = {"error-details": True}
        for call in (client.execute, lambda *values, **options: client.query(*values, **options).read()):
            error = expect("Sql", call, DB, "INSERT INTO single VALUES (1), (2), (1)", options=details)
            equal(error.extended, UNIQUE, "extended code")
            equal(ask(service, "SELECT * FROM single"), [], "rows")


NOT_ALLOWED = (
    "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "RELEASE a", "VACUUM",
    "PRAGMA foreign_keys = OFF", "PRAGMA case_sensitive_like = ON", "PRAGMA user_version = 7", "PRAGMA schema_version = 1",
    "PRAGMA writable_schema = 1", "CREATE TABLE a(b)", "DROP TABLE single",
    "CREATE VIEW a AS SELECT 1", "ALTER TABLE single ADD COLUMN b", "CREATE INDEX a ON single(n)", "REINDEX",
    "DELETE FROM sqlite_schema", "CREATE TRIGGER a AFTER INSERT ON written BEGIN SELECT 1; END",
)  # fmt: skip


@test
def not_allowed():
    """Transactions, settings, other files and the schema are not for clients; WriteTables= names tables"""
    with writable(WriteTables="written") as service:
        client = service.client()
        channel = Channel(client, DB)
        before = ask(service, "SELECT * FROM sqlite_schema")
        for sql in NOT_ALLOWED + ("INSERT INTO single VALUES (1)", "DELETE FROM single"):
            for call in (client.execute, client.query, client.prepare):
                name = failure_of(call, DB, sql).removeprefix("org.sqlipc1.Error.")
                equal(name, "NotAllowed", f"{call.__name__}: {sql}")
            equal(failure_of(channel.ask, sql), "org.sqlipc1.Error.NotAllowed", f"on a channel: {sql}")
        equal(client.execute(DB, "INSERT INTO written(number) VALUES (1)")[0], 1, "changes of the table that is named")
        equal(ask(service, "SELECT * FROM sqlite_schema"), before, "schema")
        equal((ask(service, "PRAGMA journal_mode"), ask(service, "PRAGMA user_version")), ([["wal"]], [[0]]), "settings")
        channel.close()


def failure_of(call, *arguments):
    """The error's name."""
    try:
        answer = call(*arguments)
        if hasattr(answer, "read"):
            answer = answer.read()
    except Failure as failure:
        return failure.name
    return f"no error: {answer}"


@test
def schema():
    """WriteSchema=yes: tables are made, changed and dropped; other workers and prepared statements see it"""
    with writable(WriteSchema="yes") as service:
        client = service.client()
        statement = client.prepare(DB, "SELECT * FROM single")
        for sql in ("CREATE TABLE made(a)", "ALTER TABLE single ADD COLUMN b DEFAULT 5", "CREATE INDEX i ON made(a)"):
            equal(client.execute(DB, sql)[0], 0, f"changes of {sql}")
        equal(client.execute(DB, "INSERT INTO made VALUES (1), (2)")[0], 2, "changes")
        equal(client.execute(DB, "INSERT INTO single(n) VALUES (4)")[0], 1, "changes")
        equal(statement.fetch().read().rows, [[4, 5]], "rows of a statement that was prepared before")
        client.execute(DB, "DROP TABLE made")
        expect("Sql", client.execute, DB, "INSERT INTO made VALUES (3)")


@needs_root
def without_the_right():
    """Users that WriteUsers= does not name read what the others write, and get ReadOnly"""
    with writable(uid=UID_DAEMON, WriteUsers=str(UID_A)) as service:
        writer, reader = service.client(UID_A), service.client(UID_B)
        sql = "INSERT INTO written(number) VALUES (1)"
        channel = Channel(reader, DB)
        for _ in range(2):
            for call in (reader.execute, reader.query, reader.prepare):
                equal(failure_of(call, DB, sql), "org.sqlipc1.Error.ReadOnly", f"error of {call.__name__}")
            equal(failure_of(channel.ask, sql), "org.sqlipc1.Error.ReadOnly", "error on a channel")
            equal(writer.execute(DB, sql)[0], 1, "changes")
            for other in (service.client(), service.client(UID_DAEMON)):
                equal(other.execute(DB, sql)[0], 1, "changes of root and of the service's user")
        equal(reader.query(DB, "SELECT count(*) FROM written").read().rows, [[6]], "rows that the reader sees")
        equal(channel.ask("SELECT count(*) FROM written"), [[6]], "rows on a channel")
        channel.close()


FOREIGN = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=100, isolation_level=None)
for n in range(int(sys.argv[3])):
    db.execute("INSERT INTO written(number) VALUES (?)", [int(sys.argv[2]) + n])
"""


def many(journal):
    limits = PATIENT | {"ChannelsMax": 64, "BusyTimeoutSec": 100}
    with writable(journal, uid=UID_DAEMON, limits=limits, WriteUsers=f"{UID_A} {UID_B}") as service:
        client = service.client(UID_B)
        client.execute(DB, "INSERT INTO single VALUES (1)")
        sql = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT x, (SELECT n FROM single) FROM n"
        stalled = client.query(DB, sql) if journal == "wal" else None  # with a rollback journal a reader keeps writers out
        ways = ["channel", "execute", "fetch", "library"]
        uids = (UID_A, UID_B, UID_DAEMON)
        book = Book(service.written)
        crowds = [Crowd(service, n + 1, ways, uids[n % 3], n_rows=25) for n in range(8)]
        foreign = [sys.executable, "-c", FOREIGN, str(service.written), str(1 << 60), "50"]
        with subprocess.Popen(foreign, user=UID_DAEMON, group=UID_DAEMON, extra_groups=[]) as process:
            for crowd in crowds:
                crowd.wait()
            equal(process.wait(PATIENCE), 0, "exit code of the program that opens the file")
        book.check(crowds)
        equal(book.outcomes, {"ok": 8 * 4 * 25}, "answers")
        book.close()
        equal(len(book.rows), 8 * 4 * 25 + 50, "rows")
        if stalled:
            stalled.cancel()
            expect("Cancelled", stalled.counted)


@test
def one_commit():
    """Channels that are opened after a write share its worker, because only one worker at a time can commit"""
    found = []  # again, since a worker that gets no CPU for 100 ms is taken for one that is stuck
    while 1 not in found and len(found) < 5:
        with writable() as service:
            client = service.client()
            held = []
            for n in range(6):
                held.append(Channel(client, DB))
                held[-1].ask("INSERT INTO single VALUES (?)", n)
            found.append(len({more["worker-pid"] for *_, more in client.manager("ListChannels")[0] if "worker-pid" in more}))
            equal(ask(service, "SELECT count(*) FROM single"), [[6]], "rows")
            for channel in held:
                channel.close()
    equal(found[-1], 1, "workers")


def places_of_reader(service):
    """Returns how many workers a writer and a reader have, before and after the reader has begun to write."""
    client = service.client()
    writer, reader = Channel(client, DB), Channel(client, DB)

    def n_workers():
        return len({more.get("worker-pid") for *_, more in client.manager("ListChannels")[0]})

    writer.ask("INSERT INTO single VALUES (-1)")
    for n in range(100):
        writer.ask("INSERT INTO single VALUES (?)", n)
        equal(reader.ask("SELECT count(*) FROM single"), [[n + 2]], "rows, which the reader must see at once")
    before = n_workers()
    for n in range(100, 110):
        writer.ask("INSERT INTO single VALUES (?)", n)
        reader.ask("INSERT INTO single VALUES (?)", -n)
    after = n_workers()
    equal(writer.ask("SELECT count(*) FROM single"), [[121]], "rows")
    writer.close()
    reader.close()
    return before, after


@test
def reader_beside_writer():
    """A channel that only reads leaves the worker that writes; when it writes, it returns to it"""
    found = []  # again, since a worker that gets no CPU for 100 ms is taken for one that is stuck
    while (2, 1) not in found and len(found) < 5:
        with writable() as service:
            found.append(places_of_reader(service))
    equal(found[-1], (2, 1), "workers before and after the reader wrote")


@needs_root
def many_writers():
    """32 writers of three users, a reader that stopped, and a program that opens the file: no error, each row once"""
    many("wal")


@needs_root
def many_writers_without_wal():
    """The same with a rollback journal, without the reader"""
    many("delete")


@needs_root
def computing_reader():
    """A query that computes in the worker that wrote last keeps no other user from writing"""
    with writable(uid=UID_DAEMON, WriteUsers=f"{UID_A} {UID_B}") as service:
        first, second = service.client(UID_A), service.client(UID_B)
        for _ in range(5):
            first.execute(DB, "INSERT INTO written(number) VALUES (1)")
            scan = first.query(DB, SCAN)
            wait_for(lambda: service.states() == ["running"], "it computes")
            for _ in range(10):
                equal(second.execute(DB, "INSERT INTO written(number) VALUES (2)")[0], 1, "changes")
            equal(service.states(), ["running"], "state of the query")
            scan.cancel()
            expect("Cancelled", scan.read)


@test
def right_removed():
    """A reload that removes the right: rows until then exist, later writes get ReadOnly, reading goes on"""
    with writable() as service:
        client = service.client()
        statement = client.prepare(DB, "INSERT INTO written(number) VALUES (?1)")
        channel = Channel(client, DB)
        insert = channel.prepare("INSERT INTO written(number) VALUES (?1)")
        channel.statement(insert)
        for n in range(0, 30, 3):
            client.execute(DB, "INSERT INTO written(number) VALUES (?)", [n])
            statement.fetch(n + 1).read()
            channel.read(channel.fetch(insert, n + 2))
        service.database(DB, Path=service.written, Mode="read-only")
        service.driver.manager("Reload")
        sql = "INSERT INTO written(number) VALUES (99)"
        for call in (client.execute, client.query, client.prepare):
            equal(failure_of(call, DB, sql), "org.sqlipc1.Error.ReadOnly", f"error of {call.__name__}")
        true(failure_of(lambda: statement.fetch(99).read()).startswith("org.sqlipc1.Error."), "a statement from before")
        with contextlib.closing(Channel(client, DB)) as another:
            equal(failure_of(another.ask, sql), "org.sqlipc1.Error.ReadOnly", "error on a new channel")
        true(channel.is_closed(), "the channel from before is open")
        equal(client.query(DB, "SELECT count(*) FROM written").read().rows, [[30]], "rows that the client sees")
        equal(numbers(service), list(range(30)), "rows in the file")
        service.database(DB, Path=service.written, Mode="read-write")
        service.driver.manager("Reload")
        equal(client.execute(DB, sql)[0], 1, "changes after the right is back")


if __name__ == "__main__":  # the processes of writers.py import this file, too
    main()
