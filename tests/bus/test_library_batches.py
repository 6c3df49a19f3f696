#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Batches of libsqlipc: the rows that they leave, their limits, and their errors."""
import contextlib
import os
import signal
import sqlite3

from harness import BUILD_ROOT, PATIENCE, main
from library import Library, each_way, rows_of, service_of_notes
from tap import equal, test, true

INSERT = "INSERT INTO note (text) VALUES"


def texts(path):
    return [text for (text,) in rows_of(path, "SELECT text FROM note ORDER BY id", bytes)]


def fill(library, *statements, database="notes"):
    """Makes a batch. A statement is SQL, or a pair of SQL and text (bytes) or None."""
    library.ok(f"batch {database}")
    for statement in statements:
        sql, value = statement if isinstance(statement, tuple) else (statement, "-")
        library.ok(f"add {'n' if value is None else value if value == '-' else value.hex()} {sql}")


@each_way
def all_of_them(transport):
    """Statements that depend on each other, and values of all kinds; one commit, and the changes of each"""
    with service_of_notes() as (service, path), Library(service, transport) as library:
        fill(library, f"{INSERT} ('a'), ('b')", (f"{INSERT} (?)", b"c\0\xff"), (f"{INSERT} (?)", None),
             "CREATE TABLE other (x)", "INSERT INTO other SELECT id FROM note", "DELETE FROM note WHERE text = 'b'",
             "UPDATE note SET text = 'z' WHERE id > 10")  # fmt: skip
        equal(texts(path), [], "before")
        equal(library.ask("run 8")[1], "changes 9 2 1 1 0 4 1 0 0")
        equal(texts(path), [b"a", b"c\0\xff", None], "after")
        equal(library.failure("run 0")[1], "EmptyStatement", "again")
        library.ok(f"add 64 {INSERT} (?)")
        equal(library.ask("run 2")[1], "changes 1 1 0", "filled again")
        equal(texts(path)[3:], [b"d"], "at the end")


@each_way
def failures(transport):
    """A statement that fails leaves nothing of the others. The message names it, and the offset is one into its SQL"""
    with service_of_notes() as (service, path), Library(service, transport) as library:
        fill(library, f"{INSERT} ('a')", f"{INSERT} ('b'), ('a')", f"{INSERT} ('c')")
        words = library.ask("run 0")[1].split(" ", 6)
        equal((words[3], words[5]), ("2067", "org.sqlipc1.Error.Sql"), f"SQLITE_CONSTRAINT_UNIQUE: {words}")
        true(words[6].startswith("statement 2 of 3: "), words)
        equal(texts(path), [], "rows")
        equal(library.failure("run 0")[1], "Sql", "the batch still has its statements")
        fill(library, f"{INSERT} ('a')", f"{INSERT} (oh)")
        words = library.ask("run 0")[1].split(" ", 6)
        equal(words[4], str(len(f"{INSERT} (")), f"offset: {words}")
        fill(library, f"{INSERT} ('a')", "SELECT 1")
        equal(library.failure("run 0")[1], "NotAllowed")
        fill(library, "DELETE FROM Genre", database="chinook")
        equal(library.failure("run 0")[1], "ReadOnly")
        equal(texts(path), [], "rows at the end")


@test
def limits():
    """Statements and batches that are too large for a message are sent in a file, also in a transaction"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok("batch notes")
        sql = f"{INSERT} (?)"
        head = 16 + len(sql) + 1  # of each statement
        row = 5 + 1  # around a text: its type, its end, and its NUL
        most = 1024 * 1024 - row
        room = 4 * 1024 * 1024 - 3 * (most + row + head) - head - row
        for transaction in (False, True):
            for sizes in ([most + 1], [most] * 3 + [room], [most - n for n in range(3)] + [room + 2, 5], [5_000_000, 1]):
                if transaction:
                    library.ok("begin write notes")
                for n, size in enumerate(sizes):
                    library.ok(f"add {f'{n + 0x61:02x}' * size} {sql}")
                equal(library.ask(f"run {len(sizes)}")[1], f"changes {len(sizes)}" + " 1" * len(sizes))
                if transaction:
                    library.ok("commit")
                equal(sorted(map(len, texts(path))), sorted(sizes), "rows")
                with contextlib.closing(sqlite3.connect(path)) as db, db:
                    db.execute("DELETE FROM note")


@each_way
def in_a_transaction(transport):
    """A batch belongs to the open transaction; one that fails leaves it as it was"""
    with service_of_notes() as (service, path), Library(service, transport) as library:
        library.ok("begin write notes")
        equal(library.ask(f"exec notes {INSERT} ('a')")[1], "changes 1")
        fill(library, f"{INSERT} ('b')", f"{INSERT} ('c')")
        equal(library.ask("run 2")[1], "changes 2 1 1")
        fill(library, f"{INSERT} ('d')", f"{INSERT} ('a')")
        equal(library.failure("run 0")[1], "Sql")
        equal(texts(path), [], "before the commit")
        library.ok("commit")
        equal(texts(path), [b"a", b"b", b"c"], "after the commit")
        library.ok("begin write notes")
        fill(library, f"{INSERT} ('d')")
        equal(library.ask("run 1")[1], "changes 1 1")
        library.ok("rollback")
        equal(texts(path), [b"a", b"b", b"c"], "after a rollback")


@test
def unknown_outcome():
    """Without an answer the outcome is unknown. The batch keeps its statements, and runs when the service is there again"""
    with service_of_notes() as (service, path), Library(service) as library:
        fill(library, f"{INSERT} ('a')")
        equal(library.ask("run 1")[1], "changes 1 1")
        os.kill(service.pid(), signal.SIGSTOP)
        library.ok("timeout 200000")
        fill(library, f"{INSERT} ('b')")
        equal(library.failure("run 0")[1], "OutcomeUnknown", "no answer")
        library.ok(f"timeout {PATIENCE * 1000000}")
        service.kill()
        service.start()
        equal(library.ask("run 1")[1], "changes 1 1", "the same batch again")
        equal(texts(path), [b"a", b"b"], "rows")


@test
def example():
    """The example in the documentation writes all lines, or none"""
    program = BUILD_ROOT / "docs/examples/example-batch"
    command = [program, f"--address={{}}", "notes", f"{INSERT} (?)"]
    with service_of_notes() as (service, path):
        command = [program, f"--address={service.address}", "notes", f"{INSERT} (?)"]
        done = service.run(*command, input=b"a\nb\nc\n")
        equal((done.returncode, done.stdout, done.stderr), (0, b"3 changed\n", b""), "INSERT")
        equal(texts(path), [b"a", b"b", b"c"], "rows")
        done = service.run(*command, input=b"d\na\n")
        equal((done.returncode, done.stdout), (1, b""), "the second fails")
        true(b"statement 2 of 2: " in done.stderr, done.stderr)
        equal(texts(path), [b"a", b"b", b"c"], "rows after the failure")


main()
