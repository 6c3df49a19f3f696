#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libsqlipc writes: what it reports over each transport, and the file afterwards."""

from harness import BUILD_ROOT, main
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
