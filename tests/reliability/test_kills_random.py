#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients are killed at random moments while they call the service over the bus and on channels: nothing of them is left.

Each client is a process of its own (fork server), so that all its descriptors close at one moment. test_kills.py kills
clients at chosen steps.
"""
import multiprocessing
import random
import signal
import sqlite3
import time

from settled import settle, works

from channel import Channel
from client import Client
from harness import CHINOOK, SANITIZED, Service, fds, locks, main, wait_for
from tap import cases, diagnose, equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text to fill the pages' FROM n"
SCAN = ENDLESS + "count(*) FROM n"
DB = "chinook"
PATIENT = ("ParkTimeoutSec", "ParkTimeoutRollbackSec", "PrepareTimeoutSec", "QueueTimeoutSec")
LIVES = {}


def life(function):
    """The life of a client: it calls ready(), goes on, and may return an object to keep open until it is killed."""
    LIVES[function.__name__] = function
    return function


@life
def prepare(client, ready, chance):
    ready()
    while True:
        client.prepare(DB, f"SELECT {chance.random()} FROM Track a, Track b, Track c ORDER BY 1")


@life
def query(client, ready, _):
    ready()
    while True:
        client.query(DB, "SELECT * FROM Track").read()


@life
def unread(client, ready, _):
    ready()
    for _ in range(20):
        client.query(DB, STREAM)


@life
def half_read(client, ready, _):
    run = client.query(DB, STREAM)
    ready()
    while True:
        run.frame()


@life
def scan(client, ready, _):
    client.prepare(DB, SCAN).fetch()
    ready()


@life
def fetch(client, ready, chance):
    statement = client.prepare(DB, "SELECT * FROM Track WHERE TrackId > ?")
    ready()
    while True:
        statement.fetch(chance.randrange(3000)).read()


@life
def rows(client, ready, _):
    run = client.open_rows(DB, STREAM)[0]
    ready()
    while True:
        client.next_rows(DB, run, {"max-bytes": 4096})


@life
def query_rows(client, ready, _):
    ready()
    client.query_rows(DB, SCAN)


@life
def channel_open(client, ready, _):
    ready()
    while True:
        Channel(client).close()


@life
def channel_prepare(client, ready, chance):
    channel = Channel(client)
    ready()
    while True:
        number = channel.prepare(f"SELECT {chance.random()} FROM Track a, Track b ORDER BY 1")
        channel.statement(number)
        channel.finalize(number)


@life
def channel_query(client, ready, _):
    channel = Channel(client)
    ready()
    while True:
        channel.ask("SELECT * FROM Track")


@life
def channel_unread(client, ready, _):
    channel = Channel(client)
    ready()
    channel.query(STREAM)
    return channel


@life
def channel_scan(client, ready, _):
    channel = Channel(client)
    ready()
    channel.query(SCAN)
    return channel


@life
def channel_pipelined(client, ready, _):
    channel = Channel(client)
    ready()
    while True:
        for number in [channel.query("SELECT ?", n) for n in range(100)]:
            channel.read(number)


def live(address, name, ready, seed):
    held = LIVES[name](Client(address), ready.set, random.Random(seed))
    signal.pause()
    return held


def of_run(target):
    kept = ("/memfd:sqlipc-changes", "/memfd:sqlipc-counts")
    return target.startswith(("pipe:", "/memfd:")) and not target.startswith(kept)


def at_rest(service):
    """Kinds of descriptors that the supervisor holds when it has no worker and no client holds anything. The page with the
    change sequences belongs to the service."""
    settle(service, [service.chinook])
    wait_for(lambda: not any(map(of_run, fds(service.pid()).values())), "pipes are closed")
    return sorted(target.split("[")[0] for target in fds(service.pid()).values())


@test
def killed_clients():
    """Clients killed at any moment leave no statement, run, channel, descriptor, worker or read transaction"""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["channel", "client", "harness", "settled", "tap"])
    rounds = 3 if SANITIZED else 10
    seed = random.randrange(2**32)
    diagnose(f"seed {seed}")
    chance = random.Random(seed)
    with Service(limits={"WorkerIdleSec": 1} | dict.fromkeys(PATIENT, 600)) as service:
        service.chinook = service.data / "chinook.sqlite"
        service.chinook.write_bytes(CHINOOK.read_bytes())
        service.database(DB, Path=service.chinook)
        service.driver.manager("Reload")
        service.driver.point()
        before, n_ready = at_rest(service), 0
        enough = rounds * len(LIVES) / 2
        for n_rounds in range(1, 10 * rounds):
            crowd = []
            for name in LIVES:
                ready = context.Event()
                arguments = (service.address, name, ready, chance.randrange(2**32))
                crowd.append((context.Process(target=live, args=arguments, daemon=True), ready))
                crowd[-1][0].start()
            for process, ready in chance.sample(crowd, len(crowd)):
                # Workers that compute have a low priority: on a busy machine a client may wait for the others to be killed.
                n_ready += ready.wait(5)
                time.sleep(chance.choice((0, 0.002, 0.01, 0.05)))
                process.kill()
                process.join()
            wait_for(lambda: service.is_idle() and not locks(service.chinook), "nothing of the clients is left")
            works(service)
            if n_rounds >= rounds and n_ready > enough:
                break
        true(n_ready > enough, f"{n_ready} clients came up")
        equal(at_rest(service), before, "descriptors of the supervisor")
        with sqlite3.connect(service.chinook, timeout=0) as db:
            db.execute("CREATE TABLE free(to_write)")
        db.close()
    cases("kill", n_rounds * len(LIVES), "a client that is killed at a random moment")


if __name__ == "__main__":
    main()
