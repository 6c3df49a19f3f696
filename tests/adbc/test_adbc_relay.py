#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ADBC driver on a bus that passes no descriptors: rows come and go as D-Bus values."""
import contextlib
import math
import sqlite3

from adbc_rig import breaks_off, connect, fails, rows, service_of_notes, table
import pandas
import pyarrow

from harness import CHINOOK, main
from relay import relay_address
from tap import equal, test, true

exit_stack = contextlib.ExitStack()
service, path = exit_stack.enter_context(service_of_notes())
EVERYTHING = "SELECT * FROM Track ORDER BY TrackId"


def relayed(database, **keywords):
    return connect(service, database, options={"adbc.sqlipc.bus": relay_address(service)}, **keywords)


def content(sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


@test
def same_results():
    """Results have the types and values that they have with descriptors, also large ones, and in pandas"""
    with relayed("chinook") as connection, connect(service, "chinook") as direct:
        got = table(connection, EVERYTHING)
        equal(got.num_rows, 3503)
        true(got.equals(table(direct, EVERYTHING)), "tables")
        with contextlib.closing(sqlite3.connect(CHINOOK)) as db:
            expected = db.execute("SELECT Name, Milliseconds FROM Track").fetchall()
        equal(list(pandas.read_sql("SELECT Name, Milliseconds FROM Track", connection).itertuples(index=False, name=None)),
              expected, "pandas")
        equal(rows(connection, "SELECT length(?) AS n, ? AS big, ? AS empty", ("x" * 100000, 2**62, None)),
              [(100000, 2**62, None)], "parameters")


@test
def values():
    """BLOBs, NUL, NULL, infinity and integers beyond 2^53 are exact; text that is no UTF-8 is an error"""
    with relayed("chinook") as connection:
        sql = "SELECT x'00ff' AS b, 'a' || char(0) || 'b' AS t, 9007199254740993 AS i, 9e999 AS r, NULL AS n"
        equal(rows(connection, sql), [(b"\0\xff", "a\0b", 2**53 + 1, math.inf, None)])
        with connection.cursor() as cursor:
            fails("INVALID_DATA", lambda: cursor.execute("SELECT CAST(x'ff' AS TEXT) AS t").fetchall())
        with connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlipc.infer_rows": "1"})
            cursor.execute("SELECT 1 AS a UNION ALL SELECT 'x'")
            error = fails("INVALID_DATA", cursor.fetch_arrow_table)
            equal((error.facts["sqlipc.row"], error.facts["sqlipc.column"]), ("2", "a"), "place")


@test
def writing():
    """Statements, transactions and many rows are written; a bulk ingest is refused, and writes nothing"""
    with relayed("notes", autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO note VALUES (1, ?)", ("one",))
        connection.rollback()
        equal(content("SELECT * FROM note"), [], "after a rollback")
        cursor.execute("INSERT INTO note VALUES (1, ?)", ("one",))
        connection.commit()
        equal(content("SELECT * FROM note"), [(1, "one")], "after a commit")
    with relayed("notes") as connection, connection.cursor() as cursor:
        many = [(i, f"n{i}") for i in range(2, 100)]
        fails("INTEGRITY", cursor.executemany, "INSERT INTO note VALUES (?, ?)", [*many, (1, "again")])
        equal(content("SELECT count(*) FROM note"), [(1,)], "after a failure")
        cursor.executemany("INSERT INTO note VALUES (?, ?)", many)
        equal(content("SELECT count(*) FROM note"), [(99,)], "rows")
        error = fails("NOT_IMPLEMENTED", cursor.adbc_ingest, "made", pyarrow.table({"a": [1, 2]}))
        true("passes no descriptors" in str(error), str(error))
        equal(content("SELECT name FROM sqlite_schema WHERE name = 'made'"), [], "tables")
        equal(rows(connection, "SELECT count(*) AS n FROM note"), [(99,)], "the connection afterwards")


@test
def cancellation():
    """A write that has taken effect is not cancelled; a read is, also if all its rows have arrived"""
    with relayed("notes") as connection, connection.cursor() as cursor:
        for i, cancel in enumerate((cursor.adbc_cancel, connection.adbc_cancel), 1000):
            cursor.execute(f"INSERT INTO note VALUES ({i}, NULL) RETURNING id")
            reader = cursor.fetch_record_batch()
            cancel()
            equal(reader.read_all().to_pylist(), [{"id": i}], "rows")
            equal(content(f"SELECT count(*) FROM note WHERE id = {i}"), [(1,)], "written")
        cursor.execute("SELECT id FROM note")
        reader = cursor.fetch_record_batch()
        connection.adbc_cancel()
        breaks_off("The connection was cancelled", reader.read_all)
        error = fails("IO", lambda: cursor.execute("DELETE FROM note WHERE id >= 1000 RETURNING x'ff' || ''").fetchall())
        equal(error.sqlstate, "08007", "its result has no type")
        equal(content("SELECT count(*) FROM note WHERE id >= 1000"), [(0,)], "deleted")


@test
def read_only():
    """A connection that only reads can read, although the driver does not know what a statement does; no write passes"""
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
    for autocommit in (True, False):
        with relayed("notes", autocommit=autocommit) as connection, connection.cursor() as cursor:
            before = rows(connection, "SELECT count(*) AS n FROM note")
            if not autocommit:
                connection.rollback()
            connection.adbc_connection.set_options(**{"adbc.connection.readonly": "true"})
            equal(rows(connection, "SELECT count(*) AS n FROM note"), before, "a read")
            cursor.execute("SELECT ? AS n", pyarrow.table({"n": [1, 2, 3]}))
            equal(cursor.fetchall(), [(1,), (2,), (3,)], "of several values")
            for sql in ("INSERT INTO note VALUES (2000, NULL)", "DELETE FROM note", "DELETE FROM note RETURNING id"):
                fails("UNAUTHORIZED", cursor.execute, sql)
            fails("UNAUTHORIZED", cursor.executemany, "INSERT INTO note VALUES (?, NULL)", [(2000,), (2001,)])
            fails("INVALID_STATE", cursor.adbc_ingest, "made", pyarrow.table({"a": [1]}))
            equal(content("SELECT count(*) FROM note"), before, "nothing is written")
            cursor.execute("SELECT id FROM note")
            reader = cursor.fetch_record_batch()
            equal(rows(connection, "SELECT 1 AS n"), [(1,)], "a statement beside a result whose rows have all arrived")
            equal(reader.read_all().num_rows, before[0][0], "that result")
            cursor.execute(endless)
            reader = cursor.fetch_record_batch()
            fails("INVALID_STATE", rows, connection, "SELECT 1 AS n")  # would wait for the result before
            fails("INVALID_STATE", connection.adbc_get_table_schema, "note")
            fails("INVALID_STATE", connection.adbc_get_objects, catalog_filter="notes")
            reader.close()
            equal(rows(connection, "SELECT 1 AS n"), [(1,)], "after it")
            equal(len(connection.adbc_get_table_schema("note")), 2, "the schema")
            if autocommit:
                cursor.execute(endless)
                reader = cursor.fetch_record_batch()
                connection.adbc_connection.set_options(**{"adbc.connection.readonly": "false"})
                breaks_off("An option of the connection was set", reader.read_all)
            else:
                connection.rollback()
                connection.adbc_connection.set_options(**{"adbc.connection.readonly": "false"})
            rows(connection, "DELETE FROM note WHERE id = -1 RETURNING id")
            if not autocommit:
                connection.rollback()


@test
def transactions_of_readers():
    """Without autocommit a database is read that the user may not write, although statements are not compiled before"""
    with relayed("chinook", autocommit=False) as connection, connection.cursor() as cursor:
        equal(rows(connection, "SELECT count(*) AS n FROM Track"), [(3503,)])
        fails("UNAUTHORIZED", cursor.execute, "DELETE FROM Track")
        connection.rollback()
    with relayed("notes", autocommit=False) as connection, relayed("notes", autocommit=False) as other:
        equal(rows(connection, "SELECT max(id) AS n FROM note"), [(99,)])
        equal(rows(other, "SELECT max(id) AS n FROM note"), [(99,)], "beside it")
        rows(other, "INSERT INTO note VALUES (100, 'other') RETURNING id")
        other.commit()
        fails("INVALID_STATE", rows, connection, "INSERT INTO note VALUES (100, 'first') RETURNING id")
        connection.rollback()


@test
def end():
    """The service is left with nothing"""
    exit_stack.close()


if __name__ == "__main__":
    main()
