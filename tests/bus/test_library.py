#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libsqlipc with the real daemon: the same rows as SQLite, and its errors after the loss of daemon, worker or bus."""
import errno
import os
import pathlib
import signal
import sqlite3
import threading

from client import Client, Text, reference, same_rows
from clocks import Clocks
from gi.repository import GLib
from harness import CHINOOK, Service, main, processor_time, wait_for
from library import Library, each_way, owner_pid, rows_of, service_of_notes
from overheard import Overheard
from results import EXTREME_QUERIES, QUERIES, TABLES, make_extremes
from tap import equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text to fill the pages' FROM n"
SCAN = ENDLESS + "count(*) FROM n"


@each_way
def results(transport):
    """Rows through the library equal SQLite's own"""
    with Service({"chinook": CHINOOK}) as service:
        extremes = service.data / "extremes.sqlite"
        make_extremes(extremes)
        service.database("extremes", Path=extremes)
        service.driver.manager("Reload")
        asked = [("chinook", CHINOOK, f'SELECT * FROM "{name}"') for name in TABLES]
        asked += [("chinook", CHINOOK, sql) for sql, parameters in QUERIES.values() if not parameters]
        asked += [("extremes", extremes, sql) for sql in EXTREME_QUERIES.values()]
        with Library(service, transport) as library:
            for database, path, sql in asked:
                sql = " ".join(sql.split())
                expected = reference(path, sql)[1]
                for start in (f"query {database} {sql}", f"prepare {database} {sql}"):
                    library.ok(start)
                    if start.startswith("prepare"):
                        library.ok("execute")
                    rows, end = library.ask("rows 0")
                    equal(end, f"end {len(expected)}", sql)
                    same_rows(rows, expected)
                    true(transport == "auto" or library.via() == transport, f"{sql} came via {library.via()}")


def bus_connections(service):
    """Returns the number of connections to the bus, including those that it has not accepted yet."""
    path = service.address.split("path=")[1].split(",")[0]
    lines = pathlib.Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    return sum((words[5], words[-1]) == ("03", path) for words in map(str.split, lines))  # connected


@test
def opened_long_before():
    """A connection that the bus closed, because it was unused for long after its opening, is opened again"""
    with Service({"chinook": CHINOOK}, bus_limits={"auth_timeout": 10000}) as service:
        before = bus_connections(service)
        with Library(service) as library:
            wait_for(lambda: bus_connections(service) == before, "the bus hangs up")
            library.ok("query chinook SELECT 6 * 7")
            equal(library.ask("rows 0")[0], [[42]], "rows")


CONNECTIONS_MAX = 8


@each_way
def full_bus(transport):
    """A bus without a connection left for the user is an error that says so; the next statement fails at once or works"""
    with (
        service_of_notes(bus_limits={"max_connections_per_user": CONNECTIONS_MAX}) as (service, path),
        Library(service, transport) as library,
    ):
        others = []
        try:
            while True:
                others.append(Client(service.address))
        except GLib.Error as error:
            true("LimitsExceeded" in str(error), str(error))
        insert = "INSERT INTO note(text) VALUES ('a')"
        for line in (f"query notes {insert}", f"exec notes {insert}", "query notes SELECT 1", f"exec notes {insert}",
                     f"prepare notes {insert}", "begin write notes", "watch notes"):  # fmt: skip
            words = library.ask(line)[1].split(" ", 6)
            equal(words[:2] + words[5:6], ["error", str(errno.EDQUOT), "org.sqlipc1.Error.LimitsExceeded"], line)
            true("no connection left for this user" in words[6] and "unknown" not in words[6], words[6])
        others.pop().close()
        equal(library.ask(f"exec notes {insert}")[1], "changes 1", "with room for the connection")
        equal(rows_of(path, "SELECT text FROM note"), [("a",)], "what was written")
        for other in others:
            other.close()


@each_way
def bindings(transport):
    """Every type binds, bindings stay over executions, text may hold anything"""
    with Service({"chinook": CHINOOK}) as service, Library(service, transport) as library:
        library.ok("prepare chinook SELECT ?1, ?2, :text, ?4, ?5")
        library.ok("bind 1 i -9223372036854775808")
        library.ok("bind 2 r 1e-300")
        library.ok(f"name text {b'a fffe nul'.hex()}00ff")
        library.ok("bind 4 b 00ff")
        for number in (1, 2):
            library.ok("execute")
            rows, _ = library.ask("rows 0")
            same_rows(rows, [[-(2**63), 1e-300, Text(b"a fffe nul\0\xff"), b"\0\xff", None]])
            library.ok(f"bind 5 i {number}")
            library.ok("execute")
            equal(library.ask("rows 0")[0][0][4], number, "rebound value")
            library.ok("bind 5 n -")


@each_way
def daemon_lost(transport):
    """The daemon lost mid-stream is DaemonLost; the next query has the bus start another one"""
    with Service({"chinook": CHINOOK}, activation=True) as service, Library(service, transport) as library:
        library.ok("prepare chinook SELECT ?1 + 1")
        library.ok("bind 1 i 41")
        library.ok("execute")
        equal(library.ask("rows 0"), ([[42]], "end 1"), "rows")
        library.ok(f"query chinook {STREAM}")
        library.ok("rows 1")
        os.kill(service.pid(), signal.SIGKILL)
        wait_for(lambda: not service.has_owner(), "the bus notices")
        error, name, message = library.failure("rows 0")
        # A worker may find its supervisor gone, and say so to its reader, before the kernel kills it for that.
        said = {(104, "DaemonLost")} | ({(108, "ShuttingDown")} if transport != "dbus" else set())
        true((error, name) in said, f"error {error}, {name}: {message}")
        equal(library.failure("rows 1")[1], name, "the same again")
        library.ok("execute")
        equal(library.ask("rows 0"), ([[42]], "end 1"), "rows from the next daemon")
        library.ok("query chinook SELECT 7")
        equal(library.ask("rows 0"), ([[7]], "end 1"), "rows")


@test
def stopped():
    """A query that a stop of the service ends is not repeated, which would start the service again, against the stop"""
    with Service({"chinook": CHINOOK}, activation=True) as service, Library(service, "pipe") as library:
        library.ok(f"query chinook {SCAN}")
        before = sum(map(processor_time, service.workers()))
        wait_for(lambda: sum(map(processor_time, service.workers())) > before, "it computes")
        os.kill(service.pid(), signal.SIGTERM)
        equal(library.failure("rows 1")[1], "ShuttingDown", "the end of the query")
        wait_for(lambda: not service.has_owner(), "the service ends")


@test
def restart():
    """A call that meets a stopping service is answered by the next one, which compiles open statements again"""
    with Service({"chinook": CHINOOK}, activation=True) as service, Library(service, "pipe") as library:
        library.ok("prepare chinook SELECT 6 * 7")
        overheard = Overheard(service.address)
        for line, member in (
            ("query chinook SELECT 1 + 2", "Query"),
            ("prepare chinook SELECT 6 * 7", "Prepare"),
            ("execute", "Fetch"),
        ):
            pid = service.pid()
            os.kill(pid, signal.SIGSTOP)
            library.say(line)
            if member != "Fetch":  # which goes to the unique name, and is sent by the time that rows are asked for
                wait_for(lambda: member in overheard.members, f"{member} is on its way to the service")
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
            answer = library.hear()
            if member == "Prepare" or "ShuttingDown" not in answer:
                equal(answer, "ok", line)
                rows, end = library.ask("rows 0") if member != "Prepare" else (None, None)
                true(rows in (None, [[3]], [[42]]) and end in (None, "end 1"), f"{line}: {rows}, {end}")
            # The service may have read the call before it was stopped, and have answered it before it heard of the end, or
            # have begun the run, which is not repeated (stopped()).
            wait_for(lambda: owner_pid(service) != pid, "the end of the process")  # noqa: B023
            library.ok("query chinook SELECT 7")  # starts the next one, if there is none
            equal(library.ask("rows 0"), ([[7]], "end 1"), "rows of the next service")
        overheard.close()


@each_way
def worker_lost(transport):
    """A worker lost mid-stream is WorkerLost; the next query and the same statement work"""
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1}) as service, Library(service, transport) as library:
        for start in ("query chinook " + STREAM, "prepare chinook " + STREAM):
            library.ok(start)
            if start.startswith("prepare"):
                library.ok("execute")
            library.ok("rows 10")
            for pid in service.workers():
                os.kill(pid, signal.SIGKILL)
            error, name, message = library.failure("rows 0")
            equal((error, name), (104, "WorkerLost"), message)
        library.ok("execute")
        equal(len(library.ok("rows 10")), 10, "rows of the statement made again")
        library.ok("finalize")
        library.ok("query chinook SELECT 7")
        equal(library.ask("rows 0"), ([[7]], "end 1"), "rows")


@each_way
def cancel(transport):
    """Cancel from another thread, while this one waits, and before"""
    with Service({"chinook": CHINOOK}) as service:
        library = Library(service, transport)
        for sql in (SCAN, STREAM):
            library.ok(f"query chinook {sql}")
            error, name, message = library.failure("cancel-later")
            equal((error, name), (125, "Cancelled"), message)
            library.ok(f"query chinook {sql}")
            library.ok("cancel")
            equal(library.failure("rows 0")[:2], (125, "Cancelled"), "cancelled before")
        wait_for(lambda: service.counters()["NRuns"] == 0, "no run is left")
        library.close()
        wait_for(service.is_idle, "nothing is left")


@each_way
def cursors_left_open(transport):
    """A cursor that is closed mid-stream leaves nothing, a statement executed again ends its last run"""
    with Service({"chinook": CHINOOK}) as service:
        with Library(service, transport) as library:
            for _ in range(5):
                library.ok(f"query chinook {STREAM}")
                library.ok("rows 3")
            library.ok(f"prepare chinook {STREAM}")
            for _ in range(5):
                library.ok("execute")
                equal(library.ok("rows 2")[0][0], 1, "first row")
            library.ok("finalize")
            library.ok("query chinook SELECT 1")
            library.ask("rows 0")
        wait_for(service.is_idle, "nothing is left")


@each_way
def names_of_columns(transport):
    """Names and declared types of a statement's columns, byte for byte, even if no D-Bus string can hold them"""
    with Service() as service, Library(service, transport) as library:
        path = service.data / "odd.sqlite"
        with sqlite3.connect(path) as db:
            db.execute('CREATE TABLE t(plain INTEGER, "a\ufdd0b" "odd\ufffetype", untyped)')
        db.close()
        service.database("odd", Path=path)
        service.driver.manager("Reload")
        library.ok("prepare odd SELECT *, 1 AS one FROM t")
        expected = [("plain", "INTEGER"), ("a\ufdd0b", "odd\ufffetype"), ("untyped", None), ("one", None)]
        equal(library.ok("columns"), [[t if t is None else Text(t.encode()) for t in row] for row in expected], "columns")


@each_way
def errors(transport):
    """Errors carry errno, name, SQLite's code, offset and a sentence"""
    with Service({"chinook": CHINOOK}) as service, Library(service, transport) as library:
        _, answer = library.ask("query chinook SELECT nothing FROM Track")
        if answer == "ok":
            _, answer = library.ask("rows 0")
        words = answer.split(" ", 6)
        equal(words[:6], ["error", "22", "11", "1", "7", "org.sqlipc1.Error.Sql"], answer)
        true("nothing" in words[6], answer)
        equal(library.failure("prepare nosuch SELECT 1")[:1], (2,), "errno of a database that is not there")
        equal(library.failure("prepare chinook DELETE FROM Track")[1], "ReadOnly", "error")
        library.ok("query chinook SELECT 7")
        equal(library.ask("rows 0"), ([[7]], "end 1"), "rows")


@each_way
def no_service(transport):
    """A bus without the service is an immediate error that says so"""
    with Service(start=False) as service, Library(service, transport) as library:
        error, _, message = library.failure("prepare chinook SELECT 1")
        true(error in (112, 2, 111) and len(message.split()) > 2, f"{error} {message}")


@each_way
def timeouts(transport):
    """A blocking call gives up after the connection's timeout; the run goes on, and the call may be repeated"""
    with Service({"chinook": CHINOOK}) as service, Library(service, transport) as library:
        answers = []
        # The shortest that lasts: how much a machine computes in the time of a call is not known.
        for rows in (10**6 << n for n in range(0, 8, 2)):
            library.ok("timeout 120000000")
            library.ok(f"query chinook {ENDLESS}x FROM n WHERE x >= {rows} LIMIT 1")  # waits for a worker
            library.ok("timeout 100000")
            answers = [library.ask("rows 1")]
            while answers[-1][1].startswith("error 110 "):
                answers.append(library.ask("rows 1"))
            equal(answers[-1][0], [[rows]], f"rows: {answers[-1]}")
            if len(answers) > 1:
                return
        raise AssertionError("no call timed out")


def is_running(service):
    return service.states() == ["running"]


@each_way
def run_timeouts(transport):
    """A run ends at the service after the time that the program set; longer ones do not extend the service's own limit"""
    with (
        Clocks() as clocks,
        Service({"chinook": CHINOOK}, limits={"RunTimeoutSec": 600}, environment=clocks.environment) as service,
        Library(service, transport, environment={"LD_PRELOAD": ""}) as library,
    ):
        slow = ENDLESS + "x FROM n WHERE x < 0"
        for usec in (300 * 10**6, 3600 * 10**6):
            library.ok(f"run-timeout {usec}")
            answers = []

            def ask():
                answers.append(library.ask(f"query chinook {slow}")[1])
                if answers == ["ok"]:
                    answers.append(library.ask("rows 0")[1])

            thread = threading.Thread(target=ask)
            thread.start()
            wait_for(lambda: is_running(service), "the run is under way")
            clocks.go_on(200)
            service.counters()
            # A PING that was under way when the clock went on makes a worker with a channel seem deaf: the run is repeated.
            wait_for(lambda: is_running(service) or len(answers) > 1, "the run goes on")
            equal(len(answers) > 1, False, f"ended before {usec} usec")
            clocks.go_on(900)
            service.counters()
            thread.join()
            equal(answers[-1].split(" ")[1:3], ["110", "28"], f"errno and code with {usec}: {answers}")
            library.ok("query chinook SELECT 7")
            equal(library.ask("rows 0"), ([[7]], "end 1"), "rows of a quick run")
        equal(library.failure("run-timeout 0")[0], 22, "errno of no time at all")


main()
