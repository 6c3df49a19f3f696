#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Several users on one bus, and a daemon that is none of them: no user can name the objects of another; root can.

Root alone can be several users; the suite's sandbox in tests/system repeats the essence on a real system bus.
"""
import os

from client import MANAGER
from harness import CHINOOK, PATIENT, UID_A, UID_B, UID_DAEMON, Service, expect, main, needs_root, wait_for
from tap import equal, true

STREAM = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x, 'some text' FROM n"

service = None
if os.geteuid() == 0:
    service = Service({"chinook": CHINOOK}, limits=PATIENT, uid=UID_DAEMON)
    a, b, root, own = service.client(UID_A), service.client(UID_B), service.client(), service.client(UID_DAEMON)


@needs_root
def rows_for_everybody():
    """Users other than the daemon's get their rows, each from a worker of the daemon's uid"""
    for client in (a, b, root, own):
        equal(client.query("chinook", "SELECT count(*) FROM Track").read().rows, [[3503]], "rows")
    for pid in [service.pid(), *service.workers()]:
        equal(os.stat(f"/proc/{pid}").st_uid in (UID_DAEMON, 0), True, "user of a process")
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            uids = next(line for line in status if line.startswith("Uid:")).split()[1:]
        equal(set(uids), {str(UID_DAEMON)}, "uids of a process")


@needs_root
def workers_are_not_shared():
    """Each user has workers of its own"""
    held = [client.query("chinook", STREAM) for client in (a, b)]
    wait_for(lambda: service.counters()["NParked"] == 2, "both park")
    pids = {uid: run[3]["worker-pid"] for run in root.manager("ListRuns")[0] for uid in [run[3]["uid"]]}
    equal(set(pids), {UID_A, UID_B}, "users with runs")
    true(pids[UID_A] != pids[UID_B], "two users in one worker")
    for run in held:
        run.cancel()
        run.close()
    wait_for(lambda: service.counters()["NRuns"] == 0, "the runs are over")


@needs_root
def statements_of_others():
    """Statements and runs of others cannot be named, listed or counted apart; root lists all"""
    mine = a.prepare("chinook", "SELECT 1")
    twin = service.client(UID_A)
    for stranger in (b, twin, own):
        expect("UnknownStatement", stranger.finalize, "chinook", mine.number)
        expect("UnknownStatement", stranger.database, "chinook", "Fetch", "(tava{sv}a{sv})", mine.number, [], {}, {})
    for stranger in (b, own):
        equal(stranger.manager("ListStatements")[0], [], "statements listed")
    expect("UnknownStatement", root.finalize, "chinook", mine.number)
    # Lists are for the user, whichever of his programs asks: that is how busctl shows them.
    for client in (a, twin, root):
        listed = client.manager("ListStatements")[0]
        equal(
            [(number, path, owner, more["uid"], more["runs"]) for number, path, owner, more in listed],
            [(mine.number, "/org/sqlipc1/database/chinook", a.name(), UID_A, 0)],
            "statements listed",
        )
    mine.fetch().read()
    equal([more["runs"] for _, _, _, more in a.manager("ListStatements")[0]], [1], "runs of the statement")
    mine.close()
    equal(root.manager("ListStatements")[0], [], "statements listed")


@needs_root
def runs_of_others():
    """Cancel ends the caller's own runs, CancelRun those of its uid, root's those of all; only root sees workers"""
    statement = a.prepare("chinook", STREAM)
    run = statement.fetch()
    for stranger in (b, own, root):
        expect("UnknownRun", stranger.cancel, "chinook", run.number)
        expect("UnknownRun", stranger.next_rows, "chinook", run.number)
    for number in (run.number, 12345):
        expect("AccessDenied", b.manager, "CancelRun", "(ta{sv})", number)
    equal(b.manager("ListRuns")[0], [], "runs listed")
    ((number, path, owner, more),) = a.manager("ListRuns")[0]
    equal(
        (number, path, owner, more["statement"]),
        (run.number, "/org/sqlipc1/database/chinook", a.name(), statement.number),
        "run",
    )
    true("worker-pid" not in more, "a worker's pid for a user")
    ((_, _, _, more),) = root.manager("ListRuns")[0]
    true(more["worker-pid"] in service.workers(), f"worker-pid {more['worker-pid']}")
    true(more["usec"] > 0, "usec")
    ((_, _, _, of_statement),) = a.manager("ListStatements")[0]
    equal(of_statement["running"], run.number, "running")
    for canceller in (a, service.client(UID_A), own, root):
        canceller.manager("CancelRun", "(ta{sv})", run.number)
        expect("Cancelled", run.read)
        run = statement.fetch()
    root.manager("CancelRun", "(ta{sv})", run.number)
    expect("Cancelled", run.read)
    expect("UnknownRun", root.manager, "CancelRun", "(ta{sv})", 12345)
    statement.close()


@needs_root
def privileges():
    """Only root and the daemon's own user may reload, and see errors of the configuration"""
    service.database("bad", text="nonsense\n")
    for client in (a, b):
        expect("AccessDenied", client.manager, "Reload")
        _, info = client.manager("ListDatabases")
        true("broken" not in info, "broken configuration shown to a user")
    for client in (root, own):
        (info,) = client.manager("Reload")
        equal((info["databases"], list(info["broken"])), (1, ["bad"]), "info of Reload")
        equal(list(client.manager("ListDatabases")[1]["broken"]), ["bad"], "info of ListDatabases")
    (service.config_dir / "databases.d/bad.conf").unlink()
    equal(root.manager("Reload")[0]["broken"], {}, "broken")


@needs_root
def counters_for_everybody():
    """Counters count all users"""
    before = b.properties(MANAGER)
    equal(a.query("chinook", "SELECT * FROM Genre").read().end.n_rows, 25, "rows")
    wait_for(lambda: b.properties(MANAGER)["TotalRuns"] == before["TotalRuns"] + 1, "the run is counted")
    after = b.properties(MANAGER)
    equal(after["TotalRows"] - before["TotalRows"], 25, "rows counted")
    true(after["TotalBytes"] > before["TotalBytes"], "bytes counted")


main(service)
