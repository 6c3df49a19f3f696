#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Five hundred clients of one database of a PostgreSQL server, which has ten connections for them."""
import resource

from channel import Channel
from engine_unit import ENGINE, EngineUnit
from harness import Service, main
from postgres import for_tests
from tap import equal, test, true

N = 500
CONNECTIONS = 10
SQL = "SELECT id, name FROM track WHERE id = ?1"

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
server = for_tests()
unit = EngineUnit(program=ENGINE)
service = Service(
    limits={"QueueTimeoutSec": 600, "PrepareTimeoutSec": 600},
    environment=unit.environment,
    bus_limits={"max_connections_per_user": 4 * N, "max_completed_connections": 4 * N},
)
service.database("crowd", Engine="postgresql", Connection=server.connection("postgres"), ConnectionsMax=str(CONNECTIONS))
service.driver.manager("Reload")
server.sql("CREATE TABLE track (id bigint PRIMARY KEY, name text);"
           "INSERT INTO track SELECT i, 'track ' || i FROM generate_series(0, 9999) AS i")


def row(i):
    return [[i, f"track {i}".encode()]]


def rows(run):
    return [[row[0], bytes(row[1])] for row in run.rows]


def check_connections():
    n = len(server.clients())
    true(n <= CONNECTIONS, f"{n} connections to the server")


@test
def test_channels():
    """all clients ask at the same time, each on a channel, and get their own rows"""
    channels = [Channel(service.client(), "crowd") for _ in range(N)]
    numbers = [channel.prepare(SQL) for channel in channels]
    for turn in range(4):
        runs = [channel.fetch(number, i + N * turn) for i, (channel, number) in enumerate(zip(channels, numbers))]
        check_connections()
        for i, (channel, number, run) in enumerate(zip(channels, numbers, runs)):
            if turn == 0:
                channel.statement(number)
            equal(rows(channel.read(run)), row(i + N * turn))
    check_connections()
    for channel in channels:
        channel.close()


@test
def test_one_fails():
    """a request that fails is no failure of those beside it"""
    channels = [Channel(service.client(), "crowd") for _ in range(8)]
    numbers = [channel.prepare("SELECT id, name FROM track WHERE id = 10 / ?1") for channel in channels]
    for turn in range(20):
        divisors = [0 if i == turn % 8 else 1 + i for i in range(8)]
        runs = [channel.fetch(number, divisor) for channel, number, divisor in zip(channels, numbers, divisors)]
        for channel, number, run, divisor in zip(channels, numbers, runs, divisors):
            if turn == 0:
                channel.statement(number)
            if divisor == 0:
                try:
                    channel.read(run)
                except Exception as failure:  # noqa: BLE001 -- whatever it is, the others have their rows
                    true("division by zero" in str(failure), f"the failure is its own: {failure}")
                else:
                    true(False, "a division by zero fails")
            else:
                equal(rows(channel.read(run)), row(10 // divisor))
    for channel in channels:
        channel.close()


@test
def test_pipes():
    """all clients ask at the same time by the bus"""
    clients = [service.client() for _ in range(N)]
    calls = [client.query("crowd", SQL, (i,)) for i, client in enumerate(clients)]
    check_connections()
    for i, run in enumerate(calls):
        equal(rows(run.read()), row(i))
    check_connections()


@test
def test_end():
    """nothing is left"""
    service.close()
    unit.close()
    server.close()


main()
