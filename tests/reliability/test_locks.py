#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Another program locks a database, writes to it all the time, changes its journal mode, its schema and its pages.

A reader waits for a lock until its deadline, and then gets Busy. It reads the state of exactly one commit. A writer finds
its locks and its files as it left them (I12).

usage: test_locks.py [--changes=N] [TEST]...
"""
import contextlib
import itertools
import sqlite3
import subprocess
import sys

import settled
from channel import Channel
from client import DATABASE, SECONDS, Failure, Text, object_path, rows_from_variant
from gi.repository import GLib
from harness import SANITIZED, Service, expect, locks, main, wait_for
from tap import cases, equal, test, true
from watching import Watch

CHANGES = 200 if SANITIZED else 1000
for argument in [a for a in sys.argv if a.startswith("--changes=")]:
    sys.argv.remove(argument)
    CHANGES = int(argument.split("=")[1])

SUM = "SELECT sum(v), count(*), min(n) = max(n) FROM account"
N_ACCOUNTS = 200
ALL_ROWS = "SELECT id, n, filler FROM account ORDER BY id"
# Moves sums about until its input ends; with each tenth transaction open it says so, and waits for a line.
WRITER = """
import select, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
n = 0
while not n or sys.stdin not in select.select([sys.stdin], [], [], 0)[0]:
    n += 1
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE account SET v = v + CASE id % 2 WHEN 0 THEN ? ELSE -? END, n = ?", (n, n, n))
    if n % 10 == 0:
        print("inside", flush=True)
        if not sys.stdin.readline().strip():
            break
    db.execute("COMMIT")
db.close()
"""
# Changes the schema so often: the name of the last column is what is in it.
CHANGER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
for n in range(int(sys.argv[2])):
    what = f"DROP COLUMN c{n - 1}" if n % 2 else f"ADD COLUMN c{n} DEFAULT 'c{n}'"
    db.execute(f"ALTER TABLE wide {what}")
db.close()
"""

LIMITS = {"WorkersMax": 2, "ParkTimeoutRollbackSec": 600, "WorkerIdleSec": 0.1, "PrepareTimeoutSec": 60}
service = Service(limits=LIMITS)
client = service.client()
paths = {}
count = 0


@contextlib.contextmanager
def database(mode, busy=20):
    """A fresh database, with a connection of its writer: name, path, connection."""
    name = f"{mode.lower()}{len(paths)}"
    path = paths[name] = service.data / f"{name}.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE account(id INTEGER PRIMARY KEY, v INTEGER, n INTEGER, filler TEXT)")
        db.executemany("INSERT INTO account VALUES(?, 0, 0, ?)", [(i, "x" * 9000) for i in range(N_ACCOUNTS)])
        service.limits(**LIMITS, BusyTimeoutSec=busy)
        service.database(name, Path=path)
        client.manager("Reload")
        rest = settled.settle(service, [path])
        yield name, path, db
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity")
        sums = [list(db.execute(SUM).fetchone())]
        settled.as_before(service, rest, [path], database=name, sql=SUM, answer=sums)


def ways(name):
    """Rows of a query over each transport, each time anew."""
    channel = Channel(client, name)
    with contextlib.closing(channel):
        yield lambda sql: client.query(name, sql).read().rows
        yield lambda sql: client.query_rows(name, sql)[1]
        yield channel.ask


def tried(n=1):
    global count
    count += n


def expect_all(name, outcome):
    """Over each transport: rows, or the error of that name."""
    for way in ways(name):
        if isinstance(outcome, str):
            expect(outcome, way, SUM)
        else:
            equal(way(SUM), outcome, "sums")
        tried()


def parked(name):
    run = client.query(name, ALL_ROWS)
    wait_for(lambda: service.counters()["NParked"] == 1, "the run parks")
    true(settled.held(service)["read transactions"] > 0, "a parked run reads, and no read transaction is seen")
    return run


def numbers_of(run):
    """The transaction that its rows are of."""
    rows = run.read().rows
    equal([row[0] for row in rows], list(range(N_ACCOUNTS)), "rows")
    equal({bytes(row[2]) for row in rows}, {b"x" * 9000}, "what stands in them")
    (n,) = {row[1] for row in rows}
    return n


@test
def exclusive_lock():
    """EXCLUSIVE lock, of a transaction and of a locking mode: Busy by the deadline, rows after its release"""
    with database("DELETE", busy=0.1) as (name, _, db):
        db.execute("BEGIN EXCLUSIVE")
        expect_all(name, "Busy")
        db.execute("COMMIT")
        expect_all(name, [[0, N_ACCOUNTS, 1]])
    with database("WAL", busy=0.1) as (name, path, db):
        expect_all(name, [[0, N_ACCOUNTS, 1]])
        wait_for(lambda: not service.workers(), "the worker goes")
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("UPDATE account SET n = 1")
        expect_all(name, "Busy")
        db.execute("PRAGMA locking_mode = NORMAL")
        db.execute("UPDATE account SET n = 2")
        expect_all(name, [[0, N_ACCOUNTS, 1]])


@test
def lock_that_goes():
    """An EXCLUSIVE lock that is released before the deadline: rows, and no error"""
    with database("DELETE") as (name, _, db):
        for _ in range(3):
            db.execute("BEGIN EXCLUSIVE")
            with contextlib.closing(Channel(client, name)) as channel:
                values = client.begin(object_path(name), DATABASE, "QueryRows", "(sava{sv}a{sv})", SUM, [], {}, {})
                asked = channel.query(SUM)
                wait_for(lambda: service.counters()["NRuns"] >= 1, "the query waits")
                db.execute("UPDATE account SET n = n + 1")
                true(not values.is_done(), "it did not wait")
                db.execute("COMMIT")
                equal(rows_from_variant(values.result()[1]), [[0, N_ACCOUNTS, 1]], "sums")
                equal(channel.read(asked).rows, [[0, N_ACCOUNTS, 1]], "sums on a channel")
            tried(2)


@test
def reserved_and_pending():
    """RESERVED: rows. PENDING, of a writer that waits for a parked run: that run gets rows, others are Busy"""
    with database("DELETE", busy=0.1) as (name, path, db):
        run = parked(name)
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE account SET n = 1")
        expect_all(name, [[0, N_ACCOUNTS, 1]])
        true(is_locked_out(db, "COMMIT"), "a writer committed under a reader")
        true(any(line.split()[-2] == "1073741824" for line in locks(path)), "no PENDING lock")
        for way in ways(name):
            # in the process of the parked run SQLite shares its lock; a new one waits for the writer
            try:
                equal(way(SUM), [[0, N_ACCOUNTS, 1]], "sums")
            except Failure as failure:
                equal(failure.name, "org.sqlipc1.Error.Busy", "error")
            tried()
        equal(numbers_of(run), 0, "the parked run's rows")
        db.execute("COMMIT")
        expect_all(name, [[0, N_ACCOUNTS, 1]])
        equal(numbers_of(client.query(name, ALL_ROWS)), 1, "rows now")


def is_locked_out(db, sql):
    try:
        db.execute(sql)
    except sqlite3.OperationalError as busy:
        return "locked" in str(busy)
    return False


@test
def writer_that_never_stops():
    """A writer that never pauses keeps its locks, readers read commits, and the file stays whole"""
    for mode in ("DELETE", "WAL"):
        with database(mode) as (name, path, db):
            with contextlib.closing(Channel(client, name)):
                pass
            writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                for _ in range(4 if SANITIZED else 15):
                    equal(writer.stdout.readline(), b"inside\n", "the writer")
                    key = path if mode == "DELETE" else f"{path}-shm"
                    mine = {line for line in locks(key) if line.split()[4] == str(writer.pid) and "WRITE" in line}
                    true(mine, "the writer has no lock")
                    sums = [way(SUM)[0] for way in ways(name)]
                    equal([[0, N_ACCOUNTS, 1]] * 3, sums, "sums")
                    still = {line.split(":", 1)[1] for line in locks(key)}
                    true({line.split(":", 1)[1] for line in mine} <= still, f"locks of the writer are gone: {mine}, {still}")
                    writer.stdin.write(b"on\n")
                    writer.stdin.flush()
                    for way in ways(name):
                        equal(way(SUM), [[0, N_ACCOUNTS, 1]], "sums while it writes")
                    tried(6)
            finally:
                writer.stdin.close()
                equal(writer.wait(SECONDS), 0, "the writer")
                writer.stdout.close()


@test
def checkpoints():
    """Each kind of checkpoint beside a parked run: its rows are of one commit, the next run's of the last one"""
    with database("WAL") as (name, _, db):
        for n, how in enumerate(("PASSIVE", "FULL", "RESTART", "TRUNCATE"), 1):
            run = parked(name)
            db.execute("UPDATE account SET n = ?", (n,))
            db.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
            for way in ways(name):
                equal({row[0] for row in way("SELECT n FROM account")}, {n}, f"{how}: rows")
                tried()
            equal(numbers_of(run), n - 1, f"{how}: the parked run's rows")
            wait_for(lambda: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0), "the log is free")


@test
def journal_modes():
    """The journal mode changes under prepared and other statements: rows of the last commit"""
    with database("DELETE") as (name, _, db):
        statement = client.prepare(name, "SELECT max(n) FROM account")
        for n, mode in zip(range(4 if SANITIZED else 8), itertools.cycle(("wal", "delete", "wal", "truncate"))):
            # only who is alone may leave WAL: once our worker went
            wait_for(lambda mode=mode: changed_to(db, mode), "the journal's mode changes")
            db.execute("UPDATE account SET n = ?", (n,))
            equal(statement.fetch().read().rows, [[n]], mode)
            for way in ways(name):
                equal(way("SELECT max(n) FROM account"), [[n]], mode)
            tried(4)
        statement.close()


def changed_to(db, mode):
    with contextlib.suppress(sqlite3.OperationalError):
        return db.execute(f"PRAGMA journal_mode = {mode}").fetchone() == (mode,)
    return False


@test
def vacuum():
    """VACUUM beside a parked run: in WAL mode the run gets its rows; otherwise the writer waits for it"""
    for mode in ("WAL", "DELETE"):
        with database(mode) as (name, _, db):
            for n in range(3):
                db.execute("UPDATE account SET n = ?", (n,))
                db.execute("PRAGMA user_version")
                run = parked(name)
                equal(is_locked_out(db, "VACUUM"), mode == "DELETE", "the writer waits")
                equal(numbers_of(run), n, "the parked run's rows")
                wait_for(lambda: not is_locked_out(db, "VACUUM"), "VACUUM")
                equal(numbers_of(client.query(name, ALL_ROWS)), n, "rows")
                tried(2)


@test
def schema_between():
    """The schema changes between prepare and fetch: new columns, a table dropped and created again, by each transport"""
    with database("DELETE") as (name, _, db), contextlib.closing(Channel(client, name)) as channel:
        db.execute("CREATE TABLE s(a)")
        db.execute("INSERT INTO s VALUES(0)")
        statement = client.prepare(name, "SELECT * FROM s")
        on_channel = channel.prepare("SELECT * FROM s")
        channel.statement(on_channel)
        fetches = (
            lambda: statement.fetch().read(),
            lambda: channel.read(channel.fetch(on_channel)),
        )
        for n in range(1, 6):
            db.execute(f"ALTER TABLE s ADD COLUMN c{n} DEFAULT {n}")
            for fetch in fetches:
                result = fetch()
                equal(result.rows, [list(range(n + 1))], "row")
                equal([bytes(c).decode() for c, _ in result.columns], ["a", *(f"c{i}" for i in range(1, n + 1))], "columns")
                tried()
            equal(client.all_rows(name, "SELECT * FROM s")[1], [list(range(n + 1))], "values")
        db.execute("DROP TABLE s")
        for fetch in fetches:
            expect("Sql", fetch)
        db.execute("CREATE TABLE s(x, y)")
        db.execute("INSERT INTO s VALUES(1, 2)")
        for fetch in fetches:
            equal(fetch().rows, [[1, 2]], "rows of the new table")
        tried(4)
        statement.close()


@test
def schema_in_a_race():
    """A thousand schema changes during queries: columns and rows always belong together"""
    for mode in ("DELETE", "WAL"):
        with database(mode) as (name, path, db), contextlib.closing(Channel(client, name)) as channel:
            db.execute("CREATE TABLE wide(id)")
            db.execute("INSERT INTO wide VALUES(1)")
            statement = client.prepare(name, "SELECT * FROM wide")
            on_channel = channel.prepare("SELECT * FROM wide")
            channel.statement(on_channel)
            results = (
                lambda: belongs(statement.fetch().read()),
                lambda: belongs(channel.read(channel.fetch(on_channel))),
                lambda: belongs(client.query(name, "SELECT * FROM wide").read()),
                lambda: belongs_values(*client.query_rows(name, "SELECT * FROM wide")[:2]),
            )
            n = 0
            while n < len(results):  # again if it was faster than these
                changer = subprocess.Popen([sys.executable, "-c", CHANGER, path, str(CHANGES // 4 * 2)])
                while changer.poll() is None:
                    results[n % len(results)]()
                    n += 1
                equal(changer.returncode, 0, "the changer")
            statement.close()
    tried(CHANGES)


# Each of these has FTS5 look at its shadow tables in another way.
WORDS = {
    "SELECT body FROM words WHERE words MATCH 'one' ORDER BY rank": [[Text(b"one two")]],
    "SELECT count(*) FROM words": [[2]],
    "SELECT highlight(words, 0, '<', '>') FROM words WHERE words MATCH 'two'": [[Text(b"one <two>")]],
    "SELECT rowid, body FROM words WHERE rowid = 2": [[2, Text(b"three")]],
}


def change_schema(db, n):
    """The statements of other programs that SQLite answers by reading the schema again, and with it FTS5 its tables."""
    for sql in (
        f"CREATE TABLE extra{n}(a)", f"ALTER TABLE account ADD COLUMN c{n}", "INSERT INTO words(words) VALUES('optimize')",
        f"DROP TABLE extra{n}",
    ):  # fmt: skip
        db.execute(sql)


def read_words(name, what, **options):
    for sql, rows in WORDS.items():
        if "highlight" in sql and name == "words-exposed":  # which has no auxiliary functions
            continue
        ways = (lambda: client.query(name, sql, options=options).read().rows,  # noqa: B023
                lambda: client.query_rows(name, sql, options=options)[1])  # noqa: B023
        for way in ways:
            try:
                equal(way(), rows, "rows")
            except (AssertionError, Failure) as error:
                raise AssertionError(f"{what}: {sql}: {error}") from error
            tried()


@test
def words_in_transactions():
    """The schema changes, twice, beside transactions that read FTS5 tables, on each kind of connection: none is refused"""
    with database("WAL") as (name, path, db):
        db.execute("CREATE VIRTUAL TABLE words USING fts5(body)")
        db.executemany("INSERT INTO words VALUES(?)", [("one two",), ("three",)])
        service.database("words-writable", Path=path, Mode="read-write", WriteSchema="yes")
        service.database("words-exposed", Path=path, Expose="words")
        service.database("words-limited", Path=path, Mode="read-write", WriteTables="account")
        client.manager("Reload")
        kinds = [(name, "read"), ("words-exposed", "read"), *((n, m) for n in ("words-writable", "words-limited")
                                                             for m in ("read", "deferred", "write"))]  # fmt: skip
        watches = [Watch(client, database=n, sql="SELECT body FROM words WHERE words MATCH 'one'") for n, _ in kinds]
        for n, (where, mode) in enumerate(kinds):
            for turn in range(3):  # The first one reads a schema that its connection has not seen.
                what = f"{where}, {mode}, {turn}"
                change_schema(db, 10 * n + 2 * turn)
                number = client.database(where, "Begin", "(a{sv})", {"mode": GLib.Variant("s", mode)})[0][0].get_uint64()
                inside = {"transaction": GLib.Variant("t", number)}
                if turn:
                    read_words(where, f"{what}, before", **inside)
                if mode != "write":  # which keeps other programs from writing
                    change_schema(db, 10 * n + 2 * turn + 1)
                read_words(where, f"{what}, within", **inside)
                client.database(where, "Commit", "(ta{sv})", number, {})
                change_schema(db, 10 * n + 2 * turn + 100)
                read_words(where, f"{what}, after")
        for watch in watches:
            true(watch.next() is not None, "a watch has ended")
            watch.end()
            watch.close()


def belongs(result):
    same_names([bytes(name) for name, _ in result.columns], result.rows)


def belongs_values(columns, rows):
    same_names([name.encode() for name, _, _ in columns], rows)


def same_names(names, rows):
    equal(rows, [[1, *map(Text, names[1:])]], f"the row of columns {names}")


@test
def counted():
    """The number of cases"""
    cases("locks", count, "a query, or a change of the schema, beside a program that locks, writes, checkpoints or vacuums")


main(service)
