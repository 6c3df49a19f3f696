# SPDX-License-Identifier: LGPL-2.1-or-later
"""What clients do while one call of the service fails: each scenario is all that a client says, and what it must hear.

A scenario returns when everything was right, and raises Failure or Broken (client.py) at the first error that it is told. A
wrong value, or silence, is an AssertionError. Between them they reach every site of the supervisor and the worker, which
test_faults.py checks.
"""
import contextlib
import fcntl
import functools
import os
import select
import signal
import sqlite3
import time

import settled  # noqa: F401 - finds tests/bus
from channel import Channel
from client import DATABASE, ERROR, Broken, Client, Failure, GLib, Text, decode, object_path
from fake_polkit import FakePolkit
from harness import CHINOOK, UID_A, Service, wait_for
from tap import equal, true

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, 'text to fill the pages' FROM n"
SCAN = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
EXTRA = {"x-for-later": GLib.Variant("s", "is passed over")}
VALUES = [1, -(2**63), 2.5, Text(b"text\0with"), Text(b"\xff"), b"blob", None]
SEVEN = "SELECT ?, ?, ?, ?, ?, ?, ?"
TRACKS = "SELECT TrackId, Name FROM Track"
GRACE = 10  # silence is what these tests look for: it shall not take a minute

for method in (Client.raw, Client.database):
    method.__kwdefaults__["timeout"] = GRACE

scenarios = {}


def scenario(function):
    scenarios[function.__name__] = function
    return function


def refused(function, *arguments, **keywords):
    """It must be answered with an error of the service's own."""
    try:
        result = function(*arguments, **keywords)
    except Failure as failure:
        check_failure(failure)
        return failure
    raise AssertionError(f"got {str(result)[:200]}, expected an error")


def check_failure(failure):
    """An error that says what is wrong: neither silence, nor something else that is wrong."""
    true(not failure.name.startswith("local:"), f"no answer: {failure}")
    for wrong in ("NoReply", "UnknownMethod", "UnknownInterface", "ServiceUnknown", "Disconnected"):
        true(not failure.name.endswith("." + wrong), f"a wrong answer: {failure}")


def until_still(stage):
    """Until no run goes on without its reader."""
    wait_for(lambda: set(stage.service.states()) <= {"parked", "draining"}, "runs are parked", GRACE)


@functools.cache
def tracks():
    with contextlib.closing(sqlite3.connect(CHINOOK)) as db:
        db.text_factory = Text
        return [list(row) for row in db.execute(TRACKS)]


class Stage:
    """A service of the test builds, and the databases that the scenarios ask for."""

    def __init__(self, sqlipcd, worker, environment=None, **keys):
        self.service = Service(
            start=False,
            sqlipcd=sqlipcd,
            worker=worker,
            environment=environment,
            limits={
                "WorkerIdleSec": 0.02, "StatementsMax": 8, "RunsMax": 8, "ChannelsMax": 4, "TempSizeMax": "8M",
            },
            **keys,
        )  # fmt: skip
        self.armed = False
        data = self.service.data
        self.rollback, self.wal, self.hidden = data / "rollback.sqlite", data / "wal.sqlite", data / "hidden.sqlite"
        for path in (self.rollback, self.wal, self.hidden):
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
                if path == self.hidden:
                    db.execute("PRAGMA encoding = 'UTF-16le'")
                db.executescript(
                    "CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE UNIQUE);"
                    "CREATE TABLE book(title TEXT, author INT, price REAL, PRIMARY KEY(title, author)) WITHOUT ROWID;"
                    "CREATE VIEW priced AS SELECT title, price, name FROM book JOIN author ON id = author;"
                    "CREATE TABLE secret(x); INSERT INTO secret VALUES('not for you');"
                    "CREATE VIEW cast_view AS SELECT CAST(id AS TEXT) AS x FROM author;"
                    "CREATE VIEW overflow AS SELECT abs(-9223372036854775808 + id * 0) AS x FROM author;"
                    f"CREATE TABLE wide({', '.join(f'c{i}' for i in range(1999))}); INSERT INTO wide(c1994) VALUES(7);"
                    "INSERT INTO author VALUES(1, 'Ada'), (2, 'Grace');"
                    "INSERT INTO book VALUES('Notes', 1, 1.5), ('COBOL', 2, 2);"
                )
        self.asleep = data / "asleep.sqlite"  # in WAL mode, of another user, whose programs are all gone
        with contextlib.closing(sqlite3.connect(self.asleep, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("CREATE TABLE t(x)")
        os.chown(self.asleep, UID_A, UID_A)
        self.paths = [self.rollback, self.wal, self.hidden, CHINOOK]
        self.writer = sqlite3.connect(self.wal, isolation_level=None)  # stays: a reader needs its -shm
        self.writer.execute("PRAGMA journal_mode = WAL")
        self.writer.execute("INSERT INTO author VALUES(3, 'Edsger')")
        service = self.service
        service.database("chinook", Path=CHINOOK)
        service.database(
            "rollback",
            f"[Database]\nPath={self.rollback}\nAllowUsers=*\n[Limits]\nParkTimeoutRollbackSec=0.1\nBusyTimeoutSec=0.1\n",
        )
        service.database("wal", Path=self.wal)
        service.database("asleep", Path=self.asleep)
        service.database(
            "hidden", Path=self.hidden, Expose="author book priced cast_view overflow wide", AllowUsers="root daemon",
            AllowGroups="root",
        )  # fmt: skip
        service.database("asked", Path=CHINOOK, AllowUsers="root", Polkit="yes")

    def close(self, check=True):
        self.writer.close()
        self.service.close(check)


# ---- One query, in each way ----


def begins(run):
    """Its first frame is there; raises the failure, if it is that."""
    kind, _, data = run.frame()
    if kind == ERROR:
        decode([data])


@scenario
def prepare_fetch(stage, client):
    """A statement with values of all types, three times"""
    statement = client.prepare("chinook", SEVEN)
    for _ in range(3):
        equal(statement.fetch(*VALUES).read().rows, [VALUES], "rows")
    statement.close()


@scenario
def named(stage, client):
    """Parameters by name"""
    run = client.query("chinook", "SELECT :a, @b, $c", named={":a": 1, "@b": "two", "$c": None}, options=EXTRA)
    equal(run.read().rows, [[1, Text(b"two"), None]], "rows")
    name = "a_name_that_is_longer_than_what_takes_no_memory_" * 2
    many = ", ".join("?" for _ in range(80))
    equal(client.query("chinook", f"SELECT :{name}", named={name: 3}).read().rows, [[3]], "rows")
    equal(client.query("chinook", f"SELECT {many}", list(range(80))).read().rows, [list(range(80))], "rows")


@scenario
def bulk(stage, client):
    """Rows of many pages, read as they come"""
    equal(client.query("chinook", TRACKS, options={"page-size": 4096}).read().rows, tracks(), "rows")


@scenario
def slow_reader(stage, client):
    """A run that is parked until its reader goes on"""
    run = client.query("chinook", TRACKS + " UNION ALL " + TRACKS, options={"page-size": 4096})
    until_still(stage)
    equal(run.read().rows, tracks() * 2, "rows")


@scenario
def big_row(stage, client):
    """A row larger than its page, and columns larger than a page"""
    columns = ", ".join(f"{i} AS a_rather_long_name_of_a_column_{i}" for i in range(300))
    row = [bytes(100000), Text(b"x")]
    for sql, rows in (("SELECT zeroblob(100000), 'x'", [row]), (f"SELECT {columns}", [list(range(300))])):
        equal(client.query("chinook", sql, options={"page-size": 4096}).read().rows, rows, "rows")
    run = client.query("chinook", "SELECT zeroblob(900000)", options={"page-size": 1 << 18})
    until_still(stage)
    equal(run.read().rows, [[bytes(900000)]], "rows")


@scenario
def large_call(stage, client):
    """SQL of 200 kB, and a parameter of 400 kB: jobs that need a memory file"""
    sql = "SELECT length(?) /* " + "x" * 200000 + " */"
    equal(client.query("chinook", sql, (bytes(400000),)).read().rows, [[400000]], "rows")


@scenario
def query_rows(stage, client):
    """Rows as values of D-Bus"""
    _, rows, _ = client.query_rows("chinook", SEVEN, VALUES)
    equal(rows, [VALUES], "rows")
    _, rows, info = client.query_rows("chinook", TRACKS, options={"max-bytes": 8192})
    equal(rows, tracks()[: len(rows)], "rows")
    true(info.get("truncated"), "the rest is left out, and that is said")
    equal(client.query_rows("chinook", "SELECT zeroblob(2000000)")[1], [[bytes(2000000)]], "a large row")


@scenario
def rows_in_parts(stage, client):
    """OpenRows and NextRows, and one that is given up"""
    equal(client.all_rows("chinook", TRACKS, next_options={"max-bytes": 65536})[1], tracks(), "rows")
    run, _, _ = client.open_rows("chinook", ENDLESS)
    client.next_rows("chinook", run, {"max-bytes": 1000})
    client.cancel("chinook", run)
    refused(client.next_rows, "chinook", run)


@scenario
def waiting_rows(stage, client):
    """NextRows that waits for its row, cancelled; rows of a run that fails in the middle"""
    run, _, _ = client.open_rows("chinook", SCAN.replace("SELECT count", "SELECT 1 UNION ALL SELECT count"))
    first = client.next_rows("chinook", run)[0]
    call = client.begin(object_path("chinook"), DATABASE, "NextRows", "(ta{sv})", run, {})
    client.cancel("chinook", run)
    refused(call.result, GRACE)
    equal(first, [[1]], "rows before")
    failing = "SELECT x / 1, abs(x) FROM (SELECT 1 AS x UNION ALL SELECT -9223372036854775808)"
    run, _, _ = client.open_rows("chinook", failing)
    rows, more = [], True
    with contextlib.suppress(Failure):
        while more:
            some, more, _ = client.next_rows("chinook", run)
            rows += some
        raise AssertionError("a run that failed ended as if it had not")
    equal(rows in ([], [[1, 1]]), True, "rows before the failure")


# ---- Errors, limits, cancels ----


@scenario
def wrong(stage, client):
    """What is refused: SQL, options, numbers, parameters, objects"""
    for details in (False, True):
        refused(client.query, "chinook", "SELECT * FROM nowhere", options={"error-details": details})
        refused(client.prepare, "chinook", "SELECT 'unfinished", options={"error-details": details})
    refused(client.query, "chinook", "SELECT '\ufffd' FROM \"n\u00f6where\"")
    refused(client.prepare, "chinook", "SELECT 1", options={"no-such-option": GLib.Variant("b", True)})
    refused(client.prepare, "chinook", "SELECT 1", options={"page-size": GLib.Variant("h", 7)})
    refused(client.query, "chinook", "SELECT ?", (GLib.Variant("h", 7),))
    refused(client.query, "chinook", "DELETE FROM Artist")
    refused(client.query, "chinook", "SELECT ?", (1, 2))
    refused(client.query, "chinook", "SELECT :a", named={":b": 1})
    refused(client.cancel, "chinook", 17)
    refused(client.finalize, "chinook", 17)
    refused(client.next_rows, "chinook", 17)
    refused(client.query, "nowhere", "SELECT 1")
    refused(client.manager, "GetDatabase", "(sa{sv})", "nowhere")
    refused(client.manager, "CancelRun", "(ta{sv})", 17)


@scenario
def cancelled(stage, client):
    """A run whose reader stopped, cancelled; then the statement runs again"""
    statement = client.prepare("chinook", ENDLESS)
    for _ in range(2):
        run = statement.fetch()
        begins(run)
        run.cancel()
        refused(run.read)
    statement.close()


@scenario
def cancelled_computing(stage, client):
    """A run that computes, cancelled by its number, by root, and by a timeout of its own"""
    run = client.query("chinook", SCAN)
    run.cancel()
    refused(run.read)
    run = client.query("chinook", SCAN)
    stage.service.driver.manager("CancelRun", "(ta{sv})", run.number)
    refused(run.read)
    refused(client.query("chinook", SCAN, options={"timeout-usec": 30000}).read)


@scenario
def too_long_to_compile(stage, client):
    """A statement that is finalized while it is compiled; the worker does not heed that, and is killed"""
    deep = "SELECT 1 FROM " + ", ".join(f"(SELECT {i} AS x UNION SELECT 2 UNION SELECT 3)" for i in range(60))
    with contextlib.suppress(Failure):
        client.query("chinook", deep + " LIMIT 1", options={"timeout-usec": 50000}).read()


@scenario
def leaves(stage, client):
    """A client that leaves with a statement, a parked run, one that computes, a reader of rows and a channel"""
    client.prepare("chinook", "SELECT 1")
    client.query("chinook", ENDLESS).frame()
    client.query("chinook", SCAN)
    client.open_rows("chinook", ENDLESS)
    channel = Channel(client)
    channel.query(SCAN)
    client.close()
    channel.close()


@scenario
def closes_its_pipe(stage, client):
    """A reader that closes its pipe in the middle of a run"""
    run = client.query("chinook", ENDLESS)
    run.frame()
    run.close()
    wait_for(lambda: not stage.service.states(), "the run is over", GRACE)


@scenario
def keeps_its_pipe(stage, client):
    """A reader that keeps its end of a pipe when its statement is gone, for so long that the pipe is watched"""
    statement = client.prepare("chinook", "SELECT 1")
    client.finalize("chinook", statement.number)
    time.sleep(0.5)  # the timer before that is one of a quarter of a second's accuracy


@scenario
def pipe_that_grew(stage, client):
    """A reader that grows its end of the pipe at the service's cost"""
    statement = client.prepare("chinook", ENDLESS)
    run = statement.fetch()
    until_still(stage)
    fcntl.fcntl(statement.pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
    client.query("chinook", "SELECT 1").read()  # for its pipe those that there are are looked at
    if not stage.armed:
        equal(refused(run.read).name, "org.sqlipc1.Error.LimitsExceeded", "what became of the run")


@scenario
def fast_reader(stage, client):
    """A run that keeps filling its pipe, which grows"""
    run = client.query("chinook", f"SELECT * FROM ({ENDLESS}) LIMIT 60000")
    equal(run.counted()[1], 60000, "rows")


@scenario
def quotas(stage, client):
    """More statements and runs than one may have"""
    statements = [client.prepare("chinook", "SELECT 1") for _ in range(8)]
    refused(client.prepare, "chinook", "SELECT 1")
    for statement in statements:
        statement.close()
    runs = [client.query("chinook", ENDLESS) for _ in range(8)]
    for run in runs:
        begins(run)
    refused(client.query, "chinook", "SELECT 1")
    for run in runs:
        run.cancel()
        refused(run.read)


@scenario
def many_at_once(stage, client):
    """Jobs of several runs that compute, for which siblings are started"""
    calls = [
        client.begin(
            object_path("chinook"), DATABASE, "QueryRows", "(sava{sv}a{sv})",
            f"SELECT count(*) FROM ({ENDLESS} LIMIT 40000)", [], {}, {},
        )
        for _ in range(6)
    ]  # fmt: skip
    failures = []
    for call in calls:
        try:
            equal(call.result(GRACE)[1].unpack(), [[40000]], "rows")
        except Failure as failure:
            check_failure(failure)
            failures.append(failure)
    if failures:
        raise failures[0]


# ---- Files ----


@scenario
def job_socket_full(stage, client):
    """More jobs than the socket to the workers holds, while the one that there is stopped"""
    client.query("chinook", "SELECT 1").read()
    stopped = stage.service.workers()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        sql = "SELECT 5 /* " + "x" * 60000 + " */"
        calls = [
            client.begin(object_path("chinook"), DATABASE, "QueryRows", "(sava{sv}a{sv})", sql, [], {}, {}) for _ in range(8)
        ]
        client.manager("ListRuns")  # behind them, so all were read
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    failures = []
    for call in calls:
        try:
            equal(call.result(GRACE)[1].unpack(), [[5]], "rows")
        except Failure as failure:
            check_failure(failure)
            failures.append(failure)
    if failures:
        raise failures[0]


@scenario
def hidden_tables(stage, client):
    """Exposed tables and views, and what is not exposed"""
    rows = client.query("hidden", "SELECT title, name, price FROM priced WHERE price > 1.7 ORDER BY 1").read().rows
    equal(rows, [[Text(b"COBOL"), Text(b"Grace"), 2.0]], "rows of a view")
    rows = client.query("hidden", "SELECT id FROM author JOIN book ON author = id WHERE name IN ('ada', 'x')").read().rows
    equal(rows, [[1]], "rows of a join")
    marked = "SELECT id FROM author WHERE name = char(65279) || 'x'"
    equal(client.query("hidden", marked).read().rows, [], "rows of a search for a byte order mark")
    refused(client.query, "hidden", "SELECT * FROM secret")
    refused(client.query, "hidden", "EXPLAIN SELECT 1")
    equal(client.query("hidden", "SELECT x FROM cast_view").read().rows, [[Text(b"1")], [Text(b"2")]], "rows of a cast")
    equal(client.query("hidden", "SELECT c1994 FROM wide").read().rows, [[7]], "rows of a wide table")
    refused(lambda: client.query("hidden", "SELECT rowid FROM priced").read())
    refused(lambda: client.query("hidden", "SELECT * FROM overflow").read())


@scenario
def wal_file(stage, client):
    """A file in WAL mode that a foreign program writes to"""
    statement = client.prepare("wal", "SELECT count(*), max(id) FROM author WHERE name <> 'nobody'")
    equal(statement.fetch().read().rows, [[3, 3]], "rows")
    stage.writer.execute("INSERT INTO author VALUES(4, 'Barbara')")
    try:
        equal(statement.fetch().read().rows, [[4, 4]], "rows")
    finally:
        stage.writer.execute("DELETE FROM author WHERE id = 4")


@scenario
def locked_file(stage, client):
    """A file that a writer locks for longer than a run waits, and then for less"""
    with contextlib.closing(sqlite3.connect(stage.rollback, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        failure = refused(lambda: client.query("rollback", "SELECT * FROM author").read())
        true(stage.armed or failure.name.endswith("Busy"), f"what a lock is: {failure}")
        call = client.begin(
            object_path("rollback"), DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT count(*) FROM author", [], {}, {}
        )
        writer.execute("ROLLBACK")
        equal(call.result(GRACE)[1].unpack(), [[2]], "rows")


@scenario
def reader_too_slow(stage, client):
    """A run that is parked for longer than a file in rollback mode allows"""
    run = client.query("rollback", ENDLESS.replace("FROM n", "FROM n CROSS JOIN author"))
    wait_for(lambda: set(stage.service.states()) <= {"draining"}, "the run is ended", GRACE)
    failure = refused(run.read)
    true(stage.armed or failure.name.endswith("ReaderTooSlow"), f"what became of the run: {failure}")


@scenario
def large_sort(stage, client):
    """A sort that needs temporary files, and more of them than it may"""
    sql = f"SELECT x, randomblob(100) AS y FROM ({ENDLESS} LIMIT 60000) ORDER BY y"
    failure = refused(lambda: client.query("chinook", sql).counted())
    true(stage.armed or failure.name.endswith("LimitsExceeded"), f"what became of the sort: {failure}")


@scenario
def missing_file(stage, client):
    """A file that is not there, one that is none, and one below a folder that is a link"""
    path = stage.service.data / "later.sqlite"
    stage.service.database("later", Path=path)
    client.manager("Reload")
    refused(client.query, "later", "SELECT 1 FROM sqlite_schema")
    path.symlink_to(CHINOOK)
    with contextlib.suppress(Failure):
        equal(client.query("later", "SELECT 1 FROM sqlite_schema LIMIT 1").read().rows, [[1]], "rows")
    path.unlink()
    refused(client.query, "asleep", "SELECT * FROM t")


# ---- Channels ----


@scenario
def channel(stage, client):
    """Requests of each kind on a channel"""
    with contextlib.closing(Channel(client)) as c:
        statement = c.prepare(SEVEN)
        equal(len(c.statement(statement).columns), 7, "columns")
        for _ in range(2):
            equal(c.read(c.fetch(statement, *VALUES)).rows, [VALUES], "rows")
        c.finalize(statement)
        refused(lambda: c.read(c.fetch(statement, *VALUES)))
        equal(c.ask("SELECT :x", named={":x": 5}), [[5]], "rows")
        refused(lambda: c.ask("SELECT * FROM nowhere"))
        equal(c.ask("SELECT zeroblob(100000)"), [[bytes(100000)]], "rows")
        equal(c.ask("SELECT length(?)", bytes(300000)), [[300000]], "rows")
        equal(c.ask(TRACKS), tracks(), "rows")


@scenario
def channel_pipelined(stage, client):
    """Many requests at once, some cancelled, of which none is answered out of turn"""
    with contextlib.closing(Channel(client)) as c:
        statements = [c.prepare(f"SELECT {i}, ?") for i in range(8)]
        runs = [c.fetch(statement, i) for i, statement in enumerate(statements)]
        endless = c.query(ENDLESS)
        c.cancel(endless)
        last = c.query("SELECT 'last'")
        for statement in statements:
            c.statement(statement)
        for i, run in enumerate(runs):
            equal(c.read(run).rows, [[i, i]], "rows")
        refused(c.read, endless)
        equal(c.read(last).rows, [[Text(b"last")]], "rows")


@scenario
def channels_that_move(stage, client):
    """Channels whose worker computes for another one: somebody else serves them"""
    channels = [Channel(client) for _ in range(4)]
    statements = [c.prepare("SELECT ? + 1") for c in channels]
    for c, statement in zip(channels, statements):
        c.statement(statement)
    computing = [c.query(SCAN) for c in channels[:2]]
    time.sleep(0.02)
    for c, statement in zip(channels[2:], statements[2:]):
        equal(c.read(c.fetch(statement, 1)).rows, [[2]], "rows")
    for c, run in zip(channels, computing):
        c.cancel(run)
        refused(c.read, run)
    for c in channels:
        c.close()


@scenario
def channel_for_a_while(stage, client):
    """A channel that is quiet for so long that its worker says what it did, and works again"""
    with contextlib.closing(Channel(client)) as c:
        for i in range(3):
            equal(c.ask(f"SELECT {i}"), [[i]], "rows")
        wait_for(lambda: client.manager("ListChannels")[0][0][3]["total-runs"] == 3, "its runs are counted", GRACE)
        equal(c.ask("SELECT 2"), [[2]], "rows")


@scenario
def channels_of_two_databases(stage, client):
    """Channels on an exposed database and on one in WAL mode, one with a time limit"""
    with contextlib.closing(Channel(client, "hidden")) as one, contextlib.closing(Channel(client, "wal")) as two:
        equal(one.ask("SELECT count(*) FROM book"), [[2]], "rows")
        equal(two.ask("SELECT count(*) FROM author"), [[3]], "rows")
        refused(lambda: two.read(two.query(SCAN, timeout_usec=30000)))


@scenario
def channel_nonsense(stage, client):
    """A channel on which nonsense comes: it is closed"""
    with contextlib.closing(Channel(client)) as c:
        c.send(b"\xff" * 64)
        with contextlib.suppress(Broken):
            while True:
                c.frame()
    stage_is_quiet(stage)


@scenario
def channel_reader_stops(stage, client):
    """A channel whose client stops reading, and then goes on"""
    with contextlib.closing(Channel(client)) as c:
        runs = [c.query(TRACKS) for _ in range(8)]
        time.sleep(0.03)  # its worker parks it meanwhile; whether it did makes no difference to what must come
        for run in runs:
            equal(c.read(run).rows, tracks(), "rows")


@scenario
def channel_quota(stage, client):
    """More channels than one may have"""
    channels = [Channel(client) for _ in range(4)]
    refused(Channel, client)
    for c in channels:
        c.close()


def stage_is_quiet(stage):
    wait_for(stage.service.is_idle, "nobody has anything of the service", GRACE)


def runs_on_channels(client):
    return [more for _, _, _, more in client.manager("ListChannels")[0] if "sql" in more]


def is_readable(channel):
    return bool(select.select([channel.socket], [], [], 0)[0])


# ---- Administration ----


@scenario
def lists(stage, client):
    """Everything that can be looked at"""
    statement = client.prepare("chinook", ENDLESS)
    run = statement.fetch()
    rows, _, _ = client.open_rows("chinook", ENDLESS)
    with contextlib.closing(Channel(client)) as c:
        scan = c.query(SCAN)
        wait_for(lambda: runs_on_channels(client) or is_readable(c), "it runs, or was refused", GRACE)
        if is_readable(c):
            c.read(scan)
        for method in ("ListDatabases", "ListStatements", "ListRuns", "ListChannels", "ListClients"):
            client.manager(method)
        equal(len(client.manager("ListStatements")[0]), 1, "statements")
        path, _ = client.manager("GetDatabase", "(sa{sv})", "chinook")
        equal(path, object_path("chinook"), "path")
        client.manager("GetDatabase", "(sa{sv})", "chinook", options=EXTRA)
        client.properties("org.sqlipc1.Manager")
        client.properties(DATABASE, path)
        true("chinook" in client.introspect("/org/sqlipc1/database"), "databases are introspected")
        true("Prepare" in client.introspect(path), "methods are introspected")
    client.cancel("chinook", rows)
    run.cancel()
    refused(run.read)
    statement.close()


def expect_both(heard):
    """A signal is no answer: one that is lost is in the log, and for the client as if it had come too late."""
    try:
        wait_for(lambda: {"DatabaseAdded", "DatabaseRemoved"} <= {name for name, *_ in heard()}, "both are announced", GRACE)
    except AssertionError:
        raise Failure("not announced") from None


@scenario
def reload(stage, client):
    """A reload that adds and takes away, with names that are looked up"""
    heard = client.signals()
    users, groups = "daemon root nobody-of-that-name", "root bin"
    extra = stage.service.database("extra", Path=CHINOOK, AllowUsers=users, AllowGroups=groups)
    try:
        client.manager("Reload")
        client.query("extra", "SELECT 1").read()
        channel_to_it = Channel(client, "extra")
        equal(channel_to_it.ask("SELECT 1"), [[1]], "rows")
        extra.unlink()
        client.manager("Reload")
        expect_both(heard)
        wait_for(channel_to_it.is_closed, "its channel is closed", GRACE)
        channel_to_it.close()
    finally:
        with contextlib.suppress(FileNotFoundError):
            extra.unlink()


@scenario
def reload_of_a_mess(stage, client):
    """A reload of files that are wrong, and by signal"""
    path = stage.service.database("mess", text="[Database]\nPath=relative\nMode=sideways\n[What]\n\\x\n")
    nowhere, no_folder = path.with_name("nowhere.conf"), path.with_name("chinook.conf.d")
    nowhere.symlink_to("/nonexistent")
    no_folder.write_text("a file where a folder is expected")
    try:
        client.manager("Reload")
    finally:
        for file in (path, nowhere, no_folder):
            file.unlink()
        with contextlib.suppress(Failure):
            client.manager("Reload")
    os.kill(stage.service.pid(), signal.SIGHUP)
    client.manager("Reload")


@scenario
def log_level(stage, client):
    """The log's level and target, read and set"""
    path, interface = "/org/freedesktop/LogControl1", "org.freedesktop.LogControl1"

    def put(name, value, by=client):
        by.raw(path, "org.freedesktop.DBus.Properties", "Set", "(ssv)", interface, name, GLib.Variant("s", value))

    client.properties(interface, path)
    refused(put, "LogLevel", "loud")
    refused(put, "LogTarget", "printer")
    refused(put, "LogLevel", "debug", stage.service.client(UID_A))
    try:
        put("LogLevel", "debug")
        put("LogTarget", "journal")
        client.query("chinook", "SELECT 1").read()
    finally:
        for name, value in (("LogTarget", "auto"), ("LogLevel", "info")):
            with contextlib.suppress(Failure):
                put(name, value)


@scenario
def worker_killed(stage, client):
    """A worker that is killed under a run, a statement, a reader of rows and a channel"""
    statement = client.prepare("chinook", "SELECT 1")
    run = client.query("chinook", ENDLESS)
    run.frame()
    rows, _, _ = client.open_rows("chinook", ENDLESS)
    with contextlib.closing(Channel(client)) as c:
        c.ask("SELECT 1")
        for pid in stage.service.workers():
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(Failure, Broken):
            run.counted(GRACE)
            raise AssertionError("a run without an end ended")
        refused(lambda: [client.next_rows("chinook", rows) for _ in range(1000)])
        with contextlib.suppress(Failure, Broken):
            c.ask("SELECT 1")
    equal(statement.fetch().read().rows, [[1]], "a statement survives its worker")
    statement.close()


@scenario
def polkit(stage, client):
    """A database about which polkit is asked: yes, no, after a password, never"""
    def ask(one):
        return one.query_rows("asked", "SELECT ? WHERE length(?) = 4", (7, b"blob"))[1]

    with contextlib.closing(FakePolkit(stage.service.address, {"asked": "yes"})) as authority:
        stranger = stage.service.client(UID_A)
        equal(ask(stranger), [[7]], "rows")
        authority.rules["asked"] = ("challenge", "yes")
        authority.changed()
        stranger.manager("ListDatabases")
        stranger.manager("GetDatabase", "(sa{sv})", "asked")
        refused(ask, stranger)
        stranger.interactive = True
        equal(ask(stranger), [[7]], "rows")
        blob = stranger.query_rows("asked", "SELECT ?, ?", (b"blob", "text"))[1]
        equal(blob, [[b"blob", Text(b"text")]], "rows of a call that was put aside")
        stranger.interactive = False
        for answer in ("no", "error"):
            authority.rules["asked"] = answer
            authority.changed()
            refused(ask, stranger)
        authority.rules["asked"] = "hang"
        authority.changed()
        stranger.begin(object_path("asked"), DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT 1", [], {}, {})
        stranger.bus_call("GetId", "()")
        stranger.close()
