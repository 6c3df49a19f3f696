#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The extension of SQLite: a virtual table of a shared table returns what a copy of that table returns."""
import contextlib
import os
import random
import re
import signal
import sqlite3

import broken_schema
from client import Text, exact
from exposed_queries import Queries, rows_as_set
from extension import EXTENSION, Extension
from harness import PATIENT, UID_A, Service, main, needs_root, test_unsanitized, wait_for
from tap import at_most, cases, equal, test, true

service = Service(start=False, limits=PATIENT)
# How many random queries each test asks, and by which random numbers.
N_QUERIES = int(os.environ.get("SQLIPC_EXTENSION_QUERIES", "400"))
SEED = int(os.environ.get("SQLIPC_EXTENSION_SEED", "5"))


def database(name, schema, **keys):
    """A shared database; returns its file."""
    path = service.data / f"{name}.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(schema)
    service.database(name, Path=path, **keys)
    return path


SHOP = """
PRAGMA journal_mode = WAL;
CREATE TABLE package(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE UNIQUE, section TEXT, size INT, rating REAL, note);
CREATE INDEX package_section ON package(section, size);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000)
    INSERT INTO package SELECT x, 'package-' || x, 'section-' || (x % 7), x * 37 % 1000, x / 8.0, zeroblob(100) FROM n;
ANALYZE;
CREATE TABLE "odd ""name"(a, "select" TEXT, "it's" VARCHAR(10) COLLATE RTRIM, "INT HIDDEN" "INT HIDDEN",
                          twice AS (a * 2), kept AS (upper("select")) STORED);
INSERT INTO "odd ""name" VALUES(1, 'x', 'y ', 5), (NULL, NULL, NULL, NULL);
CREATE TABLE pair(k TEXT, l INT, v, PRIMARY KEY(k, l)) WITHOUT ROWID;
INSERT INTO pair VALUES('a', 1, 'x'), ('a', 2, 'y'), ('b', 1, 'x');
CREATE TABLE busy_names(rowid TEXT, _rowid_ TEXT, oid TEXT);
INSERT INTO busy_names VALUES('r', 's', 't'), ('r', 's', 't');
CREATE VIEW twins AS SELECT s, n FROM (SELECT 'x' AS s, 1 AS n UNION ALL SELECT 'x', 1 UNION ALL SELECT 'x', 1
    UNION ALL SELECT 'y', 2);
CREATE TABLE loose(id);
CREATE INDEX loose_id ON loose(id);
INSERT INTO loose SELECT id FROM package;
CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;
CREATE VIEW broken AS SELECT * FROM missing;
"""
shop = database("shop", SHOP)
queries = Queries(seed=SEED)
random_path = database("random", queries.schema())
service.database("random_exposed", Path=random_path, Expose=" ".join(Queries.EXPOSED))
database("utf16", "PRAGMA encoding = 'UTF-16le'; CREATE TABLE letter(x TEXT PRIMARY KEY);"
         "INSERT INTO letter VALUES('\uffee'), ('z'), ('\U0001f600'), ('a');")
service.database("broken", Path=broken_schema.make(service.data / "broken.sqlite"))
database("changing", "PRAGMA journal_mode = WAL; CREATE TABLE t(a TEXT, b INT); INSERT INTO t VALUES('5', 6)")
database("secret", "CREATE TABLE t(a)", AllowUsers="nobody")
service.start()
SQLITE_ERROR, SQLITE_INTERRUPT = 1, 9
ADVICE = "open the database again, or drop the virtual table and create it again"


def copy_of_views(client):
    """A copy of the random database in which the views are tables that are declared as the virtual tables are."""
    copy = sqlite3.connect(random_path)
    copy.text_factory = Text
    db = sqlite3.connect(":memory:")
    copy.backup(db)
    collations = {("v", "n"): "NOCASE", ("v", "r"): "RTRIM", ("g", "n"): "NOCASE"}
    for view in "vg":
        rows = copy.execute(f"SELECT * FROM {view}").fetchall()
        columns = client.ok(f"SELECT name, type FROM pragma_table_xinfo('{view}')")
        declared = ", ".join(
            f"{name.decode()} {kind.decode()} COLLATE {collations.get((view, name.decode()), 'BINARY')}"
            for name, kind in columns
        )
        db.executescript(f"DROP VIEW {view}; CREATE TABLE {view}({declared});")
        db.executemany(f"INSERT INTO {view} VALUES({', '.join('?' * len(columns))})",
                       [[v.decode() if isinstance(v, Text) else v for v in row] for row in rows])
    copy.close()
    db.text_factory = Text
    return db


def random_query():
    """A query without row values IN a subquery: SQLite 3.40 compares their parts wrongly if a virtual table searches by
    them, unless the types of both sides are alike."""
    while True:
        sql, ordered = queries.query()
        if not re.search(r"\) IN \(SELECT \w+, ", sql):
            return sql, ordered


def place(value):
    """Returns what is compared to put values in order: an integer and a real may be equal."""
    return ("number", value) if isinstance(value, (int, float)) else exact(value)


def same_answer(client, db, sql, ordered):
    """Compares the answers to a query, which may be an error."""
    rows, answer = client.ask(sql)
    try:
        expected = [list(row) for row in db.execute(sql)]
    except sqlite3.Error:
        true(answer.startswith("error"), f"{sql}: {answer}, and an error on the copy")
        return
    equal(answer, "ok", sql)
    equal(rows_as_set(rows), rows_as_set(expected), sql)
    if ordered:
        equal([place(row[0]) for row in rows], [place(row[0]) for row in expected], f"order of {sql}")


@test
def random_queries():
    """Random queries return the same on virtual tables as on copies of the tables"""
    with Extension(service) as client:
        for name in Queries.EXPOSED:
            client.table(name, "random")
        with contextlib.closing(copy_of_views(client)) as db:
            for _ in range(N_QUERIES):
                same_answer(client, db, *random_query())
    cases("query", N_QUERIES, "on virtual tables and on copies")


@test
def random_queries_on_exposed_tables():
    """The same for exposed tables and views"""
    with Extension(service) as client, contextlib.closing(sqlite3.connect(random_path)) as db:
        db.text_factory = Text
        for name in Queries.EXPOSED:
            client.table(name, "random_exposed")
        for _ in range(N_QUERIES):
            same_answer(client, db, *random_query())
    cases("query", N_QUERIES, "on virtual tables of exposed tables")


@test
def random_limits():
    """LIMIT and OFFSET return the same rows, with all kinds of conditions and orders"""
    pick = random.Random(SEED).choice
    conditions = (
        "", "WHERE id > 19000", "WHERE section = 'section-3'", "WHERE section > 'section-4'", "WHERE name LIKE 'package-1%'",
        "WHERE name LIKE 'PACKAGE-19\\_%' ESCAPE '\\'", "WHERE size + 1 > 500", "WHERE size <> 7",
        "WHERE size IN (37, 74, 111)",
        "WHERE section IN ('section-1', 'nothing', NULL)", "WHERE size BETWEEN 10 AND 20", "WHERE rating IS NULL",
        "WHERE name > 'package-5' COLLATE BINARY", "WHERE id = 5 OR size = 37", "WHERE size > '500'",
        "WHERE section >= x'00'", "WHERE (id, size) IN (SELECT id, size FROM package WHERE id > 19990)",
        "WHERE (section, name) IN (SELECT section, name FROM package WHERE id BETWEEN 50 AND 59)",
        "WHERE id IN (SELECT id + 1 FROM package WHERE size = 37)",
        "WHERE note IS NOT NULL", "WHERE (size, id) > (998, 7)", "WHERE section = 3", "WHERE name = 'PACKAGE-7'",
    )
    orders = (
        "ORDER BY id", "ORDER BY id DESC", "ORDER BY section, id", "ORDER BY size DESC, id", "ORDER BY name",
        "ORDER BY rating NULLS LAST, id", "ORDER BY name COLLATE BINARY", "ORDER BY section || 'x', id",
        "ORDER BY rowid DESC",
    )
    limits = (
        "LIMIT 5", "LIMIT 3 OFFSET 2", "LIMIT 0", "LIMIT -1 OFFSET 19990", "LIMIT 2, 3", "LIMIT 1 + 1",
        "LIMIT 3 OFFSET -1", "LIMIT (SELECT 4) OFFSET (SELECT 1)",
    )
    with Extension(service) as client, contextlib.closing(sqlite3.connect(shop)) as db:
        db.text_factory = Text
        client.table("package", "shop")
        for _ in range(N_QUERIES):
            sql = f"SELECT {pick(('id', 'id, name', 'section, id', 'rowid'))} FROM package"
            if pick((True, True, True, False)):
                sql = f"{sql} {pick(conditions)} {pick(orders)} {pick(limits)}"
            else:  # the arms share the counters of LIMIT and OFFSET
                sql = f"SELECT * FROM ({sql} {pick(conditions)} UNION ALL {sql} {pick(conditions)}) {pick(limits)}"
                same_number = len(db.execute(sql).fetchall())
                equal(len(client.ok(sql)), same_number, f"rows of {sql}")
                continue
            equal(client.ok(sql), [list(row) for row in db.execute(sql)], sql)
    cases("query", N_QUERIES, "with LIMIT")


WANTED = (
    "CREATE TABLE wanted(id INTEGER, name TEXT)",
    "INSERT INTO wanted VALUES(3, 'Package-3'), (50, 'package-50'), (20001, 'none'), (NULL, NULL)",
    "CREATE TABLE many(id INTEGER)",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 2000) INSERT INTO many SELECT x FROM n",
)


def costs_with_setup(*lines):
    """Returns how many runs, rows and bytes the service spends on a program that runs these lines after its setup."""
    service.forget()
    before = service.counters()
    with Extension(service) as client:
        client.table("package", "shop")
        client.table("loose", "shop")
        for line in (*WANTED, *lines):
            client.ok(line)
    wait_for(service.is_idle, "the service forgets the program")  # only then it has all sums of a channel
    after = service.counters()
    return [after[f"Total{kind}"] - before[f"Total{kind}"] for kind in ("Runs", "Rows", "Bytes")]


def costs(sql):
    """Returns how many runs, rows and bytes a statement costs the service."""
    return tuple(more - less for more, less in zip(costs_with_setup(sql), costs_with_setup()))


@test
def constraints_are_pushed_down():
    """The service sends the rows that match, in one run each"""
    for sql, runs, rows in (
        ("SELECT name FROM package WHERE id = 77", 1, 1),
        ("SELECT name FROM package WHERE id = '77'", 1, 1),
        ("SELECT id FROM package WHERE name = 'PACKAGE-77'", 1, 1),
        ("SELECT id FROM package WHERE rowid = 77", 1, 1),
        ("SELECT id FROM package WHERE id = NULL", 0, 0),
        ("SELECT id FROM package WHERE id IS NULL", 1, 0),
        ("SELECT id FROM package WHERE id <= 10", 1, 10),
        ("SELECT id FROM package WHERE id > 19990", 1, 10),
        ("SELECT id FROM package WHERE id BETWEEN 5 AND 9", 1, 5),
        ("SELECT id FROM package WHERE id IN (5, 7, 9, NULL, 11, 7)", 1, 4),
        ("SELECT id FROM package WHERE name IN ('package-5', 'PACKAGE-6', 'x')", 1, 2),
        ("SELECT id FROM package WHERE id IN (SELECT id FROM wanted)", 1, 2),
        ("SELECT id FROM package WHERE section = 'section-2' AND size = 2", 1, 2),
        ("SELECT id FROM package WHERE name LIKE 'package-1999%'", 1, 11),
        ("SELECT id FROM package WHERE id = 5 OR name = 'package-6'", 2, 2),
        ("SELECT * FROM package ORDER BY rating DESC, id LIMIT 5", 1, 5),
        ("SELECT * FROM package WHERE section = 'section-2' ORDER BY rating LIMIT 5 OFFSET 3", 1, 8),
        ("SELECT * FROM package LIMIT 6", 1, 6),
        ("SELECT w.name, p.size FROM wanted AS w JOIN package AS p ON p.id = w.id", 3, 2),
        ("SELECT w.name, p.size FROM wanted AS w JOIN package AS p ON p.name = w.name", 3, 2),
        ("SELECT w.name, p.size FROM wanted AS w LEFT JOIN package AS p ON w.name = p.name", 3, 2),
        ("SELECT id FROM loose WHERE id = 77", 1, 1),
        ("SELECT id FROM loose WHERE id < 10", 1, 9),
        ("SELECT w.name FROM wanted AS w JOIN loose AS l ON l.id = w.id", 3, 2),
        (f"SELECT id FROM package WHERE id IN ({', '.join(map(str, range(1000)))})", 1, 999),
        ("SELECT id FROM package WHERE id IN (SELECT id FROM many)", 1, 20000),
        ("SELECT id FROM package WHERE name = printf('%300000d', 1)", 1, 20000),
    ):
        equal(costs(sql)[:2], (runs, rows), f"runs and rows of {sql}")


@test
def plans_are_shown():
    """EXPLAIN QUERY PLAN shows the SQL for the service"""
    with Extension(service) as client:
        client.table("package", "shop")
        query = "SELECT name FROM package WHERE size > 5 AND id IN (1, 2) ORDER BY rating LIMIT 9"
        rows = client.ok(f"EXPLAIN QUERY PLAN {query}")
        sql = 'SELECT o.rowid, o."id", o."name", o."size", o."rating" FROM main."package" AS o'
        equal(rows[0][3].decode().split(" # ")[1], f'{sql} WHERE o."size" > ? AND o."id" IN (?) ORDER BY o."rating" LIMIT ?')


@test
def columns_are_pushed_down():
    """The service sends the columns that the statement names"""
    all_of_them, one, none = (costs(f"SELECT {what} FROM package")[2] for what in ("*", "max(size)", "count(*)"))
    at_most(one, all_of_them / 5, "bytes of one column")
    at_most(none, one, "bytes of no column")


@test
def statements_are_used_again():
    """Each look-up of a join is one run of one statement, and a statement that ends early ends its run"""
    equal(costs("SELECT p.name FROM many AS w JOIN package AS p ON p.id = w.id")[:2], (2000, 2000))
    at_most(costs("first SELECT id, note FROM package")[1], 19999, "rows of a statement that reads one")
    with Extension(service) as client:
        client.table("package", "shop")
        equal(client.ok("first SELECT id, note FROM package"), [[1, bytes(100)]])
        wait_for(lambda: service.counters()["NRuns"] == 0, "the run ends with its cursor")
        equal(len(client.ok("twice SELECT id FROM package WHERE id <= 3000")), 6000)
        expected = [[1, 2], [2, 3]]
        equal(client.ok("SELECT a.id, b.id FROM package AS a JOIN package AS b ON b.id = a.id + 1 WHERE a.id < 3"), expected)


@test
def names_and_types():
    """Columns have the names, types, collations and rowids of the shared table"""
    with Extension(service) as client:
        client.ok("""CREATE VIRTUAL TABLE odd USING sqlipc("shop", 'odd "name', 'user')""")
        rows = [[1, Text(b"x"), Text(b"y "), 5, 2, Text(b"X")], [None] * 6]
        equal(client.ok("SELECT * FROM odd ORDER BY rowid"), rows)
        equal(client.ok("""SELECT rowid, "INT HIDDEN" FROM odd WHERE "it's" = 'y' AND "select" = 'x'"""), [[1, 5]])
        kinds = [[Text(b"a"), Text(b"")], [Text(b"select"), Text(b"TEXT")], [Text(b"it's"), Text(b"VARCHAR(10)")],
                 [Text(b"INT HIDDEN"), Text(b"NUMERIC")], [Text(b"twice"), Text(b"")], [Text(b"kept"), Text(b"")]]
        equal(client.ok("SELECT name, type FROM pragma_table_xinfo('odd')"), kinds)
        client.table("busy_names", "shop")
        equal(client.ok("SELECT rowid, oid FROM busy_names WHERE rowid = 'r' OR oid = 't'"), [[Text(b"r"), Text(b"t")]] * 2)
        client.table("no rows", "shop", "sqlite_stat1")
        equal(client.ok('SELECT tbl FROM "no rows" LIMIT 1'), [[Text(b"package")]])


@test
def rows_without_rowid():
    """OR and FULL JOIN find each row of a view or of a table WITHOUT ROWID once, also if rows are equal"""
    with Extension(service) as client:
        client.table("pair", "shop")
        client.table("twins", "shop")
        client.ok("CREATE TABLE own(a, b)")
        client.ok("INSERT INTO own VALUES('x', 1), ('z', 2)")
        equal(client.ok("SELECT k, l FROM pair WHERE k = 'a' OR v = 'x' ORDER BY k, l"),
              [[Text(b"a"), 1], [Text(b"a"), 2], [Text(b"b"), 1]])
        equal(client.ok("SELECT s FROM twins WHERE s = 'x' OR n = 1"), [[Text(b"x")]] * 3)
        got = client.ok("SELECT own.a, own.b, twins.n FROM own FULL JOIN twins ON twins.s = own.a")
        equal(rows_as_set(got), rows_as_set([[Text(b"x"), 1, 1]] * 3 + [[Text(b"z"), 2, None], [None, None, 2]]))


@test
def encodings():
    """Text of a database in UTF-16 is compared and ordered like in a database in UTF-8"""
    with Extension(service) as client:
        client.table("letter", "utf16")
        letters = [[Text(x.encode())] for x in ("a", "z", "\uffee", "\U0001f600")]
        equal(client.ok("SELECT x FROM letter ORDER BY x LIMIT 4"), letters)
        equal(client.ok("SELECT x FROM letter WHERE x > 'z' ORDER BY x"), letters[2:])
        equal(client.ok("SELECT x FROM letter WHERE x IN ('z', '\U0001f600') ORDER BY x"), [letters[1], letters[3]])


@test
def writes_and_schemas_are_refused():
    """The table is read-only, and neither a view nor a trigger of a file may use it"""
    with Extension(service) as client:
        client.table("pair", "shop")
        for sql in ("INSERT INTO pair VALUES(1, 2, 3)", "UPDATE pair SET v = 1", "DELETE FROM pair"):
            equal(client.failure(sql), (SQLITE_ERROR, "table pair may not be modified"), sql)
        client.ok("ALTER TABLE pair RENAME TO other")
        equal(client.ok("SELECT count(*) FROM other"), [[3]])
        client.ok("CREATE VIEW view_of_it AS SELECT * FROM other")
        equal(client.failure("SELECT * FROM view_of_it")[1], 'unsafe use of virtual table "other"')
        client.ok("CREATE TABLE own(a)")
        client.ok("CREATE TRIGGER of_own AFTER INSERT ON own BEGIN SELECT count(*) FROM other; END")
        client.ok("PRAGMA trusted_schema = ON")
        for sql in ("SELECT * FROM view_of_it", "INSERT INTO own VALUES(1)"):
            equal(client.failure(sql)[1], 'unsafe use of virtual table "other"', f"a trusted schema: {sql}")
        client.ok("CREATE TEMP VIEW own_view AS SELECT count(*) FROM other")
        equal(client.ok("SELECT * FROM own_view"), [[3]])
        client.ok("DROP TABLE other")


@test
def loaded_twice():
    """A second load leaves the tables of the first one in use, and a transaction that is rolled back takes a table along"""
    with Extension(service) as client:
        client.table("pair", "shop")
        client.ok(f"SELECT load_extension('{EXTENSION}')")
        client.table("package", "shop")
        for _ in range(2):
            equal(client.ok("SELECT count(*) FROM pair JOIN package ON id = l"), [[3]])
            client.ok(f"SELECT load_extension('{EXTENSION}')")
        client.ok("BEGIN")
        client.table("twins", "shop")
        equal(client.ok("SELECT count(*) FROM twins"), [[4]])
        client.ok("DROP TABLE pair")
        client.ok("ROLLBACK")
        true("no such table" in client.failure("SELECT * FROM twins")[1], "a table of a transaction that was rolled back")
        equal(client.ok("SELECT count(*) FROM pair"), [[3]])


@test
def many_columns_and_large_rows():
    """A table of 1000 columns, and rows of megabytes, are like those of a copy"""
    columns = ", ".join(f"c{i} DEFAULT {i}" for i in range(1000))
    path = database("large", f"CREATE TABLE wide({columns}); INSERT INTO wide(c0) VALUES(7); CREATE TABLE long(n, b, t);"
                    "INSERT INTO long VALUES(1, zeroblob(5000000), printf('%.*c', 3000000, 'x')), (2, x'', '')")
    service.driver.manager("Reload")
    with Extension(service) as client, contextlib.closing(sqlite3.connect(path)) as db:
        db.text_factory = Text
        for table in ("wide", "long"):
            client.table(table, "large")
        for sql in ("SELECT * FROM wide", "SELECT c999, c64, c63, c0 FROM wide WHERE c998 = 998",
                    "SELECT n, length(b), length(t), b = zeroblob(5000000) FROM long ORDER BY n DESC",
                    "SELECT n FROM long WHERE b = zeroblob(5000000)", "SELECT n FROM long WHERE t > 'xx' OR b = x''"):
            equal(client.ok(sql), [list(row) for row in db.execute(sql)], sql)


@test
def errors_say_what_is_wrong():
    """Wrong arguments and failures of the service are errors with a sentence"""
    with Extension(service) as client:
        for arguments, words in (
            ("", "write sqlipc(DATABASE, TABLE)"),
            ("shop", "write sqlipc(DATABASE, TABLE)"),
            ("shop, package, user, x", "write sqlipc(DATABASE, TABLE)"),
            ("shop, package, moon", 'there is no bus "moon"'),
            ("nowhere, package, user", 'cannot read "package" in nowhere: There is no database'),
            ("shop, missing, user", "no such table: main.missing"),
            ("shop, broken, user", "no such table: main.missing"),
        ):
            code, message = client.failure(f"CREATE VIRTUAL TABLE t USING sqlipc({arguments})")
            true(code != 0 and words in message, f"{arguments}: {code} {message}")
        equal(client.failure("SELECT * FROM sqlipc")[1], "no such table: sqlipc", "no table without CREATE")


@test
def beside_broken_objects():
    """A table or view works whatever the others of its database are; one that does not compile is named"""
    with Extension(service) as client:
        for number, (name, sql) in enumerate((
            ("good", "SELECT id, text, twice FROM {}"), ("good_view", "SELECT id, upper FROM {}"),
            ("indexed", "SELECT a, b FROM {}"), ("stored", "SELECT b FROM {}"),
        )):  # fmt: skip
            client.ok(f"CREATE VIRTUAL TABLE g{number} USING sqlipc(broken, '{name}', user)")
            with contextlib.closing(sqlite3.connect(service.data / "broken.sqlite")) as db:
                db.text_factory = Text
                expected = [list(map(exact, row)) for row in db.execute(sql.format(name))]
            equal([list(map(exact, row)) for row in client.ok(sql.format(f"g{number}"))], expected, name)
        # The program could not compare as a collation does that neither it nor the service has.
        for name, word in (broken_schema.UNREADABLE | {"sorted": "no such collation sequence: absent"}).items():
            if name != "computed":
                message = client.failure(f"CREATE VIRTUAL TABLE t USING sqlipc(broken, '{name}', user)")[1]
                true(f'cannot read "{name}" in broken' in message and word in message, message)
        name = f"non{broken_schema.NONCHARACTER}"
        message = client.failure(f"CREATE VIRTUAL TABLE t USING sqlipc(broken, '{name}', user)")[1]
        true(f'cannot read "{name}" in broken' in message and "noncharacter" in message, message)


@needs_root
def without_permission():
    """A user without access gets the service's sentence, also if access ends later"""
    with Extension(service, user=UID_A, group=UID_A, extra_groups=[]) as client:
        message = 'cannot read "t" in secret: There is no database of this name, or it is not yours to use.'
        # the test's bus is root's, so for this client it is no bus of its own
        refused = client.failure("CREATE VIRTUAL TABLE t USING sqlipc(secret, t, user)")[1]
        true("not permitted" in refused, refused)
        equal(client.failure("CREATE VIRTUAL TABLE t USING sqlipc(secret, t, system)")[1], message)
        service.database("secret", Path=service.data / "secret.sqlite")
        service.driver.manager("Reload")
        client.ok("CREATE VIRTUAL TABLE t USING sqlipc(secret, t, system)")
        equal(client.ok("SELECT * FROM t"), [])
        service.database("secret", Path=service.data / "secret.sqlite", AllowUsers="nobody")
        service.driver.manager("Reload")
        true(client.failure("SELECT * FROM t")[1].startswith('cannot read "t" in secret: '), "a sentence")


@test
def changed_tables():
    """A table that has changed or is gone gives an error that says what to do"""
    path = service.data / "changing.sqlite"
    with Extension(service) as client, contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        client.table("t", "changing")
        equal(client.ok("SELECT a FROM t WHERE a >= '05'"), [[Text(b"5")]])
        db.executescript("ALTER TABLE t ADD COLUMN c DEFAULT 7")
        equal(client.ok("SELECT * FROM t"), [[Text(b"5"), 6]], "a new column is not seen")
        db.executescript("DROP TABLE t; CREATE TABLE t(a INTEGER, b); INSERT INTO t VALUES('5', 6)")
        for sql in ("SELECT a FROM t WHERE a >= '05'", "SELECT a FROM t"):
            code, message = client.failure(sql)
            equal((code, message), (SQLITE_ERROR, 'the columns of "t" in changing have changed: ' + ADVICE))
        db.executescript("ALTER TABLE t RENAME COLUMN a TO d")
        true("no such column: " in client.failure("SELECT a FROM t")[1], "a message about the column")
        db.executescript("DROP TABLE t")
        code, message = client.failure("SELECT b FROM t")
        true('cannot read "t" in changing: no such table: main.t' in message and "create it again" in message, message)
        db.executescript("CREATE TABLE t(a TEXT, b INT); INSERT INTO t VALUES('x', 8)")
        client.ok("DROP TABLE t")
        client.table("t", "changing")
        equal(client.ok("SELECT * FROM t"), [[Text(b"x"), 8]])


@test
def interrupt():
    """sqlite3_interrupt() ends a statement that waits for the service, and the run there"""
    with Extension(service) as client:
        client.table("endless", "shop")
        client.say("SELECT * FROM endless WHERE x < 0")
        wait_for(lambda: service.states() == ["running"], "the run computes")
        client.interrupt()
        equal(client.hear()[1], f"error {SQLITE_INTERRUPT} interrupted")
        wait_for(lambda: service.counters()["NRuns"] == 0, "the run ends")
        equal(client.ok("SELECT 1"), [[1]])


@test
def lost_worker_and_service():
    """A lost worker or service ends a statement with an error, unless nothing was read yet; the next statement works"""
    with Extension(service) as client:
        client.table("package", "shop")
        client.table("endless", "shop")
        client.say("SELECT * FROM endless WHERE x < 0")
        wait_for(lambda: service.states() == ["running"], "the run computes")
        for pid in service.workers():
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: service.states() == ["running"] or client.has_answer(), "an answer, or the run again")
        if not client.has_answer():
            client.interrupt()
        _, answer = client.hear()
        true(answer.startswith("error"), answer)
        equal(client.ok("SELECT count(*) FROM package"), [[20000]])
        service.kill()
        true(client.failure("SELECT count(*) FROM package")[1].startswith('cannot read "package" in shop: '), "a sentence")
        service.start()
        equal(client.ok("SELECT count(*) FROM package"), [[20000]])


@test_unsanitized
def in_other_programs():
    """The sqlite3 shell and Python load the extension by its name"""
    create = "CREATE VIRTUAL TABLE temp.p USING sqlipc(shop, package, user)"
    find = {"LD_LIBRARY_PATH": str(EXTENSION.parent)}
    shell = service.run("sqlite3", ":memory:", "SELECT load_extension('sqlipc')", create, "SELECT name FROM p WHERE id = 3",
                        environment=find)
    equal((shell.stdout, shell.stderr), (b"\npackage-3\n", b""))
    script = f"""
import sqlite3
db = sqlite3.connect(":memory:")
db.enable_load_extension(True)
db.load_extension("sqlipc")
db.execute("{create}")
print(db.execute("SELECT name FROM p WHERE id = ?", [3]).fetchone()[0])
"""
    python = service.run("/usr/bin/python3", "-c", script, environment=find)
    equal((python.stdout, python.stderr), (b"package-3\n", b""))


if __name__ == "__main__":
    main(service)
