#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipc-bench roundtrip, marshal and reference: all ways are measured, what is computed adds up, and a way that a bus
refuses is left out and said, not shown.

That all ways bring the same bytes they check themselves, and fail otherwise.
"""
import json
import math
import os
import sqlite3
import subprocess

import harness
from harness import BUILD_ROOT, Service, main
from tap import equal, test, true

BENCH = BUILD_ROOT / "tools/bench/sqlipc-bench"
BY_BUS = "D-Bus, through the bus"
WAYS = ["pipe pair", "socket pair", "sealed memfd passed", "D-Bus, peer to peer", BY_BUS, "sqlipc, channel"]
PUBLISHED = ["kdbus COPY, 2014", "kdbus MEMFD, 2014", "pipe, 2014"]

# Any user may call the service, and no other name, as on a system bus.
STRANGERS_ARE_REFUSED = """
  <policy context="default">
    <deny send_type="method_call"/>
    <allow send_destination="org.freedesktop.DBus"/>
    <allow send_destination="org.sqlipc1"/>
  </policy>
</busconfig>"""
MESSAGE_SIZE_MAX = 20000
MESSAGES_ARE_SHORT = f"""
  <limit name="max_message_size">{MESSAGE_SIZE_MAX}</limit>
</busconfig>"""


def start_service(bus_config="</busconfig>"):
    """A service with the database that roundtrip asks for, on a bus of its own."""
    usual = harness.BUS_CONFIG
    harness.BUS_CONFIG = usual.replace("</busconfig>", bus_config)
    try:
        service = Service()
    finally:
        harness.BUS_CONFIG = usual
    path = service.data / "point.sqlite"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE point (id INTEGER PRIMARY KEY)")
    db.close()
    service.database("point", Path=path)
    service.driver.manager("Reload")
    return service


def bench(verb, service=None):
    command = [BENCH, verb, "--size=tiny", "--json"]
    if service:
        command.append(f"--address={service.address}")
    if verb == "roundtrip":
        command.append(f"--folder={service.data}")
    done = subprocess.run(list(map(str, command)), env=usual.environment, capture_output=True, check=False, timeout=300)
    equal((done.returncode, done.stderr), (0, b""), f"exit code and stderr of {verb}")
    return json.loads(done.stdout)


def tables(report):
    """Name of each table -> name of each row -> name of each column -> median; cells that hold nothing are not there."""
    return {
        table["id"]: {
            row["name"]: {
                column["name"]: cell["median"]
                for column, cell in zip(table["columns"], row["cells"])
                if isinstance(cell, dict)
            }
            for row in table["rows"]
        }
        for table in report["tables"]
    }


usual = start_service()


@test
def roundtrip():
    """roundtrip: each way at each size from 1 byte to 4 MiB, on one CPU and on two; published figures beside the first"""
    found = tables(bench("roundtrip", usual))
    sizes = [f"{1 << i} {unit}" for unit, n in (("B", 10), ("KiB", 10), ("MiB", 3)) for i in range(n)]
    n_cpus = len(os.sched_getaffinity(0))
    equal(sorted(found), sorted(["one-cpu", "one-cpu-costs"] + ["two-cpus", "two-cpus-costs"] * (n_cpus > 1)), "tables")
    for name in {"one-cpu", "two-cpus"} & found.keys():
        equal(list(found[name]), sizes, f"rows of {name}")
        for i, (size, cells) in enumerate(found[name].items()):
            equal([way for way in cells if way not in PUBLISHED], WAYS, f"ways at {size}")
            true(all(rate > 0 for rate in cells.values()), f"{size}: {cells}")
            equal(set(PUBLISHED) & cells.keys(), set(PUBLISHED if name == "one-cpu" and i <= 8 else []), f"at {size}")
    equal(found["one-cpu"]["1 B"]["pipe, 2014"], 192007, "the first of the published figures")
    for name in {"one-cpu-costs", "two-cpus-costs"} & found.keys():
        equal(list(found[name]), [f"{way}, {size}" for size in ("64 B", "64 KiB") for way in WAYS], f"rows of {name}")


@test
def bus_with_a_limit():
    """roundtrip: sizes over the bus's limit are left out with a note, all others measured"""
    with start_service(MESSAGES_ARE_SHORT) as service:
        report = bench("roundtrip", service)
    for size, cells in tables(report)["one-cpu"].items():
        n_bytes = int(size.split()[0]) * {"B": 1, "KiB": 1024, "MiB": 1 << 20}[size.split()[1]]
        equal(BY_BUS in cells, n_bytes < MESSAGE_SIZE_MAX, f"whether {size} went through the bus")
        equal([way for way in WAYS if way not in cells and way != BY_BUS], [], f"ways without a figure at {size}")
    notes = [note for note in report["notes"] if "16384" in note or "32768" in note]
    true(len(notes) == 1 and notes[0].startswith(f"{BY_BUS}: left out from 32768 bytes on"), report["notes"])


@test
def bus_of_strangers():
    """roundtrip, marshal: a bus that forbids calls between strangers is left out with a note"""
    with start_service(STRANGERS_ARE_REFUSED) as service:
        trips, calls = bench("roundtrip", service), bench("marshal", service)
    for report in (trips, calls):
        equal(len([note for note in report["notes"] if "policy forbids" in note]), 1, f"notes of {report['workload']}")
    for cells in tables(trips)["one-cpu"].values():
        equal([way for way in WAYS if way not in cells], [BY_BUS], "ways without a figure")
    equal(sorted(tables(calls)), ["calls", "hops", "parts"], "tables of marshal")
    true(all("bus" not in name for cells in tables(calls)["calls"].values() for name in cells), "columns of the bus")


@test
def marshal():
    """marshal: all numbers of integers; the parts of a call's time add up to it"""
    found = tables(bench("marshal", usual))
    numbers = ["1", "10", "100", "1000", "10000", "100000"]
    for name in ("calls", "parts", "where"):
        equal(list(found[name]), numbers, f"rows of {name}")
    for number, parts in found["where"].items():
        equal(parts["call"], found["calls"][number]["through the bus"], "the call")
        equal(parts["marshalling"], found["parts"][number]["marshal"], "marshalling")
        total = (
            parts["marshalling"]
            + parts["unmarshalling"]
            + 2 * (parts["each of two hops"] + parts["bus: routing, each way"])
            + parts["bus: the integers"]
        )
        true(math.isclose(total, parts["call"], rel_tol=1e-6), f"{number}: {parts} are {total} in all")
    equal(found["where"]["1"]["bus: the integers"], 0, "what one integer adds to one integer")
    equal(len(found["hops"]), 6, "hops, half of which were published")


@test
def reference():
    """reference: all ways, without a bus; the processor times of both sides add up"""
    found = tables(bench("reference"))
    ways = list(found["messages"])
    equal(len(ways), 6, f"ways: {ways}")
    for way, cells in found["messages"].items():
        parts = sum(cells[f"{who}, {what}"] for who in ("sender", "receiver") for what in ("user", "system"))
        true(math.isclose(parts, cells["user and system, both"], rel_tol=1e-6, abs_tol=1e-6), f"{way}: {cells}")
        true(cells["time"] > 0, f"{way}: {cells}")
    equal(len(found["system-calls"]), 20, f"calls: {list(found['system-calls'])}")


main(usual)
