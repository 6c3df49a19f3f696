#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQL that is written to do harm: endless, stuck at a point that cannot be interrupted, larger than memory and disk, slow to
compile, as deep and wide as limits allow. Each query gets an answer or a named error, over each transport. Neighbours are
answered meanwhile, and afterwards the service is as before.
"""
import collections
import functools
import os
import sqlite3

import settled
from channel import Channel
from client import Broken, Failure, reference, same_rows
from harness import CHINOOK, SANITIZED, UID_A, UID_B, Service, main
from neighbours import besieged
from steps import COMPILES_FOR_MINUTES
from tap import cases, true

A = UID_A if os.geteuid() == 0 else None
LIMITS = {**settled.QUICK, "SQLSizeMax": 1000000, "PrepareTimeoutSec": 60, "TempSizeMax": "64M", "HeapMax": "128M",
          "WorkersMax": 4}  # fmt: skip
# An endless statement computes until then. The others may reach another limit before.
SOON, TIMEOUT = {"timeout-usec": 100000}, {"timeout-usec": 300000}
# For what has no end; what has an answer may take longer, until a worker has started and found a CPU.
SHORT = f"[Database]\nPath={CHINOOK}\nAllowUsers=*\n[Limits]\nPrepareTimeoutSec=0.5\n"
N = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) "
TEN_MB = "hex(zeroblob(5000000))"

service = Service({"chinook": CHINOOK}, limits=LIMITS, start=False)
service.database("short", text=SHORT)
service.start()

ENDLESS = {
    "recursion": f"{N}SELECT count(*) FROM n",
    "recursion that yields nothing": f"{N}SELECT x FROM n WHERE x < 0",
    "recursion without a new row": "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n",
    "cross joins": "SELECT count(*) FROM Track a, Track b, Track c, Track d",
    "cross joins that yield nothing": "SELECT 1 FROM Track a, Track b, Track c WHERE a.Name || b.Name = c.Name || 'x'",
    "correlated subqueries": "SELECT count((SELECT count((SELECT count(*) FROM Track c WHERE c.TrackId > a.TrackId +"
    " b.TrackId)) FROM Track b)) FROM Track a",
    "patterns by row": "SELECT count(*) FROM Track a, Track b, Genre WHERE a.Name || b.Name LIKE '%a%e%i%o%u%x%y%z%q'",
    "globs by row": "SELECT count(*) FROM Track a, Track b, Genre WHERE a.Name || b.Name GLOB '*a*e*i*o*u*x*y*z*q'",
    "functions by row": f"{N}SELECT sum(length(printf('%0100000d', x))) FROM n",
    "json by row": f"{N}SELECT sum(json_extract(json_array(x, json_object('a', x)), '$[1].a')) FROM n",
}
# SQLite computes these without checking for an interrupt: only the end of the worker helps.
STUCK = {
    "instr": f"SELECT instr({TEN_MB}, hex(zeroblob(2500000)) || 'b')",
    "replace": f"SELECT length(replace({TEN_MB}, hex(zeroblob(2000000)) || 'b', 'x'))",
}
LARGE = {
    "zeroblob": "SELECT zeroblob(1000000000)",
    "zeroblob past all": "SELECT zeroblob(9223372036854775807)",
    "randomblob": "SELECT length(randomblob(1000000000))",
    "printf by width": "SELECT length(printf('%1000000000d', 1))",
    "printf by precision": "SELECT length(printf('%.*c', 1000000000, 'x'))",
    "hex": "SELECT hex(zeroblob(500000000))",
    "quote": "SELECT length(quote(zeroblob(490000000)))",
    "replace": f"SELECT length(replace({TEN_MB}, '0', hex(zeroblob(1000))))",
    "group_concat": f"{N}SELECT group_concat({TEN_MB}) FROM (SELECT x FROM n LIMIT 1000)",
    "doubling": "WITH RECURSIVE d(s) AS (VALUES('x') UNION ALL SELECT s || s FROM d) SELECT max(length(s)) FROM d",
    "json_group_array": f"{N}SELECT json_group_array({TEN_MB}) FROM (SELECT x FROM n LIMIT 1000)",
    "json of json": f"SELECT json_array({', '.join([TEN_MB] * 50)})",
    "wide row": f"SELECT {', '.join([TEN_MB] * 100)}",
}
SPILLS = {
    "sort": f"{N}SELECT y FROM (SELECT x, randomblob(2000) AS y FROM n) ORDER BY y",
    "distinct": f"{N}SELECT count(*) FROM (SELECT DISTINCT randomblob(2000) FROM n)",
    "groups": f"{N}SELECT count(*) FROM n GROUP BY randomblob(2000)",
    "union": f"{N}SELECT randomblob(2000) FROM n UNION SELECT 1",
    "recursion with UNION": "WITH RECURSIVE n(x) AS (VALUES(x'') UNION SELECT randomblob(2000) FROM n)"
    " SELECT count(*) FROM n",
    "materialized": f"{N}, m AS MATERIALIZED (SELECT randomblob(2000) AS y FROM n) SELECT count(*) FROM m a, m b",
    "windows": "SELECT count(*) FROM (SELECT sum(a.TrackId) OVER (ORDER BY b.Name ROWS BETWEEN 1000 PRECEDING AND"
    " CURRENT ROW) FROM Track a, Track b)",
    "window": f"{N}SELECT sum(x) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), randomblob(99) FROM n",
}


def doubled(levels):
    ctes = "".join(f", c{n}(x) AS (SELECT x FROM c{n - 1} UNION ALL SELECT x FROM c{n - 1})" for n in range(1, levels))
    return f"WITH c0(x) AS (SELECT 1){ctes} SELECT count(*) FROM c{levels - 1}"


def nested(n):
    return "SELECT " + "(" * n + "1" + ")" * n


def tables(n):
    return "SELECT count(*) FROM " + ", ".join(f"Genre g{i}" for i in range(n)) + " WHERE 0"


COMPILED = {
    "21 levels of CTEs": doubled(21),
    "17 levels of CTEs": doubled(17),
    "64 joined tables": tables(64) + "".join(f" AND g{i}.GenreId = g{i + 1}.GenreId" for i in range(63)),
    "64 tables, all columns": "SELECT * FROM " + " JOIN ".join(f"Track t{i}" for i in range(64)) + " LIMIT 1",
    "views of views": "WITH v0 AS (SELECT * FROM Track)"
    + "".join(f", v{i} AS (SELECT * FROM v{i - 1})" for i in range(1, 300)) + " SELECT count(*) FROM v299",
    "a list of 100,000": "SELECT 1 IN (" + ",".join(map(str, range(100000))) + ")",
    "a CASE of 30,000": "SELECT CASE 1" + "".join(f" WHEN {i} THEN {i}" for i in range(30000)) + " END",
    "OR of 900": "SELECT count(*) FROM Track WHERE "
    + " OR ".join(f"TrackId = {i} AND Name LIKE 'x{i}%'" for i in range(900)),
    "windows by the hundred": "SELECT "
    + ", ".join(f"sum(TrackId) OVER (ORDER BY Name || {i})" for i in range(200)) + " FROM Track",
}
# Within all limits.
FOR_MINUTES = {"100,000 constants": COMPILES_FOR_MINUTES}
# Within limits: the right answer.
DEEP_AND_WIDE = {
    "2,000 columns": ("SELECT " + ", ".join(map(str, range(2000))), [list(range(2000))]),
    "900 deep": ("SELECT 1" + "+1" * 899, [[900]]),
    "90 NOTs": ("SELECT " + "NOT " * 90 + "1", [[1]]),
    "500 SELECTs": (" UNION ALL ".join(["SELECT 1"] * 500), [[1]] * 500),
    "64 tables": (tables(64), [[0]]),
    "a million bytes": ("SELECT 1" + " " * 999992, [[1]]),
    "12 levels of CTEs": (doubled(12), [[2048]]),
    "12 subqueries": ("SELECT * FROM (" * 12 + "SELECT 1" + ")" * 12, [[1]]),
}
# One past them.
TOO_MUCH = {
    "2,001 columns": "SELECT " + ", ".join(map(str, range(2001))),
    "1,100 deep": "SELECT 1" + "+1" * 1100,
    "501 SELECTs": " UNION ALL ".join(["SELECT 1"] * 501),
    "65 tables": tables(65),
    "a million and one": "SELECT 1" + " " * 999993,
    "a pattern of 50,001": "SELECT 'x' LIKE '" + "%" * 50001 + "'",
    "parameter 32,767": "SELECT ?32767",
    "200 function arguments": "SELECT max(" + ", ".join(["1"] * 200) + ")",
}
# The parser's stack grows with the statement since SQLite 3.46.
PARENTHESES = {"10,000 parentheses": nested(10000)}
if sqlite3.sqlite_version_info >= (3, 46):
    DEEP_AND_WIDE |= {name: (sql, [[1]]) for name, sql in PARENTHESES.items()}
else:
    TOO_MUCH |= PARENTHESES
# Past a limit that is the function's own.
WRONG = {"json 10,000 deep": "SELECT json('" + "[" * 10000 + "]" * 10000 + "')"}


def down_a_pipe(client, sql, database, options):
    return client.query(database, sql, options=options).read().rows


def as_values(client, sql, database, options):
    return client.query_rows(database, sql, options={**options, "max-bytes": 1 << 20})[1]


def by_cursor(client, sql, database, options):
    return client.all_rows(database, sql, options=options)[1]


def on_a_channel(client, sql, database, options):
    channel = Channel(client, database)
    try:
        return channel.ask(sql, timeout_usec=options.get("timeout-usec", 0))
    finally:
        channel.close()


WAYS = (down_a_pipe, as_values, by_cursor, on_a_channel)
IN_SHORT, IN_ITS_TIME = ("short", TIMEOUT), ("chinook", {})


def outcome(way, client, sql, time=IN_SHORT):
    """Rows, or the name of the error; a stream that breaks off is the loss of its worker."""
    try:
        return way(client, sql, *time)
    except Broken:
        return "WorkerLost"
    except Failure as failure:
        true(len(failure.message.split()) > 1, f"{failure.name} says only {failure.message!r}")
        return failure.name.removeprefix("org.sqlipc1.Error.")


def attack(statements, allowed, ways=WAYS, time=IN_SHORT):
    """Each statement each way, one after the other: none may bring anything but `allowed`."""
    client, tried = service.client(A), 0
    for name, sql in statements.items():
        for way in ways:
            got = outcome(way, client, sql, time)
            true(isinstance(got, str) and got in allowed, f"{name}, {way.__name__}: {str(got)[:200]}, and none of {allowed}")
            tried += 1
    cases("hostile sql", tried, "a statement in a way that is there to do harm")


@besieged(service, UID_B)
def endless():
    """Recursion, joins, subqueries, patterns, windows that never end: TimedOut, by each transport"""
    attack(ENDLESS, {"TimedOut"}, WAYS[:: 3 if SANITIZED else 1], ("short", SOON))


@besieged(service, UID_B)
def stuck():
    """Functions that compute for minutes without a progress handler: the worker ends, the client gets a named error"""
    attack(STUCK, {"TimedOut", "WorkerLost"}, (as_values, on_a_channel)[: 1 if SANITIZED else 2])


@besieged(service, UID_B)
def large():
    """Strings and blobs of a gigabyte, by every function that makes one"""
    fine = {"OutOfMemory", "LimitsExceeded", "RowTooLarge", "TimedOut", "WorkerLost"}
    attack(LARGE, fine, WAYS[:: 3 if SANITIZED else 1])


@besieged(service, UID_B)
def spills():
    """Sorts, groups and tables that fill temporary files without end"""
    attack(SPILLS, {"LimitsExceeded", "TimedOut", "OutOfMemory"}, WAYS[:: 3 if SANITIZED else 1])


@besieged(service, UID_B)
def compiled():
    """Statements that compile for long: TimedOut, a limit, or the right answer in time"""
    client, tried, errors = service.client(A), 0, collections.Counter()
    for sql in COMPILED.values():
        expected = functools.cache(lambda sql=sql: reference(CHINOOK, sql)[1])
        for way in WAYS[:: 3 if SANITIZED else 1]:
            got = outcome(way, client, sql)
            if isinstance(got, list):
                same_rows(got, expected())
            else:
                errors[got] += 1
            tried += 1
    fine = {"OutOfMemory", "LimitsExceeded", "TimedOut", "WorkerLost"}
    true(errors and errors.keys() <= fine, f"errors were {dict(errors)}, and are to be of {fine}")
    cases("hostile sql", tried, "a statement in a way that is there to do harm")


@besieged(service, UID_B)
def compiled_for_minutes():
    """A statement that compiles for more than a minute in little memory: its client gets a named error"""
    attack(FOR_MINUTES, {"TimedOut", "WorkerLost"}, WAYS[:: 3 if SANITIZED else 1])


@besieged(service, UID_B)
def deep_and_wide():
    """The deepest and widest statements within the limits return the right rows, those past a limit an error by name"""
    client, tried = service.client(A), 0
    for name, (sql, rows) in DEEP_AND_WIDE.items():
        for way in WAYS:
            got = outcome(way, client, sql, IN_ITS_TIME)
            true(got == rows, f"{name}, {way.__name__}: {str(got)[:200]}")
            tried += 1
    cases("hostile sql", tried, "a statement as deep or wide as limits allow, in a way")
    attack(TOO_MUCH, {"LimitsExceeded"}, time=IN_ITS_TIME)
    attack(WRONG, {"Sql"}, time=IN_ITS_TIME)


if __name__ == "__main__":
    main(service)
