#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""PRAGMA foreign_keys belongs to a connection, as with sqlite3: tables are rebuilt by it, and no other client notices."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import threading

import sqlipc
import sqlipc.aio
from channel import Channel
from client import GLib
from harness import CLI, UID_A, UID_B, expect, main, needs_root, wait_for
from library import owner_pid
from load_stream import begin_load, send, stream, wait_for_load
from python_service import PythonService, raises
from tap import equal, test, true

service = PythonService()
SCHEMA = """
CREATE TABLE parent(id INTEGER PRIMARY KEY, name);
CREATE TABLE child(id INTEGER PRIMARY KEY, parent REFERENCES parent ON DELETE CASCADE);
INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO child(parent) VALUES (1), (1), (2), (3);
"""
REBUILD = """CREATE TABLE new_parent(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO new_parent SELECT id, name FROM parent;
DROP TABLE parent;
ALTER TABLE new_parent RENAME TO parent;""".split("\n")
ORPHAN = "INSERT INTO child(parent) VALUES (1000)"
OFF, ON = {"foreign-keys": GLib.Variant("b", False)}, {"foreign-keys": GLib.Variant("b", True)}


def publish(name, enforced=True, **keys):
    """Publishes a database for writing, and returns the path of its file."""
    path = service.data / f"{name}.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(f"PRAGMA journal_mode = wal; {SCHEMA}")
    keys = {"Path": path, "Mode": "read-write", "ForeignKeys": "yes" if enforced else "no", "WriteSchema": "yes"} | keys
    service.database(name, **keys)
    service.driver.manager("Reload")
    return path


def counts(db):
    return db.execute("SELECT (SELECT count(*) FROM parent), (SELECT count(*) FROM child)").fetchall()


# ---- programs, with sqlite3 and with sqlipc ----


def by_sqlite_utils(db):
    """As sqlite-utils' transform() does"""
    was_on = db.execute("PRAGMA foreign_keys").fetchone()[0]
    if was_on:
        db.execute("PRAGMA foreign_keys=0;")
    with db:
        for sql in REBUILD:
            db.execute(sql)
        violations = db.execute("PRAGMA foreign_key_check").fetchall()
    if was_on:
        db.execute("PRAGMA foreign_keys=1;")
    return was_on, violations, db.execute("PRAGMA foreign_keys").fetchall()


def by_django(db):
    """As Django's schema editor does: it looks if the setting has taken effect"""
    db.isolation_level = None
    db.execute("PRAGMA foreign_keys = OFF")
    enabled = db.execute("PRAGMA foreign_keys").fetchone()[0]
    db.execute("BEGIN")
    for sql in REBUILD:
        db.execute(sql)
    violations = db.execute("PRAGMA foreign_key_check").fetchall()
    db.execute("COMMIT")
    db.execute("PRAGMA foreign_keys = ON")
    return enabled, violations, db.execute("PRAGMA foreign_keys").fetchall()


def by_script(db):
    rebuild = "BEGIN IMMEDIATE; " + " ".join(REBUILD) + " COMMIT"
    db.executescript(f"PRAGMA foreign_keys = off; {rebuild}; PRAGMA foreign_keys = yes")
    return db.execute("PRAGMA foreign_keys").fetchall()


def alone(db):
    """Each statement commits"""
    db.isolation_level = None
    db.execute("PRAGMA foreign_keys(false)")
    for sql in REBUILD:
        db.execute(sql)
    db.execute("PRAGMA main.foreign_keys(true)")
    return db.execute("PRAGMA foreign_keys").fetchall()


def too_late(db):
    """Within a transaction SQLite ignores the setting, and the rows of the child vanish"""
    db.isolation_level = None
    db.execute("BEGIN")
    db.execute("PRAGMA foreign_keys = OFF")
    seen = [db.execute("PRAGMA foreign_keys").fetchall()]
    for sql in REBUILD:
        db.execute(sql)
    seen.append(db.execute("PRAGMA foreign_keys").fetchall())
    db.execute("COMMIT")
    return seen


def many_rows(db):
    """executemany() loads rows, in a transaction and alone"""
    db.isolation_level = None
    seen = []
    for setting in ("OFF", "ON"):
        db.execute(f"PRAGMA foreign_keys = {setting}")
        for begin in ("SELECT 1", "BEGIN"):
            db.execute(begin)
            try:
                db.executemany("INSERT INTO child(parent) VALUES (?)", [(1001,), (1002,)])
            except Exception as error:
                seen.append((type(error).__name__, error.sqlite_errorname))
            seen.append(counts(db))
            if db.in_transaction:
                db.execute("COMMIT")
    return seen


PROGRAMS = (by_sqlite_utils, by_django, by_script, alone, too_late, many_rows)


def compare(program, enforced, begin):
    name = f"{program.__name__}-{int(enforced)}-{int(begin)}"
    path, copy = publish(name, enforced), service.folder / f"{name}.sqlite"
    shutil.copyfile(path, copy)
    seen, contents = [], []
    shared = sqlipc.connect(name, bus=service.address)
    for db, file in ((shared, path), (sqlite3.connect(copy), copy)):
        with contextlib.closing(db):
            if begin or (enforced and db is not shared):
                db.execute("PRAGMA foreign_keys = ON")
            seen.append((program(db), counts(db)))
        with contextlib.closing(sqlite3.connect(file)) as db:
            contents.append((list(db.iterdump()), db.execute("PRAGMA foreign_key_check").fetchall()))
    equal(*seen, f"{name}: what the program saw")
    equal(*contents, f"{name}: the database after it")


@test
def rebuilding_a_table():
    """Programs that rebuild a table do the same as with sqlite3, if keys are enforced for all, for the program, or not"""
    for program in PROGRAMS:
        for enforced in (True, False):
            for begin in (True, False):
                compare(program, enforced, begin)


@test
def aio():
    """The same by sqlipc.aio"""
    publish("aio")

    async def program():
        async with sqlipc.aio.connect("aio", bus=service.address, isolation_level=None) as db:
            await db.execute("PRAGMA foreign_keys = OFF")
            await db.execute("BEGIN")
            for sql in REBUILD:
                await db.execute(sql)
            await db.execute("COMMIT")
            return await (await db.execute("SELECT count(*) FROM child")).fetchall()

    equal(asyncio.run(program()), [(4,)], "rows of the child")


@test
def shell():
    """The same in the shell, by each transport of the library"""
    script = "PRAGMA foreign_keys=OFF;\nPRAGMA foreign_keys;\nBEGIN;\n" + "\n".join(REBUILD) + "\nCOMMIT;\n"
    script += "SELECT count(*) FROM child;\nPRAGMA foreign_keys=ON;\nPRAGMA foreign_keys;\n"
    for transport in ("auto", "pipe", "channel", "dbus"):
        publish(f"shell-{transport}")
        options = [f"--address={service.address}", f"--transport={transport}", "--mode=csv", "--headers=off"]
        done = service.run(CLI, *options, f"shell-{transport}", input=script.encode())
        equal((done.stdout.split(), done.stderr), ([b"0", b"4", b"1"], b""), transport)


# ---- deferred keys ----

LATE = "CREATE TABLE late(parent REFERENCES parent DEFERRABLE INITIALLY DEFERRED);"


def steps(db, script):
    """What each statement tells, and if a transaction is open after it. A name is a method of the connection."""
    seen = []
    for sql in script:
        try:
            seen.append(getattr(db, sql)() if sql.islower() else db.execute(sql).fetchall())
        except Exception as error:
            seen.append((type(error).__name__, error.sqlite_errorname, str(error)))
        seen.append(None if sql == "close" else db.in_transaction)
    return seen


REPAIRED = (
    "BEGIN", "INSERT INTO late VALUES (50)", "COMMIT", "SELECT * FROM late", "INSERT INTO parent VALUES (50, 'p')", "COMMIT",
)  # fmt: skip
DEFERRED = (
    REPAIRED,
    ("BEGIN", "INSERT INTO late VALUES (50)", "commit", "COMMIT", "DELETE FROM late", "commit", "SELECT * FROM late"),
    ("BEGIN IMMEDIATE", "INSERT INTO late VALUES (50)", "COMMIT", "ROLLBACK", "SELECT * FROM late", "BEGIN", "COMMIT"),
    ("SAVEPOINT a", "INSERT INTO late VALUES (50)", "RELEASE a", "SELECT * FROM late", "ROLLBACK TO a", "RELEASE a"),
    ("BEGIN", "PRAGMA defer_foreign_keys = ON", ORPHAN, "COMMIT", "DELETE FROM child WHERE parent = 1000", "COMMIT"),
    ("BEGIN", "INSERT INTO late VALUES (5)", "PRAGMA defer_foreign_keys = 1", "INSERT INTO parent VALUES (5, 0)", "COMMIT"),
    ("INSERT INTO late VALUES (50)", "SELECT * FROM late"),
    ("BEGIN", "INSERT INTO late VALUES (50)", "COMMIT", "rollback", "SELECT * FROM late"),
    ("BEGIN", "INSERT INTO late VALUES (50)", "COMMIT", "close"),
)


def in_block(db):
    with contextlib.suppress(Exception), db:
        db.execute("BEGIN")
        db.execute("INSERT INTO late VALUES (50)")
    return db.in_transaction, db.execute("SELECT * FROM late").fetchall()


@test
def deferred():
    """A COMMIT that finds violated keys keeps the transaction, which is repaired, or rolled back, as with sqlite3"""
    for i, script in enumerate(DEFERRED):
        path, seen = publish(f"late{i}"), []
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(LATE)
        copy = service.folder / f"late{i}.sqlite"
        shutil.copyfile(path, copy)
        for db in (service.connect(f"late{i}", isolation_level=None), sqlite3.connect(copy, isolation_level=None)):
            with contextlib.closing(db):
                db.execute("PRAGMA foreign_keys = ON")
                seen.append((steps(db, script), None if "close" in script else in_block(db)))
        equal(*seen, f"{script}")
        with contextlib.closing(sqlite3.connect(path)) as ours, contextlib.closing(sqlite3.connect(copy)) as theirs:
            equal(list(ours.iterdump()), list(theirs.iterdump()), "contents")


class Random:
    """Statements about keys: those that violate some, repair them, or take violations away that were there before, by which
    SQLite's counts of violations become negative."""

    SCHEMA = f"""{LATE}
    CREATE TABLE tree(id INTEGER PRIMARY KEY, up REFERENCES tree DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE strict(id INTEGER PRIMARY KEY, parent REFERENCES parent);"""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def statement(self):
        n, m = self.chance.randint(1, 6), self.chance.randint(1, 6)
        return self.chance.choice((
            f"INSERT INTO late VALUES ({n})", f"DELETE FROM late WHERE parent = {n}", f"UPDATE late SET parent = {m}",
            f"INSERT INTO strict(parent) VALUES ({n})", f"DELETE FROM strict WHERE parent = {n}",
            f"UPDATE strict SET parent = {m} WHERE parent = {n}", f"INSERT INTO child(parent) VALUES ({n})",
            f"INSERT OR IGNORE INTO parent VALUES ({n}, 'p')", f"DELETE FROM parent WHERE id = {n}",
            f"UPDATE OR IGNORE parent SET id = {m} WHERE id = {n}", f"INSERT OR REPLACE INTO tree VALUES ({n}, {m})",
            f"DELETE FROM tree WHERE id = {n}", f"UPDATE tree SET up = {m} WHERE id = {n}",
        ))  # fmt: skip

    def script(self):
        """Keys that are violated from the beginning, then transactions, of which most are committed, some after repairs."""
        script = ["PRAGMA foreign_keys = OFF", *(self.statement() for _ in range(8)), "PRAGMA foreign_keys = ON"]
        for _ in range(6):
            script.append(self.chance.choice(("BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT a", "SELECT 1")))
            can_defer = script[-1] != "SELECT 1"
            for _ in range(self.chance.randint(1, 8)):
                extra = ("PRAGMA defer_foreign_keys = ON", "PRAGMA defer_foreign_keys = OFF") * 3 * can_defer
                extra += "SAVEPOINT b", "ROLLBACK TO b", "RELEASE b", "COMMIT", "RELEASE a"
                script.append(self.chance.choice(extra) if self.chance.random() < 0.25 else self.statement())
                can_defer = can_defer and script[-1] not in ("COMMIT", "RELEASE a")
            script += ["COMMIT", self.statement(), "DELETE FROM late", "commit", "rollback"][self.chance.randint(0, 1) :]
        return script


def play(seed):
    random_keys, name = Random(seed), f"random{seed}"
    path, copy = publish(name), service.folder / f"{name}.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(Random.SCHEMA)
    shutil.copyfile(path, copy)
    script, seen, contents = random_keys.script(), [], []
    for db in (service.connect(name, isolation_level=None), sqlite3.connect(copy, isolation_level=None)):
        with contextlib.closing(db):
            seen.append(steps(db, script))
    for file in (path, copy):
        with contextlib.closing(sqlite3.connect(file)) as db:
            contents.append(list(db.iterdump()))
    for i, sql in enumerate(script):
        equal(*(what[2 * i : 2 * i + 2] for what in seen), f"seed {seed}: {sql}, after {script[:i]}")
    equal(*contents, f"seed {seed}: contents after {script}")
    return [what for what in seen[0] if isinstance(what, tuple)]


@test
def deferred_at_random():
    """Commits succeed or are refused as with sqlite3: with deferred keys, immediate ones, defer_foreign_keys, savepoints"""
    errors = [error for seed in range(60) for error in play(seed)]
    true(any(code == "SQLITE_CONSTRAINT_FOREIGNKEY" for _, code, _ in errors), errors)


@test
def deferred_elsewhere():
    """The same by sqlipc.aio, and in the shell; over the bus for those who ask for it"""
    with contextlib.closing(sqlite3.connect(publish("late"))) as db:
        db.execute(LATE)

    async def program():
        async with sqlipc.aio.connect("late", bus=service.address, isolation_level=None) as db:
            await db.execute("BEGIN")
            await db.execute("INSERT INTO late VALUES (50)")
            for _ in range(2):
                try:
                    await db.commit()
                except sqlipc.IntegrityError as error:
                    equal((error.sqlite_errorname, db.in_transaction), ("SQLITE_CONSTRAINT_FOREIGNKEY", True), "error")
            await db.execute("UPDATE late SET parent = 1")
            await db.commit()
            return await (await db.execute("SELECT * FROM late")).fetchall()

    equal(asyncio.run(program()), [(1,)], "rows")
    script = ";\n".join(REPAIRED) + ";\nSELECT name FROM parent WHERE id = 50;\n"
    clean = "DELETE FROM late; DELETE FROM parent WHERE id = 50;"
    for transport in ("auto", "pipe", "dbus"):
        options = [f"--address={service.address}", f"--transport={transport}", "--mode=csv", "--headers=off"]
        done = service.run(CLI, *options, "late", input=(script + clean).encode())
        equal(done.stdout.split()[-1:], [b"p"], f"{transport}: {done.stdout} {done.stderr}")
        true(done.stderr.count(b"FOREIGN KEY constraint failed") == 1, f"{done.stderr}")
    client = service.client()
    values, _ = client.database("late", "Begin", "(a{sv})", {"mode": GLib.Variant("s", "deferred")})
    number, inside = values[0].get_uint64(), {"transaction": values[0]}
    client.execute("late", "INSERT INTO late VALUES (50)", options=inside)
    for options in ({"x-keeps-open": GLib.Variant("b", True)},) * 2:
        expect("CommitRefused", client.database, "late", "Commit", "(ta{sv})", number, options)
        equal(client.query("late", "SELECT * FROM late", options=inside).read().rows, [[50]], "it is open")
    expect("Sql", client.database, "late", "Commit", "(ta{sv})", number, {})
    expect("TransactionEnded", client.database, "late", "Commit", "(ta{sv})", number, {})
    equal(client.query("late", "SELECT * FROM late").read().rows, [], "rows")


# ---- beside other clients ----


@test
def beside_others():
    """While one client rebuilds tables, foreign keys are enforced for another one that writes, alone and in transactions"""
    path = publish("beside")
    done, refused, wrong = threading.Event(), [0], []

    def others():
        try:
            play()
        except BaseException as error:  # noqa: BLE001 - the test fails with it
            wrong.append(error)

    def play():
        with contextlib.closing(service.connect("beside", isolation_level=None)) as db:
            while not done.is_set() or refused[0] < 20:
                for begin in ("SELECT 1", "BEGIN IMMEDIATE"):
                    db.execute(begin)
                    try:
                        db.execute(ORPHAN)
                        wrong.append(begin)
                    except sqlipc.IntegrityError:
                        refused[0] += 1
                    if db.in_transaction:
                        db.execute("COMMIT")

    thread = threading.Thread(target=others)
    thread.start()
    try:
        with contextlib.closing(service.connect("beside", isolation_level=None)) as db:
            for _ in range(15):
                db.execute("PRAGMA foreign_keys = OFF")
                db.execute("BEGIN IMMEDIATE")
                for sql in REBUILD:
                    db.execute(sql)
                db.execute("COMMIT")
                db.execute("INSERT INTO child(id, parent) VALUES (77, 1000)")
                db.execute("DELETE FROM child WHERE id = 77")
                equal(counts(db), [(3, 4)], "rows")
    finally:
        done.set()
        thread.join()
    equal(wrong, [], "rows without a parent, or errors, of the other client")
    with contextlib.closing(sqlite3.connect(path)) as db:
        equal(db.execute("PRAGMA foreign_key_check").fetchall(), [], "violations")


@test
def after_a_failure():
    """A transaction without keys that fails, is rolled back, or is lost with its client leaves nothing behind"""
    publish("failing")
    with contextlib.closing(service.connect("failing", isolation_level=None)) as other:
        for end in ("ROLLBACK", "INSERT OR ROLLBACK INTO child(id) VALUES (1)", None):
            db = service.connect("failing", isolation_level=None)
            db.execute("PRAGMA foreign_keys = OFF")
            db.execute("BEGIN IMMEDIATE")
            db.execute(ORPHAN)
            with contextlib.suppress(sqlipc.IntegrityError):
                if end:
                    db.execute(end)
            db.close()
            raises(sqlipc.IntegrityError, other.execute, ORPHAN)
            equal(counts(other), [(3, 4)], "rows")
        with contextlib.closing(service.connect("failing", isolation_level=None)) as db:
            db.execute("PRAGMA foreign_keys = OFF")
            raises(sqlipc.IntegrityError, db.execute, "INSERT INTO child(id) VALUES (1)")
            raises(sqlipc.IntegrityError, other.execute, ORPHAN)


@test
def each_connection():
    """A new connection begins with the database's setting, and a service that is started again does not forget one"""
    with PythonService(activation=True) as fresh:
        path = fresh.add("kept", SCHEMA)
        with contextlib.closing(fresh.connect("kept", isolation_level=None)) as db:
            db.execute("PRAGMA foreign_keys = OFF")
            pid = owner_pid(fresh)
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: owner_pid(fresh) != pid, "its name is free")
            equal(db.execute("PRAGMA foreign_keys").fetchall(), [(0,)], "setting")
            db.execute(ORPHAN)
        with contextlib.closing(fresh.connect("kept", isolation_level=None)) as db:
            equal(db.execute("PRAGMA foreign_keys").fetchall(), [(1,)], "setting of a new connection")
            raises(sqlipc.IntegrityError, db.execute, ORPHAN)
        with contextlib.closing(sqlite3.connect(path)) as db:
            equal(counts(db), [(3, 5)], "rows")


# ---- without a library ----


@test
def over_the_bus():
    """Calls tell the setting, and have it as an option"""
    publish("bus")
    client = service.client()
    expect("NotAllowed", client.execute, "bus", "PRAGMA foreign_keys = OFF")  # as an older library, which would forget it
    client.execute("bus", "PRAGMA foreign_keys = ON")
    for known in (ON, {"x-time-zone": GLib.Variant("s", "")}):
        info = client.execute("bus", "PRAGMA foreign_keys = OFF", options=known)[1]
        equal(info["foreign-keys"], False, "Execute tells it")
    with contextlib.closing(client.prepare("bus", "PRAGMA foreign_keys = OFF")) as statement:
        expect("NotAllowed", statement.fetch)
        equal(statement.fetch(options={"x-time-zone": GLib.Variant("s", "")}).read().rows, [], "a prepared statement")
    run, _, _ = client.open_rows("bus", "PRAGMA foreign_keys = yes")
    equal(client.next_rows("bus", run)[2]["foreign-keys"], True, "NextRows tells it")
    for options, value in ((OFF, 0), (ON, 1), ({}, 1)):
        equal(client.query("bus", "PRAGMA foreign_keys", options=options).read().rows, [[value]], "Query")
        equal(client.query_rows("bus", "PRAGMA foreign_keys", options=options)[1], [[value]], "QueryRows")
    expect("Sql", client.execute, "bus", ORPHAN)
    client.execute("bus", ORPHAN, options=OFF)
    expect("Sql", client.execute_batch, "bus", [(ORPHAN, [])], options=ON)
    client.execute_batch("bus", [(ORPHAN, [])], options=OFF)
    run, pipe = begin_load(client, "bus", "INSERT INTO child(parent) VALUES (?)", options=OFF)
    send(pipe, stream([[1000], [1001]]))
    equal(wait_for_load(client, "bus", run)[0], 2, "rows that were loaded")
    values, _ = client.database("bus", "Begin", "(a{sv})", {"mode": GLib.Variant("s", "deferred")} | OFF)
    inside = {"transaction": values[0]}
    equal(client.query("bus", "PRAGMA foreign_keys", options=inside).read().rows, [[0]], "in a transaction that reads")
    equal("foreign-keys" in client.execute("bus", "PRAGMA foreign_keys = ON", options=inside)[1], False, "ignored")
    client.execute("bus", ORPHAN, options=inside)
    equal(client.query("bus", "PRAGMA foreign_keys", options=inside).read().rows, [[0]], "in one that writes")
    client.database("bus", "Commit", "(ta{sv})", values[0].get_uint64(), {})
    equal(client.query("bus", "SELECT count(*) FROM child").read().rows, [[9]], "rows")


@test
def on_a_channel():
    """FOREIGN_KEYS holds for the requests after it, on its channel"""
    publish("channel")
    client = service.client()
    with contextlib.closing(Channel(client, "channel")) as channel:
        equal(channel.ask("PRAGMA foreign_keys"), [[1]], "at first")
        expect("NotAllowed", channel.ask, "PRAGMA foreign_keys = OFF")  # as an older library, which would forget it
        with contextlib.closing(Channel(client, "channel")) as newer:
            newer.time_zone("")
            equal(newer.ask("PRAGMA foreign_keys = OFF"), [], "as this library, which keeps it")
        expect("Sql", channel.ask, ORPHAN)
        channel.foreign_keys(1)
        equal(channel.ask("PRAGMA foreign_keys"), [[0]], "after FOREIGN_KEYS")
        channel.ask(ORPHAN)
        channel.foreign_keys(2)
        expect("Sql", channel.ask, ORPHAN)
        channel.foreign_keys(1)
        channel.ask(ORPHAN)
        with contextlib.closing(Channel(client, "channel")) as other:
            expect("Sql", other.ask, ORPHAN)


# ---- who may ----


@needs_root
def rights():
    """A user who may not change the schema cannot turn keys off, and is told why; one who may only read changes nothing"""
    users = {"AllowUsers": "*", "WriteSchema": "no"}
    publish("rows", WriteUsers=UID_A, **users)
    publish("free", enforced=False, WriteUsers=UID_A, **users)
    publish("listed", enforced=False, WriteUsers=UID_A, WriteTables="parent", **users)
    client = service.client(uid=UID_A)
    for name, sql, options in (("rows", "PRAGMA foreign_keys = OFF", OFF), ("listed", "PRAGMA foreign_keys = ON", ON)):
        error = expect("NotAllowed", client.execute, name, sql)
        true("WriteSchema=" in error.message and "ForeignKeys=" in error.message, error.message)
        for send_it in (
            lambda: client.execute(name, "DELETE FROM parent", options=options),
            lambda: client.execute_batch(name, [("DELETE FROM parent", [])], options=options),
            lambda: client.query(name, "DELETE FROM parent", options=options).read(),
            lambda: client.database(name, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")} | options),
            lambda: client.database(name, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "deferred")} | options),
            lambda: begin_load(client, name, "DELETE FROM parent WHERE id = ?", options),
        ):
            expect("NotAllowed", send_it)
        with contextlib.closing(Channel(client, name)) as channel:
            channel.foreign_keys(1 if options is OFF else 2)
            expect("NotAllowed", channel.ask, "DELETE FROM parent")
        equal(client.query(name, "SELECT count(*) FROM parent").read().rows, [[3]], "rows")
        client.execute(name, sql.replace("OFF", "ON") if options is OFF else sql.replace("ON", "OFF"))
    reader = service.client(uid=UID_B)
    reader.execute("rows", "PRAGMA foreign_keys = OFF")
    expect("ReadOnly", reader.execute, "rows", "DELETE FROM parent", options=OFF)
    expect("Sql", client.execute, "rows", ORPHAN)
    equal(client.execute("free", "PRAGMA foreign_keys = ON", options=OFF)[1]["foreign-keys"], True, "ON is no danger")
    expect("Sql", client.execute, "free", ORPHAN, options=ON)
    equal(client.execute("free", ORPHAN)[0], 1, "changes")


main(service)
