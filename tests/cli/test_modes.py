#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares ipcq-cli with sqlite3 on the same files: in every mode that sqlite3 has, the output is the same bytes, except for
values that sqlite3 does not preserve. These survive a round trip: into a typed table by .import, and into a database by the
SQL of the modes insert and quote.

tests/unit/test-cli-render*.c test all other properties of the modes.
"""
import hashlib
import math
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from harness import CHINOOK, CLI, Service, main  # noqa: E402
from tap import Skip, equal, test, true  # noqa: E402

SHELL = shutil.which("sqlite3")
GRIDS = ("table", "box", "qbox", "markdown", "column")
PLAIN = ("csv", "json", "line", "list", "html", "quote", "ascii")
# The arguments for sqlite3's shell. ".mode table" would also wrap lines, and the options -tcl and -qbox do not exist.
MODES = {mode: f"-{mode}" for mode in (*GRIDS, *PLAIN)} | {"tsv": "-tabs", "tcl": ".mode tcl", "qbox": ".mode qbox"}
OURS = (*MODES, "insert", "jsonl", "vertical")

QUERIES = [
    'SELECT * FROM "Artist"',
    'SELECT * FROM "Customer"',
    'SELECT * FROM "Employee"',
    'SELECT * FROM "Genre"',
    'SELECT * FROM "Invoice"',
    'SELECT * FROM "Track" WHERE "Composer" IS NULL AND "Name" NOT LIKE \'"%\'',
    """SELECT "Artist"."Name", "Title", count(*) AS "tracks", min("UnitPrice"), sum("Milliseconds") / 60000 AS "minutes"
       FROM "Artist" JOIN "Album" USING ("ArtistId") JOIN "Track" USING ("AlbumId") GROUP BY "AlbumId" """,
    """SELECT "e"."LastName", "c"."Company" FROM "Employee" AS "e" LEFT JOIN "Customer" AS "c"
       ON "c"."SupportRepId" = "e"."EmployeeId" AND "c"."Company" LIKE 'J%'""",
    "SELECT 'two' || char(10) || 'lines' AS \"text\", 1 AS \"n\" UNION ALL SELECT 'one', NULL",
]
WHOLE = [f'SELECT * FROM "{name}"' for name in ("InvoiceLine", "PlaylistTrack", "Album")]
WHOLE.append("""SELECT * FROM "Track" WHERE "Name" NOT LIKE '"%'""")  # Mode tsv quotes values that begin with a quote.

DOUBLES = [0.1, -0.0, 1 / 3, 1e300, -1.5e-7, 2.0**53, 123456789012345680.0, 1.7976931348623157e308, 2.2250738585072014e-308]
DOUBLES += [5e-324, 2.5e-310, -1e-290, math.inf, -math.inf, 218.11, 9.999999999999999e22, 1e23]
DOUBLES += [math.ldexp(1 + i / 1048573, (i * 7919) % 2000 - 1000) for i in range(1, 500)]
INTEGERS = [0, 1, -1, 2**63 - 1, -(2**63), 10**15, -999]
TEXTS = ["", "plain", "it's", '"', '""', 'a "word"', "a,b", "a|b", "a\tb", "\t", "\n", "one\ntwo\n", "\r", "\r\n"]
TEXTS += ["end\r", '"\r\n', 'x"\n', "\\", "\\n", "\\n\n", "\\r\r\n\\015\\012", "(\\n0)\n\\n\\012", ";"]
TEXTS += ["--", "/*", ".quit", " ", "é", "日本", "\ufeffbom"]
TEXTS += ["\x01\x7f\x1b[2J", "\u009b1m", "\u202e"]
TEXTS += ["NULL", "x'00'", "1e999", "12", "e\u0301", "👨\u200d👩", "'\n--", "\U0010ffff"]
ODD_TEXTS = [b"\xff", b"a\xffb", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"]
NULS = [b"\0", b"a\0b", b"\0\n'\r", b"a\0\xff"]
BLOBS = [b"", b"\0", b"\x00\xff'", bytes(range(256))]


def make_odd(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE odd(id INTEGER PRIMARY KEY, v)")
    for value in (None, *INTEGERS, *DOUBLES, *TEXTS, *BLOBS):
        database.execute("INSERT INTO odd(v) VALUES (?)", (value,))
    for value in (*ODD_TEXTS, *NULS):
        database.execute("INSERT INTO odd(v) VALUES (CAST(? AS TEXT))", (value,))
    database.commit()
    database.close()


service = Service({"chinook": CHINOOK})
odd = service.data / "odd.sqlite"
make_odd(odd)
service.database("odd", Path=odd)
service.driver.manager("Reload")


def with_shell(function):
    """A test that needs sqlite3's shell."""

    def run():
        if not SHELL:
            raise Skip("the sqlite3 shell is not installed")
        function()

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return test(run)


def ask(database, sql, *arguments):
    done = service.run(CLI, f"--address={service.address}", "--no-init", *arguments, database, sql)
    equal((done.returncode, done.stderr), (0, b""), f"exit code and complaints about {sql!r} with {arguments}")
    return done.stdout


def shell(*arguments, stdin=None):
    done = subprocess.run([SHELL, *map(str, arguments)], input=stdin, capture_output=True, check=False)
    equal((done.returncode, done.stderr), (0, b""), f"exit code and complaints of sqlite3 {arguments}")
    return done.stdout


def squeezed(grid):
    """Normalizes blanks: our grids align numbers to the right, so they have as many blanks, but on the other side."""
    return len(grid), [b" ".join(line.split()) for line in grid.split(b"\n")]


@with_shell
def same_as_sqlite3():
    """Chinook looks the same in every mode that both have, except that our grids align numbers to the right"""
    for mode, flag in MODES.items():
        for sql in (*QUERIES, *WHOLE):
            if "char(10)" in sql and mode in ("line", "markdown", "tsv"):
                continue  # In these modes a newline would make two rows of one.
            how = (flag, CHINOOK) if flag.startswith("-") else (CHINOOK, flag)
            theirs = shell(*how, ".headers on", ".nullvalue null", sql)
            ours = ask("chinook", sql, f"--mode={mode}", "--headers=on", "--null=null")
            compared = squeezed if mode in GRIDS else bytes
            equal(compared(ours), compared(theirs), f"{mode}: {sql}")


@with_shell
def same_inserts():
    """INSERT statements are the same, with names and without"""
    for sql in (*QUERIES, *WHOLE):
        for headers in ("on", "off"):
            theirs = shell(CHINOOK, f".headers {headers}", ".mode insert", sql)
            equal(ask("chinook", sql, "--mode=insert", f"--headers={headers}"), theirs, sql)


@test
def empty_results():
    """People and parsers can recognize an empty result"""
    shown = {"table": 4, "box": 4, "qbox": 4, "markdown": 2, "column": 2, "json": 1}
    for mode in OURS:
        out = ask("chinook", 'SELECT * FROM "Genre" WHERE 0', f"--mode={mode}")
        equal(out.count(b"\n"), shown.get(mode, 0), f"lines in mode {mode}: {out!r}")


@test
def many_columns():
    """SQLite's maximum number of columns works in every mode"""
    sql = "SELECT " + ", ".join(f"{i} AS name{i}" for i in range(2000))
    for mode in OURS:
        true(b"1999" in ask("chinook", sql, f"--mode={mode}"), f"the last column in mode {mode}")


@test
def large_value():
    """A value of 100 MB is complete in modes for programs"""
    size = 100_000_000
    with Service({"chinook": CHINOOK}, limits={"RowSizeMax": "256M"}) as large:
        for mode, sql, expected in (
            ("list", f"SELECT printf('%.{size}c', 'x')", b"x" * size + b"\n"),
            ("csv", f"SELECT zeroblob({size // 2})", b"\"x'" + b"0" * size + b"'\"\n"),
        ):
            command = [CLI, f"--address={large.address}", "--no-init", f"--mode={mode}", "--headers=off", "chinook", sql]
            done = large.run(*command)
            equal((done.returncode, done.stderr), (0, b""), f"exit code and complaints in mode {mode}")
            equal(hashlib.sha256(done.stdout).digest(), hashlib.sha256(expected).digest(), f"bytes in mode {mode}")


# ---- Round trips ----


def bits(value):
    return struct.pack("<d", value) if isinstance(value, float) else value


def contents(path, sql):
    """Returns rows with the type and the exact bytes of their last column."""
    database = sqlite3.connect(path)
    database.text_factory = bytes
    rows = [(*row[:-1], bits(row[-1])) for row in database.execute(sql)]
    database.close()
    return rows


ALL = "SELECT id, typeof(v), v FROM odd ORDER BY id"


def same_in(copy):
    equal(contents(copy, "PRAGMA integrity_check"), [(b"ok",)], "the copy")
    for got, expected in zip(contents(copy, ALL), contents(odd, ALL), strict=True):
        equal(got, expected, "row")


@with_shell
def inserts_come_back():
    """`ipcq-cli --mode=insert | sqlite3`: every value, bit by bit"""
    script = b"CREATE TABLE odd(id INTEGER PRIMARY KEY, v);\n" + ask("odd", "SELECT * FROM odd", "--mode=insert")
    copy = service.folder / "insert.sqlite"
    shell("-bail", copy, stdin=script.replace(b'INTO "table"', b"INTO odd"))
    same_in(copy)


@with_shell
def literals_come_back():
    """The rows of mode quote are valid after VALUES: every value, bit by bit"""
    copy = service.folder / "quote.sqlite"
    script = b"CREATE TABLE odd(id INTEGER PRIMARY KEY, v);\n"
    rows = ask("odd", "SELECT id, v, '*' FROM odd", "--mode=quote")
    script += b"INSERT INTO odd VALUES (" + rows.removesuffix(b",'*'\n").replace(b",'*'\n", b"), (") + b");\n"
    shell("-bail", copy, stdin=script)
    same_in(copy)


def import_typed(mode, *how):
    """Imports values into columns of their own type; returns the stored values by id."""
    copy, rows = service.folder / f"{mode}.sqlite", service.folder / f"{mode}.rows"
    sql = (
        "SELECT id, CASE typeof(v) WHEN 'integer' THEN v END AS i, CASE typeof(v) WHEN 'real' THEN v END AS r,"
        " CASE WHEN typeof(v) NOT IN ('integer', 'real') THEN v END AS t FROM odd"
    )
    rows.write_bytes(ask("odd", sql, f"--mode={mode}"))
    create = "CREATE TABLE typed(id INTEGER PRIMARY KEY, i INTEGER, r REAL, t TEXT)"
    shell(copy, create, *how, f".import --skip 1 {rows} typed")
    return contents(copy, "SELECT id, i, t, r FROM typed ORDER BY id")


def come_back(mode, *how):
    expected = contents(odd, ALL)
    for (_, i, t, r), (row, kind, value) in zip(import_typed(mode, *how), expected, strict=True):
        what = f"{mode}: row {row}, {kind} {value!r}"
        if kind == b"integer":
            equal(i, value, what)
        elif kind == b"real":
            double = struct.unpack("<d", value)[0]
            # A column of type REAL stores -0.0 as 0.0, and SQLite 3.40 misreads some decimals that are so small.
            same = r == value or double == 0 or abs(double) < 1e-280
            true(same, f"{what}: got {struct.unpack('<d', r)[0]!r}")
        elif kind == b"blob":
            equal(t, b"x'" + value.hex().encode() + b"'", what)
        elif kind == b"text" and b"\0" in value:
            equal(t, b"CAST(x'" + value.hex().encode() + b"' AS TEXT)", what)
        else:
            equal(t, value or b"", what)


@with_shell
def csv_comes_back():
    """`ipcq-cli --mode=csv` and .import --csv: every value into a column of its type"""
    come_back("csv", ".mode csv")


@with_shell
def tsv_comes_back():
    """`ipcq-cli --mode=tsv` and .import in mode tabs: every value into a column of its type"""
    come_back("tsv", ".mode tabs")


main(service)
