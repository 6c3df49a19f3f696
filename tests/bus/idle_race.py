# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that call at the moment when an idle service exits: no call may be lost.

All clients start each round together, about IdleExitSec= after the last round. So calls arrive at every step of an exit:
before it, while the bus releases the name, while the service takes its name back, and after the process has ended.
"""
import collections
import random
import threading
import time

from gi.repository import Gio, GLib

from client import Client, NAME, SECONDS

SQL = "SELECT TrackId, Name FROM Track WHERE TrackId <= 40 ORDER BY TrackId"
ROWS = 40
NO_FLAGS = Gio.DBusSignalFlags.NONE

Outcome = collections.namedtuple("Outcome", "calls instances taken_back errors")


class Caller(Client):
    """Sends calls on a statement or run to the service's name, or to the instance that answered the call that made it."""

    def __init__(self, address, by_name):
        super().__init__(address)
        self.by_name, self.destination = by_name, NAME

    def message(self, path, interface, method, body, timeout=SECONDS, destination=None):
        reply = super().message(path, interface, method, body, timeout, destination or self.destination)
        if not self.by_name and method in ("Prepare", "OpenRows"):
            self.destination = reply.get_sender()
        return reply

    def check(self, rows):
        self.destination = NAME
        if [row[0] for row in rows] != list(range(1, ROWS + 1)):
            raise AssertionError(f"{len(rows)} rows came, or others than asked for")

    def rows_as_values(self, database):
        self.check(self.query_rows(database, SQL)[1])

    def rows_down_a_pipe(self, database):
        self.check(self.query(database, SQL).read().rows)

    def statement(self, database):
        statement = self.prepare(database, SQL)
        rows = statement.fetch().read().rows
        statement.close()
        self.check(rows)

    def cursor(self, database):
        self.check(self.all_rows(database, SQL, next_options={"max-bytes": 500})[1])


WAYS = [Caller.rows_as_values, Caller.rows_down_a_pipe, Caller.statement, Caller.cursor]


class Owners:
    """Records the owners of the name from the bus's signals."""

    def __init__(self, address):
        self.client, self.owners = Client(address), []
        self.client.connection.signal_subscribe(
            "org.freedesktop.DBus", "org.freedesktop.DBus", "NameOwnerChanged", None, NAME, NO_FLAGS, self.on_signal
        )
        self.client.bus_call("GetId", "()")  # The answer shows that the subscription is in place.

    def on_signal(self, _connection, _sender, _path, _interface, _signal, values):
        if values[2]:
            self.owners.append(values[2])

    def count(self):
        """Returns the number of instances, and how often one took its name back."""
        self.client.bus_call("GetId", "()")  # All earlier signals have arrived before the answer.
        while GLib.MainContext.default().iteration(False):
            pass
        self.client.close()
        again = sum(a == b for a, b in zip(self.owners, self.owners[1:]))
        return len(set(self.owners)), again


def live(caller, database, pauses, barrier, chance, errors):
    for number, pause in enumerate(pauses):
        barrier.wait()
        time.sleep(pause + chance.uniform(0, 0.001))
        way = WAYS[chance.randrange(len(WAYS))]
        try:
            way(caller, database)
        except Exception as error:  # noqa: BLE001 - each exception is a lost call
            caller.destination = NAME
            errors.append(f"round {number}, {way.__name__}: {type(error).__name__}: {error}")


def race(address, idle, rounds, clients=4, database="chinook", by_name=False, seed=None):
    """Lets each of `clients` call `database` in `rounds` rounds, each `idle` seconds (IdleExitSec=) after the last one.

    `by_name`: all calls go to the service's name. This is safe only if the service manager delays the next instance.
    """
    owners, errors, chance = Owners(address), [], random.Random(seed)
    callers = [Caller(address, by_name) for _ in range(clients)]
    barrier = threading.Barrier(clients)
    pauses = [max(0, idle + chance.uniform(-0.001, 0.003)) for _ in range(rounds)]
    threads = [
        threading.Thread(
            target=live, args=(caller, database, pauses, barrier, random.Random(chance.random()), errors), daemon=True
        )
        for caller in callers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for caller in callers:
        caller.close()
    return Outcome(clients * rounds, *owners.count(), errors)
