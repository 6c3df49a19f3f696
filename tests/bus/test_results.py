#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results equal SQLite's own: every table, every kind of query, every way to ask, every page size."""
from client import Text, decode, reference, same_rows
from harness import CHINOOK, CLI, Service, main
from results import EXTREME_QUERIES, QUERIES, TABLES, make_extremes
from tap import at_most, equal, test, true

PAGE_SIZES = [4096 << shift for shift in range(9)]

service = Service({"chinook": CHINOOK})
extremes = service.data / "extremes.sqlite"
make_extremes(extremes)
service.database("extremes", Path=extremes)
service.driver.manager("Reload")
client = service.client()

# database, title, SQL, parameters
ALL = [("chinook", f"table {name}", f'SELECT * FROM "{name}"', ()) for name in TABLES]
ALL += [("chinook", title, sql, parameters) for title, (sql, parameters) in QUERIES.items()]
ALL += [("extremes", title, sql, ()) for title, sql in EXTREME_QUERIES.items()]
FILES = {"chinook": CHINOOK, "extremes": extremes}


def compare(ask):
    """`ask` returns column names and rows for a database, SQL and parameters."""
    for database, title, sql, parameters in ALL:
        names, rows = reference(FILES[database], sql, parameters)
        try:
            got_names, got_rows = ask(database, sql, parameters)
            equal(
                [n.encode() if isinstance(n, str) else bytes(n) for n in got_names],
                [n.encode() for n in names],
                "column names",
            )
            same_rows(got_rows, rows)
        except Exception as problem:
            raise AssertionError(f"{title}: {problem}") from problem


@test
def tables_are_there():
    """The sample database has its eleven tables"""
    equal(len(TABLES), 11, "tables")


@test
def query():
    """Query"""

    def ask(database, sql, parameters):
        run = client.query(database, sql, parameters)
        names = [name for name, _, _ in run.columns]
        result = run.read()
        equal([name for name, _ in result.columns], [Text(n.encode()) for n in names], "names in COLUMNS")
        equal(result.end.n_rows, len(result.rows), "rows in END")
        return names, result.rows

    compare(ask)


@test
def query_in_every_page_size():
    """Query in every page size"""
    for size in PAGE_SIZES:

        def ask(database, sql, parameters):
            run = client.query(database, sql, parameters, options={"page-size": size})
            equal(run.info["page-size"], size, "negotiated page size")
            frames = list(run.frames())
            before = sum(len(data) for _, _, data in frames[:-1])
            at_most(max(len(data) for _, _, data in frames), size, "bytes of a frame")
            result = decode(data for _, _, data in frames)
            equal(result.end.n_bytes, before, "bytes before END")
            run.close()
            return [name for name, _ in result.columns], result.rows

        compare(ask)


@test
def prepare_and_fetch():
    """Prepare, and Fetch twice"""

    def ask(database, sql, parameters):
        statement = client.prepare(database, sql)
        first = statement.fetch(*parameters).read()
        again = statement.fetch(*parameters).read()
        same_rows(again.rows, first.rows)
        statement.close()
        return [name for name, _, _ in statement.columns], first.rows

    compare(ask)


@test
def open_rows_and_next_rows():
    """OpenRows and NextRows, in replies of several sizes"""
    for size in (1, 5000, 262144, 1048576):

        def ask(database, sql, parameters):
            columns, rows = client.all_rows(database, sql, parameters, next_options={"max-bytes": size})
            return [name for name, _, _ in columns], rows

        if size > 1:
            compare(ask)
        else:
            names, rows = ask("chinook", "SELECT * FROM Genre", ())
            same_rows(rows, reference(CHINOOK, "SELECT * FROM Genre")[1])


@test
def info_of_next_rows():
    """NextRows returns the columns once, and the totals of the run at its end"""
    run, columns, _ = client.open_rows("chinook", "SELECT * FROM Track")
    infos, more = [], True
    while more:
        _, more, info = client.next_rows("chinook", run, {"max-bytes": 65536})
        infos.append(info)
    true(len(infos) > 2, f"{len(infos)} replies")
    equal(infos[0], {"columns": columns}, "info of the first reply")
    equal([info for info in infos[1:-1] if info], [], "info of those between")
    equal(sorted(infos[-1]), ["bytes", "rows", "sequence", "usec"], "info of the last")
    end = client.query("chinook", "SELECT * FROM Track", options={"page-size": 65536}).read().end
    equal(infos[-1]["rows"], end.n_rows, "rows in all")
    at_most(abs(infos[-1]["bytes"] - end.n_bytes), 4096, "difference in bytes: a page may go out before it is full")
    true(infos[-1]["usec"] > 0, "no time passed")
    run, columns, _ = client.open_rows("chinook", "SELECT 1 AS one WHERE 0")
    rows, more, info = client.next_rows("chinook", run)
    equal((rows, more, info["columns"], info["rows"]), ([], False, columns, 0), "an empty result")


@test
def query_rows():
    """QueryRows returns the rows that fit, and whether there are more"""

    def ask(database, sql, parameters):
        columns, rows, info = client.query_rows(database, sql, parameters, options={"max-bytes": 1048576})
        expected = reference(FILES[database], sql, parameters)[1]
        equal(info["rows"], len(rows), "rows in info")
        equal(info["truncated"], len(rows) < len(expected), "truncated")
        true(rows or not expected, "not a single row came")
        if info["truncated"]:
            same_rows(rows, expected[: len(rows)])
            rows = expected
        return [name for name, _, _ in columns], rows

    compare(ask)
    equal(
        client.query_rows("chinook", "SELECT * FROM Track", options={"max-bytes": 4096})[2]["truncated"], True, "truncated"
    )


@test
def declared_types():
    """Columns carry their declared types"""
    columns = client.query("chinook", "SELECT TrackId, Name, UnitPrice, 1 + 1 FROM Track LIMIT 1")
    equal(
        [declared for _, declared, _ in columns.columns], ["INTEGER", "NVARCHAR(200)", "NUMERIC(10,2)", ""], "declared types"
    )
    result = columns.read()
    equal(
        [declared for _, declared in result.columns],
        [Text(b"INTEGER"), Text(b"NVARCHAR(200)"), Text(b"NUMERIC(10,2)"), None],
        "in COLUMNS",
    )


@test
def literals_of_the_shell():
    """ipcq-cli --mode=quote prints the same bytes as sqlite3 -quote -header (test_modes.py has the exceptions)"""
    for database, title, sql, parameters in ALL:
        if parameters or sql.startswith("EXPLAIN") or database == "extremes":  # the shell draws a tree for EXPLAIN
            continue
        shell = service.run("sqlite3", "-quote", "-header", FILES[database], sql)
        mine = service.run(CLI, f"--address={service.address}", "--mode=quote", "--headers=on", database, sql)
        equal((mine.returncode, mine.stderr), (0, b""), title)
        equal(mine.stdout, shell.stdout, title)


main(service)
