#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Watches: each commit reaches the clients that watch its tables, and nothing else does."""
import contextlib
import os
import sqlite3

from channel import Channel
from client import Failure, object_path
from gi.repository import GLib
from harness import SANITIZED, UID_A, UID_B, Service, expect, main, needs_root, rss_anon, wait_for
from load_stream import begin_load, columns, end, rows, send, stream, wait_for_load
from tap import diagnose, equal, test, true
from watching import DB, Watch, has_rested, is_told, settle, wait_change

SCHEMA = """
CREATE TABLE a(id INTEGER PRIMARY KEY, n);
CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a(id) ON DELETE CASCADE);
CREATE TABLE c(n);
CREATE TABLE d(k TEXT PRIMARY KEY, n) WITHOUT ROWID;
CREATE TABLE log(n);
CREATE VIEW seen AS SELECT n FROM c WHERE n > 0;
CREATE TRIGGER logs AFTER INSERT ON c BEGIN INSERT INTO log VALUES (new.n); END;
CREATE VIRTUAL TABLE words USING fts5(word);
"""


@contextlib.contextmanager
def watched(journal="wal", schema=SCHEMA, limits=None, **keys):
    with Service() as service:
        path = service.data / "watched.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(f"PRAGMA journal_mode = {journal}; {schema}")
        keys = {"Path": path, "Mode": "read-write", "WriteSchema": "yes", "ForeignKeys": "yes", **keys}
        service.path = path
        service.database(DB, **keys)
        if limits:
            service.limits(**limits)
        service.driver.manager("Reload")
        yield service


def tells(client, sql, watches, others):
    """The statement is told to these watches, and not to the others. A watch of every table is told after them."""
    barrier = Watch(client)
    client.execute(DB, sql)
    barrier.next()
    barrier.close()
    for watch in watches:
        true(watch.next(), f"a watch was not told of {sql}")
    for watch in others:
        true(not watch.is_readable(), f"a watch was told of {sql}")


@test
def tables_of_commits():
    """A commit is told to watches of the tables that it changes, also by triggers, foreign keys and DELETE without WHERE"""
    for journal in ("wal", "delete"):
        with watched(journal) as service:
            client, reader = service.client(), service.client()
            all_of_them = {name: Watch(reader, name) for name in ("a", "b", "c", "d", "log", "seen")}
            for sql, names in (
                ("INSERT INTO a VALUES (1, 1), (2, 2)", "a"),
                ("INSERT INTO b VALUES (1, 1)", "b"),
                ("INSERT INTO c VALUES (1)", "c log seen"),
                ("INSERT INTO d VALUES ('k', 1)", "d"),
                ("DELETE FROM a WHERE id = 1", "a b"),
                ("INSERT OR REPLACE INTO a VALUES (2, 3)", "a b"),
                ("UPDATE d SET n = 2", "d"),
                ("UPDATE d SET n = 2 WHERE k = 'none'", ""),
                ("DELETE FROM log", "log"),
                ("DELETE FROM d", "d"),
                ("PRAGMA user_version = 7", "a b c d log seen"),
                ("CREATE TABLE e(n)", "a b c d log seen"),
            ):
                if not names:
                    client.execute(DB, sql)
                    continue
                wanted = [watch for name, watch in all_of_them.items() if name in names.split()]
                tells(client, sql, wanted, [watch for watch in all_of_them.values() if watch not in wanted])


@test
def sequence_of_results():
    """The sequence in results: `since` that of a read tells of each later change, and of none before"""
    for journal in ("wal", "delete"):
        with watched(journal) as service:
            client = service.client()
            keeper = Watch(client, "a")
            info = client.execute(DB, "INSERT INTO a VALUES (1, 1)")[1]
            keeper.next()
            end = client.query(DB, "SELECT * FROM a").read().end
            equal(end.sequence, info["sequence"], "sequence of a read after the commit")
            equal(client.query_rows(DB, "SELECT * FROM a")[2]["sequence"], end.sequence, "the same as values")
            true(not is_told(service, Watch(client, "a", since=end.sequence)), "a change was told that is none")
            later = client.execute(DB, "INSERT INTO a VALUES (2, 1)")[1]["sequence"]
            true(later > end.sequence, "a larger number")
            equal(Watch(client, "a", since=end.sequence).next(), later, "the number of the change")
            equal(wait_change(client, end.sequence, "a"), later, "the same by WaitChange")
            expect("TimedOut", wait_change, client, later, "a", **{"timeout-usec": 50000})
            equal(Watch(client, "c", since=1).next() > 0, True, "a number of another instance")


@test
def rolled_back():
    """A transaction that is rolled back, and a statement that fails, are told to no watch"""
    with watched() as service:
        client = service.client()
        watch = Watch(client, "a")
        values, _ = client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
        inside = {"transaction": values[0]}
        client.execute(DB, "INSERT INTO a VALUES (1, 1)", options=inside)
        client.database(DB, "Rollback", "(ta{sv})", values[0].get_uint64(), {})
        expect("Sql", client.execute, DB, "INSERT INTO a VALUES (1, 1), (1, 1)")
        true(not is_told(service, watch), "a rollback was told")
        client.execute(DB, "INSERT INTO a VALUES (1, 1)")
        true(watch.next(), "the commit")


@test
def unread_changes():
    """A watch that is not read holds one number; when it is read, a change since then is told again"""
    with watched() as service:
        client = service.client()
        watch = Watch(client, "a")
        for n in range(100):
            client.execute(DB, "INSERT INTO a(n) VALUES (?)", [n])
        wait_for(watch.is_readable, "the first change")
        first = watch.next()
        second = watch.next()
        true(second > first, "the last of the changes that were made meanwhile")
        true(not is_told(service, watch), "no other change")


@test
def ends():
    """Unwatch, a closed pipe, and the end of the service"""
    with watched() as service:
        client = service.client()
        watch, closed = Watch(client, "a"), Watch(client, "a")
        counters = lambda: client.properties("org.sqlipc1.Manager")["NWatches"]
        equal(counters(), 2, "watches")
        closed.close()
        wait_for(lambda: counters() == 1, "the end of a watch whose pipe is closed")
        watch.end()
        equal(watch.next(), None, "end-of-file after Unwatch")
        expect("UnknownRun", watch.end)
        last = Watch(client, "a")
        service.stop()
        equal(last.next(), None, "end-of-file after the service")


@test
def errors():
    """Unknown tables and options, wrong SQL, too many watches"""
    with watched(limits={"WatchesMax": 3}) as service:
        client = service.client()
        expect("Sql", Watch, client, "none")
        expect("Sql", Watch, client, "a", "none")
        expect("Sql", Watch, client, "")
        expect("Sql", Watch, client, sql="SELECT nothing")
        expect("InvalidOption", Watch, client, "a", sql="SELECT 1")
        expect("UnknownStatement", Watch, client, statement=1)
        watches = [Watch(client, "a") for _ in range(3)]
        expect("LimitsExceeded", Watch, client, "a")
        watches[0].end()
        Watch(client)


@test
def statements():
    """The tables of a statement, through views"""
    with watched() as service:
        client = service.client()
        watch = Watch(client, sql="SELECT * FROM seen JOIN a")
        equal(sorted(watch.info["tables"]), ["a", "c", "seen"], "tables of the statement")
        statement = client.prepare(DB, "SELECT * FROM d")
        prepared = Watch(client, statement=statement.number)
        equal(prepared.info["tables"], ["d"], "tables of the prepared statement")
        words = Watch(client, "words")
        tells(client, "INSERT INTO d VALUES ('x', 1)", [prepared, words], [watch])
        tells(client, "INSERT INTO c VALUES (1)", [watch, words], [prepared])


@test
def schema_changes():
    """After a change of the schema, by the service or past it, a watch is one of all tables; a new watch is not"""
    for change in (lambda _, client: client.execute(DB, "CREATE INDEX i ON c(n)"), lambda path, _: foreign(path, "VACUUM")):
        with watched() as service:
            client = service.client()
            watch = Watch(client, "a")
            change(service.path, client)
            true(watch.next(), "the change of the schema")
            settle(service, watch)
            new = Watch(client, "a")
            tells(client, "INSERT INTO d VALUES ('k', 1)", [watch], [new])
            client.execute(DB, "DROP TABLE d")
            true(watch.next() and new.next(), "both go on")


def foreign(path, *statements):
    """Another program, which opens the file for these statements only."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for sql in statements:
            db.execute(sql).fetchall()


@test
def foreign_commits():
    """Commits past the service are told, in both journal modes; checkpoints, locks and touch are not"""
    for journal in ("wal", "delete", "truncate", "persist"):
        with watched(journal) as service:
            client = service.client()
            with contextlib.closing(sqlite3.connect(service.path, isolation_level=None)) as db:
                db.execute("PRAGMA wal_autocheckpoint = 0")
                watch = Watch(client, "a")
                equal(watch.info["foreign"], "inotify", "how foreign commits are noticed")
                true(not is_told(service, watch), f"a change without a commit ({journal})")
                for n in range(20):
                    db.execute("INSERT INTO a(n) VALUES (?)", [n])
                    true(watch.next(), f"a commit ({journal})")
                settle(service, watch)
                os.utime(service.path)
                db.execute("BEGIN IMMEDIATE")
                db.execute("ROLLBACK")
                db.execute("SELECT count(*) FROM a").fetchall()
                for mode in ("PASSIVE", "FULL", "RESTART", "TRUNCATE", "TRUNCATE"):
                    db.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
                true(not is_told(service, watch), f"a change without a commit ({journal})")
                db.execute("INSERT INTO a(n) VALUES (1)")
                true(watch.next(), f"a commit after a checkpoint ({journal})")


@test
def foreign_and_own():
    """Commits of both kinds, one after the other: each is told, and an own one only to the watches of its tables"""
    for journal in ("wal", "delete"):
        with watched(journal) as service:
            client = service.client()
            a, c = Watch(client, "a"), Watch(client, "c")
            for n in range(10):
                tells(client, "INSERT INTO a(n) VALUES (1)", [a], [c])
                foreign(service.path, "INSERT INTO log VALUES (1)")
                true(a.next() and c.next(), "a foreign commit is told to all")
                settle(service, a, c)
            for n in range(100):
                client.execute(DB, "INSERT INTO a(n) VALUES (1)")
            true(a.next(), "an own commit")
            true(not is_told(service, c), f"own commits are not foreign ({journal})")


@test
def since_and_foreign():
    """`since` of a read, while nothing watches: a foreign commit after it is told"""
    with watched() as service:
        client = service.client()
        Watch(client, "a").end()
        sequence = client.query(DB, "SELECT * FROM a").read().end.sequence
        true(not is_told(service, Watch(client, "a", since=sequence)), "a change that is none")
        foreign(service.path, "INSERT INTO a(n) VALUES (1)")
        true(wait_change(client, sequence, "a") > sequence, "the change")


@test
def replaced_file():
    """Another file in the place of the database is a change, and commits to that are told"""
    for journal in ("wal", "delete"):
        with watched(journal) as service:
            client = service.client()
            watch = Watch(client, "a")
            new = service.path.with_name("new")
            with contextlib.closing(sqlite3.connect(new)) as db:
                db.executescript(SCHEMA)
            os.rename(new, service.path)
            true(watch.next(), "the other file")
            settle(service, watch)
            foreign(service.path, "INSERT INTO a(n) VALUES (1)")
            true(watch.next(), "a commit to the other file")


@test
def idle_watch():
    """A quiet watch needs no process, and the next commit is told all the same"""
    with watched() as service:
        client = service.client()
        watch = Watch(client, "a")
        with contextlib.closing(sqlite3.connect(service.path, isolation_level=None)) as db:
            for _ in range(2):
                wait_for(lambda: not service.workers(), "the end of the processes")
                db.execute("INSERT INTO a(n) VALUES (1)")
                true(watch.next(), "a commit")


@test
def idle_watches():
    """Watches of quiet files take no process and wake the service never: counted over two seconds, at all three states"""
    with watched() as service:
        service.database("other", Path=service.data / "other.sqlite")
        with contextlib.closing(sqlite3.connect(service.data / "other.sqlite")) as db:
            db.executescript(SCHEMA)
        service.driver.manager("Reload")
        client = service.client()
        waiting = [Watch(client, "a", database=name) for name in (DB, "other") for _ in range(50)]
        unread = [Watch(client, "c") for _ in range(50)]
        foreign(service.path, "INSERT INTO c VALUES (1)")
        true(all(watch.next() for watch in waiting if watch.database == DB), "the watches of the file are told")
        call = client.begin(object_path(DB), "org.sqlipc1.Database", "WaitChange", "(asta{sv})", ["d"], 0, {})
        wait_for(lambda: not service.workers(), "the end of the processes")
        wait_for(lambda: has_rested(service, 2), "two seconds in which nothing wakes the service")
        true(not service.workers() and not call.is_done(), "no process, and nothing to tell")
        true(all(watch.is_readable() for watch in unread), "what was told before")


@test
def loads():
    """A load is told once, to the watches of its tables, when it is committed; one that fails is told to none"""
    with watched() as service:
        client = service.client()
        watch, log, other = Watch(client, "c"), Watch(client, "log"), Watch(client, "a")
        run, pipe = begin_load(client, DB, "INSERT INTO c VALUES (?)")
        frames = columns(1) + rows([[n] for n in range(100)])
        send(pipe, frames)
        true(not is_told(service, watch), "a load that is not committed was told")
        send(pipe, end(100, frames))
        changes, info = wait_for_load(client, DB, run)
        equal(changes, 100, "changes")
        equal((watch.next(), log.next()), (info["sequence"],) * 2, "the number of the commit")
        run, pipe = begin_load(client, DB, "INSERT INTO a(id) VALUES (?)")
        send(pipe, stream([[1], [1]]))
        expect("Sql", wait_for_load, client, DB, run)
        true(not is_told(service, watch, log, other), "a change that is none")


@test
def sequences_of_guests():
    """Channels to several databases in one worker: each result has the sequence of its own database"""
    with watched(limits={"WorkersMax": 1}, Mode="read-only", WriteSchema="no", ForeignKeys="no") as service:
        names = [DB, "second", "third"]
        for name in names:
            path = service.data / f"{name}.sqlite"
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.executescript("PRAGMA journal_mode = wal; CREATE TABLE IF NOT EXISTS a(id INTEGER PRIMARY KEY, n)")
            service.database(name, Path=path)
        service.driver.manager("Reload")
        client = service.client()
        channels = {name: Channel(client, name) for name in names}
        watches = {name: Watch(client, database=name) for name in names}

        def sequence(name):
            channel = channels[name]
            return channel.read(channel.query("SELECT count(*) FROM a")).end.sequence

        before = {name: sequence(name) for name in names}
        pids = {more.get("worker-pid") for _, _, _, more in service.driver.manager("ListChannels")[0]}
        equal(len(pids), 1, "workers that have the channels")
        for name in names:
            foreign(service.data / f"{name}.sqlite", "INSERT INTO a(n) VALUES (1)")
            told = watches[name].next()
            settle(service, watches[name])
            after = {other: sequence(other) for other in names}
            true(after[name] >= told > before[name], f"the sequence of {name}")
            equal({o: n for o, n in after.items() if o != name}, {o: n for o, n in before.items() if o != name}, "of others")
            true(not is_told(service, Watch(client, database=name, since=after[name])), "a change that is none")
            before = after


@test
def exposed_names():
    """With Expose= only exposed names can be watched. A commit to hidden tables alone wakes no watch of exposed ones"""
    with watched() as service:
        shown = f"{DB}-shown"
        service.database(shown, Path=service.path, Expose="seen a")
        service.driver.manager("Reload")
        client = service.client()
        watches = [Watch(client, name, database=shown) for name in ("seen", "a")]
        everything = Watch(client, sql="SELECT * FROM seen", database=shown)
        equal(everything.info["tables"], ["seen"], "the names that a client learns")
        errors = []
        for name in ("log", "none"):
            try:
                Watch(client, name, database=shown)
            except Failure as failure:
                errors.append((failure.name, failure.message.replace(name, "NAME")))
        equal(errors[0], errors[1], "the errors of a hidden table and of none")
        tells(client, "INSERT INTO log VALUES (1)", [], [*watches, everything])
        tells(client, "INSERT INTO c VALUES (1)", [watches[0], everything], [watches[1]])
        tells(client, "INSERT INTO a VALUES (7, 7)", [watches[1]], [watches[0], everything])


@needs_root
def rights():
    """Each user watches what the user may read. A reload that takes the right away ends the watch"""
    a, b = UID_A, UID_B
    with watched(AllowUsers=f"{a} {b}") as service:
        clients = [service.client(uid) for uid in (a, b)]
        other = service.client(UID_B + 1)
        try:
            Watch(other, "a")
        except Failure as failure:
            true(failure.name.endswith("UnknownObject"), str(failure))
        else:
            true(False, "a user without the right has a watch")
        watches = [Watch(client, "a") for client in clients]
        service.client().execute(DB, "INSERT INTO a(n) VALUES (1)")
        true(all(watch.next() for watch in watches), "both are told")
        equal(len(clients[0].manager("ListWatches")[0]), 1, "watches that one user sees")
        equal(len(service.driver.manager("ListWatches")[0]), 2, "watches that root sees")
        service.database(DB, Path=service.path, Mode="read-write", WriteSchema="yes", ForeignKeys="yes", AllowUsers=str(a))
        service.driver.manager("Reload")
        equal(watches[1].next(), None, "end-of-file for the user who may not read any more")
        true(not is_told(service, watches[0]), "the other watch stays")


@test
def many_watches():
    """Thousands of watches that are not read: memory is bounded, and commits go on"""
    n = 1500
    with watched(limits={"WatchesMax": 2 * n}) as service:
        client = service.client()
        first = Watch(client, "a")
        before = rss_anon(service.pid())
        watches = [Watch(client, "a") for _ in range(n)]
        grown = rss_anon(service.pid())
        for k in range(200):
            client.execute(DB, "INSERT INTO a(n) VALUES (?)", [k])
        true(all(watch.next() for watch in watches), "each is told")
        true(first.next(), "so is the first")
        after = rss_anon(service.pid())
        diagnose(f"memory of the supervisor: {(grown - before) // n} bytes for each watch")
        true(SANITIZED or grown - before < 4096 * n, "memory for each watch")
        true(SANITIZED or after - grown < 1024 * n, "memory after 200 commits")
        equal(client.properties("org.sqlipc1.Manager")["NWatches"], n + 1, "watches")
        for watch in watches:
            watch.close()
        wait_for(lambda: client.properties("org.sqlipc1.Manager")["NWatches"] == 1, "the end of the watches")


@needs_root
def floods():
    """A client that watches and leaves, over and over, and calls WaitChange without end, takes nothing from others"""
    with watched(limits={"WatchesMax": 50}, AllowUsers=str(UID_A)) as service:
        client, flooder = service.client(), service.client(UID_A)
        watch = Watch(client, "a")
        body = ("(asta{sv})", ["a"], 0, {})
        calls = [flooder.begin(object_path(DB), "org.sqlipc1.Database", "WaitChange", *body) for _ in range(200)]
        for _ in range(100):
            Watch(client, "a").close()
        # The bus may pass on the flooder's calls after those of the others.
        wait_for(lambda: sum(call.is_done() for call in calls) == 150, "the calls that are too many are refused")
        client.execute(DB, "INSERT INTO a(n) VALUES (1)")
        true(watch.next(), "a change")
        answered = 0
        for call in calls:
            with contextlib.suppress(Failure):
                call.result()
                answered += 1
        equal(answered, 50, "calls that were answered by the change")
        flooder.close()
        client.execute(DB, "INSERT INTO a(n) VALUES (1)")
        true(watch.next(), "another change")


main()
