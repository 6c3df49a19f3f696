#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The objects of a client end when it cancels, closes or leaves; it can tell a lost service or worker from a normal end.

tests/reliability/test_kills*.py kill clients, workers, the service and the bus at every step.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import threading
import time

from client import SECONDS, Broken, Client, Failure, same_rows
from clocks import Clocks
from harness import CHINOOK, SANITIZED, WORKER, Service, children, expect, fds, locks, main, wait_for
from notified import Notified
from overheard import Overheard
from tap import equal, test, true
from watching import Watch, sleeps

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text to fill the pages' FROM n"
SCAN = ENDLESS + "count(*) FROM n"


def open_files(service):
    """Descriptors of supervisor and workers that belong to a statement or run: pipes and memfds. The page with the change
    sequences belongs to the service, and that with the counts of clients to their user."""
    result = []
    for pid in [service.pid(), *service.workers()]:
        result += [target for target in fds(pid).values() if target.startswith(("pipe:", "/memfd:"))]
    return [target for target in result if not target.startswith(("/memfd:sqlipc-changes", "/memfd:sqlipc-counts"))]


def settled(service):
    """Returns True if every worker is idle: no read transaction on the database, no pipe of a run."""
    return service.is_idle() and not locks(service.chinook)


def make_service(clocks=None, **limits):
    service = Service(limits={"WorkerIdleSec": 1} | limits, environment=clocks and clocks.environment)
    service.chinook = service.data / "chinook.sqlite"
    service.chinook.write_bytes(CHINOOK.read_bytes())
    service.database("chinook", Path=service.chinook)
    service.driver.manager("Reload")
    return service


@test
def vanish_during_prepare():
    """A client that leaves while its statement compiles leaves nothing"""
    slow = (
        "WITH c0(x) AS (SELECT 1)"
        + "".join(f", c{n}(x) AS (SELECT x FROM c{n - 1} UNION ALL SELECT x FROM c{n - 1})" for n in range(1, 17))
        + " SELECT count(*) FROM c16"
    )
    with make_service() as service:
        for delay in (0, 0.001, 0.01, 0.1):
            client = Client(service.address)
            thread = threading.Thread(target=lambda: swallow(client.prepare, "chinook", slow))
            thread.start()
            time.sleep(delay)
            client.connection.close_sync(None)
            thread.join()
            client.close()
        wait_for(lambda: settled(service), "nothing is left")
        wait_for(lambda: not open_files(service), "no pipe is left")


def swallow(function, *arguments):
    try:
        function(*arguments)
    except Failure:
        pass


@test
def closing_the_pipe_ends_the_run():
    """A closed read end ends the run, parked or computing, and the supervisor learns of it"""
    with make_service() as service:
        client = service.client()
        parked = client.query("chinook", STREAM)
        wait_for(lambda: service.counters()["NParked"] == 1, "the run parks")
        scanning = client.query("chinook", SCAN)
        parked.close()
        scanning.close()
        wait_for(lambda: service.counters()["NRuns"] == 0, "both runs end")
        client.point()


@test
def cancel():
    """Cancel ends runs that compute, stream or are parked, and their pipes carry Cancelled"""
    with make_service() as service:
        client = service.client()
        for sql, state in ((SCAN, "running"), (STREAM, "parked")):
            run = client.query("chinook", sql)
            wait_for(lambda: [r[3]["state"] for r in client.manager("ListRuns")[0]] == [state], f"the run is {state}")
            workers = service.workers()
            run.cancel()
            failure = expect("Cancelled", run.read)
            true(failure.message, "no sentence")
            true(" died of " not in service.log_text(), f"a worker of {workers} was killed for it")
            wait_for(lambda: service.counters()["NRuns"] == 0, "the run is over")
        number, _, _ = client.open_rows("chinook", STREAM)
        client.next_rows("chinook", number, {"max-bytes": 100})
        client.cancel("chinook", number)
        expect("UnknownRun", client.next_rows, "chinook", number)
        wait_for(lambda: settled(service), "nothing is left")


@test
def cancel_keeps_the_worker():
    """Cancelling a hundred scans kills no worker"""
    with make_service(WorkersMax=1) as service:
        client = service.client()
        client.point()
        workers = service.workers()
        for _ in range(20 if SANITIZED else 100):
            run = client.query("chinook", SCAN)
            run.cancel()
            expect("Cancelled", run.read)
        equal(service.workers(), workers, "workers")


@test
def finalize_cancels():
    """Finalize during a run ends it"""
    with make_service() as service:
        client = service.client()
        statement = client.prepare("chinook", STREAM)
        run = statement.fetch()
        client.finalize("chinook", statement.number)
        expect("UnknownStatement", client.finalize, "chinook", statement.number)
        expect("Cancelled", run.read)
        client.drop(statement.pipe)
        wait_for(lambda: settled(service) and not open_files(service), "nothing is left")


@test
def daemon_killed():
    """A daemon killed in mid-stream breaks the stream, never ends it; the next daemon refuses its numbers"""
    with make_service() as service:
        client = service.client()
        statement = client.prepare("chinook", "SELECT * FROM Track a, Track b")
        run = statement.fetch()
        run.frame()
        service.kill()
        try:
            run.read()
            raise AssertionError("the stream came to an end")
        except Broken:
            pass
        service.start()
        expect("UnknownStatement", client.finalize, "chinook", statement.number)
        expect("UnknownStatement", statement.fetch)
        expect("UnknownRun", client.cancel, "chinook", run.number)
        fresh = client.prepare("chinook", "SELECT 1")
        true(fresh.number != statement.number, "a number was used again")
        fresh.close()
        client.point()


@test
def numbers_start_at_random():
    """Numbers start elsewhere in each instance, and stay below 2^53"""
    seen = []
    with make_service() as service:
        for _ in range(3):
            client = service.client()
            statement = client.prepare("chinook", "SELECT 1")
            seen.append(statement.number)
            statement.close()
            service.stop()
            service.start()
    equal(len(set(seen)), 3, "different numbers")
    true(all(0 < number < 2**53 for number in seen), f"numbers {seen}")
    true(max(seen) - min(seen) > 2**20, f"numbers {seen} are neighbours")


@test
def worker_killed():
    """A worker killed in mid-stream: end-of-file without END, WorkerLost for its statement only, the next query works"""
    with make_service(WorkersMax=1) as service:
        client, other = service.client(), service.client()
        idle = other.prepare("chinook", "SELECT count(*) FROM Track")
        same_rows(idle.fetch().read().rows, [[3503]])
        statement = client.prepare("chinook", STREAM)
        run = statement.fetch()
        rows = client.open_rows("chinook", STREAM)[0]
        run.frame()
        for pid in service.workers():
            os.kill(pid, signal.SIGKILL)
        try:
            run.read()
            raise AssertionError("the stream came to an end")
        except Broken:
            pass
        expect("WorkerLost", statement.fetch)
        expect("WorkerLost", client.finalize, "chinook", statement.number)
        expect("UnknownStatement", client.finalize, "chinook", statement.number)
        expect("WorkerLost", lambda: [client.next_rows("chinook", rows) for _ in range(100)])
        same_rows(idle.fetch().read().rows, [[3503]])
        client.point()
        idle.close()


@test
def worker_stopped():
    """A worker that hangs is killed after its deadline, and only its runs fail"""
    with Clocks() as clocks, make_service(clocks=clocks, WorkersMax=4, WorkerIdleSec=86400) as service:
        client = service.client()
        run = client.query("chinook", SCAN)
        # if starts are slow there may be an idle sibling, which must stay for the next query
        busy = {more.get("worker-pid") for *_, more in service.driver.manager("ListRuns")[0]} & set(service.workers())
        for pid in busy or service.workers():
            os.kill(pid, signal.SIGSTOP)
        client.point()
        clocks.go_on(3600)
        wait_for(lambda: service.counters()["NRuns"] == 0, "the run is over")
        try:
            run.read()
            raise AssertionError("the stream came to an end")
        except (Broken, Failure):
            pass


@test
def clean_stop():
    """SIGTERM ends runs that are read with ShuttingDown; no stream looks complete"""
    with make_service() as service:
        client = service.client()
        read, unread = client.query("chinook", STREAM), client.query("chinook", STREAM)
        ends = []
        thread = threading.Thread(target=lambda: ends.append(how_it_ends(read)))
        thread.start()
        wait_for(lambda: service.counters()["NParked"] > 0, "the other run parks")
        service.stop()
        thread.join()
        equal(ends, ["ShuttingDown"], "end of a stream that was read")
        # Its pipe is full and is not read, so there may have been no room for the ERROR.
        true(how_it_ends(unread) in ("ShuttingDown", "broken"), "an unread stream")
        service.start()
        client.point()


def outcome_of(call):
    try:
        call()
        return "answered"
    except Failure as failure:
        return failure.name


def how_it_ends(run):
    try:
        run.counted()
        return "complete"
    except Failure as failure:
        return failure.name.removeprefix("org.sqlipc1.Error.")
    except Broken:
        return "broken"


@test
def calls_that_meet_a_stop():
    """Calls that were sent to a service before it was told to stop all get ShuttingDown"""
    with make_service() as service:
        client = service.client()
        outcomes, overheard = [], Overheard(service.address)
        os.kill(service.daemon.pid, signal.SIGSTOP)
        threads = [threading.Thread(target=lambda: outcomes.append(outcome_of(client.point))) for _ in range(50)]
        for thread in threads:
            thread.start()
        wait_for(lambda: overheard.members.count("Query") == 50, "the bus has routed them")
        service.daemon.send_signal(signal.SIGTERM)
        service.daemon.send_signal(signal.SIGCONT)
        for thread in threads:
            thread.join()
        overheard.close()
        equal(set(outcomes), {"org.sqlipc1.Error.ShuttingDown"}, "answers")
        equal(service.daemon.wait(SECONDS), 0, "exit code")
        service.daemon = None


def status(first, last, watches="0 watches"):
    return f"{first}, 0 channels, {watches}, {last}"


@test
def service_manager():
    """The service notifies its readiness, status, watchdog, reloads and stop"""
    with Notified() as notified:
        environment = notified.environment | {"WATCHDOG_USEC": "200000"}
        limits = {"WorkersMax": 1, "WorkerIdleSec": 86400}
        with Service({"chinook": CHINOOK}, limits=limits, environment=environment) as service:
            notified.until("READY", "1")
            notified.until("STATUS", status("1 database, 0 clients, 0 statements", "0 runs (0 parked), 0 workers"))
            client = service.client()
            statement = client.prepare("chinook", STREAM)
            run = statement.fetch()
            notified.until("STATUS", status("1 database, 1 client, 1 statement", "1 run (1 parked), 1 worker"))
            run.cancel()
            expect("Cancelled", run.read)
            Watch(client, database="chinook")
            notified.until("STATUS", status("1 database, 1 client, 1 statement", "0 runs (0 parked), 1 worker", "1 watch"))
            for _ in range(3):
                notified.until("WATCHDOG", "1")
            true(timers(service.daemon.pid), "it has no timer for the watchdog")
            service.daemon.send_signal(signal.SIGHUP)
            true(int(notified.until("RELOADING", "1")[-1]["MONOTONIC_USEC"]) > 0, "RELOADING=1 without MONOTONIC_USEC=")
            notified.until("READY", "1")
            service.stop()
            notified.until("STOPPING", "1")


@test
def sleeps_at_rest():
    """An idle service has no timer"""
    with Notified() as notified:
        limits = {"WorkerIdleSec": 1, "QueueTimeoutSec": 1}  # the timer of the last deadline there was may fire once more
        with Service({"chinook": CHINOOK}, limits=limits, environment=notified.environment) as service:
            service.driver.point()
            notified.until("STATUS", status("1 database, 1 client, 0 statements", "0 runs (0 parked), 0 workers"))
            wait_for(lambda: has_no_timer(service.daemon.pid), "it would not wake up any more")


def has_no_timer(pid):
    """Not true of a timer that has just expired, and that the process is about to set again: then it does not sleep."""
    before = sleeps(pid)
    return before and not timers(pid) and sleeps(pid) == before


def timers(pid):
    """Returns the timers of the process that will expire, as timerfd_create(2) shows them."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            values = [line for line in path.read_text().splitlines() if line.startswith("it_value:")]
            found += [line for line in values if line != "it_value: (0, 0)"]
    return found


@test
def worker_replaced():
    """Workers run the program that was installed when the service started, also after an upgrade"""
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1}, start=False) as service:
        program = service.folder / "sqlipc-worker"
        service.environment["SQLIPC_WORKER_PATH"] = shutil.copy(WORKER, program)
        service.start()
        shutil.copy("/bin/false", service.folder / "new")
        (service.folder / "new").rename(program)
        for _ in range(2):
            service.client().point()
            (worker,) = children(service.pid())
            equal(pathlib.Path(f"/proc/{worker}/comm").read_text(), "sqlipc-worker\n", "name in the list of processes")
            os.kill(worker, signal.SIGKILL)
            wait_for(lambda: not children(service.pid()), "the worker is gone")


@test
def bus_gone():
    """The daemon ends with a failure when its bus ends, and leaves no workers"""
    with make_service() as service:
        service.driver.point()
        workers = service.workers()
        true(workers, "no worker")
        service.bus.kill()
        service.bus.wait()
        code = service.daemon.wait(SECONDS)
        service.daemon = None
        true(code != 0, "the loss of the bus looks like a clean end")
        wait_for(lambda: not set(workers) & set(children(os.getpid())), "workers end")


@test
def children_of_the_ignorant():
    """A daemon that inherits an ignored SIGCHLD still learns of its children's ends"""
    usual = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1}) as service:
        signal.signal(signal.SIGCHLD, usual)
        client = service.client()
        client.point()
        (worker,) = service.workers()
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: worker not in children(service.pid()), "the worker is gone")
        client.point()


@test
def activation():
    """The bus starts the daemon on the first call, and again after it died"""
    with Service({"chinook": CHINOOK}, activation=True) as service:
        equal(service.has_owner(), False, "the daemon runs before it is asked for")
        service.client().point()
        first = service.pid()
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: not service.has_owner(), "the bus notices")
        service.client().point()
        true(service.pid() != first, "the same process")


if __name__ == "__main__":  # not in the fork server, which imports this file
    main()
