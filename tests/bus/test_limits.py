#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Limits of one database, of SQLite, of results and of idle statements; and the users that are exempt."""
import os
import resource

from client import DATABASE, Broken, object_path
from clocks import Clocks
from harness import CHINOOK, SANITIZED, UID_A, UID_B, Service, expect, main, needs_root, wait_for
from tap import equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text to fill the pages' FROM n"
SCAN = ENDLESS + "count(*) FROM n"
# One opcode that computes for minutes and heeds no interrupt.
STUCK = "SELECT instr(hex(zeroblob(5000000)), hex(zeroblob(2500000)) || 'b')"
# Of runs that go on while an hour passes.
LONG = {"ParkTimeoutSec": 86400, "ParkTimeoutRollbackSec": 86400, "RunTimeoutSec": 86400}


class Limited(Service):
    """Two databases on one file, with limits of the service and of the first of them; clients of two users."""

    def __init__(self, limits=None, clocks=None, **of_database):
        super().__init__({"other": CHINOOK}, limits=limits, start=False, environment=clocks and clocks.environment)
        self.limited(**of_database)
        self.start()
        self.one = self.client(UID_A if os.geteuid() == 0 else None)
        self.two = self.client(UID_B if os.geteuid() == 0 else None)

    def limited(self, **keys):
        lines = "".join(f"{key}={value}\n" for key, value in keys.items())
        self.database("chinook", f"[Database]\nPath={CHINOOK}\nAllowUsers=*\n[Limits]\n{lines}")


# ---- of one database ----


@needs_root
def statements_of_a_database():
    """StatementsMax= in NAME.conf counts for all users together, and says nothing of the others"""
    with Limited(StatementsMax=2) as service:
        first = service.one.prepare("chinook", "SELECT 1")
        service.two.prepare("chinook", "SELECT 1")
        for client in (service.one, service.two, service.driver):
            failure = expect("LimitsExceeded", client.prepare, "chinook", "SELECT 1")
            true("database" in failure.message and "StatementsMax=" in failure.message, failure.message)
            true(str(UID_A) not in failure.message and str(UID_B) not in failure.message, failure.message)
            client.prepare("other", "SELECT 1").close()
        first.close()
        service.two.prepare("chinook", "SELECT 1").close()


@needs_root
def runs_of_a_database():
    """RunsMax= in NAME.conf counts for all users together"""
    with Limited(RunsMax=2) as service:
        first, _ = service.one.query("chinook", STREAM), service.two.query("chinook", STREAM)
        failure = expect("LimitsExceeded", service.two.query, "chinook", "SELECT 1")
        true("database" in failure.message and "RunsMax=" in failure.message, failure.message)
        expect("LimitsExceeded", service.one.open_rows, "chinook", "SELECT 1")
        service.two.point("other")
        first.close()
        wait_for(lambda: service.counters()["NRuns"] == 1, "the run is over")
        service.two.point()


@needs_root
def workers_of_a_database():
    """WorkersMax= in NAME.conf: a run too many waits, then is Busy, or is served when a worker is idle"""
    limits = {"WorkerIdleSec": 10000, "WorkersMax": 1, "RunTimeoutSec": 10000}  # of a user: no siblings of a slow start
    with Clocks() as clocks, Limited(limits, clocks, WorkersMax=1) as service:
        service.one.point()
        service.two.point()  # the idle worker of the other made room
        equal(len(service.workers()), 1, "workers")
        stuck = service.one.query("chinook", STUCK)
        query = (object_path("chinook"), DATABASE, "Query", "(sava{sv}a{sv})", "SELECT 1", [], {}, {})
        waits = service.two.begin(*query)
        wait_for(lambda: service.counters()["NRuns"] == 2, "the second run waits")
        clocks.go_on(700)  # QueueTimeoutSec= is 600
        wait_for(lambda: service.counters()["NRuns"] == 1, "it waits no more")
        expect("Busy", waits.result)
        service.two.point("other")
        equal(len(service.workers()), 2, "workers")
        stuck.cancel()
        wait_for(lambda: service.counters()["NRuns"] == 0, "the stuck worker is killed")
        service.two.point()


@test
def values_of_a_database():
    """Sizes and times in NAME.conf replace those of sqlipcd.conf, up and down, also after a reload"""
    of_all = {"RowSizeMax": 1000, "ResultRowsMax": 10, "RunTimeoutSec": 600}
    with Limited(of_all, RowSizeMax=2000, ResultRowsMax=20) as service:
        for name, size, rows in (("chinook", 2000, 20), ("other", 1000, 10)):
            service.one.query(name, f"SELECT zeroblob({size - 5})").counted()
            expect("RowTooLarge", service.one.query(name, f"SELECT zeroblob({size - 4})").counted)
            equal(service.one.query(name, f"SELECT 1 FROM Track LIMIT {rows}").counted()[1], rows, "rows")
            failure = expect("LimitsExceeded", service.one.query(name, f"SELECT 1 FROM Track LIMIT {rows + 1}").counted)
            true("ResultRowsMax=" in failure.message, failure.message)
        service.limited(RunTimeoutSec="0.5")
        service.driver.manager("Reload")
        expect("TimedOut", lambda: service.one.query("chinook", SCAN).read())  # at once if a worker had to start
        equal(service.one.query("other", "SELECT 1").counted()[1], 1, "rows")


# ---- of results and statements ----


@test
def result_rows():
    """ResultRowsMax=: so many rows arrive, then the error, by pipe, in one reply and by cursor"""
    with Limited({"ResultRowsMax": 3}) as service:
        allowed, more = ("SELECT TrackId FROM Track ORDER BY 1 LIMIT 3", "SELECT TrackId FROM Track ORDER BY 1 LIMIT 4")
        equal(service.one.query("chinook", allowed).read().rows, [[1], [2], [3]], "rows")
        equal(service.one.query_rows("chinook", allowed)[1], [[1], [2], [3]], "rows")
        equal(service.one.all_rows("chinook", allowed)[1], [[1], [2], [3]], "rows")
        expect("LimitsExceeded", service.one.query("chinook", more).read)
        expect("LimitsExceeded", service.one.query_rows, "chinook", more)
        run = service.one.open_rows("chinook", more)[0]
        equal(service.one.next_rows("chinook", run)[0], [[1], [2], [3]], "rows before the error")
        expect("LimitsExceeded", service.one.next_rows, "chinook", run)


@test
def limits_of_sqlite():
    """SQLSizeMax=, ExpressionDepthMax=, CompoundSelectsMax=, VdbeOpsMax=, VariablesMax=: LimitsExceeded names the key"""
    limits = {"SQLSizeMax": 20000, "ExpressionDepthMax": 20, "CompoundSelectsMax": 200, "VdbeOpsMax": 1000}
    limits["VariablesMax"] = 3
    cases = {
        "SQLSizeMax=": ("SELECT 1".ljust(20000), "SELECT 1".ljust(20001)),
        "ExpressionDepthMax=": ("SELECT 1" + "+1" * 19, "SELECT 1" + "+1" * 20),
        "CompoundSelectsMax=": ("SELECT 1" + " UNION ALL SELECT 1" * 199, "SELECT 1" + " UNION ALL SELECT 1" * 200),
        "VariablesMax=": ("SELECT ?, ?, ?", "SELECT ?, ?, ?, ?"),
        "VdbeOpsMax=": ("SELECT 1" + ", 1" * 100, "SELECT 1" + ", 1" * 1500),
    }
    with Limited(limits) as service:
        for key, (at, over) in cases.items():
            service.one.prepare("chinook", at).close()
            for call in (service.one.prepare, service.one.query, service.one.query_rows, service.one.open_rows):
                failure = expect("LimitsExceeded", call, "chinook", over)
                true(key in failure.message, failure.message)
        service.one.point()


@test
def idle_statements():
    """StatementIdleSec=: an idle statement is dropped, a running one is not; Fetch mentions the limit as a reason"""
    with Clocks() as clocks, Limited({"StatementIdleSec": 3600} | LONG, clocks) as service:
        idle = service.one.prepare("chinook", "SELECT 1")
        running = service.one.prepare("chinook", STREAM)
        run = running.fetch()
        run.frame()
        clocks.go_on(4000)
        wait_for(lambda: service.counters()["NStatements"] == 1, "the idle statement is given up")
        failure = expect("UnknownStatement", idle.fetch)
        true("StatementIdleSec=" in failure.message, failure.message)
        expect("UnknownStatement", service.one.finalize, "chinook", idle.number)
        run.cancel()
        expect("Cancelled", run.read)
        equal(service.counters()["NStatements"], 1, "statements just after a run")
        clocks.go_on(4000)
        wait_for(lambda: service.counters()["NStatements"] == 0, "the other one is given up after its run")
        expect("UnknownStatement", running.fetch)


@test
def thousands_of_idle_statements():
    """Thousands of idle statements are dropped in their order, and other users are served meanwhile"""
    limits = {"StatementIdleSec": 3600, "StatementsMax": 5000, "PipePagesMax": 100000}
    with Clocks() as clocks, Limited(limits, clocks) as service:
        kept = service.two.prepare("chinook", "SELECT 1")
        held = []

        def use():
            equal(kept.fetch().read().rows, [[1]], "rows of a statement in use")

        while len(held) < 2000:
            held.append(service.one.database("chinook", "Prepare", "(sa{sv})", "SELECT 1", {})[0][0].get_uint64())
            for fd in list(service.one.fds):
                service.one.drop(fd)
            if len(held) % 20 == 0:
                use()
            if len(held) % 1000 == 0:
                clocks.go_on(1000)
        clocks.go_on(1800)  # the first thousand is 3800 s old, the others 2800
        wait_for(lambda: service.counters()["NStatements"] == 1001, "the older ones are given up")
        use()
        clocks.go_on(1800)
        while service.counters()["NStatements"] > 1:
            use()
        for number in held:
            expect("UnknownStatement", service.one.finalize, "chinook", number)


@test
def runs_that_nobody_reads():
    """StatementIdleSec= also ends the rest of an ended run: bytes in its pipe, or rows for NextRows"""
    limits = {"StatementIdleSec": 3600, "WorkerIdleSec": 86400} | LONG
    with Clocks() as clocks, Limited(limits, clocks) as service:
        statement = service.one.prepare("chinook", STREAM)
        runs = [service.one.query("chinook", STREAM), statement.fetch()]
        wait_for(lambda: service.counters()["NParked"] == 2, "the runs park")
        workers = set(service.workers())
        for run in runs:
            run.cancel()
        cursor = service.one.open_rows("chinook", "SELECT 1")[0]
        runs_now = lambda: [more for *_, more in service.driver.manager("ListRuns")[0]]  # noqa: E731
        wait_for(lambda: not any("worker-pid" in more for more in runs_now()), "their workers hand their ends over")
        clocks.go_on(4000)
        wait_for(lambda: service.counters()["NRuns"] == 0, "all three are given up")
        for run in runs:
            try:
                run.read()
                raise AssertionError("the stream has an end")
            except Broken:
                pass
        expect("UnknownRun", service.one.next_rows, "chinook", cursor)
        expect("PipeClosed", statement.fetch)
        true(workers <= set(service.workers()), "a worker was killed")
        service.one.point()


# ---- exemptions ----


def address_space_of_the_unit():
    """LimitAS= of the unit is the worker's limit if it is lower"""
    size = 300 * 1024 * 1024
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1}) as service:
        resource.prlimit(service.pid(), resource.RLIMIT_AS, (size, size))
        client = service.client()
        client.point()
        (worker,) = service.workers()
        equal(resource.prlimit(worker, resource.RLIMIT_AS), (size, size), "bytes of a worker")
        expect("OutOfMemory", client.query_rows, "chinook", "SELECT length(zeroblob(400000000) || 'x')")
        client.point()


if not SANITIZED:  # sanitizers reserve memory by terabytes
    test(address_space_of_the_unit)


@needs_root
def exempt_root():
    """ExemptRoot=yes: limits of counts, sizes and times apply to all users except root"""
    limits = {
        "StatementsMax": 1,
        "RunsMax": 1,
        "PipePagesMax": 3,
        "RowSizeMax": 1000,
        "ResultSizeMax": 2000,
        "ResultRowsMax": 2,
        "SQLSizeMax": 100,
        "RunTimeoutSec": 600,
        "StatementIdleSec": 600,
        "HeapMax": "16M",
    }
    large = "SELECT length(hex(zeroblob(20000000)))"
    with Clocks() as clocks, Limited({"ExemptRoot": "yes", **LONG, **limits}, clocks, StatementsMax=1, RunsMax=1) as service:
        admin = service.driver
        statements = [admin.prepare("chinook", "SELECT 1".ljust(200)) for _ in range(5)]
        runs = [admin.query("chinook", STREAM) for _ in range(5)]
        equal(admin.query("chinook", "SELECT zeroblob(5000) FROM Track LIMIT 5").counted()[1], 5, "rows")
        equal(admin.query("chinook", large).read().rows, [[40000000]], "length")
        for refused in ("StatementsMax=", "RunsMax="):
            call = service.one.prepare if refused == "StatementsMax=" else service.one.query
            failure = expect("LimitsExceeded", call, "chinook", "SELECT 1")
            true(refused in failure.message, failure.message)
        expect("LimitsExceeded", service.one.prepare, "other", "SELECT 1".ljust(101))
        expect("RowTooLarge", service.one.query("other", "SELECT zeroblob(5000)").read)
        expect("LimitsExceeded", service.one.query("other", "SELECT 1 FROM Track").read)
        expect("OutOfMemory", lambda: service.one.query("other", large).read())
        one = service.one.prepare("other", "SELECT 1")
        scan = service.one.query("other", SCAN)
        clocks.go_on(700)
        expect("TimedOut", scan.read)
        wait_for(lambda: service.counters()["NStatements"] == 5, "a user's idle statement is given up")
        expect("UnknownStatement", one.fetch)
        for statement in statements:
            equal(statement.fetch().read().rows, [[1]], "rows of root's idle statement")
        for run in runs:
            run.close()
        service.limits(**limits)
        admin.manager("Reload")
        expect("LimitsExceeded", admin.prepare, "other", "SELECT 1")


if __name__ == "__main__":
    main()
