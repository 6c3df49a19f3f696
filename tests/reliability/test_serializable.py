#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Transactions of many clients at once could have happened one after the other: histories.py finds no anomaly.

Each client begins transactions of random shape, to read or to write, on lists that all of them share. Some clients leave in
the middle of one, others are killed, as are workers. `--transactions N`: how many in all; `--seed N`: other shapes.
"""
import contextlib
import os
import random
import signal
import sqlite3
import time

from histories import FAILED, OK, UNKNOWN, History, Transaction
from players import DB, Playing, append, numbers_of, read
from settled import option

from harness import Service, main
from sizes import size
from tap import cases, diagnose, equal, test, true

SEED = option("--seed", random.randrange(2**32))
N_TRANSACTIONS = option("--transactions", size("transactions of serializable"))


# ---- Made-up histories ----


a, r = append, read


def names(last, *transactions):
    numbered = [
        Transaction(n, *t) if isinstance(t, tuple) else Transaction(n, t) for n, t in enumerate(transactions, 1)
    ]  # fmt: skip
    return {name for name, _ in History(numbered, last).check()}


@test
def sound_histories():
    """The checker accepts histories without an anomaly"""
    equal(names({}), set(), "nothing")
    equal(names({"x": [1, 2]}, [a("x", 1)], [r("x", 1), a("x", 2)], [r("x", 1, 2)], [r("x")]), set(), "one list")
    equal(names({"x": [1], "y": [2]}, [a("x", 1)], [a("y", 2)], [r("x", 1), r("y")]), set(), "two lists")
    equal(names({"x": [1, 2, 3]}, [a("x", 1), a("x", 2), r("x", 1, 2)], [r("x", 1, 2), a("x", 3)]), set(), "own appends")
    equal(names({"x": [1]}, [a("x", 1)], ([a("x", 2)], FAILED)), set(), "a rolled back one")
    equal(names({"x": [1]}, ([a("x", 1)], UNKNOWN), ([a("x", 2)], UNKNOWN)), set(), "unknown outcomes")


@test
def anomalies():
    """The checker finds each anomaly in a history that was made up to have it"""
    equal(names({"x": [1, 2], "y": [3, 4]}, [a("x", 1), a("y", 4)], [a("x", 2), a("y", 3)]), {"G0"}, "G0")
    equal(names({"x": [1]}, [a("x", 1)], ([a("x", 2)], FAILED), [r("x", 1, 2)]), {"G1a", "incompatible order"}, "G1a")
    equal(names({"x": [1, 2]}, [a("x", 1)], ([a("x", 2)], FAILED)), {"G1a"}, "a rolled back append that stayed")
    equal("G1b" in names({"x": [1, 2]}, [a("x", 1), a("x", 2)], [r("x", 1)]), True, "G1b")
    equal(names({"x": [1], "y": [2]}, [a("x", 1), r("y", 2)], [a("y", 2), r("x", 1)]), {"G1c"}, "G1c")
    equal(names({"x": [1], "y": [2]}, [a("x", 1), a("y", 2)], [r("x", 1), r("y")]), {"G-single"}, "read skew")
    equal(names({"x": [1], "y": [2]}, [r("x"), a("y", 2)], [r("y"), a("x", 1)]), {"G2"}, "write skew")
    lost = names({"x": [1, 2]}, [r("x"), a("x", 1)], [r("x"), a("x", 2)])
    equal(lost, {"lost update", "G-single"}, "lost update")
    equal(names({"x": [1]}, [a("x", 1)], [a("x", 2)]), {"lost append"}, "lost append")
    equal(names({"x": [1, 1]}, [a("x", 1)]), {"duplicate"}, "an append that took place twice")
    equal(names({"x": [1]}), {"garbage"}, "a value that was never appended")
    equal(names({"x": [1]}, [a("x", 1), r("x")]), {"internal"}, "an own append that is not seen")
    equal(names({"x": [1, 2]}, [a("x", 1)], [a("x", 2)], [r("x", 2)]), {"incompatible order"}, "reads that disagree")


# ---- The service ----


def kill_some(service, playing, chance):
    """Returns how many workers were killed."""
    n = 0
    while playing.goes_on():
        time.sleep(chance.uniform(0.3, 0.8))
        playing.kill_client()
        for pid in service.workers()[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                n += 1
    return n


@test
def serializable():
    """Transactions of 14 clients, with workers and clients that are killed, and clients that leave: no anomaly"""
    diagnose(f"--seed {SEED}")
    limits = {"TransactionsMax": 64, "RunsMax": 256, "TransactionIdleSec": 60}
    with Service(limits=limits) as service:
        path = service.data / "lists.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = wal")
            db.execute("CREATE TABLE lists(key INTEGER PRIMARY KEY, list TEXT)")
        service.database(DB, Path=path, Mode="read-write", Synchronous="normal")
        service.driver.manager("Reload")
        with Playing(service, N_TRANSACTIONS, SEED) as playing:
            n_kills = kill_some(service, playing, random.Random(SEED))
        history = playing.history()
        with contextlib.closing(sqlite3.connect(path)) as db:
            last = {key: numbers_of(text) for key, text in db.execute("SELECT key, list FROM lists")}
    outcomes = {outcome: sum(t.outcome == outcome for t in history) for outcome in (OK, FAILED, UNKNOWN)}
    diagnose(f"{outcomes}, {n_kills} workers and {playing.n_killed} processes of clients killed, {len(last)} lists")
    true(outcomes[OK] > len(history) / 2, "too few transactions were committed")
    equal(History(history, last).check(), [], "anomalies")
    cases("serializability", len(history), "a transaction beside others")


if __name__ == "__main__":  # forkserver imports this file
    main()
