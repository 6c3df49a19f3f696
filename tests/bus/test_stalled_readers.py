#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers that stop mid-result: two hundred of them cost no process, hold up no query, and let go of the database."""
import contextlib
import os
import resource
import signal
import sqlite3
import threading
import time

from channel import Channel
from client import SECONDS, Broken, Failure
from clocks import Clocks
from harness import PATIENCE, SANITIZED, UID_A, Service, expect, main, wait_for
from tap import at_most, diagnose, equal, test

N_READERS = 200
WORKERS_MAX = 8
MANY = "SELECT a.text, b.text FROM t AS a, t AS b"

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Writer(threading.Thread):
    """A foreign program that writes a row, and checkpoints, as fast as it may. Only a hang makes it give up."""

    def __init__(self, path):
        super().__init__()
        self.path, self.leave, self.problem = path, threading.Event(), None
        self.written, self.wal_size = 0, 0

    def run(self):
        db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
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
    """200 stalled readers: within the workers' limit, later point queries are answered"""
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
        # The size that was written while readers pinned it, not one that grows for ever.
        at_most(writer.wal_size, 64 * 1024 * 1024, "bytes of WAL")
        for run in runs:
            expect("ReaderTooSlow", run.read)
        keep.close()


@test
def writer_in_rollback_mode():
    """After ParkTimeoutRollbackSec a foreign writer gets its lock, long before ParkTimeoutSec="""
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
    """Cursors of OpenRows that no call continues end the same way"""
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


def slow_readers(service, client):
    """Runs that are not read, one of each kind: functions that continue reading, and the objects that leave the bus."""
    run = client.query("db", MANY)
    rows = client.open_rows("db", MANY)[0]
    channel = Channel(client, "db")
    request = channel.query(MANY)
    return [run.read, lambda: to_the_end(client, rows), lambda: channel.read(request)], run, channel


def no_workers(service):
    wait_for(lambda: not service.workers(), "every worker ends, for nothing needs one")


@test
def ended_runs_keep_no_worker():
    """A run that only drains needs no worker, by pipe, OpenRows and channel; its reader still gets ReaderTooSlow"""
    limits = {"ParkTimeoutRollbackSec": "0.2", "WorkersMax": 3, "WorkerIdleSec": 0}
    with Service(limits=limits) as service:
        make(service.data / "db.sqlite", "DELETE").close()
        service.database("db", Path=service.data / "db.sqlite")
        service.driver.manager("Reload")
        reads, _, channel = slow_readers(service, service.client())
        no_workers(service)
        equal(service.states(), ["draining"] * 2, "runs; that of the channel is over")
        for read in reads:
            expect("ReaderTooSlow", read)
        equal(channel.ask("SELECT 1"), [[1]], "rows of the next request on the channel")
        wait_for(lambda: service.counters()["NRuns"] == 0, "the runs are over")


@test
def ended_runs_can_be_cancelled():
    """CancelRun ends a run that only drains, and its reader finds a broken stream"""
    with Service(limits={"ParkTimeoutRollbackSec": "0.2", "WorkerIdleSec": 0}) as service:
        make(service.data / "db.sqlite", "DELETE").close()
        service.database("db", Path=service.data / "db.sqlite")
        service.driver.manager("Reload")
        client = service.client()
        reads, run, _ = slow_readers(service, client)
        no_workers(service)
        for number, *_ in service.driver.manager("ListRuns")[0]:
            service.driver.manager("CancelRun", "(ta{sv})", number)
        equal(is_broken(reads[0]), True, "the pipe ends without END or ERROR")
        expect("Cancelled", reads[1])
        equal(service.counters()["NRuns"], 0, "runs")


@test
def ended_runs_of_clients_that_left():
    """Ended runs of a client that leaves the bus end after ParkTimeoutSec, even if its pipes stay open"""
    limits = {"ParkTimeoutRollbackSec": "0.2", "ParkTimeoutSec": "0.5", "WorkerIdleSec": 0}
    with Service(limits=limits) as service:
        make(service.data / "db.sqlite", "DELETE").close()
        service.database("db", Path=service.data / "db.sqlite")
        service.driver.manager("Reload")
        client = service.client()
        _, run, _ = slow_readers(service, client)
        kept = os.dup(run.pipe)
        no_workers(service)
        client.close()
        wait_for(lambda: service.counters()["NRuns"] == 0, "its runs are forgotten")
        os.close(kept)


@test
def unread_bytes_are_bounded():
    """Last bytes for slow readers are bounded for each user: past 64 MiB a stream is cut off"""
    with Service(limits={"ParkTimeoutRollbackSec": "0.2", "WorkersMax": 2, "WorkerIdleSec": 0}) as service:
        make(service.data / "db.sqlite", "DELETE").close()
        service.database("db", Path=service.data / "db.sqlite")
        service.driver.manager("Reload")
        options = {"page-size": 1024 * 1024}
        wide = "SELECT randomblob(1000000) FROM t"
        runs = [service.client().query("db", wide, options=options) for _ in range(80)]
        wait_for(lambda: "parked" not in service.states() and "running" not in service.states(), "all have ended")
        no_workers(service)
        broken = sum(is_broken(run.read) for run in runs)
        at_most(80 - broken, 72, "streams whose end was kept")  # 64 MiB in pieces of nearly a megabyte
        at_most(broken, 20, "streams that were cut off")


@test
def unread_bytes_at_a_stop():
    """A stopping service waits for slow readers: they find the end of their stream"""
    limits = {"ParkTimeoutRollbackSec": "0.2", "WorkerIdleSec": 0}
    with Clocks() as clocks, Service(limits=limits, environment=clocks.environment) as service:
        make(service.data / "db.sqlite", "DELETE").close()
        service.database("db", Path=service.data / "db.sqlite")
        service.driver.manager("Reload")
        run = service.client().query("db", "SELECT randomblob(2000000) FROM t", options={"page-size": 1024 * 1024})
        no_workers(service)
        clocks.stop()  # so the second for which it waits does not pass
        service.daemon.send_signal(signal.SIGTERM)
        wait_for(lambda: not service.has_owner(), "the name is given up")
        equal(is_broken(run.read), False, "the end of the stream")
        equal(service.daemon.wait(SECONDS), 0, "exit code, when nothing is left to read")
        service.daemon = None


def is_broken(read):
    try:
        read()
    except Broken:
        return True
    except Failure as failure:
        equal(failure.name, "org.sqlipc1.Error.ReaderTooSlow", "the end of a stream")
    return False


def to_the_end(client, number):
    while client.next_rows("db", number)[1]:
        pass


if __name__ == "__main__":
    main()
