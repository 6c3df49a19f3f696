#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Transactions of libsqlipc: what they see and write, and every way in which one ends."""
import contextlib
import os
import signal
import sqlite3

from client import Text
from clocks import Clocks
from harness import BUILD_ROOT, PATIENCE, main, wait_for
from library import Library, each_way, rows_of, service_of_notes
from tap import equal, test, true

INSERT = "exec notes INSERT INTO note (text) VALUES"


def texts(path):
    return [text for (text,) in rows_of(path, "SELECT text FROM note ORDER BY id")]


def rows(library, sql):
    library.ok(f"query notes {sql}")
    return library.ask("rows 0")[0]


@each_way
def commit(transport):
    """All changes are in the file after sqlipc_commit(), and none before; another connection does not see them"""
    with service_of_notes() as (service, path), Library(service, transport) as library, Library(service, transport) as other:
        library.ok("begin write notes")
        for text in "abc":
            equal(library.ask(f"{INSERT} ('{text}')")[1], "changes 1")
        equal(rows(library, "SELECT count(*) FROM note"), [[3]], "rows in the transaction")
        equal(library.via(), "dbus" if transport == "dbus" else "pipe", "transport")
        equal(rows(other, "SELECT count(*) FROM note"), [[0]], "rows for others")
        equal(texts(path), [], "before the commit")
        library.ok("commit")
        equal(texts(path), ["a", "b", "c"], "after the commit")
        equal(library.ask(f"{INSERT} ('d')")[1], "changes 1")
        equal(texts(path), ["a", "b", "c", "d"], "a statement of its own")
        equal(library.failure("rollback")[1], "TransactionEnded")


@test
def rollback():
    """sqlipc_rollback() and sqlipc_transaction_close() take all changes back, also with a rollback journal"""
    for journal in ("wal", "delete"):
        with service_of_notes(journal) as (service, path), Library(service) as library:
            for end in ("rollback", "drop"):
                library.ok("begin write notes")
                library.ask(f"{INSERT} ('a')")
                library.ok(end)
                equal(rows(library, "SELECT count(*) FROM note"), [[0]], end)
            library.ok("begin write notes")
            library.ask(f"{INSERT} ('a')")
            library.close()
            wait_for(lambda: not_locked(path), "the end of the transaction")
            equal(texts(path), [], "after the program has ended")
            library.__init__(service)


def not_locked(path):
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True


@test
def failed_statement():
    """A statement that fails changes nothing, and the transaction goes on, unless the failure rolls it back"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok("begin write notes")
        library.ask(f"{INSERT} ('a')")
        equal(library.failure(f"{INSERT} ('b'), ('a')")[1], "Sql")
        equal(library.ask("is-open")[1], "open 1")
        library.ask(f"{INSERT} ('c')")
        library.ok("commit")
        equal(texts(path), ["a", "c"], "rows")

        library.ok("begin write notes")
        library.ask(f"{INSERT} ('d')")
        equal(library.failure("exec notes INSERT OR ROLLBACK INTO note (text) VALUES ('d')")[1], "Sql")
        equal(library.failure(f"{INSERT} ('e')")[1], "TransactionEnded", "instead of a statement of its own")
        equal(library.failure(f"{INSERT} ('e')")[1], "TransactionEnded", "again")
        equal(library.failure("commit")[1], "TransactionEnded")
        library.ok("rollback")
        equal(texts(path), ["a", "c"], "rows after the rollback")


@test
def deferred_constraint():
    """A commit that violates a deferred constraint fails with SQLite's code, and leaves the transaction open"""
    with service_of_notes() as (service, path), Library(service) as library:
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE child (note REFERENCES note DEFERRABLE INITIALLY DEFERRED)")
        service.database("notes", Path=path, Mode="read-write", ForeignKeys="yes")
        service.driver.manager("Reload")
        library.ok("begin write notes")
        library.ask(f"{INSERT} ('a')")
        equal(library.ask("exec notes INSERT INTO child VALUES (5)")[1], "changes 1")
        for _ in range(2):
            words = library.ask("commit")[1].split(" ", 6)
            equal(words[5], "org.sqlipc1.Error.CommitRefused", words)
            equal(int(words[3]), 787, "SQLITE_CONSTRAINT_FOREIGNKEY")
        equal(texts(path), [], "rows")
        library.ask("exec notes DELETE FROM child")
        library.ok("commit")
        equal(texts(path), ["a"], "rows of the repaired transaction")
        library.ok("begin write notes")
        library.ask("exec notes INSERT INTO child VALUES (5)")
        equal(library.ask("commit")[1].split(" ", 6)[5], "org.sqlipc1.Error.CommitRefused", "error")
        library.ok("drop")
        library.ok("begin write notes")  # the lock is free
        library.ok("rollback")
        equal(texts(path), ["a"], "rows")


@test
def statements():
    """Prepared statements, rows of RETURNING and tables that the transaction creates"""
    for transport in ("pipe", "channel"):
        with service_of_notes() as (service, path), Library(service, transport) as library:
            library.ok("prepare notes INSERT INTO note (text) VALUES (?) RETURNING id")
            library.ok("begin write notes")
            for i in range(1, 4):
                library.ok(f"bind 1 t {i:02x}")
                library.ok("execute")
                equal(library.ask("rows 0"), ([[i]], "end 1"), transport)
                equal(library.ask("changes")[1], f"changes 1 {i}", transport)
            equal(library.ask("exec notes CREATE TABLE other (x)")[1], "changes 0")
            equal(library.ask("exec notes INSERT INTO other SELECT id FROM note")[1], "changes 3")
            equal(rows(library, "SELECT sum(x) FROM other"), [[6]], "the new table")
            equal(texts(path), [], "before the commit")
            library.ok("commit")
            equal(texts(path), ["\1", "\2", "\3"], transport)
            library.ok("bind 1 t 04")
            library.ok("execute")
            equal(library.ask("rows 0"), ([[4]], "end 1"), "after the transaction")


@each_way
def snapshot(transport):
    """A transaction that reads sees one state, and writes nothing"""
    with service_of_notes() as (service, path), Library(service, transport) as library, Library(service) as writer:
        writer.ask(f"{INSERT} ('a')")
        library.ok("begin read notes")
        equal(rows(library, "SELECT text FROM note"), [[Text(b"a")]], "before")
        writer.ask(f"{INSERT} ('b')")
        equal(rows(library, "SELECT text FROM note"), [[Text(b"a")]], "after another program has written")
        equal(library.failure(f"{INSERT} ('c')")[1], "ReadOnly")
        library.ok("commit")
        equal(rows(library, "SELECT text FROM note"), [[Text(b"a")], [Text(b"b")]], "after the transaction")
        equal(texts(path), ["a", "b"], "the file")


@test
def two_writers():
    """A second transaction that writes waits for the first"""
    with service_of_notes() as (service, path), Library(service) as first, Library(service) as second:
        first.ok("begin write notes")
        first.ask(f"{INSERT} ('a')")
        second.say("begin write notes")
        first.ask(f"{INSERT} ('b')")
        first.ok("commit")
        equal(second.hear(), "ok", "the second transaction")
        equal(rows(second, "SELECT count(*) FROM note"), [[2]], "rows in the second")
        second.ask(f"{INSERT} ('c')")
        second.ok("commit")
        equal(texts(path), ["a", "b", "c"], "rows")


@each_way
def killed_worker(transport):
    """A worker that is killed takes the transaction with it: nothing is written, and nothing repeated"""
    with service_of_notes() as (service, path), Library(service, transport) as library:
        library.ok("begin write notes")
        library.ask(f"{INSERT} ('a')")
        for pid in service.workers():
            os.kill(pid, signal.SIGKILL)
        failure = library.failure(f"{INSERT} ('b')")
        true(failure[1] in ("WorkerLost", "TransactionEnded"), failure)
        equal(library.failure(f"{INSERT} ('b')")[1], "TransactionEnded")
        equal(library.failure("commit")[1], "TransactionEnded")
        equal(texts(path), [], "rows")
        library.ok("begin write notes")
        library.ask(f"{INSERT} ('c')")
        library.ok("commit")
        equal(texts(path), ["c"], "rows of the next transaction")


@each_way
def killed_service(transport):
    """A service that is killed takes the transaction with it; the next one has others"""
    with service_of_notes() as (service, path), Library(service, transport) as library:
        library.ok("begin write notes")
        library.ask(f"{INSERT} ('a')")
        service.kill()
        service.start()
        equal(library.failure(f"{INSERT} ('b')")[1], "TransactionEnded")
        equal(library.failure("commit")[1], "TransactionEnded")
        library.ok("begin write notes")
        library.ask(f"{INSERT} ('c')")
        library.ok("commit")
        equal(texts(path), ["c"], "rows")


@test
def killed_service_before_commit():
    """The same, if the commit is the first to find out: it is known that nothing was written"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok("begin write notes")
        library.ask(f"{INSERT} ('a')")
        service.kill()
        service.start()
        equal(library.failure("commit")[1], "TransactionEnded")
        equal(texts(path), [], "rows")


@test
def unknown_outcome():
    """The outcome of a commit is unknown until it is answered, and stays so if the service dies before"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok("begin write notes")
        library.ask(f"{INSERT} ('a')")
        os.kill(service.pid(), signal.SIGSTOP)
        library.ok("timeout 200000")
        equal(library.failure("commit")[1], "OutcomeUnknown", "no answer")
        service.kill()
        library.ok(f"timeout {PATIENCE * 1000000}")
        equal(library.failure("commit")[1], "OutcomeUnknown", "the service is dead")
        equal(library.failure("rollback")[1], "OutcomeUnknown", "rollback")
        library.ok("drop")
        equal(texts(path), [], "rows")
        service.start()
        equal(library.ask(f"{INSERT} ('b')")[1], "changes 1")


@test
def too_long():
    """TransactionTimeoutSec= ends a transaction"""
    with (
        Clocks() as clocks,
        service_of_notes(environment=clocks.environment) as (service, path),
        Library(service, environment={"LD_PRELOAD": ""}) as library,
    ):
        library.ok("begin write notes")
        library.ask(f"{INSERT} ('a')")
        clocks.go_on(700)
        wait_for(lambda: library.ask(f"{INSERT} (NULL)")[1].startswith("error"), "the end of the transaction")
        equal(library.failure("commit")[1], "TransactionEnded")
        equal(texts(path), [], "rows")


@test
def example():
    """The example in the documentation commits all statements, or none"""
    program = BUILD_ROOT / "docs/examples/example-transaction"
    with service_of_notes() as (service, path):
        done = service.run(program, f"--address={service.address}", "notes", "INSERT INTO note (text) VALUES (NULL)", "3")
        equal((done.returncode, done.stdout, done.stderr), (0, b"3 changed\n", b""), "INSERT")
        equal(texts(path), [None] * 3, "rows")
        done = service.run(program, f"--address={service.address}", "notes", "INSERT INTO note (text) VALUES ('a')", "2")
        equal((done.returncode, done.stdout), (1, b""), "the second fails")
        equal(texts(path), [None] * 3, "rows after the failure")


main()
