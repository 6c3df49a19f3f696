#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that were written for sqlite3 do the same with sqlipc, after a change of the import and of connect().

Each function below is such a program: it gets the module and a function that connects, and returns what it saw. It runs with
sqlite3 on a file and with sqlipc on another file of the same contents; results and final contents must be equal.
"""

import contextlib
import datetime
import decimal
import enum
import functools
import itertools
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from random import Random

import sqlipc
from harness import CHINOOK, PATIENCE, PATIENT, SOURCE_ROOT, main
from python_service import PythonService, raises
from tap import equal, test

service = PythonService()
SCHEMA = """
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, born DATE, money REAL, CHECK (money >= 0));
CREATE TABLE pet(id INTEGER PRIMARY KEY AUTOINCREMENT, owner REFERENCES person ON DELETE CASCADE, name TEXT);
CREATE TABLE big(n INTEGER PRIMARY KEY, text TEXT);
INSERT INTO person VALUES (1, 'Ada', '1815-12-10', 10.5), (2, 'Grace', '1906-12-09', 20);
INSERT INTO pet(owner, name) VALUES (1, 'Cat'), (2, 'Dog');
"""


def attempt(function, *arguments):
    """Returns the result; or the class of the exception, its code's name, and its text."""
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 - compared
        text = str(error).removeprefix("row 1: ").removeprefix("row 2: ").removeprefix("row 3: ")
        return type(error).__name__, getattr(error, "sqlite_errorname", None), text


def program(function):
    """Makes a test of a program."""

    @functools.wraps(function)
    def run():
        name = function.__name__.replace("_", "-")
        path = service.add(name, SCHEMA)
        copy = service.folder / f"{name}.sqlite"
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        direct = function(sqlite3, lambda **keywords: sqlite3.connect(copy, **keywords))
        shared = function(sqlipc, lambda **keywords: sqlipc.connect(name, bus=service.address, **keywords))
        for number, (ours, theirs) in enumerate(zip(shared, direct)):
            equal(ours, theirs, f"item {number} of what the program saw")
        equal(len(shared), len(direct), "number of items")
        contents = []
        for file in (path, copy):
            with contextlib.closing(sqlite3.connect(file)) as db:
                contents.append(list(db.iterdump()))
        equal(contents[0], contents[1], "the database after the program")

    return test(run)


@program
def reading(module, connect):
    """Queries with all kinds of parameters, cursors, iteration, description"""
    db = connect()
    seen = [db.execute("SELECT * FROM person ORDER BY id").fetchall()]
    cursor = db.cursor()
    seen.append(cursor.execute("SELECT name AS n, money FROM person WHERE id = :id", {"id": 2}).fetchone())
    seen.append(cursor.description)
    seen.append(list(cursor.execute("SELECT p.name, q.name FROM person p JOIN pet q ON p.id = q.owner ORDER BY q.id")))
    seen.append(cursor.execute("SELECT * FROM pet WHERE id IN (?, ?) ORDER BY id", (1, 2)).fetchmany(5))
    seen.append((cursor.rowcount, cursor.lastrowid, cursor.arraysize))
    seen.append(cursor.execute("PRAGMA table_info(pet)").fetchall())
    seen.append(
        cursor.execute("SELECT count(*), max(id), group_concat(name) FROM (SELECT * FROM pet ORDER BY id)").fetchall()
    )
    seen.append(
        cursor.execute("WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c LIMIT 5) SELECT x FROM c").fetchall()
    )
    seen.append(cursor.execute("EXPLAIN QUERY PLAN SELECT * FROM person WHERE id = 1").fetchall()[0][3])
    seen.append(cursor.execute("VALUES (1, 'a'), (2, NULL)").fetchall())
    db.close()
    return seen


@program
def writing(module, connect):
    """INSERT, UPDATE, DELETE, REPLACE, upsert; rowcount, lastrowid, total_changes; implicit transactions"""
    db = connect()
    seen = [db.in_transaction]
    cursor = db.cursor()
    for sql, values in (
        ("INSERT INTO person VALUES (?, ?, ?, ?)", (3, "Kurt", None, 0)),
        ("INSERT INTO person(name) VALUES (?)", ("Emmy",)),
        ("UPDATE person SET money = coalesce(money, 0) + 1", ()),
        ("UPDATE person SET money = 5 WHERE id = 99", ()),
        ("DELETE FROM pet WHERE id = ?", (1,)),
        ("REPLACE INTO person VALUES (3, 'Kurt', '1906-04-28', 7)", ()),
        ("INSERT OR IGNORE INTO person(name) VALUES ('Ada')", ()),
        ("INSERT INTO person(id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET money = 100", ()),
        ("INSERT INTO pet(owner, name) SELECT id, name || '''s' FROM person", ()),
        ("CREATE INDEX by_name ON pet(name)", ()),
        ("DROP INDEX by_name", ()),
    ):
        cursor.execute(sql, values)
        seen.append((sql, cursor.rowcount, db.in_transaction, cursor.description))
    seen.append(db.total_changes)
    db.commit()
    seen.append(db.in_transaction)
    cursor.execute("INSERT INTO pet(name) VALUES ('last')")
    seen.append(cursor.lastrowid)
    db.rollback()
    cursor.executemany("INSERT INTO big VALUES (?, ?)", [(i, str(i)) for i in range(2000)])
    seen.append((cursor.rowcount, db.in_transaction))
    cursor.executemany("UPDATE big SET text = :t WHERE n = :n", ({"n": i, "t": "x"} for i in range(0, 2000, 2)))
    seen.append(cursor.rowcount)
    db.commit()
    seen.append(cursor.execute("INSERT INTO pet(name) VALUES ('a'), ('b') RETURNING id, name").fetchall())
    seen.append(cursor.execute("DELETE FROM big WHERE n < 10 RETURNING n").fetchall())
    db.commit()
    db.close()
    return seen


@program
def failures(module, connect):
    """Exceptions: their classes, names of codes, and texts; what is left of a transaction after them"""
    db = connect()
    run = db.execute
    seen = [
        attempt(run, "SELEC 1"),
        attempt(run, "SELECT * FROM nothing"),
        attempt(run, "SELECT nothing FROM person"),
        attempt(run, "SELECT nothing(1)"),
        attempt(run, "INSERT INTO person VALUES (1, 'x', NULL, 0)"),
        attempt(run, "INSERT INTO person(name) VALUES ('Ada')"),
        attempt(run, "INSERT INTO person(name) VALUES (NULL)"),
        attempt(run, "INSERT INTO person(name, money) VALUES ('y', -1)"),
        attempt(run, "INSERT INTO person(id, name) VALUES ('text', 'y')"),
        attempt(run, "SELECT ?", (1, 2)),
        attempt(run, "SELECT :a", {"b": 1}),
        attempt(run, "SELECT ?", (2**64,)),
        attempt(run, "SELECT abs(-9223372036854775807 - 1)"),
        attempt(run, "SELECT json('{')"),
        attempt(run, "CREATE TABLE person(x)"),
        attempt(run, "COMMIT") if not db.in_transaction else None,
    ]
    db.rollback()
    run("INSERT INTO person(name) VALUES ('kept')")
    seen.append(attempt(run, "INSERT INTO person(name) VALUES ('kept')")[:2])
    db.commit()
    seen.append(attempt(run, "ROLLBACK"))
    seen.append(attempt(db.executemany, "SELECT ?", [(1,)]))
    seen.append(attempt(db.cursor().fetchone))
    cursor = db.cursor()
    cursor.close()
    seen.append(attempt(cursor.execute, "SELECT 1"))
    db.close()
    seen.append(attempt(db.execute, "SELECT 1"))
    seen.append(attempt(db.cursor))
    return seen


@program
def transactions(module, connect):
    """BEGIN, savepoints, isolation_level, with blocks"""
    db = connect(isolation_level=None)
    seen = []
    for sql in (
        "BEGIN",
        "INSERT INTO pet(name) VALUES ('one')",
        "SAVEPOINT s",
        "INSERT INTO pet(name) VALUES ('two')",
        "ROLLBACK TO s",
        "RELEASE s",
        "COMMIT",
        "BEGIN EXCLUSIVE TRANSACTION",
        "DELETE FROM pet",
        "ROLLBACK TRANSACTION",
        "SAVEPOINT outer",
        "INSERT INTO pet(name) VALUES ('three')",
        "RELEASE outer",
        "BEGIN IMMEDIATE",
        "END",
    ):
        db.execute(sql)
        seen.append((sql, db.in_transaction))
    db.isolation_level = "IMMEDIATE"
    with db:
        db.execute("INSERT INTO pet(name) VALUES ('four')")
    seen.append((db.in_transaction, db.isolation_level))
    with contextlib.suppress(KeyError), db:
        db.execute("INSERT INTO pet(name) VALUES ('five')")
        raise KeyError
    seen.append(db.execute("SELECT name FROM pet ORDER BY id").fetchall())
    db.executescript("BEGIN; INSERT INTO pet(name) VALUES ('six'); COMMIT; DELETE FROM pet WHERE name = 'one';")
    db.close()
    return seen


def spell(random, word):
    """Returns a word of a statement in any case, after blanks and comments."""
    blanks = (" ", "\n", "\t", "/* ; ' */", '-- "\n', "\ufeff", "/**/", "\f")
    blank = "".join(random.choices(blanks, k=random.randint(1, 2)))
    return blank + random.choice((word, word.lower(), word.title()))


def quoted(random, name):
    """Returns the name of a savepoint as SQLite understands it, or a text that is no name."""
    twice = {quote: name.replace(quote, 2 * quote) for quote in "'\"`"}
    forms = [f"'{twice[chr(39)]}'", f'"{twice[chr(34)]}"', f"`{twice['`']}`"]
    forms += [f"[{name}]"] * ("]" not in name) + [name, name.swapcase()] * (name.isidentifier() and name.isascii())
    return random.choice(forms)


NAMES = ("s", "S", "a b", "it's", 'say "x"', "to", "savepoint", "Transaction", "ſ", "É", "é", "x]y", "", "begin", "deferred")
CONTROLS = (
    *("SAVEPOINT ?",) * 6,
    *("RELEASE ?", "RELEASE SAVEPOINT ?", "ROLLBACK TO ?", "ROLLBACK TO SAVEPOINT ?") * 2,
    *("ROLLBACK TRANSACTION TO ?", "ROLLBACK TRANSACTION TO SAVEPOINT ?", "ROLLBACK TRANSACTION ? TO SAVEPOINT ?"),
    *("BEGIN", "BEGIN TRANSACTION", "BEGIN DEFERRED", "BEGIN IMMEDIATE TRANSACTION", "BEGIN EXCLUSIVE"),
    *("BEGIN TRANSACTION ?", "COMMIT", "END", "COMMIT TRANSACTION", "END TRANSACTION", "END TRANSACTION ?", "ROLLBACK"),
    *("ROLLBACK TRANSACTION", "ROLLBACK TRANSACTION ?"),
    *("BEGIN ?", "COMMIT ?", "ROLLBACK ?", "SAVEPOINT", "RELEASE", "RELEASE SAVEPOINT", "ROLLBACK TO", "SAVEPOINT ? ?"),
    *("BEGIN IMMEDIATE DEFERRED", "ROLLBACK SAVEPOINT ?", "RELEASE TO ?", "COMMIT TO ?", "END TRANSACTION TRANSACTION"),
)


@program
def control(module, connect):
    """Statements about transactions in any form: names in quotes, cases, comments, errors"""
    random, seen = Random(1), []
    for number in range(150):
        db = connect(isolation_level=random.choice((None, "", "IMMEDIATE")))
        names = random.sample(NAMES, 2)
        for _ in range(random.randint(4, 12)):
            form = random.choice((*CONTROLS, *("INSERT INTO big(text) VALUES ('x')",) * 10))
            sql = form
            if form[0] != "I":
                words = [quoted(random, random.choice(names)) if word == "?" else word for word in form.split()]
                sql = "".join([words[0], *(spell(random, word) if word.isupper() else f" {word}" for word in words[1:])])
                sql = random.choice(("", " ", "/* */", ";")) + sql + random.choice(("", ";", " ; -- end", ";/* end */"))
            done = attempt(db.execute, sql)
            done = done[:2] if isinstance(done, tuple) else None
            rows = db.execute("SELECT count(*) FROM big").fetchone()
            seen.append((number, sql, done, db.in_transaction, rows))
        db.close()
        db = connect()
        db.execute("DELETE FROM big")
        db.commit()
        db.close()
    return seen


@test
def control_of_readers():
    """The same without the right to write, as with sqlite3 on a file that is open for reading"""
    random = Random(4)
    # After BEGIN, a text that is no statement counts as one that writes, so it gets another error.
    forms = [form for form in CONTROLS[:-10] if "IMMEDIATE" not in form and "EXCLUSIVE" not in form]
    for kind, journal, keys in (("all", "wal", {}), ("part", "wal", {"Expose": "big"}), ("old", "delete", {})):
        path = service.add(kind, SCHEMA + "INSERT INTO big(text) VALUES ('a'), ('b');", journal)
        service.database(kind, Path=path, Mode="read-only", **keys)
        service.driver.manager("Reload")
        for _ in range(40):
            level = random.choice((None, ""))
            ours = service.connect(kind, isolation_level=level)
            theirs = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=level)
            names, script = random.sample(NAMES, 2), []
            with contextlib.closing(ours), contextlib.closing(theirs):
                for _ in range(random.randint(4, 15)):
                    words = [quoted(random, random.choice(names)) if w == "?" else w for w in random.choice(forms).split()]
                    script.append(random.choice((" ".join(words), "SELECT count(*) FROM big")))
                    outcomes = []
                    for db in (ours, theirs):
                        done = attempt(lambda db=db: db.execute(script[-1]).fetchall())
                        outcomes.append((done[:2] if isinstance(done, tuple) else done, db.in_transaction))
                    equal(outcomes[0], outcomes[1], f"{kind}: {script}")


@test
def savepoints_of_readers_with_temp_tables():
    """Savepoints of a transaction that reads are still there when it gets TEMP tables"""
    path = service.add("scratch", SCHEMA)
    service.database("scratch", Path=path, Mode="read-only")
    service.driver.manager("Reload")
    for sqls in (
        ("SAVEPOINT s", "SELECT count(*) FROM big", "CREATE TEMP TABLE x(a)", "SAVEPOINT t", "INSERT INTO x VALUES (1)",
         "ROLLBACK TO t", "SELECT * FROM x", "ROLLBACK TO s", "SELECT * FROM x", "RELEASE s"),
        ("BEGIN", "SAVEPOINT s", "SAVEPOINT t", "RELEASE t", "CREATE TEMP TABLE x(a)", "RELEASE t", "RELEASE s", "COMMIT",
         "SAVEPOINT s", "INSERT INTO x VALUES (1)", "ROLLBACK TO s", "SELECT * FROM x", "RELEASE s", "SELECT * FROM x"),
        ("BEGIN", *("SAVEPOINT s", "RELEASE s") * 5000, "SELECT count(*) FROM big", "COMMIT"),
    ):  # fmt: skip
        seen = []
        for connect in (lambda: service.connect("scratch", isolation_level=None),
                        lambda: sqlite3.connect(path, isolation_level=None)):  # fmt: skip
            with contextlib.closing(connect()) as db:
                seen.append([(attempt(lambda sql=sql: db.execute(sql).fetchall()), db.in_transaction) for sql in sqls])
        equal(seen[0], seen[1], sqls[:20])


PIECES = (
    *";;;;   \n\t\f\r\v'\"`[](),.:@$?-/*#\\_é\ufeff19",
    *"SELECT CREATE TEMP temporary Trigger BEGIN END end EXPLAIN -- /* */ 'a;b' \"c;d\" `e;` [f;] ''".split(),
    *("x'00'", "1e5", ":end", "?1", ";:create", "CREATE ", "TRIGGER ", "EXPLAIN ", " END ", "EXPLAIN 1.CREATE TRIGGER "),
    "CREATE TRIGGER t AFTER INSERT ON big BEGIN SELECT 1;",
)


@test
def complete_statements():
    """complete_statement() says what sqlite3 says, for all texts"""
    random, n_complete = Random(2), 0
    for _ in range(20000):
        sql = "".join(random.choices(PIECES, k=random.randint(1, 12))) + random.choice(("", ";", "; END;", "--", "/*", "'"))
        expected = sqlite3.complete_statement(sql)
        n_complete += expected
        equal(sqlipc.complete_statement(sql), expected, repr(sql))
    equal(2000 < n_complete < 18000, True, f"complete texts: {n_complete}")


EXPRESSIONS = (
    *":a @a $a :b ? ?1 ?3 :é :😀 $a::b(c) $::a @a$ :1 $a(:b) ':a' \":a\" `?` [:a] x'00' '' 1.5 1e5 .5 -1 a.1 1a".split(),
    *("'it''s :a'", "/* :a */ 1", "1 -- ?\n", "'--' ", "'/*' ", "1; SELECT 1", "ſ", "replace", '"insert"'),
    *("$a( b)", ":", "$a(b"),
)


@program
def tokens(module, connect):
    """Parameters, quotes, comments and numbers of a statement, and the statements of a script"""
    random, seen = Random(3), []
    named = {name: name for name in ("a", "b", "é", "😀", "a::b(c)", "::a", "a$", "1", "a(:b)")}
    db = connect(isolation_level=None)
    for _ in range(400):
        sql = random.choice(("SELECT ", "select/**/", "WITH replace(a) AS (VALUES(1)) SELECT "))
        sql += ", ".join(random.choices(EXPRESSIONS, k=random.randint(1, 4)))
        sql += random.choice(("", ";", " -- ?", "; /* ? */", ";;", "; /* ; */ ;"))
        for parameters in ((), (1,), (1, 2), named):
            done = attempt(lambda sql=sql, parameters=parameters: db.execute(sql, parameters).fetchall())
            # A statement may have several errors, of which sqlite3 finds another one first.
            seen.append((sql, parameters, "refused" if isinstance(done, tuple) else done))
    db.execute("CREATE TABLE log(a)")
    for _ in range(100):
        texts = random.choices(
            (
                "INSERT INTO log VALUES (';''\"`[')",
                'INSERT INTO log SELECT 1 AS ";--" -- ;',
                "INSERT INTO log VALUES (1) /* ; -- */",
                "DROP TRIGGER IF EXISTS t;CREATE TRIGGER t AFTER INSERT ON big BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; END",
                "SAVEPOINT [a;b] ; INSERT INTO log VALUES(2); ROLLBACK TO 'A;B' ; RELEASE `a;b`",
                "-- only ;",
                "/* ; */",
                "",
            ),
            k=random.randint(1, 5),
        )
        script = random.choice((";", " ;\n", "\n;;", ";/* ; */")).join(text + "\n" for text in texts)
        seen.append((script, attempt(lambda script=script: db.executescript(script) and None)))
        seen.append(db.execute("SELECT a, count(*) FROM log GROUP BY a ORDER BY a").fetchall())
    db.executescript("DELETE FROM log; INSERT INTO log VALUES (?); INSERT INTO log SELECT ?2 WHERE :a IS NULL")
    seen.append(db.execute("SELECT * FROM log").fetchall())
    db.close()
    return seen


@program
def rolled_back_by_sqlite(module, connect):
    """After ON CONFLICT ROLLBACK and RAISE(ROLLBACK) no transaction is open, and the next statement works"""
    db = connect()
    db.executescript(
        "CREATE TABLE own(a UNIQUE ON CONFLICT ROLLBACK, b);"
        "CREATE TRIGGER tr BEFORE DELETE ON own BEGIN SELECT RAISE(ROLLBACK, 'no'); END; INSERT INTO own VALUES (0, 0)"
    )
    db.close()
    seen = []
    for number, level in enumerate((None, "", "IMMEDIATE")):
        db = connect(isolation_level=level)
        for begin in ("BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT s", None):
            for failing in (
                "INSERT INTO own VALUES (0, 1)",
                "INSERT OR ROLLBACK INTO person(name) VALUES ('Ada')",
                "UPDATE own SET a = 0",
                "DELETE FROM own",
                "INSERT OR ABORT INTO own VALUES (0, 1)",
                "INSERT INTO person(name) VALUES ('Ada')",
                "INSERT OR FAIL INTO person(name) VALUES ('Ada')",
            ):
                if begin:
                    db.execute(begin)
                db.execute("INSERT OR REPLACE INTO own VALUES (?, 'lost or kept')", (number + 1,))
                for sql in (failing, "SELECT count(*) FROM own", "INSERT INTO pet(name) VALUES ('x')", "RELEASE s"):
                    done = attempt(lambda sql=sql: db.execute(sql).fetchall())
                    seen.append((level, begin, sql, done, db.in_transaction))
                seen.append((attempt(db.commit), db.in_transaction, db.execute("SELECT * FROM own").fetchall()))
        db.close()
    return seen


class Fake(str):
    pass


@program
def smaller_differences(module, connect):
    """What CPython's own tests try: factories, comments at the end, trace callbacks, adapters of base types, empty values"""

    class Connection(module.Connection):
        pass

    def connection(*arguments, **keywords):
        return Connection(*arguments, **keywords)

    seen = []
    for factory in (Connection, connection):
        db = connect(factory=factory)
        seen.append(type(db) is Connection)
        db.close()
    db = connect(detect_types=module.PARSE_DECLTYPES | module.PARSE_COLNAMES)
    for sql in ("select 1; /*", "select 1; --", "select 1; /* x */", "select 1 /*", "select 1; // x", "select 1; /", "--"):
        done = attempt(lambda sql=sql: db.execute(sql).fetchall())
        seen.append((sql, "refused" if isinstance(done, tuple) else done))

    def failing(sql):
        raise ZeroDivisionError

    def shown(unraisable):
        seen.append((unraisable.exc_type, unraisable.object is failing))

    hook, sys.unraisablehook = sys.unraisablehook, shown
    try:
        for is_shown in (False, True):
            module.enable_callback_tracebacks(is_shown)
            db.set_trace_callback(failing)
            seen.append(db.execute("SELECT 1").fetchall())
        db.set_trace_callback(None)
    finally:
        module.enable_callback_tracebacks(False)
        sys.unraisablehook = hook
    values = (5, 1.5, "s", b"b", bytearray(b"x"), None, memoryview(b"y"), True)
    try:
        for value in values[:-1]:
            module.register_adapter(type(value), lambda value: f"adapted {value!s:.5}")
            seen.append(db.execute("SELECT ?, ?, ?, ?, ?, ?, ?, ?", values).fetchall())
    finally:
        for key in list(module.adapters):
            if (key[0] if isinstance(key, tuple) else key) in {type(value) for value in values}:
                del module.adapters[key]
    seen.append(db.execute("SELECT ?, ?", (5, "s")).fetchall())
    module.register_converter("kept", lambda data: (data,))
    sql = """SELECT x'' AS "a [kept]", '' AS "b [kept]", NULL AS "c [kept]", 1.5 AS "d [kept]", x'00' AS "e [KEPT]" """
    seen.append(db.execute(sql).fetchall())
    db.row_factory = module.Row
    row = db.execute("SELECT 1 AS a, 2 AS b").fetchone()
    seen.append((isinstance(row, Sequence), issubclass(module.Row, Sequence), isinstance(row, (tuple, Mapping))))
    seen.append((list(reversed(row)), 1 in row, 3 in row, {**row}, [*row]))
    for key in (2**1000, 1.5, None, "c", -3, 2):
        seen.append(attempt(lambda key=key: row[key]))
    for arguments in ((), (db.cursor(), []), (Fake(), ())):
        seen.append(attempt(lambda arguments=arguments: module.Row(*arguments))[0])
    db.close()
    return seen


@program
def traces(module, connect):
    """A trace callback also sees BEGIN, COMMIT and ROLLBACK of the module, before or after the statement in its place"""
    seen = []
    for level in ("", "IMMEDIATE", None):
        db = connect(isolation_level=level)
        db.set_trace_callback(seen.append)
        db.execute("INSERT INTO pet(name) VALUES ('a')")
        db.commit()
        db.commit()
        with contextlib.suppress(ZeroDivisionError), db:
            db.execute("SELECT 1").fetchall()
            db.execute("DELETE FROM pet WHERE name = 'a'")
            raise ZeroDivisionError
        db.execute("DELETE FROM pet WHERE name = 'a'")
        db.executescript("BEGIN; SELECT 2; COMMIT;")
        db.execute("BEGIN")
        db.rollback()
        db.execute("CREATE TABLE traced(a, b)")
        rows = [(1, "it's"), (-0.0, b"\0\xff"), (True, None), (1e15, "a\0b"), (0.1, "ä"), (float("inf"), 1e300)]
        db.executemany("INSERT INTO traced VALUES (?2, ?1)", iter(rows))
        db.executemany("INSERT INTO traced VALUES (:a, '?')", [{"a": datetime.date(2026, 1, 2)}])
        db.executemany("DELETE FROM traced WHERE a = ?", [])
        db.execute("SELECT /* ? */ $a, @b, :a -- ?", {"a": 1, "b": bytearray(b"x")}).fetchall()
        for wrong in ((), (1, 2), {"b": 1}, (object(),), 5):
            seen.append(attempt(lambda wrong=wrong: db.execute("SELECT :a", wrong))[0])
        db.execute("DROP TABLE traced")
        db.commit()
        db.close()
    return [sql.rstrip(";").strip() for sql in seen]


@program
def limits(module, connect):
    """setlimit() and getlimit(), for the length of SQL and the number of parameters; and what has little use"""
    db, seen = connect(), []
    length, variables = module.SQLITE_LIMIT_SQL_LENGTH, module.SQLITE_LIMIT_VARIABLE_NUMBER
    before = db.getlimit(length)
    seen.append((db.setlimit(length, 20) == before, db.setlimit(length, -1), db.getlimit(length)))
    for sql in ("SELECT 1".ljust(20), "SELECT 2".ljust(21), "SELECT 'äöüäöü'", "SELECT 'äöüäö'", "SELECT 1".ljust(20)):
        seen.append(attempt(lambda sql=sql: db.execute(sql).fetchall()))
        seen.append(attempt(lambda sql=sql: db.executescript(sql).fetchall()))
        seen.append(attempt(lambda sql=sql: db(sql))[:1] if len(sql) > 20 else None)
    seen.append(attempt(lambda: db.executemany("DELETE FROM pet WHERE id = ?", [(1,)])))
    db.setlimit(length, 2**31 - 1)
    seen.append(db.getlimit(length) == before)
    db.setlimit(variables, 2)
    for sql, values in (("SELECT ?, ?", (1, 2)), ("SELECT ?, ?, ?", (1, 2, 3)), ("SELECT :a, :b, :a", {"a": 1, "b": 2})):
        seen.append(attempt(lambda sql=sql, values=values: db.execute(sql, values).fetchall()))
    for category in (-1, 12, 1111):
        seen += [attempt(db.getlimit, category), attempt(db.setlimit, category, 0)]
    seen += [attempt(kind)[0] for kind in (module.Blob, type(db("SELECT 1")))]
    seen += [attempt(db, "SELECT '\ud8ff'")[0], attempt(db, None)[0], attempt(db.backup, db)]
    if hasattr(module, "enable_shared_cache") and module is sqlipc:  # Python 3.12 has it no more
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            module.enable_shared_cache(True)
        equal([each.category for each in found], [DeprecationWarning], "warnings")
    other = connect()
    other.execute("INSERT INTO pet(name) VALUES ('a')")
    seen.append(attempt(db.backup, other)[:2])
    other.close()
    seen += [attempt(db.backup, other), attempt(other)]
    db.close()
    return seen


@program
def protocols(module, connect):
    """adapt() and its protocols, a cursor that its own iterator uses, odd levels, a connection that is not initialised"""

    class Protocol:
        @staticmethod
        def __adapt__(value):
            if value == 1:
                raise TypeError
            return None if value == 2 else f"by __adapt__: {value}"

    class Conform:
        def __init__(self, result):
            self.result = result

        def __conform__(self, protocol):
            if isinstance(self.result, type):
                raise self.result
            return self.result

    db = connect()
    cursor = db.cursor()
    seen = [attempt(module.adapt, value, *more) for value in (1, 2, 3) for more in ((), (Protocol,), (Protocol, "other"))]
    for result in ("text", None, TypeError, ZeroDivisionError):
        seen += [attempt(module.adapt, Conform(result)), attempt(module.adapt, Conform(result), module.PrepareProtocol, 5)]
        seen.append(attempt(lambda result=result: cursor.execute("SELECT ?", (Conform(result),)).fetchall())[0])

    def rows():
        cursor.execute("SELECT 1")
        yield (1, "x")

    seen.append(attempt(cursor.executemany, "INSERT INTO big VALUES (?, ?)", rows()))
    seen.append(cursor.execute("SELECT count(*) FROM big").fetchall())
    db.rollback()

    class Level(str):
        def upper(self):
            raise ZeroDivisionError

    db.isolation_level = Level("immediate")
    seen.append(db.isolation_level)
    db.close()
    blank = module.Connection.__new__(module.Connection)
    for name in ("isolation_level", "in_transaction", "total_changes"):
        seen.append(attempt(getattr, blank, name))
    seen.append(attempt(blank.close))
    return seen


@test
def factory_by_position():
    """connect() takes `factory` as its sixth argument, too"""

    class Connection(sqlipc.Connection):
        pass

    with contextlib.closing(sqlipc.connect("notes", 5.0, 0, "", True, Connection, bus=service.address)) as db:
        equal(type(db) is Connection, True, "class")


@program
def loops(module, connect):
    """A loop over rows that writes and commits within it"""
    db = connect()
    db.executemany("INSERT INTO big VALUES (?, ?)", ((i, "x" * 100) for i in range(5000)))
    db.commit()
    n = 0
    for number, _ in db.execute("SELECT n, text FROM big WHERE n % 100 = 0 ORDER BY n"):
        db.execute("UPDATE big SET text = ? WHERE n = ?", (f"changed {number}", number))
        if number % 1000 == 0:
            db.commit()
        n += 1
    db.commit()
    rest = [sum(len(row[1]) for row in db.execute("SELECT * FROM big")), n]
    first, second = db.execute("SELECT n FROM big ORDER BY n"), db.execute("SELECT n FROM big ORDER BY n DESC")
    pairs = [(a, b) for (a,), (b,) in zip(first, second)][:3]
    db.close()
    return rest, pairs


class Colour(enum.IntEnum):
    RED = 1


class Amount:
    def __init__(self, text):
        self.number = decimal.Decimal(text)

    def __conform__(self, protocol):
        return str(self.number)


@program
def objects(module, connect):
    """Adapters, converters, Row, text_factory, row_factory"""
    module.register_adapter(decimal.Decimal, str)
    module.register_converter("decimal", lambda text: decimal.Decimal(text.decode()))
    db = connect(detect_types=module.PARSE_DECLTYPES | module.PARSE_COLNAMES)
    db.row_factory = module.Row
    seen = []
    for row in db.execute("SELECT id, born, money FROM person ORDER BY id"):
        seen.append((row["ID"], row["born"], row[2], row.keys(), len(row), tuple(row), row[1:]))
        seen.append(attempt(lambda row=row: row["nothing"]))
    values = (
        Colour.RED,
        Amount("1.50"),
        decimal.Decimal("2.25"),
        datetime.date(2026, 1, 2),
        True,
        bytearray(b"x"),
        datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
    )
    seen.append(tuple(db.execute("SELECT ?, ?, ?, ?, ?, ?, ?", values).fetchone()))
    seen.append(
        tuple(
            db.execute('SELECT \'7.5\' AS "v [decimal]", \'2026-01-02 03:04:05\' AS "t [timestamp]", 5 AS "n[x]"').fetchone()
        )
    )
    seen.append([column[0] for column in db.execute('SELECT 1 AS "v [decimal]", 2 AS "n[x]"').description])
    db.row_factory = None
    for factory in (bytes, bytearray, lambda text: text.decode() + "!"):
        db.text_factory = factory
        seen.append(db.execute("SELECT name FROM person WHERE id = 1").fetchone())
    db.text_factory = str
    seen.append(attempt(lambda: db.execute("SELECT CAST(x'e9' AS TEXT) AS broken").fetchone()))

    class Dict(module.Cursor):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.row_factory = lambda cursor, row: dict(zip((column[0] for column in cursor.description), row))

    seen.append(db.cursor(Dict).execute("SELECT id, name FROM person ORDER BY 1").fetchall())

    class Own(module.Connection):
        def cursor(self, factory=Dict):
            return super().cursor(factory)

    with contextlib.closing(connect(factory=Own)) as own:
        seen.append(own.execute("SELECT 1 AS one").fetchone())
    db.close()
    return seen


@program
def copying(module, connect):
    """iterdump() and backup() to sqlite3"""
    db = connect()
    dump = list(db.iterdump())
    with contextlib.closing(sqlite3.connect(":memory:")) as target:
        db.backup(target)
        rows = target.execute("SELECT * FROM person").fetchall()
        sequence = target.execute("SELECT * FROM sqlite_sequence").fetchall()
    db.close()
    return dump, rows, sequence


@contextlib.contextmanager
def crowded():
    """A service with the default limits, except that no program is late because the machine is."""
    with PythonService(limits=PATIENT) as crowd:
        tables = "CREATE TABLE hit(id INTEGER PRIMARY KEY, n); CREATE TABLE sum(n); INSERT INTO sum VALUES(0)"
        crowd.path = crowd.add("crowd", tables)
        yield crowd


@test
def many_threads():
    """64 threads that answer 800 requests, each with its own connection and transaction: none fails, no row is lost"""
    n_threads, n_requests = 64, 800
    requests, failures = iter(range(n_requests)), []
    with crowded() as crowd:

        def answer(request):
            with contextlib.closing(crowd.connect("crowd")) as db:
                with db:
                    db.execute("INSERT INTO hit(n) VALUES (?)", (request,))
                    db.execute("UPDATE sum SET n = n + 1")
                db.execute("BEGIN")
                n = db.execute("SELECT count(*) FROM hit").fetchone()
                equal(db.execute("SELECT n FROM sum").fetchone(), n, "a snapshot")
                db.execute("COMMIT")

        def work():
            while (request := next(requests, None)) is not None:
                try:
                    answer(request)
                except Exception as error:  # noqa: BLE001 - counted
                    failures.append(repr(error))

        threads = [threading.Thread(target=work) for _ in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(failures, [], "failures")
        with contextlib.closing(sqlite3.connect(crowd.path)) as db:
            equal(db.execute("SELECT n FROM hit ORDER BY n").fetchall(), [(n,) for n in range(n_requests)], "rows")
            equal(db.execute("SELECT n FROM sum").fetchone(), (n_requests,), "sum")


START = """
import sys, sqlipc
db = sqlipc.connect("crowd", bus=sys.argv[1], timeout=float(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
script = ["CREATE TABLE IF NOT EXISTS job(id INTEGER PRIMARY KEY, name TEXT)",
          "CREATE INDEX IF NOT EXISTS job_name ON job(name)",
          "CREATE VIEW IF NOT EXISTS jobs AS SELECT name FROM job", "INSERT INTO job(name) VALUES ('one')"]
db.executescript(";".join(["BEGIN", *script, "COMMIT"]))
with db:
    db.execute("BEGIN IMMEDIATE")
    for sql in script:
        db.execute(sql)
db.close()
"""


@test
def many_processes():
    """32 processes that start at once run their schema script in a transaction: all succeed"""
    with crowded() as crowd:
        command = [sys.executable, "-c", START, crowd.address, str(PATIENCE)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with contextlib.ExitStack() as stack:
            children = [stack.enter_context(subprocess.Popen(command, **pipes)) for _ in range(32)]
            for child in children:
                equal(child.stdout.readline(), b"ready\n", "a process")
            for child in children:
                child.stdin.write(b"\n")
                child.stdin.flush()
            ends = [(*child.communicate(timeout=PATIENCE), child.returncode) for child in children]
        equal([end for end in ends if end != (b"", b"", 0)], [], "processes that failed")
        with contextlib.closing(sqlite3.connect(crowd.path)) as db:
            equal(db.execute("SELECT count(*) FROM jobs").fetchone(), (64,), "rows")


@test
def at_the_limit():
    """More open transactions than TransactionsMax=: SQLITE_BUSY, with the text of sqlite3 and the key"""
    with PythonService(limits=PATIENT | {"TransactionsMax": 2}) as small, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(contextlib.closing(small.connect(isolation_level=None))) for _ in range(4)]
        for db in connections[:2]:
            db.execute("BEGIN")
            db.execute("SELECT * FROM note").fetchall()
        connections[2].execute("BEGIN")
        error = raises(sqlipc.OperationalError, connections[2].execute, "SELECT * FROM note")
        equal(error.sqlite_errorname, "SQLITE_BUSY", str(error))
        equal(str(error).startswith("database is locked: ") and "TransactionsMax=" in str(error), True, str(error))
        connections[0].execute("COMMIT")
        connections[3].execute("BEGIN IMMEDIATE")
        equal(connections[2].in_transaction, True, "the one that was refused may try again")
        connections[1].execute("COMMIT")
        connections[2].execute("SELECT * FROM note")


# A program for SQLite sends some of these first. Where the service ignores a setting, this is the value that it has.
# Without a number PRAGMA optimize may make a table in SQLite 3.46.
PRAGMAS = """foreign_keys=ON;foreign_keys;journal_mode=WAL;journal_mode;synchronous=NORMAL;busy_timeout;busy_timeout=5000
busy_timeout;busy_timeout(250);busy_timeout;busy_timeout=-1;busy_timeout;cache_size=-64000;temp_store=MEMORY;temp_store(2)
recursive_triggers=OFF;case_sensitive_like=0;query_only=false;query_only;defer_foreign_keys=OFF;defer_foreign_keys;optimize=0
wal_autocheckpoint=1000;encoding='UTF-8';encoding;page_size=4096;page_size;auto_vacuum=NONE;auto_vacuum
legacy_alter_table=OFF;read_uncommitted=0;read_uncommitted;locking_mode=NORMAL;locking_mode;secure_delete;secure_delete=1
threads=0;threads;trusted_schema=ON;trusted_schema;cell_size_check=OFF;analysis_limit=0;analysis_limit;soft_heap_limit
automatic_index=ON;automatic_index;reverse_unordered_selects=0;count_changes=0;full_column_names=0;short_column_names=1
empty_result_callbacks=0;shrink_memory;journal_size_limit=-1;fullfsync=0;checkpoint_fullfsync=0;writable_schema=OFF
ignore_check_constraints=OFF;cache_spill=ON;no_such_pragma;no_such_pragma=1;main.journal_mode=wal;temp_store_directory
table_info(person);index_list(person);foreign_key_list(pet);foreign_key_check;integrity_check;quick_check(1);collation_list
user_version=5;user_version;application_id(6);application_id;freelist_count;page_count;schema_version;table_list
foreign_keys=0"""


@program
def pragmas(module, connect):
    """The PRAGMAs with which programs begin, alone and in a transaction"""
    seen = []
    db = connect(isolation_level=None)
    db.execute("PRAGMA foreign_keys = ON")
    for within in (False, True):
        if within:
            db.execute("BEGIN")
        for pragma in re.split("[;\n]", PRAGMAS):
            fixed = ("synchronous=", "journal_mode=", "temp_store", "main.journal", "defer_foreign_keys=")
            if within and pragma.startswith(fixed):
                continue  # errors of SQLite, or of the service: the value cannot change within a transaction
            if not within and pragma == "foreign_keys=0":
                continue
            cursor = db.execute(f"PRAGMA {pragma}")
            rows = cursor.fetchall()
            seen.append((pragma, within, rows, cursor.description, cursor.rowcount, db.in_transaction))
    db.execute("COMMIT")
    return seen


@program
def vacuum(module, connect):
    """VACUUM, in the modes of a connection and in transactions: numbers, pages, errors"""
    seen = []
    counts = "SELECT last_insert_rowid(), changes(), total_changes()"
    texts = ("VACUUM", "vacuum main", "VACUUM temp", '/* a */ VACUUM "MAIN" -- b', "; VACUUM ;", "VACUUM nowhere",
             "VACUUM main.big", "VACUUM 5", "EXPLAIN QUERY PLAN VACUUM")  # fmt: skip

    def note(db, sql, parameters=()):
        cursor = db.cursor()
        result = attempt(lambda: cursor.execute(sql, parameters).fetchall())
        numbers = (cursor.rowcount, cursor.lastrowid, cursor.description)
        seen.append((sql, result, numbers, db.in_transaction, db.total_changes, db.execute(counts).fetchall()))

    for isolation_level in ("", "IMMEDIATE", None):
        db = connect(isolation_level=isolation_level)
        db.executemany("INSERT INTO big(text) VALUES (?)", [("x" * 2000,)] * 300)
        db.commit()
        note(db, "DELETE FROM big WHERE n % 3 > 0")
        for sql in texts:  # in the transaction that DELETE has begun, or in none
            note(db, sql)
        db.commit()
        seen.append(db.execute("PRAGMA freelist_count").fetchone()[0] > 0 or isolation_level is None)
        note(db, "INSERT INTO big(n, text) VALUES (?, 'last')", (999 + len(seen),))
        db.commit()
        for sql in texts:
            note(db, sql)
        seen.append(db.execute("PRAGMA freelist_count").fetchone())
        seen.append(db.execute("PRAGMA integrity_check").fetchall())
        for begin in ("BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT a"):
            note(db, begin)
            note(db, "VACUUM")
            note(db, "SELECT count(*) FROM big")
            note(db, "VACUUM")
            note(db, "INSERT INTO big(text) VALUES ('kept')")
            note(db, "VACUUM main")
            note(db, "COMMIT" if begin.startswith("BEGIN") else "RELEASE a")
        db.execute("PRAGMA user_version = 7")
        db.execute("CREATE TEMP TABLE vacuum_db AS SELECT 1 AS a")
        note(db, "VACUUM")
        note(db, "SELECT * FROM vacuum_db")
        note(db, "DROP TABLE vacuum_db")
        db.commit()
        script = "DELETE FROM big WHERE text = 'kept'; VACUUM; INSERT INTO big VALUES (5000, 'a')"
        seen.append(isinstance(attempt(db.executescript, script), tuple))
        db.commit()
        seen.append(attempt(db.executescript, "BEGIN; DELETE FROM big; VACUUM; COMMIT"))
        seen.append((db.in_transaction, attempt(db.rollback)))
        seen.append(db.execute("SELECT count(*), sum(n) FROM big").fetchall())
        note(db, "DELETE FROM big WHERE n = 5000")
        db.commit()
        db.execute("VACUUM")
        db.close()
    return seen


TIMEOUTS = """0|500|+500|-500|- 5|0x10|-0x10|0X1f|1.5|1e3|.5|-1.5|'300'|"300"|' 300'|'+7'|'٣'|[8]|`9`|fast|ON|٣|2147483647
2147483648|99999999999|0x7fffffff|0x80000000|x'31'|5 6|NULL|?|?1|:a|(|)|=|= 5|user_version|main|/*c*/5|''|007|1_000|(5)|5)|'5
5--|+|- -5|main.busy_timeout|DELETE"""
BUSY_TIMEOUTS = (
    *("busy_timeout", "BUSY_TIMEOUT", "main.busy_timeout", '"busy_timeout"', "[busy_timeout]", "`busy_timeout`"),
    *("'busy_timeout'", "\"main\" . 'busy_timeout'", "main./*.=(*/[busy_timeout]", "/*=*/busy_timeout--=\n"),
    *("no.busy_timeout", "[=busy_timeout]", "main..busy_timeout", ".busy_timeout", "main.", "busy_timeout.busy_timeout"),
)


@program
def busy_timeouts(module, connect):
    """All ways to write PRAGMA busy_timeout"""
    seen = []
    db = connect(isolation_level=None)
    values = ["", ";", "=", "(", "= ;", "5", "= 5;"]
    values += [form.format(value) for value in re.split("[|\n]", TIMEOUTS) for form in ("= {}", "({})")]
    for name, value in itertools.product(BUSY_TIMEOUTS, values):
        db.execute("PRAGMA busy_timeout = 3000")
        cursor, sql = db.cursor(), f"PRAGMA {name}{value}"
        result = attempt(lambda: cursor.execute(sql, (5,) * ("?" in sql or ":" in sql)).fetchall())
        timeout = db.execute("PRAGMA busy_timeout").fetchall()
        if isinstance(result, tuple):  # sqlite3 may have set it before it has found the error
            timeout = [(3000,)] if module is sqlite3 else timeout
        seen.append((sql, result, cursor.description, timeout))
    seen.append(attempt(db.execute, "PRAGMA busy_timeout = 5", (5,)))
    return seen


@program
def no_ops(module, connect):
    """Statements whose work is done already, alone, in a transaction and in a script"""
    seen = []
    for keywords in ({}, {"isolation_level": None}, {"isolation_level": "IMMEDIATE"}):
        db = connect(**keywords)
        for begin in (None, "BEGIN", "BEGIN IMMEDIATE"):
            if begin:
                db.execute(begin)
            for sql in (
                "CREATE TABLE IF NOT EXISTS person(id)",
                "CREATE INDEX IF NOT EXISTS sqlite_autoindex_person_1 ON person(id)",
                "DROP TABLE IF EXISTS nowhere",
                "DROP VIEW IF EXISTS nowhere",
                "DROP TRIGGER IF EXISTS nowhere",
                "DROP INDEX IF EXISTS nowhere",
            ):
                cursor = db.cursor()
                done = attempt(cursor.execute, sql)
                seen.append((sql, begin, done[0] if isinstance(done, tuple) else None))
                seen.append((cursor.description, cursor.rowcount, db.in_transaction, db.total_changes))
            db.commit()
        db.executescript("PRAGMA foreign_keys = ON; DROP TABLE IF EXISTS nowhere; CREATE TABLE IF NOT EXISTS big(n);")
        db.close()
    return seen


@test
def without_rights():
    """On a database that it may only read, a program may have no work to do"""
    with contextlib.closing(service.connect("chinook")) as db:
        for sql in ("CREATE TABLE IF NOT EXISTS Artist(x)", "DROP TABLE IF EXISTS nowhere", "PRAGMA foreign_keys=OFF"):
            equal(db.execute(sql).fetchall(), [], sql)
        for name, value in (("foreign_keys", 0), ("synchronous", 3)):
            equal(db.execute(f"PRAGMA {name}").fetchall(), [(value,)], name)
        db.executescript("PRAGMA query_only = ON; DROP VIEW IF EXISTS nowhere; CREATE TABLE IF NOT EXISTS Album(x);")
        error = raises(sqlipc.OperationalError, db.execute, "CREATE TABLE IF NOT EXISTS new(x)")
        equal(error.sqlite_errorname, "SQLITE_READONLY", "error")


@test
def the_manual_lists_pragmas():
    """sqlipc-sql(7) says what each PRAGMA of this SQLite means here"""
    text = (SOURCE_ROOT / "docs/man/sqlipc-sql.7.rst").read_text()
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        missing = [name for (name,) in db.execute("PRAGMA pragma_list") if f"**{name}**" not in text]
    equal(missing, [], "PRAGMAs that are not on the page")


@test
def no_turn_to_write():
    """Neither statements without work nor PRAGMAs wait while another program writes"""
    with contextlib.closing(service.connect(isolation_level=None)) as db:
        with contextlib.closing(sqlite3.connect(service.notes)) as other:
            other.execute("BEGIN IMMEDIATE")
            for sql in ("CREATE TABLE IF NOT EXISTS note(x)", "DROP TABLE IF EXISTS nowhere", "PRAGMA synchronous=OFF"):
                equal(db.execute(sql).fetchall(), [], sql)
            error = raises(sqlipc.OperationalError, db.execute, "DROP TABLE IF EXISTS note")
        equal(error.sqlite_errorname, "SQLITE_BUSY", "error")


@test
def no_work_by_an_old_schema():
    """A statement has no work only by the schema of the file: if a lock hides that, the database is locked"""
    path = service.add("hidden", "CREATE TABLE gone(x)", journal="delete")
    with contextlib.closing(service.connect("hidden", isolation_level=None, timeout=0)) as db:
        equal(db.execute("CREATE TABLE IF NOT EXISTS gone(x)").fetchall(), [], "a table that exists")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("DROP TABLE gone")
            other.execute("CREATE TABLE new(x)")
            other.execute("BEGIN EXCLUSIVE")
            for sql in ("CREATE TABLE IF NOT EXISTS gone(x)", "DROP TABLE IF EXISTS new"):
                error = raises(sqlipc.OperationalError, db.execute, sql)
                equal(error.sqlite_errorname, "SQLITE_BUSY", sql)
            other.execute("ROLLBACK")
        db.execute("CREATE TABLE IF NOT EXISTS gone(x)")
        db.execute("DROP TABLE IF EXISTS new")
        equal(db.execute("SELECT name FROM sqlite_schema").fetchall(), [("gone",)], "tables")


@test
def too_many_parameters():
    """The error names VariablesMax=, also beyond the largest value that it can have"""
    with contextlib.closing(service.connect(isolation_level=None)) as db:
        for n in (32766, 32767, 40000):
            sql = f"SELECT 1 IN ({','.join('?' * n)})"
            if n == 32766:
                equal(db.execute(sql, [1] * n).fetchall(), [(1,)], "as many as are allowed")
                continue
            for begin in (None, "BEGIN IMMEDIATE"):
                if begin:
                    db.execute(begin)
                error = raises(sqlipc.OperationalError, db.execute, sql, [1] * n)
                equal("VariablesMax=" in str(error), True, f"{n} parameters: {error}")
            db.rollback()


@test
def no_tables():
    """Transactions that read a database without tables"""
    for journal in ("wal", "delete"):
        service.add(f"empty-{journal}", journal=journal)
        for begin in ("BEGIN", "BEGIN IMMEDIATE"):
            with contextlib.closing(service.connect(f"empty-{journal}", isolation_level=None)) as db:
                db.execute(begin)
                equal(db.execute("SELECT * FROM sqlite_schema").fetchall(), [], "schema")
                equal(db.execute("SELECT 1").fetchall(), [(1,)], "row")
                db.execute("COMMIT")


@test
def busy_timeout_takes_effect():
    """PRAGMA busy_timeout limits how long a transaction waits for another one"""
    with contextlib.closing(service.connect()) as first, contextlib.closing(service.connect(timeout=600)) as second:
        first.execute("BEGIN IMMEDIATE")
        equal(second.execute("PRAGMA busy_timeout = 0").fetchall(), [(0,)], "row")
        error = raises(sqlipc.OperationalError, second.execute, "BEGIN IMMEDIATE")
        equal(str(error), "database is locked", "error")
        first.rollback()


@test
def sqlite3_is_the_yardstick():
    """What is compared is sqlite3 itself; chinook has the same rows both ways"""
    with contextlib.closing(sqlite3.connect(CHINOOK)) as direct, contextlib.closing(service.connect("chinook")) as shared:
        for (table,) in direct.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            sql = f"SELECT * FROM {table}"
            equal(shared.execute(sql).fetchall(), direct.execute(sql).fetchall(), f"rows of {table}")
            equal(shared.execute(sql).description, direct.execute(sql).description, f"columns of {table}")
    equal(sys.modules["sqlite3"] is sqlite3, True, "module")


main(service)
