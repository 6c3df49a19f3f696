#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Watches and live queries of libsqlipc with the real daemon: while programs write, and when the service dies."""
import contextlib
import os
import signal
import sqlite3
import subprocess
import threading

from client import Text
from harness import BUILD_ROOT, PATIENCE, children, main, wait_for
from library import Library, each_way, owner_pid, service_of_notes
from relay import relay_address
from tap import at_most, diagnose, equal, test, true

PATIENT_USEC = PATIENCE * 1_000_000
QUIET_USEC = 100_000
ADDED, REMOVED, MOVED, CHANGED = 1, 2, 3, 4
INSERT = "exec notes INSERT INTO note (text) VALUES"
NEEDLESS_MAX = 2
needless = []
BY_TEXT = "SELECT id, text FROM note ORDER BY text DESC, id"


def number_of(answer):
    return int(answer.split()[-1])


def awaited(library):
    """Waits for a change, and returns its number."""
    answer = library.ask(f"await {PATIENT_USEC}")[1]
    true(answer.startswith("changed 1 "), answer)
    return number_of(answer)


def quiet(library, usec=QUIET_USEC):
    """No change is told. A watch tells that tables *may* have changed: on a busy machine the service can take its own commit
    for one past it, which a few notices of all may be. A commit that wakes the wrong watch does so in each test."""
    if library.ask(f"await {usec}")[1].startswith("changed 0 "):
        return
    needless.append(library)
    diagnose("a change that is none")
    at_most(len(needless), NEEDLESS_MAX, "changes that are none")
    quiet(library, usec)


def sqlite(path, sql):
    """Changes the file past the service."""
    with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as db:
        db.executescript(sql)


def read(path, sql):
    with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as db:
        return [list(row) for row in db.execute(sql)]


def plain(value):
    """A value as sqlite3 returns it."""
    return value.decode() if isinstance(value, Text) else value


class Mirror:
    """The list of a live query's rows, made of the changes that the library tells."""

    def __init__(self, library, sql, database="notes"):
        self.library, self.rows, self.kinds = library, [], []
        library.ok(f"live {database} {sql}")
        self.follow()

    def apply(self, kind, position, new_position, *values):
        self.kinds.append(kind)
        if kind in (REMOVED, MOVED):
            row = self.rows.pop(position)
            if kind == MOVED:
                equal(list(values), row, "values of a row that moves")
                self.rows.insert(new_position, row)
        elif kind == ADDED:
            self.rows.insert(position, list(values))
        elif kind == CHANGED:
            equal(self.rows[position][0], values[0], "the key of a row that changes")
            true(self.rows[position] != list(values), "a change that is none")
            self.rows[position] = list(values)

    def follow(self, usec=PATIENT_USEC):
        """Takes the changes of one run, and returns the last line; or "quiet"."""
        changes, answer = self.library.ask(f"follow {usec}")
        for change in changes:
            self.apply(*map(plain, change))
        return answer

    def settled(self, usec=PATIENT_USEC):
        """Follows until the list has settled once."""
        self.kinds = []
        answer = self.follow(usec)
        true(answer.startswith("settled "), answer)
        return self.kinds

    def follow_until(self, rows):
        """Follows until the list is this one."""
        while self.rows != rows:
            answer = self.follow()
            true(answer.startswith("settled "), answer)


@each_way
def changes(transport):
    """Each commit wakes the watches of its table, and no others; results tell which changes they have"""
    with service_of_notes() as (service, path), Library(service, transport) as library, Library(service) as writer:
        sqlite(path, "CREATE TABLE other (n)")
        library.ok("watch notes note")
        quiet(library)
        for value in "abc":
            equal(writer.ask(f"{INSERT} ('{value}')")[1], "changes 1")
            told = awaited(library)
            library.ok("query notes SELECT count(*) FROM note")
            library.ask("rows 0")
            true(number_of(library.ask("sequence")[1]) >= told, "the result has the change")
            quiet(library)
        equal(writer.ask("exec notes INSERT INTO other VALUES (1)")[1], "changes 1")
        quiet(library)
        for table in ("note", "other"):
            equal(writer.ask(f"exec notes INSERT INTO {table} DEFAULT VALUES")[1], "changes 1")
        awaited(library)
        quiet(library)

        library.ok("watch-sql notes SELECT n FROM other")
        equal(writer.ask(f"{INSERT} ('d')")[1], "changes 1")
        quiet(library)
        equal(writer.ask("exec notes DELETE FROM other")[1], "changes 2")
        before = awaited(library)
        library.ok(f"watch-since notes {before}")
        quiet(library)
        library.ok(f"watch-since notes {before - 1}")
        equal(awaited(library), before, "the change that was missed")
        library.ok("unwatch")


@test
def past_the_service():
    """Commits of programs that open the file themselves are changes, too, with both kinds of journal"""
    for journal in ("wal", "delete"):
        with service_of_notes(journal) as (service, path), Library(service) as library, Library(service) as other:
            library.ok("watch notes note")
            mirror = Mirror(other, BY_TEXT)
            for value in "abc":
                sqlite(path, f"INSERT INTO note (text) VALUES ('{value}')")
                awaited(library)
                mirror.follow_until(read(path, BY_TEXT))
            quiet(library)
            sqlite(path, "BEGIN; INSERT INTO note (text) VALUES ('d'); ROLLBACK; PRAGMA wal_checkpoint")
            quiet(library)


@test
def refusals():
    """An unknown table, wrong SQL, a statement that writes, an unknown database"""
    with service_of_notes() as (service, path), Library(service) as library:
        equal(library.failure("watch notes nosuch")[1], "Sql")
        equal(library.failure("watch-sql notes SELECT nosuch FROM note")[1], "Sql")
        equal(library.failure("live notes SELECT nosuch FROM note")[1], "Sql")
        equal(library.failure("live notes INSERT INTO note (text) VALUES ('a') RETURNING id")[1], "NotAllowed")
        equal(library.failure("live nowhere SELECT 1")[0], 2)
        equal(read(path, "SELECT * FROM note"), [], "rows")
        library.ok("watch chinook Track")
        library.ok("watch notes")


def die(service):
    pid = service.pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: owner_pid(service) != pid, "the bus notices")


@test
def restart_under_a_watch():
    """The death of the service is a change, and the watch goes on with the next one"""
    with service_of_notes(activation=True) as (service, path), Library(service) as library, Library(service) as writer:
        library.ok("watch notes note")
        for value in "abc":
            die(service)
            awaited(library)
            equal(writer.ask(f"{INSERT} ('{value}')")[1], "changes 1")
            awaited(library)
        quiet(library)
        equal(len(read(path, "SELECT * FROM note")), 3, "rows")


@test
def live_query():
    """A live query tells the differences, and as few as possible"""
    with service_of_notes() as (service, path), Library(service) as library, Library(service) as writer:

        def told(sql):
            writer.ask(f"exec notes {sql}")
            kinds = mirror.settled()
            equal(mirror.rows, read(path, BY_TEXT), sql)
            return kinds

        mirror = Mirror(library, BY_TEXT)
        equal(mirror.rows, [], "rows")
        equal(told("INSERT INTO note (text) VALUES ('a'), ('b'), ('c')"), [ADDED] * 3, "kinds")
        equal(told("UPDATE note SET text = 'bb' WHERE text = 'b'"), [CHANGED], "kinds")
        equal(told("UPDATE note SET text = 'd' WHERE text = 'a'"), [MOVED, CHANGED], "kinds")
        equal(told("DELETE FROM note WHERE text > 'c'"), [REMOVED], "kinds")
        equal(told("INSERT INTO note (text) VALUES ('e')"), [ADDED], "kinds")
        equal(mirror.follow(QUIET_USEC), "quiet", "after all")


@test
def dropped_table():
    """A table that is dropped is an error of the run; when it is there again, the live query goes on"""
    with service_of_notes() as (service, path), Library(service) as library, Library(service) as writer:
        writer.ask(f"{INSERT} ('a')")
        mirror = Mirror(library, BY_TEXT)
        writer.ask("exec notes DROP TABLE note")
        equal(library.failure(f"follow {PATIENT_USEC}")[1], "Sql")
        equal(mirror.rows, [[1, "a"]], "the list stays as it was")
        writer.ask("exec notes CREATE TABLE note (id INTEGER PRIMARY KEY, text)")
        writer.ask(f"{INSERT} ('b')")
        while mirror.rows != [[1, "b"]]:
            answer = mirror.follow()
            true(answer.startswith("settled ") or "Sql" in answer, answer)


def write_through(service, n):
    """Changes rows in one way or another, through the service."""
    with Library(service) as library:
        for i in range(n):
            library.ask(f"{INSERT} ('{i % 7} {i}')")
            library.ask(f"exec notes UPDATE note SET text = text || 'x' WHERE id % 5 = {i % 5}")
            if i % 3 == 0:
                library.ask("exec notes DELETE FROM note WHERE id = (SELECT min(id) FROM note)")


def write_past(path, n):
    for i in range(n):
        sqlite(path, f"INSERT INTO note (text) VALUES ('past {i}'); DELETE FROM note WHERE id % 11 = {i % 11}")


def agree(journal):
    """Two live queries while two programs write, one of them past the service: each is a fresh query's result at the end."""
    with service_of_notes(journal) as (service, path), Library(service) as one, Library(service, "dbus") as two:
        mirrors = [Mirror(one, BY_TEXT), Mirror(two, "SELECT id % 3, count(*) FROM note GROUP BY 1")]
        writers = [
            threading.Thread(target=write_through, args=(service, 40)),
            threading.Thread(target=write_past, args=(path, 40)),
        ]
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            for mirror in mirrors:
                mirror.follow(1000)
        for writer in writers:
            writer.join()
        for mirror, sql in zip(mirrors, (BY_TEXT, "SELECT id % 3, count(*) FROM note GROUP BY 1"), strict=True):
            mirror.follow_until(read(path, sql))


@test
def writers_with_wal():
    """Live queries agree with a fresh query when two writers are done (WAL)"""
    agree("wal")


@test
def writers_with_rollback_journal():
    """Live queries agree with a fresh query when two writers are done (rollback journal)"""
    agree("delete")


@test
def restart_under_a_live_query():
    """After the death of the service a live query tells what has changed meanwhile, and no error"""
    with service_of_notes(activation=True) as (service, path), Library(service) as library, Library(service) as writer:
        mirror = Mirror(library, BY_TEXT)
        for value in "abc":
            die(service)
            writer.ask(f"{INSERT} ('{value}')")
            mirror.follow_until(read(path, BY_TEXT))
        equal(mirror.follow(QUIET_USEC), "quiet", "after all")


@test
def without_descriptors():
    """Watches and live queries through a relay, which passes no descriptors"""
    with service_of_notes() as (service, path), Library(service) as writer:
        with Library(service, opening=f"open {relay_address(service)}") as library:
            library.ok("watch notes note")
            for value in "abc":
                equal(writer.ask(f"{INSERT} ('{value}')")[1], "changes 1")
                awaited(library)
                quiet(library)
            before = awaited_after(library, writer)
            library.ok(f"watch-since notes {before - 1}")
            equal(awaited(library), before, "the change that was missed")
            library.ok("unwatch")
            mirror = Mirror(library, BY_TEXT)
            writer.ask(f"{INSERT} ('e')")
            equal(mirror.settled(), [ADDED], "kinds")
            equal(mirror.rows, read(path, BY_TEXT), "rows")
            writer.ask("exec notes DELETE FROM note WHERE text < 'c'")
            equal(mirror.settled(), [REMOVED] * 2, "kinds")


@test
def relay_lost():
    """If the relay dies, the library starts another one, and that is a change"""
    with service_of_notes() as (service, _), Library(service) as writer:
        with Library(service, opening=f"open {relay_address(service)}") as library:
            library.ok("watch notes note")
            (bridge,) = children(library.process.pid)
            os.kill(bridge, signal.SIGKILL)
            awaited(library)
            writer.ask(f"{INSERT} ('a')")
            awaited(library)
            quiet(library)


def awaited_after(library, writer):
    writer.ask(f"{INSERT} ('d')")
    return awaited(library)


def example(name, service, sql):
    command = [BUILD_ROOT / f"docs/examples/example-{name}", f"--address={service.address}", "notes", sql]
    return subprocess.Popen(command, env=service.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@test
def examples():
    """The examples follow a statement: by a watch, and as a live query in an sd-event loop"""
    sql = "SELECT id, text FROM note ORDER BY id"
    expected = {
        "watch": [["--", "1|a"], ["--", "1|a", "2|b"], ["--"]],
        "live": [["+0 1|a", "1 rows"], ["+1 2|b", "2 rows"], ["-1", "-0", "0 rows"]],
    }
    changes = (f"{INSERT} ('b')", "exec notes DELETE FROM note")
    for name, results in expected.items():
        with service_of_notes() as (service, _), Library(service) as writer:
            writer.ask(f"{INSERT} ('a')")
            with example(name, service, sql) as process:
                for lines, change in zip(results, (*changes, None), strict=True):
                    equal([process.stdout.readline().strip() for _ in lines], lines, name)
                    if change:
                        writer.ask(change)
                equal((*process.communicate(timeout=PATIENCE), process.returncode), ("", "", 0), f"the end of {name}")
            with example(name, service, "SELECT nosuch FROM note") as process:
                out, errors = process.communicate(timeout=PATIENCE)
                equal((out, process.returncode), ("", 1), f"{name} with wrong SQL")
                true("org.sqlipc1.Error.Sql" in errors, f"{name}: {errors}")


@test
def quota():
    """WatchesMax= limits the watches of a user; a live query needs one, too"""
    with service_of_notes(limits={"WatchesMax": 2}) as (service, _), contextlib.ExitStack() as stack:
        libraries = [stack.enter_context(Library(service)) for _ in range(3)]
        libraries[0].ok("watch notes note")
        libraries[1].ok("live notes SELECT 1")
        equal(libraries[2].failure("watch notes note")[1], "LimitsExceeded")
        equal(libraries[2].failure("live notes SELECT 1")[1], "LimitsExceeded")
        libraries[0].ok("unwatch")
        libraries[2].ok("watch notes note")


main()
