#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attacks that last, with other clients beside them: all of the others' queries are answered, and afterwards the service is
as before.

    test_hostile.py                         runs each attack until the neighbours have their answers; counters decide
    test_hostile.py --latency [ATTACK]...   prints a table of the neighbours' waiting times: in quiet, under attack, and
                                            beside as many processes that only compute, in turns. "bus" calls only the bus.
                    --answers N             answers of each way and neighbour in a turn, --turns N of these
"""
import argparse
import contextlib
import itertools
import os
import pathlib
import subprocess
import sys
import time

import settled
from harness import CHINOOK, SANITIZED, UID_A, UID_B, Service, main
from hostile_attacks import ATTACKS
from neighbours import WAYS, Neighbours
from sizes import size
from tap import at_most, cases, diagnose, test

ANSWERS = size("answers of hostile")
# The CPU time that a message of an attacker may cost the supervisor: ten times the usual.
CPU_USEC_MAX = 20000 if SANITIZED else 2000
ROOT = os.geteuid() == 0
LASTING = 1.5
LIMITS = {**settled.QUICK, "SQLSizeMax": 1000000, "TempSizeMax": "64M", "PrepareTimeoutSec": 1, "ParkTimeoutSec": 2,
          "ParkTimeoutRollbackSec": 2, "QueueTimeoutSec": 120}  # fmt: skip


def cpu_usec(pid):
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) // 1000


def new_service():
    return Service({"chinook": CHINOOK}, limits=LIMITS, bus_limits={"max_incoming_unix_fds": 250000000})


def neighbours_of(service, attack):
    """Another user and, if that is promised, another program of the attacker's user."""
    if not ROOT:
        return Neighbours(service, None)
    return Neighbours(service, UID_B, UID_A) if attack.same_uid else Neighbours(service, UID_B)


def besiege(service, attack):
    """The attack until each neighbour was answered ANSWERS times each way, and the attacker once."""
    with neighbours_of(service, attack) as neighbours:
        before = cpu_usec(service.pid())
        neighbours.take()
        with attack.begin(service) as step:
            sent = step()
            while neighbours.answered() < ANSWERS or sent == 0:
                sent += step()
        neighbours.check()
        return sent, cpu_usec(service.pid()) - before


def lasting(name, attack):
    def one():
        with new_service() as service:
            settled.works(service)
            before = settled.settle(service)
            sent, usec = besiege(service, attack)
            cases("hostile lasting", sent, "a message or statement of an attacker, while others ask: all answered")
            each = usec / max(sent, 1)
            diagnose(f"{sent} sent, {each:.0f} us of the supervisor's time each, with the neighbours' queries")
            if sent >= 1000:  # else the neighbours' own are most of it
                at_most(usec // sent, CPU_USEC_MAX, "us of the supervisor's time for each")
            settled.as_before(service, before)

    one.__name__, one.__doc__ = name.replace(" ", "_"), f"{attack.what[0].upper()}{attack.what[1:]}: others are answered"
    test(one)


# ---- latency ----


def percentile(seconds, percent):
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] * 1e6


def turn(neighbours, answers, step):
    """One turn's times by way, of all neighbours."""
    neighbours.take()
    while neighbours.answered() < answers:
        step()
    taken = neighbours.take()
    return {way: list(itertools.chain(*(one[way] for one in taken))) for way in WAYS}


@contextlib.contextmanager
def computing(n):
    """`n` processes of the attacker's user that only compute."""
    who = {"user": UID_A} if ROOT else {}
    processes = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], **who) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def lasts(step):
    """Until those of the attack that compute for long have a lower priority (worker-priority.h)."""
    end = time.monotonic() + LASTING
    while time.monotonic() < end:
        step()


def measure(attack, answers, turns):
    """Seconds by way: (quiet, under attack, beside as many processes that compute as the attack had, with its workers)."""
    all_of_it = tuple({way: [] for way in WAYS} for _ in range(3))

    def add(seconds, times):
        for way in WAYS:
            all_of_it[seconds][way].extend(times[way])

    with new_service() as service, neighbours_of(service, attack) as neighbours:
        for _ in range(turns):
            add(0, turn(neighbours, answers, neighbours.rest))
            quiet = len(service.workers())
            with attack.begin(service) as step:
                lasts(step)
                add(1, turn(neighbours, answers, step))
                attackers = max(1, 1 + len(service.workers()) - quiet)
            with computing(attackers):
                add(2, turn(neighbours, answers, neighbours.rest))
    return all_of_it


def latency(arguments):
    print(f"load average: {os.getloadavg()[0]:.0f}")
    print(f"| {'Attack':18} | {'Way':8} | p50 quiet | attacked | p99 quiet | attacked | p99 ratio | CPU alone |")
    print(f"| {'-' * 18} | {'-' * 8} | --------: | -------: | --------: | -------: | --------: | --------: |")
    for name in arguments.attacks or ATTACKS:
        quiet, hot, busy = measure(ATTACKS[name], arguments.answers, arguments.turns)
        for way in WAYS:
            figures = [percentile(times[way], percent) for percent in (50, 99) for times in (quiet, hot)]
            ratio, control = figures[3] / figures[2], percentile(busy[way], 99) / figures[2]
            print(
                f"| {name:18} | {way:8} | {figures[0]:6.0f} us | {figures[1]:5.0f} us | {figures[2]:6.0f} us "
                f"| {figures[3]:5.0f} us | {ratio:9.1f} | {control:9.1f} |",
                flush=True,
            )


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", action="store_true")
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK")
    return parser.parse_args()


if __name__ == "__main__":
    if "--latency" in sys.argv:
        latency(arguments())
    else:
        for each in ATTACKS.items():
            lasting(*each)
        main()
