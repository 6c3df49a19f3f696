#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clocks jump at every step of the protocol (steps.py), as supervisor and workers see them (clocks.py).

CLOCK_REALTIME goes forward and back by hours and years: this has no effect. CLOCK_MONOTONIC goes forward by an hour: a
client with a deadline within that hour may get a named error, every other client is served, no process is killed for
silence, and nothing hangs. The machine's own clocks are never changed. The test covers a jump of both clocks while the
kernel's timers go on. The kernel itself ensures that those timers do not advance during a suspend (CLOCK_MONOTONIC).
"""
import contextlib

from settled import as_before, settle, works

from clocks import Clocks
from harness import main
from steps import STEPS, Scene, make_service, outcome, wanted
from tap import cases, diagnose, equal, test, true

HOUR, YEAR = 3600, 31557600
JUMPS = (HOUR, -HOUR, 20 * YEAR, -20 * YEAR)
NAMES = [name for name in STEPS if not name.endswith("computes")]
OURS = "org.sqlipc1.Error."
# Errors of work that a jump by an hour may have ended.
LATE = ("TimedOut", "ReaderTooSlow", "Busy", "WorkerLost", "UnknownStatement", "Cancelled")
OVERDUE = {OURS + name for name in LATE} | {"broken"}


@contextlib.contextmanager
def moving():
    """A service with clocks of its own."""
    with Clocks() as clocks, make_service(limits={"WorkersMax": 4}, environment=clocks.environment) as service:
        yield service, clocks


def begin_all(service):
    return [(name, STEPS[name].begin(Scene(service.client(), service.pid()))) for name in NAMES]


def at_end(service, before):
    true(" is killed" not in service.log_text(), f"a worker was killed: {service.log_text()}")
    service.forget()
    as_before(service, before, [service.chinook])


@test
def wall_clock():
    """CLOCK_REALTIME jumps forward and back by hours and years: no client notices"""
    with moving() as (service, clocks):
        before = settle(service, [service.chinook])
        for seconds in JUMPS:
            steps = begin_all(service)
            clocks.move(realtime=seconds)
            works(service)
            for name, finish in steps:
                equal(outcome(finish), wanted(name), f"CLOCK_REALTIME moved by {seconds} s at step {name!r}")
            at_end(service, before)
    cases("clock", len(JUMPS) * len(NAMES), "a step of a client's, and a jump of the wall clock")


@test
def an_hour_is_over():
    """CLOCK_MONOTONIC jumps forward by an hour: deadlines end with their errors, nothing is killed, new work is served"""
    with moving() as (service, clocks):
        before = settle(service, [service.chinook])
        steps = begin_all(service)
        clocks.move(realtime=HOUR, monotonic=HOUR)
        works(service)
        overdue = 0
        for name, finish in steps:
            result = outcome(finish)
            true(result == wanted(name) or result in OVERDUE, f"step {name!r}, an hour later: {result}")
            overdue += result != wanted(name)
        true(overdue, "no deadline was met: the clock did not move")
        diagnose(f"overdue: {overdue} of {len(steps)}")
        at_end(service, before)
    cases("clock", len(NAMES), "a step of a client's, and an hour that is over at once")


if __name__ == "__main__":
    main()
