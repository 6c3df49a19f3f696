#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""32 writers of three users, beside a reader that stopped, a transaction that does nothing, and a program that opens the
file itself: no writer gets an error, and the users take turns.
"""
import collections
import contextlib
import os
import subprocess
import sys

import settled  # noqa: F401, it makes the modules of tests/bus importable
from gi.repository import GLib
from harness import PATIENCE, PATIENT, UID_A, UID_B, UID_DAEMON, Service, expect, main, needs_root, wait_for
from tap import equal, true
from writers import DB, SEQUENCE_BITS, Book, Crowd, make_written

N_CROWDS, N_ROWS = 8, 100  # processes of four writers, and the rows of each writer
IDLE = 0.5  # seconds after which the transaction that does nothing must make room
WAYS = ["channel", "execute", "fetch", "library"]
UIDS = (UID_A, UID_B, UID_DAEMON)
INSERT = "INSERT INTO written(number) VALUES (?)"
ALL = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT x, (SELECT count(*) FROM written) FROM n"
FOREIGN = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=100, isolation_level=None)
for n in range(50):
    db.execute("INSERT INTO written(number) VALUES (?)", [int(sys.argv[2]) + n])
    time.sleep(0.02)
"""
FOREIGN_FIRST = 1 << 60


@contextlib.contextmanager
def writable(journal):
    limits = PATIENT | {"ChannelsMax": 64, "BusyTimeoutSec": 60, "TransactionIdleSec": IDLE}
    with Service(limits=limits, uid=UID_DAEMON) as service:
        service.written = make_written(service.data / "written.sqlite", journal)
        os.chown(service.written, UID_DAEMON, UID_DAEMON)
        service.database(DB, Path=service.written, Mode="read-write", WriteUsers=f"{UID_A} {UID_B}")
        service.driver.manager("Reload")
        yield service


def begin_and_rest(client):
    """A transaction that has written a row, and does nothing more."""
    values, _ = client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
    inside = {"transaction": GLib.Variant("t", values[0].get_uint64())}
    equal(client.execute(DB, INSERT, [FOREIGN_FIRST - 1], options=inside)[0], 1, "changes in the transaction")
    return inside


def users_of(rows):
    """The index in UIDS of each row's user, in the order of commits."""
    return [((number >> SEQUENCE_BITS) // 64 - 1) % len(UIDS) for (number,) in rows if number < FOREIGN_FIRST - 1]


def turns_of(users):
    """The users, each once for the rows that follow each other, as long as all of them write."""
    last = min(len(users) - 1 - users[::-1].index(user) for user in range(len(UIDS)))
    first = max(users.index(user) for user in range(len(UIDS)))
    turns = []
    for user in users[first : last + 1]:
        if not turns or turns[-1] != user:
            turns.append(user)
    return turns


def overtakings(turns):
    """How often other users had n turns, at most each, between two turns of a user: n -> times. Without a queue that all
    users share, n grows."""
    found, since = collections.Counter(), {}
    for user in turns:
        if user in since:
            found[max(since[user].values(), default=0)] += 1
        for others in since.values():
            others[user] += 1
        since[user] = collections.Counter()
    return found


def write_beside_all(journal):
    with writable(journal) as service:
        stalled = service.client(UID_B).query(DB, ALL) if journal == "wal" else None  # otherwise a reader keeps writers out
        book = Book(service.written)
        crowds = [Crowd(service, n + 1, WAYS, UIDS[n % len(UIDS)], n_rows=N_ROWS) for n in range(N_CROWDS)]
        foreign = [sys.executable, "-c", FOREIGN, str(service.written), str(FOREIGN_FIRST)]
        with subprocess.Popen(foreign, user=UID_DAEMON, group=UID_DAEMON, extra_groups=[]) as process:
            wait_for(lambda: all(crowd.file.stat().st_size > 0 for crowd in crowds), "all write")
            resting = service.client()
            inside = begin_and_rest(resting)
            for crowd in crowds:
                crowd.wait()
            equal(process.wait(PATIENCE), 0, "exit code of the program that opens the file")
        expect("TransactionEnded", resting.execute, DB, INSERT, [0], options=inside)
        book.check(crowds)
        equal(book.outcomes, {"ok": N_CROWDS * len(WAYS) * N_ROWS}, "answers")
        true(FOREIGN_FIRST - 1 not in book.rows, "the row of the transaction that was rolled back exists")
        found = overtakings(turns_of(users_of(book.db.execute("SELECT number FROM written ORDER BY id"))))
        report(journal, crowds, found)
        true(max(second for crowd in crowds for second in crowd.seconds) >= IDLE, "no writer has waited for the transaction")
        true(sum(found.values()) > 20, f"only {sum(found.values())} turns")
        true(found[0] + found[1] >= 0.9 * sum(found.values()), f"a user had several turns while others waited: {found}")
        book.close()
        if stalled:
            stalled.cancel()
            expect("Cancelled", stalled.counted)


def report(journal, crowds, found):
    seconds = sorted(second for crowd in crowds for second in crowd.seconds)
    times = [f"{seconds[int(q * (len(seconds) - 1))] * 1000:.1f} ms" for q in (0.5, 0.99, 1)]
    print(f"# {journal}: {len(seconds)} writes, p50 {times[0]}, p99 {times[1]}, worst {times[2]};", flush=True)
    print(f"# between two turns of a user, turns of another one at most: {dict(sorted(found.items()))}", flush=True)


@needs_root
def wal():
    """In WAL mode: no error, each row once, and the users take turns"""
    write_beside_all("wal")


@needs_root
def rollback_journal():
    """With a rollback journal: the same"""
    write_beside_all("delete")


if __name__ == "__main__":  # the processes of writers.py import this file, too
    main()
