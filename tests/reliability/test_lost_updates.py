#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""No watcher misses a commit, whatever is killed.

Writers increase numbers, each its own: half of them through the service, half past it. Each says how far it has come when
its commit is acknowledged. Watchers read all numbers when they are told of a change, and only then. Meanwhile workers, the
service and clients are killed. A watcher must see each commit that was acknowledged before it read. In the end each
watcher that lives must have seen the last commit of every writer.

    test_lost_updates.py [--commits=N] [--writers=N] [--watchers=N] [--kills=N] [--seed=N]
"""
import argparse
import contextlib
import mmap
import os
import pathlib
import random
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from client import Broken, Client, Failure  # noqa: E402
from gi.repository import GLib  # noqa: E402
from harness import SANITIZED, Service, main, wait_for  # noqa: E402
from tap import diagnose, equal, test, true  # noqa: E402
from watching import DB, Watch  # noqa: E402

READ = "SELECT writer, n FROM numbers ORDER BY writer"
LOST = ("NoReply", "ServiceUnknown", "NameHasNoOwner", "Disconnected", "WorkerLost", "OutcomeUnknown", "ShuttingDown",
        "Busy", "Cancelled", "TimedOut", "ReaderTooSlow", "PipeClosed", "NeedsRecovery")


class Board:
    """How far each process has come: numbers that all of them see."""

    def __init__(self, path, size=0):
        if size:
            pathlib.Path(path).write_bytes(bytes(8 * size))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def __getitem__(self, i):
        return struct.unpack_from("<Q", self.memory, 8 * i)[0]

    def __setitem__(self, i, value):
        struct.pack_into("<Q", self.memory, 8 * i, value)


def until_served(address, function):
    """Calls the function with a client until the service is there to answer it."""
    while True:
        try:
            return function(Client(address))
        except (Broken, Failure, GLib.Error, OSError) as error:
            if isinstance(error, Failure) and not str(error.name).endswith(LOST):
                raise
            time.sleep(0.02)


def write_past(path, board, me, n):
    with contextlib.closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as db:
        for value in range(board[me] + 1, n + 1):
            db.execute("UPDATE numbers SET n = ? WHERE writer = ?", (value, me))
            board[me] = value


def write_through(address, board, me, n):
    """If an answer is lost, the same number is written again."""
    client = None
    while board[me] < n:
        try:
            client = client or until_served(address, lambda c: c)
            client.execute(DB, "UPDATE numbers SET n = ? WHERE writer = ?", [board[me] + 1, me])
            board[me] = board[me] + 1
        except (Failure, GLib.Error) as error:
            if isinstance(error, Failure) and not str(error.name).endswith(LOST):
                raise
            client = None
            time.sleep(0.01)


def watch(address, board, me, n_writers):
    """Board: from 100 on the sum that the watcher has seen, from 200 on how often it was told."""
    told = 0
    while True:
        w = until_served(address, lambda client: Watch(client, "numbers"))
        with contextlib.suppress(Broken, Failure, GLib.Error, OSError):
            while True:
                before = [board[i] for i in range(n_writers)]
                rows = dict(until_served(address, lambda _: w.client.query(DB, READ).read().rows))
                late = [i for i in range(n_writers) if rows[i] < before[i]]
                if late:
                    sys.exit(f"watcher {me}: a read shows {rows[late[0]]} of writer {late[0]}, after {before[late[0]]}")
                board[100 + me] = sum(rows.values())
                if not select.select([w.fd], [], [], 300)[0] or not os.read(w.fd, 8):
                    break
                told += 1
                board[200 + me] = told


def start(role, *arguments):
    return subprocess.Popen([sys.executable, __file__, role, *map(str, arguments)])


def run(journal, options):
    randomly = random.Random(options.seed)
    n_each = options.commits // options.writers
    with Service() as service:
        path, board_path = service.data / "watched.sqlite", service.folder / "board"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(f"PRAGMA journal_mode = {journal}; CREATE TABLE numbers(writer INTEGER PRIMARY KEY, n)")
            db.executemany("INSERT INTO numbers VALUES (?, 0)", [(i,) for i in range(options.writers)])
            db.commit()
        service.database(DB, Path=path, Mode="read-write", Synchronous="normal")
        service.limits(BusyTimeoutSec=60)
        service.driver.manager("Reload")
        board = Board(board_path, 400)
        watchers = [start("watch", service.address, board_path, i, options.writers) for i in range(options.watchers)]

        def start_writer(i):
            return start("past", path, board_path, i, n_each) if i % 2 else start("through", service.address, board_path, i,
                                                                                n_each)

        writers = [start_writer(i) for i in range(options.writers)]
        kills = options.kills
        while any(w.poll() is None for w in writers):
            time.sleep(randomly.uniform(0.05, 0.3))
            for i, w in enumerate(writers):
                if w.poll() not in (None, 0) and w.returncode != -signal.SIGKILL:
                    raise AssertionError(f"writer {i} has failed")
            if kills > 0:
                kills -= 1
                what = randomly.choice(["worker", "worker", "service", "watcher", "writer"])
                if what == "worker" and service.workers():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(randomly.choice(service.workers()), signal.SIGKILL)
                elif what == "service":
                    service.kill()
                    service.start()
                elif what == "watcher":
                    i = randomly.randrange(options.watchers)
                    watchers[i].kill()
                    watchers[i].wait()
                    watchers[i] = start("watch", service.address, board_path, i, options.writers)
                else:
                    i = 2 * randomly.randrange(options.writers // 2)
                    if writers[i].poll() is None:
                        writers[i].kill()
                        writers[i].wait()
                        writers[i] = start_writer(i)
        total = n_each * options.writers
        equal(sum(board[i] for i in range(options.writers)), total, "commits that were acknowledged")

        def seen_by_all():
            for i, w in enumerate(watchers):
                true(w.poll() is None, f"watcher {i} has failed")
            return all(board[100 + i] == total for i in range(options.watchers))

        try:
            wait_for(seen_by_all, "that each watcher has seen the last commit")
        except BaseException:
            late = [i for i in range(options.watchers) if board[100 + i] != total]
            diagnose(f"watchers that missed the last commit: {late}; of {total} they saw {[board[100 + i] for i in late]}")
            raise
        finally:
            for process in writers + watchers:
                process.kill()
                process.wait()
        diagnose(f"{journal}: {total} commits, {sum(board[200 + i] for i in range(options.watchers))} notices read")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, default=400 if SANITIZED else 2000, help="in each journal mode")
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--watchers", type=int, default=6)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    known, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return known


ROLES = {"watch": watch, "past": write_past, "through": write_through}

if len(sys.argv) > 1 and sys.argv[1] in ROLES:
    role, where, board_path, *numbers = sys.argv[1:]
    ROLES[role](where, Board(board_path), *map(int, numbers))
    sys.exit(0)

options = parse()


@test
def with_a_log():
    """WAL"""
    run("wal", options)


@test
def with_a_journal():
    """Rollback journal"""
    run("delete", options)


main()
