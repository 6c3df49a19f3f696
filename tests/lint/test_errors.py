#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The error table is complete: unique numbers and names, a sentence for each in the man page, a row for each SQLite code.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import equal, run, test, true  # noqa: E402

TABLE = (ROOT / "dbus-interfaces/sqlipc-errors.h").read_text()
ROWS = re.findall(r"^\s*X\((\d+), ([A-Z_]+), ([A-Za-z]+), (E[A-Z]+)\)", TABLE, re.M)
SQLITE_ROWS = re.findall(r"^\s*X\((SQLITE_[A-Z]+), ([A-Z_]+)\)", TABLE, re.M)


@test
def unique():
    """Numbers, symbols and names are unique, and numbers leave no gap"""
    true(len(ROWS) > 30, f"only {len(ROWS)} rows found")
    for column, what in enumerate(("number", "symbol", "name")):
        values = [row[column] for row in ROWS]
        equal(sorted(set(values)), sorted(values), what)
    equal([int(row[0]) for row in ROWS], list(range(1, len(ROWS) + 1)), "numbers")


@test
def symbols_match_names():
    """A symbol is its name in capitals"""
    for _, symbol, name, _ in ROWS:
        equal(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper(), symbol, "symbol")


@test
def sentences():
    """Every error has its sentence in org.sqlipc1(5)"""
    page = (ROOT / "docs/man/org.sqlipc1.5.rst").read_text()
    for _, _, name, _ in ROWS:
        # A definition list, or a field: the name at the start of a line, its sentence indented below or behind it.
        match = re.search(rf"^[\s*:`]*(?:org\.sqlipc1\.Error\.)?{name}\b[^\n]*\n((?:[ \t]+[^\n]+\n|\n)*)", page, re.M)
        true(match and len(match.group(0).split()) > 5, f"{name} has no sentence in docs/man/org.sqlipc1.5.rst")


@test
def every_error_is_met():
    """Every error is the expected result of some test"""
    tables = {"test-errors.c", "test-library-error.c", "test_errors.py"}
    tests = [p for p in (ROOT / "tests").rglob("test[-_]*") if p.suffix in (".c", ".py") and p.name not in tables]
    text = "".join(p.read_text() for p in tests)
    true(len(tests) > 20, f"only {len(tests)} tests found")
    met = {name: re.search(rf'"{name}"|Error\.{name}\b|\bERROR_{symbol}\b', text) for _, symbol, name, _ in ROWS}
    equal([name for name, found in met.items() if not found], [], "errors that no test gets")


@test
def public_enum():
    """sqlipc.h has every number under the same name"""
    header = dict(re.findall(r"SQLIPC_ERROR_([A-Z_]+) = (\d+)", (ROOT / "client-lib/sqlipc.h").read_text()))
    header.pop("NONE")
    equal(header, {symbol: number for number, symbol, _, _ in ROWS}, "enum sqlipc_error")


@test
def glib_enum():
    """sqlipc-glib.h has every number under the same name, and says what it means"""
    header = (ROOT / "client-lib/glib/sqlipc-glib.h").read_text()
    names = {symbol: number for number, symbol, _, _ in ROWS}
    equal(dict(re.findall(r"SQLIPC_GLIB_ERROR_([A-Z_]+) = (\d+)", header)), names, "enum SqlipcError")
    equal(re.findall(r"@SQLIPC_GLIB_ERROR_([A-Z_]+):", header), list(names), "descriptions")


@test
def sqlite_codes():
    """Every primary result code of SQLite that can fail is mapped once, to an error that exists"""
    names = [name for name, _ in SQLITE_ROWS]
    equal(sorted(set(names)), sorted(names), "codes")
    symbols = {symbol for _, symbol, _, _ in ROWS}
    equal([symbol for _, symbol in SQLITE_ROWS if symbol not in symbols], [], "symbols that do not exist")
    header = pathlib.Path("/usr/include/sqlite3.h").read_text()
    primary = re.findall(r"^#define (SQLITE_[A-Z]+)\s+(\d+)\s+/\*", header, re.M)
    codes = {name for name, number in primary if 1 <= int(number) <= 26}
    # Never returned by the functions that the worker calls: unused, internal, or no failure of a query.
    silent = {"SQLITE_NOTFOUND", "SQLITE_EMPTY", "SQLITE_NOLFS", "SQLITE_FORMAT"}
    codes = {c for c in codes if re.search(rf"^#define {c}\s", header, re.M)}
    results = header[header.index("#define SQLITE_OK") : header.index("#define SQLITE_ROW")]
    codes = {c for c in codes if f"#define {c} " in results}
    true(len(codes) > 20, f"only {len(codes)} codes found in sqlite3.h")
    equal(sorted(codes - set(names) - silent), [], "codes without a row")


sys.exit(run())
