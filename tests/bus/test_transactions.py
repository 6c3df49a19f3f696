#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Transactions of clients: what is committed, what other connections see meanwhile, and every way in which one ends."""
import contextlib
import os
import sqlite3

from channel import Channel
from client import DATABASE, Failure, object_path
from clocks import Clocks
from gi.repository import GLib
from harness import PATIENT, UID_A, UID_B, UID_DAEMON, expect, main, on_server, wait_for
from load_stream import begin_load, send, stream, wait_for_load
from tap import equal, test, true
from writers import DB, ask, numbers, writable

ROOT = os.geteuid() == 0
INSERT = "INSERT INTO written(number) VALUES (?)"
COUNT = "SELECT count(*) FROM written"


def begin(client, mode, lock_wait=None):
    options = {"mode": GLib.Variant("s", mode)}
    if lock_wait is not None:
        options["lock-wait-usec"] = GLib.Variant("t", lock_wait)
    values, _ = client.database(DB, "Begin", "(a{sv})", options)
    return values[0].get_uint64()


def begin_later(client, mode="write"):
    """Calls Begin, and returns the call, whose answer may come late."""
    return client.begin(object_path(DB), DATABASE, "Begin", "(a{sv})", {"mode": GLib.Variant("s", mode)})


def opened(call):
    return call.result()[0].get_uint64()


def end(client, method, transaction):
    client.database(DB, method, "(ta{sv})", transaction, {})


def inside(transaction):
    return {"transaction": GLib.Variant("t", transaction)}


@test
def commit():
    """Commit: all statements are in the file when the reply arrives, and none before"""
    for journal in ("wal", "delete"):
        with writable(journal) as service:
            client = service.client()
            t = begin(client, "write")
            for n in range(3):
                equal(client.execute(DB, INSERT, [n], options=inside(t))[0], 1, "changes")
            equal(client.query(DB, COUNT, options=inside(t)).read().rows, [[3]], "rows in the transaction")
            equal(client.query_rows(DB, COUNT, options=inside(t))[1], [[3]], "rows in the transaction, as values")
            equal(client.query(DB, COUNT).read().rows, [[0]], "rows beside it")
            end(client, "Commit", t)
            equal(numbers(service), [0, 1, 2], "rows in the file")
            expect("TransactionEnded", client.execute, DB, INSERT, [4], options=inside(t))
            expect("TransactionEnded", end, client, "Commit", t)


@test
def rollback():
    """Rollback, and a statement that fails in between"""
    with writable() as service:
        client = service.client()
        t = begin(client, "write")
        client.execute(DB, INSERT, [1], options=inside(t))
        expect("Sql", client.execute, DB, "INSERT INTO none VALUES (1)", options=inside(t))
        equal(client.execute(DB, INSERT, [2], options=inside(t))[0], 1, "changes after an error")
        end(client, "Rollback", t)
        equal(numbers(service), [], "rows in the file")
        equal(client.execute(DB, INSERT, [3])[0], 1, "changes of a statement of its own")


@test
def lock_wait():
    """A transaction with no time to wait for a lock begins unless another one is open, also of another user"""
    long = {"BusyTimeoutSec": "3600", "TransactionTimeoutSec": "3600", "TransactionIdleSec": "3600"}
    rights = {"uid": UID_DAEMON, "WriteUsers": f"{UID_A} {UID_B}"} if ROOT else {}
    with writable(limits=long, **rights) as service:
        clients = [service.client(UID_A), service.client(UID_B)] if ROOT else [service.client(), service.client()]
        for n in range(10):  # the other one's worker had the lease last
            one, other = clients[n % 2], clients[1 - n % 2]
            t = begin(one, "write", 0)
            one.execute(DB, INSERT, [n], options=inside(t))
            for usec in (0, 1000):
                message = str(expect("Busy", begin, other, "write", usec))
                true("keeps the database locked" in message, message)
            deferred = begin(other, "deferred", 0)
            expect("Busy", other.execute, DB, INSERT, [n], options=inside(deferred))
            end(one, "Commit" if n % 3 else "Rollback", t)
            equal(other.execute(DB, INSERT, [n], options=inside(deferred))[0], 1, "changes")
            end(other, "Rollback", deferred)
        equal(numbers(service), [n for n in range(10) if n % 3], "rows in the file")
        with contextlib.closing(sqlite3.connect(service.written, isolation_level=None)) as program:
            program.execute("BEGIN IMMEDIATE")
            for usec in (0, 1000):
                expect("Busy", begin, clients[0], "write", usec)
            program.execute("ROLLBACK")
        end(clients[0], "Rollback", begin(clients[0], "write", 0))


@test
def lock_wait_of_runs():
    """A statement with no time to wait for a lock, on each way, is Busy while a transaction is open, also of another user"""
    long = {"BusyTimeoutSec": "3600", "TransactionTimeoutSec": "3600", "TransactionIdleSec": "3600"}
    rights = {"uid": UID_DAEMON, "WriteUsers": f"{UID_A} {UID_B}"} if ROOT else {}
    insert = "INSERT INTO written(number) VALUES (7)"
    options = {"x-lock-wait-usec": GLib.Variant("t", 0)}

    def load(client):
        run, pipe = begin_load(client, DB, insert.replace("7", "?"), options)[:2]
        with contextlib.suppress(BrokenPipeError):  # it may have failed already
            send(pipe, stream([[7]]))
        wait_for_load(client, DB, run)

    with writable("delete", limits=long, **rights) as service:
        one, other = [service.client(UID_A), service.client(UID_B)] if ROOT else [service.client(), service.client()]
        channels = [Channel(client, DB) for client in (one, other)]
        for channel in channels:
            channel.lock_wait(0)
        ways = {
            "Execute": lambda client: client.execute(DB, insert, options=options),
            "ExecuteBatch": lambda client: client.execute_batch(DB, [insert, insert], options),
            "Query": lambda client: client.query(DB, insert, options=options).read(),
            "QueryRows": lambda client: client.query_rows(DB, insert, options=options),
            "OpenRows": lambda client: client.all_rows(DB, insert, options=options),
            "Fetch": lambda client: client.prepare(DB, insert).fetch(options=options).read(),
            "Load": load,
            "channel": lambda client: channels[client is other].ask(insert),
        }
        for writer in (one, other):
            t = begin(writer, "write")
            writer.execute(DB, INSERT, [1], options=inside(t))
            for client in (one, other):
                for name, way in ways.items():
                    error = expect("Busy", way, client)
                    true("keeps the database locked" in str(error), f"{name}: {error}")
            equal(writer.execute(DB, INSERT, [2], options=inside(t) | options)[0], 1, "changes in the transaction")
            end(writer, "Rollback", t)
            equal(numbers(service), [], "rows in the file")
            for client in (one, other):
                for way in ways.values():
                    way(client)
            equal(numbers(service), [7] * 18, "rows in the file")
            one.execute(DB, "DELETE FROM written")
        if on_server():  # no program locks a file
            return
        with contextlib.closing(sqlite3.connect(service.written, isolation_level=None)) as program:
            program.execute("BEGIN EXCLUSIVE")  # readers are kept out, too
            for sql in (insert, COUNT):
                error = expect("Busy", lambda sql=sql: one.query(DB, sql, options=options).read())
                true("keeps the database locked" in str(error), f"{sql}: {error}")
                equal(str(expect("Busy", channels[0].ask, sql)), str(error), sql)
            program.execute("ROLLBACK")
        for channel in channels:
            channel.lock_wait(2**64 - 1)
        equal(len(channels[0].ask(insert)), 0, "rows")


@test
def rolled_back_by_statement():
    """ON CONFLICT ROLLBACK ends the transaction: later uses say so"""
    with writable() as service:
        client = service.client()
        t = begin(client, "write")
        client.execute(DB, "INSERT INTO written(id, number) VALUES (7, 1)", options=inside(t))
        expect("Sql", client.execute, DB, "INSERT OR ROLLBACK INTO written(id, number) VALUES (7, 2)", options=inside(t))
        for call in (lambda: client.execute(DB, INSERT, [3], options=inside(t)), lambda: end(client, "Commit", t)):
            message = str(expect("TransactionEnded", call))
            true("rolled back the transaction: UNIQUE constraint failed: written.id" in message, message)
        equal(numbers(service), [], "rows in the file")


@test
def index_of_words():
    """A statement that is given up at its first row takes back only itself, even if an index writes much when it ends"""
    many = " ".join(f"word{n}" for n in range(100_000))
    indexed = "INSERT INTO words VALUES(?) RETURNING rowid"
    with writable() as service:
        with contextlib.closing(sqlite3.connect(service.written)) as db:
            db.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        client = service.client()
        expect("NotAllowed", client.execute, DB, indexed, [many])
        client.execute(DB, "INSERT INTO words VALUES('one')")
        t = begin(client, "write")
        client.execute(DB, INSERT, [1], options=inside(t))
        expect("NotAllowed", client.execute, DB, indexed, [many], options=inside(t))
        end(client, "Commit", t)
        equal(numbers(service), [1], "rows in the file")
        equal(client.query_rows(DB, "SELECT count(*) FROM words")[1], [[1]], "rows of the index")


@test
def snapshot():
    """A transaction that reads sees one state, and cannot write"""
    with writable() as service:
        writer, reader = service.client(), service.client()
        t = begin(reader, "read")
        writer.execute(DB, INSERT, [1])
        equal(reader.query(DB, COUNT, options=inside(t)).read().rows, [[0]], "rows of the snapshot")
        statement = reader.prepare(DB, "SELECT number FROM written")
        statement_rows = reader.query(DB, "SELECT number FROM written", options=inside(t)).read().rows
        equal(statement_rows, [], "rows of another statement")
        statement.close()
        expect("ReadOnly", reader.execute, DB, INSERT, [2], options=inside(t))
        end(reader, "Commit", t)
        equal(reader.query(DB, COUNT).read().rows, [[1]], "rows afterwards")


def is_old(function, *arguments, **keywords):
    """Fails unless the call is Busy, because the database has changed since the transaction has read it."""
    failure = expect("Busy", function, *arguments, **keywords)
    true("it has changed since this transaction has read it" in str(failure), str(failure))


@test
def deferred():
    """A deferred transaction reads until it writes, which it may only if no client and no program has committed meanwhile"""
    increment = "INSERT INTO written(number) SELECT count(*) FROM written"
    for journal in ("wal", "delete"):
        with writable(journal) as service:
            one, two = service.client(), service.client()
            t = begin(one, "deferred")
            equal([entry[-1]["mode"] for entry in one.manager("ListTransactions")[0]], ["deferred"], "its mode")
            two.execute(DB, INSERT, [0])
            equal(one.query(DB, COUNT, options=inside(t)).read().rows, [[1]], "rows since the first read")
            equal(one.execute(DB, increment, options=inside(t))[0], 1, "changes")
            equal(one.query(DB, COUNT, options=inside(t)).read().rows, [[2]], "rows in the transaction")
            equal(two.query(DB, COUNT).read().rows, [[1]], "rows beside it")
            end(one, "Commit", t)
            equal(numbers(service), [0, 1], "rows in the file")
            if journal == "delete":
                continue  # there the snapshot keeps writers out
            t = begin(one, "deferred")
            equal(one.query_rows(DB, COUNT, options=inside(t))[1], [[2]], "rows of the snapshot")
            two.execute(DB, INSERT, [2])
            is_old(one.execute, DB, increment, options=inside(t))
            is_old(one.execute_batch, DB, [(INSERT, [3], {})], options=inside(t))
            equal(one.query_rows(DB, COUNT, options=inside(t))[1], [[2]], "rows of the snapshot, later")
            end(one, "Commit", t)
            t = begin(one, "deferred")
            equal(one.query(DB, COUNT, options=inside(t)).read().rows, [[3]], "rows of the next one")
            with contextlib.closing(sqlite3.connect(service.written)) as db:
                db.execute(INSERT, [3])
                db.commit()
            is_old(one.execute, DB, increment, options=inside(t))
            end(one, "Rollback", t)
            equal(numbers(service), [0, 1, 2, 3], "rows in the file in the end")


@test
def deferred_without_the_right():
    """A deferred transaction on a database that its client may only read"""
    with writable() as service:
        service.database(DB, Path=service.written)
        service.driver.manager("Reload")
        client = service.client()
        expect("ReadOnly", begin, client, "write")
        t = begin(client, "deferred")
        equal(client.query(DB, COUNT, options=inside(t)).read().rows, [[0]], "rows")
        expect("ReadOnly", client.execute, DB, INSERT, [1], options=inside(t))
        equal(client.query(DB, COUNT, options=inside(t)).read().rows, [[0]], "rows after the error")
        end(client, "Commit", t)


@test
def deferred_in_rollback_mode():
    """Two that have read: the second one that writes does not wait for the first one, which waits for it"""
    with writable("delete", limits={"ParkTimeoutRollbackSec": "600", "BusyTimeoutSec": "600"}) as service:
        one, two = service.client(), service.client()
        first, second = begin(one, "deferred"), begin(two, "deferred")
        for client, t in ((one, first), (two, second)):
            equal(client.query_rows(DB, COUNT, options=inside(t))[1], [[0]], "rows")
        one.execute(DB, INSERT, [1], options=inside(first))
        expect("Busy", two.execute, DB, INSERT, [2], options=inside(second))
        end(two, "Rollback", second)
        end(one, "Commit", first)
        equal(numbers(service), [1], "rows in the file")


@test
def client_leaves():
    """A client that disappears: the transaction is rolled back, and the next writer goes on"""
    with writable(limits={"TransactionIdleSec": "600"}) as service:
        client, other = service.client(), service.client()
        t = begin(client, "write")
        client.execute(DB, INSERT, [1], options=inside(t))
        client.close()
        equal(other.execute(DB, INSERT, [2])[0], 1, "changes of the other client, which has not waited for ten minutes")
        equal(numbers(service), [2], "rows in the file")


@test
def idle():
    """TransactionIdleSec=: an idle transaction ends when another client wants to write, and TransactionTimeoutSec="""
    with writable(limits={"TransactionIdleSec": "0.5"}) as service:
        client, other = service.client(), service.client()
        t = begin(client, "write")
        client.execute(DB, INSERT, [1], options=inside(t))
        equal(other.execute(DB, INSERT, [2])[0], 1, "changes of the other client")
        expect("TransactionEnded", end, client, "Commit", t)
        equal(numbers(service), [2], "rows in the file")
    with Clocks() as clocks, writable(environment=clocks.environment) as service:
        client = service.client()
        t = begin(client, "write")
        client.execute(DB, INSERT, [1], options=inside(t))
        clocks.go_on(700)
        wait_for(lambda: "TransactionEnded" in str(attempt(client, t)), "the end of the transaction")


def attempt(client, t):
    try:
        return client.query(DB, COUNT, options=inside(t)).read().rows
    except Failure as failure:
        return failure.name


@test
def bounds():
    """TransactionsMax=, wrong options, and transactions of others"""
    with writable(limits={"TransactionsMax": 2}) as service:
        client, other = service.client(), service.client()
        first, _ = begin(client, "read"), begin(client, "read")
        expect("LimitsExceeded", begin, client, "read")
        end(client, "Rollback", first)
        t = begin(client, "read")
        expect("TransactionEnded", other.query, DB, COUNT, options=inside(t))
        expect("TransactionEnded", end, other, "Rollback", t)
        expect("InvalidOption", begin, client, "exclusive")
        expect("InvalidOption", client.database, DB, "Begin", "(a{sv})", {})


@test
def first_come():
    """300 transactions of a user that wait to write begin in the order in which they came, also those of several clients"""
    with writable(limits=PATIENT) as service:
        clients = [service.client() for _ in range(5)]  # the bus lets a connection wait for 128 answers
        calls = []
        for n in range(300):
            client = clients[n * 3 % 5]
            calls.append((client, begin_later(client)))
            client.bus_call("NameHasOwner", "(s)", "org.sqlipc1")  # the bus has passed the call on
        for n, (client, call) in enumerate(calls):
            t = opened(call)
            equal([k for k, (_, other) in enumerate(calls) if k > n and other.is_done()], [], f"that have begun, beside {n}")
            client.execute(DB, INSERT, [n], options=inside(t))
            end(client, "Commit", t)
        equal(ask(service, "SELECT number FROM written ORDER BY id"), [[n] for n in range(300)], "rows, in their order")


@test
def leave_the_queue():
    """One that waits to write and is cancelled, or whose client leaves, is out of the queue at once; the others go on"""
    with writable(limits=PATIENT) as service:
        client, other = service.client(), service.client()
        t = begin(client, "write")
        calls = [begin_later(client) for _ in range(20)]
        gone = [begin_later(other) for _ in range(20)]
        last = begin_later(client)
        listed = lambda: len(client.manager("ListTransactions")[0])  # noqa: E731
        wait_for(lambda: listed() == 42, "all are listed")
        for call in calls[::2]:
            client.database(DB, "Cancel", "(ta{sv})", 0, {"call": GLib.Variant("u", call.serial)})
            expect("Cancelled", call.result)
        other.close()
        wait_for(lambda: listed() == 12, "those that are gone have left")
        for call in [*calls[1::2], last]:
            end(client, "Commit", t)
            t = opened(call)
        end(client, "Commit", t)
        equal((len(gone), listed()), (20, 0), "what is left")


@test
def bound_of_waiting():
    """Sixteen for each of TransactionsMax= may wait to write; one more is refused with SQLITE_BUSY and the key"""
    with writable(limits=PATIENT | {"TransactionsMax": 2}) as service:
        client = service.client()
        t = begin(client, "write")
        calls = [begin_later(client) for _ in range(31)]
        wait_for(lambda: len(client.manager("ListTransactions")[0]) == 32, "all wait")
        details = {"mode": GLib.Variant("s", "write"), "error-details": GLib.Variant("b", True)}
        failure = expect("LimitsExceeded", client.database, DB, "Begin", "(a{sv})", details)
        true("TransactionsMax=" in failure.message and failure.extended == sqlite3.SQLITE_BUSY, failure)
        reader = begin(client, "read")
        expect("LimitsExceeded", begin, client, "read")
        end(client, "Commit", reader)
        for call in calls:
            end(client, "Commit", t)
            t = opened(call)
        end(client, "Commit", t)


@test
def lists():
    """ListTransactions: number, owner, mode, state and times; ListRuns and NRuns leave them out; CancelRun ends one"""
    with writable() as service:
        client, other = service.client(), service.client()
        t = begin(client, "write")

        def listed():
            return {number: (owner, more) for number, _, owner, more in client.manager("ListTransactions")[0]}

        owner, more = listed()[t]
        equal((owner, more["mode"], more["state"]), (client.name(), "write", "idle"), "an idle transaction")
        true(more["usec"] >= more["idle-usec"], "times")
        reader = begin(other, "read")
        equal({number: more["mode"] for number, (_, more) in listed().items()}, {t: "write", reader: "read"}, "both")
        equal((client.manager("ListRuns")[0], service.counters()["NRuns"]), ([], 0), "runs")
        true("transaction" in service.counters()["Features"], "Features")
        client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "read")})
        client.manager("CancelRun", "(ta{sv})", t)
        wait_for(lambda: t not in listed(), "the end of the transaction")
        expect("TransactionEnded", end, client, "Commit", t)


@test
def rows():
    """Fetch, OpenRows and NextRows in a transaction see what it has written; a snapshot stays the same across statements"""
    with writable() as service:
        client, other = service.client(), service.client()
        statement = client.prepare(DB, "SELECT number FROM written ORDER BY number")
        snapshot = begin(other, "read")
        equal(other.query(DB, COUNT, options=inside(snapshot)).read().rows, [[0]], "rows of the snapshot")
        t = begin(client, "write")
        client.execute(DB, INSERT, [7], options=inside(t))
        equal(statement.fetch(options=inside(t)).read().rows, [[7]], "rows of Fetch")
        equal(client.all_rows(DB, "SELECT number FROM written", options=inside(t))[1], [[7]], "rows of OpenRows")
        equal(statement.fetch().read().rows, [], "rows of Fetch beside it")
        end(client, "Commit", t)
        equal(other.query(DB, COUNT, options=inside(snapshot)).read().rows, [[0]], "rows of the snapshot, later")
        end(other, "Commit", snapshot)
        equal(other.query(DB, COUNT).read().rows, [[1]], "rows afterwards")


@test
def reload_removes_rights():
    """A reload that changes limits leaves a transaction open; one that removes rights ends it, and nothing is written"""
    with writable() as service:
        client = service.client()
        t = begin(client, "write")
        client.execute(DB, INSERT, [1], options=inside(t))
        service.database(DB, Path=service.written, Mode="read-write", Description="Another")
        service.driver.manager("Reload")
        client.execute(DB, INSERT, [2], options=inside(t))
        end(client, "Commit", t)
        t = begin(client, "write")
        client.execute(DB, INSERT, [3], options=inside(t))
        service.database(DB, Path=service.written)
        service.driver.manager("Reload")
        wait_for(lambda: not client.manager("ListTransactions")[0], "the end of the transaction")
        expect("TransactionEnded", end, client, "Commit", t)
        equal(numbers(service), [1, 2], "rows in the file")


@test
def worker_dies():
    """A worker that dies takes its transaction with it: nothing is written"""
    with writable() as service:
        client = service.client()
        t = begin(client, "write")
        client.execute(DB, INSERT, [1], options=inside(t))
        (pid,) = service.workers()
        os.kill(pid, 9)
        wait_for(lambda: "TransactionEnded" in str(attempt(client, t)), "the end of the transaction")
        equal(client.execute(DB, INSERT, [2])[0], 1, "changes of a statement of its own")
        equal(numbers(service), [2], "rows in the file")


main()
