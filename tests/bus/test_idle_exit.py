#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service exits when idle, and no call is lost.

Where the order of things matters, IdleExitSec= is long at first and made short by a reload, and the bus is stopped (SIGSTOP)
until the service has given up its name: what a client sent meanwhile lies with the bus, which routes it first.
"""
import contextlib
import random
import signal
import sqlite3
import time

from client import NAME, reference, same_rows
from harness import CHINOOK, SANITIZED, SQLIPCD, Service, main, wait_for
from idle_race import ROWS, SQL, Caller, race
from idle_service import Idle, processes
from tap import diagnose, equal, test, true

SCAN = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@test
def race_with_activation():
    """Hundreds of calls at the moment of exit, to many instances, no error"""
    rounds, seed = 100 if SANITIZED else 200, random.randrange(2**32)
    diagnose(f"seed {seed}")
    with Service({"chinook": CHINOOK}, activation=True, service={"IdleExitSec": "0.005"}) as service:
        outcome = race(service.address, 0.005, rounds, seed=seed)
        diagnose(f"{outcome.calls} calls, {outcome.instances} instances, {outcome.taken_back} times the name was taken back")
        equal(outcome.errors, [], "lost calls")
        true(outcome.instances > rounds / 20, f"only {outcome.instances} instances: the race was hardly run")
        wait_for(lambda: not processes(SQLIPCD), "the last instance exits")


@test
def exits_when_idle():
    """An idle exit notifies the service manager, releases the name, ends the workers, and returns 0"""
    with Idle() as service:
        service.client().point()
        true(service.workers(), "no worker")
        service.make_impatient()
        service.notified.until("STOPPING", "1")
        service.wait_for_exit()
        equal(service.has_owner(), False, "the name has an owner")


@test
def what_is_held_keeps_it():
    """A statement, a cursor and a running query each prevent the idle exit; other objects do not"""
    for begin, end in (
        (lambda client: client.prepare("chinook", SQL), lambda client, statement: statement.close()),
        (lambda client: client.open_rows("chinook", SQL)[0], lambda client, run: client.cancel("chinook", run)),
        (lambda client: client.query("chinook", SCAN), lambda client, run: run.cancel()),
        (lambda client: client.prepare("chinook", SQL), lambda client, statement: client.close()),
    ):
        with Idle() as service:
            client = service.client()
            held = begin(client)
            service.make_impatient()
            time.sleep(0.2)  # two hundred times IdleExitSec=
            client.manager("ListRuns")
            true(service.daemon.poll() is None, "it exited")
            end(client, held)
            service.wait_for_exit()
            true("Not idle after all" not in service.log_text(), "it tried to exit with something held")


def publish_notes(service):
    path = service.data / "notes.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE note(text)")
    service.database("notes", Path=path, Mode="read-write")
    service.client().manager("Reload")


COUNTS = "SELECT last_insert_rowid(), changes(), total_changes()"


@test
def counts_keep_it():
    """A client that has written prevents the idle exit until it leaves the bus, because its changes() would be lost"""
    with Idle() as service:
        publish_notes(service)
        client, other = service.client(), service.client()
        other.query_rows("notes", "SELECT count(*) FROM note")  # it has counted nothing
        client.execute("notes", "INSERT INTO note VALUES('one'), ('two')")
        service.make_impatient()
        time.sleep(0.2)  # two hundred times IdleExitSec=
        equal(client.query_rows("notes", COUNTS)[1], [[2, 2, 2]], "counts")
        client.close()
        service.wait_for_exit()


@test
def counts_of_another_instance():
    """If another instance has got the name, what a client has counted does not keep this one"""
    with Idle() as service:
        publish_notes(service)
        other, client = service.client(), service.client()
        in_queue = 2
        equal(other.bus_call("RequestName", "(su)", NAME, 0)[0], in_queue, "RequestName")
        service.meet_exit(client, lambda: client.execute("notes", "INSERT INTO note VALUES('one')"))
        wait_for(lambda: "Another instance has the name" in service.log_text(), "it learns that the name is taken")
        service.wait_for_exit()


@test
def statement_meets_exit():
    """A statement prepared during the release of the name remains usable by name; systemd is asked to wait"""
    with Idle() as service:
        client = service.client()
        statement = service.meet_exit(client, lambda: client.prepare("chinook", SQL))
        said = service.notified.until("EXTEND_TIMEOUT_USEC")
        true(int(said[-1]["EXTEND_TIMEOUT_USEC"]) >= 10_000_000, f"it asks for {said[-1]}")
        wait_for(service.has_owner, "the name is taken back")
        for _ in range(3):
            equal(len(statement.fetch().read().rows), ROWS, "rows")
        statement.close()
        service.wait_for_exit()


@test
def query_meets_exit():
    """A query that arrives during the release of the name is answered completely"""
    sql = "SELECT * FROM Track"
    with Idle() as service:
        client = service.client()
        run = service.meet_exit(client, lambda: client.query("chinook", sql))
        same_rows(run.read().rows, reference(CHINOOK, sql)[1])
        service.wait_for_exit()


@test
def name_goes_to_another():
    """If another instance gets the name first, open objects are served by unique name until their end"""
    with Idle() as service:
        other, client = service.client(), Caller(service.address, by_name=False)
        service.clients.append(client)
        in_queue = 2
        equal(other.bus_call("RequestName", "(su)", NAME, 0)[0], in_queue, "RequestName")
        statement = service.meet_exit(client, lambda: client.prepare("chinook", SQL))
        wait_for(lambda: "Another instance has the name" in service.log_text(), "it learns that the name is taken")
        equal(len(statement.fetch().read().rows), ROWS, "rows")
        true(service.daemon.poll() is None, "it exited with a statement open")
        statement.close()
        service.wait_for_exit()


@test
def stop_while_lingering():
    """SIGTERM ends the service also after a cancelled idle exit"""
    with Idle() as service:
        client = service.client()
        service.meet_exit(client, lambda: client.prepare("chinook", SQL))
        wait_for(service.has_owner, "the name is taken back")
        service.daemon.send_signal(signal.SIGTERM)
        service.wait_for_exit()


@test
def reader_that_takes_its_time():
    """Rows that were written before the exit are read after it, with END"""
    sql = "SELECT TrackId, Name FROM Track WHERE TrackId <= 500"
    with Idle() as service:
        client = service.client()
        run = client.query("chinook", sql)
        service.make_impatient()
        service.wait_for_exit()
        same_rows(run.read().rows, reference(CHINOOK, sql)[1])


main()
