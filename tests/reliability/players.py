# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that append to shared lists in transactions of random shape, and note what they did and were told.

    with playing(service, 1000, seed) as (processes, paths):
        ...                                  # until they end
    pickle.loads(paths[0].read_bytes())      # the histories.Transactions of the first process

Each version of a list is the text of its row, so an update that was lost leaves a gap.
"""
import contextlib
import multiprocessing
import os
import pathlib
import pickle
import random
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))

from gi.repository import GLib  # noqa: E402
from histories import FAILED, OK, UNKNOWN, Transaction  # noqa: E402

from client import Broken, Client, Failure  # noqa: E402

N_PROCESSES, N_THREADS = 2, 6
PER_LISTS = 8  # transactions of a client before it goes on to other lists, so that no list grows long
N_LISTS = 3
DB = "lists"
APPEND = (
    "INSERT INTO lists(key, list) VALUES (?1, CAST(?2 AS TEXT)) "
    "ON CONFLICT(key) DO UPDATE SET list = list || ',' || excluded.list"
)
READ = "SELECT list FROM lists WHERE key = ?1"
UNKNOWN_ERRORS = ("OutcomeUnknown", "NoReply")


def append(key, value):
    return ("append", key, value)


def read(key, *values):
    return ("read", key, list(values))


class Player:
    """A client with its transactions; `base` is the first number of those."""

    def __init__(self, address, base, n, seed):
        self.address, self.base, self.n = address, base, n
        self.random = random.Random(seed)
        self.client, self.done = None, []

    def run(self):
        for i in range(self.n):
            if not self.client:
                self.client = Client(self.address)
            self.done.append(self._play(self.base + i, i // PER_LISTS))
        if self.client:
            self.client.close()

    def _play(self, number, round_):
        writes = self.random.random() < 0.6
        t = Transaction(number, [], FAILED)
        try:
            mode = GLib.Variant("s", "write" if writes else "read")
            begun, _ = self.client.database(DB, "Begin", "(a{sv})", {"mode": mode})
            self._use(t, begun[0].get_uint64(), writes, round_)
        except Failure as failure:
            if t.outcome is UNKNOWN and not any(name in failure.name for name in UNKNOWN_ERRORS):
                t.outcome = FAILED
        except Broken:
            pass  # of a query: its transaction was not committed, and ends with the client
        if t.outcome is not OK:
            self._leave()
        return t

    def _use(self, t, transaction, writes, round_):
        inside = {"transaction": GLib.Variant("t", transaction)}
        for n in range(self.random.randint(1, 4)):
            key = round_ * N_LISTS + self.random.randrange(N_LISTS)
            if writes and self.random.random() < 0.6:
                value = t.number * 10 + n
                t.steps.append(append(key, value))
                self.client.execute(DB, APPEND, [key, value], options=inside)
            else:
                rows = self.client.query_rows(DB, READ, [key], options=inside)[1]
                t.steps.append(read(key, *numbers_of(rows[0][0] if rows else "")))
        chance = self.random.random()
        if chance < 0.03:
            self._leave()
            return
        t.outcome = UNKNOWN if chance < 0.95 else FAILED
        self.client.database(DB, "Commit" if t.outcome is UNKNOWN else "Rollback", "(ta{sv})", transaction, {})
        if t.outcome is UNKNOWN:
            t.outcome = OK

    def _leave(self):
        if self.client:
            self.client.close()
        self.client = None


def numbers_of(text):
    text = bytes(text).decode() if isinstance(text, bytes) else text
    return [int(number) for number in text.split(",")] if text else []


def play(address, path, process, n, seed):
    with contextlib.closing(Client(address)):  # gi is not made for threads that load its parts at the same time
        numbers = range(process * N_THREADS, (process + 1) * N_THREADS)
        players = [Player(address, number * n + 1, n, seed * 1000 + number) for number in numbers]
        threads = [threading.Thread(target=player.run) for player in players]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    path.write_bytes(pickle.dumps([t for player in players for t in player.done]))


@contextlib.contextmanager
def playing(service, n_transactions, seed):
    """Yields the processes with the players, and the files that will have their transactions."""
    n = n_transactions // (N_PROCESSES * N_THREADS) + 1
    os.environ["PYTHONWARNINGS"] = "ignore"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["client", "histories", "players"])
    paths = [service.data / f"history-{i}" for i in range(N_PROCESSES)]
    processes = [context.Process(target=play, args=(service.address, path, i, n, seed)) for i, path in enumerate(paths)]
    for process in processes:
        process.start()
    yield processes, paths
    for process in processes:
        process.join()
