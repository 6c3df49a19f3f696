#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each call that SQLite makes to a file, or to its allocator, fails in turn, below the worker.

usage: test_sqlite_faults.py [--all] [TEST]...

sqlipc-worker-vfs is the worker with a VFS below its own that fails on demand (sqlite-faults/faulty-vfs.c). For each query
and operation the first call fails, then the second, and so on until the query ends before it reaches that call; once this
call alone fails, and once all that follow fail, too. The answer is the right rows (SQLite managed without the call), or
the error that belongs to the failure, with its code. Then, without faults, the same query gives the right rows, and the
service holds what it held before.

Each call fails over one of the transports in turn; the first calls fail over all of them. In long queries some calls are
left out. `--all` tries each call over each transport.
"""
import contextlib
import mmap
import os
import shutil
import sqlite3
import struct
import sys
import tempfile

import settled
from channel import Channel
from client import Failure, reference, same_rows
from harness import BUILD_ROOT, SANITIZED, Service, main
from tap import cases, diagnose, equal, test, true

ALL = "--all" in sys.argv
if ALL:
    sys.argv.remove("--all")

# As in faulty-vfs.c.
OPERATIONS = (
    "none", "xFullPathname", "xAccess", "xOpen", "xRead", "xWrite", "xTruncate", "xSync", "xFileSize", "xLock", "xUnlock",
    "xCheckReservedLock", "xShmMap", "xShmLock", "xFetch", "xMalloc",
)  # fmt: skip
CODE, HALF, CORRUPT = range(3)
PLAN = 7 + len(OPERATIONS)

BUSY, NOMEM, FULL, CANTOPEN = 5, 7, 13, 14
IOERR_READ, IOERR_SHORT_READ, IOERR_WRITE, IOERR_FSTAT, IOERR_UNLOCK = 266, 522, 778, 1802, 2058
IOERR_NOMEM, IOERR_ACCESS, IOERR_CHECKRESERVEDLOCK, IOERR_LOCK = 3082, 3338, 3594, 3850
IOERR_SHMLOCK, IOERR_SHMMAP = 5130, 5386
READONLY_ROLLBACK = 776

# Operation, its result, its side effect, and the possible errors: names with their codes, () for the operation's
# result. SQLite says "cannot open" of a database, a log and a temporary file alike; the service tells them apart. A
# journal that cannot be opened SQLite takes for a hot one.
FILE_FAULTS = (
    ("xFullPathname", CANTOPEN, CODE, {"CannotOpen": ()}),
    ("xAccess", IOERR_ACCESS, CODE, {"InputOutput": ()}),
    ("xOpen", CANTOPEN, CODE,
     {"CannotOpen": (), "NeedsOwner": (), "InputOutput": (), "NeedsRecovery": (READONLY_ROLLBACK,)}),
    ("xRead", IOERR_READ, CODE, {"InputOutput": ()}),
    ("xRead", IOERR_SHORT_READ, HALF, {"InputOutput": (), "Corrupt": (11, 26)}),
    ("xFileSize", IOERR_FSTAT, CODE, {"InputOutput": ()}),
    ("xLock", IOERR_LOCK, CODE, {"InputOutput": ()}),
    ("xLock", BUSY, CODE, {"Busy": ()}),
    ("xUnlock", IOERR_UNLOCK, CODE, {"InputOutput": ()}),
    ("xCheckReservedLock", IOERR_CHECKRESERVEDLOCK, CODE, {"InputOutput": ()}),
    ("xShmMap", IOERR_SHMMAP, CODE, {"InputOutput": ()}),
    ("xShmLock", IOERR_SHMLOCK, CODE, {"InputOutput": ()}),
    ("xWrite", FULL, HALF, {"NoSpace": ()}),
    ("xWrite", IOERR_WRITE, CODE, {"InputOutput": ()}),
)
CORRUPTION = (("xRead", 0, CORRUPT, {"Corrupt": (11, 26), "Sql": (1,)}),)
# A statement that is compiled without enough memory looks like one of too many steps.
MEMORY_FAULTS = (("xMalloc", NOMEM, CODE, {"OutOfMemory": (NOMEM, IOERR_NOMEM), "LimitsExceeded": (0,)}),)
# Calls that a reader does not need: the file is never mapped, and none is made durable, or shorter.
NEVER = ("xFetch", "xSync", "xTruncate")


class Plan:
    """The failing call, in a file that every worker of the service maps."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="sqlipc-faults-")
        self.file.truncate(8 * PLAN)
        self.map = mmap.mmap(self.file.fileno(), 8 * PLAN)

    def set(self, operation="none", first=0, forever=False, code=0, manner=CODE):
        values = [OPERATIONS.index(operation), first, int(forever), code, manner]
        self.map[:] = struct.pack(f"<{PLAN}q", *values, *[0] * (PLAN - len(values)))

    def clear(self):
        """Nothing fails any more; how often something did."""
        hits = struct.unpack_from("<q", self.map, 48)[0]
        self.set()
        return hits

    def calls(self):
        """Of each operation, since the plan was set."""
        return dict(zip(OPERATIONS, struct.unpack_from(f"<{len(OPERATIONS)}q", self.map, 56)))


class Scenario:
    """A query and its database, which is a fresh copy wherever `place` is called: so that it is opened and read anew."""

    def __init__(self, name, query, make, few=None, **keys):
        self.name, self.query, self.few = name, query, few
        self.master, self.path = service.folder / f"{name}.master", service.data / f"{name}.sqlite"
        self.channel = self.before = None
        make(self.master)
        self.beside = [suffix for suffix in ("-wal", "-journal") if os.path.exists(f"{self.master}{suffix}")]
        self.place()
        self.rows = reference(self.path, query)[1]
        self.place()
        service.database(name, Path=self.path, **keys)
        service.driver.manager("Reload")

    def place(self):
        for suffix in ("-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.path}{suffix}")
        shutil.copy(self.master, f"{self.path}.new")
        os.rename(f"{self.path}.new", self.path)
        for suffix in self.beside:
            shutil.copy(f"{self.master}{suffix}", f"{self.path}{suffix}")

    def check(self, rows, what):
        try:
            same_rows(rows, self.rows)
        except AssertionError as wrong:
            raise AssertionError(f"{what}: {wrong}") from None


def fill(db, n, every):
    """`every` so many rows one is large."""
    db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c BLOB)")
    db.execute("CREATE INDEX by_b ON t(b)")
    for i in range(1, n + 1):
        long = bytes([i % 251 + 1]) * (9000 if i % every == 0 else 100)
        db.execute("INSERT INTO t VALUES(?, ?, ?)", (i, f"text {i * 7919 % 1000:04}", long))


def plain(n, every=20):
    def make(path):
        with contextlib.closing(sqlite3.connect(path)) as db:
            fill(db, n, every)
            db.commit()

    return make


def log(path):
    """Half of it in the database, half in a WAL that no program has open."""
    with contextlib.closing(sqlite3.connect(f"{path}.live", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        fill(writer, 40, 20)
        writer.execute("PRAGMA wal_checkpoint")
        writer.execute("UPDATE t SET b = b || ' newer' WHERE a % 3 = 0")
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}.live{suffix}", f"{path}{suffix}")


def kept_journal(path):
    """With a journal that is over, and stays: a reader has to look whether it is."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = PERSIST")
        fill(db, 40, 20)


def words(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(body)")
        db.executemany("INSERT INTO words VALUES(?)", [(f"word{i % 7} of page {i}",) for i in range(200)])
        db.commit()


# ---- one case ----


def down_a_pipe(scenario):
    return client.query(scenario.name, scenario.query, options={"error-details": True}).read().rows


def on_a_channel(scenario):
    return scenario.channel.ask(scenario.query)


def as_values(scenario):
    options = {"error-details": True, "max-bytes": 1048576}
    return client.query_rows(scenario.name, scenario.query, options=options)[1]


TRANSPORTS = (down_a_pipe, on_a_channel, as_values)


def attempt(scenario, transport):
    try:
        return transport(scenario)
    except Failure as failure:
        return failure


def is_expected(failure, code, allowed):
    name = failure.name.rsplit(".", 1)[1]
    if name not in allowed:
        return False
    return (failure.extended & 0xFF if name == "Corrupt" else failure.extended) in (allowed[name] or (code,))


def one(scenario, transport, n, forever, fault):
    """True for each: the failing call occurred; it became an error."""
    operation, code, manner, allowed = fault
    what = f"{scenario.name}, {transport.__name__}, {operation} {n}{' and on' if forever else ''}, code {code}"
    scenario.place()
    plan.set(operation, n, forever, code, manner)
    answer = attempt(scenario, transport)
    if plan.clear() == 0:
        return False, False
    if isinstance(answer, Failure):
        true(is_expected(answer, code, allowed), f"{what}: {answer} ({answer.extended})")
    elif manner != CORRUPT:
        scenario.check(answer, what)
    if manner == CORRUPT:
        scenario.place()  # SQLite cannot know, and keeps the page
    scenario.check(transport(scenario), f"after {what}")
    settled.holds(service, scenario.before, [scenario.path], what)
    return True, isinstance(answer, Failure)


def numbers(few):
    """1, 2, 3... without end; once past `few`, fewer and fewer of them."""
    n = 1
    while True:
        yield n
        n += 1 if ALL or n < few else max(1, n // few)


def sweep(scenario, fault, few):
    """Every call of an operation, alone and with all that follow; how many were tried."""
    tried = failed = 0
    for forever in (False, True):
        for n in numbers(few):
            turn = (n + forever) % len(TRANSPORTS)
            ways = TRANSPORTS if ALL or n == 1 else TRANSPORTS[turn : turn + 1]
            results = [one(scenario, way, n, forever, fault) for way in ways]
            tried += sum(met for met, _ in results)
            failed += sum(error for _, error in results)
            if not all(met for met, _ in results):
                break
    if tried > 0:
        met.add(fault[:2])
        diagnose(f"{scenario.name}: {fault[0]} with {fault[1]}: {tried} failed, {failed} errors")
    return tried, failed


def try_all(scenario, faults, few):
    """All those faults; the number of cases."""
    rest = settled.settle(service, [scenario.path])
    with contextlib.closing(Channel(client, scenario.name)) as scenario.channel:
        scenario.place()
        plan.set()
        for transport in TRANSPORTS:
            scenario.check(transport(scenario), f"{scenario.name}, {transport.__name__}")
        calls = plan.calls()
        equal({name: calls[name] for name in NEVER}, dict.fromkeys(NEVER, 0), "calls that no reader makes")
        scenario.before = settled.held(service, [scenario.path])
        results = [sweep(scenario, fault, few) for fault in faults]
    tried, failed = (sum(column) for column in zip(*results))
    true(failed > tried // (10 if faults is CORRUPTION else 2), f"only {failed} of {tried} failed calls became an error")
    settled.as_before(service, rest, [scenario.path], database=scenario.name, sql=scenario.query, answer=scenario.rows)
    return tried


plan = Plan()
service = Service(
    worker=BUILD_ROOT / "tests/reliability/sqlite-faults/sqlipc-worker-vfs",
    environment={"SQLIPC_FAULTS": plan.file.name},
    limits={"WorkersMax": 1, "WorkerIdleSec": 1, "BusyTimeoutSec": 0.05},
)
client = service.client()
few = 4 if SANITIZED else 40
scan = Scenario("scan", "SELECT * FROM t", plain(40))
index = Scenario("index", "SELECT a, b FROM t WHERE b > 'text 02' ORDER BY b DESC", plain(40))
logged = Scenario("log", "SELECT a, b, c FROM t ORDER BY b", log)
exposed = Scenario("exposed", "SELECT a, b, c FROM t WHERE a > 3 ORDER BY b", plain(40), Expose="t")
text = Scenario("words", "SELECT rowid, body FROM words WHERE words MATCH 'word3' ORDER BY rank, rowid", words)
spill = Scenario("spill", "SELECT a, b, length(c) FROM t ORDER BY c, b, a", plain(160, every=1))
beside_journal = Scenario("journal", "SELECT a, b FROM t ORDER BY b", kept_journal)
count = {"i/o": 0, "memory": 0}
met = set()  # faults: the operation and its result


def try_files(*scenarios, faults=FILE_FAULTS, few=few):
    count["i/o"] += sum(try_all(scenario, faults, few) for scenario in scenarios)


def try_memory(*scenarios, few):
    count["memory"] += sum(try_all(scenario, MEMORY_FAULTS, few) for scenario in scenarios)


@test
def files_of_a_scan():
    """A table and an index in rollback mode: each call to a file fails"""
    try_files(scan, index)


@test
def files_of_a_journal():
    """A journal that its writer keeps open: each call to a file fails"""
    try_files(beside_journal, few=min(few, 8))


@test
def files_of_a_log():
    """A WAL without a writer, which is recovered: each call to a file fails"""
    try_files(logged)


@test
def files_of_a_part():
    """An exposed table: each call to a file fails"""
    try_files(exposed, few=min(few, 8))


@test
def files_of_words():
    """A full-text index: each call to a file fails"""
    try_files(text, few=min(few, 8))


@test
def temporary_files():
    """A sort that spills: temporary files cannot be made, the disk is full, written bytes cannot be read"""
    names = ("xOpen", "xRead", "xWrite")
    try_files(spill, faults=[fault for fault in FILE_FAULTS if fault[0] in names], few=2 if SANITIZED else 5)


@test
def corrupt_bytes():
    """Bytes read differ from the bytes written: rows or Corrupt, and nothing worse"""
    try_corruption = [scan, logged, exposed, text]
    count["i/o"] += sum(try_all(scenario, CORRUPTION, few) for scenario in try_corruption)


@test
def memory():
    """Each allocation of SQLite fails: OutOfMemory, and the worker survives"""
    pids = service.workers()
    try_memory(scan, logged, exposed, few=4 if SANITIZED else 12)
    equal(len(service.workers()) <= len(pids) + 1, True, "workers")


@test
def counted():
    """Each fault occurred"""
    faults = [*FILE_FAULTS, *CORRUPTION, *MEMORY_FAULTS]
    equal([fault[:2] for fault in faults if fault[:2] not in met], [], "faults that no scenario met")
    cases("sqlite i/o", count["i/o"], "a call of SQLite to a file fails, alone or with all that follow, then nothing does")
    cases("sqlite memory", count["memory"], "an allocation of SQLite fails, alone or with all that follow, then none does")


main(service)
