#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker that computes for long continues at a lower priority, so that short queries of others get a CPU. It gets its
priority back after a time without work."""
import contextlib
import os
import signal
import subprocess
import time

from channel import Channel
from client import DATABASE, Broken, Failure, object_path
from harness import CHINOOK, UID_A, UID_B, Service, main, needs_root, wait_for
from tap import Skip, equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
OURS = os.getpriority(os.PRIO_PROCESS, 0)
LOWER = min(OURS + 10, 19)
# One for each user: where starts are slow, which at a low priority they are, a second one would start.
LIMITS = {"WorkerIdleSec": 600, "WorkersMax": 1}


def priority(pid):
    """None: it has just ended."""
    with contextlib.suppress(ProcessLookupError):
        return os.getpriority(os.PRIO_PROCESS, pid)


def lowered(service):
    return [pid for pid in service.workers() if priority(pid) == LOWER]


@contextlib.contextmanager
def computing(service, client):
    """An endless query in another call of that client, until its worker has a lower priority; then it is cancelled."""
    if LOWER == OURS:
        raise Skip("there is no lower priority")
    ask = Channel(client)
    ask.query(ENDLESS)
    wait_for(lambda: lowered(service), "the worker has a lower priority")
    yield
    for number, *_ in service.driver.manager("ListRuns")[0]:
        service.driver.manager("CancelRun", "(ta{sv})", number)
    with contextlib.suppress(Broken, Failure):
        ask.frame()
    ask.close()


@needs_root
def lowered_and_back():
    """Half a second of computing lowers the priority, a second of rest restores it; other workers keep theirs"""
    with Service({"chinook": CHINOOK}, limits=LIMITS) as service:
        heavy, light = service.client(UID_A), service.client(UID_B)
        light.point()
        (beside,) = service.workers()
        with computing(service, heavy):
            (pid,) = lowered(service)
            light.point()
            equal(priority(beside), OURS, "the priority of another user's worker")
            true(pid != beside, "users share a worker")
        wait_for(lambda: not lowered(service), "the priority is back")
        true({pid, beside} <= set(service.workers()), "a worker ended")
        heavy.point()


def born_lower():
    """True if it could be seen: after a kill all have the lower priority for as long as a rest takes."""
    with Service({"chinook": CHINOOK, "other": CHINOOK}, limits={"WorkerIdleSec": 600}) as service:
        heavy, light = service.client(UID_A), service.client(UID_B)
        light.point()
        beside = service.workers()
        with computing(service, heavy):
            (pid,) = lowered(service)
            heavy.point("other")
            true(len(lowered(service)) >= 2, "the other worker has another priority")  # or two, after a slow start
            killed = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: pid not in service.workers(), "the worker is gone")
            heavy.point()
            seen = {worker: priority(worker) for worker in service.workers()}
            if time.monotonic() > killed + 0.9:
                return False
            equal({seen.pop(worker) for worker in beside}, {OURS}, "the priority of another user's worker")
            equal((len(seen) >= 2, set(seen.values())), (True, {LOWER}), f"priorities of workers: {seen}")
        wait_for(lambda: not lowered(service), "priorities are back")
        true(seen.keys() <= set(service.workers()), "a worker ended")
        return True


@needs_root
def inherited():
    """Workers that a user starts while one computes, or after it was killed for that, have the lower priority, too"""
    wait_for(born_lower, "a worker is started in less time than a rest takes")


@needs_root
def starved():
    """A worker that gets hardly any CPU does not count as resting: its priority stays lower"""
    with Service({"chinook": CHINOOK}, limits={"WorkerIdleSec": 600}) as service, contextlib.ExitStack() as stack:
        with computing(service, service.client(UID_A)):
            (pid,) = lowered(service)
            for _ in range(4 * len(os.sched_getaffinity(0))):
                other = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
                stack.callback(other.wait)
                stack.callback(other.kill)
            end = time.monotonic() + 2.5  # more than a rest takes
            while time.monotonic() < end:
                equal(priority(pid), LOWER, "the priority")
                time.sleep(0.05)
            stack.close()


@needs_root
def told_to_end():
    """The lower priority also holds if a worker was asked for its place before its computation was known"""
    with Service({"chinook": CHINOOK}, limits={"WorkersTotalMax": 1, "QueueTimeoutSec": 600}) as service:
        heavy, light = Channel(service.client(UID_A)), service.client(UID_B)
        heavy.ask("SELECT 1")
        time.sleep(1.1)  # its turn, for which it need not make room
        heavy.ask("SELECT 1")  # this is told, and so the next is not for half a second
        heavy.query(f"SELECT 1 UNION ALL SELECT * FROM ({ENDLESS})")
        heavy.frame()
        call = light.begin(object_path("chinook"), DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT 1", [], {}, {})
        wait_for(lambda: lowered(service), "the worker has a lower priority")
        heavy.close()
        equal(call.result()[1].unpack(), [[1]], "rows")


@test
def short_queries():
    """Short queries with pauses between do not lower the priority"""
    with Service({"chinook": CHINOOK}, limits=LIMITS) as service:
        client = service.client()
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            client.point()
            equal([priority(pid) for pid in service.workers()], [OURS], "priorities of workers")
            time.sleep(0.02)


@needs_root
def where_it_cannot_come_back():
    """If the priority cannot be restored, as in a user's own service, a resting worker ends; its channels continue"""
    with Service({"chinook": CHINOOK}, limits=LIMITS, uid=UID_A) as service:
        client = service.client(UID_A)
        channel = Channel(client)
        statement = channel.prepare("SELECT ? + 1")
        channel.statement(statement)
        with computing(service, client):
            (pid,) = lowered(service)
        wait_for(lambda: pid not in service.workers(), "the worker ends")
        equal(channel.read(channel.fetch(statement, 41)).rows, [[42]], "rows")
        equal([priority(worker) for worker in service.workers()], [OURS], "priorities of workers")
        channel.close()


@needs_root
def kept_while_others_compute():
    """A resting worker keeps the lower priority, and does not end for it, while another one of its user computes"""
    limits = LIMITS | {"WorkersMax": 2}
    with Service({"chinook": CHINOOK, "other": CHINOOK}, limits=limits, uid=UID_A) as service:
        client = service.client(UID_A)
        with computing(service, client):
            client.point("other")
            workers, end = service.workers(), time.monotonic() + 2.5  # more than a rest takes
            while time.monotonic() < end:
                equal([(pid, priority(pid)) for pid in service.workers()], [(pid, LOWER) for pid in workers], "workers")
                time.sleep(0.05)
        wait_for(lambda: not lowered(service), "both end")


main()
