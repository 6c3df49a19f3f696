#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker that computes for long continues at a lower priority, so that short queries of others get a CPU. It gets its
priority back after a time without work. tests/unit/test-worker-priority.c has the times, and the workers beside it."""
import contextlib
import os
import time

from channel import Channel
from client import DATABASE, Broken, Failure, object_path
from harness import CHINOOK, UID_A, UID_B, Service, main, needs_root, wait_for
from tap import Skip, equal, true

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


main()
