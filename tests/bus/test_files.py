#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""File rules (I12): the service creates no file beside a database of another user, keeps its locks, and tells what to do if
it cannot read.

If the test runs as root, the daemon runs as another user than the owner of the files.
"""
import collections
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys

from client import Failure, same_rows
from harness import UID_A, UID_DAEMON, Service, expect, locks, main, wait_for
from tap import Skip, diagnose, equal, test, true

ROOT = os.geteuid() == 0
N_SWAPPED = 1500
STREAM = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT n.x, t.a FROM n LEFT JOIN t"

service = Service(
    uid=UID_DAEMON if ROOT else None, limits={"ParkTimeoutRollbackSec": 600, "WorkersMax": 1, "BusyTimeoutSec": 1}
)
folder = service.folder / "foreign"
folder.mkdir(mode=0o755)
client = service.client()


def publish(name, path, **keys):
    service.database(name, Path=path, **keys)
    client.manager("Reload")


def make(name, mode="DELETE"):
    """A database of root's, readable for all, in a folder where only root may write."""
    path = folder / f"{name}.sqlite"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("CREATE TABLE t(a)")
    db.execute("INSERT INTO t VALUES('row')")
    return path, db


def beside(path):
    return sorted(p.name for p in path.parent.glob(path.name + "*"))


def foreign():
    if not ROOT:
        raise Skip("needs root, for files of another user than the daemon's")


@test
def rollback_mode():
    """A foreign database in rollback mode is read, and nothing is made beside it"""
    path, db = make("rollback")
    db.close()
    publish("rollback", path)
    equal(len(client.query("rollback", "SELECT * FROM t").read().rows), 1, "rows")
    equal(beside(path), ["rollback.sqlite"], "files")


@test
def wal_without_its_files():
    """WAL without -wal and -shm, of another owner: NeedsOwner says what to do; nothing is made"""
    foreign()
    path, db = make("wal", "WAL")
    db.close()
    equal(beside(path), ["wal.sqlite"], "files before")
    publish("wal", path)
    failure = expect("NeedsOwner", lambda: client.query("wal", "SELECT * FROM t").read())
    true("Immutable=" in failure.message or "writer" in failure.message or "owner" in failure.message, failure.message)
    equal(beside(path), ["wal.sqlite"], "files after")


@test
def wal_with_a_writer():
    """WAL with a writer that stays open is read, its newest rows too; when it leaves, NeedsOwner again"""
    foreign()
    path, db = make("open", "WAL")
    publish("open", path)
    equal(len(client.query("open", "SELECT * FROM t").read().rows), 1, "rows")
    db.execute("INSERT INTO t VALUES('newer')")
    equal(len(client.query("open", "SELECT * FROM t").read().rows), 2, "rows")
    db.close()
    # Our idle connection may keep the last writer from removing its files; in both cases rows are right or refused.
    before = beside(path)
    if before == ["open.sqlite"]:
        expect("NeedsOwner", lambda: client.query("open", "SELECT * FROM t").read())
    else:
        equal(len(client.query("open", "SELECT * FROM t").read().rows), 2, "rows")
    equal(beside(path), before, "files")


@test
def wal_that_cannot_be_read():
    """WAL whose -shm is not readable: NeedsOwner"""
    foreign()
    path, db = make("closed", "WAL")
    os.chmod(f"{path}-shm", 0o600)
    publish("closed", path)
    expect("NeedsOwner", lambda: client.query("closed", "SELECT * FROM t").read())
    db.close()


@test
def immutable():
    """Immutable=yes reads a WAL database without its files, and makes none"""
    path, db = make("immutable", "WAL")
    db.close()
    publish("immutable", path, Immutable="yes")
    equal(len(client.query("immutable", "SELECT * FROM t").read().rows), 1, "rows")
    equal(beside(path), ["immutable.sqlite"], "files")


@test
def unreadable():
    """A file that may not be read: CannotOpen"""
    foreign()
    path, db = make("secret")
    db.close()
    os.chmod(path, 0o600)
    publish("secret", path)
    expect("CannotOpen", lambda: client.query("secret", "SELECT * FROM t").read())


@test
def folder_and_device():
    """A file that is not a regular file is refused"""
    fifo = service.data / "fifo"
    os.mkfifo(fifo)
    for name, path in (("folder", folder), ("fifo", fifo), ("device", "/dev/zero"), ("kernel", "/proc/version")):
        publish(name, path)
        expect("CannotOpen", lambda name=name: client.query(name, "SELECT 1 FROM sqlite_schema").read())


@test
def links():
    """A symbolic link is followed if no other user could change it, also to WAL files beside its target"""
    path, db = make("linked", "WAL")
    (folder / "link.sqlite").symlink_to("linked.sqlite")
    publish("link", folder / "link.sqlite")
    equal(client.query("link", "SELECT count(*) FROM t").read().rows, [[1]], "rows")
    db.execute("INSERT INTO t VALUES('newer')")
    equal(client.query("link", "SELECT count(*) FROM t").read().rows, [[2]], "rows")
    db.close()


@test
def links_of_others():
    """A symbolic link that another user may change is CannotOpen without a path, and publishes nothing"""
    foreign()
    path, db = make("target")
    db.close()
    theirs = service.folder / "theirs"
    theirs.mkdir()
    (theirs / "link.sqlite").symlink_to(path)
    os.chown(theirs / "link.sqlite", UID_A, UID_A, follow_symlinks=False)
    publish("theirs", theirs / "link.sqlite")
    failure = expect("CannotOpen", lambda: client.query("theirs", "SELECT * FROM t").read())
    true("symbolic link that a user other than root can change" in failure.message, failure.message)
    true("/" not in failure.message, f"a path in: {failure.message}")
    os.chown(theirs / "link.sqlite", 0, 0, follow_symlinks=False)
    equal(len(client.query("theirs", "SELECT * FROM t").read().rows), 1, "rows")
    # A connection that was opened is not used once the way to it is no longer the one that was checked.
    other, db = make("other")
    db.execute("INSERT INTO t VALUES('another')")
    db.close()
    (theirs / "link.sqlite").unlink()
    (theirs / "link.sqlite").symlink_to(other)
    os.chown(theirs / "link.sqlite", UID_A, UID_A, follow_symlinks=False)
    expect("CannotOpen", lambda: client.query("theirs", "SELECT * FROM t").read())


SWAPPER = """
import ctypes, os, sys
call = ctypes.CDLL(None, use_errno=True).renameat2
call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
one, other = (os.fsencode(name) for name in sys.argv[1:])
print("swapping", flush=True)
while call(-100, one, -100, other, 2) == 0:  # AT_FDCWD, RENAME_EXCHANGE
    pass
"""


@test
def swapped_folder():
    """A user who keeps exchanging a directory of the path for a symbolic link publishes nothing by that"""
    foreign()
    secret, theirs = folder / "secrets", service.folder / "swapped"
    for place, row in ((secret, "secret"), (theirs / "real", "published")):
        place.mkdir(parents=True)
        with contextlib.closing(sqlite3.connect(place / "db.sqlite", isolation_level=None)) as db:
            db.execute("CREATE TABLE t(a)")
            db.execute("INSERT INTO t VALUES(?)", (row,))
    (theirs / "way").symlink_to(secret)
    os.chown(theirs, UID_A, UID_A)
    os.chown(theirs / "real", UID_A, UID_A)
    os.chown(theirs / "way", UID_A, UID_A, follow_symlinks=False)
    publish("swapped", theirs / "real" / "db.sqlite")
    seen = collections.Counter()
    command = [sys.executable, "-c", SWAPPER, theirs / "real", theirs / "way"]
    with subprocess.Popen(command, user=UID_A, group=UID_A, extra_groups=[], stdout=subprocess.PIPE) as swapper:
        try:
            equal(swapper.stdout.readline(), b"swapping\n", "the swapper's first line")
            for _ in range(N_SWAPPED):
                try:
                    for (value,) in client.query("swapped", "SELECT a FROM t").read().rows:
                        seen[value.decode()] += 1
                except Failure as failure:
                    seen[failure.name.rpartition(".")[2]] += 1
            equal(swapper.poll(), None, "the swapper's exit code")
        finally:
            swapper.kill()
    diagnose(f"{N_SWAPPED} queries: {dict(seen)}")
    equal(seen["secret"], 0, "rows of the secret database")
    true(seen["published"] > 0, "the published row never arrived")


FILL = """WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT 5000)
          INSERT INTO t SELECT randomblob(1000) FROM n"""
KILLED_WRITER = """
import os, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 5")
db.execute("BEGIN")
db.execute(sys.argv[2])
print("written", flush=True)
time.sleep(60)
"""


@test
def hot_journal():
    """A journal left by a killed writer: NeedsRecovery until its owner recovers it; the file is not touched"""
    foreign()
    path, db = make("hot")
    db.execute(FILL)
    db.execute("DELETE FROM t WHERE typeof(a) = 'blob'")
    db.close()
    writer = subprocess.Popen([sys.executable, "-c", KILLED_WRITER, path, FILL], stdout=subprocess.PIPE)
    equal(writer.stdout.readline(), b"written\n", "the writer")
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    equal(beside(path), ["hot.sqlite", "hot.sqlite-journal"], "files")
    publish("hot", path)
    before = path.read_bytes()
    failure = expect("NeedsRecovery", lambda: client.query("hot", "SELECT count(*) FROM t").read())
    true("write" in failure.message or "owner" in failure.message, failure.message)
    equal(path.read_bytes() == before, True, "the file is what it was")
    equal(beside(path), ["hot.sqlite", "hot.sqlite-journal"], "files")
    with sqlite3.connect(path) as owner:
        equal(owner.execute("SELECT count(*) FROM t").fetchone(), (1,), "rows for the owner")
    owner.close()
    equal(client.query("hot", "SELECT count(*) FROM t").read().rows, [[1]], "rows after recovery")


@test
def locks_are_kept():
    """Opening a database again in the same worker drops no lock of a run: a foreign writer stays out of its snapshot"""
    path, db = make("locked")
    db.execute(
        "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT 20000) "
        "INSERT INTO t SELECT hex(randomblob(50)) FROM n"
    )
    db.execute("PRAGMA busy_timeout = 0")
    publish("locked", path)
    run = client.query("locked", "SELECT a FROM t")
    wait_for(lambda: service.counters()["NParked"] == 1, "the run parks")
    true(locks(path), "a parked run holds no lock")
    others = [service.client() for _ in range(10)]
    for other in others:
        equal(other.query("locked", "SELECT count(*) FROM t").read().rows, [[20001]], "rows")
        same_rows(
            other.query_rows("locked", "SELECT a FROM t WHERE rowid = 1")[1],
            client.query("locked", "SELECT a FROM t LIMIT 1").read().rows,
        )
    equal(len(service.workers()), 1, "workers")
    true(locks(path), "the lock of the parked run is gone")
    try:
        db.execute("INSERT INTO t VALUES('under an open cursor')")
        raise AssertionError("a foreign writer wrote under an open cursor")
    except sqlite3.OperationalError as busy:
        true("locked" in str(busy), str(busy))
    equal(run.counted()[1], 20001, "rows")
    wait_for(lambda: not locks(path), "the lock is dropped at the end")
    db.execute("INSERT INTO t VALUES('after it')")
    equal(client.query("locked", "SELECT count(*) FROM t").read().rows, [[20002]], "rows")
    db.close()


@test
def own_database():
    """A database of the daemon's own user in WAL mode needs no writer"""
    path = service.data / "own.sqlite"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE t(a)")
    db.execute("INSERT INTO t VALUES(1)")
    db.close()
    if ROOT:
        os.chown(path, UID_DAEMON, UID_DAEMON)
    publish("own", path)
    equal(client.query("own", "SELECT * FROM t").read().rows, [[1]], "rows")


main(service)
