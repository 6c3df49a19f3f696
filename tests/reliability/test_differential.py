#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random queries over random databases give the same result through the service as in process.

Compared are names, types and bits of every value, order of rows, and error codes; by every transport and page size.

    test_differential.py [--queries N | --minutes M] [--seed S]       more of them
    test_differential.py --replay FILE                                repeats a written one that differed

libsqlipc sends every query over a pipe, on a channel, as D-Bus values, and again through a relay that passes no
descriptors. The test also sends it by hand with a certain page size, over a pipe or a channel. If the smallest page cannot
hold a result, the query is sent with every page size. Any other result is a single frame of rows with the same bytes for
every size: there one size is enough, and the sizes take turns. Plain queries over tables are also sent to a database with
Expose=, where the results are compared as sets.

A query that differs is made as small as possible, printed, and written into a file in the current folder for --replay.
"""

import argparse
import pathlib
import random
import sys
import time

import settled  # noqa: F401 - finds tests/bus

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "differential"))

from comparer import Comparer  # noqa: E402
from harness import BUILD_ROOT, WORKER, Service, main  # noqa: E402
from queries import Queries  # noqa: E402
from schema import Schemas  # noqa: E402
from shrink import Case, shrink  # noqa: E402
from sizes import size  # noqa: E402
from tap import at_most, cases, diagnose, equal, test, true  # noqa: E402

PER_SCHEMA = 250
LIMITS = {"WorkerIdleSec": "1"}
# The worker that asks SQLite for each value of a row, see row-layout.h.
WORKER_VALUES = BUILD_ROOT / "tests/reliability/differential/sqlipc-worker-values"
VALUES_PART = 5  # of the queries, one in so many: only the worker's encoder differs
MOST = 3  # differences that are shrunk before it ends


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--queries", type=int, default=size("queries of differential"))
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=pathlib.Path)
    options, sys.argv[1:] = parser.parse_known_args()
    return options


OPTIONS = arguments()


def enough(totals, start, part):
    if OPTIONS.minutes:
        return time.monotonic() - start > 60 * OPTIONS.minutes / part
    return totals["queries"] >= OPTIONS.queries / part


def report(comparer, case, number):
    """Shrinks, prints, writes down."""
    text = shrink(comparer, case).text()
    path = pathlib.Path(f"differential-{OPTIONS.seed}-{number}.case").absolute()
    path.write_text(text, encoding="utf-8")
    diagnose(f"a difference, also in {path}:\n{text}")


def compare(comparer, part):
    """Until it is enough; returns how many queries differed."""
    start, number, n_differing = time.monotonic(), 0, 0
    while not enough(comparer.totals, start, part) and n_differing < MOST:
        source = random.Random(f"{OPTIONS.seed} {number}")
        schema = Schemas(source).schema(number)
        generator = Queries(source, schema)
        comparer.publish(schema.script(), schema.exposed())
        queries = [generator.query(n) for n in range(PER_SCHEMA)]
        found = {difference.number: difference for difference in reversed(comparer.ask(queries))}
        for place, difference in list(found.items())[:1]:
            report(comparer, Case(schema, queries[place], difference), number * PER_SCHEMA + place)
        n_differing += len(found)
        number += 1
    return n_differing


def compare_with(worker, part=1):
    diagnose(f"seed {OPTIONS.seed}")
    with Service(limits=LIMITS, worker=worker) as service, Comparer(service) as comparer:
        differing = compare(comparer, part)
        totals = comparer.totals
        diagnose(
            f"{totals['runs']} runs, {totals['errors']} queries that SQLite refuses, {totals['bytes'] >> 20} MiB of values"
        )
        equal(differing, 0, "queries that differ")
        true(totals["errors"] * 5 < totals["queries"], "more than a fifth of the queries are errors")
        true(totals["runs"] >= 5 * totals["queries"], "runs of each query")
        true(totals["by pipe"] * 20 < totals["queries"], f"{totals['by pipe']} runs left the channel for a pipe")
        cases("differential", totals["queries"], "a random query: the same in process, by every transport, by page sizes")


@test
def random_queries():
    """Random queries return the same in process and by every transport and page size"""
    compare_with(WORKER)


@test
def each_value():
    """Random queries return the same if the worker asks SQLite for each value of a row"""
    compare_with(WORKER_VALUES, VALUES_PART)


# The falsified part, and the largest case that may remain.
FALSIFIED = ("channel:bit", "pipe:type", "relay:order", "dbus:row", "pipe-pages:name", "channel-pages:code", "exposed:bit")
SMALL = {"bytes of the query": 80, "tables": 1, "rows": 2}


def first_difference(comparer):
    """A case of the first schema that shows one."""
    for number in range(20):
        source = random.Random(f"falsified {number}")
        schema = Schemas(source).schema(number)
        generator = Queries(source, schema)
        comparer.publish(schema.script(), schema.exposed())
        queries = [generator.query(n) for n in range(100)]
        for difference in comparer.ask(queries):
            return Case(schema, queries[difference.number], difference)
    raise AssertionError("nothing differs, though it was falsified")


@test
def finder():
    """A falsified bit, type, row, order, name or error code is found, reduced, and found again from its file"""
    with Service(limits=LIMITS) as service, Comparer(service) as honest:
        for spoil in FALSIFIED:
            with Comparer(service, spoil) as comparer:
                case = shrink(comparer, first_difference(comparer))
                equal(case.difference.side, spoil.split(":")[0], "the side")
                sizes = (len(case.query.sql), len(tables := case.schema.tables), sum(len(table.rows) for table in tables))
                for (what, limit), size in zip(SMALL.items(), sizes):
                    at_most(size, limit, f"{spoil}: {case.query.sql}: {what}")
                again = Case.read(case.text())
                true(case.difference.side in [d.side for d in again.differences(comparer)], f"{spoil}: not from the file")
                equal(again.differences(honest), [], f"{spoil}: without the falsification")


def replay(path):
    case = Case.read(path.read_text(encoding="utf-8"))
    with Service(limits=LIMITS) as service, Comparer(service) as comparer:
        found = case.differences(comparer)
        for difference in found:
            print(*difference[1:], sep="\t")
        print("differs" if found else "the same")
        return bool(found)


if OPTIONS.replay:
    sys.exit(replay(OPTIONS.replay))
main()
