#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests of SQLite databases, run again with the same tables on a PostgreSQL server. Those that fail are written in
engine-differences.txt, each for a difference that docs/engines.md describes.

usage: test_engine_suites.py [--verbose] [SUITE]...
"""
from harness import CHINOOK, main
from client import Failure, reference
from postgres import Relay, for_tests
from results import QUERIES, TABLES
from suites import VERBOSE, Suites
from tap import diagnose, test

import on_postgresql

SUITES = (
    "bus/parameters", "bus/clients", "bus/transactions", "bus/batches", "bus/writes", "bus/load", "bus/library_writes",
    "bus/library_transactions", "bus/library_batches", "cli/query", "python/dbapi",
)  # fmt: skip
server = for_tests("CREATE ROLE app LOGIN CREATEDB")
suites = Suites("engine", "Difference", {"SQLIPC_TEST_POSTGRESQL": str(server.folder)})

for each in SUITES:
    suites.add(each)


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
        suites.compare("results", same)


@test
def documented():
    """Each difference of the list is described in the documentation, and each that is described there is in the list"""
    suites.check_documentation()


main(server)
