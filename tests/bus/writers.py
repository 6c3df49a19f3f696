# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes that insert rows through the service, each by several threads, and note what they are told about each row.

    book = Book(make_written(service.data / "written.sqlite", "wal"))
    crowd = Crowd(service, 1, ["channel", "execute"], n_rows=100)
    crowd.wait()
    book.check([crowd])       # each row that was acknowledged exists, none whose write failed, none twice
    crowd.seconds             # how long each write took
    book.outcomes             # how often a write was "ok", "broken", or failed with the name of an error

The notes are in a file, so that they survive a process that is killed. A row without a note may exist: its writer was
killed.
"""
import contextlib
import itertools
import multiprocessing
import os
import sqlite3
import threading
import time
from types import SimpleNamespace

from channel import Channel
from client import Broken, Client, Failure
from harness import PATIENCE, Service, on_server
from library import Library
from tap import equal, true

DB = "written"
INSERT = "INSERT INTO written(number, t) VALUES (?1, 'some text')"
OURS = "org.sqlipc1.Error."
DBUS = "org.freedesktop.DBus.Error."
# After these errors the row does not exist. The service had ended before it got the call, or says so itself.
NOT_WRITTEN = {OURS + name for name in ("WorkerLost", "DaemonLost", "ShuttingDown", "UnknownStatement")} | {
    DBUS + name for name in ("ServiceUnknown", "NameHasNoOwner")
}
# After these it may exist. A channel or a pipe that ends without an answer is "broken".
UNKNOWN = {OURS + "OutcomeUnknown", DBUS + "NoReply", "broken"}
SEQUENCE_BITS = 20  # of a row's number


def make_written(path, journal):
    """Makes the database, which the service's user must own."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        equal(db.execute(f"PRAGMA journal_mode = {journal}").fetchone(), (journal,), "journal mode")
        db.execute("CREATE TABLE written(id INTEGER PRIMARY KEY, number INTEGER, t TEXT)")
        db.execute("CREATE INDEX written_number ON written(number)")
        db.commit()
    return path


@contextlib.contextmanager
def writable(journal="wal", uid=None, limits=None, environment=None, **keys):
    """A service with this database, and a table with a constraint in it; service.written is its file."""
    with Service(limits=limits or {}, uid=uid, environment=environment) as service:
        service.written = make_written(service.data / "written.sqlite", journal)
        with contextlib.closing(sqlite3.connect(service.written)) as db:
            db.execute("CREATE TABLE single(n INTEGER UNIQUE)")
            db.commit()
        if uid is not None:
            os.chown(service.written, uid, uid)
        service.database(DB, **{"Path": service.written, "Mode": "read-write", **keys})
        service.driver.manager("Reload")
        yield service


def ask(service, sql):
    """Rows of the file, as another program reads them; or of the server that has the test's database."""
    if on_server():
        return list(map(list, on_server().rows_of(service.written, sql)))
    with contextlib.closing(sqlite3.connect(service.written, timeout=PATIENCE)) as db:
        return [list(row) for row in db.execute(sql)]


def numbers(service):
    return [number for (number,) in ask(service, "SELECT number FROM written ORDER BY number")]


# ---- a writer ----


def by_execute(client):
    def insert(number):
        changes, _ = client.execute(DB, INSERT, [number])
        equal(changes, 1, "changes")

    return insert


def by_fetch(client):
    statement = client.prepare(DB, INSERT)
    return lambda number: equal(statement.fetch(number).read().end.n_changes, 1, "changes")


def by_channel(client):
    channel = Channel(client, DB)
    statement = channel.prepare(INSERT)
    channel.statement(statement)
    return lambda number: equal(channel.read(channel.fetch(statement, number)).end.n_changes, 1, "changes")


class Started(SimpleNamespace):
    """The members that Library reads, of a service that another process has started."""


def by_library(transport):
    def begin(client):
        library = Library(Started(address=client.address, environment=dict(os.environ)), transport)
        client.programs.append(library)

        def ask(line, wanted):
            _, answer = library.ask(line)
            if answer != wanted:
                words = answer.split(" ", 6)
                equal(words[0], "error", f"{line}: {answer}")
                raise Failure(words[5], words[6])

        def insert(number):
            ask(f"bind 1 i {number}", "ok")
            ask("execute", "ok")
            ask("rows 0", "end 0")

        ask(f"prepare {DB} {INSERT}", "ok")
        return insert

    return begin


WAYS = {
    "execute": by_execute,
    "fetch": by_fetch,
    "channel": by_channel,
    "library": by_library("auto"),
    "library, channel": by_library("channel"),
}


class Connection(Client):
    """With the programs that a way has started."""

    def __init__(self, address):
        super().__init__(address)
        self.address, self.programs = address, []

    def close(self):
        super().close()
        for library in self.programs:
            library.process.stdin.close()
            library.process.stdout.close()
            library.process.wait(PATIENCE)


class Writer:
    """A thread. After a failure it begins anew, with another connection to the bus."""

    def __init__(self, address, way, note):
        self.address, self.way, self.note = address, way, note
        self.client = self.insert = None

    def open(self):
        """False: the service does not answer now."""
        try:
            self.client = Connection(self.address)
            self.insert = WAYS[self.way](self.client)
        except (Failure, Broken) as error:
            name = getattr(error, "name", "broken")
            true(name in NOT_WRITTEN | UNKNOWN, f"to begin failed with {error}")
            self.close()
            time.sleep(0.005)
        return bool(self.insert)

    def close(self):
        if self.client:
            self.client.close()
        self.client = self.insert = None

    def run(self, numbers):
        try:
            self.write(numbers)
        except BaseException as error:
            self.note("bug", repr(error).replace("\n", " "))
            raise

    def write(self, numbers):
        for number in numbers:
            while not self.insert and not self.open():
                pass
            start = time.monotonic()
            try:
                self.insert(number)
                self.note(number, "ok", time.monotonic() - start)
            except (Failure, Broken) as error:
                self.note(number, getattr(error, "name", "broken"), time.monotonic() - start)
                self.close()
        self.close()


def live(address, file, generation, ways, uid, n_rows):
    """The life of a process, which is of this user from now on."""
    fd = os.open(file, os.O_WRONLY | os.O_APPEND)
    if uid is not None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)

    def note(number, outcome, seconds=0):
        os.write(fd, f"{number} {seconds:.6f} {outcome}\n".encode())  # one write, so that threads do not mix their lines

    with contextlib.closing(Client(address)) as client:  # gi is not made for threads that load its parts at the same time
        client.bus_call("NameHasOwner", "(s)", "org.sqlipc1")
    threads = []
    for i, way in enumerate(ways):
        first = (generation * 64 + i) << SEQUENCE_BITS
        numbers = itertools.count(first) if n_rows is None else range(first, first + n_rows)
        threads.append(threading.Thread(target=Writer(address, way, note).run, args=(numbers,), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def start_server():
    # If a writer is killed, its programs become children of the server, which warns of them.
    os.environ["PYTHONWARNINGS"] = "ignore"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["channel", "client", "harness", "library", "tap", "writers"])
    return context


class Crowd:
    """A process with a writer for each of `ways`. `n_rows`: of each writer; None: until the process is killed."""

    context = None

    def __init__(self, service, generation, ways, uid=None, n_rows=None):
        Crowd.context = Crowd.context or start_server()
        self.file = service.folder / f"notes-{generation}"
        self.file.touch()
        self.read_size, self.rest, self.seconds = 0, b"", []
        arguments = (service.address, self.file, generation, ways, uid, n_rows)
        self.process = Crowd.context.Process(target=live, args=arguments, daemon=True)
        self.process.start()

    def kill(self):
        self.process.kill()
        self.process.join()

    def wait(self):
        self.process.join(PATIENCE)
        equal(self.process.exitcode, 0, "exit code of writers")

    def new_notes(self):
        """Yields (number, outcome) of the complete lines since the last call."""
        with open(self.file, "rb") as file:
            file.seek(self.read_size)
            data = file.read()
        self.read_size += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            number, seconds, outcome = line.decode().split(" ", 2)
            true(number != "bug", f"a writer ended: {outcome}")
            self.seconds.append(float(seconds))
            yield int(number), outcome


class Book:
    """Compares the notes of all writers with the table."""

    def __init__(self, path):
        self.path, self.last_id = path, 0
        self.rows, self.written, self.not_written = set(), set(), set()
        self.outcomes = {}
        self.db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)

    def note(self, crowds):
        for crowd in crowds:
            for number, outcome in crowd.new_notes():
                self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
                if outcome == "ok":
                    self.written.add(number)
                elif outcome in NOT_WRITTEN:
                    self.not_written.add(number)
                else:
                    true(outcome in UNKNOWN, f"the write of row {number} failed with {outcome}")

    def look(self):
        """Reads the rows since the last time: no row is deleted, so their ids are larger."""
        sql = "SELECT id, number FROM written WHERE id > ? ORDER BY id"
        for self.last_id, number in self.db.execute(sql, [self.last_id]):
            true(number not in self.rows, f"row {number} exists twice")
            self.rows.add(number)

    def check(self, crowds):
        """A note is made after the commit, so the table is read after the notes."""
        self.note(crowds)
        self.look()
        equal(sorted(self.written - self.rows)[:10], [], "rows that were acknowledged and do not exist")
        equal(sorted(self.not_written & self.rows)[:10], [], "rows that exist although their write failed")
        equal(self.db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity_check")

    def close(self):
        """The whole table again, now that no program writes."""
        self.last_id, self.rows = 0, set()
        self.check([])
        self.db.close()
