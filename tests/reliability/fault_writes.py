# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of test_faults.py: statements that write, in two databases, "log" (WAL mode) and "journal".

Each statement writes rows with a number of its own. The Stage keeps how many of them there may be, and counts them when the
service has come to rest: all of them after a success, none after an error, and all or none if the outcome is unknown.
"""
import contextlib
import functools
import signal
import sqlite3

from fault_stage import check_failure, refused, scenario
from settled import send

from argument_files import call, file, statement
from channel import Channel
from client import DATABASE, Failure, GLib, Text, object_path
from harness import UID_A
from load_stream import begin_load, columns, rows, stream, wait_for_load
from load_stream import send as send_frames
from tap import equal, true

INSERT = "INSERT INTO note(number, text) VALUES (?1, ?2)"
MANY = """WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3000)
    INSERT INTO note(number, text) SELECT ?1, x FROM n RETURNING text, 'text to fill the pages'"""
LONG = "INSERT INTO note(number, text) VALUES (?1, zeroblob(500000)) RETURNING text"
BOTH = ("log", "journal")


def write(stage, database, function, n_rows=1):
    """The result of function(number), which writes so many rows with that number, or the Failure."""
    return finish(stage, database, *begin(stage, database, function, n_rows), n_rows)


def begin(stage, database, function, n_rows=1):
    """Calls function(number); returns the number, and a function for finish()."""
    number = stage.new_number()
    stage.expect(database, number, 0, n_rows)
    try:
        result = function(number)
    except Failure as failure:
        return number, functools.partial(fail, failure)
    return number, result if callable(result) else lambda: result


def fail(failure):
    raise failure


def finish(stage, database, number, read, n_rows=1):
    try:
        result = read()
    except Failure as failure:
        check_failure(failure)
        if not failure.name.endswith(".OutcomeUnknown"):
            stage.expect(database, number, 0)
        return failure
    stage.expect(database, number, n_rows)
    return result


def write_and_read(stage, database, function, n_rows):
    """As write(), of a function whose later calls (NextRows) may fail by themselves, which says nothing about the run."""
    number = stage.new_number()
    stage.expect(database, number, 0, n_rows)
    result = function(number)
    stage.expect(database, number, n_rows)
    return result


def all_right(results):
    """Raises the first Failure among them, after each was looked at."""
    for result in results:
        if isinstance(result, Failure):
            raise result
    return results


@scenario
def write_execute(stage, client):
    """Execute, of statements that succeed and of one that fails"""
    for database in BOTH:
        done = write(stage, database, lambda number: client.execute(database, INSERT, [number, "text"])[0])  # noqa: B023
        equal(all_right([done]), [1], "changes")
        equal(client.execute(database, "CREATE TABLE IF NOT EXISTS note(number)")[0], 0, "changes of a table that exists")
        refused(client.execute, database, "INSERT INTO note(id) VALUES (1)")


@scenario
def write_in_file(stage, client):
    """Execute and ExecuteBatch with SQL and parameters in a file, and a file that is not sealed"""

    def execute(number):
        with file(statement(INSERT, [number, "text"])) as fd:
            return call(client, database, "Execute", "(sava{sv}a{sv})", "", [], {}, fd=fd)

    def batch(number):
        with file(statement(INSERT, [number, "text"]) * 2) as fd:
            return call(client, database, "ExecuteBatch", "(a(sava{sv})a{sv})", [], fd=fd)

    for database in BOTH:
        all_right([write(stage, database, execute), write(stage, database, batch, 2)])
    with file(statement(INSERT, [1, "text"]), seals=0) as fd:
        refused(call, client, "log", "Execute", "(sava{sv}a{sv})", "", [], {}, fd=fd)


@scenario
def write_rows(stage, client):
    """RETURNING of more rows than a page holds, in each way"""
    rows = [[i + 1, Text(b"text to fill the pages")] for i in range(3000)]
    small = {"page-size": 4096}
    (result,) = all_right([write(stage, "log", lambda n: client.query("log", MANY, [n], options=small).read(), 3000)])
    equal((result.rows, result.end.n_changes), (rows, 3000), "rows and changes")
    result = write_and_read(stage, "log", lambda n: client.all_rows("log", MANY, [n])[1], 3000)
    equal(result, rows, "rows of replies")
    with contextlib.closing(Channel(client, "journal")) as channel:
        equal(all_right([write(stage, "journal", lambda n: channel.ask(MANY, n), 3000)]), [rows], "rows on a channel")
    (result,) = all_right([write(stage, "journal", lambda n: client.query("journal", LONG, [n], options=small).read())])
    equal(result.rows, [[bytes(500000)]], "a row longer than its page")


@scenario
def write_prepared(stage, client):
    """Prepare and Fetch of a statement that writes"""
    for database in BOTH:
        statement = client.prepare(database, INSERT)
        for _ in range(3):
            (result,) = all_right([write(stage, database, lambda n: statement.fetch(n, None).read())])  # noqa: B023
            equal(result.end.n_changes, 1, "changes")
        statement.close()


@scenario
def write_channel(stage, client):
    """A channel: several statements at once, one of which fails"""
    for database in BOTH:
        with contextlib.closing(Channel(client, database)) as channel:
            statement = channel.prepare(INSERT)
            equal(channel.statement(statement).read_only, False, "whether it only reads")

            def send(number):
                run = channel.fetch(statement, number, "text")  # noqa: B023
                return lambda: channel.read(run)  # noqa: B023

            before = [begin(stage, database, send) for _ in range(3)]
            wrong = channel.query("INSERT INTO note(id) VALUES (1)")
            after = [begin(stage, database, send) for _ in range(3)]
            results = [finish(stage, database, *one) for one in before]
            refused(channel.read, wrong)
            results += [finish(stage, database, *one) for one in after]
            equal([result.end.n_changes for result in all_right(results)], [1] * 6, "changes")


def executes(client, database):
    """For begin(): a call of Execute whose answer is read later."""

    def send(number):
        parameters = [GLib.Variant("x", number), GLib.Variant("s", "text")]
        call = client.begin(object_path(database), DATABASE, "Execute", "(sava{sv}a{sv})", INSERT, parameters, {}, {})
        return lambda: call.result()[0].get_int64()

    return send


@scenario
def write_together(stage, client):
    """Statements of one user that are committed together, and one that fails among them"""
    for database in BOTH:
        begun = [begin(stage, database, executes(client, database)) for _ in range(6)]
        refused(client.execute, database, "INSERT INTO note(id) VALUES (1)")
        equal(all_right([finish(stage, database, *one) for one in begun]), [1] * 6, "changes")


@scenario
def write_in_turns(stage, client):
    """Two users, whose workers pass the lease to each other"""
    other = stage.service.client(UID_A)
    with contextlib.closing(Channel(client, "log")) as channel:  # its worker keeps the lease
        for _ in range(3):
            mine = write(stage, "log", lambda n: channel.read(channel.query(INSERT, n, "text")))
            begun = [begin(stage, "log", executes(one, "log")) for one in (other, client, other)]
            equal(len(all_right([mine, *(finish(stage, "log", *one) for one in begun)])), 4, "statements")


@scenario
def write_counted(stage, client):
    """Two clients whose counts are their own, and a PRAGMA whose setting is told"""
    other = stage.service.client()
    for each, sql in ((client, INSERT), (other, INSERT.replace("?2", "changes() || ?2"))):
        all_right([write(stage, "log", lambda n: each.execute("log", sql, [n, "text"])[0])])  # noqa: B023
    equal(client.execute("log", "PRAGMA foreign_keys = ON")[1]["foreign-keys"], True, "the setting")
    equal(client.all_rows("log", "PRAGMA foreign_keys = ON")[1], [], "rows of a setting")
    other.close()
    stage.service.clients.remove(other)


@scenario
def write_to_locked_file(stage, client):
    """Another program writes to the file for longer than a statement waits"""
    with contextlib.closing(sqlite3.connect(stage.written["journal"], isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        failure = refused(client.execute, "hasty", "INSERT INTO note(text) VALUES ('text')")
        true(stage.armed or failure.name.endswith("Busy"), f"what a lock is: {failure}")
        writer.execute("ROLLBACK")
    done = write(stage, "journal", lambda number: client.execute("hasty", INSERT, [number, "text"])[0])
    equal(all_right([done]), [1], "changes")


@scenario
def write_worker_lost(stage, client):
    """A worker dies while a statement waits for the lock of another program: its reader learns that nothing was written"""
    number = stage.new_number()
    stage.expect("log", number, 0)
    with contextlib.closing(sqlite3.connect(stage.written["log"], isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        run = client.query("log", INSERT, [number, "text"])
        send(stage.service.workers(), signal.SIGKILL)
        failure = refused(run.read)
        true(stage.armed or failure.name.endswith("WorkerLost"), f"what the reader learns: {failure}")
        writer.execute("ROLLBACK")


# ---- Transactions ----


class Transaction:
    def __init__(self, client, database, mode):
        self.client, self.name = client, database
        values, _ = client.database(database, "Begin", "(a{sv})", {"mode": GLib.Variant("s", mode)})
        self.number = values[0].get_uint64()
        self.inside = {"transaction": GLib.Variant("t", self.number)}

    def execute(self, sql, *values):
        return self.client.execute(self.name, sql, values, options=self.inside)[0]

    def rows(self, sql):
        return self.client.query(self.name, sql, options=self.inside).read().rows

    def end(self, method):
        self.client.database(self.name, method, "(ta{sv})", self.number, {})


@scenario
def transaction_committed(stage, client):
    """A transaction of several statements, one of which fails, is committed"""

    def fill(number):
        t = Transaction(client, database, "write")
        equal(t.execute(INSERT, number, "text"), 1, "changes")
        refused(t.execute, "INSERT INTO note(id) VALUES (1)")
        equal(t.rows(f"SELECT count(*) FROM note WHERE number = {number}"), [[1]], "rows in the transaction")
        equal(t.execute(INSERT, number, "text"), 1, "changes")
        t.end("Commit")

    for database in BOTH:
        all_right([write(stage, database, fill, 2)])


ROW = (
    "INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)"
    "VALUES('table','{0}','{0}',0,'CREATE VIRTUAL TABLE {0} {1}')"
)


def made_by(sql):
    """The statements by which a module makes its tables."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute(sql)
        found = db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND rootpage <> 0").fetchall()
    return [one for one, in found]


DUMP = [
    "PRAGMA writable_schema = ON", ROW.format("box", "USING rtree(id, x0, x1)"),
    *made_by("CREATE VIRTUAL TABLE box USING rtree(id, x0, x1)"), "INSERT INTO box_node VALUES (1, zeroblob(1000))",
    ROW.format("old", "USING fts3(a)"), *made_by("CREATE VIRTUAL TABLE old USING fts3(a)"),
    ROW.format("word", "USING fts3tokenize(''simple'')"),
]  # fmt: skip


@scenario
def transaction_with_a_dump(stage, client):
    """Virtual tables of a dump are loaded and checked"""

    def fill(number):
        t = Transaction(client, "log", "write")
        for name in ("box", "old", "word"):
            t.execute(f"DROP TABLE IF EXISTS {name}")
        for sql in DUMP:
            t.execute(sql)
        equal(t.execute(INSERT, number, "text"), 1, "changes")
        t.end("Commit")

    all_right([write(stage, "log", fill)])


@scenario
def transaction_with_many_rows(stage, client):
    """A transaction that writes reads more rows than memory is for"""
    t = Transaction(client, "log", "write")
    sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 17) SELECT zeroblob(500000), x FROM n"
    equal([x for _, x in t.rows(sql)], list(range(1, 18)), "rows")
    t.end("Rollback")


@scenario
def transaction_rolled_back(stage, client):
    """Transactions that write: one is rolled back, one is left by its client, and one waits too long for another program"""
    number = stage.new_number()
    for database in BOTH:
        stage.expect(database, number, 0)
        t = Transaction(client, database, "write")
        t.execute(INSERT, number, "text")
        t.end("Rollback")
        refused(t.execute, INSERT, number, "text")
        Transaction(client, database, "write").execute(INSERT, number, "text")
    other = stage.service.client()
    Transaction(other, "log", "write").execute(INSERT, number, "text")
    other.close()
    stage.service.clients.remove(other)


@scenario
def transaction_that_reads(stage, client):
    """A snapshot that several statements read"""
    for database in BOTH:
        t = Transaction(client, database, "read")
        for _ in range(2):
            equal(t.rows("SELECT count(*) FROM note WHERE id > 1"), [[0]], "rows")
        refused(t.execute, INSERT, 0, "text")
        t.end("Commit")


@scenario
def transaction_that_reads_first(stage, client):
    """Transactions that make a savepoint and read before they write"""

    def fill(number):
        t = Transaction(client, database, "deferred")
        t.execute("SAVEPOINT before")
        equal(t.rows(f"SELECT count(*) FROM note WHERE number = {number}"), [[0]], "rows before it writes")
        equal(t.execute(INSERT, number, "text"), 1, "changes")
        t.execute("RELEASE before")
        t.end("Commit")

    for database in BOTH:
        all_right([write(stage, database, fill)])


@scenario
def transaction_listed(stage, client):
    """An administrator sees a transaction that is open"""
    t = Transaction(client, "log", "read")
    listed = client.manager("ListTransactions")[0]
    true(any(entry[0] == t.number for entry in listed), f"transactions: {listed}")
    t.end("Rollback")


# ---- Connections of clients' own ----


class Pin:
    """A pin, from its beginning or made of an open transaction; what runs on it names it."""

    def __init__(self, client, database, **options):
        self.client, self.name = client, database
        values, _ = client.database(database, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "pin")} | options)
        self.number = values[0].get_uint64()
        self.on = {"pin": GLib.Variant("t", self.number)}

    def execute(self, sql, *values, options=None):
        return self.client.execute(self.name, sql, values, options=options or self.on)[0]

    def rows(self, sql, options=None):
        return self.client.query(self.name, sql, options=options or self.on).read().rows

    def begin(self, mode):
        values, _ = self.client.database(self.name, "Begin", "(a{sv})", {"mode": GLib.Variant("s", mode)} | self.on)
        return values[0]

    def end(self, method="Rollback", number=None):
        self.client.database(self.name, method, "(ta{sv})", number.get_uint64() if number else self.number, {})


def keep_pins():
    """A list, and Pin(), which also appends to it. A pin that ends within write() could fail after the rows were written."""
    pins = []

    def make_pin(*arguments, **options):
        pins.append(Pin(*arguments, **options))
        return pins[-1]

    return pins, make_pin


@scenario
def pin_filled(stage, client):
    """A TEMP table is filled in each way, and lost with its pin; a table of the file has the same name"""
    for database in BOTH:
        number = stage.new_number()
        stage.expect(database, number, 0)
        refused(client.execute, database, "CREATE TEMP TABLE note(number, text)")
        pin = Pin(client, database)
        pin.execute("CREATE TEMP TABLE note(number, text, UNIQUE(text))")
        equal(pin.execute(INSERT, number, "text"), 1, "changes")
        refused(pin.execute, INSERT, number, "text")
        equal(client.execute_batch(database, [(INSERT, [number, "a"]), (INSERT, [number, "b"])], options=pin.on)[0], [1, 1],
              "changes")
        run, pipe = begin_load(client, database, INSERT, pin.on)
        try:
            send_what_is_taken(pipe, stream([[number, "c"], [number, "d"]]))
            equal(outcome_of_load(client, database, run), 2, "changes")
        finally:
            client.drop(pipe)
        prepared = client.prepare(database, "SELECT count(*) FROM note WHERE number = ?", options=pin.on)
        equal(prepared.fetch(number, options=pin.on).read().rows, [[5]], "rows of a prepared statement")
        prepared.close()
        for how, n in (("Rollback", 5), ("Commit", 6)):
            t = pin.begin("deferred")
            inside = {"transaction": t}
            equal(pin.execute(INSERT, number, "e", options=inside), 1, "changes")
            equal(pin.rows("SELECT count(*) FROM note", inside), [[6]], "rows in the transaction")
            pin.end(how, t)
            equal(pin.rows("SELECT count(*) FROM note"), [[n]], how)
        pin.end()
        refused(pin.execute, INSERT, number, "text")


@scenario
def pin_writes(stage, client):
    """Rows of a TEMP table are written to the file, by one statement and by a transaction"""

    def by_statement(number):
        pin = make_pin(client, database)
        pin.execute("CREATE TEMP TABLE new AS SELECT ? AS number, 'text' AS text", number)
        equal(pin.execute("INSERT INTO note(number, text) SELECT number, text FROM new"), 1, "changes")

    def by_transaction(number):
        pin = make_pin(client, database)
        pin.execute("CREATE TEMP TABLE new AS SELECT ? AS number, 'text' AS text", number)
        t = pin.begin("deferred")
        inside = {"transaction": t}
        equal(pin.rows(f"SELECT count(*) FROM note WHERE number = {number}", inside), [[0]], "rows before it writes")
        equal(pin.execute("INSERT INTO note(number, text) SELECT number, text FROM new", options=inside), 1, "changes")
        pin.end("Commit", t)

    pins, make_pin = keep_pins()
    for database in BOTH:
        all_right([write(stage, database, by_statement), write(stage, database, by_transaction)])
    for pin in pins:
        pin.end()


@scenario
def pin_of_a_transaction(stage, client):
    """Transactions that get a pin in their middle, before and after they write"""

    def fill(number):
        t = Transaction(client, database, mode)
        t.execute("SAVEPOINT before")
        if mode == "write":
            t.execute(INSERT, number, "text")
        else:
            equal(t.rows(f"SELECT count(*) FROM note WHERE number = {number}"), [[0]], "rows before it writes")
        make_pin(client, database, transaction=GLib.Variant("t", t.number))
        t.execute(f"CREATE TEMP TABLE new AS SELECT {number} AS number, 'text' AS text")
        t.execute("INSERT INTO note(number, text) SELECT number, text FROM new")
        t.end("Commit")

    pins, make_pin = keep_pins()
    for mode, n_rows in (("write", 2), ("deferred", 1)):
        for database in BOTH:
            all_right([write(stage, database, fill, n_rows)])
    for pin in pins:
        equal(pin.rows("SELECT text FROM new"), [[Text(b"text")]], "rows of the pin")
        pin.end()


@scenario
def pin_attaches(stage, client):  # noqa: ARG001
    """Another database is attached and read, also in a transaction; names that cannot be attached"""
    for database, other in (BOTH, BOTH[::-1]):
        pin = Pin(client, database)
        pin.execute("ATTACH ? AS x", other)
        for sql in ("ATTACH 'nothing' AS y", "ATTACH ':memory:' AS y", "INSERT INTO x.note(number) VALUES (1)"):
            refused(pin.execute, sql)
        equal(pin.rows("SELECT count(*) FROM x.note WHERE number < 0"), [[0]], "rows")
        t = pin.begin("write")
        inside = {"transaction": t}
        pin.execute("ATTACH ? AS y", other, options=inside)
        equal(pin.rows("SELECT count(*) FROM y.note WHERE number < 0", inside), [[0]], "rows in a transaction")
        pin.end("Commit", t)
        pin.execute("DETACH y")
        pin.end()


# ---- Many statements, or many rows, in one call ----


@scenario
def batch(stage, client):
    """ExecuteBatch, of statements that succeed and of one that fails after others"""
    for database in BOTH:

        def send_two(number):
            return client.execute_batch(database, [(INSERT, [number, "text"])] * 2)[0]  # noqa: B023

        equal(all_right([write(stage, database, send_two, 2)]), [[1, 1]], "changes")
        number = stage.new_number()
        stage.expect(database, number, 0)
        refused(client.execute_batch, database, [(INSERT, [number, "text"]), "INSERT INTO note(id) VALUES (1)"])


@scenario
def load(stage, client):
    """Load and Wait: rows that are written, rows of which one fails, and a load that its client cancels"""
    for database in BOTH:

        def load_all(number):
            return load_rows(client, database, stream([[number, "text"]] * 3000))  # noqa: B023

        equal(all_right([write(stage, database, load_all, 3000)]), [3000], "changes")
        refused(load_rows, client, database, stream([[2], [1]]), "INSERT INTO note(id) VALUES (?)")
    number = stage.new_number()
    stage.expect("log", number, 0)
    run, pipe = begin_load(client, "log", INSERT)
    try:
        send_what_is_taken(pipe, columns(2) + rows([[number, "text"]]))
        client.cancel("log", run)
        refused(wait_for_load, client, "log", run)
    finally:
        client.drop(pipe)


def load_rows(client, database, frames, sql=INSERT):
    run, pipe = begin_load(client, database, sql)
    try:
        send_what_is_taken(pipe, frames)
        return outcome_of_load(client, database, run)
    finally:
        client.drop(pipe)


def outcome_of_load(client, database, run):
    """The number of changes, or the load's Failure. A Wait that fails by itself leaves the outcome to the next one."""
    try:
        return wait_for_load(client, database, run)[0]
    except Failure as failure:
        try:
            return wait_for_load(client, database, run)[0]
        except Failure as second:
            raise failure if second.name.endswith(".UnknownRun") else second from None


def send_what_is_taken(pipe, frames):
    with contextlib.suppress(BrokenPipeError):  # Wait says why
        send_frames(pipe, frames)
