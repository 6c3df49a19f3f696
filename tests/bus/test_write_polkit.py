#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""WritePolkit=yes: when polkit is asked about writing, when its user is, and which calls and channels its answers affect.

polkit is fake_polkit.py here; the system suite has the real one.
"""
import contextlib
import os
import sqlite3

from channel import Channel
from client import DATABASE, GLib, object_path, to_variant
from fake_polkit import FakePolkit
from harness import CHINOOK, UID_A, UID_B, UID_DAEMON, Service, expect, main, needs_root, wait_for
from library import Library
from tap import equal, true
from writers import DB, make_written

INTERACTIVE_REQUIRED = "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"
UNKNOWN_OBJECT = "org.freedesktop.DBus.Error.UnknownObject"
PROPERTIES = "org.freedesktop.DBus.Properties"
INSERT = "INSERT INTO written(number) VALUES (1)"
WRITE = f"{DB}/write"
EVERYBODY = {"AllowUsers": "*"}
NOT_NAMED = {"AllowUsers": "root", "Polkit": "yes"}


@contextlib.contextmanager
def published(**keys):
    """A service with the database of writers.py; service.written is its file."""
    with Service({"open": CHINOOK}, uid=UID_DAEMON, limits={"BusyTimeoutSec": 600, "RunTimeoutSec": 600}) as service:
        folder = service.data / "owned"
        folder.mkdir()
        service.written = make_written(folder / "written.sqlite", "wal")
        for path in (folder, service.written):
            os.chown(path, UID_DAEMON, UID_DAEMON)
        service.keys = {"Path": service.written, "Mode": "read-write", "WritePolkit": "yes"} | keys
        service.database(DB, **service.keys)
        service.driver.manager("Reload")
        yield service


@contextlib.contextmanager
def stage(rules, uid=UID_A, interactive=False, keys=EVERYBODY):
    """A service, its polkit, and a client."""
    with published(**keys) as service:
        fake, one = FakePolkit(service.address, rules), service.client(uid)
        one.interactive = interactive
        try:
            yield service, fake, one
        finally:
            one.close()
            fake.close()


def n_rows(service):
    with contextlib.closing(sqlite3.connect(service.written)) as db:
        return db.execute("SELECT count(*) FROM written").fetchone()[0]


def begin_execute(one):
    return one.begin(object_path(DB), DATABASE, "Execute", "(sava{sv}a{sv})", INSERT, [], {}, {})


def execute(one):
    return one.execute(DB, INSERT)


def execute_batch(one):
    return one.execute_batch(DB, [INSERT])


def begin_transaction(one, mode="write"):
    values, _ = one.database(DB, "Begin", "(a{sv})", {"mode": to_variant(mode)})
    return values[0].get_uint64()


def begin_to_write(one):
    one.database(DB, "Rollback", "(ta{sv})", begin_transaction(one), {})


def load(one):
    one.database(DB, "Load", "(sa{sv})", "INSERT INTO written(number) VALUES (?)", {})


FOR_WRITING = (execute, execute_batch, begin_to_write, load)


def begin_to_read(one):
    one.database(DB, "Rollback", "(ta{sv})", begin_transaction(one, "read"), {})


def use_channel(one):
    with contextlib.closing(Channel(one, DB)) as channel:
        channel.ask("SELECT 1")


FOR_ANYTHING = (
    lambda one: one.query(DB, "SELECT 1").read(),
    lambda one: one.query_rows(DB, "SELECT 1"),
    lambda one: one.prepare(DB, "SELECT 1").fetch().read(),
    lambda one: one.all_rows(DB, "SELECT 1"),
    begin_to_read,
    use_channel,
    lambda one: one.raw(object_path(DB), PROPERTIES, "Get", "(ss)", DATABASE, "Mode"),
)


def hangs(fake, n):
    wait_for(lambda: len(fake.open) == n, f"{n} questions hang")


@contextlib.contextmanager
def file_locked(service):
    """Another program writes to the file meanwhile."""
    with contextlib.closing(sqlite3.connect(service.written, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")


@needs_root
def granted():
    """Yes is asked for once, in the words of the interface, and kept for that client only, over each way to write"""
    with stage({WRITE: "yes"}) as (service, fake, one):
        for way in FOR_WRITING:
            way(one)
        (question,) = fake.questions
        equal(
            (question.kind, question.client, question.action, question.details, question.flags),
            ("system-bus-name", one.name(), "org.sqlipc1.write", {"database": DB}, 0),
            "question",
        )
        fake.forget()
        equal(one.query(DB, INSERT).read().end.n_changes, 1, "changes by Query")
        with contextlib.closing(Channel(one, DB)) as channel:
            equal(channel.info["readonly"], False, "readonly of a channel")
            channel.ask(INSERT)
        equal((fake.asked(), n_rows(service)), ([], 4), "further questions, and rows")
        fake.rules[WRITE] = "no"
        twin = service.client(UID_A)
        expect("ReadOnly", execute, twin)
        equal(fake.asked(), [(WRITE, False)], "questions about another client of the same user")
        twin.close()


@needs_root
def denied():
    """No means ReadOnly by each way to write, is kept, and reading goes on; the same without polkit, which is not kept"""
    with stage({}, interactive=True) as (service, fake, one):
        for way in FOR_WRITING:
            true("polkit" in expect("ReadOnly", way, one).message, "the sentence")
        for way in FOR_ANYTHING:
            way(one)
        with contextlib.closing(Channel(one, DB)) as channel:
            equal(channel.info["readonly"], True, "readonly of a channel")
            expect("ReadOnly", channel.ask, INSERT)
        expect("ReadOnly", one.query, DB, INSERT)
        equal(fake.asked(), [(WRITE, False)], "questions")
        fake.close()
        expect("ReadOnly", execute, one)
        one.query(DB, "SELECT 1").read()
        again = FakePolkit(service.address, {WRITE: "yes"})
        execute(one)
        equal(n_rows(service), 1, "rows once polkit is there")
        again.close()


@needs_root
def named_writers_are_not_asked_about():
    """polkit is asked about no writing of root, of the service's user and of WriteUsers=, nor of a read-only database"""
    with stage({}, uid=UID_B, keys=EVERYBODY | {"WriteUsers": UID_B}) as (service, fake, named):
        for one in (named, service.client(None), service.client(UID_DAEMON)):
            execute(one)
        other = service.client(UID_A)
        other.point("open")
        equal(fake.asked(), [], "questions")
        service.database(DB, **service.keys | {"Mode": "read-only"})
        service.driver.manager("Reload")
        expect("ReadOnly", execute, other)
        equal((fake.asked(), n_rows(service)), ([], 3), "questions, and rows")


@needs_root
def interaction():
    """The user is asked only by methods for writing that allow it, and only if polkit gives no answer without"""
    for way in FOR_WRITING:
        with stage({WRITE: ("challenge", "yes")}, interactive=True) as (service, fake, one):
            for other in FOR_ANYTHING:
                other(one)
            equal(fake.asked(), [(WRITE, False)], "questions of methods that may only read")
            one.interactive = False
            expect(INTERACTIVE_REQUIRED, way, one)
            equal(fake.asked(), [(WRITE, False)], "questions without interaction")
            with contextlib.closing(Channel(one, DB)) as channel:
                equal(channel.info["readonly"], True, "readonly of a channel")
                one.interactive = True
                way(one)
                true(channel.is_closed(), "the channel from before, which cannot write, is open")
            way(one)
            equal(fake.asked(), [(WRITE, False), (WRITE, True)], "questions with interaction")
            with contextlib.closing(Channel(one, DB)) as channel:
                equal(channel.info["readonly"], False, "readonly of a channel then")


@needs_root
def failed_authentication():
    """A user who fails to authenticate for writing is told so, can read, and may try again"""
    with stage({WRITE: ("challenge", "no")}, interactive=True) as (service, fake, one):
        expect("AccessDenied", execute, one)
        one.query(DB, "SELECT 1").read()
        fake.rules[WRITE] = ("challenge", "challenge")
        expect(INTERACTIVE_REQUIRED, execute, one)
        fake.rules[WRITE] = ("challenge", "error")
        expect("ReadOnly", execute, one)
        equal(n_rows(service), 0, "rows")
        fake.rules[WRITE] = ("challenge", "yes")
        execute(one)


@needs_root
def reading_first():
    """With Polkit=, too: both are asked together; who may not read is not asked to authenticate for writing"""
    with stage({DB: "no", WRITE: ("challenge", "yes")}, interactive=True, keys=NOT_NAMED) as (service, fake, one):
        expect(UNKNOWN_OBJECT, execute, one)
        equal(sorted(fake.asked()), [(DB, False), (WRITE, False)], "questions")
        expect(UNKNOWN_OBJECT, execute, one)
        equal(fake.asked(), [], "questions once the answer is known")
        fake.rules |= {DB: ("challenge", "yes")}
        fake.changed()
        execute(one)
        equal(sorted(fake.asked()[:2]), [(DB, False), (WRITE, False)], "questions without interaction")
        fake.rules |= {DB: ("challenge", "no")}
        fake.changed()
        expect("AccessDenied", execute, one)
        equal([q for q in fake.asked() if q[1]], [(DB, True)], "questions with interaction")
        equal(n_rows(service), 1, "rows")


@needs_root
def library():
    """libsqlipc has the user asked for each kind of statement that writes, if its program allows that, and sends it then"""
    for line, answer in (
        (f"exec {DB} {INSERT}", "changes 1"),
        (f"query {DB} {INSERT}", "ok"),
        (f"prepare {DB} {INSERT}", "ok"),
        (f"begin write {DB}", "ok"),
        (f"load {DB} INSERT INTO written(number) VALUES (?)", "ok"),
    ):
        for transport in ("auto", "channel"):
            with stage({WRITE: ("challenge", "no")}) as (service, fake, _), \
                    Library(service, transport=transport, user=UID_A) as one:
                true(one.failure(line)[1] in ("ReadOnly", INTERACTIVE_REQUIRED), line)
                one.ok("interactive 1")
                equal(one.failure(line)[1], "AccessDenied", f"{line} of a user who fails")
                fake.rules[WRITE] = ("challenge", "yes")
                equal(one.ask(line)[1], answer, line)
                equal([q for q in fake.asked() if q[1]], [(WRITE, True)] * 2, f"questions of {line}")


@needs_root
def changed_while_the_user_is_asked():
    """An answer about reading that is withdrawn while the user is asked about writing is asked for again"""
    with stage({DB: "yes", WRITE: ("challenge", "hang")}, interactive=True, keys=NOT_NAMED) as (service, fake, one):
        pending = begin_execute(one)
        hangs(fake, 1)
        fake.rules[DB] = "no"
        fake.changed()
        fake.answer("yes")
        expect(UNKNOWN_OBJECT, pending.result)
        equal(n_rows(service), 0, "rows")
    with stage({DB: ("challenge", "hang"), WRITE: "yes"}, interactive=True, keys=NOT_NAMED) as (service, fake, one):
        pending = begin_execute(one)
        hangs(fake, 1)
        fake.rules[WRITE] = "no"
        fake.changed()
        fake.answer("yes")
        expect("ReadOnly", pending.result)
        equal(n_rows(service), 0, "rows")


@needs_root
def held():
    """Calls wait for the answer about writing, and go on in their order; others, and other users, do not"""
    # Two workers may take calls that do not wait for each other, and change their order: the numbers keep it.
    with stage({WRITE: "hang"}) as (service, fake, one):
        mode = {"mode": to_variant("read")}
        pending = [one.begin(object_path(DB), DATABASE, "Begin", "(a{sv})", mode) for _ in range(3)]
        hangs(fake, 1)
        one.point("open")
        one.introspect(object_path("open"))
        equal([p.is_done() for p in pending], [False] * 3, "answered")
        fake.answer("yes")
        numbers = [p.result()[0].get_uint64() for p in pending]
        equal((numbers, len(fake.questions)), (sorted(numbers), 1), "transactions, and questions")


@needs_root
def vanished_client():
    """A question about writing of a client that left is withdrawn"""
    with stage({WRITE: ("challenge", "hang")}, interactive=True) as (service, fake, one):
        begin_execute(one)
        hangs(fake, 1)
        one.close()
        wait_for(lambda: len(fake.cancelled) == 1, "the question is taken back")
        equal(n_rows(service), 0, "rows")


@needs_root
def withdrawn():
    """Changed drops the answers about writing, for later calls, and for channels in both directions"""
    with stage({WRITE: "yes"}) as (service, fake, one):
        execute(one)
        channel = Channel(one, DB)
        fake.rules[WRITE] = "no"
        fake.changed()
        expect("ReadOnly", execute, one)
        true(channel.is_closed(), "the channel is open")
        channel.close()
        channel = Channel(one, DB)
        equal(channel.info["readonly"], True, "readonly")
        channel.ask("SELECT 1")
        fake.rules[WRITE] = "yes"
        expect("ReadOnly", execute, one)
        fake.changed()
        execute(one)
        with contextlib.closing(Channel(one, DB)) as another:
            another.ask(INSERT)
        equal(n_rows(service), 3, "rows")
        channel.close()


@needs_root
def withdrawn_while_calls_wait():
    """Calls and requests on channels that wait to write when the answer is dropped fail, and write nothing"""
    with stage({WRITE: "yes"}) as (service, fake, one):
        with file_locked(service), contextlib.closing(Channel(one, DB)) as channel:
            begin = ("Begin", "(a{sv})", {"mode": to_variant("write")})
            pending = [begin_execute(one), one.begin(object_path(DB), DATABASE, *begin)]
            number = channel.query(INSERT)
            wait_for(lambda: len(one.manager("ListRuns")[0]) == 2, "Execute and the request are under way")
            wait_for(lambda: len(one.manager("ListTransactions")[0]) == 1, "Begin is under way")
            fake.rules[WRITE] = "no"
            fake.changed()
            for call in pending:
                expect("Busy", call.result)
            expect("Busy", channel.read, number)
        expect("ReadOnly", execute, one)
        equal(n_rows(service), 0, "rows")


@needs_root
def withdrawn_from_a_transaction():
    """A transaction that is open when the answer is dropped ends, and is rolled back"""
    with stage({WRITE: "yes"}) as (service, fake, one):
        number = begin_transaction(one)
        one.execute(DB, INSERT, options={"transaction": GLib.Variant("t", number)})
        fake.changed()
        expect("TransactionEnded", one.database, DB, "Commit", "(ta{sv})", number, {})
        equal(n_rows(service), 0, "rows")


main()
