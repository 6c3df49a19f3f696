#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Channels and their workers: the choice of the worker, resting channels, and channels whose worker is stuck or dies."""
import contextlib
import os
import pathlib
import select
import signal
import threading
import time

from channel import Channel
from client import Broken
from clocks import Clocks
from harness import (
    BUILD_ROOT, CHINOOK, PATIENT, UID_A, UID_B, Service, expect, main, needs_root, processor_time, rss_anon,
    test_unsanitized, wait_for,
)  # fmt: skip
from tap import at_most, equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text to fill the pages' FROM n"
SCAN = ENDLESS + "count(*) FROM n"
# One opcode that computes for minutes and heeds no interrupt.
STUCK = "SELECT instr(hex(zeroblob(5000000)), hex(zeroblob(2500000)) || 'b')"
# The same after a time in which it can be interrupted, and is seen.
STUCK_LATER = (
    "SELECT instr(hex(zeroblob(5000000 + c % 2)), hex(zeroblob(2500000)) || 'b') FROM "
    f"(SELECT count(*) AS c FROM ({ENDLESS} x FROM n LIMIT 1000000))"
)
STUCK_BYTES = 15_000_000  # of the two texts
# The same for a few seconds.
STUCK_SHORTLY = "SELECT instr(hex(zeroblob(400000)), hex(zeroblob(200000)) || 'b')"
N_CPUS = len(os.sched_getaffinity(0))


def channels(service):
    return [more for _, _, _, more in service.driver.manager("ListChannels")[0]]


def at_workers(service):
    """Returns the channels of each worker."""
    found = {}
    for more in channels(service):
        if "worker-pid" in more:
            found[more["worker-pid"]] = found.get(more["worker-pid"], 0) + 1
    return found


def none_left(service):
    wait_for(lambda: service.counters()["NChannels"] == 0, "channels that closed are forgotten")


@test
def resting():
    """A channel without requests needs no worker, and keeps its statements for the next request"""
    with Service({"chinook": CHINOOK}, limits={"WorkerIdleSec": 0}) as service:
        client = service.client()
        channel = Channel(client)
        statement = channel.prepare("SELECT ? + 1")
        channel.statement(statement)
        for _ in range(2):
            wait_for(lambda: not service.workers(), "no worker is left")
            (more,) = channels(service)
            equal((more["state"], more["statements"]), ("resting", 1), "the channel")
            equal(channel.read(channel.fetch(statement, 41)).rows, [[42]], "rows")
            at_most(len(service.workers()), 1, "workers")
        channel.close()
        none_left(service)


@test
def one_worker():
    """With WorkersMax=1 the only worker serves all channels, and also runs over the bus"""
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1}) as service:
        client = service.client()
        held = [Channel(client) for _ in range(5)]
        for _ in range(20):
            numbers = [channel.query("SELECT 6 * 7") for channel in held]
            client.point()
            for channel, number in zip(held, numbers):
                equal(channel.read(number).rows, [[42]], "rows")
        equal(list(at_workers(service).values()), [5], "channels of each worker")


@test
def beside_a_scan():
    """A run that computes on one channel does not delay other channels, even if they shared its worker before"""
    with Service({"chinook": CHINOOK}) as service:
        client = service.client()
        held = [Channel(client) for _ in range(2 * N_CPUS)]
        statements = [channel.prepare("SELECT 1") for channel in held]
        for channel, statement in zip(held, statements):
            channel.statement(statement)
        scans = [channel.query(SCAN) for channel in held[:N_CPUS]]
        for channel, statement in zip(held[N_CPUS:], statements[N_CPUS:]):
            for _ in range(3):
                equal(channel.read(channel.fetch(statement)).rows, [[1]], "rows beside a scan")
        for channel, scan in zip(held, scans):
            channel.cancel(scan)
            expect("Cancelled", channel.read, scan)


@test
def beside_what_cannot_be_interrupted():
    """A worker that does not read its sockets loses channels with unread requests, and is killed if a client left"""
    with Service({"chinook": CHINOOK}) as service:
        client = service.client()
        stuckers = [service.client() for _ in range(N_CPUS)]
        held = [Channel(one) for one in (*stuckers, *[client] * N_CPUS)]
        for channel in held:
            channel.ask("SELECT 1")
        stuck = held[:N_CPUS]
        for channel in stuck:
            channel.query(STUCK)
        # There may be another one, if one of these got no CPU for a while.
        names = [one.name() for one in stuckers]
        workers = {more["worker-pid"] for _, _, owner, more in service.driver.manager("ListChannels")[0] if owner in names}
        for channel in held[N_CPUS:]:
            number = channel.query("SELECT 2")
            try:
                equal(channel.read(number).rows, [[2]], "rows")
            except Broken:
                again = Channel(client)  # what libsqlipc does
                equal(again.ask("SELECT 2"), [[2]], "rows of another channel")
                again.close()
            channel.close()
        equal(workers - set(service.workers()), set(), "workers that were killed meanwhile")
        for channel in stuck:
            channel.close()
        none_left(service)
        equal(workers & set(service.workers()), set(), "workers without a client")
        client.point()


@test
def closed_beside_what_cannot_be_interrupted():
    """A channel that closes costs no other channel its answer, though its worker learns of it only after computing"""
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1}) as service:
        closing, computing = Channel(service.client()), Channel(service.client())
        for channel in (closing, computing):
            channel.ask("SELECT 1")
        (pid,) = service.workers()
        before = processor_time(pid)
        run = computing.query(STUCK_SHORTLY)
        wait_for(lambda: processor_time(pid) > before + 0.1, "it computes")
        closing.close()
        equal(computing.read(run).rows, [[0]], "rows")
        wait_for(lambda: service.counters()["NChannels"] == 1, "the other is closed")
        equal(service.workers(), [pid], "the worker")
        computing.close()
        none_left(service)


# Memory shows that the run came to the part that hears nothing. With ASan it has as much before.
@test_unsanitized
def cancel_where_nothing_hears():
    """CancelRun of a run that cannot be interrupted kills the worker, and the channel ends without an answer"""
    with Service({"chinook": CHINOOK}) as service:
        channel = Channel(service.client())
        channel.query(STUCK_LATER)
        ((run, _, _, _),) = wait_for(lambda: service.driver.manager("ListRuns")[0], "the run is under way")
        (pid,) = [more["worker-pid"] for more in channels(service)]
        wait_for(lambda: rss_anon(pid) > STUCK_BYTES, "it searches")
        service.driver.manager("CancelRun", "(ta{sv})", run)
        broken = False
        try:
            channel.frame()
        except Broken:
            broken = True
        true(broken, "the stuck run answered")
        channel.close()
        none_left(service)
        service.client().point()


@test
def compiles_too_long():
    """PrepareTimeoutSec= ends a worker that compiles a channel's SQL past it"""
    slow = "".join(f", c{n}(x) AS (SELECT x FROM c{n - 1} UNION ALL SELECT x FROM c{n - 1})" for n in range(1, 26))
    limits = PATIENT | {"HeapMax": "4G", "WorkersMax": 1, "RunTimeoutSec": 86400, "WorkerIdleSec": 86400}
    with Clocks() as clocks, Service({"chinook": CHINOOK}, limits=limits, environment=clocks.environment) as service:
        channel = Channel(service.client())
        for ask in (Channel.prepare, Channel.query):
            equal(channel.ask("SELECT 1"), [[1]], "rows")
            (worker,) = service.workers()
            enough = processor_time(worker) + 0.3
            ask(channel, f"WITH c0(x) AS (SELECT 1){slow} SELECT count(*) FROM c25")
            wait_for(lambda: processor_time(worker) > enough, "it compiles")  # noqa: B023
            clocks.go_on(700)
            os.kill(worker, signal.SIGALRM)  # its timer counts the machine's time
            true(channel.is_closed(), "it was compiled")
            channel = Channel(service.client())
        true("past PrepareTimeoutSec=" in service.log_text(), "the log says nothing")


@test
def paused_past_its_time():
    """A run ends by its client's time limit if the machine was paused past that, and costs other clients nothing"""
    limits = {"WorkersMax": 1, "WorkerIdleSec": 600}
    with Clocks() as clocks, Service({"chinook": CHINOOK}, limits=limits, environment=clocks.environment) as service:
        clocks.stop()
        timed, other = Channel(service.client()), Channel(service.client())
        for channel in (timed, other):
            channel.ask("SELECT 1")
        (worker,) = service.workers()
        run = timed.query(ENDLESS + "x FROM n WHERE x = 1 OR x < 0", timeout_usec=500_000_000)
        true(timed.can_read(), "nothing came")  # it has begun, and brought a row
        for pid in (service.pid(), worker):
            os.kill(pid, signal.SIGSTOP)
        clocks.go_on(502)  # more than the second past its limit that a worker has
        for pid in (service.pid(), worker):
            os.kill(pid, signal.SIGCONT)
        clocks.let_pass(service, 0)
        expect("TimedOut", timed.read, run)
        equal(other.ask("SELECT 1"), [[1]], "rows of another channel")
        equal(service.workers(), [worker], "workers")
        for channel in (timed, other):
            channel.close()
        none_left(service)


@test
def outdated():
    """Limits of a reload hold for all later requests, beside a run that continues under the former ones"""
    limits = PATIENT | {"WorkersMax": 4}
    deep = "SELECT 1" + " + 1" * 100
    with Service({"chinook": CHINOOK}, limits=limits) as service:
        client = service.client()
        lasting = Channel(client)
        run = lasting.query(STREAM)
        wait_for(lambda: service.states() == ["parked"], "the run parks")
        (worker,) = service.workers()
        service.limits(**limits, ExpressionDepthMax=20)
        client.manager("Reload")
        for _ in range(3):
            expect("LimitsExceeded", client.query, "chinook", deep)
        channel = Channel(client)
        expect("LimitsExceeded", channel.ask, deep)
        true(worker in service.workers(), "the worker of the run is gone")
        lasting.cancel(run)
        expect("Cancelled", lasting.read, run)
        wait_for(lambda: worker not in service.workers(), "the worker with the limits of before ends")
        for channel in (lasting, channel):
            channel.close()
        none_left(service)


@test
def worker_killed():
    """A worker that dies closes only its own channels, whatever their state"""
    with Service({"chinook": CHINOOK}, limits=PATIENT) as service:
        client = service.client()
        rest, idle, busy, parked = (Channel(client) for _ in range(4))
        idle.ask("SELECT 1")
        busy.query(SCAN)
        parked.query(STREAM)
        wait_for(lambda: service.states() == ["parked", "running"], "both run")
        for pid in service.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for channel in (idle, busy):
            try:
                channel.frame()
                raise AssertionError("a lost worker answered")
            except Broken:
                pass
        wait_for(lambda: service.counters()["NChannels"] == 1, "its channels are closed")
        wait_for(lambda: service.counters()["NWorkers"] == 0, "the service knows of all of them")
        equal(rest.ask("SELECT 1"), [[1]], "rows of a channel that rested")
        equal(Channel(client).ask("SELECT 1"), [[1]], "rows of a new channel")
        for channel in (rest, idle, busy, parked):
            channel.close()


def use(channel, wrong):
    try:
        for n in range(300):
            if channel.ask("SELECT ? + 1", n) != [[n + 1]]:
                raise AssertionError(f"wrong answer to {n}")
        channel.close()
    except Exception as problem:  # noqa: BLE001 - whatever it was, the test fails
        wrong.append(problem)


@needs_root
def ten_clients():
    """Ten clients of two users at once, each on its own channel, at workers of their own users"""
    with Service({"chinook": CHINOOK}) as service:
        wrong = []
        held = [Channel(service.client((UID_A, UID_B)[n % 2])) for n in range(10)]
        threads = [threading.Thread(target=use, args=(channel, wrong)) for channel in held]
        for thread in threads:
            thread.start()
        seen = {}
        while any(thread.is_alive() for thread in threads):
            for more in channels(service):
                if "worker-pid" in more:
                    seen.setdefault(more["worker-pid"], set()).add(more["uid"])
        equal(wrong, [], "what went wrong")
        true(seen and all(len(uids) == 1 for uids in seen.values()), f"users of each worker: {seen}")
        none_left(service)


@test
def beside_slow_clients():
    """Ten clients on channels, of which one computes and one does not read: eight are answered all the while"""
    with Service({"chinook": CHINOOK}, limits=PATIENT) as service:
        wrong = []
        held = [Channel(service.client()) for _ in range(10)]
        for channel in held:
            channel.ask("SELECT 1")
        scan = held[0].query(SCAN)
        stream = held[1].query(STREAM)
        threads = [threading.Thread(target=use, args=(channel, wrong)) for channel in held[2:]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(wrong, [], "what went wrong")
        wait_for(lambda: service.states() == ["parked", "running"], "the slow ones go on")
        for channel, run in zip(held, (scan, stream)):
            channel.cancel(run)
            expect("Cancelled", channel.read, run)
            channel.close()
        none_left(service)


@test
def idle_worker_gives_way():
    """A worker with nothing under way gives its place to another database of its user, by channel and by bus"""
    names = ("one", "two", "three")
    databases = {name: {"Path": CHINOOK, "Expose": "Artist"} for name in names}  # their channels are no guests
    with Service(databases, limits={"WorkersMax": 1}) as service:
        client = service.client()
        held = {name: Channel(client, name) for name in names}
        for _ in range(3):
            for ask in (lambda name: held[name].ask("SELECT 1"), lambda name: client.query(name, "SELECT 1").read().rows):
                for name in names:
                    equal(ask(name), [[1]], "rows")
                    at_most(len(service.workers()), 1, "workers")


@needs_root
def workers_are_shared_out():
    """At WorkersTotalMax= a worker gives its place to another user, at once (test-places.c) or after its turn"""
    with Service({"chinook": CHINOOK}, limits={"WorkersTotalMax": 1}) as service:
        held = [Channel(service.client(uid)) for uid in (UID_A, UID_B)]
        for _ in range(3):
            for channel in held:
                equal(channel.ask("SELECT 1"), [[1]], "rows")
                at_most(len(service.workers()), 1, "workers")


@needs_root
def what_began_goes_on():
    """A run that began just before its worker was asked for its place continues, however long it lasts"""
    with Service({"chinook": CHINOOK}, limits={"WorkersTotalMax": 1}) as service:
        lasting, other = (Channel(service.client(uid)) for uid in (UID_A, UID_B))
        lasting.ask("SELECT 1")
        time.sleep(1.2)  # a worker has its place for a second
        run = lasting.query(ENDLESS + "x FROM n WHERE x = 1 OR x < 0")
        true(lasting.can_read(), "nothing came")  # it has begun, and brought a row: the service hears of it when it lasts
        (worker,) = service.workers()
        waits = other.query("SELECT 1")
        time.sleep(6)  # longer than a worker has that must go
        equal(service.workers(), [worker], "workers")
        lasting.cancel(run)
        expect("Cancelled", lasting.read, run)
        lasting.close()
        equal(other.read(waits).rows, [[1]], "rows of the call that waited")
        other.close()
        none_left(service)


def queued(service):
    return sum(more["state"] == "queued" for more in channels(service))


@test
def waits_behind_a_scan():
    """A channel that is given back again and again also closes after QueueTimeoutSec=; an answer restarts that time"""
    limits = {"WorkersMax": 1, "QueueTimeoutSec": 100, "WorkerIdleSec": 86400, "RunTimeoutSec": 86400}
    with Clocks() as clocks, Service({"chinook": CHINOOK}, limits=limits, environment=clocks.environment) as service:
        client = service.client()
        scanning, waiting, other = (Channel(client) for _ in range(3))
        for _ in range(2):
            run = scanning.query(SCAN)
            wait_for(lambda: service.states() == ["running"], "the run is under way")
            waiting.query("SELECT 1")
            wait_for(lambda: queued(service) == 1, "it waits")
            clocks.let_pass(service, 70)
            number = other.query("SELECT 2")
            wait_for(lambda: queued(service) == 2, "both wait")
            clocks.let_pass(service, 50)
            true(waiting.is_closed(), "it waits")
            scanning.cancel(run)
            expect("Cancelled", scanning.read, run)
            equal(other.read(number).rows, [[2]], "rows of one that has not waited for so long")
            waiting = Channel(client)


@test
def lying_workers():
    """A worker that sends forbidden messages about channels is killed, and its channels end; the service continues"""
    lies = ("foreign", "pong", "early", "busy", "twice")
    # a database for each, because the warning is limited by uid and database
    databases = {name: CHINOOK for name in ("chinook", *lies)}
    with Service(databases, worker=BUILD_ROOT / "tests/bus/lying-worker") as service:
        client = service.client()
        other = Channel(client)
        for number, lie in enumerate(lies, 1):
            channel = Channel(client, lie, {"memory": False})  # the liar reads the socket
            channel.query(lie)
            wait_for(lambda: service.log_text().count("which is out of turn") == number, f"{lie}: it is told of")
            if lie != "twice":  # what it said first was true: it rests
                true(channel.is_closed(), f"{lie}: the channel is still there")
            channel.close()
            wait_for(lambda: service.counters()["NChannels"] == 1, f"{lie}: the channel is forgotten")
            wait_for(lambda: not service.workers(), f"{lie}: the liar is killed")
        equal([more["state"] for more in channels(service)], ["resting"], "the other channel")
        channel = Channel(client, options={"memory": False})
        channel.query("rested")
        wait_for(lambda: sorted(more["total-runs"] for more in channels(service)) == [0, 7], "its lie counts for itself")
        other.close()
        channel.close()
        none_left(service)


if __name__ == "__main__":
    main()
