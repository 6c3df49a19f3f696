# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service on which the scenarios of test_faults.py run, and the errors that their clients must never get.

A scenario is a function of a stage and a client. It returns if everything was right. It raises Failure or Broken
(client.py) at the first error that it receives. A wrong value, or a missing answer, is an AssertionError.
"""
import contextlib
import functools
import os
import sqlite3

import settled  # noqa: F401 - finds tests/bus
from client import ERROR, Broken, Failure, Text, decode
from harness import CHINOOK, PATIENCE, UID_A, Service, wait_for
from tap import equal, true

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, 'text to fill the pages' FROM n"
SCAN = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
VALUES = [1, -(2**63), 2.5, Text(b"text\0with"), Text(b"\xff"), b"blob", None]
SEVEN = "SELECT ?, ?, ?, ?, ?, ?, ?"
TRACKS = "SELECT TrackId, Name FROM Track"

scenarios = {}


def scenario(function):
    scenarios[function.__name__] = function
    return function


def refused(function, *arguments, **keywords):
    """It must be answered with an error of the service's own."""
    try:
        result = function(*arguments, **keywords)
    except Failure as failure:
        check_failure(failure)
        return failure
    raise AssertionError(f"got {str(result)[:200]}, expected an error")


def check_failure(failure):
    """An error that says what is wrong: neither silence, nor something else that is wrong."""
    true(not failure.name.startswith("local:"), f"no answer: {failure}")
    for wrong in ("NoReply", "UnknownMethod", "UnknownInterface", "ServiceUnknown", "Disconnected"):
        true(not failure.name.endswith("." + wrong), f"a wrong answer: {failure}")


def until_still(stage):
    """Until no run goes on without its reader."""
    wait_for(lambda: set(stage.service.states()) <= {"parked", "draining"}, "runs are parked")


@functools.cache
def tracks():
    with contextlib.closing(sqlite3.connect(CHINOOK)) as db:
        db.text_factory = Text
        return [list(row) for row in db.execute(TRACKS)]


def answers(calls, rows):
    """Each of the calls is answered with `rows`, or with an error, of which the first is raised."""
    failures = []
    for call in calls:
        try:
            equal(call.result()[1].unpack(), rows, "rows")
        except Failure as failure:
            check_failure(failure)
            failures.append(failure)
    if failures:
        raise failures[0]


def begins(run):
    """Its first frame is there; raises the failure, if it is that."""
    kind, _, data = run.frame()
    if kind == ERROR:
        decode([data])


def told(stage, watch):
    """The number of the next change. The end of the pipe, also within a number, is a loss that the client notices."""
    true(watch.is_readable(PATIENCE), "a watch was not told of a change")
    data = os.read(watch.fd, 4096)
    if len(data) != 8:
        true(stage.armed, "a watch ended")
        raise Broken("the watch ended")
    return int.from_bytes(data, "little")


def is_quiet(stage):
    wait_for(stage.service.is_idle, "no client holds anything of the service")


# The limits that users have. If a fault costs a message, such a limit may be all that ends the wait for it.
USUAL = {
    "QueueTimeoutSec": 10, "PrepareTimeoutSec": 5, "BusyTimeoutSec": 5, "TransactionTimeoutSec": 60, "TransactionIdleSec": 5,
}  # fmt: skip
USUAL_ENVIRONMENT = {"SYSTEMD_BUS_TIMEOUT": "25s"}


class Stage:
    """A service of the test builds, and the databases that the scenarios ask for."""

    def __init__(self, sqlipcd, worker, environment=None, **keys):
        self.service = Service(
            start=False,
            sqlipcd=sqlipcd,
            worker=worker,
            environment=USUAL_ENVIRONMENT | (environment or {}),
            limits=USUAL | {
                "WorkerIdleSec": 0.02, "StatementsMax": 8, "RunsMax": 8, "ChannelsMax": 4, "TempSizeMax": "8M",
                "ParkTimeoutRollbackSec": 60,
            },
            **keys,
        )  # fmt: skip
        self.armed = False
        data = self.service.data
        self.rollback, self.wal, self.hidden = data / "rollback.sqlite", data / "wal.sqlite", data / "hidden.sqlite"
        for path in (self.rollback, self.wal, self.hidden):
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
                if path == self.hidden:
                    db.execute("PRAGMA encoding = 'UTF-16le'")
                db.executescript(
                    "CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE UNIQUE);"
                    "CREATE TABLE book(title TEXT, author INT, price REAL, PRIMARY KEY(title, author)) WITHOUT ROWID;"
                    "CREATE VIEW priced AS SELECT title, price, name FROM book JOIN author ON id = author;"
                    "CREATE TABLE secret(x); INSERT INTO secret VALUES('not for you');"
                    "CREATE VIEW cast_view AS SELECT CAST(id AS TEXT) AS x FROM author;"
                    "CREATE VIEW overflow AS SELECT abs(-9223372036854775808 + id * 0) AS x FROM author;"
                    f"CREATE TABLE wide({', '.join(f'c{i}' for i in range(1999))}); INSERT INTO wide(c1994) VALUES(7);"
                    "INSERT INTO author VALUES(1, 'Ada'), (2, 'Grace');"
                    "INSERT INTO book VALUES('Notes', 1, 1.5), ('COBOL', 2, 2);"
                )
        self.asleep = data / "asleep.sqlite"  # in WAL mode, of another user, whose programs are all gone
        with contextlib.closing(sqlite3.connect(self.asleep, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("CREATE TABLE t(x)")
        os.chown(self.asleep, UID_A, UID_A)
        self.paths = [self.rollback, self.wal, self.hidden, CHINOOK]
        self.writer = sqlite3.connect(self.wal, isolation_level=None)  # stays: a reader needs its -shm
        self.writer.execute("PRAGMA journal_mode = WAL")
        self.writer.execute("INSERT INTO author VALUES(3, 'Edsger')")
        service = self.service
        service.database("chinook", Path=CHINOOK)
        service.database(
            "rollback",
            f"[Database]\nPath={self.rollback}\nAllowUsers=*\n[Limits]\nParkTimeoutRollbackSec=0.1\nBusyTimeoutSec=0.1\n",
        )
        service.database("patient", f"[Database]\nPath={self.rollback}\nAllowUsers=*\n[Limits]\nBusyTimeoutSec=60\n")
        service.database("wal", Path=self.wal)
        service.database("asleep", Path=self.asleep)
        service.database(
            "hidden", Path=self.hidden, Expose="author book priced cast_view overflow wide", AllowUsers="root daemon",
            AllowGroups="root",
        )  # fmt: skip
        service.database("asked", Path=CHINOOK, AllowUsers="root", Polkit="yes")
        self.make_written()

    def make_written(self):
        """Databases in which clients write (fault_writes.py)."""
        self.written = {"log": self.service.data / "log.sqlite", "journal": self.service.data / "journal.sqlite"}
        self.last_number, self.expected = 0, {}
        for name, path in self.written.items():
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
                db.execute(f"PRAGMA journal_mode = {'WAL' if name == 'log' else 'DELETE'}")
                db.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, number INTEGER, text)")
                db.execute("INSERT INTO note(id) VALUES (1)")
            self.service.database(name, Path=path, Mode="read-write", WriteUsers=str(UID_A), WriteSchema="yes")
        keys = f"Path={self.written['journal']}\nMode=read-write\nAllowUsers=*"
        self.service.database("hasty", f"[Database]\n{keys}\n[Limits]\nBusyTimeoutSec=0.1\n")

    def new_number(self):
        self.last_number += 1
        return self.last_number

    def expect(self, database, number, *counts):
        """So many rows with the number may there be."""
        self.expected[database, number] = counts

    def check_written(self):
        """When the service has come to rest: nothing that was acknowledged is missing, and nothing else was written."""
        expected, self.expected = self.expected, {}
        for name, path in self.written.items():
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
                found = dict(db.execute("SELECT number, count(*) FROM note WHERE id > 1 GROUP BY number"))
                wrong = {
                    number: (found.get(number, 0), counts) for (where, number), counts in expected.items()
                    if where == name and found.get(number, 0) not in counts
                }  # fmt: skip
                equal(wrong, {}, f"rows in {name}: how many are there, and how many there may be")
                true(set(found) <= {number for where, number in expected if where == name}, f"rows of others in {name}")
                db.execute("DELETE FROM note WHERE id > 1")

    def close(self, check=True):
        self.writer.close()
        self.service.close(check)
