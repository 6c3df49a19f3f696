#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that only send point queries while another client attacks. Each is a process of its own. It sends one query after
the other (over a pipe, as D-Bus values, on a channel; for comparison, a call to the bus itself), and reports how long each
answer took, and the failures.

    with Neighbours(service, UID_B) as neighbours:
        while neighbours.answered() < 50:         # answers of each way to each neighbour: an attack goes on until then
            attack()
        neighbours.check()                        # nothing failed

As a program it is one neighbour: neighbours.py ADDRESS UID PAUSE. It answers each line "count" or "take" with a line
of JSON.
"""
import functools
import json
import os
import select
import subprocess
import sys
import time

import settled  # finds tests/bus
from channel import Channel
from client import Client
from harness import PATIENCE, wait_for
from tap import equal, test, true

WAYS = ("pipe", "values", "channel", "bus")
PAUSE = 0.002
# Beside an attack that decides how long it lasts, where more queries cost time and show no more.
SELDOM = 0.01


class Neighbours:
    """Processes that ask; `uids`: one each, None is who runs the test; `pause`: seconds between queries."""

    def __init__(self, service, *uids, pause=PAUSE):
        command = [sys.executable, __file__, service.address]
        self.processes = [
            subprocess.Popen(
                [*command, str(uid or ""), str(pause)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for uid in uids
        ]

    def __enter__(self):
        end = time.monotonic() + PATIENCE
        while self.answered() < 1:
            true(time.monotonic() < end, "no neighbour is answered")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.stdin.close()
            process.stdout.close()
            process.wait(PATIENCE)

    def ask(self, line):
        for process in self.processes:
            process.stdin.write(line + "\n")
            process.stdin.flush()
        return [json.loads(process.stdout.readline()) for process in self.processes]

    def answered(self):
        """Answers that each of them has had each way since the last take(); the fewest."""
        return min(count for counts in self.ask("count") for count in counts.values())

    def take(self):
        """Per neighbour: seconds of each answer, by way, since the last take(); nothing may have failed."""
        taken = self.ask("take")
        for number, what in enumerate(taken):
            equal(what["failed"], [], f"what failed for neighbour {number}")
        return [what["seconds"] for what in taken]

    check = take

    @staticmethod
    def rest():
        """The latency without an attack."""
        time.sleep(0.02)


def besieged(service, *uids):
    """A test that attacks `service`: neighbours of `uids` are answered meanwhile, and afterwards it is as before."""

    def decorate(function):
        @functools.wraps(function)
        def wrapped():
            settled.works(service)
            before = settled.settle(service)
            try:
                with Neighbours(service, *(uids if os.geteuid() == 0 else (None,)), pause=SELDOM) as neighbours:
                    neighbours.take()
                    function()
                    wait_for(lambda: neighbours.answered() >= 3, "neighbours are answered")
                    neighbours.check()
            finally:
                service.forget()
            settled.as_before(service, before)

        return test(wrapped)

    return decorate


class Neighbour:
    def __init__(self, address, uid, pause):
        self.client, self.pause = Client(address, uid), pause
        self.channel = Channel(self.client)
        self.forget()

    def forget(self):
        self.seconds, self.failed = {way: [] for way in WAYS}, []

    def rows(self, way):
        if way == "pipe":
            return self.client.query("chinook", settled.POINT).read().rows
        if way == "values":
            return self.client.query_rows("chinook", settled.POINT)[1]
        if way == "channel":
            return self.channel.ask(settled.POINT)
        has_owner = self.client.bus_call("NameHasOwner", "(s)", "org.sqlipc1")
        return settled.ANSWER if list(has_owner) == [True] else has_owner

    def query(self, way):
        start = time.monotonic()
        try:
            rows = self.rows(way)
            if rows != settled.ANSWER:
                self.failed.append(f"{way}: {rows}")
        except Exception as problem:  # noqa: BLE001 - whatever it was, it is told
            self.failed.append(f"{way}: {type(problem).__name__}: {problem}")
        self.seconds[way].append(time.monotonic() - start)

    def tell(self, line):
        if line == "count":
            return {way: len(seconds) for way, seconds in self.seconds.items()}
        taken = {"seconds": self.seconds, "failed": self.failed[:10]}
        self.forget()
        return taken

    def live(self):
        while True:
            for way in WAYS:
                self.query(way)
                time.sleep(self.pause)
            if select.select([sys.stdin], [], [], 0)[0]:
                line = sys.stdin.readline()
                if not line:
                    return
                print(json.dumps(self.tell(line.strip())), flush=True)


if __name__ == "__main__":
    Neighbour(sys.argv[1], int(sys.argv[2]) if sys.argv[2] else None, float(sys.argv[3])).live()
