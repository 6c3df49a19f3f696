#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes that fail, on real file systems: a disk without room, a file that may not grow, a file system that becomes
read-only, a schema that changes, a constraint in the middle of a commit of several clients.

Each time the client concerned gets the error that belongs to the cause. Each row that was acknowledged exists, and none
whose write failed, as another program reads the file. Other databases are written to meanwhile. When the cause is gone, the
same clients write again, over the same statements and channels.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading

import settled  # noqa: F401, it makes the modules of tests/bus importable
from channel import Channel
from client import Failure
from gi.repository import GLib
from harness import LIBC, PATIENCE, PATIENT, Service, expect, main, wait_for
from tap import Skip, cases, equal, test, true
from writers import DB, make_written

CLONE_NEWNS = 0x20000
OTHER = "other"
UNIQUE = 2067  # SQLITE_CONSTRAINT_UNIQUE
JOURNALS = ("wal", "delete")
INSERT = "INSERT INTO written(number, t) VALUES (?1, hex(zeroblob(?2)))"
LARGE, SMALL = 100000, 10  # second parameter: the row has twice as many bytes
N_WRITERS = 8
HASTY = {"WorkerIdleSec": 0.1}


# ---- file systems ----


def new_mount(*arguments):
    if os.geteuid() != 0:
        raise Skip("needs root, to mount a small file system")
    if not new_mount.private:
        if LIBC.unshare(CLONE_NEWNS) != 0:
            raise Skip("needs a mount namespace, for a small file system")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        new_mount.private = True
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sqlipc-small-"))
    if subprocess.run(["mount", *arguments, folder], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        folder.rmdir()
        raise Skip(f"cannot mount here: {' '.join(map(str, arguments))}")
    return folder


new_mount.private = False


@contextlib.contextmanager
def small_disk(size="2m"):
    folder = new_mount("-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


@contextlib.contextmanager
def failing_disk():
    """Yields the folder and the file that is mounted there."""
    with tempfile.NamedTemporaryFile(prefix="sqlipc-image-") as image:
        image.truncate(8 << 20)
        if not shutil.which("mkfs.ext4"):
            raise Skip("needs mkfs.ext4")
        subprocess.run(["mkfs.ext4", "-q", image.name], check=True)
        folder = new_mount("-o", "loop", image.name)
        try:
            yield folder, image.name
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
            folder.rmdir()


def remount(folder, options):
    return subprocess.run(["mount", "-o", f"remount,{options}", folder], check=False, capture_output=True).returncode == 0


def unmount(folder):
    return subprocess.run(["umount", folder], check=False, stderr=subprocess.DEVNULL).returncode == 0


def fill(folder):
    """Takes all room of the file system."""
    with open(folder / "filler", "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


def empty(folder):
    (folder / "filler").unlink()


# ---- the service and its clients ----


@contextlib.contextmanager
def published(journal, folder=None, limits=None, **keys):
    """A service with a database in `folder`, and another one elsewhere."""
    with Service(limits=PATIENT | {"BusyTimeoutSec": 60, "ChannelsMax": 64, **(limits or {})}) as service:
        service.written = make_written((folder or service.data) / "written.sqlite", journal)
        with contextlib.closing(sqlite3.connect(service.written)) as db:
            db.execute("CREATE TABLE single(n INTEGER UNIQUE)")
            db.commit()
        service.database(DB, **{"Path": service.written, "Mode": "read-write", **keys})
        service.database(OTHER, Path=make_written(service.data / "other.sqlite", journal), Mode="read-write")
        service.driver.manager("Reload")
        yield service


class Everyway:
    """A client that writes in each way. Statements and channels are made once, and used until the end."""

    def __init__(self, service):
        self.service, self.next = service, 0
        self.client, self.other = service.client(), service.client()
        self.statement = self.client.prepare(DB, INSERT)
        self.open_channels()
        self.ways = (self.execute, self.query, self.fetch, self.on_channel, self.batch, self.transaction)
        self.written, self.failed, self.n_others = set(), {}, 0

    def open_channels(self):
        self.channel, self.other_channel = Channel(self.client, DB), Channel(self.other, OTHER)
        self.prepared = self.channel.prepare(INSERT)
        self.channel.statement(self.prepared)

    def execute(self, *row):
        return self.client.execute(DB, INSERT, row)[0]

    def query(self, *row):
        return self.client.query(DB, INSERT, row).read().end.n_changes

    def fetch(self, *row):
        return self.statement.fetch(*row).read().end.n_changes

    def on_channel(self, *row):
        return self.channel.read(self.channel.fetch(self.prepared, *row)).end.n_changes

    def batch(self, *row):
        return self.client.execute_batch(DB, [(INSERT, row), "UPDATE written SET t = t WHERE id = 0"])[0][0]

    def transaction(self, *row):
        values, _ = self.client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
        number = values[0].get_uint64()
        try:
            changes, _ = self.client.execute(DB, INSERT, row, options={"transaction": GLib.Variant("t", number)})
        except Failure:
            with contextlib.suppress(Failure):  # the failure may have ended it
                self.client.database(DB, "Rollback", "(ta{sv})", number, {})
            raise
        self.client.database(DB, "Commit", "(ta{sv})", number, {})
        return changes

    def write(self, way, size):
        """Returns the error, or None."""
        self.next += 1
        try:
            equal(way(self.next, size), 1, f"changes, by {way.__name__}")
            self.written.add(self.next)
            return None
        except Failure as failure:
            self.failed[self.next] = failure
            return failure

    def each_fails(self, name, sentence, size=LARGE):
        for way in self.ways:
            failure = self.write(way, size)
            true(failure, f"by {way.__name__}: a row was written")
            equal(failure.name, f"org.sqlipc1.Error.{name}", f"error by {way.__name__}: {failure}")
            true(sentence in failure.message, f"by {way.__name__}: {failure}")
            self.others_go_on()

    def each_writes(self, size=SMALL):
        for way in self.ways:
            failure = self.write(way, size)
            true(not failure, f"by {way.__name__}: {failure}")
        self.check()

    def others_go_on(self):
        """Other clients write to another database."""
        self.n_others += 2
        equal(self.other.execute(OTHER, "INSERT INTO written(number) VALUES (1)")[0], 1, "changes of another database")
        self.other_channel.ask("INSERT INTO written(number) VALUES (1)")
        equal(self.other_channel.ask("SELECT count(*) FROM written"), [[self.n_others]], "rows of another database")

    def can_read(self):
        wanted = [[len(self.written)]]
        equal(self.client.query(DB, "SELECT count(*) FROM written").read().rows, wanted, "rows that a client reads")
        equal(self.channel.ask("SELECT count(*) FROM written"), wanted, "rows on a channel")

    def check(self):
        """Another program reads the file: it has what was acknowledged, and nothing else."""
        self.others_go_on()
        with contextlib.closing(sqlite3.connect(self.service.written, timeout=PATIENCE)) as db:
            rows = [number for (number,) in db.execute("SELECT number FROM written ORDER BY number")]
            equal(rows, sorted(self.written), "rows in the file")
            equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity_check")
        self.can_read()

    def end(self):
        self.channel.close()
        self.other_channel.close()


@contextlib.contextmanager
def everyway(service):
    client = Everyway(service)
    yield client
    client.end()


# ---- a disk without room ----


@test
def disk_full():
    """The disk is full, twice: NoSpace in each way of writing; then the same clients write again"""
    for journal in JOURNALS:
        with small_disk() as disk, published(journal, disk) as service, everyway(service) as client:
            client.each_writes()
            for _ in range(2):
                fill(disk)
                client.each_fails("NoSpace", "the disk of this database is full")
                client.can_read()
                empty(disk)
                client.each_writes()
                client.each_writes(LARGE // 10)


def no_room(client, journal):
    """The first use of the database needs room; with a rollback journal it can be read all the same."""
    failure = expect("NoSpace", client.execute, DB, INSERT, [1, LARGE])
    true("the disk of this database is full" in failure.message, str(failure))
    if journal == "delete":
        equal(client.query(DB, "SELECT count(*) FROM written").read().rows, [[0]], "rows")
    else:
        failure = expect("NoSpace", lambda: client.query(DB, "SELECT count(*) FROM written").read())
        true("files beside it" in failure.message, str(failure))


@test
def disk_full_at_first():
    """The disk is full when the database is opened: NoSpace, also if only the -shm has no room"""
    for journal in JOURNALS:
        with small_disk() as disk, published(journal, disk) as service:
            fill(disk)
            no_room(service.client(), journal)
            empty(disk)
            with everyway(service) as client:
                client.each_writes()


@test
def log_cannot_grow():
    """A reader keeps the log from starting again, until the disk is full: NoSpace, and the reader reads its snapshot"""
    with small_disk() as disk, published("wal", disk) as service, everyway(service) as client:
        client.each_writes()
        n = len(client.written)
        sql = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 200000) SELECT x FROM n, written"
        reader = service.client().query(DB, sql)
        wait_for(lambda: service.states() == ["parked"], "the reader waits")
        while not client.write(client.fetch, 1000):
            pass
        client.each_fails("NoSpace", "the disk of this database is full")
        true((disk / "written.sqlite-wal").stat().st_size > 1000000, "size of the log")
        client.can_read()
        equal(reader.counted()[1], 200000 * n, "rows of the reader")
        true(remount(disk, "size=8m"), "more room")
        client.each_writes()
        client.each_writes(LARGE)


class Writer(threading.Thread):
    """Writes rows until it is told to stop."""

    def __init__(self, write, numbers, ended):
        super().__init__(daemon=True)
        self.write, self.numbers, self.ended = write, numbers, ended
        self.written, self.failed, self.bug = set(), {}, None

    def run(self):
        try:
            for number in self.numbers:
                if self.ended.is_set():
                    return
                try:
                    equal(self.write(number), 1, "changes")
                    self.written.add(number)
                except Failure as failure:
                    self.failed[number] = failure
        except BaseException as bug:
            self.bug = bug
            raise


class Writers:
    """Writers of different rows, on channels, and by a method of the bus."""

    def __init__(self, service, sql=INSERT, table="written"):
        self.service, self.sql, self.table, self.ended = service, sql, table, threading.Event()
        self.channels = []
        self.all = [Writer(self.way(i), range(i << 20, (i + 1) << 20), self.ended) for i in range(N_WRITERS)]
        for writer in self.all:
            writer.start()

    def way(self, i):
        client = self.service.client()
        if i % 2:
            return lambda number: self.on_bus(client, number)
        channel = Channel(client, DB)
        statement = channel.prepare(self.sql)
        channel.statement(statement)
        self.channels.append(channel)
        return lambda number: channel.read(channel.fetch(statement, number, 1000)).end.n_changes

    def on_bus(self, client, number):
        return client.execute(DB, self.sql, [number, 1000])[0]

    def wait(self, kind, what):
        """Until each of them has got this answer again."""
        before = [len(getattr(writer, kind)) for writer in self.all]

        def more():
            true(not any(writer.bug for writer in self.all), f"a writer ended; log:\n{self.service.log_text()}")
            return all(len(getattr(writer, kind)) > n for writer, n in zip(self.all, before))

        wait_for(more, what)

    def end(self, error):
        """Ends them, and checks what they were told against the file. Returns how many were written, and how many failed."""
        self.ended.set()
        for writer in self.all:
            writer.join(PATIENCE)
            true(not writer.bug, f"a writer ended: {writer.bug}")
        for channel in self.channels:
            channel.close()
        written = set().union(*(writer.written for writer in self.all))
        failed = [failure for writer in self.all for failure in writer.failed.values()]
        others = {str(failure) for failure in failed if failure.name != f"org.sqlipc1.Error.{error}"}
        equal(others, set(), "other errors")
        with contextlib.closing(sqlite3.connect(self.service.written, timeout=PATIENCE)) as db:
            rows = [number for (number,) in db.execute(f"SELECT number FROM {self.table}")]
            equal(len(rows), len(set(rows)), "different rows")
            equal(sorted(written - set(rows))[:10], [], "rows that were acknowledged and do not exist")
            equal(sorted(set(rows) - written)[:10], [], "rows that exist although their write failed")
            equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity_check")
        return len(written), len(failed)


@test
def disk_full_under_load():
    """Eight writers while the disk is full from time to time: each row is written, or fails with NoSpace"""
    for journal in JOURNALS:
        with small_disk("8m") as disk, published(journal, disk) as service:
            writers = Writers(service)
            for n in range(5):
                writers.wait("written", "rows are written")
                fill(disk)
                writers.wait("failed", "writes fail")
                true(remount(disk, f"size={16 * (n + 1)}m"), "more room")
                empty(disk)
            writers.wait("written", "rows are written")
            written, failed = writers.end("NoSpace")
            cases("disk", 5, f"a full disk under eight writers ({journal}: {written} rows, {failed} errors)")


@test
def no_inode():
    """The file system has room, but can hold no more files: NoSpace"""
    for journal in JOURNALS:
        with small_disk("2m,nr_inodes=10") as disk, published(journal, disk) as service:
            names = [disk / str(n) for n in range(10)]
            with contextlib.suppress(OSError):
                for name in names:
                    name.touch()
            no_room(service.client(), journal)
            for name in names:
                name.unlink(missing_ok=True)
            with everyway(service) as client:
                client.each_writes()


# ---- files that may not grow ----


@test
def database_size_max():
    """DatabaseSizeMax=: LimitsExceeded in each way of writing, until rows are deleted"""
    for journal in JOURNALS:
        with published(journal, DatabaseSizeMax="400K") as service:
            with everyway(service) as client:
                client.each_writes()
                for _ in range(2):
                    while not client.write(client.fetch, 10000):
                        pass
                    client.each_fails("LimitsExceeded", "DatabaseSizeMax=")
                    client.check()
                    equal(client.client.execute(DB, "DELETE FROM written")[0], len(client.written), "rows that are deleted")
                    client.written.clear()
                    client.each_writes()


@test
def file_too_large():
    """The kernel lets no file grow any more (LimitFSIZE= of the unit): NoSpace in each way of writing"""
    for journal in JOURNALS:
        with published(journal) as service:
            subprocess.run(["prlimit", f"--pid={service.pid()}", "--fsize=1000000:"], check=True)
            with everyway(service) as client:
                client.each_writes()
                while not client.write(client.fetch, 10000):
                    pass
                client.each_fails("NoSpace", "may not grow")
                client.check()
                true(service.workers(), "workers")
                for pid in service.workers():
                    subprocess.run(["prlimit", f"--pid={pid}", "--fsize=unlimited:"], check=True)
                client.each_writes(LARGE)


# ---- a file system that becomes read-only ----


@test
def remounted():
    """The file system is remounted read-only while the database rests: ReadOnly; remounted again, the same clients write"""
    for journal in JOURNALS:
        with small_disk() as disk, published(journal, disk, limits=HASTY) as service:
            with everyway(service) as client:
                client.each_writes()
                for _ in range(2):
                    wait_for(lambda: remount(disk, "ro"), "no file is open for writing")
                    client.each_fails("ReadOnly", "read-only", SMALL)
                    if journal == "delete":
                        client.can_read()
                    true(remount(disk, "rw"), "mount read-write")
                    client.each_writes()


@test
def remounted_beside_a_log():
    """The same, while a log is beside the database: it is read, and can be written to as soon as it is mounted read-write"""
    with small_disk() as disk, published("wal", disk, limits={"WorkerIdleSec": 600}) as service:
        with everyway(service) as client:
            client.each_writes()
            client.end()
            for pid in service.workers():
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not service.workers(), "workers end")
            wait_for(lambda: remount(disk, "ro"), "no file is open for writing")
            true((disk / "written.sqlite-wal").exists(), "the log")
            client.channel = Channel(client.client, DB)
            client.open_channels()
            client.can_read()
            client.each_fails("ReadOnly", "read-only", SMALL)
            client.can_read()
            true(remount(disk, "rw"), "mount read-write")
            client.each_writes()


@test
def disk_fails():
    """The kernel makes the file system read-only in the middle of writing, as after an error of the disk: ReadOnly"""
    for journal in JOURNALS:
        with failing_disk() as (folder, image), published(journal, folder, limits=HASTY) as service:
            with everyway(service) as client:
                client.each_writes()
                true(remount(folder, "abort"), "mount -o remount,abort")
                client.each_fails("ReadOnly", "read-only", SMALL)
                wait_for(lambda: unmount(folder), "no file is open")
                subprocess.run(["mount", "-o", "loop", image, folder], check=True)
                client.each_writes()


# ---- a schema that changes ----


def change_by_client(service):
    client = service.client()
    return lambda sql: equal(client.execute(DB, sql)[0], 0, f"changes of {sql}")


def change_by_program(service):
    def change(sql):
        with contextlib.closing(sqlite3.connect(service.written, timeout=PATIENCE)) as db:
            db.execute(sql)
            db.commit()

    return change


@test
def schema_changes():
    """A client, or another program, changes the schema under prepared statements: they write on, or fail with Sql"""
    for journal in JOURNALS:
        for by in (change_by_client, change_by_program):
            with published(journal, WriteSchema="yes") as service, everyway(service) as client:
                change = by(service)
                client.each_writes()
                for n in range(3):
                    change(f"ALTER TABLE written ADD COLUMN more{n} DEFAULT {n}")
                    client.each_writes()
                    change(f"CREATE INDEX by_more{n} ON written(more{n}, t)")
                    client.each_writes()
                    change("ALTER TABLE written RENAME COLUMN t TO u")
                    client.each_fails("Sql", "no column named t", SMALL)
                    change("ALTER TABLE written RENAME COLUMN u TO t")
                    client.each_writes()
                    change("ALTER TABLE written RENAME TO away")
                    client.each_fails("Sql", "no such table: ", SMALL)
                    change("ALTER TABLE away RENAME TO written")
                    client.each_writes()


@test
def schema_changes_under_load():
    """The same again and again while eight clients write: each row is written, or fails with Sql"""
    for journal in JOURNALS:
        for by in (change_by_client, change_by_program):
            with published(journal, WriteSchema="yes") as service:
                change, writers = by(service), Writers(service)
                for n in range(10):
                    writers.wait("written", "rows are written")
                    change(f"CREATE TABLE more{n}(a)")
                    change("ALTER TABLE written RENAME COLUMN t TO u")
                    writers.wait("failed", "writes fail")
                    change("ALTER TABLE written RENAME COLUMN u TO t")
                writers.wait("written", "rows are written")
                written, failed = writers.end("Sql")
                cases("schema", 20, f"the schema changes under eight writers ({journal}: {written} rows, {failed} errors)")


# ---- a constraint in the middle ----


class Halves(Writers):
    """Each writer has each second row refused."""

    def __init__(self, service, clause):
        values = "VALUES (?1, CASE ?1 % 2 WHEN 0 THEN ?2 END)"
        super().__init__(service, f"INSERT{clause} INTO halves(number, even) {values}", "halves")


@test
def constraint_in_a_commit():
    """Eight clients whose statements share commits: each second one fails in its constraint, and none of the others"""
    for journal in JOURNALS:
        for clause in ("", " OR ROLLBACK", " OR FAIL"):
            with published(journal, WriteSchema="yes") as service:
                client = service.client()
                client.execute(DB, "CREATE TABLE halves(number UNIQUE, even NOT NULL)")
                writers = Halves(service, clause)
                for _ in range(20):
                    writers.wait("written", "rows are written")
                    writers.wait("failed", "writes fail")
                written, failed = writers.end("Sql")
                for writer in writers.all:
                    equal({n % 2 for n in writer.written} | {n % 2 + 2 for n in writer.failed}, {0, 3}, "those that fail")
                cases("constraint", failed, f"a failure of one of eight writers{clause} ({journal}: {written} rows)")


class Batches(Writers):
    """Batches of three statements. Each second one of a client fails in its second statement."""

    def way(self, i):
        client = self.service.client()
        return lambda number: self.on_bus(client, number)

    def on_bus(self, client, number):
        middle = ("INSERT INTO single VALUES (?)", [1 if number % 2 else number + 2])
        changes = client.execute_batch(DB, [(INSERT, [number, SMALL]), middle, "UPDATE written SET t = 'x' WHERE id = 1"])[0]
        equal(changes, [1, 1, 1], "changes of each statement")
        return 1


@test
def constraint_in_a_batch():
    """Eight clients send batches, each second with a statement in the middle that fails: all is written, or none"""
    for journal in JOURNALS:
        with published(journal) as service:
            with contextlib.closing(sqlite3.connect(service.written)) as db:
                db.execute("INSERT INTO single VALUES (1)")
                db.commit()
            writers = Batches(service)
            for _ in range(20):
                writers.wait("written", "batches are written")
                writers.wait("failed", "batches fail")
            written, failed = writers.end("Sql")
            for writer in writers.all:
                equal({n % 2 for n in writer.written} | {n % 2 + 2 for n in writer.failed}, {0, 3}, "those that fail")
            cases("constraint", failed, f"a batch of eight clients that fails in its middle ({journal}: {written} others)")


main()
