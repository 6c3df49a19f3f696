#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests of SQLite databases, run again with the same tables on a PostgreSQL server. Those that fail are written in
engine-differences.txt, each for a difference that docs/engines.md describes. A test that fails without being in the list is
a defect; so is one that is in the list and passes.

usage: test_engine_suites.py [--verbose] [SUITE]...
"""
import os
import re
import subprocess
import sys

from harness import BUILD_ROOT, CHINOOK, SOURCE_ROOT, main
from client import Failure, reference
from postgres import Relay, for_tests
from results import QUERIES, TABLES
from tap import diagnose, equal, test, true

import on_postgresql

HERE = SOURCE_ROOT / "tests"
SUITES = (
    "bus/parameters", "bus/clients", "bus/transactions", "bus/batches", "bus/writes", "bus/load", "bus/library_writes",
    "bus/library_transactions", "bus/library_batches", "cli/query", "python/dbapi",
)  # fmt: skip
VERBOSE = "--verbose" in sys.argv
sys.argv = [argument for argument in sys.argv if argument != "--verbose"]
PATIENCE = "60"  # seconds that a test of a suite waits at most
WAY = re.compile(r" \((auto|channel|dbus|pipe)\)$")

server = for_tests("CREATE ROLE app LOGIN CREATEDB")


def differences(suite):
    """Returns what the list says about a suite: title of a test -> difference."""
    found = {}
    for line in (HERE / "bus/engine-differences.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            of_it, difference, title = line.split(" ", 2)
            if of_it == suite:
                found[title] = difference
    return found


def described():
    """Returns the differences that the documentation has, from its table."""
    text = (SOURCE_ROOT / "docs/engines.md").read_text().split("| Difference |", 1)[1].split("\n\n", 1)[0]
    return set(re.findall(r"^\| `([a-z-]+)` \|", text, re.M))


def run(suite):
    """Runs a suite on the server; returns the titles of tests, without the way by which a client asks, and if all passed."""
    folder, name = suite.split("/")
    environment = os.environ | {
        "SQLIPC_TEST_POSTGRESQL": str(server.folder),
        "SQLIPC_TEST_PATIENCE": PATIENCE,
        "PYTHONPATH": f"{BUILD_ROOT}/client-lib/python:{HERE}/bus",
    }
    done = subprocess.run(
        ["/usr/bin/python3", HERE / folder / f"test_{name}.py"], env=environment, capture_output=True, check=False
    )
    output = done.stdout.decode(errors="replace")
    if VERBOSE:
        diagnose(output)
    titles = {}
    for failed, title in re.findall(r"^(not )?ok \d+ - (.*)$", output, re.M):
        if "# SKIP" not in title:
            title = WAY.sub("", title)
            titles[title] = titles.get(title, True) and not failed
    true(titles, f"the suite ran: {output[-2000:]} {done.stderr.decode(errors='replace')[-2000:]}")
    return titles


def compare(suite, passed):
    """`passed`: title -> if it passed."""
    listed = differences(suite)
    equal(sorted(t for t, ok in passed.items() if not ok and t not in listed), [], "differences that are not in the list")
    equal(sorted(t for t in listed if passed.get(t, True)), [], "entries of the list that do not differ")
    print(f"# {suite}: {sum(passed.values())} as with SQLite, {len(listed)} differ")


def add(suite):
    def one():
        compare(suite, run(suite))

    one.__name__, one.__doc__ = suite.replace("/", "_"), f"{suite}: as with SQLite, except for the list"
    test(one)


for each in SUITES:
    add(each)


@test
def results():
    """results: queries and tables give the rows that SQLite gives, except for the list"""
    on_postgresql.FOLDER = str(server.folder)
    keys = on_postgresql.keys_of(CHINOOK, {})
    on_postgresql.FOLDER = ""
    queries = {f"table {name}": (f"SELECT * FROM {name}", ()) for name in TABLES} | QUERIES
    with Relay({"chinook": keys}) as service:
        client, same = service.client(), {}
        for title, (sql, parameters) in queries.items():
            names, rows = reference(CHINOOK, sql, parameters)
            try:
                result = client.query("chinook", sql, parameters).read()
                got = [n.decode().lower() for n, _ in result.columns], sorted(map(repr, result.rows))
                same[title] = got == ([n.lower() for n in names], sorted(map(repr, rows)))
                if VERBOSE and not same[title]:
                    diagnose(f"{title}: {result.rows[:2]} {rows[:2]}")
            except Failure as failure:
                same[title] = False
                if VERBOSE:
                    diagnose(f"{title}: {failure}")
        compare("results", same)


@test
def documented():
    """Each difference of the list is described in the documentation, and each that is described there is in the list"""
    listed = set()
    for suite in (*SUITES, "results"):
        listed |= set(differences(suite).values())
    equal(sorted(listed), sorted(described()), "differences")


main(server)
