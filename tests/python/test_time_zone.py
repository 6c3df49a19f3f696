#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`localtime` and `utc` use the time zone of the program, as with sqlite3, whichever clients the worker serves besides."""

import concurrent.futures
import contextlib
import functools
import json
import os
import subprocess
import sys

from channel import Channel
from client import GLib
from harness import CLI, UID_B, expect, main
from load_stream import begin_load, send, stream, wait_for_load
from python_service import PythonService
from tap import equal, test, true

service = PythonService(limits={"WorkersMax": 1})

# Both edges of summer time in the north and in the south, a leap day, times before and after those of the zone files.
TIMES = [
    "2024-03-31 00:59:59", "2024-03-31 01:00:00", "2024-03-31 02:30:00", "2024-10-27 00:30:00", "2024-10-27 01:00:00",
    "2024-10-27 02:30:00", "2024-03-10 06:59:59", "2024-03-10 07:00:00", "2024-11-03 05:30:00", "2024-11-03 06:30:00",
    "2024-04-06 13:59:59", "2024-10-05 15:45:00", "2024-02-29 23:59:59", "1968-02-18 12:00:00", "1900-01-01 00:00:00",
    "2037-12-31 23:59:59", "2100-07-01 12:00:00",
]
ZONES = [
    "Europe/Berlin", ":America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia",
    "UTC", "", ":", "Nowhere/At_All", "no zone?", "EST5EDT", "CET-1CEST,M3.5.0,M10.5.0/3", "<+0330>-3:30", "XYZ-25:59",
    "/usr/share/zoneinfo/Europe/Lisbon", ":/usr/share/zoneinfo/Europe/Lisbon", "/no/such/file", None,
]
COMPUTED = "datetime(?1, 'localtime'), datetime(?1, 'utc'), strftime('%s', ?1, 'utc'), "
COMPUTED += "date(?1, 'localtime', '+1 day', 'utc')"

# Each program prints what it has seen, with sqlite3 or sqlipc.
PROGRAM = """
import json, sqlite3, sys
import sqlipc, sqlipc.aio
times, computed = json.loads(sys.stdin.read())
def program(db):
    seen = [db.execute(f"SELECT {computed}", (t,)).fetchall() for t in times]
    db.execute("BEGIN")
    seen += [db.execute(f"SELECT {computed}", (t,)).fetchall() for t in times]
    db.execute("DELETE FROM thing")
    db.executemany("INSERT INTO thing SELECT datetime(?1, 'localtime'), 0, 0", [(t,) for t in times])
    db.execute("INSERT INTO thing SELECT datetime(a, 'utc'), 1, datetime('2024-07-01', 'localtime') FROM thing")
    seen.append(db.execute("SELECT a, b, c, time(a, 'localtime') FROM thing ORDER BY rowid").fetchall())
    db.execute("COMMIT")
    db.executescript("UPDATE thing SET b = datetime(a, 'localtime'); UPDATE thing SET c = datetime(b, 'utc');")
    db.execute("UPDATE thing SET a = time(a, 'utc') WHERE rowid % 2")
    db.executemany("INSERT INTO thing(a) SELECT datetime(?1, 'utc')", [(t,) for t in times])
    return seen + db.execute("SELECT a, b, c FROM thing ORDER BY rowid").fetchall()
print(json.dumps(program(sqlipc.connect(sys.argv[2], bus=sys.argv[1], isolation_level=None))))
"""


def environment(zone):
    variables = {name: value for name, value in os.environ.items() if name != "TZ"}
    return variables if zone is None else variables | {"TZ": zone}


def start(zone, *arguments, program=PROGRAM):
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], env=environment(zone), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdin.write(json.dumps([TIMES, COMPUTED]).encode())
    process.stdin.close()
    return process


def result(process):
    with process:
        return process.stdout.read()


@functools.cache
def local(zone):
    """The times of sqlite3 in a process with that TZ."""
    program = "import json, sqlite3, sys\ntimes, _ = json.load(sys.stdin)\ndb = sqlite3.connect(':memory:')\n"
    program += """print(json.dumps([db.execute("SELECT datetime(?, 'localtime')", (t,)).fetchone()[0] for t in times]))"""
    return json.loads(result(start(zone, program=program)))


def with_sqlite3(zone):
    program = PROGRAM.replace("sqlipc.connect(sys.argv[2], bus=sys.argv[1], isolation_level=None)", "memory()")
    memory = """
def memory():
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE thing(a, b, c)")
    return db
"""
    return result(start(zone, program=program.replace("import sqlipc, sqlipc.aio\n", memory)))


def plain(rows):
    return [[bytes(value).decode() if isinstance(value, bytes) else value for value in row] for row in rows]


# ---- programs ----


@test
def as_sqlite3():
    """Programs with any TZ see what they see with sqlite3, all of them beside each other"""
    for i, zone in enumerate(ZONES):
        service.add(f"zone{i}", "CREATE TABLE thing(a, b, c);")
    running = [(zone, start(zone, service.address, f"zone{i}")) for i, zone in enumerate(ZONES)]
    for zone, process in running:
        rows = result(process)
        true(rows, f"{zone}: no result")
        equal(rows, with_sqlite3(zone), f"TZ={zone}")


@test
def one_program():
    """A program that changes its TZ is followed, as with sqlite3 after tzset()"""
    program = """
import json, os, sqlite3, sys, time
import sqlipc
times, computed = json.loads(sys.stdin.read())
dbs = sqlite3.connect(":memory:"), sqlipc.connect("notes", bus=sys.argv[1])
for zone in ("Europe/Berlin", "America/New_York", "UTC", "Europe/Berlin"):
    os.environ["TZ"] = zone
    time.tzset()
    for t in times:
        one, other = (db.execute(f"SELECT {computed}", (t,)).fetchall() for db in dbs)
        assert one == other, (zone, t, one, other)
print("same")
"""
    equal(result(start("UTC", service.address, program=program)), b"same\n", "output")


@test
def transports():
    """The shell sends its zone by each transport, also to databases in a transaction"""
    script = "".join(f"SELECT datetime('{t}', 'localtime');\n" for t in TIMES)
    for zone in ("Europe/Berlin", "America/New_York"):
        for transport in ("auto", "pipe", "channel", "dbus"):
            for before, after in (("", ""), ("BEGIN;\n", "COMMIT;\n"), ("BEGIN IMMEDIATE;\n", "COMMIT;\n")):
                options = [f"--address={service.address}", f"--transport={transport}", "--mode=csv", "--headers=off"]
                command = ["env", f"TZ={zone}", CLI, *options, "notes"]
                done = service.run(*command, input=(before + script + after).encode())
                equal(done.stdout.decode().replace('"', "").splitlines(), local(zone), f"{zone}, {transport}, {before!r}")


# ---- without a library ----


def zone_option(zone):
    return {"x-time-zone": GLib.Variant("s", zone)}


@test
def over_the_bus():
    """The option x-time-zone holds for its call alone, of every method that runs a statement"""
    client = service.client()
    own, sql = local(None)[0], f"SELECT datetime('{TIMES[0]}', 'localtime')"
    for zone in ("Europe/Berlin", "America/New_York", "CET-1CEST,M3.5.0,M10.5.0/3"):
        options, there = zone_option(zone), local(zone)[0]
        equal(plain(client.query("notes", sql, options=options).read().rows), [[there]], "Query")
        equal(plain(client.query("notes", sql).read().rows), [[own]], "without the option")
        equal(plain(client.query_rows("notes", sql, options=options)[1]), [[there]], "QueryRows")
        run, _, _ = client.open_rows("notes", sql, options=options)
        equal(plain(client.next_rows("notes", run)[0]), [[there]], "NextRows")
        statement = client.prepare("notes", sql)
        equal(plain(statement.fetch(options=options).read().rows), [[there]], "Fetch")
        equal(plain(statement.fetch().read().rows), [[own]], "Fetch without it")
        client.execute("notes", "DELETE FROM thing")
        insert = f"INSERT INTO thing(a) {sql}"
        client.execute("notes", insert, options=options)
        client.execute_batch("notes", [(insert, []), (insert, [])], options=options)
        run, pipe = begin_load(client, "notes", "INSERT INTO thing(a) SELECT datetime(?, 'localtime')", options=options)
        send(pipe, stream([[TIMES[0]]] * 2))
        equal(wait_for_load(client, "notes", run)[0], 2, "rows that were loaded")
        values, _ = client.database("notes", "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
        inside = {"transaction": values[0]}
        client.execute("notes", insert, options=inside | options)
        equal(plain(client.query("notes", sql, options=inside).read().rows), [[own]], "in a transaction")
        equal(plain(client.query("notes", sql, options=inside | options).read().rows), [[there]], "in a transaction")
        client.database("notes", "Commit", "(ta{sv})", values[0].get_uint64(), {})
        equal(plain(client.query("notes", "SELECT DISTINCT a, count(*) FROM thing").read().rows), [[there, 6]], "rows")


@test
def refused_zones():
    """A name that leads out of the folder of zones is refused, on a channel by its end"""
    client = service.client()
    for zone in ("/etc/passwd", ":/etc/passwd", "../../../etc/passwd", "a/../../b", "x" * 128, "a b", "a\nb", "Zürich"):
        expect("InvalidOption", client.query, "notes", "SELECT 1", options=zone_option(zone))
        with contextlib.closing(Channel(client, "notes")) as channel:
            channel.time_zone(zone)
            expect("InvalidRequest", channel.read, 0)
    equal(client.query("notes", "SELECT 1", options=zone_option("x" * 127)).read().rows, [[1]], "the longest")
    expect("InvalidOption", client.query, "notes", "SELECT 1", options={"x-time-zone": GLib.Variant("u", 1)})


@test
def on_a_channel():
    """TIME_ZONE holds for the requests after it, on its channel, also in another worker"""
    client = service.client()
    own, sql = local(None)[0], f"SELECT datetime('{TIMES[0]}', 'localtime')"
    with contextlib.closing(Channel(client, "notes")) as channel, contextlib.closing(Channel(client, "notes")) as other:
        for zone in ("Europe/Berlin", "America/New_York"):
            channel.time_zone(zone)
            equal(plain(channel.ask(sql)), [[local(zone)[0]]], zone)
            equal(plain(other.ask(sql)), [[own]], "another channel")
            equal(plain(channel.ask(sql)), [[local(zone)[0]]], zone)
        if os.geteuid() == 0:  # another user takes the worker's place
            service.client(uid=UID_B).query("chinook", "SELECT 1").read()
            equal(plain(channel.ask(sql)), [[local(zone)[0]]], "in another worker")
        channel.time_zone("")
        equal(plain(channel.ask(sql)), [[own]], "without a zone")


@test
def slices():
    """Of two runs that fill their pipes in turn in one worker, each row has the zone of its own client"""
    client = service.client()
    sql = ("WITH RECURSIVE c(x) AS (VALUES(0) UNION ALL SELECT x + 1 FROM c WHERE x < 40000) "
           "SELECT datetime(1711843200 + x, 'unixepoch', 'localtime'), zeroblob(100) FROM c")
    zones = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu")
    runs = [client.query("notes", sql, options=zone_option(zone)) for zone in zones]
    with concurrent.futures.ThreadPoolExecutor() as readers:
        seen = list(readers.map(lambda run: run.read().rows, runs))
    for zone, rows in zip(zones, seen, strict=True):
        wanted = json.loads(result(start(zone, program=f"""
import json, sqlite3
print(json.dumps([a for a, _ in sqlite3.connect(":memory:").execute({sql!r})]))
""")))
        true([row[0] for row in plain([row[:1] for row in rows])] == wanted, f"{zone}: {len(rows)} rows")


main(service)
