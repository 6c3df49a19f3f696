#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers that stop mid-result: two hundred of them cost no process, hold up no query, and let go of the database."""
import contextlib
import os
import resource
import sqlite3
import threading
import time

from harness import PATIENCE, SANITIZED, UID_A, Service, expect, main, wait_for
from tap import at_most, diagnose, equal, test

N_READERS = 200
WORKERS_MAX = 8

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Writer(threading.Thread):
    """A foreign program that writes a row, and checkpoints, as fast as it may, with a busy timeout of 10 s."""

    def __init__(self, path):
        super().__init__()
        self.path, self.leave, self.problem = path, threading.Event(), None
        self.written, self.wal_size = 0, 0

    def run(self):
        db = sqlite3.connect(self.path, timeout=10, isolation_level=None)
        try:
            while not self.leave.is_set():
                db.execute("INSERT INTO log(line) VALUES(randomblob(2000))")
                self.written += 1
                with contextlib.suppress(FileNotFoundError):
                    self.wal_size = max(self.wal_size, os.path.getsize(f"{self.path}-wal"))
                time.sleep(0.01)
        except sqlite3.Error as problem:
            self.problem = problem
        finally:
            db.close()

    def finish(self):
        self.leave.set()
        self.join()
        if self.problem:
            raise AssertionError(f"the foreign writer failed after {self.written} rows: {self.problem}")


def make(path, mode):
    db = sqlite3.connect(path, timeout=PATIENCE)  # its checkpoint waits for a writer that is rarely at rest
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, text)")
    db.execute("CREATE TABLE log(id INTEGER PRIMARY KEY, line)")
    db.execute(
        "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT 20000) "
        "INSERT INTO t SELECT x, hex(randomblob(50)) FROM n"
    )
    db.commit()
    return db


def stall(service, n, uid=None):
    """Clients that ask for everything and read nothing."""
    return [service.client(uid).query("db", "SELECT * FROM t") for _ in range(n)]


@test
def two_hundred_readers():
    """200 stalled readers: within the workers' limit, point queries behind them are answered"""
    with Service(limits={"WorkersMax": WORKERS_MAX, "ParkTimeoutSec": 600, "ParkTimeoutRollbackSec": 600}) as service:
        make(service.data / "db.sqlite", "DELETE").close()
        service.database("db", Path=service.data / "db.sqlite")
        service.driver.manager("Reload")
        runs = stall(service, N_READERS)
        wait_for(lambda: service.counters()["NParked"] == N_READERS, "all runs are parked")
        at_most(len(service.workers()), WORKERS_MAX, "workers")
        for _ in range(20):
            service.driver.point("db")
        if os.geteuid() == 0:
            service.client(UID_A).point("db")
        at_most(len(service.workers()), WORKERS_MAX + 1, "workers")
        for run in runs[:10]:
            equal(run.counted()[1], 20000, "rows of a reader that woke up")


@test
def writer_in_wal_mode():
    """After ParkTimeoutSec a WAL is checkpointed again, and a foreign writer never fails"""
    n = 50 if SANITIZED else N_READERS
    with Service(limits={"WorkersMax": WORKERS_MAX, "ParkTimeoutSec": 2}) as service:
        path = service.data / "db.sqlite"
        keep = make(path, "WAL")
        service.database("db", Path=path)
        service.driver.manager("Reload")
        writer = Writer(path)
        writer.start()
        try:
            runs = stall(service, n)
            wait_for(lambda: service.states() == ["draining"] * n, "parked runs end")
            start = writer.written
            wait_for(lambda: writer.written > start + 50, "the writer writes on")
            blocked, _, _ = keep.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            service.driver.point("db")
        finally:
            writer.finish()
        equal(blocked, 0, "a reader still blocks the checkpoint")
        diagnose(f"{writer.written} rows written, WAL of {writer.wal_size} bytes at most")
        # What was written while readers pinned it, not what would be written for ever.
        at_most(writer.wal_size, 64 * 1024 * 1024, "bytes of WAL")
        for run in runs:
            expect("ReaderTooSlow", run.read)
        keep.close()


@test
def writer_in_rollback_mode():
    """After ParkTimeoutRollbackSec a foreign writer gets its lock, within its busy timeout of 10 s"""
    n = 50 if SANITIZED else N_READERS
    with Service(limits={"WorkersMax": WORKERS_MAX, "ParkTimeoutRollbackSec": 2, "ParkTimeoutSec": 600}) as service:
        path = service.data / "db.sqlite"
        make(path, "DELETE").close()
        service.database("db", Path=path)
        service.driver.manager("Reload")
        runs = stall(service, n)
        # On a slow machine the first are past the timeout before the last one is parked.
        wait_for(lambda: set(service.states()) <= {"parked", "draining"}, "all runs are parked, or were")
        writer = Writer(path)
        writer.start()
        try:
            wait_for(lambda: writer.written >= 10 or writer.problem, "the writer gets through")
        finally:
            writer.finish()
        for run in runs:
            expect("ReaderTooSlow", run.read)


@test
def stalled_cursors_of_nextrows():
    """Cursors of OpenRows that nobody continues end the same way"""
    with Service(limits={"ParkTimeoutRollbackSec": 1, "WorkersMax": 2}) as service:
        make(service.data / "db.sqlite", "DELETE").close()
        service.database("db", Path=service.data / "db.sqlite")
        service.driver.manager("Reload")
        client = service.client()
        numbers = [client.open_rows("db", "SELECT * FROM t")[0] for _ in range(30)]
        at_most(len(service.workers()), 2, "workers")
        wait_for(lambda: service.states() == ["draining"] * 30, "parked runs end")
        for number in numbers:
            expect("ReaderTooSlow", to_the_end, client, number)
            expect("UnknownRun", client.next_rows, "db", number)


def to_the_end(client, number):
    while client.next_rows("db", number)[1]:
        pass


if __name__ == "__main__":
    main()
