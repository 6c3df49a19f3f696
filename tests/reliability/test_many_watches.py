#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Large numbers of watches: 10,000 at once, 1,000 that are not read beside thousands of commits, and clients that watch and
leave without a pause.

As many of the 10,000 as the service may have descriptors for are watches with a pipe; the others are calls of WaitChange.
The test prints what each costs, for docs/performance.md: meson test -C build reliability-many_watches --verbose
"""
import contextlib
import os
import pathlib
import resource
import signal
import sqlite3
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from client import Broken, Client, Failure, object_path  # noqa: E402
from gi.repository import GLib  # noqa: E402
from harness import (  # noqa: E402
    SANITIZED, UID_A, UID_B, Service, main, needs_root, processor_time, rss_anon, wait_for,
)  # fmt: skip
from tap import cases, diagnose, equal, true  # noqa: E402
from watching import DB, Watch  # noqa: E402

SHARE = 5  # one descriptor of so many may be that of a watch
N = 1000 if SANITIZED else 10000
N_UNREAD, N_COMMITS = (100, 300) if SANITIZED else (1000, 3000)
N_BESIDE_FLOOD = 50 if SANITIZED else 200
KIB = 1024

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
with contextlib.suppress(ValueError, OSError):  # as the units of the service do; not every root may
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(hard, 65536), max(hard, 65536)))
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextlib.contextmanager
def watched(**limits):
    with Service(limits=limits, bus_limits={"max_replies_per_connection": 2 * N}) as service:
        service.path = service.data / "watched.sqlite"
        with contextlib.closing(sqlite3.connect(service.path)) as db:
            db.executescript("PRAGMA journal_mode = wal; CREATE TABLE a(n)")
        service.database(DB, Path=service.path, Mode="read-write", Synchronous="normal")
        service.driver.manager("Reload")
        yield service


def n_watches(service):
    return service.driver.properties("org.sqlipc1.Manager")["NWatches"]


def wait_for_change(client):
    return client.begin(object_path(DB), "org.sqlipc1.Database", "WaitChange", "(asta{sv})", ["a"], 0, {})


def refused(watch):
    try:
        watch()
    except Failure as failure:
        return failure.name.endswith("LimitsExceeded")
    return False


def commit_past(service):
    with contextlib.closing(sqlite3.connect(service.path, isolation_level=None)) as db:
        db.execute("INSERT INTO a VALUES (1)")


@needs_root
def ten_thousand():
    """10,000 watches of two users: quotas, memory, no process and no wake-up while idle; each commit is told to all"""
    with watched(WatchesMax=N // 2, RunsMax=N) as service:  # each call is a run until its tables are found
        clients = [service.client(uid) for uid in (UID_A, UID_B)]
        # of those for watches an eighth is a reserve, and a user has at most half of the rest that the other one leaves
        n_pipes = min(N, hard // SHARE * 7 // 12 - 2) // 2 * 2
        first = [Watch(client, "a") for client in clients]  # starts what watches need at all
        pid = service.pid()
        before = rss_anon(pid)
        watches = first + [Watch(client, "a") for _ in range(n_pipes // 2 - 1) for client in clients]
        grown = rss_anon(pid) - before
        calls = [wait_for_change(client) for _ in range((N - n_pipes) // 2) for client in clients]
        wait_for(lambda: n_watches(service) == N, "that all calls have arrived")
        diagnose(f"{n_pipes} watches, {len(calls)} calls of WaitChange; {grown // (n_pipes - 2)} bytes of the supervisor for"
                 f" each watch, {(rss_anon(pid) - before - grown) // max(1, len(calls))} for each call")
        true(SANITIZED or rss_anon(pid) - before < 4 * KIB * N, "memory of the supervisor")
        true(all(refused(lambda client=client: wait_for_change(client).result()) for client in clients),
             "each user has all that the user may have")

        def sleeps():
            voluntary = pathlib.Path(f"/proc/{pid}/status").read_text().partition("voluntary_ctxt_switches:")[2].split()[0]
            used = processor_time(pid)
            time.sleep(1)
            now = pathlib.Path(f"/proc/{pid}/status").read_text().partition("voluntary_ctxt_switches:")[2].split()[0]
            return now == voluntary and processor_time(pid) == used

        wait_for(lambda: not service.workers(), "the end of all other processes")
        wait_for(sleeps, "a second without a wake-up")
        used = processor_time(pid)
        service.driver.execute(DB, "INSERT INTO a VALUES (1)")
        true(all(watch.next() for watch in watches), "each watch is told")
        true(all(call.result() for call in calls), "each call is answered")
        commit_past(service)
        true(all(watch.next() for watch in watches), "each watch is told of a commit past the service")
        each = (processor_time(pid) - used) / (2 * n_pipes + len(calls))
        diagnose(f"{1e6 * each:.0f} us of the supervisor's processor time for each notice")
        equal(n_watches(service), n_pipes, "watches after WaitChange was answered")
        for client in clients:
            client.close()
        wait_for(lambda: n_watches(service) == 0, "the end of the watches")
        cases("watch", N, "watches at once")


@needs_root
def unread():
    """Watches that are not read: the supervisor's memory does not grow with the commits"""
    with watched(WatchesMax=N_UNREAD) as service:
        client = service.client(UID_A)
        watches = [Watch(client, "a") for _ in range(N_UNREAD)]
        service.driver.execute(DB, "INSERT INTO a VALUES (0)")
        wait_for(lambda: all(watch.is_readable() for watch in watches), "that each watch is told")
        pid = service.pid()
        before, used = rss_anon(pid), processor_time(pid)
        for k in range(N_COMMITS):
            service.driver.execute(DB, "INSERT INTO a VALUES (?)", [k])
        grown, used = rss_anon(pid) - before, processor_time(pid) - used
        diagnose(f"{N_COMMITS} commits beside {N_UNREAD} watches: {grown} bytes more in the supervisor,"
                 f" {1e6 * used / N_COMMITS:.0f} us of its processor time for each")
        true(SANITIZED or grown < 256 * KIB, "memory after the commits")
        true(all(len(os.read(watch.fd, 4096)) == 8 for watch in watches), "one number for each watch")
        true(all(watch.next() for watch in watches), "then that of the last commit")


def flood(address):
    """Watches and leaves, and calls WaitChange, until it is killed."""
    os.setuid(UID_B)
    while True:
        with contextlib.suppress(Broken, Failure, GLib.Error, OSError):
            client = Client(address)
            calls = [wait_for_change(client) for _ in range(200)]
            for _ in range(100):
                watch = Watch(client, "a")
                watch.end()
                watch.close()
            true(calls, "calls")
            client.close()


@needs_root
def floods():
    """Clients that watch and leave without a pause do not keep others from being told, and leave nothing behind"""
    with watched(WatchesMax=100) as service:
        client = service.client(UID_A)
        watch = Watch(client, "a")
        floods = []
        for _ in range(2):
            pid = os.fork()
            if pid == 0:
                os.execv(sys.executable, [sys.executable, __file__, "flood", service.address])
            floods.append(pid)
        longest, before = 0, None
        try:
            wait_for(lambda: n_watches(service) > 1, "the floods")
            for k in range(N_BESIDE_FLOOD):
                began = time.monotonic()
                service.driver.execute(DB, "INSERT INTO a VALUES (?)", [k])
                true(watch.next(), "a commit")
                longest = max(longest, time.monotonic() - began)
                if k == N_BESIDE_FLOOD // 4:
                    before = rss_anon(service.pid())
            grown = rss_anon(service.pid()) - before
        finally:
            for pid in floods:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        diagnose(f"{N_BESIDE_FLOOD} commits were told, the slowest after {1000 * longest:.0f} ms; the supervisor grew by"
                 f" {grown} bytes")
        true(SANITIZED or grown < 1024 * KIB, "memory of the supervisor")
        wait_for(lambda: n_watches(service) == 1, "the end of the watches of the floods")


if sys.argv[1:2] == ["flood"]:
    flood(sys.argv[2])

main()
