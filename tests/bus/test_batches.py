#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ExecuteBatch: several statements of one call, all or nothing."""
import threading

from client import Failure
from gi.repository import GLib
from harness import UID_A, UID_B, UID_DAEMON, expect, main, needs_root
from tap import equal, test, true
from writers import DB, ask, numbers, writable

INSERT = "INSERT INTO written(number) VALUES (?)"


@test
def all_of_them():
    """Changes of each statement, in order; parameters by position and by name; the rows are in the file at the reply"""
    for journal in ("wal", "delete"):
        with writable(journal) as service:
            client = service.client()
            changes, info = client.execute_batch(DB, [
                (INSERT, [5]), (INSERT + ", (:b), (:c)", [6], {":b": 7, "c": 8}),
                "UPDATE written SET t = 'x' WHERE number > 6", "DELETE FROM written WHERE number = 99",
            ])  # fmt: skip
            equal(changes, [1, 3, 2, 0], "changes")
            equal((info["total-changes"], info["last-rowid"]), (6, 4), "their sum, and the last rowid")
            equal(ask(service, "SELECT number, t FROM written"), [[5, None], [6, None], [7, "x"], [8, "x"]], "rows")
            true("batch" in service.counters()["Features"], "Features")


@test
def they_depend_on_each_other():
    """Tables are made, filled, changed and dropped in one batch, again and again"""
    with writable(WriteSchema="yes") as service:
        client = service.client()
        for n in range(3):
            changes, _ = client.execute_batch(DB, [
                "CREATE TABLE made(a UNIQUE)", ("INSERT INTO made VALUES (?), (?)", [1, 2]), "ALTER TABLE made ADD COLUMN b",
                "UPDATE made SET b = a + 1", "INSERT INTO written(number) SELECT sum(b) FROM made", "DROP TABLE made",
            ])  # fmt: skip
            equal(changes, [0, 2, 0, 2, 1, 0], "changes")
        equal(numbers(service), [5, 5, 5], "rows")
        failing = ["CREATE TABLE made(a)", "INSERT INTO made VALUES (1)", "DROP TABLE no"]
        error = expect("Sql", client.execute_batch, DB, failing)
        true("statement 3 of 3: no such table: no" in str(error), f"error: {error}")
        equal(ask(service, "SELECT name FROM sqlite_schema WHERE name = 'made'"), [], "the table of a batch that failed")
        expect("Sql", client.execute, DB, "INSERT INTO made VALUES (1)")


@test
def what_they_count():
    """changes() and the like are the client's own: in a batch, its triggers, and after it, with a batch of another client"""
    counts = "SELECT last_insert_rowid(), changes(), total_changes()"
    seen = "INSERT INTO seen " + counts
    with writable(WriteSchema="yes") as service:
        client, other = service.client(), service.client()
        client.execute(DB, "CREATE TABLE seen(id, changes, total)")
        body = f"BEGIN {seen}; DELETE FROM single; {seen}; END"
        client.execute(DB, f"CREATE TRIGGER noted AFTER INSERT ON written WHEN new.number = 7 {body}")
        other.execute_batch(DB, ["INSERT INTO single VALUES (1), (2), (3)", (INSERT, [4])])
        client.execute_batch(DB, [(INSERT, [5]), (INSERT, [6]), "UPDATE written SET t = 'x'", seen, (INSERT, [7])])
        other.execute(DB, "UPDATE written SET t = 'y' WHERE number = 7")
        equal(client.query_rows(DB, counts)[1], [[4, 1, 12]], "counts after the batch")
        equal(client.all_rows(DB, counts)[1], [[4, 1, 12]], "the same, in parts")
        equal(other.query_rows(DB, counts)[1], [[1, 1, 5]], "of the other client")
        equal(service.client().query_rows(DB, counts)[1], [[0, 0, 0]], "of a new client")
        equal(ask(service, "SELECT * FROM seen"), [[3, 3, 5], [4, 1, 6], [2, 3, 10]], "in the batch, and in its trigger")
        expect("Sql", client.execute_batch, DB, [(INSERT, [8]), "INSERT INTO single VALUES (1), (1)"])
        equal(client.query_rows(DB, counts)[1], [[1, 0, 13]], "after a batch that failed")


@test
def none_of_them():
    """A statement that fails in any way leaves nothing of those before it; the error names it"""
    first = (INSERT, [1])
    for journal in ("wal", "delete"):
        with writable(journal) as service:
            client = service.client()
            client.execute(DB, "INSERT INTO single VALUES (1)")
            for name, statement, sentence in (
                ("Sql", ("INSERT INTO single VALUES (2), (1)",), "statement 2 of 3: UNIQUE constraint failed"),
                ("Sql", ("INSERT OR ROLLBACK INTO single VALUES (2), (1)",), "statement 2 of 3: UNIQUE constraint failed"),
                ("Sql", ("INSERT OR FAIL INTO single VALUES (2), (1)",), "statement 2 of 3: UNIQUE constraint failed"),
                ("Sql", ("INSERT INTO absent VALUES (1)",), "statement 2 of 3: no such table"),
                ("EmptyStatement", ("",), "statement 2 of 3: "),
                ("SeveralStatements", ("DELETE FROM written; DELETE FROM single",), "statement 2 of 3: "),
                ("ParameterCount", (INSERT, [1, 2]), "statement 2 of 3: "),
                ("UnknownParameter", (INSERT, [1], {"b": 1}), "statement 2 of 3: "),
                ("NotAllowed", ("SELECT 1",), "statement 2 of 3: "),
                ("NotAllowed", ("INSERT INTO single VALUES (3) RETURNING n",), "statement 2 of 3: "),
                ("NotAllowed", ("SAVEPOINT a",), "statement 2 of 3: "),
                ("NotAllowed", ("COMMIT",), "statement 2 of 3: "),
                ("NotAllowed", ("CREATE TABLE a(b)",), "statement 2 of 3: "),
            ):
                error = expect(name, client.execute_batch, DB, [first, statement, first])
                true(sentence in str(error), f"error of {statement}: {error}")
            error = expect("Sql", client.execute_batch, DB, [first, "INSERT INTO written VALUES (oh)"],
                           options={"error-details": True})  # fmt: skip
            equal(error.offset, len("INSERT INTO written VALUES ("), "offset into the second statement")
            equal(numbers(service), [], "rows of the first statement")
            equal(ask(service, "SELECT n FROM single"), [[1]], "rows of the second one")


@test
def limits():
    """The most statements, one more, and none; the most bytes"""
    with writable() as service:
        client = service.client()
        changes, info = client.execute_batch(DB, [(INSERT, [n]) for n in range(4096)])
        equal((changes, info["total-changes"], len(numbers(service))), ([1] * 4096, 4096, 4096), "changes and rows")
        expect("LimitsExceeded", client.execute_batch, DB, [(INSERT, [n]) for n in range(4097)])
        expect("EmptyStatement", client.execute_batch, DB, [])
        large = ("UPDATE written SET t = ? WHERE number = 1", ["x" * 1000000])
        equal(client.execute_batch(DB, [large] * 4)[0], [1] * 4, "changes of large statements")
        expect("LimitsExceeded", client.execute_batch, DB, [large] * 5)
        expect("TimedOut", client.execute_batch, DB, [
            (INSERT, [7777]),
            "INSERT INTO written(number) WITH RECURSIVE n(x) AS ("
            "VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 2000000) SELECT x FROM n",
        ], options={"timeout-usec": GLib.Variant("t", 200000)})  # fmt: skip
        equal(ask(service, "SELECT count(*) FROM written"), [[4096]], "rows")


@test
def in_a_transaction():
    """A batch in a transaction that writes is committed with it; one that fails leaves the transaction as it was"""
    with writable() as service:
        client = service.client()

        def begin(mode):
            values, _ = client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", mode)})
            return values[0].get_uint64(), {"transaction": values[0]}

        number, inside = begin("write")
        client.execute(DB, INSERT, [1], options=inside)
        equal(client.execute_batch(DB, [(INSERT, [2]), (INSERT, [3])], options=inside)[0], [1, 1], "changes")
        expect("Sql", client.execute_batch, DB, [(INSERT, [4]), "INSERT INTO no VALUES (1)"], options=inside)
        expect("NotAllowed", client.execute_batch, DB, ["SAVEPOINT a", (INSERT, [4])], options=inside)
        equal(numbers(service), [], "rows before the commit")
        client.database(DB, "Commit", "(ta{sv})", number, {})
        equal(numbers(service), [1, 2, 3], "rows after it")
        number, inside = begin("read")
        expect("ReadOnly", client.execute_batch, DB, [(INSERT, [5])], options=inside)
        client.database(DB, "Rollback", "(ta{sv})", number, {})
        expect("TransactionEnded", client.execute_batch, DB, [(INSERT, [5])], options=inside)


def transfers(client, n, failures):
    """Moves 1 from one row to another, `n` times; each third batch fails at its end."""
    for i in range(n):
        there = ("UPDATE written SET number = number - ? WHERE id = 1", [1])
        here = ("UPDATE written SET number = number + ? WHERE id = 2", [1])
        last = ["INSERT INTO single VALUES (1)"] if i % 3 == 2 else []
        try:
            equal(client.execute_batch(DB, [there, here] + last)[0], [1, 1], "changes")
            true(not last, "a batch that should fail was carried out")
        except Failure as error:
            if not last:
                failures.append(str(error))


def both_write(service, uids):
    filled = ["INSERT INTO written(number) VALUES (1000), (0)", "INSERT INTO single VALUES (1)"]
    service.client().execute_batch(DB, filled)
    failures = []
    clients = [service.client(uid) for uid in uids for _ in range(3)]
    threads = [threading.Thread(target=transfers, args=(client, 60, failures)) for client in clients]
    reader = service.client(uids[0])
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        equal(reader.query_rows(DB, "SELECT sum(number) FROM written")[1], [[1000]], "the sum, at any time")
    for thread in threads:
        thread.join()
    equal(failures, [], "errors of batches that should be carried out")
    equal(ask(service, "SELECT number FROM written ORDER BY id"), [[1000 - 40 * len(threads)], [40 * len(threads)]], "rows")


@test
def many_clients():
    """Clients that move amounts at once: no reader sees half of a batch, and each is carried out once"""
    with writable() as service:
        both_write(service, [None])


@needs_root
def two_users():
    """The same as two users; a third user may not write"""
    with writable(uid=UID_DAEMON, WriteUsers=f"{UID_A} {UID_B}") as service:
        both_write(service, [UID_A, UID_B])
        expect("ReadOnly", service.client(UID_B + 1).execute_batch, DB, [(INSERT, [1])])


main()
