#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Expose=: hidden objects do not exist for clients (I11), and exposed objects return the same as direct access."""
import contextlib
import os
import sqlite3
import subprocess

import exposure_attacks as attacks
from channel import Channel
from client import Failure, Text, reference, same_rows
from exposed_queries import Queries, rows_as_set
from harness import CLI, PATIENT, Service, expect, main, wait_for
from tap import at_most, diagnose, equal, test, true

service = Service(start=False, limits=PATIENT | {"BusyTimeoutSec": 120})
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "


def database(name, schema, exposed, wal=False):
    """A database of which `exposed` is published; returns its file and a connection that writes to it."""
    path = service.data / f"{name}.sqlite"
    db = sqlite3.connect(path, isolation_level=None)
    if wal:
        db.execute("PRAGMA journal_mode = WAL")
    db.executescript(schema)
    service.database(name, Path=path, Expose=" ".join(exposed))
    return path, db


LIBRARY = """
CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE UNIQUE, born INT);
CREATE TABLE book(id INTEGER PRIMARY KEY, author INT REFERENCES author, title TEXT, price REAL, "odd ""name" BLOB, extra,
                  twice AS (price * 2), kept VARCHAR(20) AS (upper(title)) STORED);
CREATE INDEX book_author ON book(author);
CREATE TABLE pair(k TEXT, l INT, v, PRIMARY KEY(k, l)) WITHOUT ROWID;
CREATE TABLE strict_one(a ANY, b INT) STRICT;
CREATE TABLE "select"("from" TEXT, "INT HIDDEN" "INT HIDDEN");
CREATE VIEW priced AS SELECT title, price, price AS price, author.name AS name FROM book JOIN author ON author = author.id;
CREATE VIEW broken AS SELECT * FROM nowhere;
CREATE VIEW unknown AS SELECT no_such_function(id) AS x FROM book;
CREATE VIEW overflow AS SELECT abs(-9223372036854775808 + id * 0) AS x FROM book;
CREATE VIRTUAL TABLE pages USING fts5(title, body);
CREATE VIRTUAL TABLE place USING rtree(id, x0, x1);
INSERT INTO author VALUES(1, 'Ada', 1815), (2, 'Grace', 1906), (3, 'Edsger', NULL);
INSERT INTO book(id, author, title, price, "odd ""name", extra) VALUES
    (1, 1, 'Notes', 1.5, x'0001', 'x'), (2, 2, 'COBOL', 2.0, NULL, 7), (3, 2, 'Bugs', -0.0, x'', 9223372036854775807),
    (4, NULL, 'nobody''s', 1e300, 'text', NULL);
INSERT INTO pair VALUES('a', 1, 'x'), ('a', 2, 'y'), ('b', 1, NULL);
INSERT INTO strict_one VALUES('05', 5), (5, 6);
INSERT INTO "select" VALUES('x', 1);
INSERT INTO pages VALUES('one', 'some words'), ('two', 'other words'), ('three', 'nothing');
INSERT INTO place VALUES(1, 0, 1), (2, 5, 6);
"""
EXPOSED = [
    "AUTHOR", "book", "pair", "strict_one", "select", "priced", "broken", "unknown", "overflow", "pages", "place", "nowhere",
]

library, library_db = database("library", LIBRARY, EXPOSED)
target, _ = database("target", attacks.SCHEMA, attacks.EXPOSED)
queries = Queries(seed=3)
random_path, _ = database("random", queries.schema(), queries.EXPOSED)
live, live_db = database(
    "live",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE TABLE hidden(a); CREATE VIEW v AS SELECT a, b FROM t;"
    + ENDLESS + "INSERT INTO t SELECT x, 'row ' || x FROM n LIMIT 20000;",
    ["t", "v"],
    wal=True,
)
rollback, rollback_db = database(
    "rollback",
    "CREATE TABLE t(a, b); " + ENDLESS + "INSERT INTO t SELECT x, 'row ' || x FROM n LIMIT 50000;",
    ["t"],
)
NUMBERS = range(200)
barrier, _ = database("barrier", LIBRARY, EXPOSED)
service.database("barrier", Path=barrier, Expose=" ".join(EXPOSED), SecurityBarrier="yes")
wide, _ = database(
    "wide",
    f"CREATE TABLE w({', '.join(f'c{n}' for n in NUMBERS)}); INSERT INTO w VALUES({', '.join(map(str, NUMBERS))});",
    ["w"],
)
utf16, _ = database(
    "utf16",
    "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(a); INSERT INTO t VALUES('gr\u00fc\u00dfe'), ('\U0001f600');",
    ["t"],
)
service.start()
client = service.client()


def ask(name, sql):
    """An answer as plain values."""
    try:
        result = client.query(name, sql, options={"error-details": True}).read()
        return "rows", result.columns, result.rows
    except Failure as failure:
        return "error", failure.name, failure.message, failure.extended, failure.offset


def ask_on_channel(channel, sql):
    """The same over a channel: by QUERY, and by PREPARE with its columns and parameters."""
    answers = []
    for way in ("query", "prepare"):
        try:
            if way == "query":
                result = channel.read(channel.query(sql))
                answers.append(("rows", result.columns, result.rows))
            else:
                number = channel.prepare(sql)
                answers.append(("statement", channel.statement(number)))
                channel.finalize(number)
        except Failure as failure:
            answers.append(("error", failure.name, failure.message, failure.extended, failure.offset))
    return answers


@contextlib.contextmanager
def ways(name):
    """Returns the functions that send a query to a database, one for each method."""
    channel = Channel(client, name)
    try:
        yield {"over the bus": lambda sql: ask(name, sql), "on a channel": lambda sql: ask_on_channel(channel, sql)}
    finally:
        channel.close()


@test
def attacks_on_hidden_names():
    """A hidden name is answered like a name that never existed, in all SQL"""
    with ways("target") as both:
        for sql, hidden, absent in attacks.NAMED_ATTACKS:
            for way in both.values():
                attacks.check_named(way, sql, hidden, absent)
    diagnose(f"{len(attacks.NAMED_ATTACKS)} attacks in {len(both)} ways")


@test
def attacks_without_a_name():
    """Lists and descriptions show nothing that is hidden"""
    with ways("target") as both:
        for sql in (*attacks.UNNAMED_ATTACKS, f"ATTACH '{target}' AS a"):
            for way in both.values():
                attacks.check_unnamed(way, sql)
    diagnose(f"{len(attacks.UNNAMED_ATTACKS) + 1} attacks in {len(both)} ways")


@test
def attacks_are_real():
    """On the whole database the same attacks find the secret or a hidden word, so they can fail"""
    service.database("whole", Path=target)
    service.driver.manager("Reload")
    with ways("whole") as both:
        for name, way in both.items():
            broken = 0
            for sql, hidden, absent in attacks.NAMED_ATTACKS:
                try:
                    attacks.check_named(way, sql, hidden, absent)
                except AssertionError:
                    broken += 1
            true(broken >= 60, f"{broken} attacks {name} find a hidden name if all is exposed")


@test
def view_reads_what_it_needs():
    """An exposed view returns its rows from hidden tables"""
    same_rows(
        client.query("target", "SELECT * FROM public ORDER BY id").read().rows,
        [[1, Text(b"one"), 1], [2, Text(b"two"), 1], [3, Text(b"three"), 0]],
    )


@test
def columns_as_direct():
    """Names, declared types and rows of exposed objects are those of direct access"""
    service.database("direct", Path=library)
    service.driver.manager("Reload")
    for name in ("author", "book", "pair", "priced", "pages", "place"):
        got, expected = (client.query(d, f'SELECT * FROM "{name}"').read() for d in ("library", "direct"))
        equal(got.columns, expected.columns, f"columns of {name}")
        same_rows(sorted(got.rows, key=repr), sorted(expected.rows, key=repr))
    got = client.query("library", 'SELECT "from", "INT HIDDEN" FROM "select"').read()
    same_rows(got.rows, [[Text(b"x"), 1]])
    equal(len(client.query("library", 'SELECT * FROM "select"').read().columns), 2, "columns of a type that says HIDDEN")


@test
def schema_shows_what_is_exposed():
    """sqlite_schema and PRAGMA show exposed objects with their columns, and leave out unreadable ones"""
    rows = client.query("target", "SELECT type, name, sql FROM sqlite_schema").read().rows
    equal(
        rows,
        [
            [Text(b"table"), Text(b"shown"),
             Text(b'CREATE VIRTUAL TABLE "shown" USING exposed(id INTEGER, name TEXT, owner INT)')],
            [Text(b"table"), Text(b"public"),
             Text(b'CREATE VIRTUAL TABLE "public" USING exposed(id INTEGER, name TEXT, has_password)')],
            [Text(b"table"), Text(b"pages"),
             Text(b'CREATE VIRTUAL TABLE "pages" USING exposed(body, pages HIDDEN, rank HIDDEN)')],
        ],
        "sqlite_schema",
    )
    names = {bytes(name).decode() for (name,) in client.query("library", "SELECT name FROM sqlite_schema").read().rows}
    equal(names, {"author", "book", "pair", "strict_one", "select", "priced", "overflow", "pages", "place"}, "names")
    columns = client.query("library", "PRAGMA table_info(author)").read().rows
    rows = client.query("library", "PRAGMA journal_mode").read().rows
    equal(rows, [[Text(b"memory")]], "journal mode, which is not the file's")
    equal([bytes(row[1]) for row in columns], [b"id", b"name", b"born"], "columns")
    for name in ("broken", "unknown", "nowhere"):
        equal(ask("library", f"SELECT * FROM {name}")[2], f"no such table: {name}", "message")
    said = f"sqlipc-worker: {library}: Expose=broken: "
    true(said in service.log_text(), "the log says of which file what was left out")


STEPS_MAX = 1000  # thousands of steps of SQLite, which searches an exposed table in several hundred times as long


def is_long(sql):
    """By the steps of SQLite itself, so that the same queries are left out on each machine."""
    n = 0

    def count():
        nonlocal n
        n += 1
        return n > STEPS_MAX

    with contextlib.closing(sqlite3.connect(f"file:{random_path}?mode=ro", uri=True)) as db:
        db.set_progress_handler(count, 1000)
        try:
            db.execute(sql).fetchall()
        except sqlite3.OperationalError:
            if n <= STEPS_MAX:
                raise
    return n > STEPS_MAX


@test
def random_queries():
    """Random queries over exposed objects bring the rows of direct access: affinities, collations, NULLs, joins, order"""
    n_long = 0
    for _ in range(400):
        sql, ordered = queries.query()
        if is_long(sql):
            n_long += 1
            continue
        expected = reference(random_path, sql)[1]
        got = client.query("random", sql).read().rows
        if rows_as_set(got) != rows_as_set(expected):
            raise AssertionError(f"{sql}: {len(got)} rows instead of {len(expected)}")
        if ordered:
            same_rows([row[:1] for row in got], [row[:1] for row in expected])
    at_most(n_long, 4, "queries that are left out")


@test
def types_meet():
    """Text that looks like a number compares with numbers as it does directly"""
    for sql in (
        "SELECT a, b FROM strict_one WHERE a = '05'",
        "SELECT a, b FROM strict_one WHERE a = 5",
        "SELECT s.a, p.l FROM strict_one AS s JOIN pair AS p ON s.a = p.l + 4",
        "SELECT s.a, t.b FROM strict_one AS s JOIN strict_one AS t ON s.a = t.b",
        "SELECT a FROM strict_one WHERE (a, 1) IN (SELECT b, 1 FROM strict_one)",
        "SELECT name FROM author WHERE name = 'ADA'",
        "SELECT name FROM author WHERE name = 'ADA' COLLATE BINARY",
        "SELECT name FROM priced WHERE name = 'grace' ORDER BY name",
        "SELECT name FROM author WHERE name IN (SELECT upper(name) FROM author)",
        "SELECT title FROM book WHERE title < 'COBOM' ORDER BY title",
        "SELECT b.title FROM book AS b JOIN author AS a ON b.title < a.born ORDER BY 1",
        "SELECT id FROM book WHERE extra = 7 OR extra = 'x' ORDER BY id",
        "SELECT rowid, title FROM book WHERE rowid = '2'",
        "SELECT _rowid_ FROM book ORDER BY rowid DESC LIMIT 2",
        "SELECT a.k, b.k FROM pair AS a RIGHT JOIN pair AS b ON a.l = b.l AND a.k <> b.k ORDER BY 1, 2",
        "SELECT k, l FROM pair WHERE l = 1 OR k = 'a' ORDER BY k, l",
        "SELECT typeof(a), typeof(b) FROM strict_one ORDER BY b",
        "SELECT json_extract(json_array(json(value)), '$[0]') FROM json_each('[[1]]')",
        "SELECT twice, kept FROM book WHERE twice > 1 ORDER BY id",
    ):
        same_rows(client.query("library", sql).read().rows, reference(library, sql)[1])


@test
def security_barrier():
    """With SecurityBarrier= a view brings the same rows"""
    for sql in (
        "SELECT * FROM priced ORDER BY title",
        "SELECT title FROM priced WHERE price > 1 AND name = 'grace' ORDER BY price DESC",
        "SELECT title FROM priced WHERE name IS NULL OR price = 2",
        "SELECT b.title, p.name FROM book AS b LEFT JOIN priced AS p ON p.title = b.title ORDER BY b.id",
        "SELECT count(*) FROM priced WHERE name IN ('ada', 'GRACE')",
        "SELECT title FROM book WHERE id = 2",
    ):
        equal(ask("barrier", sql), ask("library", sql), sql)


@test
def security_barrier_by_reload():
    """SecurityBarrier= holds after a reload: a view brings the order of its table, not that of the index of a search"""
    schema = "CREATE TABLE t(n UNIQUE, s); INSERT INTO t VALUES(3, 'c'), (1, 'a'), (2, 'b');"
    path, _ = database("ordered", schema + "CREATE VIEW v AS SELECT n, s FROM t", ["v"])
    for barrier, order in (("no", [1, 2, 3]), ("yes", [3, 1, 2]), ("no", [1, 2, 3])):
        service.database("ordered", Path=path, Expose="v", SecurityBarrier=barrier)
        service.driver.manager("Reload")
        rows = service.client().query("ordered", "SELECT n, s FROM v WHERE n > 0").read().rows
        equal([n for n, _ in rows], order, f"order with SecurityBarrier={barrier}")


@test
def byte_order_marks():
    """Text that begins with U+FEFF or U+FFFE is found in databases of UTF-16, too, and is equal to itself in a join"""
    client = service.client()
    for encoding in ("UTF-8", "UTF-16le", "UTF-16be"):
        name = f"marks-{encoding.lower()}"
        path, db = database(
            name,
            f"PRAGMA encoding = '{encoding}'; CREATE TABLE t(a, b TEXT); INSERT INTO t VALUES(char(65279, 97), char(65279)),"
            " (char(65534, 97), char(65534)), (char(65279, 65279), 'a'), ('a', char(97, 65279));",
            ["t"],
        )
        service.driver.manager("Reload")
        for sql in (
            "SELECT x.a, y.b FROM t AS x JOIN t AS y ON x.a = y.a ORDER BY x.rowid",
            "SELECT a FROM t WHERE a = char(65279, 97) OR b = char(65534) ORDER BY rowid",
            "SELECT a FROM t WHERE b IN (SELECT b FROM t) ORDER BY rowid",
            "SELECT a FROM t WHERE a > char(65279) ORDER BY rowid",
        ):
            same_rows(client.query(name, sql).read().rows, reference(path, sql)[1])
        db.close()


@test
def declared_types():
    """Declared types are the table's own, ANY of a STRICT one too"""
    client = service.client()
    for sql, expected in (
        ("SELECT * FROM strict_one", ["ANY", "INT"]),
        ("SELECT * FROM pair", ["TEXT", "INT", None]),
        ("SELECT id, name, born FROM author", ["INTEGER", "TEXT", "INT"]),
    ):
        columns = client.query("library", sql).read().columns
        equal([declared and declared.decode() for _, declared in columns], expected, sql)


@test
def parameters():
    """Parameters of every class search as they do directly"""
    for value in (None, 1, 2.0, "2", "COBOL", b"COBOL", 2**62):
        for sql in (
            "SELECT id FROM book WHERE id = ?",
            "SELECT id FROM book WHERE title = ?",
            "SELECT id FROM book WHERE extra <= ?",
            "SELECT id FROM book WHERE title < ? ORDER BY id",
            "SELECT id FROM book WHERE price >= ?",
            "SELECT id FROM book WHERE author IS ?",
            "SELECT id FROM book WHERE extra = CAST(? AS INTEGER)",
        ):
            got = client.query("library", sql, [value]).read().rows
            equal(rows_as_set(got), rows_as_set(reference(library, sql, [value])[1]), f"rows of {sql} with {value!r}")


@test
def full_text():
    """MATCH works on an exposed FTS5 table, by table, column and rank; otherwise an error says so"""
    for sql in (
        "SELECT title FROM pages WHERE pages MATCH 'words' ORDER BY rank, title",
        "SELECT title FROM pages WHERE body MATCH 'words' AND title = 'two'",
        "SELECT title FROM pages('nothing')",
        "SELECT rowid FROM pages WHERE pages = 'some'",
        "SELECT a.name, p.title FROM author AS a JOIN pages AS p ON p.pages MATCH 'words' WHERE a.id = 1 ORDER BY 2",
        "SELECT id FROM place WHERE x0 >= 5",
    ):
        same_rows(client.query("library", sql).read().rows, reference(library, sql)[1])
    equal(ask("library", "SELECT title FROM book WHERE title MATCH 'x'")[2],
          "unable to use function MATCH in the requested context", "message")
    equal(ask("library", "SELECT highlight(pages, 0, '[', ']') FROM pages")[2],
          "unable to use function highlight in the requested context", "message")


@test
def rowids_of_views():
    """A view has no rowid; SQLite 3.40 returns NULL for it"""
    answer = ask("library", "SELECT rowid FROM priced")
    equal(answer[:3], ("error", "org.sqlipc1.Error.Sql", "no such column: rowid"), "answer")


@test
def errors_inside():
    """An error inside an exposed view names only the view"""
    answer = ask("library", "SELECT x FROM overflow")
    equal(answer[:2], ("error", "org.sqlipc1.Error.Sql"), "error")
    true("overflow" in answer[2] and "book" not in answer[2] and "integer" not in answer[2], f"message {answer[2]!r}")
    equal(client.query("library", "SELECT count(*) FROM book").read().rows, [[4]], "afterwards")


@test
def errors_of_the_file():
    """An error of the file itself names no object: otherwise an unreadable schema would name its table"""
    broken, db = database("malformed", "CREATE TABLE t(a); CREATE TABLE hidden(a);", ["t"])
    service.database("malformed_whole", Path=broken)
    service.driver.manager("Reload")
    db.execute("PRAGMA writable_schema = 1")
    db.execute("UPDATE sqlite_schema SET sql = 'CREATE TABLE hidden(' WHERE name = 'hidden'")
    db.close()
    answers = [ask(name, "SELECT * FROM t") for name in ("malformed", "malformed_whole")]
    equal([answer[:2] for answer in answers], [("error", "org.sqlipc1.Error.Corrupt")] * 2, "errors")
    equal(["hidden" in answer[2] for answer in answers], [False, True], f"which of {answers} names a table")


@test
def errors_amid_rows():
    """A search that fails between its rows ends the run and holds no lock; the rest of the database is readable"""
    path, db = database(
        "torn",
        "CREATE TABLE t(a, b); CREATE TABLE other(x); INSERT INTO other VALUES(1);" + ENDLESS
        + "INSERT INTO t SELECT x, 'row ' || x FROM n LIMIT 20000;",
        ["t", "other"],
        wal=True,
    )
    size = db.execute("PRAGMA page_size").fetchone()[0]
    pages = db.execute("SELECT pageno FROM dbstat WHERE name = 't' AND pagetype = 'leaf' ORDER BY path").fetchall()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with open(path, "r+b") as file:
        file.seek((pages[len(pages) // 2][0] - 1) * size)
        file.write(bytes(size))
    service.driver.manager("Reload")
    for n in range(8):
        run = client.query("torn", "SELECT * FROM t AS x WHERE a > ?", [n])
        true(len(run.frame()) > 0, "rows come")
        failure = expect("Corrupt", run.read)
        equal(failure.message, "database disk image is malformed", "message")
        equal(client.query("torn", "SELECT x FROM other").read().rows, [[n + 1]], "rows")
        db.execute("UPDATE other SET x = x + 1")
        equal(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0], 0, "the checkpoint waits for a reader")


@test
def writes_are_refused():
    """Statements that write are ReadOnly, as on a whole database"""
    for sql in (
        "INSERT INTO author VALUES(9, 'x', 1)", "UPDATE author SET born = 1", "DELETE FROM book", "CREATE TABLE x(a)",
        "CREATE TEMP TABLE x AS SELECT * FROM book", "DROP TABLE book", "CREATE VIRTUAL TABLE x USING exposed(a)",
    ):
        expect("ReadOnly", client.query, "library", sql)
    expect("NotAllowed", client.query, "library", "EXPLAIN SELECT * FROM book")


@test
def one_snapshot():
    """All of a statement reads one state of the file while another program writes"""
    sql = "SELECT x.a, (SELECT count(*) FROM v), (SELECT max(a) FROM t AS y WHERE y.a >= x.a) FROM t AS x ORDER BY x.a"
    run = client.query("live", sql)
    frames = [run.frame() for _ in range(2)]
    live_db.execute("INSERT INTO t VALUES(99999, 'new')")
    live_db.execute("DELETE FROM t WHERE a < 20000")
    rows = run.read().rows
    equal({tuple(row[1:]) for row in rows}, {(20000, 20000)}, "what later rows see")
    true(rows[-1][0] == 20000 and len(frames) == 2, "the last row")
    equal(client.query("live", "SELECT count(*), max(a) FROM t").read().rows, [[2, 99999]], "the next statement")


@test
def no_lock_is_left():
    """An ended run holds no transaction, though its statement and searches are kept"""
    statement = client.prepare("rollback", "SELECT * FROM t AS x WHERE a = ?")
    for n in range(3):
        equal(len(statement.fetch(n + 1).read().rows), 1, "rows")
        rollback_db.execute("BEGIN EXCLUSIVE")
        rollback_db.execute("INSERT INTO t VALUES(-1, 'x')")
        rollback_db.execute("COMMIT")
    run = client.query("rollback", "SELECT * FROM t")
    run.frame()
    wait_for(lambda: "parked" in service.states(), "the run parks")
    rollback_db.execute("PRAGMA busy_timeout = 0")
    try:
        rollback_db.execute("BEGIN EXCLUSIVE")
        raise AssertionError("a writer came in under a reader")
    except sqlite3.OperationalError:
        pass
    run.cancel()
    rollback_db.execute("PRAGMA busy_timeout = 120000")
    rollback_db.execute("BEGIN EXCLUSIVE")
    rollback_db.execute("ROLLBACK")
    run.close()
    statement.close()


@test
def errors_in_succession():
    """A thousand failures in a row are reported alike, and none leaves a lock or an open transaction"""
    answer = ask("rollback", "SELECT absent FROM t")
    equal(answer[2], "no such column: absent", "message")
    rollback_db.execute("PRAGMA busy_timeout = 0")
    for n in range(1000):
        equal(ask("rollback", "SELECT absent FROM t"), answer, f"answer {n}")
        rollback_db.execute("BEGIN EXCLUSIVE")
        rollback_db.execute("ROLLBACK")
    rollback_db.execute("PRAGMA busy_timeout = 120000")


@test
def writer_in_the_way():
    """A query waits for a writer's lock, and is then answered"""
    rollback_db.execute("BEGIN EXCLUSIVE")
    run = subprocess.Popen(
        [CLI, f"--address={service.address}", "rollback", "SELECT count(*) FROM t WHERE a > 0"],
        stdout=subprocess.PIPE, env=service.environment,
    )
    wait_for(lambda: service.states() or run.poll() is not None, "the query waits")
    rollback_db.execute("COMMIT")
    output = run.communicate(timeout=120)[0]
    true(b"50000" in output, f"the answer: {output!r}")


@test
def schema_changes():
    """After another program changes the schema, columns and rows are the new ones at once"""
    statement = client.prepare("live", "SELECT * FROM v")
    equal([bytes(n) for n, _ in statement.fetch().read().columns], [b"a", b"b"], "columns")
    live_db.execute("DROP VIEW v")
    live_db.execute("CREATE VIEW v AS SELECT b, a, 7 AS c FROM t WHERE a = 20000")
    result = statement.fetch().read()
    equal([bytes(n) for n, _ in result.columns], [b"b", b"a", b"c"], "columns")
    same_rows(result.rows, [[Text(b"row 20000"), 20000, 7]])
    live_db.execute("DROP VIEW v")
    equal(expect("Sql", lambda: statement.fetch().read()).message, "no such table: v", "message")
    live_db.execute("CREATE VIEW v AS SELECT count(*) AS n FROM hidden")
    equal(statement.fetch().read().rows, [[0]], "rows")
    live_db.execute("ALTER TABLE t ADD COLUMN added DEFAULT 'here'")
    same_rows(client.query("live", "SELECT added FROM t WHERE a = 20000").read().rows, [[Text(b"here")]])
    for n in range(30):
        live_db.execute(f"CREATE TABLE other{n}(x)")
        equal(statement.fetch().read().rows, [[0]], "rows")
    statement.close()


@test
def schema_changes_under_a_run():
    """A run keeps its snapshot and its columns while the schema changes"""
    live_db.execute("DELETE FROM t")
    live_db.execute(ENDLESS + "INSERT INTO t(a, b) SELECT x, 'row ' || x FROM n LIMIT 30000")
    run = client.query("live", "SELECT a, b FROM t")
    run.frame()
    live_db.execute("ALTER TABLE t RENAME COLUMN b TO c")
    live_db.execute("DELETE FROM t WHERE a > 5")
    equal(run.counted()[1], 30000, "rows")
    equal(ask("live", "SELECT b FROM t")[2], "no such column: b", "message")
    equal(len(client.query("live", "SELECT c FROM t").read().rows), 5, "rows now")


@test
def file_replaced():
    """A wide table is read; another file put in its place answers the next query"""
    same_rows(client.query("wide", "SELECT * FROM w WHERE c199 = 199 AND c62 = 62").read().rows, [list(NUMBERS)])
    same_rows(client.query("wide", "SELECT c64, c0 FROM w WHERE c63 > 5").read().rows, [[64, 0]])
    for version in (1, 2):
        fresh = sqlite3.connect(service.data / "fresh.sqlite")
        fresh.execute("CREATE TABLE w(n, hidden)")
        fresh.execute("INSERT INTO w VALUES(?, 0)", (version,))
        fresh.commit()
        fresh.close()
        os.rename(service.data / "fresh.sqlite", wide)
        equal(client.query("wide", "SELECT n FROM w").read().rows, [[version]], "rows")


@test
def cancel_and_deadline():
    """Cancel and a deadline end a computation inside the file's own connection"""
    live_db.execute("DROP VIEW v")
    live_db.execute("CREATE VIEW v AS " + ENDLESS + "SELECT count(*) AS n FROM n")
    run = client.query("live", "SELECT n FROM v")
    wait_for(lambda: service.states(), "it runs")
    run.cancel()
    expect("Cancelled", run.read)
    expect("TimedOut", lambda: client.query("live", "SELECT n FROM v", options={"timeout-usec": 300000}).read())
    run = client.query("live", "SELECT n FROM v")
    run.close()
    wait_for(lambda: not service.states(), "a closed pipe ends it")


@test
def text_encodings():
    """Text of a UTF-16 database arrives unchanged"""
    same_rows(client.query("utf16", "SELECT a FROM t WHERE a > 'g' ORDER BY a").read().rows,
              reference(utf16, "SELECT a FROM t WHERE a > 'g' ORDER BY a")[1])


@test
def two_users_of_a_name():
    """The same file published whole and in part: each name gives its own rights only"""
    equal(client.query("whole", "SELECT count(*) FROM secret").read().rows, [[2]], "rows")
    expect("Sql", client.query, "target", "SELECT count(*) FROM secret")


if __name__ == "__main__":
    main(service)
