#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many databases over one connection: they share workers, channels stay open, and isolation and limits stay as they are."""
import contextlib
import os
import random
import signal
import sqlite3

from channel import Channel
from client import Broken
from harness import UID_A, UID_B, Service, expect, main, needs_root, wait_for
from library import Library
from overheard import Overheard
from tap import at_most, equal, test, true

N = 40


def make(service, n=N, **keys):
    for i in range(n):
        with contextlib.closing(sqlite3.connect(service.data / f"{i}.sqlite")) as db:
            db.execute("CREATE TABLE t AS SELECT ? AS me", (i,))
            db.commit()
        service.database(f"d{i}", Path=service.data / f"{i}.sqlite", **keys)
    service.start()


def channels(service):
    return [more for _, _, _, more in service.driver.manager("ListChannels")[0]]


def pids(service):
    return {more.get("worker-pid") for more in channels(service)}


def calls(overheard):
    return [member for member in overheard.members if member != "GetAll"]


def ask(library, i):
    library.ok(f"query d{i} SELECT me FROM t")
    equal(library.ask("rows 0"), ([[i]], "end 1"), f"rows of d{i}")


@test
def counts():
    """Queries to 40 databases at random start no worker, open no channel and make no call, after the first to each"""
    with Service(start=False) as service:
        make(service)
        overheard = Overheard(service.address)
        # A library that chooses by itself takes the bus when a query was slow, which a busy machine makes of any.
        with Library(service, "channel") as library:
            for i in range(N):
                ask(library, i)
            at_most(service.counters()["NChannels"], N, "channels")
            true(service.counters()["NChannels"] >= N - 1, "each database has a channel")
            # Databases share them: one for each processor, and one more each time that a request waited for 20 ms.
            at_most(len(service.workers()), N // 4, "workers")
            wait_for(lambda: len(calls(overheard)) >= N, "the calls are overheard")
            equal(calls(overheard), N * ["OpenChannel"], "calls")
            workers = service.workers()
            overheard.members.clear()
            for i in random.Random(1).choices(range(N), k=400):
                ask(library, i)
            equal(service.workers(), workers, "workers")
            equal(calls(overheard), [], "calls")
        overheard.close()
        wait_for(lambda: service.counters()["NChannels"] == 0, "channels that closed are forgotten")


@test
def at_once():
    """Requests that wait at the same time on channels to many databases each read their own, within and beside rounds"""
    with Service(start=False) as service:
        make(service, 8)
        held = [Channel(service.client(), f"d{i % 8}") for i in range(24)]
        for _ in range(20):
            numbers = [[channel.query("SELECT me FROM t") for _ in range(3)] for channel in held]
            for i, channel in enumerate(held):
                for number in numbers[i]:
                    equal(channel.read(number).rows, [[i % 8]], "rows")


@test
def limit():
    """A connection leaves channels under ChannelsMax= to others of its user, and is not refused one"""
    with Service(start=False, limits={"ChannelsMax": 8}) as service:
        make(service)
        with Library(service, "channel") as library, Library(service, "channel") as other:
            for i in random.Random(1).choices(range(N), k=100):
                ask(library, i)
                ask(other, N - 1 - i)
                at_most(service.counters()["NChannels"], 8, "channels")


@test
def lost():
    """If the worker of many channels dies, each next query succeeds"""
    with Service(start=False) as service:
        make(service)
        with Library(service) as library:
            for i in range(N):
                ask(library, i)
            for pid in service.workers():
                os.kill(pid, signal.SIGKILL)
            for i in range(N):
                ask(library, i)


@test
def withdrawn():
    """A reload that withdraws the database of a worker, or of its guest, ends only that database's channels"""
    with Service(start=False) as service:
        make(service)
        client = service.client()
        held = [Channel(client, f"d{i}") for i in range(N)]
        for i, channel in enumerate(held):
            equal(channel.read(channel.query("SELECT me FROM t")).rows, [[i]], "rows")
        for i in (0, N - 1):
            (service.config_dir / "databases.d" / f"d{i}.conf").unlink()
        service.driver.manager("Reload")
        for i in (0, N - 1):
            try:
                held[i].read(held[i].query("SELECT me FROM t"))
                true(False, "the database was withdrawn")
            except Broken:
                pass
        for i in range(1, N - 1):
            equal(held[i].read(held[i].query("SELECT me FROM t")).rows, [[i]], "rows")
        equal(len(channels(service)), N - 2, "channels")


@test
def new_limits():
    """A guest whose limits a reload changes continues with the new limits, in a worker that has them"""
    with Service(start=False) as service:
        make(service)
        client = service.client()
        held = [Channel(client, f"d{i}") for i in range(N)]
        for i, channel in enumerate(held):
            equal(channel.read(channel.query("SELECT me FROM t")).rows, [[i]], "rows")
        service.limits(VariablesMax=1)
        service.driver.manager("Reload")
        for channel in held:
            expect("LimitsExceeded", channel.read, channel.query("SELECT ?5"))


@test
def kept_apart():
    """Databases with Expose=, for writing, or with other limits share no worker with others"""
    with Service(start=False) as service:
        make(service, 8)
        for i, more in ((1, "Expose=t"), (3, "Mode=read-write"), (5, "[Limits]\nHeapMax=32M")):
            service.database(f"d{i}", f"[Database]\nPath={service.data}/{i}.sqlite\nAllowUsers=*\n{more}\n")
        service.driver.manager("Reload")
        client = service.client()
        held = [Channel(client, f"d{i}") for i in range(8)]
        of_database = {}
        for i, channel in enumerate(held):
            equal(channel.read(channel.query("SELECT me FROM t")).rows, [[i]], "rows")
        for _, path, _, more in service.driver.manager("ListChannels")[0]:
            of_database[path.rsplit("/", 1)[-1]] = more.get("worker-pid")
        for i in (1, 3, 5):
            mine = of_database[f"d{i}"]
            others = [pid for name, pid in of_database.items() if name != f"d{i}"]
            true(mine is None or mine not in others, f"d{i}: {of_database}")


@test
@needs_root
def users():
    """Each user has workers of its own, whatever databases they share"""
    with Service(start=False) as service:
        make(service)
        found = []
        held = []
        for uid in (UID_A, UID_B):
            client = service.client(uid)
            mine = [Channel(client, f"d{i}") for i in range(N)]
            before = {more["worker-pid"] for more in channels(service) if "worker-pid" in more}
            for i, channel in enumerate(mine):
                equal(channel.read(channel.query("SELECT me FROM t")).rows, [[i]], "rows")
            found.append({pid for pid in pids(service) if pid} - before)
            held += mine
        true(found[0] and found[1] and not found[0] & found[1], f"workers of the two users: {found}")


main()
