#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kill -9 of workers, of the supervisor and of clients at random moments while 16 writers insert rows.

The writers use Execute, prepared statements down a pipe, channels, and libsqlipc. After each round each row that was
acknowledged exists, none exists twice, no row exists whose write ended with WorkerLost, and the file is sound. `--rounds N`:
how many in all; `--seed N`: another choice of moments and victims.
"""
import os
import random
import signal
import time

from settled import option, send

from harness import Service, main, wait_for
from sizes import size
from tap import cases, diagnose, test, true
from writers import DB, Book, Crowd, make_written

SEED = option("--seed", random.randrange(2**32))
ROUNDS = option("--rounds", size("rounds of writes_kills"))
ROUNDS_OF_A_LIFE = 26
WAYS = (  # of each process
    ["channel", "execute", "fetch", "library"],
    ["channel", "execute", "fetch", "library, channel"],
) * 2
VICTIMS = ("a worker", "all workers", "supervisor", "client")
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


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
