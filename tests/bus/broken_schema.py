# SPDX-License-Identifier: LGPL-2.1-or-later
"""A database as programs leave it: some of its objects cannot be used by a program that lacks a function, a collation, a
module or a tokenizer, and some names and texts are odd. All others must work as if these were not there."""
import contextlib
import sqlite3

# The name of a table, of its column and of a view with bytes that are not UTF-8. SQLite's own functions cannot write them,
# so they replace letters in the file.
PLACEHOLDER, BYTES = b"QzQ", b"\xff\xfe\xc3"
ODD_TABLE, ODD_COLUMN, ODD_VIEW = b"t" + BYTES, b"c" + BYTES, b"v" + BYTES
# Valid UTF-8, but not in a string of D-Bus. In a name it is as odd, so there it has a placeholder, too.
NONCHARACTER, NONCHARACTER_PLACEHOLDER = "\ufdd0", b"ZqZ"

SCHEMA = f"""
CREATE TABLE good(id INTEGER PRIMARY KEY, text TEXT, twice AS (id * 2));
INSERT INTO good(text) VALUES ('one'), ('two');
CREATE VIEW good_view AS SELECT id, upper(text) AS upper FROM good;
CREATE INDEX good_index ON good(text) WHERE id > 0;
CREATE TABLE log(what);
CREATE TRIGGER good_trigger AFTER INSERT ON good BEGIN INSERT INTO log VALUES (new.text); END;
CREATE VIRTUAL TABLE words USING fts5(body);
INSERT INTO words VALUES ('some words');
CREATE TABLE "t{PLACEHOLDER.decode()}"("c{PLACEHOLDER.decode()}" TEXT, other);
INSERT INTO "t{PLACEHOLDER.decode()}" VALUES ('of the odd table', 1);
CREATE VIEW "v{PLACEHOLDER.decode()}" AS SELECT "c{PLACEHOLDER.decode()}" AS "c{PLACEHOLDER.decode()}" FROM
    "t{PLACEHOLDER.decode()}";
CREATE TABLE "non{NONCHARACTER_PLACEHOLDER.decode()}"(a DEFAULT 'default {NONCHARACTER}');
INSERT INTO "non{NONCHARACTER_PLACEHOLDER.decode()}" VALUES ('value {NONCHARACTER}');

CREATE VIEW "no table" AS SELECT * FROM gone;
CREATE VIEW "no column" AS SELECT missing FROM good;
CREATE VIEW "no function" AS SELECT absent(text) FROM good;
CREATE VIEW "of a view" AS SELECT * FROM "no table";
CREATE VIEW "no odd table" AS SELECT * FROM "g{PLACEHOLDER.decode()}";
CREATE VIEW "no noncharacter" AS SELECT * FROM "g{NONCHARACTER_PLACEHOLDER.decode()}";
CREATE TABLE sorted(a TEXT COLLATE absent, b);
INSERT INTO sorted VALUES ('x', 1), ('y', 2);
CREATE TABLE computed(a, b AS (absent(a)));
CREATE TABLE stored(a, b AS (a + 1) STORED, CHECK (absent(a) > 0));
CREATE TABLE indexed(a, b);
INSERT INTO indexed VALUES (1, 2);
CREATE INDEX "no function in it" ON indexed(absent(a));
CREATE TABLE fired(a, b);
CREATE TRIGGER "no table in it" AFTER INSERT ON fired BEGIN INSERT INTO gone VALUES (new.a); END;
CREATE TRIGGER "fine beside it" AFTER INSERT ON fired BEGIN INSERT INTO log VALUES (new.a); END;
CREATE TRIGGER "no function in it, either" AFTER UPDATE OF b ON fired WHEN absent(new.b) BEGIN DELETE FROM log; END;
CREATE TRIGGER "by another" AFTER DELETE ON indexed BEGIN INSERT INTO fired VALUES (old.a, old.b); END;
CREATE TRIGGER "instead" INSTEAD OF INSERT ON good_view BEGIN INSERT INTO gone VALUES (new.id); END;
"""
# Modules that this process lacks, too.
VIRTUAL = {
    "no module": "CREATE VIRTUAL TABLE \"no module\" USING absent(a)",
    "no tokenizer": "CREATE VIRTUAL TABLE \"no tokenizer\" USING fts5(a, tokenize = 'absent')",
}
# Objects that a program without these cannot use at all, and a word of SQLite's error.
UNREADABLE = {
    "no table": "gone",
    "no column": "missing",
    "no function": "absent",
    "of a view": "gone",
    "no odd table": "no such table",
    "no noncharacter": "no such table",
    "computed": "absent",
    "no module": "absent",
    "no tokenizer": "tokenizer",
}


def make(path, journal="delete", odd_names=True):
    """`odd_names`: with names that are not UTF-8, at which Python's own sqlite3 fails, or that no D-Bus string may have."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.create_function("absent", 1, lambda value: value, deterministic=True)
        db.create_collation("absent", lambda a, b: (a > b) - (a < b))
        db.executescript(SCHEMA)
        db.execute("PRAGMA writable_schema = ON")
        for name, sql in VIRTUAL.items():
            db.execute("INSERT INTO sqlite_schema VALUES ('table', ?, ?, 0, ?)", (name, name, sql))
        db.commit()
    if odd_names:
        noncharacter = NONCHARACTER.encode()
        path.write_bytes(
            path.read_bytes().replace(PLACEHOLDER, BYTES).replace(NONCHARACTER_PLACEHOLDER, noncharacter)
        )
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {journal}")
    return path
