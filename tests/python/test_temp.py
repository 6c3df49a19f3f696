#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""TEMP tables and views: programs that use them see what sqlite3 shows them, and lose them with an error, never unseen."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import threading
import time

import sqlipc
import sqlipc.aio
from harness import PATIENT, children, main, wait_for
from library import owner_pid
from python_service import PythonService, raises
from tap import equal, test, true

service = PythonService(limits=PATIENT)
SCHEMA = """
CREATE TABLE main.t(a INTEGER PRIMARY KEY, b);
CREATE TABLE main.u(a INTEGER PRIMARY KEY AUTOINCREMENT, b UNIQUE, c CHECK(c <> 13));
CREATE TABLE main.seen(what, n);
CREATE TRIGGER main.ti AFTER INSERT ON t BEGIN INSERT INTO seen VALUES('t', new.a); END;
CREATE VIEW main.v AS SELECT a, b FROM t WHERE a % 2;
INSERT INTO t VALUES(1, 'main'), (2, 'main');
INSERT INTO u(b, c) VALUES(1, 1), (2, 2);
"""
# "#" is a small random number. Names without a schema mean the TEMP table if there is one.
STATEMENTS = (
    "CREATE TEMP TABLE t(a INTEGER PRIMARY KEY, b)",
    "CREATE TEMP TABLE t AS SELECT * FROM main.t",
    "CREATE TABLE temp.k(x, y DEFAULT #, UNIQUE(x))",
    "CREATE TEMPORARY TABLE IF NOT EXISTS k(x, y)",
    "CREATE TEMP TABLE u(a INTEGER PRIMARY KEY AUTOINCREMENT, b UNIQUE, c)",
    "CREATE TEMP TABLE child(k REFERENCES k(x))",
    "CREATE TEMP VIEW v AS SELECT a + 100 AS a, b FROM t",
    "CREATE TEMP VIEW w AS SELECT count(*) AS a, 1 AS b FROM main.t",
    "CREATE INDEX temp.i ON k(y)",
    "DROP TABLE t",
    "DROP TABLE temp.t",
    "DROP TABLE IF EXISTS temp.u",
    "DROP TABLE IF EXISTS temp.k",
    "DROP VIEW IF EXISTS temp.v",
    "DROP VIEW w",
    "ALTER TABLE temp.k ADD COLUMN z",
    "ALTER TABLE temp.k RENAME TO k2",
    "ALTER TABLE k2 RENAME TO k",
    "INSERT INTO t(b) VALUES('x#')",
    "INSERT INTO t(a, b) VALUES(#, 'x#')",
    "INSERT OR REPLACE INTO t(a, b) VALUES(#, 'y#')",
    "INSERT INTO temp.t(b) VALUES('z#'), ('z#')",
    "INSERT INTO main.t(b) SELECT b FROM temp.t LIMIT 2",
    "INSERT INTO temp.t(b) SELECT b FROM main.t LIMIT 3",
    "INSERT INTO u(b, c) VALUES(#, #)",
    "INSERT OR IGNORE INTO u(b, c) VALUES(#, 13)",
    "INSERT INTO k(x) VALUES(#)",
    "INSERT INTO k(x, y) SELECT a, b FROM u",
    "INSERT INTO child VALUES(#)",
    "UPDATE t SET b = b || '!' WHERE a % 3 = 1",
    "UPDATE k SET y = (SELECT count(*) FROM main.u)",
    "UPDATE main.u SET c = (SELECT max(x) FROM k WHERE x <> 13) WHERE a = #",
    "UPDATE t SET a = a + 1 WHERE a > # RETURNING a, b",
    "INSERT INTO t(b) VALUES('r#') RETURNING *",
    "DELETE FROM t WHERE a = #",
    "DELETE FROM k WHERE x IN (SELECT a FROM main.u)",
    "DELETE FROM main.u WHERE b IN (SELECT x FROM temp.k) RETURNING a",
    "SELECT * FROM t ORDER BY a",
    "SELECT * FROM v ORDER BY a",
    "SELECT * FROM main.v ORDER BY a",
    "SELECT * FROM w",
    "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a ORDER BY 1",
    "SELECT count(*), sum(x) FROM k",
    "SELECT a, (SELECT count(*) FROM k WHERE k.x = u.a) FROM main.u ORDER BY a",
    "SELECT name, type FROM sqlite_temp_master ORDER BY 1",
    "SELECT name FROM temp.sqlite_master WHERE type = 'table' ORDER BY 1",
    "SELECT name FROM sqlite_master ORDER BY 1",
    "SELECT changes(), total_changes(), last_insert_rowid()",
    "SELECT * FROM seen ORDER BY rowid",
    "PRAGMA table_info(t)",
    "PRAGMA temp.table_info(k)",
    "SAVEPOINT one",
    "ROLLBACK TO one",
    "RELEASE one",
    "SELECT * FROM none#",
    "REINDEX temp.i",
    "PRAGMA foreign_keys = ON",
    "PRAGMA foreign_keys = OFF",
)
# What the service does in another way, on purpose.
CONTROL = ("BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "COMMIT", "ROLLBACK")


SETTINGS_SCHEMA = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE);
CREATE TABLE chain(n);
CREATE TABLE p(a INTEGER PRIMARY KEY, b);
CREATE TABLE child(a REFERENCES p(a));
CREATE TABLE seen(what, n);
CREATE VIEW parents AS SELECT p.a FROM p;
CREATE TRIGGER down AFTER INSERT ON chain WHEN new.n > 0 BEGIN INSERT INTO chain VALUES(new.n - 1); END;
CREATE TRIGGER gone AFTER DELETE ON t BEGIN INSERT INTO seen VALUES('gone', old.a); END;
CREATE TRIGGER up AFTER UPDATE ON t WHEN new.b < 9 BEGIN UPDATE t SET b = b + 1 WHERE a = new.a; END;
INSERT INTO t VALUES(1, 1), (2, 20), (3, 30);
"""
SETTINGS = tuple(
    f"PRAGMA {name}{value}"
    for name in ("recursive_triggers", "legacy_alter_table", "reverse_unordered_selects", "full_column_names",
                 "short_column_names", "count_changes")
    for value in (" = ON", " = OFF", "(1)", "(no)", "")
)  # fmt: skip
SETTINGS_STATEMENTS = (
    "INSERT INTO chain VALUES(#)",
    "INSERT INTO chain VALUES(#) RETURNING n",
    "INSERT OR REPLACE INTO t VALUES(#, #)",
    "REPLACE INTO t SELECT a, b + 1 FROM t WHERE a < # ORDER BY a",
    "UPDATE OR REPLACE t SET b = # WHERE a = #",
    "DELETE FROM t WHERE a = #",
    "DELETE FROM chain",
    "SELECT * FROM t",
    "SELECT t.a, b AS c, x.b, a + 1 FROM t, (SELECT 1 AS x, b AS y FROM t LIMIT 1) AS x",
    "SELECT x.a, x.* FROM t AS x",
    "SELECT * FROM t LIMIT 2",
    "SELECT group_concat(a || ' ' || b) FROM t",
    "SELECT * FROM seen",
    "SELECT count(*), sum(n) FROM chain",
    "SELECT changes(), total_changes(), last_insert_rowid()",
    "ALTER TABLE p RENAME TO q",
    "ALTER TABLE q RENAME TO p",
    "ALTER TABLE p RENAME b TO c",
    "SELECT name, sql FROM sqlite_master ORDER BY name",
    "SELECT * FROM parents",
    "CREATE TEMP TABLE IF NOT EXISTS k AS SELECT * FROM t",
    "PRAGMA table_info(t)",
    "PRAGMA user_version = #",
    "SAVEPOINT one",
    "ROLLBACK TO one",
    "RELEASE one",
)

SECOND = """
CREATE TABLE f(n, m UNIQUE);
CREATE TABLE t(a INTEGER PRIMARY KEY, b);
CREATE VIEW g AS SELECT n, m, n + m AS s FROM f;
INSERT INTO f VALUES(1, 10), (2, 20), (3, 30);
INSERT INTO t VALUES(7, 'second');
PRAGMA user_version = 5;
"""
# "@" is the second database: its name, or the URI of its file.
ATTACHED = (
    "ATTACH '@' AS x",
    "ATTACH '@' AS x",
    "ATTACH '@' AS y",
    "ATTACH DATABASE '@' AS \"x y\"",
    "DETACH x",
    "DETACH DATABASE y",
    "DETACH 'x y'",
    "SELECT * FROM x.f",
    "SELECT * FROM f",
    "SELECT * FROM t",
    "SELECT * FROM x.t",
    "SELECT t.a, f.m FROM t JOIN f ON t.a = f.n",
    "SELECT * FROM main.t, x.g, \"x y\".t",
    "SELECT count(*), max(s) FROM y.g JOIN x.f USING(n)",
    "INSERT INTO t(b) SELECT m FROM x.f",
    "INSERT INTO t(b) VALUES(#)",
    "UPDATE t SET b = (SELECT max(m) FROM f) WHERE a = #",
    "DELETE FROM t WHERE a IN (SELECT n + # FROM x.f)",
    "CREATE TEMP TABLE IF NOT EXISTS k AS SELECT * FROM x.g",
    "CREATE TEMP VIEW IF NOT EXISTS w AS SELECT n FROM y.f UNION ALL SELECT a FROM t",
    "SELECT * FROM k",
    "SELECT * FROM w",
    "DROP TABLE k",
    "DROP VIEW w",
    "SELECT name FROM x.sqlite_schema",
    "PRAGMA x.table_info(f)",
    "PRAGMA y.user_version",
    "EXPLAIN ATTACH 'any' AS any",
    "SELECT changes(), total_changes(), last_insert_rowid()",
)


def outcome(run):
    try:
        cursor = run()
        rows = [tuple(row) for row in cursor.fetchall()]
        return rows, cursor.rowcount, cursor.lastrowid if cursor.rowcount > 0 else None, cursor.description
    except (sqlite3.Error, sqlipc.Error) as error:
        return type(error).__name__, str(error)


def play(random_, ours, theirs, n, isolation, statements=STATEMENTS, second=("", "")):
    """Runs the same random statements on both, and compares each outcome."""
    script = []
    for _ in range(n):
        many = statements is STATEMENTS and random_.random() < 0.1
        pick = CONTROL if isolation is None and random_.random() < 0.25 else statements
        sql = "".join(str(random_.randrange(20)) if c == "#" else c for c in random_.choice(pick))
        if second[0] and sql.startswith("BEGIN") and theirs.in_transaction:
            continue  # it fails, but a second BEGIN IMMEDIATE keeps a lock in sqlite3, which DETACH meets
        script.append(sql)
        if many:
            rows = [(random_.randrange(30), random_.randrange(30)) for _ in range(random_.randrange(1, 40))]
            sql = random_.choice(("INSERT OR IGNORE INTO t(a, b)", "INSERT OR REPLACE INTO k(x, y)")) + " VALUES(?, ?)"
            script[-1] = f"{sql} * {len(rows)}"
            results = [outcome(lambda db=db, sql=sql, rows=rows: db.executemany(sql, rows)) for db in (ours, theirs)]
        elif isolation is not None and random_.random() < 0.15:
            how = random_.choice(("commit", "rollback"))
            script[-1] = how
            for db in (ours, theirs):
                getattr(db, how)()
            continue
        else:
            results = [outcome(lambda db=db, sql=sql.replace("@", at): db.execute(sql))
                       for db, at in zip((ours, theirs), second)]
        equal(results[0], results[1], "; ".join(script[-25:]))
        if isolation is not None and ours.in_transaction and not theirs.in_transaction and isinstance(results[0][0], str):
            ours.rollback()  # sqlite3 compiles a statement before it begins the transaction
        equal(ours.in_transaction, theirs.in_transaction, "in a transaction after " + "; ".join(script[-25:]))


def dump(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return list(db.iterdump())


def play_beside(name, seed, schema, statements, second=("", "")):
    random_ = random.Random(seed)
    isolation = (None, "", "IMMEDIATE", None)[seed % 4]
    name = f"{name}{seed}"
    path = service.add(name, schema, journal=("wal", "delete")[seed // 4 % 2])
    copy = service.data / f"copy-{name}.sqlite"
    shutil.copy(path, copy)
    with contextlib.closing(sqlite3.connect(f"file:{copy}", uri=True, isolation_level=isolation)) as theirs, \
            contextlib.closing(service.connect(name, isolation_level=isolation)) as ours:
        ours.execute("PRAGMA foreign_keys = OFF")  # as in sqlite3; the service's default is ON
        try:
            play(random_, ours, theirs, 150, isolation, statements, second)
        except BaseException:
            print(f"# seed {seed}")
            raise
        theirs.commit()
        ours.commit()
    equal(dump(path), dump(copy), f"the file, seed {seed}")


@test
def scripts():
    """Random scripts, with and without transactions of Python's making: the results of sqlite3"""
    for seed in range(24):
        play_beside("scripts", seed, SCHEMA, STATEMENTS)


@test
def settings():
    """Settings of the connection in random scripts: the results, and names of columns, of sqlite3"""
    for seed in range(24):
        play_beside("settings", seed, SETTINGS_SCHEMA, SETTINGS_STATEMENTS * 3 + SETTINGS)


@test
def attached():
    """ATTACH of a published database in random scripts: the results of sqlite3, which reads its file"""
    paths = {journal: service.add(f"second-{journal}", SECOND, journal=journal) for journal in ("wal", "delete")}
    for seed in range(24):
        journal = ("wal", "delete")[seed // 2 % 2]
        play_beside("attached", seed, SCHEMA, ATTACHED, (f"second-{journal}", f"file:{paths[journal]}?mode=ro"))


NEVER = "the TEMP table is gone, and the program must not see another one"


def lose_once(db, lose):
    """A TEMP table with the name of one of the file: after its loss one statement fails, and no other reads the file's."""
    db.execute("CREATE TEMP TABLE note AS SELECT 'temp' AS text")
    equal(db.execute("SELECT text FROM note").fetchall(), [("temp",)], "before")
    lose()
    errors = []
    while True:
        try:
            rows = db.execute("SELECT text FROM note").fetchall()
            break
        except sqlipc.OperationalError as error:
            errors.append((error.service_error.rpartition(".")[2], str(error)))
            true(len(errors) < 5, errors)
    equal(errors[-1][0], "PinLost", f"{errors}: {NEVER}")
    true([name for name, _ in errors].count("PinLost") == 1, errors)
    equal(rows, [("file",)], "after the program was told")


@test
def lost():
    """TEMP tables that are lost with a worker or with the service: PinLost, once"""
    with PythonService(activation=True) as killed:
        with contextlib.closing(killed.connect(isolation_level=None)) as db:
            db.execute("DELETE FROM note")
            db.execute("INSERT INTO note(text) VALUES('file')")

            def kill_worker(killed=killed):
                pid = owner_pid(killed)
                for child in children(pid):
                    os.kill(child, signal.SIGKILL)

            def kill_service(killed=killed):
                os.kill(owner_pid(killed), signal.SIGKILL)

            lose_once(db, kill_worker)
            lose_once(db, kill_service)


@test
def lost_long_ago():
    """A loss of which the program was told is not told again when a later result takes its time"""
    with PythonService() as killed:
        with contextlib.closing(killed.connect(isolation_level=None)) as db:
            db.execute("CREATE TEMP TABLE note AS SELECT 1")
            for worker in killed.workers():
                os.kill(worker, signal.SIGKILL)
            outcomes = [outcome(lambda: db.execute("SELECT 1")) for _ in range(3)]
            equal(outcomes[-1][0], [(1,)], outcomes)
            cursor = db.execute("WITH c(x) AS (VALUES(1), (2), (3)) SELECT x, zeroblob(8000000) FROM c")
            workers = killed.workers()
            for worker in workers:
                os.kill(worker, signal.SIGSTOP)
            equal(cursor.fetchone()[0], 1, "the first row; the second is not there yet")
            for worker in workers:
                os.kill(worker, signal.SIGCONT)
            equal([x for x, _ in cursor.fetchall()], [2, 3], "the rest")
            equal(db.execute("SELECT 1").fetchall(), [(1,)], "a later statement")


@test
def lost_unseen():
    """Counters and live queries, which find the loss first, leave PinLost to the next statement"""

    def read_counter(db):
        equal(isinstance(db.total_changes, int), True, "total_changes")

    def read_twice(db):
        read_counter(db)
        read_counter(db)

    def follow(db):
        live = db.live("SELECT count(*) FROM note")
        equal([live.next(60).kind for _ in range(2)], ["added", "settled"], "a live query")
        live.close()

    for look in (read_counter, read_twice, follow):
        with PythonService(activation=True) as killed:
            with contextlib.closing(killed.connect(isolation_level=None)) as db:
                db.execute("DELETE FROM note")
                db.execute("INSERT INTO note(text) VALUES('file')")

                def lose(killed=killed, db=db, look=look):
                    for child in children(owner_pid(killed)):
                        os.kill(child, signal.SIGKILL)
                    look(db)

                lose_once(db, lose)


LONG = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < 200000) SELECT x, text FROM c, note"


@test
def lost_beside_a_cursor():
    """A write that first reads the rest of a cursor, whose TEMP table is lost then, fails"""
    for n in (1, 0):
        with PythonService(activation=True) as killed:
            with contextlib.closing(killed.connect(isolation_level=None)) as db:
                db.execute("DELETE FROM note")
                db.execute("INSERT INTO note(text) VALUES('file')")
                db.execute("CREATE TEMP TABLE note AS SELECT 'temp' AS text")
                cursor = db.execute(LONG)
                equal(cursor.fetchmany(n), [(1, "temp")][:n], "first row")
                for child in children(owner_pid(killed)):
                    os.kill(child, signal.SIGKILL)
                error = raises(sqlipc.OperationalError, db.execute, "INSERT INTO thing(a) SELECT text FROM note")
                true(error.service_error.endswith("PinLost"), repr(error))
                equal(db.execute("SELECT count(*) FROM thing").fetchall(), [(0,)], "rows")
                raises(sqlipc.OperationalError, cursor.fetchall)


@test
def nested():
    """While rows of a connection with a TEMP table or a setting are read, other statements run and return, as in sqlite3"""
    with PythonService(limits={"ParkTimeoutSec": 1}) as impatient:
        with contextlib.closing(impatient.connect(isolation_level=None)) as db:
            db.execute("DELETE FROM note")
            db.execute("INSERT INTO note(text) VALUES('file')")

        async def read(sql):
            async with sqlipc.aio.connect("notes", bus=impatient.address, isolation_level=None) as db:
                await db.execute(sql)
                n = 0
                async with db.execute(LONG) as cursor:
                    async for _ in cursor:
                        n += 1
                        if n == 5:
                            equal(await (await db.execute("SELECT 1")).fetchall(), [(1,)], "a row")
                return n

        for sql in ("CREATE TEMP TABLE x(a)", "PRAGMA recursive_triggers = ON", "EXPLAIN CREATE TEMP TABLE x(a)"):
            with contextlib.closing(impatient.connect(isolation_level=None)) as db:
                db.execute(sql)
                for look in (lambda db=db: db.execute("SELECT 1").fetchall(), lambda db=db: db.total_changes):
                    cursor = db.execute(LONG)
                    cursor.fetchmany(5)
                    look()
                    equal(len(cursor.fetchall()), 199995, f"rows after {sql}")
            equal(asyncio.run(read(sql)), 200000, "rows with aio")


@test
def readers():
    """A user who may only read makes and fills TEMP tables by all means, and waits for no writer"""
    path = service.add("only-read", "CREATE TABLE note(text); INSERT INTO note VALUES('file');")
    service.database("only-read", Path=path, Mode="read-only")
    service.driver.manager("Reload")
    service.add("beside-writer", "CREATE TABLE note(text); INSERT INTO note VALUES('file');")
    with contextlib.closing(service.connect("beside-writer", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        for name in ("only-read", "beside-writer"):
            for begin in (None, "BEGIN"):
                with contextlib.closing(service.connect(name, isolation_level=None, timeout=0)) as db:
                    if begin:
                        db.execute(begin)
                    db.execute("CREATE TEMP TABLE x(a)")
                    n = db.executemany("INSERT INTO x VALUES(?)", ((i,) for i in range(20000))).rowcount
                    n += db.executemany("INSERT INTO x VALUES(?) RETURNING a", [(1,), (2,)]).rowcount
                    equal((n, *db.execute("SELECT count(*) FROM x").fetchall()), (20002, (20002,)), (name, begin))
                    if begin:
                        db.execute("COMMIT")
            with contextlib.closing(service.connect(name, autocommit=False, timeout=0)) as db:
                db.execute("CREATE TEMP TABLE x(a)")
                db.execute("INSERT INTO x VALUES(1)")
                db.commit()
                db.executescript("CREATE TEMP TABLE y AS SELECT * FROM x; CREATE TEMP TABLE z AS SELECT * FROM y")
                equal(db.execute("SELECT * FROM x, y, z").fetchall(), [(1, 1, 1)], name)


@test
def interrupted_load():
    """A load of a connection with a TEMP table can be interrupted: nothing is written, and the connection goes on"""
    service.empty()
    count = "(WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < ?) SELECT x FROM c)"
    with contextlib.closing(service.connect(isolation_level=None)) as db:
        db.execute("CREATE TEMP TABLE x(a)")
        timer = threading.Timer(0.5, db.interrupt)
        timer.start()
        sql = f"INSERT INTO thing(a) SELECT count(*) FROM {count}"
        error = raises(sqlipc.OperationalError, db.executemany, sql, [(10**12,)])
        timer.join()
        equal(error.sqlite_errorname, "SQLITE_INTERRUPT", repr(error))
        equal(db.execute("SELECT (SELECT count(*) FROM thing), (SELECT count(*) FROM x)").fetchall(), [(0, 0)], "rows")


@test
def live_query_beside():
    """A live query is about the file: it reads no TEMP table, and does not wait for the connection's transaction"""
    service.add("beside", "CREATE TABLE t(a); INSERT INTO t VALUES('file'); CREATE TABLE plain(a);")
    with contextlib.closing(service.connect("beside", isolation_level=None)) as db, \
            contextlib.closing(service.connect("beside", isolation_level=None)) as other:
        db.execute("CREATE TEMP TABLE t AS SELECT 'temp' AS a")
        db.execute("BEGIN")
        equal(db.execute("SELECT a FROM t").fetchall(), [("temp",)], "in the transaction")
        live = db.live("SELECT a FROM t")
        equal(live.next(60).row, ("file",), "the live query")
        equal(live.next(60).kind, "settled", "the live query")
        other.execute("INSERT INTO t VALUES('more')")
        equal(live.next(60).row, ("more",), "the live query")
        live.close()
        db.execute("ROLLBACK")


@test
def locks():
    """A connection with a TEMP table meets locks as in sqlite3; without one, TEMP in a name means nothing"""
    path = service.add("locks", "CREATE TABLE temperature(a, b); CREATE TABLE plain(a, b);")
    outcomes = []
    for connect in (
        lambda **options: service.connect("locks", **options),
        lambda **options: sqlite3.connect(path, **options),
    ):
        with contextlib.closing(connect()) as holder, contextlib.closing(connect(timeout=0)) as db:
            db.execute("CREATE TEMP TABLE mine(a)")
            db.commit()
            holder.execute("INSERT INTO plain VALUES(1, 2)")
            found = []
            for run in (
                lambda db=db: db.execute("INSERT INTO mine VALUES(1)"),
                lambda db=db: db.execute("INSERT INTO plain VALUES(1, 2)"),
                lambda db=db: db.executemany("INSERT INTO plain VALUES(?, 2)", [(1,), (2,)]),
                lambda db=db: db.execute("UPDATE mine SET a = 2"),
            ):
                found.append((outcome(run)[:2], db.in_transaction))
            db.rollback()
            outcomes.append(found)
    equal(outcomes[0], outcomes[1], "a writer beside")
    with contextlib.closing(service.connect("locks")) as holder, \
            contextlib.closing(service.connect("locks", timeout=0)) as db:
        holder.execute("INSERT INTO plain VALUES(1, 2)")
        for table in ("plain", "temperature"):
            error = raises(sqlipc.OperationalError, db.execute, f"INSERT INTO {table} VALUES(1, 2)")
            equal((str(error), db.in_transaction), ("database is locked", False), table)


@test
def makers():
    """Which statements need a connection of SQLite's own: no other changes how transactions begin"""
    from sqlipc import _sql

    for sql, makes in (
        ("CREATE TEMP TABLE t(a)", True),
        ("/* a */ create temporary view v AS SELECT 1", True),
        ("CREATE TABLE temp.t(a)", True),
        ('CREATE TABLE IF NOT EXISTS "Temp" . t(a)', True),
        ("CREATE VIEW [temp].v AS SELECT 1", True),
        ("CREATE TABLE temp(a)", False),
        ("CREATE TABLE temperature AS SELECT * FROM temp.t", False),
        ("CREATE TABLE main.temp(a)", False),
        ("INSERT INTO temp.t VALUES('CREATE TEMP')", False),
        ("EXPLAIN CREATE TEMP TABLE t(a)", True),
        ("EXPLAIN QUERY PLAN CREATE TABLE temp.t AS SELECT 1", True),
        ("EXPLAIN SELECT 1", False),
        ("PRAGMA main.Recursive_Triggers(1)", True),
        ("PRAGMA recursive_triggers", False),
        ("PRAGMA foreign_keys = ON", False),
        ("", False),
    ):
        equal(_sql.analyse(sql, _sql.SQLITE).needs_pin, makes, sql)


@test
def without_end():
    """A connection that is closed gives back its place of PinsMax="""
    with PythonService(limits={"PinsMax": 2, "ExemptRoot": "no"}) as small:
        for _ in range(10):
            with contextlib.closing(small.connect()) as one, contextlib.closing(small.connect()) as two:
                one.execute("CREATE TEMP TABLE t(a)")
                wait_for(lambda two=two: creates(two), "there is a place")
                with contextlib.closing(small.connect()) as three:
                    error = raises(sqlipc.OperationalError, three.execute, "CREATE TEMP TABLE t(a)")
                    true("PinsMax=" in str(error), error)
                    equal(three.execute("SELECT 1").fetchall(), [(1,)], "without a pin")


def creates(db):
    try:
        db.execute("CREATE TEMP TABLE IF NOT EXISTS t(a)")
    except sqlipc.OperationalError:
        return False
    return True


@test
def staging():
    """A program that collects rows in a TEMP table, and merges them into the file in one transaction, beside others"""
    service.empty()
    with contextlib.closing(service.connect()) as one, contextlib.closing(service.connect(isolation_level=None)) as two:
        one.execute("CREATE TEMP TABLE stage(text)")
        one.executemany("INSERT INTO stage VALUES(?)", [(str(n),) for n in range(5000)])
        two.execute("INSERT INTO note(text) VALUES('two')")  # the transaction of `one` has changed nothing of the file
        one.execute("INSERT INTO note(text) SELECT text FROM stage")
        one.commit()
        equal(two.execute("SELECT count(*) FROM note").fetchall(), [(5001,)], "rows in the file")
        one.execute("DELETE FROM stage")
        one.rollback()
        equal(one.execute("SELECT count(*), max(CAST(text AS INT)) FROM stage").fetchall(), [(5000, 4999)], "rows")
        cursor = one.execute("SELECT text FROM stage ORDER BY CAST(text AS INT)")
        equal([int(next(cursor)[0]) for _ in range(3)], [0, 1, 2], "the first rows")
        equal(len(one.execute("SELECT a.text FROM stage a JOIN note b USING(text)").fetchall()), 5000, "a join")
        raises(sqlipc.OperationalError, two.execute, "SELECT * FROM stage")


COPY_SCHEMA = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b);
CREATE TABLE u(a INTEGER PRIMARY KEY AUTOINCREMENT, b);
CREATE TABLE w(a PRIMARY KEY, b) WITHOUT ROWID;
CREATE TABLE loose(a, b);
CREATE INDEX i ON loose(a);
CREATE VIEW v AS SELECT a FROM t;
CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM loose; END;
INSERT INTO t VALUES(1, 'file'), (2, 'file');
INSERT INTO u(b) VALUES('file'), ('file');
INSERT INTO w VALUES('file', 1);
INSERT INTO loose(rowid, a, b) VALUES(5, 'file', 6), (50, 'file', 60);
"""
COPY_TEMP = (
    "CREATE TEMP TABLE t(x, a, y)",
    "CREATE TEMP TABLE u(b, a INTEGER PRIMARY KEY AUTOINCREMENT)",
    "CREATE TEMP TABLE w(a, b, c)",
    "CREATE TEMP TABLE loose(rowid, b)",
    "CREATE TEMP TABLE v(a)",
    "CREATE TEMP TABLE more(a)",
    "CREATE INDEX temp.i ON t(x)",
    "INSERT INTO t VALUES('temp', 8, 9)",
    "INSERT INTO u VALUES('temp', 77)",
    "INSERT INTO loose VALUES('temp', 1)",
)


@test
def copies():
    """A dump, or a copy into a file or sqlite3, has nothing of TEMP tables, also in a transaction, which sees them"""
    path = service.add("copied", COPY_SCHEMA)
    expected = dump(path)
    with contextlib.closing(service.connect("copied", isolation_level=None)) as db, \
            contextlib.closing(sqlite3.connect(path, isolation_level=None)) as theirs:
        for sql in COPY_TEMP:
            db.execute(sql)
            theirs.execute(sql)
        for begin in (None, "BEGIN", "BEGIN IMMEDIATE"):
            for each in {None: (), "BEGIN": (db, theirs), "BEGIN IMMEDIATE": (db,)}[begin]:
                each.execute(begin)
                each.execute("SELECT * FROM loose").fetchall()
            equal(list(db.iterdump()), expected, f"a dump, {begin}")
            db.backup(service.folder / "copy.sqlite")
            with contextlib.closing(sqlite3.connect(":memory:")) as ours, \
                    contextlib.closing(sqlite3.connect(":memory:")) as copy:
                db.backup(ours)
                theirs.backup(copy)
                equal(list(copy.iterdump()), expected, f"a copy of sqlite3, {begin}")
                equal(list(ours.iterdump()), expected, f"a copy, {begin}")
                rowids = "SELECT rowid, * FROM loose"
                equal(ours.execute(rowids).fetchall(), [(5, "file", 6), (50, "file", 60)], "rowids")
            equal(dump(service.folder / "copy.sqlite"), expected, f"a file, {begin}")
            for each in (db, theirs):
                each.rollback()


@test
def large():
    """The statement that needs the pin may be larger than a message: it is sent again, from its file"""
    service.empty()
    long, value = " " * 1_500_000, os.urandom(3_000_000)
    for isolation in (None, "", "IMMEDIATE"):
        for sql, values in (
            (f"CREATE TEMP TABLE big AS SELECT 1 AS a {long}", ()),
            ("CREATE TEMP TABLE big AS SELECT ? AS a, ? AS b", (value, 1)),
            (f"CREATE TEMP TABLE big AS SELECT ? AS a {long}", (value,)),
        ):
            with contextlib.closing(service.connect(isolation_level=isolation)) as db:
                if isolation is not None:
                    db.execute("INSERT OR REPLACE INTO note(text) VALUES('in the transaction')")
                db.execute(sql, values)
                db.execute(f"INSERT INTO big(a) VALUES(?) {long}", (value,))
                db.executemany(f"INSERT INTO big(a) VALUES(?) {long}", [(value,), (value,)])
                db.executescript(f"INSERT INTO big(a) VALUES(5); {long} INSERT INTO big(a) VALUES(6)")
                equal(db.execute(f"SELECT a = ? FROM big {long}", (value,)).fetchall()[1:],
                      [(1,), (1,), (1,), (0,), (0,)], (isolation, sql[:60]))
                db.rollback()


@test
def zone():
    """The program's time zone holds for TEMP tables"""
    before = os.environ.get("TZ")
    try:
        with contextlib.closing(service.connect(isolation_level=None)) as ours, \
                contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as theirs:
            for i, name in enumerate(("Asia/Kathmandu", "America/New_York", "XYZ-11")):
                os.environ["TZ"] = name
                time.tzset()
                results = []
                for db in (ours, theirs):
                    db.execute(f"CREATE TEMP TABLE t{i} AS SELECT datetime('2024-07-01 12:00', 'localtime') AS a")
                    db.execute("BEGIN")
                    db.execute(f"INSERT INTO t{i} SELECT datetime(a, 'utc') FROM t{i}")
                    db.executemany(f"INSERT INTO t{i} SELECT datetime(?, 'localtime')", [("2024-01-01",), ("2024-08-01",)])
                    results.append(db.execute(f"SELECT a, datetime(a, 'localtime') FROM t{i} ORDER BY rowid").fetchall())
                    db.execute("COMMIT")
                equal(results[0], results[1], name)
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


main(service)
