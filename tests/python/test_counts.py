#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""last_insert_rowid(), changes() and total_changes() of a client are those of SQLite, as if it had the file for itself.

Scripts of random statements run with sqlite3 on a file, and with sqlipc on another one with the same contents.
"""

import contextlib
import random
import re
import sqlite3
import threading

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
ASK = "SELECT last_insert_rowid(), changes(), total_changes()"
TRANSPORTS = {"automatic": 0, "pipe": 1, "channel": 2, "dbus": 3}


def tables(client):
    text = re.sub(r"<(\w+ \d)>", lambda found: SEEN.replace("{what}", found[1]), TABLES)
    return text.replace("{c}", str(client))


def attempt(db, function, sql, *arguments):
    """What the program sees of a statement."""
    try:
        cursor = function(sql, *arguments)
        seen = [cursor.fetchall(), cursor.rowcount]
        if sql.startswith(("INSERT", "REPLACE")):
            seen.append(cursor.lastrowid)
    except Exception as error:  # noqa: BLE001 - its class is compared, and an error of another module is another class
        seen = [type(error).__name__]
    return [*seen, db.execute(ASK).fetchall()]


def run_script(db, client, seed, share):
    """Returns all that the program sees. `share`: of statements in transactions."""
    chance = random.Random(seed)
    seen = []
    for _ in range(120):
        sql = chance.choice(STATEMENTS + (IN_TRANSACTION if db.in_transaction else IN_AUTOCOMMIT))
        sql = sql.replace("{c}", str(client)).replace("#", str(chance.randint(1, 30)))
        if not db.in_transaction and chance.random() < share / 8:
            sql = "BEGIN IMMEDIATE"
        elif db.in_transaction and chance.random() < 0.1:
            sql = chance.choice(("COMMIT", "ROLLBACK"))
        if chance.random() < 0.1:
            rows = [(chance.randint(1, 60),) for _ in range(chance.randint(1, 5))]
            sql = f"INSERT INTO list{client} VALUES(?)"
            seen.append([sql, rows, *attempt(db, db.executemany, sql, rows)])
            continue
        seen.append([sql, *attempt(db, db.execute, sql)])
    if db.in_transaction:
        db.execute("ROLLBACK")
    for table in ("seen", "x", "t", "middle", "child"):
        seen.append(db.execute(f"SELECT * FROM {table}{client} ORDER BY rowid").fetchall())
    return seen


def compare(name, client, seed, share, transport):
    """Each client has tables of its own, so that it sees the same if others write at the same time."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript("PRAGMA foreign_keys = ON")
        with contextlib.closing(sqlite3.connect(":memory:")) as other:  # counts nothing for `db`
            other.executescript(tables(client))
            other.backup(db)
        theirs = run_script(db, client, seed, share)
    with contextlib.closing(service.connect(name, isolation_level=None)) as db:
        db._core.link.set("transport", transport)
        ours = run_script(db, client, seed, share)
    for i, (one, other) in enumerate(zip(ours, theirs)):
        equal(one, other, f"client {client}, seed {seed}, share {share}, transport {transport}, item {i}")


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
    failures = []

    def work(client):
        try:
            compare("eight", client, 100 + client, (0, 1)[client % 2], client % 4)
        except BaseException as error:  # noqa: BLE001 - of a thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(client,)) for client in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


main(service)
