# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of test_faults.py: channels.
"""
import contextlib
import select
import time

from fault_stage import ENDLESS, SCAN, SEVEN, TRACKS, VALUES, is_quiet, refused, scenario, tracks

from channel import Channel
from client import Broken, Text
from harness import wait_for
from tap import equal


@scenario
def channel(stage, client):
    """Requests of each kind on a channel"""
    with contextlib.closing(Channel(client)) as c:
        statement = c.prepare(SEVEN)
        equal(len(c.statement(statement).columns), 7, "columns")
        for _ in range(2):
            equal(c.read(c.fetch(statement, *VALUES)).rows, [VALUES], "rows")
        c.finalize(statement)
        refused(lambda: c.read(c.fetch(statement, *VALUES)))
        equal(c.ask("SELECT :x", named={":x": 5}), [[5]], "rows")
        refused(lambda: c.ask("SELECT * FROM nowhere"))
        equal(c.ask("SELECT zeroblob(100000)"), [[bytes(100000)]], "rows")
        equal(c.ask("SELECT length(?)", bytes(300000)), [[300000]], "rows")
        equal(c.ask(TRACKS), tracks(), "rows")


def at_worker(client):
    """False also if the channel was closed."""
    return any("worker-pid" in more for _, _, _, more in client.manager("ListChannels")[0])


@scenario
def channel_in_memory(stage, client):
    """Requests of each size on a channel with memory, and an answer that its reader leaves to the supervisor"""
    with contextlib.closing(Channel(client, options={"memory": True})) as c:
        statement = c.prepare(SEVEN)
        equal(len(c.statement(statement).columns), 7, "columns")
        equal(c.read(c.fetch(statement, *VALUES)).rows, [VALUES], "rows")
        equal(c.ask("SELECT length(?)", bytes(300000)), [[300000]], "rows")
        equal(c.ask(TRACKS), tracks(), "rows")
        run = c.query(ENDLESS)
        # The channel ends instead if it moves, on a busy machine, and the other worker fails.
        is_over = lambda: c.memory.fill() == 65536 or c.memory.empty_socket() or c.memory.at_end  # noqa: E731
        wait_for(lambda: c.memory is None or is_over(), "the memory is full")
        c.cancel(run)
        wait_for(lambda: c.memory is None or not at_worker(client), "its worker gives the channel back")
        refused(c.read, run)
        equal(c.ask("SELECT 5"), [[5]], "rows")


@scenario
def channel_pipelined(stage, client):
    """Many requests at once, some cancelled, of which none is answered out of turn"""
    with contextlib.closing(Channel(client)) as c:
        statements = [c.prepare(f"SELECT {i}, ?") for i in range(8)]
        runs = [c.fetch(statement, i) for i, statement in enumerate(statements)]
        endless = c.query(ENDLESS)
        c.cancel(endless)
        last = c.query("SELECT 'last'")
        for statement in statements:
            c.statement(statement)
        for i, run in enumerate(runs):
            equal(c.read(run).rows, [[i, i]], "rows")
        refused(c.read, endless)
        equal(c.read(last).rows, [[Text(b"last")]], "rows")


@scenario
def channels_that_move(stage, client):
    """Channels whose worker computes for another one: another worker serves them"""
    channels = [Channel(client) for _ in range(4)]
    statements = [c.prepare("SELECT ? + 1") for c in channels]
    for c, statement in zip(channels, statements):
        c.statement(statement)
    computing = [c.query(SCAN) for c in channels[:2]]
    time.sleep(0.02)
    for c, statement in zip(channels[2:], statements[2:]):
        equal(c.read(c.fetch(statement, 1)).rows, [[2]], "rows")
    for c, run in zip(channels, computing):
        c.cancel(run)
        refused(c.read, run)
    for c in channels:
        c.close()


def total_runs(client):
    channels = client.manager("ListChannels")[0]
    if not channels:
        raise Broken("the channel was closed")
    return channels[0][3]["total-runs"]


def is_over(channel):
    """True if end-of-file is there, after all answers were read."""
    return bool(select.select([channel.socket], [], [], 0)[0])


@scenario
def channel_for_a_while(stage, client):
    """A channel that is quiet for so long that its worker says what it did, and works again"""
    with contextlib.closing(Channel(client)) as c:
        for i in range(3):
            equal(c.ask(f"SELECT {i}"), [[i]], "rows")
        # a worker that ends because it could not tell them takes the channel along
        wait_for(lambda: total_runs(client) == 3 or is_over(c), "its runs are counted, or it is over")
        equal(c.ask("SELECT 2"), [[2]], "rows")


@scenario
def channels_of_two_databases(stage, client):
    """Channels on an exposed database and on one in WAL mode, one with a time limit"""
    with contextlib.closing(Channel(client, "hidden")) as one, contextlib.closing(Channel(client, "wal")) as two:
        equal(one.ask("SELECT count(*) FROM book"), [[2]], "rows")
        equal(two.ask("SELECT count(*) FROM author"), [[3]], "rows")
        refused(lambda: two.read(two.query(SCAN, timeout_usec=30000)))


@scenario
def guest(stage, client):
    """A channel on a third database when each CPU has a worker, one of which serves it, too"""
    with contextlib.closing(Channel(client, "hidden")) as one, contextlib.closing(Channel(client, "wal")) as two:
        equal(one.ask("SELECT count(*) FROM book"), [[2]], "rows")
        equal(two.ask("SELECT count(*) FROM author"), [[3]], "rows")
        with contextlib.closing(Channel(client)) as c:
            equal(c.ask(TRACKS), tracks(), "rows")


@scenario
def channel_nonsense(stage, client):
    """A channel on which nonsense comes: it is closed"""
    with contextlib.closing(Channel(client)) as c:
        c.send(b"\xff" * 64)
        with contextlib.suppress(Broken):
            while True:
                c.frame()
    is_quiet(stage)


@scenario
def channel_reader_stops(stage, client):
    """A channel whose client stops reading, and then goes on"""
    with contextlib.closing(Channel(client)) as c:
        runs = [c.query(TRACKS) for _ in range(8)]
        time.sleep(0.03)  # so that its worker parks it, on which the result does not depend
        for run in runs:
            equal(c.read(run).rows, tracks(), "rows")


@scenario
def channel_quota(stage, client):
    """More channels than one may have"""
    channels = [Channel(client) for _ in range(4)]
    refused(Channel, client)
    for c in channels:
        c.close()
