#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""From the start to the prompt: the number of calls over the bus, and the time, which is only printed."""
import statistics
import time

from pty_shell import Shell  # finds what follows

from harness import CHINOOK, Service, main
from overheard import Overheard
from tap import at_most, diagnose, equal, test

N_STARTS = 21
CALLS_MAX = 3

service = Service({"chinook": CHINOOK})


@test
def calls():
    """Before the prompt the shell calls the service at most three times, and never without a database"""
    with Shell("chinook", on=service):
        pass
    for arguments, most in ((["chinook"], CALLS_MAX), ([], 0)):
        overheard = Overheard(service.address)
        with Shell(*arguments, on=service):
            diagnose(f"{arguments}: {overheard.members}")
            at_most(len(overheard.members), most, f"calls: {overheard.members}")
        overheard.close()


@test
def duration():
    """Time until the prompt, with a running daemon; the aim is 30 ms"""
    times = []
    for _ in range(N_STARTS):
        start = time.perf_counter()
        with Shell("chinook", on=service, environment={"NO_COLOR": "1"}) as shell:
            times.append((time.perf_counter() - start) * 1000)
            equal(shell.at_prompt(), True, "at the prompt")
    diagnose(f"start to prompt: median {statistics.median(times):.1f} ms, {min(times):.1f} ... {max(times):.1f}")


main(service)
