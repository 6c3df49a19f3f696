#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs for which the ADBC driver exists: pandas, polars, DuckDB, and a reader in Rust."""
import contextlib
import datetime
import os
import re
import shutil
import sqlite3
import subprocess
import sys

from adbc_rig import CI, FOLDER, HERE, connect, service_of_notes
import duckdb
import pandas
import polars

from harness import CHINOOK, main
from pages import PAGES, blocks
from tap import Skip, equal, test, true

exit_stack = contextlib.ExitStack()
service, path = exit_stack.enter_context(service_of_notes())
JOIN = "SELECT Title, Track.Name, UnitPrice FROM Track JOIN Album USING (AlbumId) ORDER BY TrackId"


def expected(sql):
    with contextlib.closing(sqlite3.connect(CHINOOK)) as db:
        return db.execute(sql).fetchall()


def content(sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


@test
def with_pandas():
    """pandas reads a query and a table, and writes a frame"""
    with connect(service, "chinook", autocommit=False) as connection:
        frame = pandas.read_sql(JOIN, connection)
        equal(list(frame.itertuples(index=False, name=None)), expected(JOIN))
        equal(len(pandas.read_sql("Track", connection)), 3503, "a table by its name")
    moments = pandas.to_datetime(["2026-01-01 00:00", None, "2026-01-03 10:00"])
    frame = pandas.DataFrame({"a": [1, 2, None], "moment": moments})
    with connect(service, "notes", autocommit=False) as connection:
        equal(frame.to_sql("frame", connection, index=False), 3)
        frame.to_sql("frame", connection, index=False, if_exists="append")
        connection.commit()
        equal(content("SELECT count(*), count(a), min(moment) FROM frame"), [(6, 4, "2026-01-01 00:00:00.000000")])
        frame.to_sql("frame", connection, index=False, if_exists="replace")
        connection.commit()
        equal(len(pandas.read_sql("frame", connection)), 3)


@test
def with_polars():
    """polars reads a query, as a whole and in batches, and writes a frame"""
    with connect(service, "chinook") as connection:
        frame = polars.read_database(JOIN, connection)
        equal(frame.rows(), expected(JOIN))
        pieces = list(polars.read_database(JOIN, connection, iter_batches=True, batch_size=1000))
        equal(sum(len(piece) for piece in pieces), 3503)
    days = [datetime.date(2026, 1, 2), None]
    frame = polars.DataFrame({"n": [1, None], "s": ["a long text, which is a view", "b"], "d": days})
    with connect(service, "notes") as connection:
        equal(frame.write_database("from_polars", connection), 2)
        equal(content("SELECT * FROM from_polars"), [(1, "a long text, which is a view", "2026-01-02"), (None, "b", None)])
        frame.write_database("from_polars", connection, if_table_exists="append")
        equal(polars.read_database("SELECT count(*) AS n FROM from_polars", connection).rows(), [(4,)])


@test
def readme():
    """The programs of README.md and sqlipc-adbc(7) run"""
    programs = [block for page in PAGES for block in blocks(page) if block.startswith("import adbc_driver_manager")]
    packages = service.data / "packages.sqlite"
    with contextlib.closing(sqlite3.connect(packages)) as db:
        db.execute("CREATE TABLE package(name TEXT, section TEXT, installed_size INTEGER)")
        db.execute("INSERT INTO package VALUES ('a', 'net', 1)")
        db.commit()
    service.database("packages", Path=packages)
    service.driver.manager("Reload")
    environment = os.environ | {"DBUS_SESSION_BUS_ADDRESS": service.address}
    results = ("package.num_rows, frame.rows()", "len(frame), frame.values.tolist()")
    for program, shown in zip(programs, results, strict=True):
        command = [sys.executable, "-c", f"{program}\nprint({shown})"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        equal((done.returncode, done.stderr), (0, ""), program)
        true(re.fullmatch(r"1 \[[([]'a', 'net', 1[])]\]", done.stdout.splitlines()[-1]), done.stdout)
        true("duckdb" not in program or "net" in done.stdout.splitlines()[-4], f"DuckDB's table: {done.stdout}")


@test
def with_duckdb():
    """DuckDB queries a result while it arrives, and its own results are ingested"""
    with connect(service, "chinook") as connection, connection.cursor() as cursor, duckdb.connect() as duck:
        cursor.execute("SELECT * FROM Track")
        tracks = cursor.fetch_record_batch()  # noqa: F841 - DuckDB finds it by its name
        got = duck.execute("SELECT GenreId, count(*) FROM tracks GROUP BY 1 ORDER BY 1").fetchall()
        equal(got, expected("SELECT GenreId, count(*) FROM Track GROUP BY 1 ORDER BY 1"))
        numbers = duck.sql("SELECT range AS n, 'x' || range AS s FROM range(5000)").to_arrow_reader(1000)
        with connect(service, "notes") as other, other.cursor() as writer:
            equal(writer.adbc_ingest("from_duckdb", numbers), 5000)
    equal(content("SELECT count(*), sum(n), max(s) FROM from_duckdb"), [(5000, 12497500, "x999")])


@test
def with_rust():
    """A program in Rust finds the driver by its manifest and reads"""
    if not shutil.which("cargo"):
        raise Skip("there is no cargo")
    source = FOLDER / "rust"
    shutil.copytree(HERE / "rust", source, dirs_exist_ok=True)
    target = FOLDER / "rust-target"
    command = ["cargo", "build", "--quiet", "--locked", "--target-dir", target]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        if CI:
            raise AssertionError(built.stderr)
        raise Skip("the crates cannot be built here")
    sql = "SELECT TrackId FROM Track"
    done = subprocess.run([target / "debug/adbc-reader", f"sqlipc://{service.address}/chinook", sql], capture_output=True,
                          text=True, check=False, env=os.environ)
    equal((done.stdout, done.stderr), (f"3503 {3503 * 3504 // 2}\n", ""))


@test
def end():
    """The service is left with nothing"""
    true(service.has_owner(), "the service still runs")
    exit_stack.close()


if __name__ == "__main__":
    main()
