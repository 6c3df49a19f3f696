# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that append to shared lists in transactions of random shape, and note what they did and were told.

    with Playing(service, 1000, seed) as playing:
        while playing.goes_on():
            playing.kill_client()            # one of them, with its process; another one takes its place
    playing.history()                        # the histories.Transactions of all

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
LAST = "SELECT max(key) FROM lists"
UNKNOWN_ERRORS = ("OutcomeUnknown", "NoReply")


def append(key, value):
    return ("append", key, value)


def read(key, *values):
    return ("read", key, list(values))


class Player:
    """A client with its transactions. `base` is the first number of those. `note` keeps one before its outcome is known, and
    again afterwards: what the bus was not asked for before a kill has no note, and must not be seen by others."""

    def __init__(self, address, base, n, seed, note):
        self.address, self.base, self.n, self.note = address, base, n, note
        self.random = random.Random(seed)
        self.client = None

    def run(self):
        first = self._first_round()
        for i in range(self.n):
            if not self.client:
                self.client = Client(self.address)
            self.note(self._play(self.base + i, first + i // PER_LISTS))
        if self.client:
            self.client.close()

    def _first_round(self):
        """Returns which lists the others have reached."""
        while True:
            try:
                with contextlib.closing(Client(self.address)) as client:
                    return (client.query_rows(DB, LAST)[1][0][0] or 0) // N_LISTS
            except (Failure, Broken):
                pass  # its worker was killed

    def _play(self, number, round_):
        mode = self.random.choice(("write", "deferred", "deferred", "read"))
        t = Transaction(number, [], FAILED)
        try:
            begun, _ = self.client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", mode)})
            self._use(t, begun[0].get_uint64(), mode != "read", round_)
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
        self.note(t)
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


def play(address, path, base, n_threads, n, seed):
    """The life of a process."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(transaction):
        os.write(fd, pickle.dumps(transaction))  # one write, so that a kill and the other threads divide none

    with contextlib.closing(Client(address)):  # gi is not made for threads that load its parts at the same time
        players = [Player(address, base + i * n, n, seed * 1000 + base + i, note) for i in range(n_threads)]
        threads = [threading.Thread(target=player.run) for player in players]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def notes(path):
    with open(path, "rb") as file, contextlib.suppress(EOFError):
        while True:
            yield pickle.load(file)


class Playing:
    """The processes: those that play their transactions to the end, and one that may be killed."""

    def __init__(self, service, n_transactions, seed):
        self.service, self.seed = service, seed
        self.n, self.base = n_transactions // (N_PROCESSES * N_THREADS) + 1, 1
        self.paths, self.n_killed = [], 0
        os.environ["PYTHONWARNINGS"] = "ignore"
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["client", "histories", "players"])

    def _start(self, n_threads, n):
        path = self.service.data / f"history-{len(self.paths)}"
        process = self.context.Process(target=play, args=(self.service.address, path, self.base, n_threads, n, self.seed))
        self.paths.append(path)
        self.base += n_threads * n
        process.start()
        return process

    def _start_mortal(self):
        self.mortal = self._start(2, 100000)

    def __enter__(self):
        self.processes = [self._start(N_THREADS, self.n) for _ in range(N_PROCESSES)]
        self._start_mortal()
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.join()
        self._end_mortal()

    def _end_mortal(self):
        self.mortal.kill()
        self.mortal.join()

    def goes_on(self):
        return any(process.is_alive() for process in self.processes)

    def kill_client(self):
        self._end_mortal()
        self.n_killed += 1
        self._start_mortal()

    def history(self):
        by_number = {t.number: t for path in self.paths if path.exists() for t in notes(path)}
        return list(by_number.values())
