#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libsqlipc writes: what it reports over each transport, and the file afterwards."""

import contextlib
import select
import signal

from gi.repository import GLib
from harness import BUILD_ROOT, PATIENCE, main, on_server, wait_for
from library import Library, each_way, rows_of, service_of_notes
from tap import equal, test, true


def content(path):
    return rows_of(path, "SELECT id, text FROM note ORDER BY id")


@each_way
def executed(transport):
    """sqlipc_exec() returns after the commit, with the number of changes"""
    with service_of_notes() as (service, path), Library(service, transport) as library:
        equal(library.ask("exec notes INSERT INTO note (text) VALUES ('a'), ('b')")[1], "changes 2")
        equal(content(path), [(1, "a"), (2, "b")], "after INSERT")
        equal(library.ask("exec notes UPDATE note SET text = 'c' WHERE id > 1")[1], "changes 1")
        equal(library.ask("exec notes UPDATE note SET text = 'c' WHERE id > 10")[1], "changes 0")
        equal(library.ask("exec notes CREATE TABLE other (x)")[1], "changes 0")
        equal(library.ask("exec notes SELECT * FROM note")[1], "changes 0", "rows are dropped")
        equal(content(path), [(1, "a"), (2, "c")], "at the end")


@each_way
def failures(transport):
    """A statement that fails changes nothing, and reports SQLite's code"""
    with service_of_notes() as (service, path), Library(service, transport) as library:
        _, name, message = library.failure("exec notes INSERT INTO note VALUES (1, 'a'), (2, 'a')")
        equal(name, "Sql", message)
        true("note.text" in message, message)
        equal(content(path), [], "rows")
        _, name, message = library.failure("exec chinook DELETE FROM Genre")
        equal(name, "ReadOnly", message)


@each_way
def cursors(transport):
    """A cursor tells changes and rowid at its end, after the rows of RETURNING, which are committed before they come"""
    with service_of_notes() as (service, path), Library(service, transport) as library:
        library.ok("query notes INSERT INTO note VALUES (7, 'a'), (9, 'b') RETURNING id")
        equal(library.ask("changes")[1], "changes 0 0", "before the end")
        rows, end = library.ask("rows 1")
        equal((rows, end), ([[7]], "ok"), "the first row")
        equal(content(path), [(7, "a"), (9, "b")], "with the first row")
        rows, end = library.ask("rows 0")
        equal((rows, end), ([[9]], "end 2"), "the others")
        equal(library.ask("changes")[1], "changes 2 9", "at the end")
        library.ok("query notes SELECT count(*) FROM note")
        equal(library.ask("rows 0"), ([[2]], "end 1"), "a reader")
        equal(library.ask("changes")[1], "changes 0 0", "of a reader")


@test
def statements():
    """A statement that writes can be executed again, with other values, by pipe and channel"""
    for transport in ("pipe", "channel"):
        with service_of_notes() as (service, path), Library(service, transport) as library:
            library.ok("prepare notes INSERT INTO note (text) VALUES (?)")
            equal(library.ask("readonly")[1], "readonly 0", transport)
            for i in range(1, 4):
                library.ok(f"bind 1 t {i:02x}")
                library.ok("execute")
                equal(library.ask("rows 0"), ([], "end 0"), transport)
                equal(library.ask("changes")[1], f"changes 1 {i}", transport)
            equal(content(path), [(1, "\1"), (2, "\2"), (3, "\3")], transport)
            library.ok("prepare notes SELECT * FROM note")
            equal(library.ask("readonly")[1], "readonly 1", transport)


WRITE = "INSERT INTO note (text) VALUES ('x')"
# For each kind: the lines before, and the line that is interrupted.
INTERRUPTED = {
    "exec": ((), f"exec notes {WRITE}"),
    "query": ((), f"query notes {WRITE} RETURNING id"),
    "statement": ((f"prepare notes {WRITE}",), "execute"),
    "batch": (("batch notes", f"add - {WRITE}"), "run 1"),
}


def has_transactions():
    """False with rqlite: there no statement waits for another."""
    return on_server() is None or on_server().__name__ != "on_rqlite"


@contextlib.contextmanager
def held(service):
    """Has a transaction that is open, for which writers of the same text wait. Gives a function that rolls it back."""
    if not has_transactions():
        yield lambda: None
        return
    holder = service.client()
    number = holder.database("notes", "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})[0][0].get_uint64()
    holder.execute("notes", WRITE, options={"transaction": GLib.Variant("t", number)})
    yield lambda: holder.database("notes", "Rollback", "(ta{sv})", number, {})
    holder.close()


def interrupt_until_told(library):
    """Interrupts what the library does until it has told how that ended. Returns the name of the error, or ""."""
    library.process.send_signal(signal.SIGUSR1)
    while not select.select([library.process.stdout], [], [], 0.01)[0]:  # it may not have begun
        library.process.send_signal(signal.SIGUSR1)
    words = library.hear().split(" ", 6)
    return words[5].removeprefix("org.sqlipc1.Error.") if words[0] == "error" else ""


def interrupt(library, line, then=lambda: None):
    """Has the library do `line`, calls the function, and interrupts. Returns the name of the error, or ""."""
    library.say(line)
    then()
    name = interrupt_until_told(library)
    while name == "" and line.startswith(("query", "execute")):  # the end comes after the rows
        line = "rows 0"
        library.say(line)
        name = interrupt_until_told(library)
    return name


def check(service, path, what, name):
    """Compares the answer with the rows after all runs have ended."""
    wait_for(lambda: service.counters()["NRuns"] == 0, "no run is left")
    n = len(content(path))
    true(name == "OutcomeUnknown" or n == (name == ""), f"{what}: {name or 'no error'}, and {n} rows")
    service.client().execute("notes", "DELETE FROM note")


@each_way
def interrupted(transport):
    """A write that is interrupted while it waits for a lock is cancelled, and nothing is written when the lock is gone"""
    with service_of_notes(limits={"BusyTimeoutSec": PATIENCE}) as (service, path):
        for what, (before, line) in INTERRUPTED.items():
            with Library(service, transport) as library:
                for first in before:
                    library.ok(first)
                with held(service) as let_go:
                    name = interrupt(library, line)
                    if has_transactions():
                        equal(name, "Cancelled", what)
                    let_go()
                check(service, path, what, name)


@each_way
def interrupted_at_the_end(transport):
    """A write that is interrupted while its lock goes says that it was cancelled only if nothing was written"""
    with service_of_notes(limits={"BusyTimeoutSec": PATIENCE}) as (service, path):
        for what, (before, line) in [*INTERRUPTED.items()] * 5:
            with Library(service, transport) as library:
                for first in before:
                    library.ok(first)
                with held(service) as let_go:
                    name = interrupt(library, line, let_go)
            check(service, path, what, name)


@test
def interrupted_loads():
    """A load that is interrupted at its end says that it was cancelled only if nothing was written"""
    with service_of_notes(limits={"BusyTimeoutSec": PATIENCE}) as (service, path):
        for _ in range(10):
            with Library(service) as library, held(service) as let_go:
                library.say("load notes INSERT INTO note (text) VALUES (?)")
                let_go()
                library.hear()
                library.ok("give 1 1")
                name = interrupt(library, "finish")
            check(service, path, "load", name)


@test
def example():
    """The example in the documentation says how much it has changed, or why it has not"""
    program = BUILD_ROOT / "docs/examples/example-exec"
    with service_of_notes() as (service, path):
        done = service.run(program, f"--address={service.address}", "notes", "INSERT INTO note (text) VALUES ('x')")
        equal((done.returncode, done.stdout, done.stderr), (0, b"1 changed\n", b""), "INSERT")
        equal(content(path), [(1, "x")], "rows")
        done = service.run(program, f"--address={service.address}", "chinook", "DELETE FROM Genre")
        equal((done.returncode, done.stdout), (1, b""), "DELETE")
        true(done.stderr.startswith(b"org.sqlipc1.Error.ReadOnly: "), done.stderr)


main()
