#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Memory (RssAnon of supervisor and workers): constant while a result streams, and small for each parked scan.

Not run under sanitizers, because their shadow memory and quarantines would be measured.
"""
import sqlite3
import threading
import time

from harness import Service, main, rss_anon, wait_for
from tap import at_most, diagnose, equal, test

MIB = 1024 * 1024
service = Service(limits={"WorkersMax": 2, "ParkTimeoutSec": 600, "ParkTimeoutRollbackSec": 600, "WorkerIdleSec": 600})


def make_study(path, rows):
    """31 columns, 30 of them random text of 20 characters."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("CREATE TABLE study(id INTEGER PRIMARY KEY, " + ", ".join(f"c{n} TEXT" for n in range(1, 31)) + ")")
    db.execute(
        f"""WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT {rows})
                   INSERT INTO study SELECT x, {", ".join(["lower(hex(randomblob(10)))"] * 30)} FROM n"""
    )
    db.commit()
    db.close()


for name, size in (("small", 3000), ("large", 300000)):
    make_study(service.data / f"{name}.sqlite", size)
    service.database(name, Path=service.data / f"{name}.sqlite")
service.driver.manager("Reload")
client = service.client()


def memory():
    return rss_anon(service.pid()) + sum(rss_anon(pid) for pid in service.workers())


class Sampler(threading.Thread):
    """The most memory seen."""

    def __init__(self):
        super().__init__()
        self.leave, self.peak = threading.Event(), 0

    def run(self):
        while not self.leave.is_set():
            try:
                self.peak = max(self.peak, memory())
            except (AssertionError, FileNotFoundError, ProcessLookupError):
                pass  # a worker ended between listing and looking
            time.sleep(0.002)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.leave.set()
        self.join()


def fetch(database, rows):
    """Bytes above idle at the worst moment of a full fetch."""
    client.point(database)
    idle = memory()
    with Sampler() as sampler:
        equal(client.query(database, "SELECT * FROM study").counted()[1], rows, "rows")
    diagnose(f"{database}: idle {idle / MIB:.2f} MiB, at most {(sampler.peak - idle) / MIB:+.2f} MiB during the fetch")
    return sampler.peak - idle


@test
def full_fetch():
    """A full fetch of 3,000 and of 300,000 rows: at most 4 MiB above idle"""
    for database, rows in (("small", 3000), ("large", 300000)):
        at_most(fetch(database, rows), 4 * MIB, f"bytes above idle, {rows} rows")


def parked(sql, n):
    """Bytes for each of n parked runs."""
    before = memory()
    workers = len(service.workers())
    clients = [service.client() for _ in range(n)]
    runs = [one.query("large", sql) for one in clients]
    wait_for(lambda: service.counters()["NParked"] == n, "all runs are parked")
    each = (memory() - before) / n
    diagnose(f"{n} parked runs in {len(service.workers())} workers (before: {workers}): {each / MIB:.2f} MiB each")
    for run in runs:
        run.close()
    wait_for(lambda: service.counters()["NRuns"] == 0, "all runs are over")
    return each


@test
def parked_scans():
    """A parked scan: at most 0.5 MiB"""
    client.point("large")
    at_most(parked("SELECT * FROM study", 50), 0.5 * MIB, "bytes for each")


@test
def parked_sorts():
    """A parked run that sorts: at most 1.5 MiB"""
    client.point("large")
    at_most(parked("SELECT * FROM study WHERE id <= 20000 ORDER BY c1", 20), 1.5 * MIB, "bytes for each")


@test
def large_rows():
    """A row of 32 MiB is passed in pieces: only SQLite holds it as a whole"""
    client.point("small")
    idle = memory()
    with Sampler() as sampler:
        run = client.query("small", f"SELECT zeroblob({32 * MIB})")
        equal(run.counted()[1], 1, "rows")
    at_most(sampler.peak - idle, (32 + 8) * MIB, "bytes above idle")


main(service)
