# SPDX-License-Identifier: LGPL-2.1-or-later
"""libsqlipc in a separate process, library-client.c, which gets one command per line."""
import contextlib
import sqlite3
import struct
import subprocess

from client import SECONDS, Failure, Text
from harness import BUILD_ROOT, CHINOOK, PATIENCE, Service, on_server, reachable
from tap import equal, test

NOTHING = "nothing"  # in place of the line that opens a connection
PROGRAM = reachable(BUILD_ROOT / "tests/bus/library-client")


def each_way(function):
    """Makes a test for each transport, which the function gets as its argument."""
    for transport in ("auto", "channel", "dbus"):

        def one(transport=transport):
            function(transport)

        one.__name__ = f"{function.__name__}_{transport}"
        one.__doc__ = f"{function.__doc__} ({transport})"
        test(one)
    return function


@contextlib.contextmanager
def service_of_notes(journal="wal", **keywords):
    """A service with a database "notes" that may be written, and "chinook", which may not; and the file of "notes"."""
    with Service({"chinook": CHINOOK}, **keywords) as service:
        path = service.data / "notes.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(f"PRAGMA journal_mode = {journal}; CREATE TABLE note (id INTEGER PRIMARY KEY, text UNIQUE);")
        service.database("notes", Path=path, Mode="read-write", WriteSchema="yes")
        service.driver.manager("Reload")
        yield service, path


def rows_of(path, sql, text=str):
    """Rows of a file, as another program reads them, with TEXT as `text`; or of the server's database in its place."""
    if on_server():
        rows = on_server().rows_of(path, sql)
        return [tuple(text(v, "utf-8") if isinstance(v, str) and text is bytes else v for v in row) for row in rows]
    with contextlib.closing(sqlite3.connect(path, timeout=120)) as db:
        db.text_factory = text
        return db.execute(sql).fetchall()


def owner_pid(service):
    """Returns the pid of the owner of the service's name; None without an owner."""
    try:
        return service.pid()
    except Failure:
        return None


class Library:
    """A library-client process."""

    def __init__(self, service, transport=None, opening=None, environment=None, **keywords):
        """`opening`: the line that opens the connection, in place of one to the service's bus."""
        self.process = subprocess.Popen(
            [PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=service.environment | (environment or {}),
            text=True,
            **keywords,
        )
        if opening is NOTHING:
            return
        self.ok(opening or f"open {service.address}")
        self.ok(f"timeout {PATIENCE * 1000000}")
        if transport:
            self.ok(f"transport {transport}")

    def say(self, line):
        self.process.stdin.write(" ".join(line.split()) + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"library-client ended with {self.process.wait()}")
        return line.rstrip("\n")

    def ask(self, line):
        """Returns the received rows, and the last line."""
        self.say(line)
        rows = []
        while (answer := self.hear()).startswith("row"):
            rows.append([value(word) for word in answer.split()[1:]])
        return rows, answer

    def ok(self, line):
        rows, answer = self.ask(line)
        equal(answer, "ok", line)
        return rows

    def failure(self, line):
        """Returns errno, name without the prefix, and message of an answer that must be an error."""
        _, answer = self.ask(line)
        words = answer.split(" ", 6)
        equal(words[0], "error", f"{line}: {answer}")
        return int(words[1]), words[5].removeprefix("org.sqlipc1.Error."), words[6]

    def via(self):
        """Returns the transport of the open cursor's run."""
        return self.ask("which")[1].removeprefix("via ")

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(SECONDS)
        self.process.stdout.close()
        equal(code, 0, "exit code of library-client")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
            self.process.wait()
        else:
            self.close()


def value(word):
    """Returns a value as library-client prints it."""
    kind, _, data = word.partition(":")
    if kind == "i":
        return int(data)
    if kind == "r":
        return struct.unpack(">d", bytes.fromhex(data))[0]
    if kind == "t":
        return Text(bytes.fromhex(data))
    if kind == "b":
        return bytes.fromhex(data)
    equal(word, "n", "value")
    return None
