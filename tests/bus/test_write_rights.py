#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The matrix of rights to write: each kind of statement, under each right, over each way to send it, as real users.

A statement that is allowed must leave the file as SQLite itself would have, one that is refused must not touch it. To add a
way of sending, add a function to WAYS; to add an attack, add a row to STATEMENTS.
"""
import ast
import contextlib
import os
import re
import sqlite3
from collections import namedtuple

from channel import Channel
from client import DATABASE, Failure, GLib, object_path
from harness import PATIENCE, UID_A, UID_B, UID_DAEMON, Service, expect, main, needs_root, wait_for
from library import Library
from load_stream import begin_load, columns, rows, send, stream, wait_for_load
from tap import cases, equal, true

SCHEMA = """
CREATE TABLE author(id INTEGER PRIMARY KEY, name UNIQUE);
CREATE TABLE book(id INTEGER PRIMARY KEY, author REFERENCES author ON DELETE CASCADE ON UPDATE CASCADE, title);
CREATE TABLE log(what);
CREATE TABLE secret(id INTEGER PRIMARY KEY, x UNIQUE CHECK(x > 0));
CREATE TABLE numbered(id INTEGER PRIMARY KEY AUTOINCREMENT, x);
CREATE INDEX titles ON book(title);
CREATE VIEW names AS SELECT id, name FROM author;
CREATE VIEW hidden AS SELECT x FROM secret;
CREATE VIRTUAL TABLE words USING fts5(word);
CREATE VIRTUAL TABLE old USING fts4(word);
CREATE VIRTUAL TABLE place USING rtree(id, x0, x1);
CREATE TRIGGER noted AFTER INSERT ON author BEGIN INSERT INTO log VALUES('new ' || new.name); END;
CREATE TRIGGER changed AFTER UPDATE ON author BEGIN UPDATE secret SET x = x + 1 WHERE id = new.id; END;
CREATE TRIGGER into_names INSTEAD OF INSERT ON names BEGIN INSERT INTO author(name) VALUES(new.name); END;
CREATE TRIGGER of_names INSTEAD OF DELETE ON names BEGIN DELETE FROM author WHERE id = old.id; END;
CREATE TRIGGER into_hidden INSTEAD OF INSERT ON hidden BEGIN INSERT INTO secret(x) VALUES(new.x); END;
INSERT INTO author VALUES(1, 'first'), (2, 'second');
INSERT INTO book VALUES(1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c');
INSERT INTO secret VALUES(1, 10), (2, 20);
INSERT INTO numbered(x) VALUES(1);
INSERT INTO words VALUES('one'); INSERT INTO words VALUES('two');
INSERT INTO old VALUES('one'); INSERT INTO old VALUES('two');
INSERT INTO place VALUES(1, 2, 3);
"""
TABLES = "author names numbered words"  # WriteTables=

# ---- what may be sent ----

# What a statement needs: that its table is listed in WriteTables=, or another table, or the schema, or a table of SQLite's
# own; or a transaction that writes; or the schema, and no transaction; or nothing, because it does nothing. NEVER: no client
# may.
READ, LISTED, OTHER, CHANGE_SCHEMA, SYSTEM, NEVER = "read", "listed", "other", "schema", "system", "never"
TRANSACTION, ALONE, NOTHING = "transaction", "alone", "nothing"

# `sql` under the rights that allow it; `rows`: it returns rows, which Execute refuses.
Statement = namedtuple("Statement", "needs sql rows", defaults=(False,))

STATEMENTS = [
    Statement(READ, "SELECT name FROM names", True),
    Statement(READ, "WITH author AS (SELECT x FROM secret) SELECT * FROM author", True),
    Statement(READ, "PRAGMA user_version", True),
    # what is there, or not there, already
    Statement(NOTHING, "CREATE TABLE IF NOT EXISTS secret(other)"),
    Statement(NOTHING, "CREATE TABLE IF NOT EXISTS names(other)"),  # a view
    Statement(NOTHING, "CREATE VIEW IF NOT EXISTS hidden AS SELECT 1"),
    Statement(NOTHING, "CREATE INDEX IF NOT EXISTS titles ON secret(x)"),
    Statement(NOTHING, "CREATE TRIGGER IF NOT EXISTS noted AFTER INSERT ON author BEGIN DELETE FROM secret; END"),
    Statement(NOTHING, "CREATE VIRTUAL TABLE IF NOT EXISTS place USING rtree(id, x0, x1)"),
    Statement(NOTHING, "DROP TABLE IF EXISTS made"),
    Statement(NOTHING, "; /* perhaps */; drop view if exists main.made;"),
    Statement(NOTHING, "DROP INDEX IF EXISTS made"),
    Statement(NOTHING, "DROP TRIGGER IF EXISTS made"),
    Statement(NOTHING, "PRAGMA foreign_keys = 1"),
    Statement(NOTHING, "PRAGMA query_only = 0"),
    Statement(NOTHING, "PRAGMA synchronous = 0"),
    Statement(NOTHING, "PRAGMA auto_vacuum = 1"),
    Statement(READ, "PRAGMA optimize", True),
    Statement(READ, "PRAGMA defer_foreign_keys", True),
    Statement(READ, "PRAGMA busy_timeout = 5000", True),
    Statement(READ, "PRAGMA locking_mode = exclusive", True),
    Statement(READ, "PRAGMA journal_mode = delete", True),
    Statement(READ, "PRAGMA wal_checkpoint(truncate)", True),
    Statement(READ, "PRAGMA wal_autocheckpoint = 1", True),
    # rows of a table that WriteTables= names
    Statement(LISTED, "INSERT INTO author(name) VALUES('third')"),  # the trigger writes to log
    Statement(LISTED, "INSERT INTO author(name) SELECT title FROM book"),
    Statement(LISTED, "INSERT INTO author(name) VALUES('third') RETURNING id, (SELECT x FROM secret)", True),
    Statement(LISTED, "REPLACE INTO author VALUES(3, 'first')"),  # deletes another row, and by a foreign key its books
    Statement(LISTED, "INSERT INTO author VALUES(9, 'first') ON CONFLICT(name) DO UPDATE SET name = 'upserted'"),
    Statement(LISTED, "INSERT OR IGNORE INTO author(name) VALUES('first'), ('new')"),
    Statement(LISTED, "UPDATE author SET name = upper(name)"),  # the trigger writes to secret
    Statement(LISTED, "UPDATE author SET id = 7 WHERE id = 1"),  # the foreign key writes to book
    Statement(LISTED, "UPDATE author SET name = title FROM book WHERE book.id = 3 AND author.id = 2"),
    Statement(LISTED, "UPDATE OR REPLACE author SET name = 'second' WHERE id = 1"),
    Statement(LISTED, "UPDATE author SET name = 'x' WHERE id = 1 RETURNING *", True),
    Statement(LISTED, "DELETE FROM author WHERE id = 1"),  # the foreign key deletes books
    Statement(LISTED, "DELETE FROM author"),
    Statement(LISTED, "DELETE FROM author RETURNING name", True),
    Statement(LISTED, "WITH book AS (SELECT 'cte' AS a) INSERT INTO author(name) SELECT a FROM book"),
    Statement(LISTED, "WITH secret AS (SELECT 1 AS id) DELETE FROM author WHERE id IN (SELECT id FROM secret)"),
    Statement(LISTED, "INSERT INTO names(name) VALUES('by view')"),
    Statement(LISTED, "DELETE FROM names WHERE id = 1"),
    Statement(LISTED, "INSERT INTO numbered(x) VALUES(2)"),  # SQLite writes to sqlite_sequence
    Statement(LISTED, "INSERT INTO main.\"AUTHOR\"(name) VALUES('third')"),
    Statement(LISTED, "INSERT INTO words VALUES('three')"),
    Statement(LISTED, "INSERT INTO words(words) VALUES('optimize')"),
    Statement(LISTED, "UPDATE words SET word = 'x' WHERE word MATCH 'one'"),
    # rows of another table
    Statement(OTHER, "INSERT INTO secret(x) VALUES(1)"),
    Statement(OTHER, "INSERT INTO secret(x) SELECT id FROM author"),
    Statement(OTHER, "INSERT INTO main.\"Secret\"(x) VALUES(1) RETURNING x", True),
    Statement(OTHER, "REPLACE INTO secret VALUES(1, 20)"),
    Statement(OTHER, "INSERT INTO secret VALUES(1, 5) ON CONFLICT(id) DO UPDATE SET x = 6"),
    Statement(OTHER, "UPDATE secret SET x = 1 WHERE id = 1"),
    Statement(OTHER, "UPDATE secret AS author SET x = 1 WHERE id = 1"),
    Statement(OTHER, "UPDATE secret SET x = author.id FROM author WHERE author.id = secret.id"),
    Statement(OTHER, "DELETE FROM secret"),
    Statement(OTHER, "DELETE FROM secret WHERE id IN (SELECT id FROM place)"),  # rtree compiles SQL of its own meanwhile
    Statement(OTHER, "WITH author AS (SELECT 1) DELETE FROM secret"),
    Statement(OTHER, "WITH names AS (SELECT 3 AS x) INSERT INTO secret(x) SELECT x FROM names"),
    Statement(OTHER, "INSERT INTO hidden VALUES(3)"),  # the view must be listed
    Statement(OTHER, "DELETE FROM book WHERE author = 1"),
    Statement(OTHER, "INSERT INTO place VALUES(2, 3, 4)"),
    Statement(OTHER, "INSERT INTO old(old) VALUES('rebuild')"),
    Statement(OTHER, "/* INSERT INTO author */; DELETE FROM log; -- author"),
    # the schema, and the numbers and tables that are kept with it
    Statement(CHANGE_SCHEMA, "CREATE TABLE made(a)"),
    Statement(CHANGE_SCHEMA, "CREATE TABLE made AS SELECT * FROM secret"),
    Statement(CHANGE_SCHEMA, "CREATE INDEX made ON author(name)"),
    Statement(CHANGE_SCHEMA, "CREATE VIEW made AS SELECT 1"),
    Statement(CHANGE_SCHEMA, "CREATE TRIGGER made AFTER INSERT ON author BEGIN DELETE FROM secret; END"),
    Statement(CHANGE_SCHEMA, "CREATE VIRTUAL TABLE made USING fts5(a)"),
    Statement(CHANGE_SCHEMA, "ALTER TABLE author ADD COLUMN born"),
    Statement(CHANGE_SCHEMA, "ALTER TABLE author RENAME TO writer"),
    Statement(CHANGE_SCHEMA, "ALTER TABLE secret RENAME COLUMN id TO number"),
    Statement(CHANGE_SCHEMA, "ALTER TABLE log RENAME TO diary"),
    Statement(CHANGE_SCHEMA, "DROP TABLE log"),
    Statement(CHANGE_SCHEMA, "DROP TABLE secret"),
    Statement(CHANGE_SCHEMA, "DROP TABLE words"),
    Statement(CHANGE_SCHEMA, "DROP VIEW names"),
    Statement(CHANGE_SCHEMA, "DROP INDEX titles"),
    Statement(CHANGE_SCHEMA, "DROP TRIGGER noted"),
    Statement(CHANGE_SCHEMA, "ANALYZE"),
    Statement(CHANGE_SCHEMA, "ANALYZE author"),
    Statement(CHANGE_SCHEMA, "REINDEX"),
    Statement(CHANGE_SCHEMA, "REINDEX titles"),
    Statement(SYSTEM, "DELETE FROM sqlite_sequence"),
    Statement(SYSTEM, "UPDATE sqlite_sequence SET seq = (SELECT 5 FROM place)"),
    Statement(ALONE, "VACUUM"),
    Statement(ALONE, "; /* INTO 'x' */ vacuum/* author */\"main\";"),
    Statement(NOTHING, "VACUUM temp"),
    Statement(CHANGE_SCHEMA, "PRAGMA user_version = 7"),
    Statement(CHANGE_SCHEMA, "PRAGMA main.application_id(7)"),
    # nothing for clients
    Statement(NEVER, "UPDATE sqlite_schema SET sql = 'CREATE TABLE secret(x)' WHERE name = 'secret'"),
    Statement(NEVER, "INSERT INTO sqlite_master VALUES('table', 'a', 'a', 0, 'CREATE TABLE a(b)')"),
    Statement(NEVER, "DELETE FROM sqlite_schema"),
    Statement(NEVER, "DELETE FROM temp.sqlite_schema"),
    Statement(NEVER, "PRAGMA schema_version = 9"),
    Statement(NEVER, "PRAGMA ignore_check_constraints = 1"),
    Statement(TRANSACTION, "PRAGMA defer_foreign_keys = 1"),
    Statement(NEVER, "PRAGMA incremental_vacuum"),
    Statement(NEVER, "PRAGMA max_page_count = 1"),
    Statement(NEVER, "PRAGMA temp_store_directory = '/'"),
    Statement(NEVER, "INSERT INTO author(name) SELECT 'x' FROM pragma_optimize"),
    Statement(NEVER, "INSERT INTO pragma_user_version VALUES(7)"),
    Statement(NEVER, "SELECT optimize(old) FROM old LIMIT 1", True),  # FTS4 would write
    Statement(NEVER, "UPDATE author SET name = (SELECT optimize(old) FROM old) WHERE id = 1"),
    Statement(NEVER, "VACUUM INTO '@/stolen.sqlite'"),
    Statement(NEVER, "VACUUM; VACUUM INTO '@/stolen.sqlite'"),
    Statement(NEVER, "VACUUM; ATTACH '@/stolen.sqlite' AS a"),
    Statement(NEVER, "VACUUM main/**/INTO'@/stolen.sqlite'"),
    Statement(NEVER, "VACUUM author"),
    Statement(NEVER, "ATTACH '' AS vacuum_db"),
    Statement(NEVER, "; /* */ VACUUM INTO lower('@/stolen.sqlite')"),
    Statement(NEVER, "\ufeffVACUUM INTO '@/stolen.sqlite'"),
    Statement(NEVER, "ATTACH '@/stolen.sqlite' AS a"),
    Statement(NEVER, "DETACH main"),
    Statement(NEVER, "BEGIN IMMEDIATE"),
    Statement(NEVER, "COMMIT"),
    Statement(NEVER, "ROLLBACK"),
    Statement(NEVER, "RELEASE statement"),
    Statement(NEVER, "ROLLBACK TO statement"),
    Statement(NEVER, "UPDATE author SET name = load_extension('@/a.so')"),
    Statement(NEVER, "INSERT INTO author(name) VALUES(fts3_tokenizer('simple', x'00'))"),
    Statement(NEVER, "INSERT INTO words_data VALUES(1, x'00')"),  # a virtual table's own
    Statement(NEVER, "DELETE FROM old_content"),
    Statement(NEVER, "UPDATE place_node SET data = x'00'"),
    Statement(NEVER, "UPDATE sqlite_dbpage SET data = zeroblob(4096) WHERE pgno = 1"),
    Statement(NEVER, "DROP TABLE words_data"),
    Statement(NEVER, "DROP TABLE sqlite_sequence"),
    Statement(NEVER, "INSERT INTO author(name) VALUES('a'); DELETE FROM secret"),
]  # fmt: skip

# ---- who may send it ----

WRITER, READER, ROOT = UID_A, UID_B, None

# A user and the keys of a database beyond WriteUsers=; `may`: the needs that are met.
Right = namedtuple("Right", "uid keys may")

WRITES = {"Mode": "read-write"}
RIGHTS = {
    "reader": Right(READER, WRITES, {READ}),
    "reader-beside-schema": Right(READER, WRITES | {"WriteSchema": "yes"}, {READ}),
    "read-only": Right(ROOT, {}, {READ}),
    "rows": Right(WRITER, WRITES, {READ, LISTED, OTHER}),
    "tables": Right(WRITER, WRITES | {"WriteTables": TABLES}, {READ, LISTED}),
    "schema": Right(WRITER, WRITES | {"WriteSchema": "yes"}, {READ, LISTED, OTHER, CHANGE_SCHEMA, SYSTEM}),
    "tables-schema": Right(
        WRITER, WRITES | {"WriteSchema": "yes", "WriteTables": TABLES}, {READ, LISTED, CHANGE_SCHEMA}
    ),
    "root": Right(ROOT, WRITES | {"WriteTables": TABLES}, {READ, LISTED}),
}

# ---- how it is sent ----


def begin(client, mode, name="rows"):
    values, _ = client.database(name, "Begin", "(a{sv})", {"mode": GLib.Variant("s", mode)})
    return values[0].get_uint64()


def inside(transaction):
    return {"transaction": GLib.Variant("t", transaction)}


LITERAL = re.compile(r"'[^']*'|(?<=[ (])\d+\b")


def first_literal(sql):
    """Of a statement that changes rows; the others may have no parameter."""
    return LITERAL.search(sql) if sql.startswith(("INSERT", "REPLACE", "UPDATE", "DELETE", "WITH")) else None


class Sender:
    """A client of one database, and all that it needs to send a statement in each way."""

    def __init__(self, service, name):
        self.name, self.client = name, service.client(RIGHTS[name].uid)
        self.channel = Channel(self.client, name)
        self.library = Library(service, "channel", user=RIGHTS[name].uid)

    def close(self):
        self.channel.close()
        self.library.close()
        self.client.close()

    def execute(self, sql):
        self.client.execute(self.name, sql)

    def query(self, sql):
        self.client.query(self.name, sql).read()

    def query_rows(self, sql):
        self.client.query_rows(self.name, sql)

    def open_rows(self, sql):
        self.client.all_rows(self.name, sql)

    def fetch(self, sql):
        statement = self.client.prepare(self.name, sql)
        try:
            statement.fetch().read()
        finally:
            statement.close()

    def execute_batch(self, sql):
        self.client.database(self.name, "ExecuteBatch", "(a(sava{sv})a{sv})", [(sql, [], {})], {})

    def load(self, sql):
        """One row with the first literal of the statement; none if it has none."""
        literal = first_literal(sql)
        loaded = LITERAL.sub("?", sql, count=1) if literal else sql
        run, pipe = begin_load(self.client, self.name, loaded)
        send(pipe, stream([[ast.literal_eval(literal[0])]]))
        self.client.drop(pipe)
        wait_for_load(self.client, self.name, run)

    def in_transaction(self, sql):
        """In a transaction to write if the right allows one, else to read."""
        mode = "write" if RIGHTS[self.name].may & {LISTED} else "read"
        transaction = begin(self.client, mode, self.name)
        try:
            self.client.query(self.name, sql, options=inside(transaction)).read()
            self.client.database(self.name, "Commit", "(ta{sv})", transaction, {})
        except Failure:
            self.client.database(self.name, "Rollback", "(ta{sv})", transaction, {})
            raise

    def channel_query(self, sql):
        self.channel.ask(sql)

    def channel_fetch(self, sql):
        statement = self.channel.prepare(sql)
        self.channel.statement(statement)
        self.channel.read(self.channel.fetch(statement))
        self.channel.finalize(statement)

    def libsqlipc(self, sql):
        for line in (f"query {self.name} {sql}", "rows 0"):
            _, answer = self.library.ask(line)
            if answer.startswith("error"):
                raise Failure(answer.split(" ", 6)[5])


WAYS = [
    Sender.execute, Sender.execute_batch, Sender.load, Sender.query, Sender.query_rows,
    Sender.open_rows, Sender.fetch, Sender.in_transaction,
    Sender.channel_query, Sender.channel_fetch, Sender.libsqlipc,
]  # fmt: skip

# ---- the file ----


class File:
    """The database, as a program sees it that opens the file."""

    def __init__(self, path):
        self.path = path
        with contextlib.closing(sqlite3.connect(path)) as made:
            made.execute("PRAGMA journal_mode = wal")
            made.executescript(SCHEMA)
            self.origin = sqlite3.connect(":memory:")
            made.backup(self.origin)
        self.before = contents(self.origin)
        self.after = {}

    def open(self):
        self.db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        self.version = self._version()

    def close(self):
        self.db.close()
        self.origin.close()

    def _version(self):
        return self.db.execute("PRAGMA data_version").fetchone()

    def was_written(self):
        return self._version() != self.version

    def must_be(self, sql):
        """The contents that `sql` must leave."""
        if sql not in self.after:
            with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
                self.origin.backup(db)
                db.execute("PRAGMA foreign_keys = 1")
                try:
                    db.execute(sql).fetchall()
                except sqlite3.Warning:  # two statements, of which one is empty
                    db.executescript(sql)
                self.after[sql] = contents(db)
        return self.after[sql]

    def restore(self):
        self.db.execute("PRAGMA synchronous = 0")
        self.origin.backup(self.db)
        self.version = self._version()


def contents(db):
    """Schema, rows and numbers; of virtual tables their rows, not the tables that these are kept in."""
    schema = sorted(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall())
    names = [name for kind, name, *_ in schema if kind == "table"]
    inner = tuple(f"{name}_" for name in ("words", "old", "place", "made"))
    rows = {name: sorted(map(repr, db.execute(f'SELECT * FROM "{name}"'))) for name in names if not name.startswith(inner)}
    numbers = [db.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")]
    return schema, rows, numbers


# ---- the tests ----


@contextlib.contextmanager
def shared(name):
    """A service that publishes the file under the name of this right; service.file is the file."""
    with Service(uid=UID_DAEMON) as service:
        service.file = File(service.data / "shared.sqlite")
        os.chown(service.file.path, UID_DAEMON, UID_DAEMON)
        publish(service, name)
        service.file.open()
        try:
            yield service
        finally:
            service.file.close()


def publish(service, name, **keys):
    writers = {"WriteUsers": WRITER, "Synchronous": "normal"} if RIGHTS[name].keys else {}
    service.database(name, Path=service.file.path, **RIGHTS[name].keys, **writers | keys)
    service.driver.manager("Reload")


# Of a statement that no client may send. The library begins a pin for ATTACH, whose name is that of no database.
IMPOSSIBLE = {"NotAllowed", "NeedsPin", "Sql", "SeveralStatements", "UnknownDatabase"}


def wanted_of_load(statement):
    """It takes only INSERT, UPDATE and DELETE, and only with parameters."""
    if statement.needs in (CHANGE_SCHEMA, ALONE, NOTHING):
        return {"NotAllowed"}
    return set() if first_literal(statement.sql) else {"ParameterCount"}


def wanted(right, way, statement):
    """The error's names, of which one must come; none: it is carried out."""
    may = right.may | {NOTHING}
    only_writes = way in (Sender.execute_batch, Sender.load)
    executes = only_writes or way is Sender.execute
    needs = CHANGE_SCHEMA if statement.needs == ALONE else statement.needs
    if only_writes and not may & {LISTED}:
        return {"ReadOnly"}
    if statement.needs == ALONE and needs in may and way in (Sender.execute_batch, Sender.in_transaction):
        return {"Sql"}
    if executes and (needs == READ or (statement.rows and needs in may)):
        return {"NotAllowed"}
    if way is Sender.load and needs in may:
        return wanted_of_load(statement)
    if needs in may:
        return set()
    if LISTED in right.may and needs == TRANSACTION:
        return set() if way is Sender.in_transaction else {"NotAllowed"}
    if LISTED in right.may:
        return {"NotAllowed"} if needs != NEVER else IMPOSSIBLE
    if needs in (LISTED, OTHER):
        return {"ReadOnly"}
    return {"ReadOnly"} | IMPOSSIBLE


def try_one(service, sender, way, statement):
    right, file = RIGHTS[sender.name], service.file
    what = f"{sender.name}, {way.__name__}: {statement.sql}"
    names = wanted(right, way, statement)
    sql = statement.sql.replace("@", str(service.data))
    try:
        way(sender, sql)
        got = message = None
    except Failure as failure:
        message = str(failure)
        got = failure.name.removeprefix("org.sqlipc1.Error.")
    if got not in (names or {None}):
        raise AssertionError(f"{what}: got {message}, expected {names or 'no error'}")
    if names or statement.needs in (READ, NOTHING):
        true(not file.was_written(), f"{what}: the file was written")
    else:
        equal(contents(file.db), file.must_be(sql), f"{what}: contents")
        file.restore()


def try_all(name):
    with shared(name) as service, contextlib.closing(Sender(service, name)) as sender:
        for way in WAYS:
            for statement in STATEMENTS:
                try_one(service, sender, way, statement)
        left = sorted(path.name for path in service.data.iterdir())
        equal(left, ["shared.sqlite", "shared.sqlite-shm", "shared.sqlite-wal"], "files")
        equal(contents(service.file.db), service.file.before, "contents at the end")
        cases("statements that write", len(WAYS) * len(STATEMENTS), f"right: {name}")


LOCKED = "INSERT INTO log VALUES('from a client')"
LOADED = "INSERT INTO log VALUES(?)"


def is_locked(service):
    try:
        service.file.db.execute("PRAGMA busy_timeout = 0")
        service.file.db.execute("BEGIN IMMEDIATE")
        service.file.db.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return True
    return False


@contextlib.contextmanager
def writer_that_loses_its_right(service):
    """Inside, the file is locked, and nothing that waits to write is written; then the right is gone, and the lock, too."""
    file = service.file
    file.db.execute("BEGIN IMMEDIATE")
    yield
    publish(service, "rows", WriteUsers="root")
    file.db.execute("ROLLBACK")


@needs_root
def reload_while_writes_wait():
    """Statements that wait for their turn when a reload takes the right to write away are not carried out"""
    with shared("rows") as service:
        service.limits(BusyTimeoutSec=600)
        publish(service, "rows")
        client, path = service.client(WRITER), object_path("rows")
        channel, statement = Channel(client, "rows"), client.prepare("rows", LOCKED)
        arguments = ("(sava{sv}a{sv})", LOCKED, [], {}, {})
        with writer_that_loses_its_right(service):
            query, fetched = client.query("rows", LOCKED), statement.fetch()
            calls = [client.begin(path, DATABASE, method, *arguments) for method in ("Execute", "QueryRows", "OpenRows")]
            request = channel.query(LOCKED)
            wait_for(lambda: service.counters()["NRuns"] == 6, "all wait")
        for call in calls[:2]:
            expect("ReadOnly", call.result)
        for read in (query.read, fetched.read):
            expect("ReadOnly", read)
        expect("Busy", channel.read, request)  # on a channel it may have been a query
        equal(contents(service.file.db), service.file.before, "contents")
        for call in (client.execute, client.query_rows, client.prepare):
            expect("ReadOnly", call, "rows", LOCKED)
        true(channel.is_closed(), "the channel is closed")
        equal(client.query_rows("rows", "SELECT count(*) FROM log")[1], [[2]], "rows that it may read")


@needs_root
def reload_while_a_transaction_is_open():
    """An open transaction ends when its client loses a right, and goes on after another reload"""
    with shared("rows") as service:
        client = service.client(WRITER)
        transaction, reading = begin(client, "write"), begin(client, "read")
        equal(client.execute("rows", LOCKED, options=inside(transaction))[0], 1, "changes")
        publish(service, "rows", Description="new")
        equal(client.execute("rows", LOCKED, options=inside(transaction))[0], 1, "changes after a reload")
        equal(client.query_rows("rows", "SELECT count(*) FROM log", options=inside(reading))[1], [[2]], "rows it reads")
        publish(service, "rows", WriteUsers="root")
        expect("TransactionEnded", client.query, "rows", "SELECT 1", options=inside(transaction))
        expect("TransactionEnded", client.database, "rows", "Commit", "(ta{sv})", transaction, {})
        expect("TransactionEnded", client.query, "rows", "SELECT 1", options=inside(reading))
        expect("ReadOnly", client.execute, "rows", LOCKED)
        expect("ReadOnly", begin, client, "write")
        service.client(ROOT).execute("rows", "DELETE FROM log WHERE false")  # the lease was returned
        equal(contents(service.file.db), service.file.before, "contents")


@needs_root
def reload_while_loads_are_under_way():
    """Loads end when their client loses the right to write, alone or in a transaction, and nothing of them is written"""
    with shared("rows") as service:
        client = service.client(WRITER)
        silent, _ = begin_load(client, "rows", LOADED)
        alone, pipe = begin_load(client, "rows", LOADED)
        os.write(pipe, columns(1) + rows([["from a client"]]))
        wait_for(lambda: is_locked(service), "the load has begun to write")
        publish(service, "rows", Description="new")
        true(is_locked(service), "it goes on after another reload")
        publish(service, "rows", WriteUsers="root")
        for run in (alone, silent):
            expect("ReadOnly", wait_for_load, client, "rows", run)
        expect("ReadOnly", begin_load, client, "rows", LOADED)
        with contextlib.suppress(BrokenPipeError):  # no process has the other end
            while True:
                os.write(pipe, bytes(4096))
        equal(contents(service.file.db), service.file.before, "contents")
        publish(service, "rows")
        transaction = begin(client, "write")
        run, pipe = begin_load(client, "rows", LOADED, options=inside(transaction))
        os.write(pipe, columns(1) + rows([["from a client"]]))
        publish(service, "rows", WriteUsers="root")
        try:
            raise AssertionError(f"it ended with {wait_for_load(client, 'rows', run)}")
        except Failure as failure:  # its own cancellation, or that of the transaction
            true(failure.name.rpartition(".")[2] in ("ReadOnly", "TransactionEnded"), str(failure))
        expect("TransactionEnded", client.database, "rows", "Commit", "(ta{sv})", transaction, {})
        service.client(ROOT).execute("rows", "DELETE FROM log WHERE false")  # the lease was returned
        equal(contents(service.file.db), service.file.before, "contents")


@needs_root
def load_of_another_user():
    """A user who may only read cannot load, nor wait for the load of another user, nor cancel it"""
    with shared("rows") as service:
        client, other = service.client(WRITER), service.client(READER)
        expect("ReadOnly", begin_load, other, "rows", LOADED)
        run, pipe = begin_load(client, "rows", LOADED)
        expect("UnknownRun", wait_for_load, other, "rows", run)
        expect("UnknownRun", other.cancel, "rows", run)
        send(pipe, stream([["from a client"]]))
        equal(wait_for_load(client, "rows", run)[0], 1, "changes")
        equal(other.query_rows("rows", "SELECT count(*) FROM log")[1], [[3]], "rows that it may read")


def register(name):
    def one():
        try_all(name)

    one.__name__ = name.replace("-", "_")
    one.__doc__ = f"{len(STATEMENTS)} statements, each in {len(WAYS)} ways, with the right: {name}"
    needs_root(one)


for each in RIGHTS:
    register(each)


main()
