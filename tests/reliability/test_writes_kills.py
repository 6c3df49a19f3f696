#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kill -9 of workers, of the supervisor and of clients at random moments while 16 writers insert rows.

The writers use Execute, prepared statements down a pipe, channels, and libsqlipc. After each round each row that was
acknowledged exists, none exists twice, no row exists whose write ended with WorkerLost, and the file is sound. `--rounds N`:
how many in all; `--seed N`: another choice of moments and victims. VACUUM is killed, too.
"""
import contextlib
import os
import random
import signal
import sqlite3
import time

from settled import option, send

from client import DATABASE, Failure, object_path
from harness import Service, main, wait_for
from sizes import size
from tap import cases, diagnose, equal, test, true
from writers import DB, Book, Crowd, make_written

SEED = option("--seed", random.randrange(2**32))
ROUNDS = option("--rounds", size("rounds of writes_kills"))
ROUNDS_OF_A_LIFE = 26
WAYS = (  # of each process
    ["channel", "execute", "fetch", "library"],
    ["channel", "execute", "fetch", "library, channel"],
) * 2
VICTIMS = ("a worker", "all workers", "supervisor", "client")
VACUUMS = 12  # with each journal
PAUSE = 0.03  # seconds at most from the first row of a round to the kill


class Life:
    """A service with a database, its writers and their notes."""

    def __init__(self, service, journal, chance):
        self.service, self.chance, self.generation = service, chance, 0
        self.journal = journal
        path = make_written(service.data / "written.sqlite", journal)
        service.database(DB, Path=path, Mode="read-write")
        service.driver.manager("Reload")
        self.crowds, self.dead = [self.new_crowd() for _ in WAYS], []
        self.book = Book(path)

    def new_crowd(self):
        self.generation += 1
        return Crowd(self.service, self.generation, WAYS[self.generation % len(WAYS)])

    def grows(self):
        self.book.note(self.crowds)
        return len(self.book.written) > self.n_before

    def kill(self, victim):
        if victim == "supervisor":
            self.service.kill()
            self.service.start()
        elif victim == "client":
            crowd = self.crowds.pop(self.chance.randrange(len(self.crowds)))
            crowd.kill()
            self.dead.append(crowd)
            self.crowds.append(self.new_crowd())
        else:
            workers = self.service.workers()
            some = workers if victim == "all workers" else self.chance.sample(workers, min(1, len(workers)))
            send(some, signal.SIGKILL)

    def round(self):
        victim = self.chance.choice(VICTIMS)
        self.n_before = len(self.book.written)
        wait_for(self.grows, "rows are written again")
        time.sleep(self.chance.random() * PAUSE)
        try:
            self.kill(victim)
            self.book.check(self.crowds + self.dead)
        except AssertionError:
            diagnose(f"{self.journal}, {victim} killed; notes: {self.book.outcomes}")
            raise

    def end(self):
        for crowd in self.crowds:
            crowd.kill()
        wait_for(self.service.is_idle, "nothing of the writers is left")
        self.book.note(self.crowds + self.dead)
        self.book.close()


@test
def killed():
    """Writers lose no row that was acknowledged and get none twice, if a process is killed"""
    diagnose(f"seed {SEED}")
    chance = random.Random(SEED)
    outcomes, n_rows, done = {}, 0, 0
    while done < ROUNDS:
        journal = ("wal", "delete")[done // ROUNDS_OF_A_LIFE % 2]
        with Service(limits={"ChannelsMax": 64}) as service:
            life = Life(service, journal, chance)
            for _ in range(ROUNDS_OF_A_LIFE):
                life.round()
            life.end()
        done += ROUNDS_OF_A_LIFE
        n_rows += len(life.book.rows)
        for outcome, n in life.book.outcomes.items():
            outcomes[outcome] = outcomes.get(outcome, 0) + n
    diagnose(f"{done} rounds, {n_rows} rows, answers: {outcomes}")
    true(len(outcomes) > 2, f"a kill that no writer noticed: {outcomes}")
    cases("kill", done, "a moment at which a worker, the supervisor or a client is killed while 16 writers write")


def content(db):
    rows = db.execute("SELECT count(*), sum(number), sum(length(t)) FROM written").fetchone()
    return rows, db.execute("PRAGMA integrity_check").fetchall()


def is_vacuumed(client):
    """False if the service gave the call to the worker that was killed before it knew of that."""
    try:
        client.execute(DB, "VACUUM")
    except Failure as failure:
        if not failure.name.endswith(".WorkerLost"):
            raise
        return False
    return True


@test
def vacuum_killed():
    """VACUUM whose worker is killed leaves the rows as they were, and the next one succeeds"""
    chance, outcomes = random.Random(SEED), {}
    for journal in ("wal", "delete"):
        with Service() as service, contextlib.closing(service.client()) as client, contextlib.ExitStack() as stack:
            path = make_written(service.data / "written.sqlite", journal)
            service.database(DB, Path=path, Mode="read-write", WriteSchema="yes")
            service.driver.manager("Reload")
            db = stack.enter_context(contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=60)))
            for i in range(VACUUMS):
                db.execute("WITH c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 1500) "
                           "INSERT INTO written(number, t) SELECT i, hex(zeroblob(2000)) FROM c")
                db.execute("DELETE FROM written WHERE number % 3 > 0")
                before = content(db)
                client.execute(DB, "PRAGMA user_version = 1")  # a worker is there, and has the lease
                call = client.begin(object_path(DB), DATABASE, "Execute", "(sava{sv}a{sv})", "VACUUM", [], {}, {})
                time.sleep(chance.random() * (PAUSE if i % 2 else 5 * PAUSE))
                send(service.workers(), signal.SIGKILL)
                try:
                    call.result()
                    outcome = "done"
                except Failure as failure:
                    outcome = failure.name.rsplit(".", 1)[-1]
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                equal(content(db), before, f"{journal}, {outcome}")
                wait_for(lambda: is_vacuumed(client), "a VACUUM succeeds")
                equal(content(db), before, f"{journal}, after the next one")
                equal(db.execute("PRAGMA freelist_count").fetchone(), (0,), "free pages")
                db.execute("DELETE FROM written")
    diagnose(f"seed {SEED}, answers: {outcomes}")
    equal(outcomes.keys() - {"done", "WorkerLost", "OutcomeUnknown"}, set(), "answers")
    cases("kill", 2 * VACUUMS, "a moment at which the worker of a VACUUM is killed")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
