#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Manager.ListClients, and the lists of active runs: root sees all, other users see their own."""
import contextlib
import os

from client import DATABASE, NAME, Gio, GLib, object_path
from harness import CHINOOK, PATIENT, UID_A, UID_B, Service, expect, main, needs_root, wait_for
from tap import at_most, equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x, 'some text to fill the pages' FROM n"

service = Service({"chinook": CHINOOK}, limits=PATIENT)


def clients(asker=None):
    return dict((asker or service.driver).manager("ListClients")[0])


def name_of(client):
    return client.connection.get_unique_name()


@test
def counts():
    """The list of clients has statements, runs and parked runs, with bus name, process and user"""
    client = service.client()
    equal(name_of(client) in clients(), False, "a client that only connected is listed")
    held = [client.prepare("chinook", "SELECT 1") for _ in range(3)]
    parked = client.query("chinook", ENDLESS)
    wait_for(lambda: clients()[name_of(client)]["parked"] == 1, "the run parks")
    for _ in range(2):
        equal(held[0].fetch().read().rows, [[1]], "rows")
    of = clients()[name_of(client)]
    equal((of["uid"], of["pid"]), (os.geteuid(), os.getpid()), "uid and pid")
    equal((of["statements"], of["runs"], of["queued"], of["total-runs"]), (3, 1, 0, 2), "counts")
    before = of["since-usec"]
    parked.close()
    wait_for(lambda: clients()[name_of(client)]["total-runs"] == 3, "the run is over")
    of = clients()[name_of(client)]
    equal((of["runs"], of["parked"]), (0, 0), "counts")
    true(of["since-usec"] > before, "the client does not grow older")
    client.close()
    wait_for(lambda: name_of(client) not in clients(), "the client is forgotten")


@test
def sums():
    """Rows and bytes are those that came through the pipes, each counted once, whatever was reported in between"""
    client = service.client()
    total = {"rows": 0, "bytes": 0}
    for sql in ("SELECT * FROM Track", "SELECT 1", "SELECT * FROM Track JOIN Album USING (AlbumId)"):
        size, rows = client.query("chinook", sql).counted()
        total = {"rows": total["rows"] + rows, "bytes": total["bytes"] + size}
    wait_for(lambda: clients()[name_of(client)]["total-runs"] == 3, "the runs are over")
    of = clients()[name_of(client)]
    equal({key: of[key] for key in total}, total, "sums")
    client.close()


@test
def progress():
    """An active run shows its progress in both lists, and is counted once when it ends"""
    client = service.client()
    before = service.counters()
    run = client.query("chinook", ENDLESS)
    seen, size = [], 0

    def going():
        (more,) = [more for number, _, _, more in service.driver.manager("ListRuns")[0] if number == run.number]
        return more

    while len(seen) < 3:
        for _ in range(20):
            size += len(run.frame()[2])
        now = going()
        true(now["rows"] > 0 or now["bytes"] == 0, f"bytes without rows: {now}")
        of = clients()[name_of(client)]
        true(of["rows"] >= now["rows"] and of["total-runs"] == 0, f"{of} although the run said {now}")
        if now["rows"] not in (0, *seen):
            true(now["rows"] > max(seen, default=0), f"{now} after {seen}")
            at_most(now["bytes"], size + 2**21, "bytes delivered, with those in the pipe")
            seen.append(now["rows"])
    equal(service.counters()["TotalRows"], before["TotalRows"], "rows of runs that ended")
    run.cancel()
    for frame in run.frames():
        size += len(frame[2])
    wait_for(lambda: service.counters()["NRuns"] == 0, "the run is over")
    after, of = service.counters(), clients()[name_of(client)]
    equal(of["bytes"], size, "bytes of the client")
    equal(after["TotalBytes"] - before["TotalBytes"], size, "bytes in all")
    equal(after["TotalRows"] - before["TotalRows"], of["rows"], "rows in all")
    run.close()
    client.close()


@test
def queued():
    """A run that waits for a worker is queued"""
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1, "QueueTimeoutSec": 600}) as other:
        client = other.client()
        stuck = client.query("chinook", "SELECT instr(hex(zeroblob(5000000)), hex(zeroblob(2500000)) || 'b')")
        message = Gio.DBusMessage.new_method_call(NAME, object_path("chinook"), DATABASE, "QueryRows")
        message.set_body(GLib.Variant("(sava{sv}a{sv})", ("SELECT 1", [], {}, {})))
        client.connection.send_message(message, Gio.DBusSendMessageFlags.NONE)
        wait_for(lambda: dict(other.driver.manager("ListClients")[0])[name_of(client)]["queued"] == 1, "the run waits")
        equal(dict(other.driver.manager("ListClients")[0])[name_of(client)]["runs"], 2, "runs")
        stuck.cancel()


@test
def lost():
    """The rows of a run whose worker died stay counted: sums never shrink"""
    client = service.client()
    run = client.query("chinook", ENDLESS)
    while clients()[name_of(client)]["rows"] == 0:
        run.frame()
    before = clients()[name_of(client)]
    for pid in service.workers():
        with contextlib.suppress(ProcessLookupError):  # another one, which was idle, may just end
            os.kill(pid, 9)
    wait_for(lambda: clients()[name_of(client)]["runs"] == 0, "the run is lost")
    after = clients()[name_of(client)]
    equal(after["total-runs"], before["total-runs"] + 1, "runs that ended")
    true(after["rows"] >= before["rows"] and after["bytes"] >= before["bytes"], f"{before}, then {after}")
    client.close()


@test
def excerpts():
    """Lists show the first 200 characters of SQL, whole ones"""
    client = service.client()
    for sql in ("SELECT 'å'", "SELECT '" + "å€𝄞" * 100 + "'", "SELECT 1" + " " * 300):
        statement = client.prepare("chinook", sql)
        shown = {number: more["sql"] for number, _, _, more in client.manager("ListStatements")[0]}
        equal(shown[statement.number], sql[:200], "SQL of a statement")
        statement.close()
    sql = ENDLESS + " WHERE '" + "€" * 300 + "' <> ''"
    run = client.query("chinook", sql)
    equal([more["sql"] for number, _, _, more in client.manager("ListRuns")[0] if number == run.number], [sql[:200]], "SQL")
    run.close()
    client.close()


@needs_root
def own_alone():
    """A user sees its own clients on all its connections, and root sees all clients"""
    a, again, b = service.client(UID_A), service.client(UID_A), service.client(UID_B)
    for client in (a, again, b):
        client.prepare("chinook", "SELECT 1")
    equal(sorted(clients(a)), sorted(map(name_of, (a, again))), "what a user sees")
    equal(list(clients(b)), [name_of(b)], "what another sees")
    true({name_of(a), name_of(again), name_of(b)} <= set(clients()), "root does not see all")
    failure = expect("UnknownOption", service.driver.manager, "ListClients", options={"limit": GLib.Variant("u", 1)})
    true("limit" in failure.message, failure.message)


main(service)
