#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files of a database are truncated, replaced, removed or closed while it is read.

Each of these is done while a run streams and while a run is parked, over every transport. The rows that arrive are right,
and after them comes END or a named error. If the worker dies of it (SIGBUS), only its own client gets WorkerLost. The next
query is answered, by rows or by an error that fits the file in its present state. After the files are repaired, it is
answered by the rows.
"""
import collections
import contextlib
import os
import shutil
import sqlite3
import struct
import subprocess
import sys

import settled
from channel import Channel
from client import END, ERROR, ERROR_NAMES, Broken, Failure, from_page, page_decoder, reference, same_rows
from harness import CHINOOK, SANITIZED, UID_DAEMON, Service, expect, main, wait_for
from tap import Skip, cases, equal, test, true

ROOT = os.geteuid() == 0
N_ROWS = 400
QUERY = "SELECT a, b FROM t"
HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA wal_autocheckpoint = 0")
db.execute("UPDATE t SET b = CAST(b || x'01' AS BLOB)")
print("written", flush=True)
sys.stdin.read()
"""
# Possible results of a run whose files are truncated, and of the next query.
CUT = ("Corrupt", "InputOutput")
LOG = (*CUT, "NeedsOwner", "NeedsRecovery", "Busy")

service = Service(
    uid=UID_DAEMON if ROOT else None,
    databases={"chinook": CHINOOK},
    limits={"WorkersMax": 2, "BusyTimeoutSec": 0.1, "WorkerIdleSec": 0.02, "ParkTimeoutRollbackSec": 600},
)
client = service.client()
masters = {}
count = 0
heard = collections.Counter()  # deed and error of the run that it was done to


def make(mode):
    """A database larger than all that waits in a pipe: tables, and overflow pages of long values."""
    path = service.folder / f"{mode}.master"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB)")
        db.executemany("INSERT INTO t VALUES(?, ?)", [(i, bytes([i % 255 + 1]) * 9000) for i in range(1, N_ROWS + 1)])
    masters[mode] = path
    path = service.data / f"{mode.lower()}.sqlite"
    service.database(mode.lower(), Path=path)
    return path


@contextlib.contextmanager
def placed(name):
    """A fresh copy at the path; if it has a WAL, with a writer that has it open. Its rows."""
    path = service.data / f"{name}.sqlite"
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")
    shutil.copy(masters[name.upper()], f"{path}.new")
    os.rename(f"{path}.new", path)
    holder = None
    if name == "wal":
        holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(holder.stdout.readline(), b"written\n", "the writer")
    try:
        more = b"\1" if holder else b""
        yield path, [[i, bytes([i % 255 + 1]) * 9000 + more] for i in range(1, N_ROWS + 1)]
    finally:
        if holder:
            holder.kill()
            holder.communicate()


# ---- a run, and its rows ----


def collect(frames):
    """Rows, and the name of the error behind them; None: END."""
    decoder, rows = page_decoder.PageDecoder(), []
    try:
        for data in frames:
            for event in decoder.feed(data):
                if isinstance(event, page_decoder.Row):
                    rows.append([from_page(value) for value in event.values])
                elif isinstance(event, page_decoder.Error):
                    return rows, ERROR_NAMES[event.number]
                elif isinstance(event, page_decoder.End):
                    return rows, None
    except Broken:
        pass
    return rows, "Broken"


class Pipe:
    def __init__(self, name):
        self.run = client.query(name, QUERY)
        self.head = [self.run.frame()[2] for _ in range(2)]

    def rest(self):
        try:
            return collect([*self.head, *(data for _, _, data in until_the_end(self.run.frame))])
        finally:
            self.run.close()


class OnChannel:
    def __init__(self, name):
        self.channel = Channel(client, name)
        self.channel.query(QUERY)
        self.head = [self.channel.frame()[3] for _ in range(2)]

    def rest(self):
        with contextlib.closing(self.channel):
            return collect([*self.head, *(data for _, _, data in until_the_end(lambda: self.channel.frame()[1:]))])


class Values:
    def __init__(self, name):
        self.name = name
        self.number = client.open_rows(name, QUERY)[0]
        self.rows, self.more, _ = client.next_rows(name, self.number)

    def rest(self):
        while self.more:
            try:
                rows, self.more, _ = client.next_rows(self.name, self.number)
            except Failure as failure:
                return self.rows, failure.name.rsplit(".", 1)[1]
            self.rows += rows
        return self.rows, None


def until_the_end(frame):
    """Frames up to END, ERROR or the end of the stream, which none may be without one or the other but a lost worker's."""
    while True:
        try:
            kind, flags, data = frame()
        except Broken:
            return
        yield kind, flags, data
        if kind in (END, ERROR):
            return


TRANSPORTS = (Pipe, OnChannel, Values)


def ask(name):
    try:
        return client.query(name, QUERY).read().rows
    except Failure as failure:
        return failure.name.rsplit(".", 1)[1]


def answers(name, rows, allowed, what):
    """A new query: these rows, or one of those errors."""
    now = ask(name)
    if isinstance(now, str):
        true(now in allowed, f"{what}: a new query got {now}")
    else:
        same_rows(now, rows)


def under_a_run(deed, name, during, then=(), lost=(), other_rows=None):
    """`deed` while a run goes on: it ends, or with one of the errors `during`; the next query gives rows, or errors `then`.
    `lost`: what a stream may do if its worker dies."""
    global count
    ways = TRANSPORTS[:1] if SANITIZED else TRANSPORTS
    for way in ways:
        for parked in (False, True):
            what = f"{deed.__name__}, {name}, {way.__name__}, {'parked' if parked else 'streaming'}"
            with placed(name) as (path, rows):
                run = way(name)
                if parked:
                    wait_for(lambda: service.counters()["NParked"] == 1, "the run parks")
                try:
                    deed(path)
                    came, error = run.rest()
                    heard[deed.__name__, error] += 1
                    true(error is None or error in during or error in lost, f"{what}: {error}")
                    same_rows(came, rows[: len(came)] if error else rows)
                    client.point("chinook")
                    answers(name, other_rows or rows, (*then, *lost), what)
                finally:
                    os.chmod(path.parent, 0o755)
            with placed(name) as (path, rows):
                wait_for(lambda: not isinstance(ask(name), str), "rows, once the files are in order")
                same_rows(client.query(name, QUERY).read().rows, rows)
            settled.holds(service, before, [path], what)
            count += 1


# ---- deeds ----


def truncate(suffix, size):
    def deed(path):
        os.truncate(f"{path}{suffix}", size)

    deed.__name__ = f"truncate {suffix or 'file'} to {size}"
    return deed


def remove(suffix):
    def deed(path):
        os.unlink(f"{path}{suffix}")

    deed.__name__ = f"remove {suffix or 'file'}"
    return deed


def replace(suffix, content):
    def deed(path):
        with open(f"{path}.other", "wb") as other:
            other.write(content)
        os.rename(f"{path}.other", f"{path}{suffix}")

    deed.__name__ = f"replace {suffix or 'file'}"
    return deed


def close_file(path):
    os.chmod(path, 0)


def close_folder(path):
    os.chmod(path.parent, 0)


@test
def truncated():
    """The file is truncated during a run: right rows, then Corrupt or InputOutput; no zeros"""
    for size in (1000000, 500001, 4096, 100, 0):
        # what is left of it may be another database: an empty one
        under_a_run(truncate("", size), "delete", CUT, (*CUT, "Sql"))
        under_a_run(truncate("", size), "wal", LOG, (*LOG, "Sql"))
        true(any(heard[f"truncate file to {size}", error] for error in CUT), f"cut to {size}, and no run noticed")


@test
def removed():
    """The file is removed: the run continues; then FileMissing"""
    under_a_run(remove(""), "delete", (), ("FileMissing",))
    under_a_run(remove(""), "wal", (), ("FileMissing",))


@test
def replaced():
    """Another database replaces the file: the run continues in the old one, the next query reads the new one"""
    other = service.folder / "other.master"
    with contextlib.closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE t(a, b)")
        db.execute("INSERT INTO t VALUES(1, 'other')")
        db.commit()
    rows = reference(other, QUERY)[1]
    under_a_run(replace("", other.read_bytes()), "delete", (), other_rows=rows)


@test
def closed():
    """The file or its folder becomes unreadable: the run continues; then CannotOpen, or rows while the file is open"""
    if not ROOT:
        raise Skip("needs root, for files of another user than the daemon's")
    under_a_run(close_file, "delete", (), ("CannotOpen",))
    under_a_run(close_folder, "delete", (), ("CannotOpen", "FileMissing"))
    under_a_run(close_folder, "wal", ("NeedsOwner",), ("CannotOpen", "FileMissing"))


@test
def log_cut():
    """The WAL is truncated, removed or replaced: rows of one commit, or an error"""
    for size in (2000000, 100000, 32, 0):
        under_a_run(truncate("-wal", size), "wal", LOG, LOG)
    under_a_run(remove("-wal"), "wal", LOG, LOG)
    under_a_run(replace("-wal", b"garbage " * 1000), "wal", LOG, LOG)


@test
def index_of_log_cut():
    """The -shm is truncated: the worker dies of SIGBUS, only its client gets WorkerLost; removed: rows or an error"""
    under_a_run(truncate("-shm", 0), "wal", LOG, LOG, lost=("WorkerLost", "Broken"))
    under_a_run(remove("-shm"), "wal", LOG, LOG)
    true("died of signal 7" in service.log_text(), "no worker died of SIGBUS")
    true(sum(n for (deed, error), n in heard.items() if error in ("WorkerLost", "Broken")), "no client heard of that")


@test
def no_database():
    """The file is no database, or one of a future format: an error that says so"""
    global count
    path = service.data / "delete.sqlite"
    header = bytearray(masters["DELETE"].read_bytes())
    future = header[:]
    future[19] = 3
    schema = header[:]
    schema[44:48] = struct.pack(">I", 9)
    page_size = header[:]
    page_size[16:18] = b"\x12\x34"
    contents = {
        "zeros": (bytes(len(header)), "Corrupt"),
        "garbage": (b"no database at all " * 1000, "Corrupt"),
        "garbage behind the magic": (bytes(header[:16]) + b"\xa5" * 9000, "Corrupt"),
        "a file format of the future": (bytes(future), "Corrupt"),
        "a schema format of the future": (bytes(schema), "Sql"),
        "a page size that is none": (bytes(page_size), "Corrupt"),
        "half of the header": (bytes(header[:50]), "Corrupt"),
        "nothing": (b"", "Sql"),
    }
    for what, (content, name) in contents.items():
        with placed("delete"):
            replace("", content)(path)
            failure = expect(name, client.query, "delete", QUERY)
            true(failure.message, what)
            expect(name, client.query_rows, "delete", QUERY)
            with contextlib.closing(Channel(client, "delete")) as channel:
                expect(name, channel.ask, QUERY)
        with placed("delete") as (_, rows):
            same_rows(client.query("delete", QUERY).read().rows, rows)
        count += 1


@test
def no_room():
    """The file system of temporary files is full: NoSpace; when there is room again, rows"""
    global count
    if not ROOT:
        raise Skip("needs root, to mount a small file system")
    small = service.folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=1777", "tmpfs", small], check=False).returncode != 0:
        raise Skip("no file system can be mounted here")
    try:
        path = service.data / "delete.sqlite"
        query = "SELECT a, length(b) FROM t ORDER BY b DESC, a"
        with Service(
            databases={"sorted": path}, environment={"SQLITE_TMPDIR": str(small)}, limits=settled.QUICK
        ) as crowded, placed("delete"):
            rows = reference(path, query)[1]
            rest = settled.settle(crowded, [path])
            asker = crowded.client()
            for room in (False, False, True, False, True):
                subprocess.run(["mount", "-o", f"remount,size={'64' if room else '2'}m", small], check=True)
                if room:
                    same_rows(asker.query("sorted", query).read().rows, rows)
                else:
                    failure = expect("NoSpace", lambda: asker.query("sorted", query).read())
                    true("disk" in failure.message, failure.message)
                    with contextlib.closing(Channel(asker, "sorted")) as channel:
                        expect("NoSpace", channel.ask, query)
                equal(os.listdir(small), [], "files that are left")
                count += 1
            asker.close()
            crowded.clients.remove(asker)
            settled.as_before(crowded, rest, [path], database="sorted", sql=query, answer=rows)
    finally:
        subprocess.run(["umount", small], check=True)


@test
def counted():
    """Afterwards the service holds the same resources as before"""
    with placed("delete") as (path, rows):
        settled.as_before(service, before, [path], database="delete", sql=QUERY, answer=rows)
    cases("files", count, "a file of a database is cut, replaced, removed, closed or no database, or a disk is full")


for journal_mode in ("DELETE", "WAL"):
    make(journal_mode)
client.manager("Reload")
before = settled.settle(service)
main(service)
