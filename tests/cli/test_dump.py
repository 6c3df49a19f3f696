#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
""".dump, .backup and .export: a copy equals the database at one moment, and an interrupted copy leaves no file behind.
.restore: the database equals the file, or is not changed.

Python's own sqlite3 compares a copy object by object, row by row, and by the bits of each value.
"""
import contextlib
import fcntl
import os
import pathlib
import pwd
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
import broken_schema  # noqa: E402
from harness import CHINOOK, CLI, CTL, PATIENT, Service, main, wait_for  # noqa: E402
from tap import equal, test, true  # noqa: E402

OK, QUERY, USAGE, LOST, OUTPUT, INTERRUPTED = 0, 1, 2, 4, 5, 130
N_MANY, N_COLUMNS_MAX = 500, 2000
SECONDS = 120

folder = tempfile.TemporaryDirectory(prefix="sqlipc-dump-")
os.chmod(folder.name, 0o755)
HERE = pathlib.Path(folder.name)

ODD = r"""
CREATE TABLE "we""ird 'name"("sel ect" TEXT, [b c] INT, x, "group" REAL, "rowid" BLOB);
CREATE TABLE "select"(a);
CREATE TABLE "new
line"(a, b);
CREATE TABLE [brackets and, commas](a);
CREATE TABLE größe(maß, "日本");
CREATE TABLE plain(a, b COLLATE NOCASE DEFAULT 'it''s', c NOT NULL DEFAULT (1 + 1), CHECK (c > 0));
CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, twice AS (id * 2), more AS (id + 1) STORED, text);
CREATE TABLE clustered(a PRIMARY KEY, b) WITHOUT ROWID;
CREATE TABLE strict(a INT, b ANY, c TEXT) STRICT;
CREATE TABLE descending(id INTEGER PRIMARY KEY DESC, a);
CREATE TABLE child(a REFERENCES plain(a) ON DELETE CASCADE);
CREATE TABLE commented(a -- the first
 , b /* the second */);
CREATE TABLE ended(a) -- a comment to the end
;
CREATE VIEW "a view" AS SELECT * FROM plain -- with a comment
;
CREATE VIEW missing AS SELECT * FROM counted;
CREATE VIRTUAL TABLE words USING fts5(title, body);
CREATE VIRTUAL TABLE places USING rtree(id, x0, x1, y0, y1);
CREATE INDEX "index of plain" ON plain(a, b DESC) WHERE a > 1;
CREATE INDEX computed ON counted(twice, id + 1);
CREATE UNIQUE INDEX "unique" ON clustered(b);
CREATE TRIGGER changed AFTER INSERT ON counted BEGIN INSERT INTO plain VALUES (new.id, ';', 1); DELETE FROM child; END;
INSERT INTO counted(text) VALUES ('one'), ('two'), ('three');
DELETE FROM counted WHERE id = 3;
INSERT INTO clustered VALUES (2, 'b'), (1, 'a');
INSERT INTO strict VALUES (1, 1, '1'), (2, x'01', '2'), (3, '3', '3');
INSERT INTO descending VALUES (7, 'seven'), (3, 'three');
INSERT INTO words VALUES ('one', 'some words'), ('two', 'it''s other
words');
INSERT INTO places VALUES (1, 0, 1, 0, 1), (2, -1.5, 2.5, 3, 4);
ANALYZE;
PRAGMA user_version = 77;
PRAGMA application_id = -5;
"""

VALUES = [
    None, 0, 1, -1, 2**63 - 1, -(2**63), 0.0, -0.0, 0.1, 3.0, 1e300, -1e-300, 5e-324, 1.7976931348623157e308, 2.0**53,
    float("inf"), float("-inf"), b"", b"\0", bytes(range(256)), "", "it's", 'say "so"', "a\nb", "a\r\nb\r", "\r", "\\n\\r",
    "tab\t", "größe 日本 \U0001f600", "\x1b[2J\x07", "-- no comment", "/*", ";", ".quit", "char(10)", "12", "1e5", "NULL", " ",
    "x" * 100000,
]  # fmt: skip
ODD_TEXTS = [b"a\0b", b"\0", b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80", b"one\0two\nthree\r"]


def make(name, script=ODD, fill=None):
    """Makes a database from this script; returns its path."""
    path = HERE / name
    connection = sqlite3.connect(path)
    connection.executescript(script)
    if fill:
        fill(connection)
    connection.commit()
    connection.close()
    return path


def fill_odd(connection):
    for value in VALUES:
        connection.execute("INSERT INTO \"we\"\"ird 'name\" VALUES (?1, ?1, ?1, ?1, ?1)", (value,))
        connection.execute("INSERT INTO größe VALUES (?1, ?1)", (value,))
    for text in ODD_TEXTS:
        for table in ("\"we\"\"ird 'name\"(x)", '"select"', "strict(c)"):
            connection.execute(f"INSERT INTO {table} VALUES (CAST(? AS TEXT))", (text,))
    connection.execute('INSERT INTO "new\nline" VALUES (?, ?)', ("a\nb", 2))
    connection.execute("DELETE FROM größe WHERE rowid % 3 = 0")
    connection.execute("INSERT INTO größe(rowid, maß) VALUES (-9, 'early'), (9223372036854775807, 'late')")


def fill_many(connection):
    for i in range(N_MANY):
        connection.execute(f"CREATE TABLE t{i}(a, b)")
        connection.execute(f"INSERT INTO t{i} VALUES (?, ?)", (i, f"row of {i}"))


def fill_lengthy(connection):
    """Makes a table of 2,000 columns, whose definition has 900,000 bytes."""
    columns = ", ".join(f"c{i} DEFAULT '{i:0430}'" for i in range(N_COLUMNS_MAX))
    connection.execute(f"CREATE TABLE lengthy({columns})")
    connection.execute("INSERT INTO lengthy(c0) VALUES (1)")


def fill_wide(connection):
    names = ", ".join(f"c{i}" for i in range(N_COLUMNS_MAX))
    for table in ("wide", "as_wide"):
        connection.execute(f"CREATE TABLE {table}({names})")
        for row in range(3):
            values = ", ".join(str(row * 10000 + i) for i in range(N_COLUMNS_MAX))
            connection.execute(f"INSERT INTO {table} VALUES ({values})")
    connection.execute("CREATE TABLE narrow(a)")
    connection.execute("INSERT INTO narrow VALUES (1)")


def fill_large(connection):
    """Inserts more rows than the pipes and buffers between service and reader can hold."""
    connection.execute("CREATE TABLE a(x, filler)")
    connection.executemany("INSERT INTO a VALUES ('old', ?)", [("." * 1000,)] * 20000)


def quoted(name):
    return b'"' + name.replace(b'"', b'""') + b'"'


class Text(bytes):
    """SQL TEXT as its bytes. It is not equal to a BLOB of the same bytes."""

    def __eq__(self, other):
        return isinstance(other, Text) and bytes(self) == bytes(other)

    __hash__ = bytes.__hash__


def exact(value):
    return ("REAL", struct.pack(">d", value)) if isinstance(value, float) else value


def content(path, rowids=False):
    """Returns the whole content of a database, for a comparison."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    pragmas = ("user_version", "application_id", "encoding")
    everything = {pragma: connection.execute(f"PRAGMA {pragma}").fetchone() for pragma in pragmas}
    schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    everything["schema"] = sorted((*row[:3], row[3] or b"") for row in schema)
    without = {name for name, in connection.execute("SELECT name FROM pragma_table_list WHERE wr OR type = 'virtual'")}
    tables = [(name, columns_of(connection, name)) for kind, name, *_ in schema if kind == b"table"]
    connection.text_factory = Text
    for name, columns in tables:
        if rowids and name not in without and b"rowid" not in columns and len(columns) < N_COLUMNS_MAX:
            columns.append(b"rowid")
        wanted = b", ".join(column if column == b"rowid" else quoted(column) for column in columns)
        rows = connection.execute((b"SELECT " + wanted + b" FROM " + quoted(name)).decode()).fetchall()
        everything[name] = [tuple(exact(value) for value in row) for row in rows]
        if name.startswith(b"sqlite_stat"):
            everything[name].sort(key=repr)
    connection.close()
    return everything


def columns_of(connection, table):
    return [name for name, in connection.execute("SELECT name FROM pragma_table_xinfo(?)", (table.decode(),))]


def check_copy(copy, original, rowids=False):
    got, expected = content(copy, rowids), content(original, rowids)
    equal(sorted(map(str, got)), sorted(map(str, expected)), "what there is")
    for key, value in expected.items():
        equal(got[key], value, f"{key!r} of the copy")
    equal(sqlite3.connect(copy).execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity_check")


def fill_beyond(connection):
    """Appends SQL to definitions in sqlite_schema; SQLite itself reads only the first statement of a definition."""
    beyond = ";\n.shell touch ran-{0}\nATTACH 'attached-{0}' AS x; CREATE TABLE x.y(z)"
    silent = "; ATTACH 'attached-{0}' AS x; CREATE TABLE x.y(z)"
    connection.execute("PRAGMA writable_schema = ON")
    for name, more in (("seen", beyond), ("changed", beyond), ("other", silent)):
        connection.execute("UPDATE sqlite_schema SET sql = sql || ? WHERE name = ?", (more.format(name), name))


BEYOND = """
CREATE TABLE t(a);
CREATE VIEW seen AS SELECT 1 AS "*/; .shell touch ran-comment
.shell touch ran-comment";
CREATE VIEW other AS SELECT 2;
CREATE TRIGGER changed AFTER INSERT ON t BEGIN SELECT ';'; END;
"""
TYPES = ["INT UNIQUE", "VARCHAR(10)", "INT); CREATE TABLE beyond(a); --", "x\n);\n.shell touch ran-type\n"]
TYPED = "CREATE TABLE typed({}); INSERT INTO typed VALUES (1, 2, 3, 4), (1, 2, 3, 4);".format(
    ", ".join(f'c{i} "{name}"' for i, name in enumerate(TYPES))
)
UTF16 = "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(a); INSERT INTO t VALUES ('größe'), (1.5);"
make("target.sqlite", "PRAGMA journal_mode = WAL;" + ODD)
service = Service(
    {
        "chinook": CHINOOK,
        "odd": make("odd.sqlite", fill=fill_odd),
        "utf16": make("utf16.sqlite", UTF16),
        "beyond": make("beyond.sqlite", BEYOND, fill_beyond),
        "empty": make("empty.sqlite", ""),
        "many": make("many.sqlite", "", fill_many),
        "wide": make("wide.sqlite", "", fill_wide),
        "lengthy": make("lengthy.sqlite", "", fill_lengthy),
        "mortal": make("mortal.sqlite", "", fill_large),
        "part": {"Path": CHINOOK, "Expose": "Album Artist"},
        "broken": broken_schema.make(HERE / "broken.sqlite"),
        "lacking": broken_schema.make(HERE / "lacking.sqlite", odd_names=False),
        "typed": {"Path": make("typed.sqlite", TYPED), "Expose": "typed"},
        "target": {"Path": HERE / "target.sqlite", "Mode": "read-write", "WriteSchema": "yes"},
        "target_rows": {"Path": HERE / "target.sqlite", "Mode": "read-write"},
        "loaded": {"Path": make("loaded.sqlite", ""), "Mode": "read-write", "WriteSchema": "yes", "ForeignKeys": "no"},
        "loaded_rows": {"Path": HERE / "loaded.sqlite", "Mode": "read-write"},
        "unrelated": {"Path": HERE / "target.sqlite", "Mode": "read-write", "WriteSchema": "yes", "ForeignKeys": "no"},
    }
)


def start(*arguments, on=service, **keywords):
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | keywords
    return subprocess.Popen([CLI, f"--address={on.address}", *map(str, arguments)], env=on.environment, cwd=HERE, **streams)


def ask(*arguments, code=OK, says=b"", **keywords):
    """Runs the shell; returns its output. It must end with `code`, with `says` on stderr, or with nothing there."""
    process = start(*arguments, **keywords)
    out, err = process.communicate(timeout=SECONDS)
    equal(process.returncode, code, f"exit code of {arguments}, which said {err!r}")
    if says:
        true(says in err, f"{arguments} said {err!r}, expected {says!r}")
    else:
        equal(err, b"", f"what {arguments} said")
    return out


def load(sql, name):
    """Loads a dump by sqlite3, which must report no error; returns the path of the new database."""
    copy = HERE / name
    copy.unlink(missing_ok=True)
    done = subprocess.run(["sqlite3", "-bail", copy], input=sql, capture_output=True, timeout=SECONDS, cwd=HERE, check=False)
    equal((done.returncode, done.stdout, done.stderr), (0, b"", b""), "sqlite3 reading the dump")
    return copy


def original(database):
    return {"chinook": CHINOOK}.get(database, HERE / f"{database}.sqlite")


@test
def as_sqlite3():
    """A dump of Chinook equals sqlite3's byte for byte, with and without rowids"""
    reference = subprocess.run(["sqlite3", CHINOOK, ".dump"], capture_output=True, check=True).stdout
    equal(ask("chinook", ".dump") == reference, True, "the same bytes")
    reference = subprocess.run(["sqlite3", CHINOOK, ".dump --preserve-rowids"], capture_output=True, check=True).stdout
    equal(ask("chinook", ".dump --preserve-rowids") == reference, True, "the same bytes with rowids")


TEMP = [
    "CREATE TEMP TABLE counted(a, b)", "INSERT INTO temp.counted VALUES (77, 'temp')", "CREATE TEMP TABLE plain(a, b, c)",
    "CREATE TEMP TABLE auto(id INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO auto VALUES (99)",
    'CREATE TEMP TABLE clustered(a PRIMARY KEY)', "CREATE TEMP TABLE mine(a)",
]  # fmt: skip


@test
def without_temp_tables():
    """A TEMP table does not get into .dump, .backup, .export and .sha3sum, also in the place of one of its name"""
    for command in (".dump", ".dump --preserve-rowids", ".dump counted", ".sha3sum", ".sha3sum counted", ".sha3sum --schema",
                    ".sha3sum sqlite%"):  # fmt: skip
        equal(ask("odd", *TEMP, command), ask("odd", command), command)
    ask("odd", *TEMP, ".backup --force with-temp.sqlite")
    check_copy(HERE / "with-temp.sqlite", original("odd"), rowids=True)
    ask("odd", *TEMP, ".export --force sqlite counted.sqlite counted")
    with contextlib.closing(sqlite3.connect(HERE / "counted.sqlite")) as db:
        equal(db.execute("SELECT id, text FROM counted").fetchall(), [(1, "one"), (2, "two")], "rows of .export")


@test
def round_trips():
    """sqlite3 restores an equal database from a dump: names, bits of values, indexes, triggers, virtual tables"""
    for database in ("chinook", "odd", "utf16", "empty", "many", "wide", "lengthy"):
        check_copy(load(ask(database, ".dump"), "copy.sqlite"), original(database))


def foreign_dump(path):
    return subprocess.run(["sqlite3", path, ".dump"], capture_output=True, check=True).stdout


def empty():
    """Empties the database "loaded", as no statement can that has a damaged virtual table."""
    with contextlib.closing(sqlite3.connect(HERE / "empty-again.sqlite")) as new:
        new.execute("PRAGMA journal_mode = wal")
        with contextlib.closing(sqlite3.connect(HERE / "loaded.sqlite")) as old:
            new.backup(old)


@test
def loads():
    """A dump of sqlite3 or of the shell loads by standard input, .read and --single-transaction, virtual tables included"""
    dumps = [foreign_dump(make(f"plain-{i}.sqlite", script)) for i, script in enumerate((ODD, SEARCHED))]
    for sql in (*dumps, ask("odd", ".dump")):
        file = HERE / "dump.sql"
        file.write_bytes(sql)
        expected = load(sql, "expected.sqlite")
        for way in (("-f", file), ("-c", f".read {file}"), ("-1", "-f", file), ("-1", "-c", f".read {file}")):
            empty()
            equal(ask("--bail", *way, "loaded"), b"", f"output of {way}")
            check_copy(HERE / "loaded.sqlite", expected)
    empty()
    ask("-f", HERE / "dump.sql", "loaded_rows", code=QUERY, says=b"is not allowed")
    equal(content(HERE / "loaded.sqlite"), content(HERE / "empty-again.sqlite"), "what there is")


SEARCHED = """
CREATE TABLE "it's"(a, b);
INSERT INTO "it's" VALUES ('some words', 'more'), ('other words', 'less');
CREATE VIRTUAL TABLE [of "them"] USING fts5(a, b, content='it''s', tokenize='porter');
INSERT INTO [of "them"]([of "them"]) VALUES ('rebuild');
CREATE VIRTUAL TABLE old USING fts3(a);
CREATE VIRTUAL TABLE four USING fts4(a, prefix="2");
CREATE VIRTUAL TABLE terms USING fts5vocab('of "them"', 'row');
CREATE VIRTUAL TABLE numbers USING rtree_i32(id, x0, x1, +note);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
INSERT INTO numbers SELECT i, i % 77, i % 77 + i, 'note ' || i FROM n;
INSERT INTO old VALUES ('some old words');
INSERT INTO four(docid, a) VALUES (7, 'four words');
"""
ROW = "INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table',{0},{0},0,{1});"
WORDS = ROW.format("'words'", "'CREATE VIRTUAL TABLE words USING fts5(a)'")


def shadow_rows(script, damage):
    """Returns the dump of a database that is damaged beyond what its modules would ever write."""
    path = HERE / "damaged.sqlite"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(script)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(damage)
    return foreign_dump(path).decode()


@test
def loads_no_damage():
    """Of a dump, only rows of virtual tables go into sqlite_schema, and a damaged one is not committed"""
    full = "CREATE VIRTUAL TABLE words USING fts5(a); INSERT INTO words VALUES ('some words'), ('more');"
    boxes = "CREATE VIRTUAL TABLE places USING rtree(id, x0, x1); INSERT INTO places VALUES (1, 0, 1), (2, 5, 6);"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
    many = f"{numbers} INSERT INTO places SELECT i, i, i FROM n;"
    cut = "UPDATE places_node SET data = substr(data, 1, 4) || x'7f000000' || substr(data, 9) WHERE nodeno = 1"
    damaged = {
        "words": [WORDS, full.replace("CREATE", f"{WORDS} --CREATE", 1),
                  shadow_rows(full, "DELETE FROM words_docsize WHERE id = 1"),
                  shadow_rows(full, "UPDATE words_data SET block = x'00' WHERE id > 10"),
                  shadow_rows(full, "UPDATE words_content SET c0 = 'others' WHERE id = 1")],
        "places": [shadow_rows(boxes, "DELETE FROM places_rowid WHERE rowid = 1"),
                   shadow_rows(boxes, "INSERT INTO places_rowid VALUES (9, 1)"),
                   shadow_rows(boxes, "UPDATE places_node SET data = zeroblob(length(data))"),
                   shadow_rows(boxes, "INSERT INTO places_node VALUES (7, x'00')"),
                   shadow_rows(boxes + many, "DELETE FROM places_parent WHERE nodeno = 2"),
                   shadow_rows(boxes + many, cut)],
    }  # fmt: skip
    empty()
    for name, scripts in damaged.items():
        for script in scripts:
            sql = script if "BEGIN" in script else f"BEGIN;{script}\nCOMMIT;"
            says = f'the virtual table "{name}" of this dump does not pass its integrity-check'
            ask("loaded", "--bail", sql, code=QUERY, says=says.encode())
    plain = shadow_rows(full, "")
    for more in (
        "CREATE TRIGGER later AFTER INSERT ON words_docsize BEGIN UPDATE words_data SET block = x'00'; END;",
        "CREATE INDEX more ON words_content(c0);",
        "DROP TABLE words_docsize; CREATE VIEW words_docsize AS SELECT 1 AS id, x'02' AS sz;",
        "DROP TABLE words_docsize; CREATE TABLE 'words_docsize'(id INTEGER PRIMARY KEY, sz BLOB, CHECK (1));",
        "DROP TABLE words_config;",
    ):
        sql = plain.replace("PRAGMA writable_schema=OFF;", more)
        ask("loaded", "--bail", sql, code=QUERY, says=b'"words" of this dump does not pass')
    for more in ("SAVEPOINT a; CREATE TABLE t(a); ROLLBACK TO a; RELEASE a;", ""):
        sql = plain.replace("PRAGMA writable_schema=OFF;", f"{more} ALTER TABLE words RENAME TO others;")
        ask("loaded", "--bail", sql, code=QUERY, says=b"ALTER TABLE is not allowed" if more else b"no such table")
    refused = {
        ROW.format("'t'", "'CREATE TABLE t(a)'"): b"that of \"t\" is another",
        ROW.format("'t'", "'CREATE VIRTUAL TABLE words USING fts5(a)'"): b"that of \"t\" is another",
        ROW.format("'words'", "'CREATE VIRTUAL TABLE words USING fts5(a); DROP TABLE x'"): b"is another",
        ROW.format("'words'", "'SELECT 1'"): b"is another",
        ROW.format("'words'", "'create virtual table words using fts5(a)'"): b"is another",
        ROW.format("'words'", "'CREATE VIRTUAL TABLE words USING echo(a)'"): b"no such module: echo",
        ROW.format("'words'", "'CREATE VIRTUAL TABLE'"): b"incomplete input",
        ROW.format("'sqlite_x'", "'CREATE VIRTUAL TABLE sqlite_x USING fts5(a)'"): b"reserved for internal use",
        WORDS.replace("0,", "7,"): b"a direct change of sqlite_schema",
        WORDS.replace("'table'", "'view'"): b"a direct change of sqlite_schema",
        WORDS.replace(");", ") RETURNING *;"): b"a direct change of sqlite_schema",
        WORDS.replace("INSERT", "REPLACE"): b"a direct change of sqlite_schema",
        "UPDATE sqlite_schema SET sql = ''": b"a direct change of sqlite_schema",
        "DELETE FROM sqlite_schema": b"a direct change of sqlite_schema",
    }
    for sql, says in refused.items():
        ask("loaded", "--bail", f"PRAGMA writable_schema = ON; BEGIN; {sql.rstrip(';')}; COMMIT;", code=QUERY, says=says)
    ask("loaded", f"PRAGMA writable_schema = ON; {WORDS}", code=QUERY, says=b"load a dump in a transaction")
    ask("loaded_rows", f"BEGIN; {WORDS} COMMIT;", code=QUERY, says=b"WriteSchema=")
    ask("loaded_rows", "PRAGMA writable_schema = ON", code=QUERY, says=b"is not allowed")
    equal(content(HERE / "loaded.sqlite"), content(HERE / "empty-again.sqlite"), "what there is")
    ask("loaded", f"BEGIN; SAVEPOINT a; {WORDS} ROLLBACK TO a; CREATE TABLE t(a); COMMIT; DROP TABLE t")
    equal(content(HERE / "loaded.sqlite"), content(HERE / "empty-again.sqlite"), "what there is after ROLLBACK TO")


@test
def transports():
    """A dump is the same over each transport, also with rows as D-Bus values"""
    whole = ask("odd", ".dump")
    for transport in ("pipe", "channel", "dbus"):
        equal(ask("odd", f".transport {transport}", ".dump") == whole, True, f"the same over {transport}")


@test
def rowids():
    """Rowids that are not a column are kept by --preserve-rowids, and in a backup"""
    copy = load(ask("odd", ".dump --preserve-rowids"), "copy.sqlite")
    check_copy(copy, original("odd"), rowids=True)
    copy = load(ask("odd", ".dump"), "copy.sqlite")
    true(content(copy, True)["größe".encode()] != content(original("odd"), True)["größe".encode()], "without it they do not")


@test
def by_name():
    """A named table is dumped with its indexes and triggers; patterns work as in LIKE; a virtual table has its own tables"""
    out = ask("odd", ".dump counted")
    true(b"CREATE INDEX computed" in out and b"CREATE TRIGGER changed" in out and b"plain(" not in out, "what belongs to it")
    equal(ask("chinook", ".dump 'Playlist%'").count(b"CREATE TABLE"), 2, "tables")
    equal(ask("odd", ".dump words").count(b"CREATE TABLE"), 5, "tables of a virtual one")
    equal(ask("chinook", ".dump nosuch"), b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCOMMIT;\n", "none")
    ask("chinook", ".dump --nosuch", code=USAGE, says=b"usage: .dump")


@test
def backups():
    """A backup is an SQLite file with the same content and rowids"""
    for database in ("chinook", "odd", "utf16", "empty", "many", "wide"):
        copy = HERE / "copy.sqlite"
        copy.unlink(missing_ok=True)
        ask(database, ".backup copy.sqlite")
        check_copy(copy, original(database), rowids=True)
    for mode in (1, 2):
        (HERE / "copy.sqlite").unlink()
        original_file = make(f"vacuum{mode}.sqlite", f"PRAGMA page_size = 1024; PRAGMA auto_vacuum = {mode};" + UTF16)
        service.database("vacuum", Path=original_file)
        service.driver.manager("Reload")
        ask("vacuum", ".backup copy.sqlite")
        check_copy(HERE / "copy.sqlite", original_file, rowids=True)
        for pragma, value in (("auto_vacuum", mode), ("page_size", 1024)):
            equal(sqlite3.connect(HERE / "copy.sqlite").execute(f"PRAGMA {pragma}").fetchone(), (value,), pragma)


# ---- .restore ----------------------------------------------------------------------------------------------------------


VIRTUAL = ("CREATE VIRTUAL", "INSERT INTO words", "INSERT INTO places", "words'")
WITHOUT_VIRTUAL = "\n".join(line for line in ODD.splitlines() if not line.startswith(VIRTUAL))
TARGET = HERE / "target.sqlite"
CIRCLE = """
CREATE TABLE one(id INTEGER PRIMARY KEY, other REFERENCES two(code));
CREATE TABLE two(id INTEGER PRIMARY KEY, code, other REFERENCES one);
CREATE TABLE self(id INTEGER PRIMARY KEY, parent REFERENCES self);
CREATE UNIQUE INDEX codes ON two(code);
INSERT INTO one VALUES (1, 'a'), (2, 'b');
INSERT INTO two VALUES (1, 'a', 2), (2, 'b', 1);
INSERT INTO self VALUES (1, 3), (2, 1), (3, NULL);
"""
SLOW_CHECK = """
PRAGMA ignore_check_constraints = ON;
CREATE TABLE slow(x CHECK (length(hex(zeroblob(2000000 + x))) > 0));
WITH n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 5000) INSERT INTO slow SELECT 0 FROM n;
"""


def check_restored(file):
    """sqlite_sequence cannot be dropped, so it may stay, without rows."""
    with contextlib.closing(sqlite3.connect(TARGET)) as db:
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity_check")
    got, expected = content(TARGET, rowids=True), content(file, rowids=True)
    if b"sqlite_sequence" in got and b"sqlite_sequence" not in expected:
        equal(got.pop(b"sqlite_sequence"), [], "rows of sqlite_sequence")
        got["schema"] = [row for row in got["schema"] if row[1] != b"sqlite_sequence"]
    equal(sorted(map(str, got)), sorted(map(str, expected)), "what there is")
    for key, value in expected.items():
        equal(got[key], value, f"{key!r} of the database")


def restores_nothing(path, *options, says, database="target", code=QUERY):
    before = content(TARGET, rowids=True)
    ask(database, " ".join((".restore", *options, str(path))), code=code, says=says)
    equal(content(TARGET, rowids=True) == before, True, f"the content after {says!r}")


@test
def restores():
    """.restore replaces all that there is by the content of a file, with rowids"""
    backup, online = HERE / "backup.sqlite", HERE / "online.sqlite"
    ask("chinook", ".backup backup.sqlite")
    where = f"--address={service.address}", f"--config-dir={service.config_dir}"
    done = service.run(CTL, *where, "backup", "chinook", online, f"--service-user={pwd.getpwuid(os.geteuid()).pw_name}")
    equal(done.returncode, OK, f"exit code of sqlipcctl backup, which said {done.stderr}")
    plain = make("plain.sqlite", WITHOUT_VIRTUAL, fill_odd)
    for file in (backup, plain, online, make("circle.sqlite", CIRCLE), HERE / "many.sqlite", CHINOOK):
        ask("unrelated" if file == plain else "target", f".restore --force {file}")
        check_restored(file)
    ask("target", f".restore --force {HERE / 'utf16.sqlite'}")
    equal(sqlite3.connect(TARGET).execute("SELECT * FROM t").fetchall(), [("größe",), (1.5,)], "rows in another encoding")


@test
def restores_beside_temp_tables():
    """.restore drops and fills the tables of the database, not TEMP tables of their names, which stay"""
    plain = make("beside.sqlite", WITHOUT_VIRTUAL, fill_odd)
    for _ in range(2):  # into other tables, and into the same ones
        restore, look = f".restore --force {plain}", "SELECT a, b FROM temp.counted"
        out = ask("unrelated", "--mode=list", "--headers=off", *TEMP, restore, look)
        equal(out, b"77|temp\n", "the TEMP table")
        check_restored(plain)


@test
def restores_nothing_else():
    """A restore that fails changes nothing: no --force, a file that is bad or cannot be restored, no right"""
    ask("target", f".restore --force {HERE / 'circle.sqlite'}")
    restores_nothing(CHINOOK, says=b"target is not empty; --force replaces all that it has")
    restores_nothing(HERE / "wide.sqlite", "--force", says=b"too many columns")  # for columns and rowid
    restores_nothing(HERE / "plain.sqlite", "--force", says=b"foreign key mismatch")
    restores_nothing(HERE / "odd.sqlite", "--force", says=b"the virtual table words cannot be copied; nothing was changed")
    restores_nothing(HERE / "missing.sqlite", "--force", says=b"unable to open database file; nothing was changed")
    restores_nothing(HERE, "--force", says=b"nothing was changed")
    (HERE / "zero.sqlite").write_bytes(b"")
    restores_nothing(HERE / "zero.sqlite", "--force", says=b"it is empty; nothing was changed")
    (HERE / "text.sqlite").write_bytes(b"no database" * 1000)
    restores_nothing(HERE / "text.sqlite", "--force", says=b"file is not a database; nothing was changed")
    damaged = bytearray(CHINOOK.read_bytes())
    damaged[len(damaged) // 2 :] = b"\xff" * (len(damaged) - len(damaged) // 2)
    (HERE / "half.sqlite").write_bytes(damaged)
    restores_nothing(HERE / "half.sqlite", "--force", says=b"malformed; nothing was changed")
    violated = make("violated.sqlite", CIRCLE + "PRAGMA foreign_keys = OFF; INSERT INTO one VALUES (3, 'nothing');")
    restores_nothing(violated, "--force", says=b"FOREIGN KEY constraint failed")
    unchecked = "PRAGMA ignore_check_constraints = ON; CREATE TABLE c(x CHECK (x)); INSERT INTO c VALUES (0)"
    checked = make("checked.sqlite", unchecked)
    restores_nothing(checked, "--force", says=b"table c cannot be restored, and nothing was changed")
    restores_nothing(CHINOOK, "--force", says=b"WriteSchema=", database="target_rows")
    ask("chinook", f".restore --force {CHINOOK}", code=QUERY, says=b"No client may write this database")
    ask("target", "BEGIN", f".restore --force {CHINOOK}", code=QUERY, says=b"a transaction is open")
    ask("target", ".restore", code=USAGE, says=b"usage: .restore")
    ask("target", ".restore a b", code=USAGE, says=b"usage: .restore")


@test
def restore_interrupted():
    """SIGINT in the middle of a restore, and a client that is killed there, change nothing"""
    before = content(TARGET, rowids=True)
    slow = make("slow.sqlite", SLOW_CHECK)
    for sent, code in ((signal.SIGINT, INTERRUPTED), (signal.SIGKILL, -signal.SIGKILL)):
        process = start("target", f".restore --force {slow}")
        wait_for(lambda: service.driver.manager("ListTransactions")[0], "the transaction")
        wait_for(lambda: service.states(), "the load")
        process.send_signal(sent)
        process.communicate(timeout=SECONDS)
        equal(process.returncode, code, "exit code")
        wait_for(lambda: not service.driver.manager("ListTransactions")[0], "the end of the transaction")
        equal(content(TARGET, rowids=True) == before, True, "the content")


# ---- other files -------------------------------------------------------------------------------------------------------


@test
def beyond_definitions():
    """Text after a definition's statement is not run: not by sqlite3 that reads a dump or schema, not by a backup"""
    before = make("before.sqlite", BEYOND)
    says = b"the text after the end of its definition is left out"
    check_copy(load(ask("beyond", ".dump", says=says), "copy.sqlite"), before)
    (HERE / "copy.sqlite").unlink()
    ask("beyond", ".backup copy.sqlite", says=says)
    check_copy(HERE / "copy.sqlite", before)
    for command in (".schema", ".schema --indent"):
        load(ask("beyond", command), "copy.sqlite")
    equal([*HERE.glob("ran-*"), *HERE.glob("attached-*")], [], "files that were made")


@test
def small_limits():
    """If the limits admit one statement, nested or in pieces, a dump is one snapshot; else it reports that it is several"""
    fitting = (({"CompoundSelectsMax": 2}, "many"), ({"VdbeOpsMax": 42000}, "wide"), ({"SQLSizeMax": 100000}, "wide"))
    for limits, database in fitting:
        with Service({"limited": original(database)}, limits=limits) as own:
            check_copy(load(ask("limited", ".dump", on=own), "copy.sqlite"), original(database))
    for limits in ({"CompoundSelectsMax": 1}, {"SQLSizeMax": 2000}):
        with Service({"limited": original("many")}, limits=limits) as own:
            out = ask("limited", ".dump", on=own, says=b"not one snapshot")
            check_copy(load(out, "copy.sqlite"), original("many"))


@test
def one_moment():
    """A commit while a dump runs is in all of its tables or in none"""
    path = make("moment.sqlite", "PRAGMA journal_mode = WAL;", fill_large)
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE z(x); INSERT INTO z VALUES ('old');")
    with Service({"moment": path}, limits={"ParkTimeoutSec": 600}) as own:  # The dump stays parked while the writer works.
        process = start("moment", ".dump", on=own)
        begun = process.stdout.read(65536)  # The dump has begun, and now waits in the first table.
        true(b"INSERT INTO a VALUES('old'" in begun, "it reads the first table")
        connection.executescript("BEGIN; UPDATE a SET x = 'new'; UPDATE z SET x = 'new'; CREATE TABLE later(x); COMMIT;")
        out, err = process.communicate(timeout=SECONDS)
        equal((process.returncode, err), (OK, b""), "its end")
        equal((begun + out).count(b"'old'"), 20001, "rows of the old moment")
        equal(b"'new'" in out or b"later" in out, False, "rows of the new one")
        out = ask("moment", ".dump", on=own)
        true(b"'old'" not in out and b"CREATE TABLE later" in out, "the next dump has all of it")
    connection.close()


@test
def changing_schema():
    """While the schema keeps changing, each dump is one of its states, or says that it failed"""
    script = "PRAGMA journal_mode = WAL; CREATE TABLE t(a); INSERT INTO t VALUES (0); CREATE TABLE versions(n);"
    path = make("restless.sqlite", script)
    stop, problems = threading.Event(), []

    def change():
        connection = sqlite3.connect(path, timeout=SECONDS)
        n = 0
        while not stop.is_set() and n < 1000:
            n += 1
            connection.executescript(
                f"BEGIN; ALTER TABLE t ADD COLUMN c{n} DEFAULT {n};"
                f"DELETE FROM versions; INSERT INTO versions VALUES ({n}); COMMIT;"
            )
        connection.close()

    with Service({"restless": path}) as own:
        writer = threading.Thread(target=change)
        writer.start()
        try:
            for _ in range(30):
                process = start("restless", ".dump", on=own)
                out, err = process.communicate(timeout=SECONDS)
                if process.returncode != OK:
                    said = b"the schema changes" in err or b"Error.Busy" in err  # The lock holder may be paused.
                    true(said and b"COMMIT" not in out, f"{err!r} for {out[-200:]!r}")
                    continue
                copy = sqlite3.connect(":memory:")
                copy.executescript(out.decode())
                n = (copy.execute("SELECT n FROM versions").fetchone() or (0,))[0]
                rows = copy.execute("SELECT * FROM t").fetchall()
                if rows != [tuple(range(n + 1))]:
                    problems.append((n, rows))
        finally:
            stop.set()
            writer.join()
    equal(problems, [], "dumps of no moment")


@test
def broken_off():
    """If the daemon dies in the middle, the dump ends with ROLLBACK, and sqlite3 makes nothing of it"""
    with Service({"mortal": HERE / "mortal.sqlite"}, limits=PATIENT) as own:
        process = start("mortal", ".dump", on=own)
        begun = process.stdout.read(65536)
        own.kill()
        out, err = process.communicate(timeout=SECONDS)
        equal(process.returncode, LOST, f"exit code, with {err!r}")
        true(out.endswith(b"ROLLBACK; -- due to errors\n") and b"COMMIT" not in out, f"its end: {out[-200:]!r}")
        copy = HERE / "copy.sqlite"
        copy.unlink(missing_ok=True)
        subprocess.run(["sqlite3", copy], input=begun + out, capture_output=True, check=False)
        equal(sqlite3.connect(copy).execute("SELECT count(*) FROM sqlite_schema").fetchone(), (0,), "objects")


@test
def interrupted():
    """SIGINT in the middle: the dump is not complete, the query ends on the server, and the program exits with 130"""
    process = start("mortal", ".dump")
    begun = process.stdout.read(65536)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    equal((process.returncode, err), (INTERRUPTED, b""), "its end")
    true(b"COMMIT" not in begun + out, f"its end: {out[-200:]!r}")
    wait_for(lambda: not service.states(), "the run ends")


@test
def interrupted_while_nobody_reads():
    """SIGINT ends a dump whose output is not read"""
    process = start("mortal", ".dump")
    wait_for(lambda: available(process.stdout) == 65536 and waits(process), "its output is full")
    process.send_signal(signal.SIGINT)
    equal(process.wait(SECONDS), INTERRUPTED, "exit code")
    out, err = process.communicate()
    equal(err, b"", "what it says")
    true(b"COMMIT" not in out, f"its end: {out[-200:]!r}")
    wait_for(lambda: not service.states(), "the run ends")


def available(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


def waits(process):
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


@test
def wrong_page():
    """A damaged table: the dump reports it and ends with ROLLBACK; a backup leaves no file"""
    path = make("damaged.sqlite", "CREATE TABLE a(x); CREATE TABLE z(x);", lambda c: c.executemany(
        "INSERT INTO a VALUES (?)", [("." * 500,)] * 1000))  # fmt: skip
    with open(path, "r+b") as file:
        file.seek(4096 * 20)
        file.write(b"\xff" * 4096 * 20)
    with Service({"damaged": path}) as own:
        out = ask("damaged", ".dump", on=own, code=QUERY, says=b"org.sqlipc1.Error.Corrupt")
        true(out.endswith(b"ROLLBACK; -- due to errors\n"), f"its end: {out[-100:]!r}")
        for command in (".backup none.sqlite", ".export csv none.csv a", ".export sql none.sql"):
            ask("damaged", command, on=own, code=QUERY, says=b"org.sqlipc1.Error.Corrupt")
        equal([p.name for p in HERE.glob("none*")], [], "files")


@test
def beside_broken_objects():
    """A dump has all objects, those that do not compile, too. One that cannot be copied or read is named, at the start"""
    with contextlib.closing(sqlite3.connect(HERE / "lacking.sqlite")) as original:
        loaded = ask("lacking", ".dump").decode()
        for (sql,) in original.execute("SELECT sql FROM sqlite_schema WHERE sql NOT NULL"):
            text = sql.removeprefix("CREATE TABLE ")
            true(text in loaded or text.replace("'", "''") in loaded or "words_" in text, f"{sql} in {loaded}")
        true(f"'value {broken_schema.NONCHARACTER}'" in loaded, "a noncharacter in a value")
    says = b"CREATE TABLE sorted(a TEXT COLLATE absent, b): no such collation"
    ask("lacking", ".backup lacking-copy.sqlite", code=QUERY, says=says)
    ask("lacking", ".sha3sum", code=QUERY, says=b"an error of the table computed")
    true(not (HERE / "lacking-copy.sqlite").exists(), "a copy that was not finished")
    for command in (".dump", ".backup broken-copy.sqlite"):
        ask("broken", command, code=QUERY, says=b"the table t\\xff\\xfe\\xc3 cannot be read: its name")
    ask("broken", ".sha3sum", code=QUERY, says=b"cannot be read: its name")
    true(b"INSERT INTO good VALUES(2,'two');" in ask("broken", ".dump good"), "a part without it")
    equal(ask("broken", ".sha3sum good"), ask("lacking", ".sha3sum good"), "the checksum of a part")


@test
def exports():
    """.export writes tables, statements and databases; it refuses an existing file without --force"""
    ask("chinook", ".export csv genre.csv Genre")
    equal((HERE / "genre.csv").read_bytes(), ask("--mode=csv", "chinook", "SELECT * FROM Genre"), "csv")
    ask("chinook", ".export json genre.json SELECT count(*) AS \"n m\" FROM Genre WHERE Name <> 'Rock; '")
    equal((HERE / "genre.json").read_bytes(), b'[{"n m":25}]\n', "json of a statement")
    ask("chinook", "SELECT 1 AS one", ".export jsonl last.jsonl")
    equal((HERE / "last.jsonl").read_bytes(), b'{"one":1}\n', "what ran last")
    ask("odd", ".export sqlite all.sqlite")
    check_copy(HERE / "all.sqlite", original("odd"), rowids=True)
    ask("odd", ".export sql all.sql")
    equal((HERE / "all.sql").read_bytes(), ask("odd", ".dump"), "sql")
    ask("odd", """.export insert names.sql "we""ird 'name" """)
    true((HERE / "names.sql").read_bytes().startswith(b"INSERT INTO \"we\"\"ird 'name\" VALUES("), "insert names its table")
    ask("chinook", ".export csv genre.csv Album", code=OUTPUT, says=b"is there already; --force replaces it")
    ask("chinook", ".backup genre.csv", code=OUTPUT, says=b"is there already")
    ask("chinook", ".export --force csv genre.csv Album")
    true((HERE / "genre.csv").read_bytes().startswith(b"AlbumId,"), "--force replaces")
    ask("chinook", ".export csv /dev/null Album", code=OUTPUT, says=b"no regular file")
    for wrong in (".export", ".export csv", ".backup", ".backup a b"):
        ask("chinook", wrong, code=USAGE, says=b"usage: ")
    ask("chinook", ".export xls file Album", code=USAGE, says=b"format xls: it is one of csv, tsv")
    ask("chinook", ".export sql file SELECT 1", code=USAGE, says=b"format sql: it takes a TABLE")
    ask("chinook", ".export csv file", code=USAGE, says=b"no statement ran yet")
    equal((HERE / "genre.csv").stat().st_mode & 0o777, 0o666 & ~current_umask(), "rights")


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def small_files():
    """Limits files to 8 KiB in the child, which acts like a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


@test
def no_space():
    """A failed write leaves neither the file nor its temporary file, and keeps the old file"""
    (HERE / "kept.csv").write_bytes(b"kept")
    exports = [f".export {rest}" for rest in ("csv none.csv Track", "sql none.sql", "--force csv kept.csv Track")]
    for command in [".backup none.sqlite", *exports]:
        process = start("chinook", command, preexec_fn=small_files)
        _, err = process.communicate(timeout=SECONDS)
        true(process.returncode > OK and err.count(b"\n") == 1, f"{command}: {process.returncode}, {err!r}")
    equal([p.name for p in HERE.glob("none*")] + [p.name for p in HERE.glob("kept.csv?*")], [], "files")
    equal((HERE / "kept.csv").read_bytes(), b"kept", "what was there")


@test
def no_space_for_a_chart():
    """A chart whose rows cannot be stored says why"""
    for kind in ("line SELECT a.TrackId, b.GenreId", "hist SELECT a.TrackId"):
        process = start("chinook", f".chart {kind} FROM Track AS a, Genre AS b", preexec_fn=small_files)
        _, err = process.communicate(timeout=SECONDS)
        equal(process.returncode, QUERY, f"exit code, which said {err!r}")
        true(b"cannot keep the rows in" in err and b"File too large" in err, f"{kind}: {err!r}")


@test
def exposed_parts():
    """A dump of a database that exposes only a part has this part, and says so; a backup is refused"""
    copy = load(ask("part", ".dump", says=b"only parts of part are exposed"), "copy.sqlite")
    chinook, part = sqlite3.connect(CHINOOK), sqlite3.connect(copy)
    equal(sorted(name for name, in part.execute("SELECT name FROM sqlite_schema")), ["Album", "Artist"], "tables")
    for table in ("Album", "Artist"):
        equal(*(c.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for c in (part, chinook)), table)
    ask("part", ".backup none.sqlite", code=QUERY, says=b"which is no backup")
    ask("part", ".export sqlite part.sqlite", says=b"only parts of part are exposed")
    equal(sqlite3.connect(HERE / "part.sqlite").execute("SELECT count(*) FROM Album").fetchone(), (347,), "rows")
    equal((HERE / "none.sqlite").exists(), False, "a file")


@test
def exposed_types():
    """The declared type of a column is the same in the copy, whatever text it contains"""
    copy = sqlite3.connect(load(ask("typed", ".dump", says=b"only parts of typed"), "copy.sqlite"))
    ask("typed", ".export sqlite typed-copy.sqlite", says=b"only parts of typed")
    for connection in (copy, sqlite3.connect(HERE / "typed-copy.sqlite")):
        equal([name for name, in connection.execute("SELECT name FROM sqlite_schema")], ["typed"], "objects")
        equal([row[0] for row in connection.execute("SELECT type FROM pragma_table_info('typed')")], TYPES, "types")
        equal(connection.execute("SELECT count(*) FROM typed").fetchone(), (2,), "rows")
    equal(list(HERE.glob("ran*")), [], "what was run")


@test
def reader_leaves():
    """A reader that closes the pipe ends the dump without a message"""
    process = start("chinook", ".dump")
    process.stdout.read(10)
    process.stdout.close()
    process.wait(SECONDS)
    equal((process.returncode, process.stderr.read()), (OUTPUT, b""), "its end")


main(service)
