#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rights to watch: files of other owners, hidden tables, rights that are withdrawn, and the limits of each user.

The service has a user of its own, and the files belong to root.
"""
import contextlib
import os
import sqlite3

from client import DATABASE, Failure, object_path
from fake_polkit import FakePolkit
from harness import UID_A, UID_B, UID_DAEMON, Service, expect, main, needs_root, wait_for
from tap import equal, true
from watching import Watch, is_told, settle, wait_change

service = None
if os.geteuid() == 0:
    service = Service(uid=UID_DAEMON, limits={"WatchesMax": 4})
    folder = service.folder / "foreign"
    folder.mkdir(mode=0o755)


def make(name, mode="delete", **keys):
    """A database of root's, whose owner's connection is returned."""
    db = sqlite3.connect(folder / f"{name}.sqlite", isolation_level=None)
    db.executescript(f"PRAGMA journal_mode = {mode}; CREATE TABLE t(a); CREATE TABLE hidden(a)")
    publish(name, **keys)
    return db


def publish(name, **keys):
    service.database(name, Path=folder / f"{name}.sqlite", **keys)
    service.driver.manager("Reload")


def beside(name):
    return sorted(path.name for path in folder.glob(f"{name}.sqlite*"))


def begin_wait(one, name):
    return one.begin(object_path(name), DATABASE, "WaitChange", "(asta{sv})", ["t"], 0, {})


@contextlib.contextmanager
def client(uid=UID_A):
    one = service.client(uid)
    try:
        yield one
    finally:
        one.close()


@needs_root
def file_of_another_owner():
    """Commits to a file that the service may only read are told, in both modes, and nothing is made beside the file"""
    for mode in ("delete", "wal"):
        with contextlib.closing(make(mode, mode)) as db, client() as one:
            db.execute("INSERT INTO t VALUES (0)")
            before = beside(mode)
            watch = Watch(one, "t", database=mode)
            equal(watch.info["foreign"], "inotify", "how commits are noticed")
            for n in range(3):
                db.execute("INSERT INTO t VALUES (?)", [n])
                true(watch.next(), f"a commit of the owner ({mode})")
                settle(service, watch)
            equal(beside(mode), before, "files")
            expect("ReadOnly", one.execute, mode, "INSERT INTO t VALUES (1)")
            true(not is_told(service, watch), "a change without a commit")
    # the owner is not kept from writing, not even for a moment, with a program that does not wait for locks
    with client() as one, contextlib.closing(sqlite3.connect(folder / "delete.sqlite", 0, isolation_level=None)) as db:
        watch = Watch(one, database="delete")
        for n in range(200):
            db.execute("INSERT INTO t VALUES (?)", [n])
        true(watch.next(), "the commits")


@needs_root
def needs_owner():
    """WAL without -wal and -shm: tables cannot be named (NeedsOwner). A watch of all is told when the owner opens it"""
    with client() as one:
        make("closed", "wal").close()
        equal(beside("closed"), ["closed.sqlite"], "files")
        expect("NeedsOwner", Watch, one, "t", database="closed")
        expect("NeedsOwner", Watch, one, sql="SELECT * FROM t", database="closed")
        watch = Watch(one, database="closed")
        true(not is_told(service, watch) or watch.next(), "the state is not known, which may count as a change once")
        equal(beside("closed"), ["closed.sqlite"], "files")
        with contextlib.closing(sqlite3.connect(folder / "closed.sqlite", isolation_level=None)) as db:
            db.execute("INSERT INTO t VALUES (1)")
            true(watch.next(), "a commit of the owner")
            settle(service, watch)
            table = Watch(one, "t", database="closed")
            db.execute("INSERT INTO t VALUES (2)")
            true(watch.next() and table.next(), "another one")


@needs_root
def foreign_commits_to_hidden_tables():
    """A commit of another program to hidden tables alone is told to watches of exposed ones: no program names its tables"""
    with contextlib.closing(make("exposed", "wal", Expose="t")) as db, client() as one:
        watch = Watch(one, "t", database="exposed")
        equal(watch.info["tables"], ["t"], "tables")
        db.execute("INSERT INTO hidden VALUES (1)")
        true(watch.next(), "a change")
        settle(service, watch)
        errors = []
        for name in ("hidden", "nothing"):
            try:
                Watch(one, name, database="exposed")
            except Failure as failure:
                errors.append((failure.name, failure.message.replace(name, "NAME")))
        equal(errors[0], errors[1], "the errors of a hidden table and of none")


@needs_root
def rights_of_polkit():
    """With Polkit= a watch needs a yes. When polkit's answers change, a watch and a call that waits end if there is none"""
    fake = FakePolkit(service.address, {"asked": "yes"})
    with contextlib.closing(make("asked", Polkit="yes", AllowUsers="root")) as db, client() as one, client(UID_B) as other:
        watches = [Watch(who, "t", database="asked") for who in (one, other)]
        sequence = watches[0].info["sequence"]
        pending = begin_wait(one, "asked")
        fake.rules["asked"] = "no"
        fake.changed()
        for watch in watches:
            true(watch.next() is None, "end-of-file")
        expect("Busy", pending.result)
        db.execute("INSERT INTO t VALUES (1)")
        expect("org.freedesktop.DBus.Error.UnknownObject", wait_change, one, 0, "t", database="asked")
        fake.rules["asked"] = "yes"
        fake.changed()
        true(wait_change(one, sequence, "t", database="asked") > sequence, "what has changed meanwhile")
    fake.close()


@needs_root
def limits_of_each_user():
    """WatchesMax= holds for a user, with all its clients, and calls of WaitChange count. Another user is not affected"""
    with contextlib.closing(make("limited")), client() as one, client() as twin, client(UID_B) as other:
        watches = [Watch(who, "t", database="limited") for who in (one, one, twin)]
        pending = begin_wait(one, "limited")
        wait_for(lambda: len(one.manager("ListWatches")[0]) == 4, "the call waits")
        expect("LimitsExceeded", Watch, twin, "t", database="limited")
        expect("LimitsExceeded", wait_change, one, 0, "t", database="limited")
        equal(len([Watch(other, "t", database="limited") for _ in range(4)]), 4, "watches of another user")
        equal(len(other.manager("ListWatches")[0]), 4, "watches that it sees")
        expect("UnknownRun", other.database, "limited", "Unwatch", "(ta{sv})", watches[0].number, {})
        twin.close()
        wait_for(lambda: len(one.manager("ListWatches")[0]) == 3, "the watch of a client that left has ended")
        Watch(one, "t", database="limited")
        true(not pending.is_done(), "the call waits")


main(service)
