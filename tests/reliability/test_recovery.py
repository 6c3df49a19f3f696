#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A writer dies at each of its writes: the service reads one complete commit, or its error says who must repair the files.

usage: test_recovery.py [--all] [TEST]...

sqlite-faults/crashing-writer sets a version in all rows of a table, again and again. It dies at its n-th call that changes
a file, for each n until it survives; the last write is either not done at all, or done by half. Each state of the files is
read both as a database that the service owns, and as one that it does not own. The service returns the rows of the last
committed version, or of the one that was being written, but all of the same version; or it returns NeedsRecovery or
NeedsOwner, with advice. SQLite then recovers a copy, and the service must have read the same rows as are in it.
Finally the service reads the original after SQLite has recovered it in place.

`--all` tries each n; otherwise some in the middle are left out.
"""
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys

import settled
from channel import Channel
from client import Failure
from harness import BUILD_ROOT, SANITIZED, UID_DAEMON, Service, main
from tap import cases, diagnose, equal, test, true

ALL = "--all" in sys.argv
if ALL:
    sys.argv.remove("--all")

WRITER = BUILD_ROOT / "tests/reliability/sqlite-faults/crashing-writer"
DIED = 9
N_ROWS = 60
QUERY = "SELECT min(version), max(version), count(*), sum(length(filler)) FROM t"
STEP = 6 if SANITIZED else 12
SUFFIXES = ("", "-journal", "-wal", "-shm")
ROOT = os.geteuid() == 0

service = Service(uid=UID_DAEMON if ROOT else None, limits={"WorkersMax": 2, **settled.QUICK, "BusyTimeoutSec": 0.1})
client = service.client()
crash = service.folder / "crash"
crash.mkdir()
foreign = service.folder / "foreign"
foreign.mkdir(mode=0o755)
places = {"own": service.data / "own.sqlite"} | ({"foreign": foreign / "foreign.sqlite"} if ROOT else {})
for name, place in places.items():
    service.database(name, Path=place)
outcomes = {}


def make_master(mode):
    path = crash / f"{mode}.master"
    if path.exists():
        return
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, version, filler)")
        db.executemany("INSERT INTO t VALUES(?, 1, hex(zeroblob(401)))", [(i,) for i in range(N_ROWS)])


def remove(path):
    for suffix in SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")


def put(source, target, owner=None, only=SUFFIXES):
    """Copies a database and the files beside it; the database comes first, as a new file."""
    shutil.copy(source, f"{target}.new")
    for suffix in SUFFIXES[1:]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{target}{suffix}")
        if os.path.exists(f"{source}{suffix}") and suffix in only:
            shutil.copy(f"{source}{suffix}", f"{target}{suffix}")
    os.rename(f"{target}.new", target)
    for suffix in SUFFIXES:
        if owner is not None and os.path.exists(f"{target}{suffix}"):
            os.chown(f"{target}{suffix}", owner, owner)


def as_it_recovers(path):
    """The rows that SQLite reads from a copy, after it has recovered it."""
    copy = crash / "copy"
    remove(copy)
    put(path, copy, only=("", "-journal", "-wal"))
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as db:
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity")
        return list(db.execute(QUERY).fetchone())


def die(mode, n, torn):
    """Lets the writer die at its n-th write: whether it did, the last version that was safe, and the one under way."""
    path = crash / "database"
    remove(path)
    shutil.copy(crash / f"{mode}.master", path)
    run = subprocess.run([WRITER, path, mode, str(n), str(torn)], capture_output=True, text=True, check=False)
    true(run.returncode in (0, DIED), f"{run.returncode} {run.stderr}")
    said = [line.split() for line in run.stdout.splitlines()]
    safe = max([int(v) for word, v in said if word == "commit"], default=1)
    begun = max([int(v) for word, v in said if word == "begin"], default=1)
    return path, run.returncode == DIED, safe, begun


TRANSPORTS = (
    lambda name: client.query(name, QUERY).read().rows,
    lambda name: client.query_rows(name, QUERY)[1],
    lambda name: on_a_channel(name),
)


def on_a_channel(name):
    with contextlib.closing(Channel(client, name)) as channel:
        return channel.ask(QUERY)


def is_version(row, versions):
    return row in [[v, v, N_ROWS, N_ROWS * 2 * (400 + v)] for v in versions]


def check(name, path, n, what, versions):
    """One state of the files, read as the database `name`."""
    place = places[name]
    put(path, place, UID_DAEMON if ROOT and name == "own" else None)
    recovered = as_it_recovers(place)
    true(is_version(recovered, versions), f"{what}: SQLite recovers {recovered}, not of {versions}")
    try:
        rows = TRANSPORTS[n % len(TRANSPORTS)](name)
        equal(rows, [recovered], f"{what}, {name}: rows")
        outcome = "rows"
    except Failure as failure:
        outcome = failure.name.rsplit(".", 1)[1]
        true(outcome in ("NeedsRecovery", "NeedsOwner"), f"{what}, {name}: {failure}")
        true(len(failure.message.split()) > 8, f"{what}: {failure.message} does not say what to do")
    outcomes[name, outcome] = outcomes.get((name, outcome), 0) + 1
    if name == "own" and not os.path.exists(f"{place}-journal"):
        equal(outcome, "rows", f"{what}: a database of its own, and a log")
    # Its owner mends it, and stays: else the log is gone with the last that had it open, and a reader cannot make one.
    with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as db:
        equal(list(db.execute(QUERY).fetchone()), recovered, f"{what}, {name}: what its owner reads")
        equal(TRANSPORTS[n % len(TRANSPORTS)](name), [recovered], f"{what}, {name}: rows once it was mended")


def numbers():
    n = 1
    while True:
        yield n
        n += 1 if ALL or n < STEP else max(1, n // STEP)


def deaths(mode, torn):
    """All states that a death may leave; how many there were."""
    make_master(mode)
    tried = 0
    rest = settled.settle(service, places.values())
    for n in numbers():
        path, died, safe, begun = die(mode, n, torn)
        for name in places:
            check(name, path, n, f"{mode}, {'torn ' if torn else ''}write {n}", {safe, begun})
            tried += died
        if not died:
            break
    true(tried > 20, f"the writer died {tried} times only")
    row = [5, 5, N_ROWS, N_ROWS * 2 * 405]
    settled.as_before(service, rest, places.values(), database="own", sql=QUERY, answer=[row])
    for path in places.values():
        remove(path)
    return tried


count = 0
for journal_mode in ("DELETE", "PERSIST", "TRUNCATE", "WAL"):
    for is_torn in (0, 1):

        def function(mode=journal_mode, torn=is_torn):
            global count
            count += deaths(mode, torn)

        function.__name__ = f"{journal_mode.lower()}_{'torn' if is_torn else 'whole'}"
        function.__doc__ = f"{journal_mode}: the writer dies {'in the middle of' if is_torn else 'before'} a write"
        test(function)


@test
def counted():
    """Each outcome occurred: rows, NeedsRecovery and, for another user's database, NeedsOwner"""
    diagnose(outcomes)
    for name in places:
        true(outcomes.get((name, "rows"), 0) > 0, f"{name}: rows")
        true(outcomes.get((name, "NeedsRecovery"), 0) > 0, f"{name}: NeedsRecovery")
    true(not ROOT or outcomes.get(("foreign", "NeedsOwner"), 0) > 0, "foreign: NeedsOwner")
    cases("recovery", count, "a writer dies at a write; the files are read as the service's own, or as another's")


client.manager("Reload")
main(service)
