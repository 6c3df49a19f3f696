#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each surface tells a program the truth about a write, at any moment at which the program gives the write up.

Programs (outcome_writers.py) write through each surface: the C library on each transport, Python, asyncio, GLib, ADBC and
the shell. They give writes up at random moments, while others hold the lock for random times, and the service and workers
are killed. Each write has an id of its own. At the end:

    done            all rows of the write exist, each once
    nothing         none exists: cancelled, timed out, or any other error except OutcomeUnknown
    unknown         all exist, each once, or none

After the random part each surface is brought into each class for certain. The lock is held until writes that are given
up have ended: nothing. The service is killed while writes wait for the lock: unknown. Nothing disturbs a write: done.

    test_outcomes.py [--time SECONDS] [--seed N]
"""
import collections
import contextlib
import functools
import os
import pathlib
import random
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from settled import option, send

from harness import BUILD_ROOT, CLI, PATIENCE, SANITIZED, Service, main, python_package, wait_for
from postgres import Postgres, Relay
from sizes import size
from tap import cases, diagnose, equal, test, true

SEED = option("--seed", random.randrange(2**32))
SECONDS = option("--time", size("seconds of outcomes"))
HERE = pathlib.Path(__file__).resolve().parent
DB = "written"
PER_SURFACE = 10_000_000  # ids
ADBC = BUILD_ROOT / "tests/adbc/environment"
ADBC_DRIVER = BUILD_ROOT / "client-lib/adbc/libadbc_driver_sqlipc.so"
GLIB = BUILD_ROOT / "client-lib/glib"
# A writer waits for the lock for as long as the test likes. All can wait at the same time, each in a worker of its own.
LIMITS = {
    "TransactionsMax": 64, "RunsMax": 256, "ChannelsMax": 64, "BusyTimeoutSec": 600, "QueueTimeoutSec": 600,
    "PrepareTimeoutSec": 600, "TransactionTimeoutSec": 600, "TransactionIdleSec": 600, "WorkersMax": 24,
    "WorkersTotalMax": 64,
}  # fmt: skip
DONE, NOTHING, UNKNOWN = "done", "nothing", "unknown"


def has_adbc_packages():
    """Installs them, as the tests of ADBC do. CI must have them."""
    made = subprocess.run([HERE.parent / "adbc/make-environment.sh", ADBC], capture_output=True, text=True, check=False)
    true(made.returncode == 0 or os.environ.get("CI") != "true", f"the Python packages cannot be installed: {made.stderr}")
    return made.returncode == 0


@functools.cache
def surfaces():
    """Returns name -> (command of its interpreter, more of its environment); prints which are left out, and why."""
    plain, package = (["/usr/bin/python3"], {}), (["/usr/bin/python3"], python_package())
    found = {name: plain for name in ("library, pipe", "library, channel", "library, D-Bus", "shell")}
    if list((BUILD_ROOT / "client-lib/python/sqlipc").glob("*.so")):
        found |= {name: package for name in ("Python, interrupt", "Python, signal", "asyncio, cancel", "asyncio, timeout")}
    else:
        diagnose("without Python: the package is not built")
    if SANITIZED or not (GLIB / "Sqlipc-1.typelib").exists():
        diagnose("without GLib: " + ("it cannot be loaded with a sanitizer" if SANITIZED else "built without introspection"))
    else:
        path = {"LD_LIBRARY_PATH": f"{GLIB}:{BUILD_ROOT}/client-lib", "GI_TYPELIB_PATH": str(GLIB)}
        found["GLib"] = (plain[0], path)
    if SANITIZED or not ADBC_DRIVER.exists() or not has_adbc_packages():
        diagnose("without ADBC: " + ("it cannot be loaded with a sanitizer" if SANITIZED else "it or a package is missing"))
    else:
        found["ADBC"] = ([str(ADBC / "python/bin/python")], {"SQLIPC_TEST_ADBC_DRIVER": str(ADBC_DRIVER)})
    return found


class Writer:
    """A program that writes through one surface."""

    def __init__(self, service, name, number, interpreter, environment, placeholder):
        self.name, self.notes = name, service.data / f"notes-{number}"
        self.errors = open(service.data / f"errors-{number}", "w+", encoding="utf-8")
        more = {"SQLIPC_BUILD_ROOT": str(BUILD_ROOT), "SQLIPC_TEST_CLI": str(CLI), "HOME": str(service.data),
                "SQLIPC_TEST_FOLDER": str(service.data), "SQLIPC_TEST_PATIENCE": str(PATIENCE)}  # fmt: skip
        first = 1 + number * PER_SURFACE
        command = [*interpreter, HERE / "outcome_writers.py", name, service.address, placeholder, SEED, first, self.notes]
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=self.errors, env=service.environment | more | environment)  # fmt: skip

    def say(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def hear(self, until=None):
        """Waits until it has done what it was told, for two PATIENCE or until a time."""
        left = 2 * PATIENCE if until is None else max(0, until - time.monotonic())
        ready, _, _ = select.select([self.process.stdout], [], [], left)
        if not ready or self.process.stdout.readline() != "ok\n":
            if not ready:
                self.process.send_signal(signal.SIGUSR2)  # It writes a traceback.
                time.sleep(1)
            self.errors.seek(0)
            what = f"{self.name}: {'failed' if ready else 'hangs'}, after {self.attempts()[-3:]}"
            raise AssertionError(f"{what}:\n{self.errors.read()[-4000:]}")

    def attempts(self):
        """Returns the lines of its notes: id, kind, number of rows, what it was told, and the name of that."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        fields = (line.split("\t") for line in lines)
        return [(int(ident), kind, int(n), told, name) for ident, kind, n, told, name in fields]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.errors.close()


class File:
    """The database is a file."""

    name, placeholder = "SQLite", "?1"

    @contextlib.contextmanager
    def service(self):
        with Service(limits=LIMITS) as service:
            self.workers = service.workers
            self.path = service.data / "written.sqlite"
            with contextlib.closing(sqlite3.connect(self.path)) as db:
                db.executescript("PRAGMA journal_mode = wal; CREATE TABLE written(id INTEGER, n INTEGER)")
            service.database(DB, Path=self.path, Mode="read-write", Synchronous="normal")
            service.driver.manager("Reload")
            yield service

    @contextlib.contextmanager
    def locked(self, chance=None):  # noqa: ARG002 - there is one kind of lock
        with contextlib.closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                raise AssertionError(f"the lock was kept for {PATIENCE} s: {error}") from None
            yield
            db.execute("ROLLBACK")

    def found(self):
        with contextlib.closing(sqlite3.connect(self.path, timeout=PATIENCE)) as db:
            return db.execute("SELECT id, count(*), count(DISTINCT n) FROM written GROUP BY id").fetchall()


class Server:
    """The database is one of a PostgreSQL server."""

    name, placeholder = "PostgreSQL", "$1"

    @contextlib.contextmanager
    def service(self):
        with Postgres(max_connections="100") as self.server:
            self.server.sql(
                "CREATE TABLE written(id bigint, n bigint);"
                "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END';"
                "CREATE TRIGGER wait BEFORE INSERT ON written FOR EACH STATEMENT EXECUTE FUNCTION wait()"
            )
            keys = {"Connection": self.server.connection("postgres"), "Mode": "read-write"}
            relay = Relay({DB: keys}, limits=LIMITS)
            self.workers = relay.unit.workers
            with relay as service:
                yield service

    @contextlib.contextmanager
    def locked(self, chance=None):
        """Statements wait when they are carried out, and by chance already when they are compiled. The server ends the
        transaction of a client that has left."""
        compiled = chance and chance.random() < 0.5
        lock = "LOCK TABLE written IN SHARE ROW EXCLUSIVE MODE" if compiled else "SELECT FROM pg_advisory_xact_lock(7)"
        command = [f"{self.server.programs}/psql", "-XAtq", "-h", self.server.folder, "-U", "postgres", "postgres"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as psql:
            psql.stdin.write(f"SET lock_timeout = '{PATIENCE}s'; BEGIN; {lock}; SELECT 1;\n")
            psql.stdin.flush()
            equal(psql.stdout.readline().strip() or psql.stdout.readline().strip(), "1", "the lock, in time")
            yield
            psql.stdin.write("ROLLBACK;\n")
            psql.stdin.close()
            psql.wait()

    def found(self):
        wait_for(lambda: not self.server.clients(), "the server has ended what it did for clients that are gone")
        lines = self.server.sql("SELECT id, count(*), count(DISTINCT n) FROM written GROUP BY id")
        return [tuple(map(int, line.split("|"))) for line in lines]


def hold_locks(engine, stop, chance):
    """Holds the lock again and again, for a random time."""
    while not stop.is_set():
        with engine.locked(chance):
            stop.wait(chance.uniform(0, chance.choice((0.005, 0.05, 0.3))))
        stop.wait(chance.uniform(0, 0.3))


def disturb(engine, service, chance):
    """Kills workers and the service until the time is over; returns how many of each."""
    n_workers = n_services = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.1, 1))
        if chance.random() < 0.3:
            service.kill()
            service.start()
            n_services += 1
        elif chance.random() < 0.5:
            workers = engine.workers()
            victims = chance.sample(workers, min(1, len(workers)))
            send(victims, signal.SIGKILL)
            n_workers += len(victims)
    return n_workers, n_services


def everyone(writers, what):
    for writer in writers:
        writer.say(what)
    until = time.monotonic() + 2 * PATIENCE
    for writer in writers:
        writer.hear(until)


def show_service(service, writers):
    for what in ("ListTransactions", "ListRuns"):
        diagnose(f"{what}: {service.driver.manager(what)[0]}")
    names = {name: client.process.pid for client in writers for name in [client.name]}
    diagnose(f"{names}\nclients: {service.driver.manager('ListClients')[0]}")
    for writer in writers:
        diagnose(f"{writer.name}: last {writer.attempts()[-4:]}")


def at_rest(service):
    """Waits until nothing is left of writes that were given up."""
    wait_for(lambda: service.counters()["NRuns"] == 0, "writes that were given up have ended")


def play(engine, service, writers):
    """Brings about the random attempts."""
    chance, stop = random.Random(SEED), threading.Event()
    holder = threading.Thread(target=hold_locks, args=(engine, stop, random.Random(SEED + 1)))
    holder.start()
    try:
        for writer in writers:
            writer.say("play")
            writer.hear()  # It has begun, and ends with the next line.
        n_workers, n_services = disturb(engine, service, chance)
        everyone(writers, "stop")
    finally:
        stop.set()
        holder.join()
    with engine.locked():  # Programs that have given all writes up, and wait for nothing, keep no lock.
        pass
    diagnose(f"{engine.name}: {n_workers} workers and {n_services} services killed")


def play_for_certain(engine, service, writers):
    """Brings each surface into each class."""
    at_rest(service)
    with engine.locked():
        everyone(writers, "nothing")
    at_rest(service)
    with engine.locked():
        for writer in writers:
            writer.say("unknown")
        wait_for(lambda: service.counters()["NRuns"] == len(writers), "all wait for the lock")
        service.kill()
        for writer in writers:
            writer.hear()
        service.start()
    everyone(writers, "done")


def check(engine, writers):
    """Compares the outcomes that were told with the rows; returns a Counter of (surface, told, name)."""
    found, counts, wrong = {ident: (n, distinct) for ident, n, distinct in engine.found()}, collections.Counter(), []
    for writer in writers:
        for ident, kind, n, told, name in writer.attempts():
            counts[writer.name, told, name] += 1
            allowed = {DONE: [n], NOTHING: [0], UNKNOWN: [0, n]}[told]
            rows, distinct = found.pop(ident, (0, 0))
            if rows not in allowed or rows != distinct:
                wrong.append(f"{writer.name}, {kind}: told {told} ({name}), {rows} rows of {n}, {distinct} of them distinct")
    wrong += [f"{rows} rows of a write that no program has begun: {ident}" for ident, rows in found.items()]
    return counts, wrong


def show(counts):
    for surface in dict.fromkeys(surface for surface, _, _ in counts):
        of_it = sorted((told, -n, name) for (s, told, name), n in counts.items() if s == surface)
        totals = {told: sum(-n for t, n, _ in of_it if t == told) for told in (DONE, NOTHING, UNKNOWN)}
        names = ", ".join(f"{name} {-n}" for told, n, name in of_it if told != DONE)
        diagnose(f"{surface}: " + ", ".join(f"{n} {told}" for told, n in totals.items()) + f" ({names})")


def outcomes_of(engine):
    diagnose(f"--seed {SEED}")
    writers = []
    with engine.service() as service:
        # Other programs, because those that gave calls up keep answers that they have not read.
        for plays in (play, play_for_certain):
            with contextlib.ExitStack() as stack:
                now = []
                for name, (interpreter, environment) in surfaces().items():
                    now.append(Writer(service, name, len(writers), interpreter, environment, engine.placeholder))
                    writers.append(now[-1])
                    stack.callback(now[-1].kill)
                try:
                    plays(engine, service, now)
                except AssertionError:
                    show_service(service, now)
                    raise
            wait_for(service.is_idle, "nothing of the writers is left")
        service.stop()
        counts, wrong = check(engine, writers)
        service.start()
    show(counts)
    for line in wrong[:20]:
        diagnose(line)
    equal(len(wrong), 0, "attempts that were told what is not true")
    classes = {(surface, told) for surface, told, _ in counts}
    missing = [(writer.name, told) for writer in now for told in (DONE, NOTHING, UNKNOWN)
               if (writer.name, told) not in classes]  # fmt: skip
    equal(missing, [], "classes that never occurred")
    cases("outcome", sum(counts.values()), "a write through one of the surfaces that may be given up at any moment")


@test
def on_a_file():
    """SQLite: each surface tells the truth about its writes, whenever they are given up"""
    outcomes_of(File())


@test
def on_a_server():
    """PostgreSQL: the same"""
    outcomes_of(Server())


if __name__ == "__main__":
    main()
