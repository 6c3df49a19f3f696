#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A row never waits for a page to become full, nor a client for another client's work.

The queries never end, so a row that waited for the end would never arrive; the tests need no clock.
"""
from client import END, ROWS, decode
from harness import BUILD_ROOT, CHINOOK, Service, main, wait_for
from overheard import Overheard
from tap import equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
SCAN = ENDLESS + "count(*) FROM n"

service = Service({"chinook": CHINOOK}, limits={"WorkersMax": 2})
client = service.client()


def first_rows(run):
    """Frames up to the first that holds rows."""
    frames = []
    while not frames or frames[-1][0] != ROWS:
        frames.append(run.frame())
        true(frames[-1][0] != END, "the run ended")
    return frames


@test
def row_before_a_long_scan():
    """A row found just before a scan that never ends arrives during the scan"""
    for options in ({"page-size": 4096}, {"page-size": 1048576}):
        run = client.query("chinook", ENDLESS + "x FROM n WHERE x = 1", options=options)
        first_rows(run)
        equal([r[3]["state"] for r in client.manager("ListRuns")[0]], ["running"], "state of the run")
        run.cancel()
        run.close()
        wait_for(lambda: service.counters()["NRuns"] == 0, "the run is over")


@test
def rows_that_come_slowly():
    """Each of several rows arrives before the next is computed, without end"""
    run = client.query("chinook", ENDLESS + "x FROM n WHERE x % 3000000 = 1")
    for _ in range(3):
        first_rows(run)
    run.cancel()
    run.close()


@test
def next_rows_does_not_wait_for_more():
    """NextRows returns a row as soon as there is one"""
    number, _, _ = client.open_rows("chinook", ENDLESS + "x FROM n WHERE x = 1")
    rows, more, _ = client.next_rows("chinook", number)
    equal((rows, more), ([[1]], True), "rows")
    client.cancel("chinook", number)


@test
def columns_come_with_the_rows():
    """COLUMNS is the first frame, also of an empty result"""
    result = client.query("chinook", "SELECT TrackId FROM Track WHERE 0").read()
    equal((len(result.columns), result.rows), (1, []), "columns and rows")
    frames = [data for _, _, data in client.query("chinook", "SELECT 1").frames()]
    equal(decode(frames).rows, [[1]], "rows")


@test
def point_queries_beside_a_scan():
    """A scan that never finds a row keeps its worker, and a sibling answers other queries"""
    run = service.client().query("chinook", SCAN)
    for _ in range(5):
        client.point()
    equal(len(service.workers()), 2, "workers")
    run.cancel()
    run.close()


@test
def streams_share_a_worker():
    """Two streams on one worker advance side by side"""
    stream = ENDLESS + "x, 'some text' FROM n"
    one, two = client.query("chinook", stream), client.query("chinook", stream)
    for _ in range(20):
        one.frame()
        two.frame()
    for run in (one, two):
        run.cancel()
        run.close()


@test
def messages_of_a_short_visit():
    """A program connects and asks twice: it says Hello and asks, and the service asks the bus once who it is"""
    client.point()
    monitor = Overheard(service.address, "/")
    try:
        for _ in range(3):
            del monitor.members[:]
            ask = ["ask", "--user", "--transport=pipe", "--query", "--times=1", "chinook", "SELECT 1"]
            done = service.run(BUILD_ROOT / "tools/bench/sqlipc-bench", *ask, input=b"\n\n")
            equal(done.returncode, 0, done.stderr)
            wait_for(lambda: monitor.members.count("Query") == 2, "the monitor has both queries")
            equal(monitor.members, ["Hello", "Query", "GetConnectionCredentials", "Query"], "calls")
    finally:
        monitor.close()


main(service)
