# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program of test_outcomes.py: it writes through one surface of the service, and gives each write up at a random moment.

usage: outcome_writers.py SURFACE ADDRESS PLACEHOLDER SEED FIRST NOTES

Each attempt has an id of its own, counted from FIRST, and inserts rows (id, 1), (id, 2) and so on, all or none. NOTES gets a
line for each attempt after its end: id, kind, number of rows, what the surface was told, and the name of that. The program
is told on its standard input what to do, and answers each line with "ok" when it has done it:

    play            writes until the next line arrives; answers when it begins
    stop            does nothing
    nothing         repeats statements that are given up, until one was told that nothing was written
    unknown         writes once with one statement, not given up
    done            repeats writes of each kind that are not given up, until each was told that it is written
"""
import contextlib
import faulthandler
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

DB = "written"
DONE, NOTHING, UNKNOWN = "done", "nothing", "unknown"
PATIENCE = int(os.environ.get("SQLIPC_TEST_PATIENCE", 120))
OUTCOME_UNKNOWN = "OutcomeUnknown"
MANY = 2000  # rows of a long write


def numbers(ident, n):
    return f"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {n}) SELECT {ident}, x FROM c"


def insert(ident, n):
    return f"INSERT INTO written(id, n) {numbers(ident, n)}"


class NotDoneError(Exception):
    """An attempt ended with an error. `told`: what that says; `name`: of the error."""

    def __init__(self, name, told=None):
        super().__init__(name)
        self.told = told or (UNKNOWN if OUTCOME_UNKNOWN in name else NOTHING)
        self.name = name.replace(" ", "-")


def ended_by(error):
    """Returns the outcome that an error of the Python package tells, and its name."""
    name = error.service_error or error.sqlite_errorname or type(error).__name__
    return NotDoneError(name).told, name


class GivenUp(Exception):  # noqa: N818 - what a signal handler raises, as KeyboardInterrupt
    pass


class Surface:
    """One way to write. A subclass has a function for each of `kinds`, which writes n rows of an id, or raises; `delay` is
    in how many seconds it is to be given up, or None."""

    kinds = ("statement", "returning", "load", "transaction")

    def __init__(self, address, placeholder, chance):
        self.address, self.placeholder, self.chance = address, placeholder, chance

    def one(self, ident):
        """Returns the statement of a load, and its rows."""
        return f"INSERT INTO written(id, n) VALUES ({ident}, {self.placeholder})"

    def attempt(self, kind, ident, n, delay):
        """Returns what was told, and its name."""
        try:
            getattr(self, kind)(ident, n, delay)
            return DONE, DONE
        except NotDoneError as error:
            return error.told, error.name

    @contextlib.contextmanager
    def given_up(self, delay, function, again=True):
        """Calls the function after the delay, unless the block has ended before; and again until it ends, because the first
        call may come before there is anything to give up."""
        if delay is None:
            yield
            return
        ended = threading.Event()

        def give_up():
            wait = delay
            while not ended.wait(wait):
                function()
                wait = 0.2 if again else None

        thread = threading.Thread(target=give_up)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


# ---- The C library, with functions that block ----


class InLibrary(Surface):
    kinds = ("statement", "returning", "load", "batch", "transaction", "late")
    transport = "auto"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
        from library import Library  # noqa: PLC0415 - only this surface has its modules

        service = SimpleNamespace(address=self.address, environment=dict(os.environ))
        self.library = Library(service, self.transport)

    def say(self, *lines):
        """Says the lines up to the first error, which it raises; returns the rows of the last one."""
        for line in lines:
            rows, answer = self.library.ask(line)
            if answer.startswith("error"):
                _, errno, code, _, _, name, message = answer.split(" ", 6)
                raise NotDoneError(f"errno-{errno}" if name == "-" else name)
            if answer == "what?":
                raise AssertionError(line)
        return rows

    @contextlib.contextmanager
    def interrupted(self, delay):
        with self.given_up(delay, lambda: self.library.process.send_signal(signal.SIGUSR1)):
            yield

    def statement(self, ident, n, delay):
        with self.interrupted(delay):
            self.say(f"exec {DB} {insert(ident, n)}")

    def returning(self, ident, n, delay):
        with self.interrupted(delay):
            self.say(f"query {DB} {insert(ident, n)} RETURNING n", "rows 0")

    def late(self, ident, n, delay):
        """The connection's timeout passes, or that of the run."""
        which = self.chance.choice(("timeout", "run-timeout"))
        if delay is not None:
            self.say(f"{which} {max(1, int(delay * 1e6))}")
        try:
            self.say(f"exec {DB} {insert(ident, n)}")
        finally:
            self.say(f"{which} {PATIENCE * 1000000}")

    def load(self, ident, n, delay):
        try:
            with self.interrupted(delay):
                self.say(f"load {DB} {self.one(ident)}", f"give 1 {n}", "finish")
        finally:
            self.say("unload")

    def batch(self, ident, n, delay):
        with self.interrupted(delay):
            self.say(f"batch {DB}", f"add - INSERT INTO written(id, n) VALUES ({ident}, {n + 1})",
                     f"add - {insert(ident, n)}", f"add - DELETE FROM written WHERE id = {ident} AND n = {n + 1}",
                     "run 3")  # fmt: skip

    def transaction(self, ident, n, delay):
        try:
            with self.interrupted(delay):
                try:
                    self.say(f"begin write {DB}", f"exec {DB} INSERT INTO written(id, n) VALUES ({ident}, {n})")
                    self.say(f"load {DB} {self.one(ident)}", f"give 1 {n - 1}", "finish", "unload")
                except NotDoneError as error:  # It is rolled back below, so nothing is written.
                    raise NotDoneError(f"{error.name}, not committed", NOTHING) from None
                self.say("commit")
        finally:
            self.say("unload", "drop")


class OnPipe(InLibrary):
    transport = "pipe"


class OnChannel(InLibrary):
    transport = "channel"


class OnDBus(InLibrary):
    transport = "dbus"


# ---- Python ----


class InPython(Surface):
    """interrupt() from another thread."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        import sqlipc  # noqa: PLC0415

        self.sqlipc = sqlipc
        self.db = self.connect()

    def connect(self):
        return self.sqlipc.connect(DB, bus=self.address, timeout=PATIENCE, isolation_level=None, check_same_thread=False)

    def attempt(self, kind, ident, n, delay):
        try:
            self.in_time(lambda: getattr(self, kind)(ident, n), delay)
            return DONE, DONE
        except NotDoneError as error:
            return error.told, error.name
        except self.sqlipc.Error as error:
            return ended_by(error)
        finally:
            with contextlib.suppress(self.sqlipc.Error):
                self.db.rollback()

    def in_time(self, write, delay):
        with self.given_up(delay, self.db.interrupt):
            write()

    def statement(self, ident, n):
        self.db.execute(insert(ident, n))

    def returning(self, ident, n):
        self.db.execute(insert(ident, n) + " RETURNING n").fetchall()

    def rows(self, n):
        rows = [(i,) for i in range(1, n + 1)]
        return rows if self.chance.random() < 0.5 else iter(rows)

    def load(self, ident, n):
        self.db.executemany(self.one(ident), self.rows(n))

    def transaction(self, ident, n):
        try:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.execute(f"INSERT INTO written(id, n) VALUES ({ident}, {n})")
            self.db.executemany(self.one(ident), self.rows(n - 1))
        except (self.sqlipc.Error, GivenUp, KeyboardInterrupt) as error:
            raise NotDoneError(f"{type(error).__name__}, not committed", NOTHING) from None
        try:
            self.db.commit()
        except (self.sqlipc.Error, GivenUp, KeyboardInterrupt):
            if self.chance.random() < 0.5 or not self.db.in_transaction:
                raise
            self.db.commit()  # It tells the result of the one that was given up.


class BySignal(InPython):
    """The handler of a signal raises an exception, as that of SIGINT."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        signal.signal(signal.SIGINT, self.handle)
        self.is_raised = True

    def handle(self, _, frame):
        # An exception before or after the wait tells nothing of the outcome.
        if frame.f_code.co_name == "until" and not self.is_raised:
            self.is_raised = True
            raise KeyboardInterrupt if self.chance.random() < 0.5 else GivenUp

    def in_time(self, write, delay):
        self.is_raised = False
        try:
            with self.given_up(delay, lambda: os.kill(os.getpid(), signal.SIGINT)):
                write()
        except (KeyboardInterrupt, GivenUp) as error:
            cause = error.__cause__
            raise NotDoneError(type(error).__name__ if cause is None else cause.service_error) from None
        finally:
            self.is_raised = True


class InTask(Surface):
    """task.cancel()."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        import asyncio  # noqa: PLC0415

        import sqlipc.aio  # noqa: PLC0415

        self.asyncio, self.sqlipc = asyncio, sqlipc
        self.loop = asyncio.new_event_loop()
        self.db = None

    async def connect(self):
        self.db = await self.sqlipc.aio.connect(DB, bus=self.address, timeout=PATIENCE, isolation_level=None)

    def attempt(self, kind, ident, n, delay):
        return self.loop.run_until_complete(self.attempt_in_loop(getattr(self, kind)(ident, n), delay))

    async def attempt_in_loop(self, write, delay):
        if self.db is None:
            await self.connect()
        try:
            await self.in_time(write, delay)
            return DONE, DONE
        except NotDoneError as error:
            return error.told, error.name
        except self.sqlipc.Error as error:
            return ended_by(error)
        except (self.asyncio.CancelledError, TimeoutError) as error:
            return NOTHING, type(error).__name__
        finally:
            with contextlib.suppress(self.sqlipc.Error):
                await self.db.rollback()

    async def in_time(self, write, delay):
        task = self.asyncio.ensure_future(write)
        if delay is not None:
            await self.asyncio.wait([task], timeout=delay)
            task.cancel()
        await task

    async def statement(self, ident, n):
        await self.db.execute(insert(ident, n))

    async def returning(self, ident, n):
        cursor = await self.db.execute(insert(ident, n) + " RETURNING n")
        await cursor.fetchall()

    def rows(self, n):
        rows = [(i,) for i in range(1, n + 1)]
        return rows if self.chance.random() < 0.5 else iter(rows)

    async def load(self, ident, n):
        await self.db.executemany(self.one(ident), self.rows(n))

    async def transaction(self, ident, n):
        try:
            await self.db.execute("BEGIN IMMEDIATE")
            await self.db.execute(f"INSERT INTO written(id, n) VALUES ({ident}, {n})")
            await self.db.executemany(self.one(ident), self.rows(n - 1))
        except self.sqlipc.Error as error:
            raise NotDoneError(f"{type(error).__name__}, not committed", NOTHING) from None
        try:
            await self.db.commit()
        except self.asyncio.CancelledError:  # It goes on.
            raise NotDoneError("CancelledError", UNKNOWN) from None
        except self.sqlipc.Error:
            if self.chance.random() < 0.5 or not self.db.in_transaction:
                raise
            await self.db.commit()


class InTime(InTask):
    """asyncio.timeout()."""

    async def in_time(self, write, delay):
        async with self.asyncio.timeout(delay):
            await write


# ---- GLib ----


class InGLib(Surface):
    """A GCancellable, which another thread cancels."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        import gi  # noqa: PLC0415

        gi.require_version("Sqlipc", "1")
        from gi.repository import Gio, GLib, Sqlipc  # noqa: PLC0415

        self.gio, self.glib, self.sqlipc = Gio, GLib, Sqlipc
        self.connection = None

    def attempt(self, kind, ident, n, delay):
        """Each has its own connection: what was given up ends when the loop of its connection turns, or with that."""
        self.connection = self.sqlipc.Connection.new_for_address(self.address)
        cancellable = self.gio.Cancellable()
        try:
            with self.given_up(delay, cancellable.cancel):
                getattr(self, kind)(ident, n, cancellable)
            return DONE, DONE
        except NotDoneError as error:
            return error.told, error.name
        except self.glib.Error as error:
            return self.told(error)
        finally:
            self.connection = None

    def told(self, error):
        if error.matches(self.sqlipc.error_quark(), self.sqlipc.Error.OUTCOME_UNKNOWN):
            return UNKNOWN, OUTCOME_UNKNOWN
        return NOTHING, f"{error.domain}-{error.code}"

    def statement(self, ident, n, cancellable):
        self.connection.execute(DB, insert(ident, n), None, cancellable)

    def returning(self, ident, n, cancellable):
        cursor = self.connection.query(DB, insert(ident, n) + " RETURNING n", None, cancellable)
        while cursor.next(cancellable):
            pass

    def load(self, ident, n, cancellable):
        load = self.connection.load(DB, self.one(ident))
        load.add_rows(self.glib.Variant("a(x)", [(i,) for i in range(1, n + 1)]), cancellable)
        load.complete(cancellable)

    def transaction(self, ident, n, cancellable):
        transaction = None
        try:
            try:
                transaction = self.connection.begin(DB, self.sqlipc.TransactionMode.WRITE, cancellable)
                self.connection.execute(DB, f"INSERT INTO written(id, n) VALUES ({ident}, {n})", None, cancellable)
                self.load(ident, n - 1, cancellable)
            except self.glib.Error as error:
                raise NotDoneError(f"{error.domain}-{error.code}, not committed", NOTHING) from None
            transaction.commit(cancellable)
        finally:
            if transaction:
                with contextlib.suppress(self.glib.Error):
                    transaction.rollback(None)


# ---- ADBC ----


class InADBC(Surface):
    """AdbcStatementCancel() or AdbcConnectionCancel() from another thread."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        import adbc_driver_manager.dbapi  # noqa: PLC0415

        self.manager = adbc_driver_manager

    def connect(self, autocommit):
        return self.manager.dbapi.connect(
            os.environ["SQLIPC_TEST_ADBC_DRIVER"],
            db_kwargs={"adbc.sqlipc.bus": self.address, "adbc.sqlipc.database": DB},
            conn_kwargs={"adbc.sqlipc.timeout": str(PATIENCE)},
            autocommit=autocommit,
        )

    def attempt(self, kind, ident, n, delay):
        try:
            with self.connect(kind != "transaction") as self.connection, self.connection.cursor() as cursor:
                cancel = self.chance.choice((cursor.adbc_cancel, self.connection.adbc_cancel))

                def give_up():
                    with contextlib.suppress(self.manager.Error):
                        cancel()

                with self.given_up(delay, give_up):
                    getattr(self, kind)(cursor, ident, n)
            return DONE, DONE
        except NotDoneError as error:
            return error.told, error.name
        except (self.manager.Error, OSError) as error:
            name = " ".join(str(error).split())
            return UNKNOWN if getattr(error, "sqlstate", None) == "08007" else NOTHING, name[:60].replace(" ", "-")

    def statement(self, cursor, ident, n):
        cursor.execute(insert(ident, n))

    def returning(self, cursor, ident, n):
        cursor.execute(insert(ident, n) + " RETURNING n")
        cursor.fetchall()

    def load(self, cursor, ident, n):
        cursor.executemany(self.one(ident), [(i,) for i in range(1, n + 1)])

    def transaction(self, cursor, ident, n):
        try:
            cursor.execute(f"INSERT INTO written(id, n) VALUES ({ident}, {n})")
            self.load(cursor, ident, n - 1)
        except (self.manager.Error, OSError) as error:
            raise NotDoneError(f"{type(error).__name__}, not committed", NOTHING) from None
        self.connection.commit()


# ---- The shell ----


class InShell(Surface):
    """SIGINT to ipcq-cli, which has a statement, or reads a script."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        if self.placeholder == "$1":  # .import needs a table of SQLite, whose columns it finds by a pragma.
            self.kinds = tuple(kind for kind in self.kinds if kind != "load")
        self.cli = os.environ["SQLIPC_TEST_CLI"]
        self.folder = pathlib.Path(os.environ["SQLIPC_TEST_FOLDER"])

    def run(self, delay, script, within=False):
        process = subprocess.Popen([self.cli, f"--address={self.address}", "--bail", DB], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        with self.given_up(delay, lambda: process.send_signal(signal.SIGINT), again=False):
            said, errors = process.communicate(script)
        if process.returncode == 0:
            return
        name = f"exit {process.returncode} " + " ".join(errors.split())[-60:]
        if "may have taken effect" in errors or "unknown" in errors or "have been carried out" in errors:
            raise NotDoneError(name, UNKNOWN)
        if "took effect" not in errors:
            raise NotDoneError(name, NOTHING)
        if within:  # It may be the statement, which was rolled back, or the COMMIT.
            raise NotDoneError(name, UNKNOWN)

    def statement(self, ident, n, delay):
        self.run(delay, insert(ident, n) + ";\n")

    def returning(self, ident, n, delay):
        self.run(delay, insert(ident, n) + " RETURNING n;\n")

    def load(self, ident, n, delay):
        file = self.folder / f"import-{ident}.csv"
        file.write_text("".join(f"{ident},{i}\n" for i in range(1, n + 1)))
        try:
            self.run(delay, f".import --csv {file} written\n")
        finally:
            file.unlink()

    def transaction(self, ident, n, delay):
        self.run(delay, f"BEGIN;\n{insert(ident, n)};\nCOMMIT;\n", within=True)


SURFACES = {
    "library, pipe": OnPipe,
    "library, channel": OnChannel,
    "library, D-Bus": OnDBus,
    "Python, interrupt": InPython,
    "Python, signal": BySignal,
    "asyncio, cancel": InTask,
    "asyncio, timeout": InTime,
    "GLib": InGLib,
    "ADBC": InADBC,
    "shell": InShell,
}


class Player:
    def __init__(self, name, address, placeholder, seed, first, notes):
        self.chance = random.Random(f"{seed} {name}")
        self.surface = SURFACES[name](address, placeholder, self.chance)
        self.next, self.notes = first, notes

    def write(self, kind, delay):
        """Returns what the attempt was told."""
        ident, self.next = self.next, self.next + 1
        n = MANY if self.chance.random() < 0.2 else 3
        told, name = self.surface.attempt(kind, ident, n, delay)
        os.write(self.notes, f"{ident}\t{kind}\t{n}\t{told}\t{name}\n".encode())
        if told != DONE:
            time.sleep(0.01)  # The service may have been killed, and is not there yet.
        return told

    def delay(self):
        """Returns a moment to give a write up: never, at once, during the call, or while it waits for a lock."""
        choice = self.chance.random()
        if choice < 0.15:
            return None
        return self.chance.uniform(0, self.chance.choice((0.0005, 0.004, 0.03, 0.3)))

    def play(self):
        os.write(1, b"ok\n")
        while not select.select([0], [], [], 0)[0]:
            self.write(self.chance.choice(self.surface.kinds), self.delay())

    def stop(self):
        pass

    def nothing(self):
        for kind in ("statement", "returning"):  # A load goes on after it has sent all rows.
            while self.write(kind, self.chance.uniform(0, 0.2)) != NOTHING:
                pass

    def unknown(self):
        self.write("statement", None)

    def done(self):
        for kind in self.surface.kinds:
            while self.write(kind, None) != DONE:
                pass


def main():
    name, address, placeholder, seed, first, notes = sys.argv[1:]
    faulthandler.register(signal.SIGUSR2)
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    player = Player(name, address, placeholder, int(seed), int(first), file)
    while line := os.read(0, 100).decode():  # a line at a time, because the next one is said after "ok"
        getattr(player, line.strip())()
        if line != "play\n":
            os.write(1, b"ok\n")
    os._exit(0)  # The database is compared by then, and nothing of this process matters.


if __name__ == "__main__":
    main()
