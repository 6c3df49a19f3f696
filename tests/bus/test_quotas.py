#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every limit of sqlipcd.conf: at the limit all is well, past it there is a named error, for that user alone."""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import resource
import signal
import sqlite3
import threading
import time

from client import DATABASE, NAME, Failure, Gio, GLib, object_path
from clocks import Clocks
from harness import (
    CHINOOK, PATIENT, SANITIZED, SOURCE_ROOT, UID_A, UID_B, Service, expect, fds, main, needs_root, processor_time,
    rss_anon, wait_for,
)
from tap import Skip, at_most, equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text to fill the pages' FROM n"
# It reads a table, so it holds the lock of a reader until it ends.
LOCKING_STREAM = STREAM + " LEFT JOIN Track"
SCAN = ENDLESS + "count(*) FROM n"
# One opcode that computes for minutes and heeds no interrupt.
STUCK = "SELECT instr(hex(zeroblob(5000000)), hex(zeroblob(2500000)) || 'b')"
DETAILS = {"error-details": GLib.Variant("b", True)}


class Limited(Service):
    """A service with one limit set, its client, and a client of another user where we may be one."""

    def __init__(self, clocks=None, **limits):
        self.occupied = set()
        super().__init__({"chinook": CHINOOK}, limits=limits, environment=clocks and clocks.environment)
        self.one = self.client()
        self.two = self.client(UID_A if os.geteuid() == 0 else None)

    def occupy(self, client):
        """Keeps one worker of the client busy until the test ends. The worker is stopped, so that it needs no CPU."""
        run = client.query("chinook", STUCK)
        # After a slow start there may be an idle worker beside it.
        ((pid, more),) = [(more["worker-pid"], more) for number, *_, more in self.driver.manager("ListRuns")[0]
                          if number == run.number]  # fmt: skip
        equal(more["state"], "running", "the run")
        self.occupied.add(pid)
        os.kill(pid, signal.SIGSTOP)

    def hasty(self):
        """Publishes another database, whose runs wait for a worker only shortly."""
        self.database("hasty", f"[Database]\nPath={CHINOOK}\nAllowUsers=*\n[Limits]\nQueueTimeoutSec=0.1\n")
        self.driver.manager("Reload")

    def close(self, check=True):
        # The service would wait for stopped workers for seconds.
        for pid in self.occupied & set(self.workers() if self.daemon else ()):
            os.kill(pid, signal.SIGKILL)
        super().close(check)


def exceeds(key, function, *arguments, options=None):
    """Fails unless a user's quota refuses the call: it names its key, and has the code that programs know from locks."""
    failure = expect("LimitsExceeded", function, *arguments, options=DETAILS | (options or {}))
    true(f"{key}=" in failure.message, failure.message)
    equal(failure.extended, sqlite3.SQLITE_BUSY, f"SQLite's code with {failure.message}")


@test
def statements():
    """StatementsMax"""
    with Limited(StatementsMax=3) as service:
        held = [service.one.prepare("chinook", "SELECT 1") for _ in range(3)]
        exceeds("StatementsMax", service.one.prepare, "chinook", "SELECT 1")
        again = service.client()
        expect("LimitsExceeded", again.prepare, "chinook", "SELECT 1")
        if os.geteuid() == 0:
            service.two.prepare("chinook", "SELECT 1").close()
        held.pop().close()
        service.one.prepare("chinook", "SELECT 1").close()


@test
def runs():
    """RunsMax"""
    with Limited(RunsMax=3) as service:
        held = [service.one.query("chinook", STREAM) for _ in range(3)]
        for query in (service.one.query, service.one.query_rows, service.one.open_rows):
            exceeds("RunsMax", query, "chinook", "SELECT 1")
        if os.geteuid() == 0:
            service.two.point()
        run = held.pop()
        run.cancel()
        expect("Cancelled", run.read)
        wait_for(lambda: service.counters()["NRuns"] == 2, "the cancelled run is over")
        service.one.point()


@test
def transactions():
    """TransactionsMax"""
    read = {"mode": GLib.Variant("s", "read")}
    with Limited(TransactionsMax=2) as service:

        def begin(client, options=None):
            return client.database("chinook", "Begin", "(a{sv})", read | (options or {}))[0][0]

        held = [begin(service.one) for _ in range(2)]
        for client in (service.one, service.client()):
            exceeds("TransactionsMax", begin, client)
        service.one.point()
        if os.geteuid() == 0:
            begin(service.two)
        service.one.database("chinook", "Rollback", "(ta{sv})", held.pop().get_uint64(), {})
        begin(service.one)


@test
def workers():
    """WorkersMax and QueueTimeoutSec: runs past the workers wait, then are Busy"""
    with Limited(WorkersMax=2) as service:
        service.hasty()
        for _ in range(2):
            service.occupy(service.one)
        equal(len(service.workers()), 2, "workers that are occupied")
        failure = expect("Busy", service.one.query, "hasty", "SELECT 1")
        true("worker" in failure.message, failure.message)
        equal(len(service.workers()), 2, "workers")
        if os.geteuid() == 0:
            service.two.point()


@needs_root
def places_for_others():
    """WorkersTotalMax: half of the places are kept for users without a worker"""
    shares = ((2, 1), (3, 1), (4, 2), (8, 4))
    with Clocks() as clocks, contextlib.ExitStack() as stack:
        services = [
            stack.enter_context(Limited(clocks, WorkersMax=8, WorkersTotalMax=total, RunTimeoutSec=10000))
            for total, _ in shares
        ]

        def all_refuse(clients):
            """Each answers after QueueTimeoutSec=, of ten minutes."""
            query = (object_path("chinook"), DATABASE, "Query", "(sava{sv}a{sv})", "SELECT 1", [], {}, {})
            calls = [client.begin(*query) for client in clients]
            for service in services:
                wait_for(lambda: "queued" in service.states(), "the run waits")  # noqa: B023
            clocks.go_on(700)
            for service, call in zip(services, calls):
                wait_for(lambda: "queued" not in service.states(), "it waits no more")  # noqa: B023
                failure = expect("Busy", call.result)
                true("WorkersTotalMax=" in failure.message, failure.message)

        for service, (_, of_one) in zip(services, shares):
            for _ in range(of_one):
                service.occupy(service.one)
        all_refuse(service.one for service in services)
        for service, (total, of_one) in zip(services, shares):
            equal(len(service.workers()), of_one, "workers of one user")
            for n in range(total - of_one):
                service.occupy(service.client(UID_A + n))
            equal(len(service.workers()), total, "workers")
        all_refuse(service.client(UID_A + 8) for service in services)  # a user that every Debian has: the bus asks for that


PTRACE_CONT, PTRACE_SEIZE, PTRACE_O_TRACEEXIT = 7, 0x4206, 0x40


@needs_root
def killed_worker_that_does_not_die():
    """A killed worker that does not die keeps no place from others"""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    # It stops before its descriptors are closed; or they are closed, but only its tracer is told that it has ended.
    for options in (PTRACE_O_TRACEEXIT, None):
        with Limited(WorkersMax=1, WorkersTotalMax=1) as service:
            run = service.one.query("chinook", STUCK)
            (pid,) = service.workers()
            if libc.ptrace(PTRACE_SEIZE, pid, None, options) < 0:
                raise Skip("cannot trace a worker here")
            try:
                run.cancel()
                service.two.point()
                equal(service.log_text().count("does not die"), 1, "messages about it")
            finally:
                os.kill(pid, signal.SIGKILL)
                while os.WIFSTOPPED(os.waitpid(pid, 0)[1]):
                    libc.ptrace(PTRACE_CONT, pid, None, None)


@needs_root
def idle_worker_makes_room():
    """At WorkersTotalMax the idle worker of another user ends"""
    with Limited(WorkersTotalMax=2, WorkerIdleSec=600) as service:
        for uid in (None, UID_A, UID_B, UID_A, None):
            service.client(uid).point()
            at_most(len(service.workers()), 2, "workers")


@test
def pipe_pages():
    """PipePagesMax: a page for each statement; a pipe counts until its read end is closed"""
    with Limited(PipePagesMax=8) as service:
        held = [service.one.prepare("chinook", "SELECT 1") for _ in range(8)]
        failure = expect("LimitsExceeded", service.one.prepare, "chinook", "SELECT 1")
        true("pipe" in failure.message.lower(), failure.message)
        if os.geteuid() == 0:
            service.two.point()
        statement = held.pop()
        service.one.finalize("chinook", statement.number)
        expect("LimitsExceeded", service.one.prepare, "chinook", "SELECT 1")
        service.one.drop(statement.pipe)
        wait_for(lambda: makes(service), "a closed pipe counts no more")


def makes(service):
    try:
        service.one.prepare("chinook", "SELECT 1").close()
        return True
    except Failure:
        return False


@test
def pipes_are_small_at_rest():
    """A pipe has one page until its statement runs, and grows no further than PipePagesMax"""
    page = os.sysconf("SC_PAGESIZE")
    with Limited(PipePagesMax=24) as service:
        statement = service.one.prepare("chinook", STREAM)
        equal(fcntl.fcntl(statement.pipe, fcntl.F_GETPIPE_SZ), page, "size of the pipe of an idle statement")
        run = statement.fetch()
        for _ in range(50):
            run.frame()
        at_most(fcntl.fcntl(statement.pipe, fcntl.F_GETPIPE_SZ), 24 * page, "size of a pipe that is kept full")
        run.cancel()


@test
def pipe_grown_by_its_reader():
    """A reader that grows its pipe itself: LimitsExceeded"""
    with Limited(PipePagesMax=64) as service:
        run = service.one.query("chinook", STREAM)
        fcntl.fcntl(run.pipe, fcntl.F_SETPIPE_SZ, 1024 * 1024)
        failure = expect("LimitsExceeded", run.read)
        true("pipe" in failure.message.lower(), failure.message)


@test
def result_size():
    """ResultSizeMax"""
    with Limited(ResultSizeMax="64K") as service:
        size, rows = service.one.query("chinook", "SELECT zeroblob(60000)").counted()
        equal(rows, 1, "rows")
        at_most(size, 65536, "bytes")
        failure = expect("LimitsExceeded", service.one.query("chinook", STREAM).read)
        true("ResultSizeMax" in failure.message or "result" in failure.message.lower(), failure.message)
        expect("LimitsExceeded", service.one.query("chinook", "SELECT zeroblob(70000)").read)


@test
def row_size():
    """RowSizeMax, to the byte: types, ends and data of a row"""
    with Limited(RowSizeMax="100000") as service:
        for page_size in (4096, 1048576):
            options = {"page-size": page_size}
            rows = service.one.query("chinook", f"SELECT zeroblob({100000 - 5})", options=options).read().rows
            equal(len(rows[0][0]), 100000 - 5, "bytes")
            failure = expect(
                "RowTooLarge", service.one.query("chinook", f"SELECT zeroblob({100000 - 4})", options=options).read
            )
            true("RowSizeMax" in failure.message or "row" in failure.message.lower(), failure.message)


@test
def run_timeout():
    """RunTimeoutSec, also if the client asks for more"""
    with Clocks() as clocks, Limited(clocks, RunTimeoutSec=600) as service:
        longer = {"timeout-usec": 3600 * 10**6}
        runs = [service.one.query("chinook", SCAN, options=options) for options in ({}, longer)]
        call = service.one.begin(object_path("chinook"), DATABASE, "QueryRows", "(sava{sv}a{sv})", SCAN, [], {}, {})
        wait_for(lambda: service.states() == ["running"] * 3, "all run")
        clocks.go_on(500)
        service.one.point()
        equal(service.states(), ["running"] * 3, "runs before their time is over")
        clocks.go_on(200)
        for read in (*[run.read for run in runs], call.result):
            expect("TimedOut", read)
        service.one.point()


def has_parked(service):
    return service.counters()["NParked"] == 1 and service.states() == ["parked"]


@test
def park_timeout():
    """ParkTimeoutRollbackSec: a reader that stops is ReaderTooSlow, and one that goes on is not"""
    limits = {"ParkTimeoutRollbackSec": 600, "ParkTimeoutSec": 3600, "RunTimeoutSec": 86400, "WorkersMax": 1}
    with Clocks() as clocks, Limited(clocks, **limits) as service:
        run = service.one.query("chinook", LOCKING_STREAM)
        for _ in range(3):  # longer together than a reader may stop
            wait_for(lambda: has_parked(service), "the run parks")
            clocks.go_on(400)
            service.one.point()  # so the worker has looked at the clock
            equal(service.states(), ["parked"], "the run of a reader that goes on")
            read = 0
            while read <= fcntl.fcntl(run.pipe, fcntl.F_GETPIPE_SZ):  # until it has written again
                read += len(run.frame()[-1])
        number = service.one.open_rows("chinook", LOCKING_STREAM)[0]
        wait_for(lambda: service.states() == ["parked", "parked"], "both park")
        clocks.go_on(700)
        service.one.point()
        wait_for(lambda: service.states() == ["draining", "draining"], "parked runs end")
        equal(service.counters()["NParked"], 0, "parked runs")
        expect("ReaderTooSlow", run.read)
        expect("ReaderTooSlow", lambda: [service.one.next_rows("chinook", number) for _ in range(1000)])


@test
def park_timeout_in_wal_mode():
    """ParkTimeoutSec, in WAL mode"""
    limits = {"ParkTimeoutRollbackSec": 3600, "ParkTimeoutSec": 600, "RunTimeoutSec": 86400, "WorkersMax": 2}
    with Clocks() as clocks, Limited(clocks, **limits) as service:
        path = service.data / "wal.sqlite"
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t(a)")
        db.commit()
        service.database("wal", Path=path)
        service.driver.manager("Reload")
        run = service.one.query("wal", STREAM + " LEFT JOIN t")
        slow = service.one.query("chinook", LOCKING_STREAM)
        wait_for(lambda: service.states() == ["parked", "parked"], "both park")
        clocks.go_on(700)
        for database in ("wal", "chinook"):
            service.one.point(database)
        wait_for(lambda: service.states() == ["draining", "parked"], "that in WAL mode ends")
        expect("ReaderTooSlow", run.read)
        slow.close()
        db.close()


@test
def busy_timeout():
    """BusyTimeoutSec: a query on a locked database waits, then is Busy; other queries do not wait with it"""
    with Limited(BusyTimeoutSec=1) as service:
        path = service.data / "locked.sqlite"
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("CREATE TABLE t(a)")
        service.database("locked", Path=path)
        service.driver.manager("Reload")
        db.execute("BEGIN EXCLUSIVE")
        expect("Busy", lambda: service.one.query("locked", "SELECT * FROM t").read())
        service.one.point()
        db.execute("COMMIT")
        equal(service.one.query("locked", "SELECT * FROM t").read().rows, [], "rows")
        db.close()


@test
def busy_then_free():
    """A lock that is released in time is invisible to the client"""
    with Limited() as service:
        path = service.data / "locked.sqlite"
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        db.execute("CREATE TABLE t(a)")
        service.database("locked", Path=path)
        service.driver.manager("Reload")
        db.execute("BEGIN EXCLUSIVE")
        timer = threading.Timer(0.5, lambda: db.execute("COMMIT"))
        timer.start()
        equal(service.one.query("locked", "SELECT * FROM t").read().rows, [], "rows")
        timer.join()
        db.close()


SORT = """WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n LIMIT {})
          SELECT x, randomblob(1000) AS r FROM n ORDER BY r LIMIT 3 OFFSET {}"""


@test
def temporary_size():
    """TempSizeMax, shared by a user's workers"""
    with Limited(TempSizeMax="64M", WorkersMax=2) as service:
        equal(service.one.query("chinook", SORT.format(5000, 4000)).counted()[1], 3, "rows")
        failure = expect("LimitsExceeded", service.one.query("chinook", SORT.format(60000, 59000)).read)
        true("TempSizeMax" in failure.message or "temporary" in failure.message, failure.message)
        service.one.point()
        equal(service.one.query("chinook", SORT.format(5000, 4000)).counted()[1], 3, "rows after the failure")


@test
def heap():
    """HeapMax of a worker: OutOfMemory, and the next query works"""
    with Limited(HeapMax="32M") as service:
        equal(service.one.query("chinook", "SELECT length(hex(zeroblob(1000000)))").read().rows, [[2000000]], "length")
        expect("OutOfMemory", lambda: service.one.query("chinook", "SELECT length(hex(zeroblob(30000000)))").read())
        service.one.point()


@test
def worker_idle():
    """WorkerIdleSec: idle workers end; an idle statement keeps no worker, and still runs"""
    with Limited(WorkerIdleSec="0.5") as service:
        statement = service.one.prepare("chinook", "SELECT count(*) FROM Track")
        equal(statement.fetch().read().rows, [[3503]], "rows")
        wait_for(lambda: not service.workers(), "the worker ends")
        equal(statement.fetch().read().rows, [[3503]], "rows from another worker")
        statement.close()


@test
def prepare_timeout():
    """PrepareTimeoutSec: a longer compile is TimedOut, and a worker that does not return is replaced"""

    def doubled(levels):
        """Each level doubles what is compiled: 10 takes no time, 21 some ten seconds and less than 2 GiB."""
        ctes = "".join(f", c{n}(x) AS (SELECT x FROM c{n - 1} UNION ALL SELECT x FROM c{n - 1})" for n in range(1, levels))
        return f"WITH c0(x) AS (SELECT 1){ctes} SELECT count(*) FROM c{levels - 1}"

    methods = (("Prepare", "(sa{sv})", [{}]), *[(name, "(sava{sv}a{sv})", [[], {}, {}]) for name in ("Query", "QueryRows")])
    limits = {"PrepareTimeoutSec": 600, "HeapMax": "4G", "WorkersMax": 1, "WorkerIdleSec": 86400}
    with Clocks() as clocks, Limited(clocks, **limits) as service:
        for method, signature, arguments in methods:
            service.one.database("chinook", method, signature, doubled(8), *arguments)
            (worker,) = service.workers()
            before = processor_time(worker)
            call = service.one.begin(object_path("chinook"), DATABASE, method, signature, doubled(21), *arguments)
            wait_for(lambda: processor_time(worker) > before + 0.3, "it compiles")  # noqa: B023
            clocks.go_on(700)
            service.counters()
            expect("TimedOut", call.result)
            service.one.point()


@test
def kept_pipes():
    """Pipe ends that a client keeps take no descriptors from other users, even if few are allowed"""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        raise Skip("the daemon may have fewer than 2048 descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        service = Limited()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with service:
        for _ in range(400):
            service.one.database("chinook", "Query", "(sava{sv}a{sv})", "SELECT 1", [], {}, {})
        service.two.point()
        service.one.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@test
def no_descriptor_for_the_reply():
    """A pipe that cannot be passed for lack of descriptors is LimitsExceeded, and leaves nothing behind"""
    with Limited(WorkerIdleSec=600) as service:  # a worker that ends would free descriptors
        service.one.point()
        pid = service.pid()
        for call in (service.one.prepare, service.one.query):
            wait_for(lambda: "pipe:" not in str(fds(pid)), "pipes of before are closed")
            # Two numbers are free: for the ends of the pipe, but not for the copy that goes into the message.
            used = fds(pid)
            free = [n for n in range(1000) if n not in used]
            before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[2], resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            failure = expect("LimitsExceeded", call, "chinook", "SELECT 1")
            true("descriptor" in failure.message, failure.message)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
            wait_for(service.is_idle, "the run is forgotten")
            service.one.point()


@test
def large_rows_in_replies():
    """Large rows for many replies at once are LimitsExceeded before they fill the daemon's memory"""
    rows = ENDLESS + "zeroblob(15000000) FROM n"
    with Limited(**PATIENT) as service:
        runs = [service.one.open_rows("chinook", rows)[0] for _ in range(40)]
        before, peak, outcomes = rss_anon(service.pid()), 0, []

        def answered(connection, result):
            reply = connection.send_message_with_reply_finish(result)
            outcomes.append(reply.get_error_name() or "rows")

        for run in runs:
            message = Gio.DBusMessage.new_method_call(NAME, object_path("chinook"), DATABASE, "NextRows")
            message.set_body(GLib.Variant("(ta{sv})", (run, {})))
            service.one.connection.send_message_with_reply(
                message, Gio.DBusSendMessageFlags.NONE, 120000, None, answered
            )
        while len(outcomes) < len(runs):
            GLib.MainContext.default().iteration(False)
            peak = max(peak, rss_anon(service.pid()))
            time.sleep(0.01)
        true("rows" in outcomes, f"no run got a row: {outcomes}")
        if not SANITIZED:
            at_most(peak - before, 160 * 1024 * 1024, f"bytes more in the daemon, with {outcomes}")
        wait_for(lambda: service.counters()["NRuns"] == outcomes.count("rows"), "runs that failed are over")
        service.two.point()
        service.one.close()
        service.one = service.client()
        wait_for(service.is_idle, "the other runs are over")
        # The sum counts what is there, not what was: one after the other goes on for as long as one likes.
        for _ in range(6):
            equal(len(service.one.query_rows("chinook", "SELECT zeroblob(15000000)")[1][0][0]), 15000000, "bytes")


@test
def what_comes_along_is_not_kept():
    """A call that waits keeps no descriptor that came with it: 640 of them cost the daemon nothing"""
    body = GLib.Variant("(sava{sv}a{sv})", (SCAN, [], {}, {}))
    with Limited() as service, open("/dev/null") as null:
        service.one.point()
        before = len(fds(service.pid()))
        for _ in range(40):
            message = Gio.DBusMessage.new_method_call(NAME, object_path("chinook"), DATABASE, "QueryRows")
            message.set_body(body)
            message.set_unix_fd_list(Gio.UnixFDList.new_from_array([os.dup(null.fileno()) for _ in range(16)]))
            service.one.connection.send_message(message, Gio.DBusSendMessageFlags.NONE)
        wait_for(lambda: len(service.driver.manager("ListRuns")[0]) == 40, "all calls wait or run")
        # Two ends of a pipe for each of them, and their workers' sockets.
        at_most(len(fds(service.pid())) - before, 40 * 2 + 30, "descriptors more")
        service.two.point()


@test
def every_limit_has_a_test():
    """Every limit in the manual is tested here"""
    manual = (SOURCE_ROOT / "docs/man/sqlipcd.conf.5.rst").read_text()
    section = manual.split("SECTION [LIMITS]\n", 1)[1].split("\n====", 2)[0:2]
    named = set(re.findall(r"^\*\*([A-Z]\w+)=\*\*", "".join(section), re.M))
    true(len(named) >= 10, f"only {named} found in the manual")
    files = ("test_quotas.py", "test_limits.py", "test_channel.py", "test_pins.py", "test_transactions.py", "test_watch.py")
    text = "".join(pathlib.Path(__file__).with_name(name).read_text() for name in files)
    equal(sorted(n for n in named if not re.search(rf"\b{n}(=|\":)", text)), [], "untested limits")


if __name__ == "__main__":
    main()
