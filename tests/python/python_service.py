# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private bus with the service, for the tests of the Python package: "chinook" to read, "notes" to write."""

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time

import sqlipc
import sqlipc._core
import sqlipc._errors
from harness import CHINOOK, PATIENCE, Service, wait_for
from library import owner_pid
from tap import true

SCHEMA = """
CREATE TABLE note(id INTEGER PRIMARY KEY, text UNIQUE);
CREATE TABLE thing(a, b, c);
"""


# How long a load that is given up is waited for, which decides if its outcome is told.
sqlipc._core.CANCEL_SECONDS = PATIENCE


class PythonService(Service):
    """`notes` is the path of the file of the database "notes"."""

    def __init__(self, limits=None, **keywords):
        # Tests have a statement wait for a lock that its own thread holds.
        super().__init__({"chinook": CHINOOK}, limits={"BusyTimeoutSec": 5} | (limits or {}), **keywords)
        self.notes = self.add("notes", SCHEMA)

    def add(self, name, schema="", journal="wal", kind=""):
        """Publishes a new database for writing, and returns the path of its file; `kind`: PRAGMAs that come first."""
        path = self.data / f"{name}.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(f"{kind} PRAGMA journal_mode = {journal}; {schema}")
        self.database(name, Path=path, Mode="read-write", WriteSchema="yes")
        self.driver.manager("Reload")
        return path

    def connect(self, name="notes", **keywords):
        return sqlipc.connect(name, bus=self.address, **{"timeout": PATIENCE} | keywords)

    def empty(self):
        """Empties the tables of "notes"."""
        with contextlib.closing(self.connect(isolation_level=None)) as db:
            db.execute("DELETE FROM note")
            db.execute("DELETE FROM thing")


# A condition that is true, and takes some milliseconds, so that most kills meet a run.
SLOWLY = "(WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < 30000) SELECT count(*) FROM c) > 0"


def interrupt_load(core):
    """Interrupts the next wait for the end of a load. The library's error stands for the wait: a fast load would end before
    the interruption."""
    until = core.until

    async def interrupted(function, *arguments, **keywords):
        if getattr(function, "__name__", "") != "finish":
            return await until(function, *arguments, **keywords)
        del core.until
        core.link.interrupt()
        raise sqlipc._errors.outcome_unknown("The wait was interrupted.")

    core.until = interrupted


class Killer(threading.Thread):
    """Kills a service that the bus starts (activation=True) while a reader works, which calls read_on() after each result.

    The service is killed soon after a result. Then its next instance is left alone, killed as soon as it has the name, or
    killed like the one after it, in turn.
    """

    random = random.Random(1)

    def __init__(self, service, n_kills):
        super().__init__(daemon=True)
        self.service, self.n_kills = service, n_kills
        self.n_results = self.n_killed = 0
        self.start()

    def run(self):
        for i in range(self.n_kills):
            before = self.n_results
            wait_for(lambda before=before: self.n_results > before + 1, "the reader goes on")
            time.sleep(self.random.uniform(0, 0.01))
            pid = wait_for(lambda: owner_pid(self.service), "the service is up")
            for _ in range(i % 3):
                pid = self._kill(pid)
            self._kill(pid)

    def _kill(self, pid):
        """Returns the pid of the next instance, which has just begun to answer calls."""
        os.kill(pid, signal.SIGKILL)
        self.n_killed += 1
        end = time.monotonic() + PATIENCE
        while (owner := owner_pid(self.service)) in (None, pid):  # wait_for() would be too slow to kill it in time
            true(time.monotonic() < end, "the bus starts another instance")
        return owner

    def read_on(self):
        """True until the service was killed often enough."""
        self.n_results += 1
        return self.is_alive()


def raises(kind, function, *arguments, **keywords):
    """Fails unless the call raises exactly this class; returns the exception."""
    try:
        result = function(*arguments, **keywords)
    except kind as error:
        if type(error) is not kind:
            raise AssertionError(f"got {error!r}, expected {kind.__name__}") from error
        return error
    raise AssertionError(f"got {result!r}, expected {kind.__name__}")
