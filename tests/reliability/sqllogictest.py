#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs files in the format of SQLite's sqllogictest, with the queries sent through the service.

    SQLIPC_BUILD_ROOT=$PWD/build tests/reliability/sqllogictest.py [--transport NAME]... FILE|FOLDER...

Statements change the database in process, as its owner does. Queries read it through the service, by each transport that
is named: pipe, channel, dbus (values in replies), relay (libsqlipc over a bus that passes no descriptors). The default is
all of them. Each file has its own database. Prints each failure and the number of records; the exit code is 1 if a record
failed.

The format (https://www.sqlite.org/sqllogictest/doc/trunk/about.wiki): records are separated by empty lines. Every line
that begins with # is a comment.

    statement ok|error                        The SQL is in the lines after it; further words are ignored
    query TYPES [nosort|rowsort|valuesort] [LABEL]
                                              SQL, ---- and the values, one a line, or "N values hashing to MD5". No values,
                                              or no ----: the result has no rows. All queries with the same label have the
                                              same result, and so has a skipped one as the file writes it. With a label and
                                              nothing else, only that is compared
    skipif NAME, onlyif NAME                  Apply to the next record alone; our name is "sqlite", or "SQLite"
    hash-threshold N                          more values than N are written as a hash
    halt                                      the file ends here
"""

import argparse
import contextlib
import hashlib
import itertools
import pathlib
import re
import sqlite3
import sys
from collections import Counter, namedtuple

import settled  # noqa: F401 - finds tests/bus

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "differential"))

from channel import Channel  # noqa: E402
from client import Failure, Text  # noqa: E402
from comparer import relay_address  # noqa: E402
from harness import Service  # noqa: E402
from library import Library  # noqa: E402

ENGINE = "sqlite"
TRANSPORTS = ("pipe", "channel", "dbus", "relay")
SORTS = ("nosort", "rowsort", "valuesort")
HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})$")
NUMBERS = itertools.count(1)  # of databases
Record = namedtuple("Record", "line kind words sql expected wanted")


class Malformed(Exception):
    """The file is not in the format."""


# ---- The format ----


def blocks(text):
    """(number of the first line, lines) of each block between empty lines, without the comments before it."""
    block, first = [], 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        line = line.removesuffix("\r")
        if line.startswith("#"):
            continue
        if line.strip():
            first = first if block else number
            block.append(line)
        elif block:
            yield first, block
            block = []


def applies(line):
    """Of `skipif` and `onlyif`: whether the record behind them is for us."""
    verb, engine = line.split()[:2]
    return (engine.lower() == ENGINE) == (verb == "onlyif")


def record(number, block):
    """The record of a block; not `wanted`: it is for another engine."""
    wanted = True
    while block and block[0].split()[0] in ("skipif", "onlyif"):
        if len(block[0].split()) < 2:
            raise Malformed(f"line {number}: {block[0]}: which engine?")
        wanted &= applies(block[0])
        block, number = block[1:], number + 1
    if not block:
        raise Malformed(f"line {number - 1}: no record behind it")
    kind, *words = block[0].split()
    if kind not in ("statement", "query", "halt", "hash-threshold"):
        raise Malformed(f"line {number}: {kind} is no record")
    sql, expected = block[1:], None
    if kind == "query" and "----" in sql:
        at = sql.index("----")
        sql, expected = sql[:at], sql[at + 1 :]
    return Record(number, kind, words, "\n".join(sql), expected, wanted)


def check_form(one):
    """Raises Malformed for words that say nothing."""
    words = one.words
    good = {
        "statement": words[:1] in (["ok"], ["error"]) and one.sql,
        "query": words and set(words[0]) <= set("ITR") and (len(words) < 2 or words[1] in SORTS) and one.sql,
        "hash-threshold": len(words) == 1 and words[0].isdigit(),
        "halt": not words,
    }
    if not good[one.kind]:
        raise Malformed(f"line {one.line}: {one.kind} {' '.join(words)}")


# ---- Values as text ----

CONVERTER = sqlite3.connect(":memory:")
CONVERTER.text_factory = bytes


def cast(value, kind):
    """As SQLite's column functions convert it."""
    value = value.decode("utf-8", "replace") if isinstance(value, Text) else value
    return CONVERTER.execute(f"SELECT CAST(? AS {kind})", (value,)).fetchone()[0]


def show(value, kind):
    """A value as its column's letter has it written."""
    if value is None:
        return "NULL"
    if kind == "I":
        return str((cast(value, "INTEGER") + 2**31) % 2**32 - 2**31)  # sqlite3_column_int()
    if kind == "R":  # 199 bytes are what the original has room for
        return CONVERTER.execute("SELECT printf('%.3f', ?)", (cast(value, "REAL"),)).fetchone()[0].decode()[:199]
    text = bytes(value) if isinstance(value, bytes) else cast(value, "TEXT")
    text = text.split(b"\0")[0]  # a C string
    return "".join(chr(b) if 32 <= b <= 126 else "@" for b in text) or "(empty)"


def arrange(rows, types, sort):
    """The values one by one, in the order that the record wants."""
    shown = [[show(value, kind) for value, kind in zip(row, types)] for row in rows]
    if sort == "rowsort":
        shown.sort()
    values = [value for row in shown for value in row]
    return sorted(values) if sort == "valuesort" else values


def digest(values):
    """MD5 of the values, each with a line break behind it."""
    return hashlib.md5("".join(f"{value}\n" for value in values).encode(), usedforsecurity=False).hexdigest()


def expected_values(lines, types):
    """One value a line; or, as some files have it, a row a line."""
    if len(types) > 1 and lines and all(len(line.split()) == len(types) for line in lines):
        return [value for line in lines for value in line.split()]
    return lines


def hashed(lines):
    """The match of the expected hash, if it is one."""
    return HASHED.match(lines[0]) if len(lines) == 1 else None


def fault_in(values, lines, types, threshold):
    """The error in the values of a query, or None."""
    if hashed(lines):
        got = f"{len(values)} values hashing to {digest(values)}"
        return None if got == lines[0] else f"got {got}, expected {lines[0]}"
    if values in (lines, expected_values(lines, types)):
        return None
    return f"got {len(values)} values {values[: threshold or 20]!r:.300}, expected {lines!r:.300}"


# ---- A run ----


class Sides:
    """The transports, each with a connection of its own."""

    def __init__(self, service, names, stack):
        self.service, self.names, self.stack = service, names, stack
        self.client = service.client()
        self.channel = self.database = None
        self.library = (
            stack.enter_context(Library(service, opening=f"open {relay_address(service)}")) if "relay" in names else None
        )

    def use(self, database):
        self.close_channel()
        self.database = database
        self.channel = Channel(self.client, database) if "channel" in self.names else None

    def close_channel(self):
        if self.channel:
            self.channel.close()
        self.channel = None

    def ask(self, name, sql):
        """Rows, or Failure."""
        if name == "pipe":
            return self.client.query(self.database, sql).read().rows
        if name == "channel":
            return self.channel.ask(sql)
        if name == "dbus":
            return self.client.all_rows(self.database, sql)[1]
        return self.relayed(sql)

    def relayed(self, sql):
        """Of one line: line breaks become spaces there."""
        self.library.process.stdin.write(f"query {self.database} " + sql.replace("\n", " ") + "\n")
        self.library.process.stdin.flush()
        answer = self.library.hear()
        rows = []
        if answer == "ok":
            rows, answer = self.library.ask("rows 0")
        if not answer.startswith("end"):
            raise Failure("relay", answer, 0, -1, 0)
        return rows


class Run:
    """One file over one database."""

    def __init__(self, sides, path, counts):
        self.sides, self.path, self.counts = sides, path, counts
        self.threshold, self.labels, self.failures = 0, {}, []
        name = f"file{next(NUMBERS)}"
        counts["files"] += 1
        database = sides.service.data / f"{name}.sqlite"
        self.db = sqlite3.connect(database, isolation_level=None)
        self.db.text_factory = bytes
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute("PRAGMA user_version = 1")  # there is a file
        sides.service.database(name, Path=database)
        sides.service.driver.manager("Reload")
        sides.use(name)

    def fail(self, one, what):
        self.failures.append(f"{self.path}:{one.line}: {what}")

    def statement(self, one):
        self.counts["statements"] += 1
        try:
            self.db.execute(one.sql).fetchall()
            failed = None
        except sqlite3.Error as error:
            failed = str(error)
        if (failed is not None) != (one.words[0] == "error"):
            self.fail(one, failed or "it should fail, and does not")

    def query(self, one):
        types, sort = one.words[0], (one.words[1:2] or ["nosort"])[0]
        for name in self.sides.names:
            self.counts["queries"] += 1
            try:
                rows = self.sides.ask(name, one.sql)
            except Failure as failure:
                self.fail(one, f"{name}: {failure}")
                continue
            if rows and len(rows[0]) != len(types):
                self.fail(one, f"{name}: {len(rows[0])} columns instead of {len(types)}")
                continue
            self.judge(one, name, arrange(rows, types, sort))

    def judge(self, one, name, values):
        label = one.words[2:3]
        if one.expected is not None or not label:
            fault = fault_in(values, one.expected or [], one.words[0], self.threshold)
            if fault:
                self.fail(one, f"{name}: {fault}")
        if label:
            self.agree(one, name, digest(values))

    def agree(self, one, name, md5):
        """Checks that the query returns the same as others with its label."""
        if self.labels.setdefault(one.words[2], md5) != md5:
            self.fail(one, f"{name}: other values than before under the label {one.words[2]}")

    def skip(self, one):
        """Of a record for another engine: what the file says that a label stands for."""
        self.counts["skipped"] += 1
        if one.kind == "query" and len(one.words) > 2 and one.expected:
            hash_line = hashed(one.expected)
            self.agree(one, "skipped", hash_line[2] if hash_line else digest(one.expected))

    def run(self):
        """The failures, a line each."""
        for number, block in blocks(self.path.read_text(encoding="utf-8", errors="surrogateescape")):
            one = record(number, block)
            if not one.wanted:
                self.skip(one)
                continue
            check_form(one)
            if one.kind == "halt":
                break
            if one.kind == "hash-threshold":
                self.threshold = int(one.words[0])
            else:
                getattr(self, one.kind)(one)
        self.sides.close_channel()
        self.db.close()
        return self.failures


def files_of(paths):
    for path in paths:
        yield from sorted(path.rglob("*.test")) if path.is_dir() else [path]


def run_files(service, paths, transports=TRANSPORTS):
    """The failures, and counts."""
    counts, failures = Counter(), []
    with contextlib.ExitStack() as stack:
        sides = Sides(service, transports, stack)
        for path in files_of(paths):
            try:
                failures += Run(sides, path, counts).run()
            except Malformed as fault:
                failures.append(f"{path}: {fault}")
    return failures, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--transport", action="append", choices=TRANSPORTS)
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    with Service() as service:
        failures, counts = run_files(service, options.paths, tuple(options.transport or TRANSPORTS))
    print(*failures, sep="\n", end="\n" if failures else "")
    print(", ".join(f"{count} {what}" for what, count in counts.items()) + f", {len(failures)} failed")
    return 1 if failures or not counts["files"] else 0


if __name__ == "__main__":
    sys.exit(main())
