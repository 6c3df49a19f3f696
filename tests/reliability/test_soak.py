#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipc-bench soak: for a minute, hundreds of clients of several users do everything at once, and are killed.

Nothing may be lost, wrong or left over, and nothing may grow. For hours, against a private service like this one, with the
report:

    tests/reliability/test_soak.py --time=8h --clients=400

For a service that already runs: sqlipc-bench(1), soak.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys

import settled
from harness import BUILD_ROOT, CHINOOK, SANITIZED, UID_A, UID_B, Service, main
from sizes import size
from tap import at_most, cases, diagnose, equal, test, true

BENCH = BUILD_ROOT / "tools/bench/sqlipc-bench"
# Slow readers wait for their turn behind those of nine others, on a machine that may have more to do; so do jobs.
LIMITS = {
    "RunsMax": 2000, "StatementsMax": 2000, "ChannelsMax": 500, "ParkTimeoutSec": 600, "QueueTimeoutSec": 600,
    "PrepareTimeoutSec": 600, "WorkerIdleSec": 5,
}  # fmt: skip
ROWS = 2000 if SANITIZED else 20000
# RssAnon comes in pages of 4 KiB, and malloc keeps some more or fewer of them from pause to pause. One
# allocation of 24 bytes that is lost at each answer is 23 KiB in 1,000 answers.
GROWTH_MAX = 4.0

parser = argparse.ArgumentParser()
parser.add_argument("--time", default=f"{size('seconds of soak')}s")
parser.add_argument("--clients", type=int, default=40 if SANITIZED else 200)
parser.add_argument("--seed", type=int, default=1)
options, sys.argv[1:] = parser.parse_known_args()

# It would have all processors to itself; other tests that run beside it go first.
os.nice(10)


def soak(service):
    """Runs it; its report as data, with the failures in words, and as text for the log."""
    path = service.data / "point.sqlite"
    command = [BENCH, "dataset", "--kind=point", f"--rows={ROWS}", "--wal", path]
    subprocess.run(command, check=True, env=service.environment)
    service.database("point", Path=path, Immutable="yes")
    service.database("chinook", Path=CHINOOK)
    service.driver.manager("Reload")
    before = settled.settle(service)
    uids = ["--uids=0,{},{}".format(UID_A, UID_B)] if os.geteuid() == 0 else []
    rounds = ["--rounds=4"] if SANITIZED else []
    arguments = [f"--time={options.time}", f"--clients={options.clients}", f"--seed={options.seed}", *uids, *rounds]
    command = [BENCH, "soak", "--json", f"--address={service.address}", f"--folder={service.data}", *arguments]
    done = subprocess.run(command, env=service.environment, capture_output=True, check=False)
    diagnose(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr.decode()}")
    if done.returncode != 0:
        diagnose(service.log_text()[-8000:])
    true(done.stdout, "no report")
    told = [line for line in done.stderr.decode().splitlines() if line.startswith("sqlipc-bench: soak:")]
    return before, done.returncode, json.loads(done.stdout) | {"told": told}


def table_of(report, name):
    """Rows of a table, each as column -> number."""
    table = next(table for table in report["tables"] if table["id"] == name)
    names = [column["name"] for column in table["columns"]]
    return {row["name"]: {n: c and c["median"] for n, c in zip(names, row["cells"])} for row in table["rows"]}


def show(report):
    for name, figure in report["figures"].items():
        diagnose(f"{name}: {figure['median']:.6g} {figure['unit']}")
    for name in ("operations", "held"):
        for row, cells in table_of(report, name).items():
            diagnose(f"{row}: " + ", ".join(f"{k} {v:.6g}" for k, v in cells.items() if v is not None))


def check_answers(report):
    figures = {name: figure["median"] for name, figure in report["figures"].items()}
    operations = table_of(report, "operations")
    failed = {name: row["failed"] for name, row in operations.items() if row["failed"]}
    equal(failed, {}, f"operations that failed, {report['told']}")
    equal([name for name, row in operations.items() if not row["answered"]], [], "operations that were never tried")
    equal(figures["never answered"], 0, "never answered")
    true(figures["processes of clients that were killed"] > 0, "no client was killed")
    return int(figures["answers"])


def check_held(report):
    """Behind it the service holds what it held before; meanwhile it had a lot to hold."""
    held = table_of(report, "held")
    before, most, after = held["before"], held["under load, at most"], held["behind it"]
    for what in ("statements", "runs", "channels", "workers"):
        equal((before[what], after[what]), (0, 0), f"{what}, before and behind")
        true(most[what] > 0, f"no {what} under load")
    true(most["parked"] > 0, "no client read slowly")
    if before["descriptors"] is not None:
        at_most(after["descriptors"], before["descriptors"], "descriptors behind it")


def growth(points):
    """The slope of the line through such points (x, y), less two standard errors."""
    xs, ys = zip(*points)
    slope, start = statistics.linear_regression(xs, ys)
    squares = sum((y - start - slope * x) ** 2 for x, y in points)
    return slope - 2 * math.sqrt(squares / (len(points) - 2) / (statistics.pvariance(xs) * len(xs)))


def rise(points):
    """How far all of the last quarter exceeds everything before it, for each unit of x. A heap that is trimmed and grows
    back does not exceed its earlier size, and one that makes a step in the last quarter was smaller at its beginning."""
    first = len(points) * 3 // 4
    before, after = max(y for _, y in points[:first]), min(y for _, y in points[first:])
    return (after - before) / (points[first][0] - points[first - 1][0])


def kept(points, after):
    """How far the memory behind it all, `after`, exceeds that of the first pause, for each unit of x. Blocks of clients that
    hold a late step of the heap are free then; a leak is not."""
    return (after - points[0][1]) / (points[-1][0] - points[0][0])


def grown(points, after):
    """A leak shows as a slope, as a rise, and in the memory that is kept; a step of the heap only in some of them."""
    return min(growth(points[len(points) // 2 :]), rise(points), kept(points, after))


def check_growth(report):
    """The heap reaches its size in steps in the first half, and that is later on a busy machine. A leak goes on."""
    held = table_of(report, "held")
    rows = [row for name, row in held.items() if name.startswith("at rest")]
    points = [(row["answers so far"] / 1000, row["supervisor"]) for row in rows]
    true(len(points) >= 8, f"only {len(points)} pauses")
    at_most(grown(points, held["behind it"]["supervisor"]), GROWTH_MAX, "growth of the supervisor, KiB in 1,000 answers")


@test
def growth_is_found():
    """A leak at each answer is found, also under steps; a heap that has reached its size is none"""
    steps = [1856, 1856, 2496, 2052, 2052, 2048, 2624, 2624, 2624, 2628, 2624, 2624]
    trimmed = [3244, 2092, 2156, 2156, 2092, 2092, 2092, 2156, 3448, 3448, 3444, 3444]
    late = [1980, 1992, 1996, 1996, 2172, 1996, 1996, 1996, 1996, 1996, 2444, 2444]
    held_to_the_end = [2192, 2192, 2192, 2192, 2192, 2192, 2192, 2192, 2192, 2320, 2704, 2704]
    for heap, after in ((steps, 2624), (trimmed, 3444), (late, 2444), (held_to_the_end, 2192)):
        at_most(grown([(6 * i, y) for i, y in enumerate(heap)], after), GROWTH_MAX, f"growth of {heap}")
        leaking = [(6 * i, y + 23 * 6 * i) for i, y in enumerate(heap)]
        found = grown(leaking, after + 23 * 6 * len(heap))
        true(found > GROWTH_MAX, f"the leak is not found: {found}")


@test
def hundreds_of_clients():
    """Hundreds of clients at once: all answers are right, nothing is left behind, and nothing has grown"""
    with Service(limits=LIMITS) as service:
        before, code, report = soak(service)
        show(report)
        n = check_answers(report)
        equal(code, 0, f"exit code; verdict: {report['facts']['verdict']}")
        check_held(report)
        if not SANITIZED:  # whose quarantine is what would be measured
            check_growth(report)
        settled.as_before(service, before)
        cases("soak", n, "an operation of one of hundreds of clients at once, some of which are killed")


if __name__ == "__main__":
    main()
