#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A database whose schema was written to do harm. Its readers get a named error or an answer, readers of other databases are
answered meanwhile, and afterwards the service is as before. Damaged bytes: see test_sqlite_faults.py and
fuzz-corrupt-database.c.
"""
import contextlib
import os
import sqlite3

import settled
from channel import Channel
from client import Broken, Failure
from harness import CHINOOK, UID_A, UID_B, Service, main
from neighbours import besieged
from tap import cases, equal, true

A = UID_A if os.geteuid() == 0 else None
LIMITS = {**settled.QUICK, "TempSizeMax": "64M", "HeapMax": "128M"}
# For what has no end: to have an answer may take longer, until a worker has started and found a CPU.
SHORT = "[Database]\nPath={}\nAllowUsers=*\n[Limits]\nPrepareTimeoutSec=0.5\nRunTimeoutSec=0.5\n"
N = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n)"

# A view may do nothing that a statement may not, and nothing that leads out of the database.
FORBIDDEN = {
    "an extension": "SELECT load_extension('/tmp/x')",
    "a tokenizer": "SELECT fts3_tokenizer('simple', x'00')",
    "a file": "SELECT writefile('/tmp/x', 'y')",
    "a file that is read": "SELECT readfile('/etc/passwd')",
    "statements": "SELECT * FROM sqlite_stmt",
    "the file's pages": "SELECT * FROM dbstat",
    "raw pages": "SELECT * FROM sqlite_dbpage",
    "tables by name": "SELECT rtreecheck('main', 'tree')",
    "databases": "SELECT * FROM pragma_database_list",
}
# Of these, what SQLite has by itself, and does for a schema that it trusts.
TRUSTED = ("tables by name", "databases")
ENDLESS = {
    "recursion": f"{N} SELECT count(*) FROM n",
    "recursion that yields nothing": f"{N} SELECT x FROM n WHERE x < 0",
    "a sort": f"{N} SELECT x, randomblob(2000) AS y FROM n ORDER BY y",
    "a long text": f"{N} SELECT group_concat(hex(zeroblob(5000000))) FROM (SELECT x FROM n LIMIT 1000)",
    "a join": "SELECT count(*) FROM t a, t b, t c, t d, t e, t f",
    "views upon views": "SELECT count(*) FROM level24",
}
HARMED = {"TimedOut", "LimitsExceeded", "OutOfMemory", "WorkerLost", "Sql"}


def ways(client, sql, database="hostile"):
    """Rows or the name of the error, each way."""
    with contextlib.closing(Channel(client, database)) as channel:
        for ask in (
            lambda: client.query(database, sql).read().rows,
            lambda: client.query_rows(database, sql)[1],
            lambda: channel.ask(sql),
        ):
            try:
                yield ask()
            except Broken:
                yield "WorkerLost"
            except Failure as failure:
                yield failure.name.removeprefix("org.sqlipc1.Error.")


def write(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE TABLE t(x)")
        db.execute(f"INSERT INTO t {N} SELECT 100000000 + x FROM n LIMIT 1000")
        # behind the rows, or it would be computed for each here
        db.execute("ALTER TABLE t ADD dear GENERATED ALWAYS AS (hex(zeroblob(x)))")
        db.execute("CREATE TABLE log(x)")
        db.execute("CREATE TRIGGER written AFTER INSERT ON t BEGIN INSERT INTO log VALUES(1); END")
        db.execute("CREATE VIEW level0 AS SELECT x FROM t")
        for level in range(1, 25):
            below = f"SELECT x FROM level{level - 1}"
            db.execute(f"CREATE VIEW level{level} AS {below} UNION ALL {below}")
        for name, sql in {**FORBIDDEN, **ENDLESS}.items():
            db.execute(f'CREATE VIEW "{name}" AS {sql}')
        db.execute("CREATE VIEW circle AS SELECT * FROM circle")
        db.executescript("""
            CREATE VIRTUAL TABLE damaged_text USING fts5(a); DELETE FROM damaged_text_data;
            CREATE VIRTUAL TABLE tree USING rtree(id, a, b);
            CREATE VIRTUAL TABLE damaged_tree USING rtree(id, a, b); UPDATE damaged_tree_node SET data = x'00';
            CREATE VIRTUAL TABLE itself USING fts4(content='t'); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE itself USING fts4(content=''itself'')'
            WHERE name = 'itself';
        """)


service = Service({"chinook": CHINOOK}, limits=LIMITS, start=False)
write(service.data / "hostile.sqlite")
service.database("hostile", Path=service.data / "hostile.sqlite")
service.database("short", text=SHORT.format(service.data / "hostile.sqlite"))
service.start()


def each_view(views, allowed, database="hostile"):
    client, tried = service.client(A), 0
    for name in views:
        for got in ways(client, f'SELECT * FROM "{name}"', database):
            true(isinstance(got, str) and got in allowed, f"{name}: {str(got)[:200]}, and none of {sorted(allowed)}")
            tried += 1
    cases("hostile database", tried, "a view, column or statement of a schema that is there to do harm, read in a way")


@besieged(service, UID_B)
def what_a_view_may_not():
    """A view reaches no function or virtual table that leads out of its database"""
    with contextlib.closing(sqlite3.connect(service.data / "hostile.sqlite")) as db:
        for name in TRUSTED:
            true(db.execute(f'SELECT * FROM "{name}"').fetchone(), f"{name}: nothing where schemas are trusted")
    each_view(FORBIDDEN, {"Sql", "NotAllowed", "MissingFunction", "MissingModule"})


@besieged(service, UID_B)
def views_without_end():
    """Views that compute, sort, grow or compile without end, or refer to themselves, are subject to the limits"""
    each_view([*ENDLESS, "circle"], HARMED, "short")


@besieged(service, UID_B)
def dear_columns():
    """A generated column of 200 MB in each row fails its reader; readers of the other columns get them"""
    client = service.client(A)
    for got in ways(client, "SELECT dear FROM t", "short"):
        true(got in HARMED, str(got)[:200])
    for got in ways(client, "SELECT count(*), sum(x) FROM t"):
        equal(got, [[1000, sum(range(100000001, 100001001))]], "the columns beside it")
    cases("hostile database", 6, "a view, column or statement of a schema that is there to do harm, read in a way")


@besieged(service, UID_B)
def damaged_virtual_tables():
    """A damaged virtual table is Corrupt, one that contains itself is an SQL error at once; other tables are readable"""
    client = service.client(A)
    for name, error in (("damaged_text", "Corrupt"), ("damaged_tree", "Corrupt"), ("itself", "Sql")):
        for got in ways(client, f"SELECT * FROM {name}"):
            equal(got, error, name)
    for got in ways(client, "SELECT count(*) FROM t"):
        equal(got, [[1000]], "a table beside them")
    cases("hostile database", 12, "a view, column or statement of a schema that is there to do harm, read in a way")


@besieged(service, UID_B)
def triggers():
    """A trigger never runs, because no statement writes"""
    client = service.client(A)
    for got in ways(client, "INSERT INTO t(x) VALUES(1)"):
        equal(got, "ReadOnly", "what writes")
    for got in ways(client, "SELECT count(*) FROM log"):
        equal(got, [[0]], "what the trigger wrote")
    cases("hostile database", 6, "a view, column or statement of a schema that is there to do harm, read in a way")


if __name__ == "__main__":
    main(service)
