#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The extension of SQLite: a virtual table of a shared table returns what a copy of that table returns."""
import contextlib
import re
import sqlite3

from client import Text, exact
from exposed_queries import Queries, rows_as_set
from extension import Extension
from harness import PATIENT, Service, main
from tap import cases, diagnose, equal, test, true

service = Service(start=False, limits=PATIENT)
N_QUERIES = 400


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
CREATE VIEW heavy AS SELECT name, length(name) AS n, CAST(size AS TEXT) AS size_text FROM package WHERE size > 900;
"""
shop = database("shop", SHOP)
queries = Queries(seed=5)
random_path = database("random", queries.schema())
database("random_exposed", "")
service.database("random_exposed", Path=random_path, Expose=" ".join(Queries.EXPOSED))
service.start()


@contextlib.contextmanager
def counting(client):
    """Counts the runs, rows and bytes that the service has sent meanwhile."""
    before, count = service.counters(), {}
    yield count
    after = service.counters()
    count.update({kind: after[f"Total{kind.title()}"] - before[f"Total{kind.title()}"] for kind in ("runs", "rows", "bytes")})


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
            f"{name.decode()} {kind.decode()} COLLATE {collations.get((view, name.decode()), 'BINARY')}" for name, kind in columns
        )
        db.executescript(f"DROP VIEW {view}; CREATE TABLE {view}({declared});")
        db.executemany(f"INSERT INTO {view} VALUES({', '.join('?' * len(columns))})",
                       [[v.decode() if isinstance(v, Text) else v for v in row] for row in rows])
    copy.close()
    db.text_factory = Text
    return db


def random_query():
    """A query without row values IN a subquery: SQLite 3.40 compares their parts wrongly if a virtual table searches by them,
    unless the types of both sides are alike."""
    while True:
        sql, ordered = queries.query()
        if not re.search(r"\) IN \(SELECT \w+, ", sql):
            return sql, ordered


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
        equal([exact(row[0]) for row in rows], [exact(row[0]) for row in expected], f"order of {sql}")


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


if __name__ == "__main__":
    main(service)
