#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""last_insert_rowid(), changes() and total_changes() of a client are those of SQLite, as if it had the file to itself.

Scripts of random statements run with sqlite3 on a file of their own, and with sqlipc on one that others use meanwhile.
"""

import asyncio
import contextlib
import random
import re
import sqlite3
import threading

import sqlipc.aio
from harness import main
from python_service import PythonService
from tap import equal, test

service = PythonService(limits={"RunsMax": 200, "TransactionsMax": 20})
SEEN = "INSERT INTO seen{c}(what, id, changes, total) VALUES('{what}', last_insert_rowid(), changes(), total_changes());"
# Of each client: "{c}" is its number.
TABLES = """
CREATE TABLE seen{c}(n INTEGER PRIMARY KEY, what, id, changes, total);
CREATE TABLE x{c}(v);
CREATE TABLE middle{c}(id INTEGER PRIMARY KEY, v);
CREATE TABLE t{c}(id INTEGER PRIMARY KEY, a UNIQUE, b DEFAULT (changes()), CHECK(a <> 'bad'));
CREATE TABLE child{c}(id INTEGER PRIMARY KEY, t REFERENCES t{c} ON DELETE CASCADE ON UPDATE SET NULL);
CREATE TABLE later{c}(t REFERENCES t{c} DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE list{c}(v);
CREATE TABLE pair{c}(a INT, b INT NOT NULL DEFAULT (changes()), c INT UNIQUE CHECK(c <> 5), PRIMARY KEY(a, b))
  WITHOUT ROWID;
CREATE TABLE node{c}(id INTEGER PRIMARY KEY ON CONFLICT REPLACE, up INT REFERENCES node{c} ON DELETE CASCADE, v UNIQUE);
CREATE TRIGGER pd{c} BEFORE DELETE ON pair{c} BEGIN <pd 1> UPDATE node{c} SET v = v || old.a WHERE id = old.b; <pd 2> END;
CREATE TRIGGER ni{c} AFTER INSERT ON node{c} BEGIN
  <ni 1> INSERT OR REPLACE INTO pair{c} VALUES(new.id, changes(), new.id % 9); <ni 2>
  SELECT RAISE(ABORT, 'thirteen') WHERE new.id % 13 = 0;
  SELECT RAISE(ROLLBACK, 'seventeen') WHERE new.id % 17 = 0;
END;
CREATE TRIGGER nd{c} AFTER DELETE ON node{c} BEGIN <nd 1> DELETE FROM x{c} WHERE v = old.v; <nd 2> END;
CREATE VIEW v{c} AS SELECT * FROM t{c};
CREATE VIRTUAL TABLE words{c} USING fts5(word);
CREATE TRIGGER ti{c} AFTER INSERT ON t{c} BEGIN
  <ti 1> UPDATE x{c} SET v = v + 1; <ti 2> INSERT INTO middle{c}(v) VALUES(new.id);
  <ti 3> DELETE FROM x{c} WHERE v < 0; <ti 4>
END;
CREATE TRIGGER mi{c} BEFORE INSERT ON middle{c} BEGIN
  <mi 1> INSERT INTO x{c} VALUES(new.v), (0); <mi 2>
  SELECT RAISE(ABORT, 'eleven') WHERE new.v % 11 = 0;
  SELECT RAISE(IGNORE) WHERE new.v % 7 = 0;
  DELETE FROM x{c} WHERE rowid % 3 = 0; <mi 3>
END;
CREATE TRIGGER tu{c} AFTER UPDATE ON t{c} BEGIN INSERT INTO x{c} VALUES(changes()); END;
CREATE TRIGGER td{c} AFTER DELETE ON t{c} BEGIN <td 1> UPDATE x{c} SET v = changes(); <td 2> END;
CREATE TRIGGER cd{c} AFTER DELETE ON child{c} BEGIN <cd 1> END;
CREATE TRIGGER li{c} AFTER INSERT ON list{c} BEGIN <li 1> DELETE FROM x{c} WHERE rowid = new.v; <li 2> END;
CREATE TRIGGER vi{c} INSTEAD OF INSERT ON v{c} BEGIN <vi 1> INSERT INTO t{c}(a) VALUES(new.a); <vi 2> END;
"""
# "#" is a small random number.
STATEMENTS = (
    "INSERT INTO t{c}(a) VALUES(#)",
    "INSERT INTO t{c}(a) VALUES(#), (# + 50), (# + 100)",
    "INSERT OR IGNORE INTO t{c}(a) VALUES(#), (# + 1)",
    "INSERT INTO t{c}(id, a) VALUES(#, #) ON CONFLICT(id) DO UPDATE SET a = a || 'u'",
    "INSERT INTO t{c}(a) VALUES(#) ON CONFLICT(a) DO NOTHING",
    "REPLACE INTO t{c}(id, a) VALUES(#, # + 1)",
    "INSERT INTO t{c}(a) VALUES(1000 + #), ('bad')",
    "INSERT INTO v{c}(a) VALUES(#)",
    "INSERT INTO child{c}(t) SELECT id FROM t{c} LIMIT #",
    "INSERT INTO child{c}(t) VALUES(987654)",
    "INSERT INTO middle{c}(v) VALUES(1) RETURNING id, changes(), last_insert_rowid(), total_changes()",
    "INSERT INTO x{c} VALUES(changes() || ' ' || last_insert_rowid() || ' ' || total_changes())",
    "INSERT INTO x{c} SELECT v FROM x{c} LIMIT 5 * #",
    "UPDATE t{c} SET a = a || 'x' WHERE id < #",
    "UPDATE t{c} SET id = id + 1000 WHERE id = #",
    "UPDATE x{c} SET v = 1",
    "UPDATE middle{c} SET v = v WHERE id = -1",
    "DELETE FROM t{c} WHERE id % 5 = # % 5",
    "DELETE FROM x{c}",
    "CREATE TABLE made{c}_#(a)",
    "DROP TABLE made{c}_#",
    "SELECT count(*) FROM t{c}",
    "SELECT nothing",
)
# Within a transaction, FTS5 writes to its tables earlier here, and a failed COMMIT ends it.
IN_AUTOCOMMIT = (
    "INSERT INTO later{c} VALUES(987654)",
    "INSERT INTO words{c} VALUES('a'), ('b'), (changes())",
    "DELETE FROM words{c} WHERE rowid = #",
)
IN_TRANSACTION = ("SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "RELEASE a", "ROLLBACK TO b")
WRITES = ("INSERT", "REPLACE", "UPDATE", "DELETE")
ASK = "SELECT last_insert_rowid(), changes(), total_changes()"
TRANSPORTS = {"automatic": 0, "pipe": 1, "channel": 2, "dbus": 3}


def tables(client):
    text = re.sub(r"<(\w+ \d)>", lambda found: SEEN.replace("{what}", found[1]), TABLES)
    return text.replace("{c}", str(client))


# Of tables with generated statements: their columns.
GENERATED = {"t": ("id", "a"), "middle": ("id", "v"), "pair": ("a", "b", "c"), "node": ("id", "up", "v"), "x": ("v",)}
NO_KEY = ("pair",)  # WITHOUT ROWID
COUNTED = "changes(), last_insert_rowid(), total_changes()"
CONFLICTS = ("", "", "OR ABORT", "OR FAIL", "OR IGNORE", "OR REPLACE", "OR ROLLBACK")


def generate(chance):
    """An INSERT, UPDATE or DELETE of any kind."""
    table = chance.choice(list(GENERATED))
    columns = GENERATED[table]
    number, word = str(chance.randint(1, 30)), f"{table}{{c}}"
    value = lambda: chance.choice((str(chance.randint(1, 40)), "changes()", "last_insert_rowid() + 1", "NULL", "'bad'", "5"))
    where = f"{columns[0]} % {chance.randint(2, 6)} = {chance.randint(0, 2)} AND {columns[0]} < {number}"
    returning = f" RETURNING {columns[0]}, {COUNTED}" if chance.random() < 0.2 else ""
    kind = chance.random()
    if kind < 0.2:
        return f"DELETE FROM {word} WHERE {where}{returning}"
    conflict = chance.choice(CONFLICTS)
    if kind < 0.45:
        change = chance.choice((f"{columns[-1]} = {value()}", f"{columns[0]} = {columns[0]} + {chance.randint(1, 3)}"))
        return f"UPDATE {conflict} {word} SET {change} WHERE {where}{returning}"
    used = columns[chance.randint(0, 1) if table not in NO_KEY and len(columns) > 1 else 0 :]
    into = f"INTO {word}({', '.join(used)})"
    if kind < 0.6:
        source = f"SELECT {', '.join(['v'] * len(used))} FROM x{{c}} WHERE true LIMIT {number} % 5"
    else:
        rows = [f"({', '.join(value() for _ in used)})" for _ in range(chance.randint(1, 4))]
        source = "VALUES " + ", ".join(rows)
    upsert = ""
    if chance.random() < 0.3:
        update = f"ON CONFLICT(id) DO UPDATE SET {columns[-1]} = {value()}"
        upsert = " " + (update if columns[0] == "id" and chance.random() < 0.6 else "ON CONFLICT DO NOTHING")
    return f"INSERT {conflict} {into} {source}{upsert}{returning}"


class Class(str):
    """The name of an exception's class, which shows its text, too."""

    def __new__(cls, name, error):
        self = super().__new__(cls, name)
        self.text = str(error)
        return self

    def __repr__(self):
        return f"{str(self)}({self.text!r})"


def script(client, seed, share):
    """Yields statements, with rows for executemany(), and is sent whether a transaction is open. `share`: of statements in
    transactions."""
    chance = random.Random(seed)
    in_transaction = yield
    for _ in range(160):
        rows = None
        sql = chance.choice(STATEMENTS + (IN_TRANSACTION if in_transaction else IN_AUTOCOMMIT))
        if chance.random() < 0.5:
            sql = generate(chance)
        if not in_transaction and chance.random() < share / 8:
            sql = "BEGIN IMMEDIATE"
        elif in_transaction and chance.random() < 0.1:
            sql = chance.choice(("COMMIT", "ROLLBACK"))
        elif chance.random() < 0.1:
            sql = "INSERT INTO list{c} VALUES(?)"
            rows = [(chance.randint(1, 60),) for _ in range(chance.randint(1, 5))]
        in_transaction = yield sql.replace("{c}", str(client)).replace("#", str(chance.randint(1, 30))), rows
    if in_transaction:
        yield "ROLLBACK", None


def results(client):
    names = ("seen", "x", "t", "middle", "child", "pair", "node")
    return [f"SELECT * FROM {name}{client} ORDER BY {'a, b' if name in NO_KEY else 'rowid'}" for name in names]


def play(db, client, seed, share):
    """All that a program sees: of each statement the rows, its numbers, or the class of its error, and then the counts."""
    statements, seen = script(client, seed, share), []
    next(statements)
    with contextlib.suppress(StopIteration):
        while True:
            sql, rows = statements.send(db.in_transaction)
            try:
                cursor = db.execute(sql) if rows is None else db.executemany(sql, rows)
                told = [cursor.fetchall(), cursor.rowcount, cursor.lastrowid]
            except Exception as error:  # noqa: BLE001 - its class is compared, and that of another module is another class
                told = [Class(type(error).__name__, error)]
            counts = db.execute(ASK).fetchall()
            seen.append([sql, rows, *told, counts, db.total_changes, db.cursor().execute("SELECT 1").lastrowid])
    return seen + [db.execute(sql).fetchall() for sql in results(client)]


async def play_async(db, client, seed, share):
    """As play(), without total_changes, which does not wait for the service here."""
    statements, seen = script(client, seed, share), []
    next(statements)
    with contextlib.suppress(StopIteration):
        while True:
            sql, rows = statements.send(db.in_transaction)
            try:
                cursor = await (db.execute(sql) if rows is None else db.executemany(sql, rows))
                told = [await cursor.fetchall(), cursor.rowcount, cursor.lastrowid]
            except Exception as error:  # noqa: BLE001
                told = [Class(type(error).__name__, error)]
            counts = await db.execute_fetchall(ASK)
            seen.append([sql, rows, *told, counts])
    return seen + [await db.execute_fetchall(sql) for sql in results(client)]


def of_sqlite(client, seed, share):
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        with contextlib.closing(sqlite3.connect(":memory:")) as other:  # counts nothing for `db`
            other.executescript(tables(client))
            other.backup(db)
        return play(db, client, seed, share)


def check(client, seed, share, transport, ours, theirs):
    equal(len(ours), len(theirs), "items")
    for i, (one, other) in enumerate(zip(ours, theirs)):
        equal(one, other, f"client {client}, seed {seed}, share {share}, transport {transport}, item {i}")


def compare(name, client, seed, share, transport):
    """Each client has tables of its own, so that it sees the same if others write at the same time."""
    with contextlib.closing(service.connect(name, isolation_level=None)) as db:
        db._core.link.set("transport", transport)
        ours = play(db, client, seed, share)
    check(client, seed, share, transport, ours, of_sqlite(client, seed, share))


def all_at_once(functions):
    failures = []

    def work(function):
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - of a thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@test
def one_client():
    """In transactions, in autocommit and both, on each transport"""
    for transport in TRANSPORTS.values():
        for i, share in enumerate((0, 1, 8)):
            name = f"one-{transport}-{i}"
            service.add(name, tables(0))
            compare(name, 0, 10 * transport + i, share, transport)


@test
def eight_clients():
    """Of one database, at once"""
    service.add("eight", "".join(map(tables, range(8))))
    all_at_once([lambda n=n: compare("eight", n, 100 + n, (0, 1)[n % 2], n % 4) for n in range(8)])


@test
def clients_that_await():
    """Three of sqlipc.aio, at once in one event loop"""

    async def one(client):
        async with sqlipc.aio.connect("await", bus=service.address, timeout=60, isolation_level=None) as db:
            ours = await play_async(db, client, 200 + client, client)
        theirs = of_sqlite(client, 200 + client, client)
        n = len(theirs) - len(results(client))
        theirs[:n] = [item[:-2] for item in theirs[:n]]
        for mine, item in zip(ours[:n], theirs):
            if not item[0].startswith(WRITES) and len(item) > 4:  # lastrowid, which executemany() does not learn
                mine[4] = item[4]
        check(client, 200 + client, client, "aio", ours, theirs)

    async def all_three():
        await asyncio.gather(*map(one, range(3)))

    service.add("await", "".join(map(tables, range(3))))
    asyncio.run(all_three())


main(service)
