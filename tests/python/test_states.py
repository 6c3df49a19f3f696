#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Codes, counts and states of statements are those of sqlite3 on a file of the same encoding, page size and journal mode.

    test_states.py [--seed N]        # else 1, with --long a random one

One program plays random statements, most of which meet a constraint, a trigger or a transaction, through the service and
with sqlite3 on another file. After each statement it compares all that sqlite3 tells, and at the end the contents.
"""

import contextlib
import itertools
import random
import sqlite3
import sys

import sqlipc
from harness import main
from python_service import PythonService
from sizes import LONG, size
from tap import cases, diagnose, equal, test

SEED = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else random.randrange(2**32) if LONG else 1
del sys.argv[1:]
service = PythonService()
SCHEMA = """
CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL CHECK (length(name) < 9));
CREATE TABLE child(id INTEGER PRIMARY KEY AUTOINCREMENT, parent REFERENCES parent ON DELETE CASCADE ON UPDATE SET NULL,
    note, twice AS (id * 2) STORED);
CREATE TABLE exact(i INT PRIMARY KEY, t TEXT, r REAL, b BLOB, a ANY) STRICT, WITHOUT ROWID;
CREATE TABLE keyed(a, b, c, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE hasty(x UNIQUE ON CONFLICT ROLLBACK, y NOT NULL ON CONFLICT IGNORE, z UNIQUE ON CONFLICT REPLACE);
CREATE TABLE late(id INTEGER PRIMARY KEY, parent REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE log(what);
CREATE VIEW named AS SELECT id, name FROM parent;
CREATE TRIGGER by_view INSTEAD OF INSERT ON named BEGIN INSERT INTO parent VALUES (new.id, new.name); END;
CREATE TRIGGER raising BEFORE INSERT ON log WHEN typeof(new.what) = 'integer' BEGIN
    SELECT CASE new.what % 5 WHEN 0 THEN raise(ABORT, 'aborted') WHEN 1 THEN raise(FAIL, 'failed')
        WHEN 2 THEN raise(ROLLBACK, 'rolled back') WHEN 3 THEN raise(IGNORE) END; END;
CREATE TRIGGER noting AFTER DELETE ON parent BEGIN INSERT INTO log VALUES ('gone ' || old.name); END;
CREATE UNIQUE INDEX by_half ON child(parent, id % 7) WHERE parent IS NOT NULL;
"""
CONFLICTS = ("", " OR ABORT", " OR FAIL", " OR IGNORE", " OR REPLACE", " OR ROLLBACK")
TEXTS = ("", "a", "b", "größe", "\U0001f600", "long enough to fail", "1", "1.5", " x ")


class Player:
    """Makes statements. The same seed makes the same ones."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def number(self):
        return self.chance.choice((0, 1, 2, 3, 4, 5, 6, 7, -1, 2**31, 2**53 + 1, None))

    def value(self):
        chance = self.chance
        return chance.choice((chance.choice(TEXTS), self.number(), chance.random(), b"", b"\0\xff", None, 1.0, -0.0))

    def insert(self):
        table, *columns = self.chance.choice((
            ("parent", "id", "name"), ("child", "parent", "note"), ("child", "id", "parent"), ("keyed", "a", "b", "c"),
            ("late", "parent"), ("exact", "i", "t", "r", "b", "a"),
            ("hasty", "x", "y", "z"), ("log", "what"), ("named", "id", "name"),
        ))  # fmt: skip
        values = [self.number() if self.chance.random() < 0.5 else self.value() for _ in columns]
        # SQLite 3.40 keeps the rows before one with a wrong type (OR ROLLBACK): it does not foresee that error.
        n = 1 if table == "exact" else self.chance.choice((1, 1, 1, 3))
        rows = ", ".join(["(" + ", ".join("?" * len(columns)) + ")"] * n)
        sql = f"INSERT{self.chance.choice(CONFLICTS)} INTO {table}({', '.join(columns)}) VALUES {rows}"
        if table == "parent" and " OR " not in sql and self.chance.random() < 0.3:
            sql += " ON CONFLICT (id) DO UPDATE SET name = excluded.name || '+'"
        if table != "named" and self.chance.random() < 0.3:
            sql += f" RETURNING {columns[0]}"
        return sql, [*values, *(self.value() for _ in range((n - 1) * len(columns)))]

    def change(self):
        conflict = self.chance.choice(CONFLICTS)
        return self.chance.choice((
            (f"UPDATE{conflict} parent SET id = id + ? WHERE id < 5", [self.chance.randrange(3)]),
            (f"UPDATE{conflict} parent SET name = substr(name, 1, 1)", []),
            (f"UPDATE{conflict} hasty SET x = ? WHERE rowid % 2", [self.value()]),
            (f"UPDATE{conflict} exact SET a = ?, i = i + 1", [self.value()]),
            ("UPDATE child SET note = NULL WHERE note > 3 RETURNING id", []),
            ("DELETE FROM parent WHERE id = ?", [self.number()]),
            ("DELETE FROM child WHERE id % 2 RETURNING id, parent", []),
            ("DELETE FROM keyed", []),
            ("DELETE FROM late WHERE parent NOT IN (SELECT id FROM parent)", []),
            ("DELETE FROM hasty WHERE y = ?", [self.value()]),
        ))  # fmt: skip

    def control(self):
        name = self.chance.choice(("one", '"Two"', "one"))
        return self.chance.choice(("BEGIN", "BEGIN IMMEDIATE", "COMMIT", "COMMIT", "ROLLBACK", f"SAVEPOINT {name}",
                                   f"RELEASE {name}", f"ROLLBACK TO {name}", "END")), []  # fmt: skip

    def other(self):
        return self.chance.choice((
            ("SELECT * FROM child ORDER BY id", []), ("SELECT abs(?)", [-(2**63)]), ("SELECT 1 / 0, sum(?)", [2**62]),
            ("SELECT no_such_column FROM parent", []), ("NONSENSE", []), ("SELECT ?, ?", [1]), ("REINDEX", []),
            ("SELECT json_extract('{', '$')", []), ("SELECT zeroblob(2000000000)", []), ("PRAGMA encoding", []),
            ("SELECT 'a' LIKE 'b' ESCAPE 'cd'", []), ("CREATE TABLE parent(a)", []), ("DROP VIEW parent", []),
            ("CREATE TABLE IF NOT EXISTS parent(a)", []), ("DROP TABLE IF EXISTS nothing", []),
            ("ALTER TABLE log RENAME COLUMN nothing TO something", []), ("PRAGMA foreign_key_check", []),
            ("SELECT name FROM named ORDER BY 1", []),
        ))  # fmt: skip

    def statement(self):
        kinds = (self.insert, self.insert, self.insert, self.change, self.change, self.control, self.other)
        return self.chance.choice(kinds)()


def told(db, sql, values, types):
    """Returns everything that the statement tells."""
    cursor = db.cursor()
    try:
        rows = cursor.execute(sql, values).fetchall()
        result = [[(type(value).__name__, value) for value in row] for row in rows]
        seen = [result, cursor.rowcount, cursor.lastrowid, cursor.description]
    except types as error:
        name = getattr(error, "sqlite_errorname", None)
        if name == "SQLITE_CONSTRAINT_DATATYPE":  # a code that Python 3.11 has no name for
            name = "unknown"
        seen = [type(error).__name__, getattr(error, "sqlite_errorcode", None), name, str(error)]
    return [*seen, db.in_transaction, db.total_changes]


def play(name, path, isolation_level, n_statements):
    copy = service.folder / f"{name}.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as original, contextlib.closing(sqlite3.connect(copy)) as new:
        original.backup(new)
    ours = sqlipc.connect(name, bus=service.address, isolation_level=isolation_level)
    theirs = sqlite3.connect(copy, isolation_level=isolation_level)
    theirs.execute("PRAGMA foreign_keys = ON")
    player, history = Player(f"{SEED} {name}"), []
    with contextlib.closing(ours), contextlib.closing(theirs):
        for _ in range(n_statements):
            sql, values = player.statement()
            history.append((sql, values))
            got, expected = told(ours, sql, values, sqlipc.Error), told(theirs, sql, values, sqlite3.Error)
            if got != expected:
                diagnose("\n".join(map(str, history[-12:])))
            equal(got, expected, f"{name}: what {sql} tells, with --seed {SEED}")
    contents = []
    for file in (path, copy):
        with contextlib.closing(sqlite3.connect(file)) as db:
            contents.append([*db.iterdump(), *(db.execute(f"PRAGMA {p}").fetchone() for p in ("encoding", "page_size"))])
            equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity_check")
    equal(contents[0], contents[1], f"{name}: the database at the end, with --seed {SEED}")


@test
def kinds():
    """Random statements tell what sqlite3 tells, in files of each encoding, page size and journal mode"""
    diagnose(f"--seed {SEED}")
    n, n_files = size("statements in a file of each kind"), 0
    sizes = itertools.cycle((512, 1024, 2048, 4096, 8192, 16384, 32768, 65536))
    for encoding, journal, level in itertools.product(("UTF-8", "UTF-16le", "UTF-16be"), ("wal", "delete"), ("", None)):
        page = next(sizes)
        name = f"of-{encoding.lower()}-{page}-{journal}-{'auto' if level is None else 'begins'}"
        path = service.add(name, SCHEMA, journal, f"PRAGMA encoding = '{encoding}'; PRAGMA page_size = {page};")
        play(name, path, level, n)
        n_files += 1
    cases("state", n * n_files, "a statement whose rows, counts, codes and state of the transaction are compared")


main(service)
