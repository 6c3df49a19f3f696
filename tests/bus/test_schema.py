#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Another program changes a database: results are right, and no client ever gets SQLITE_SCHEMA."""
import os
import sqlite3

from client import Text, same_rows
from harness import Service, expect, main
from tap import equal, test

service = Service()
path = service.data / "db.sqlite"
db = sqlite3.connect(path, isolation_level=None)
db.execute("CREATE TABLE t(a)")
db.execute("INSERT INTO t VALUES(1)")
service.database("db", Path=path)
service.driver.manager("Reload")
client = service.client()


def names(result):
    return [bytes(name).decode() for name, _ in result.columns]


@test
def new_rows():
    """The next run sees rows that another program wrote"""
    statement = client.prepare("db", "SELECT count(*) FROM t")
    for n in range(1, 5):
        equal(statement.fetch().read().rows, [[n]], "rows")
        db.execute("INSERT INTO t VALUES(?)", (n,))
    db.execute("DELETE FROM t WHERE rowid > 1")
    statement.close()


@test
def new_column():
    """SELECT * of a prepared statement shows a column that was added later"""
    statement = client.prepare("db", "SELECT * FROM t")
    equal(names(statement.fetch().read()), ["a"], "columns")
    db.execute("ALTER TABLE t ADD COLUMN b DEFAULT 'new'")
    result = statement.fetch().read()
    equal(names(result), ["a", "b"], "columns")
    same_rows(result.rows, [[1, Text(b"new")]])
    number, columns, _ = client.open_rows("db", "SELECT * FROM t")
    equal([name for name, _, _ in columns], ["a", "b"], "columns of OpenRows")
    same_rows(client.next_rows("db", number)[0], [[1, Text(b"new")]])
    statement.close()


@test
def changes_in_a_loop():
    """A hundred changes of schema, each between two runs of one statement"""
    statement = client.prepare("db", "SELECT * FROM t")
    for n in range(100):
        db.execute(f"CREATE TABLE extra{n}(x)")
        same_rows(statement.fetch().read().rows, [[1, Text(b"new")]])
    statement.close()


@test
def dropped_table():
    """A dropped table is an SQL error, until the table is back"""
    db.execute("CREATE TABLE gone(a)")
    statement = client.prepare("db", "SELECT * FROM gone")
    equal(statement.fetch().read().rows, [], "rows")
    db.execute("DROP TABLE gone")
    expect("Sql", lambda: statement.fetch().read())
    db.execute("CREATE TABLE gone(x, y)")
    db.execute("INSERT INTO gone VALUES(1, 2)")
    equal(statement.fetch().read().rows, [[1, 2]], "rows")
    statement.close()


@test
def change_during_a_run():
    """A run keeps its snapshot in WAL mode while the schema changes under it"""
    wal = service.data / "wal.sqlite"
    writer = sqlite3.connect(wal, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE t(a, b)")
    writer.execute(
        "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT 50000) INSERT INTO t SELECT x, 'text' FROM n"
    )
    service.database("wal", Path=wal)
    service.driver.manager("Reload")
    run = client.query("wal", "SELECT * FROM t")
    frames = [run.frame()[2] for _ in range(2)]
    writer.execute("ALTER TABLE t ADD COLUMN c")
    writer.execute("DELETE FROM t")
    equal(run.counted()[1], 50000, "rows")
    equal(len(frames), 2, "frames read before")
    equal(client.query("wal", "SELECT count(*) FROM t").read().rows, [[0]], "rows now")
    writer.close()


@test
def vacuum_and_journal_mode():
    """VACUUM, another page size, and a change of journal mode between two runs"""
    statement = client.prepare("db", "SELECT * FROM t")
    db.execute("VACUUM")
    same_rows(statement.fetch().read().rows, [[1, Text(b"new")]])
    db.execute("PRAGMA page_size = 8192")
    db.execute("VACUUM")
    same_rows(statement.fetch().read().rows, [[1, Text(b"new")]])
    statement.close()


@test
def replaced_file():
    """After a rename puts another database in place, that one answers"""
    replaced = service.data / "replaced.sqlite"
    for version in (1, 2, 3):
        fresh = sqlite3.connect(service.data / "fresh.sqlite")
        fresh.execute("CREATE TABLE v(n)")
        fresh.execute("INSERT INTO v VALUES(?)", (version,))
        fresh.commit()
        fresh.close()
        os.rename(service.data / "fresh.sqlite", replaced)
        if version == 1:
            service.database("replaced", Path=replaced)
            service.driver.manager("Reload")
            statement = client.prepare("replaced", "SELECT n FROM v")
        equal(client.query("replaced", "SELECT n FROM v").read().rows, [[version]], "a new statement")
        equal(statement.fetch().read().rows, [[version]], "the old statement")
    statement.close()


main(service)
