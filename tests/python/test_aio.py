#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipc.aio: connections and cursors in an event loop."""

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sqlite3
import threading
import time
import traceback

import sqlipc
import sqlipc.aio
from harness import INVARIANTS, PATIENCE, PATIENT, main, wait_for
from library import owner_pid
from python_service import SLOWLY, Killer, PythonService, interrupt_load, raises
from readiness import BUS, WAKE, make_ready, sets
from tap import equal, test, true

service = PythonService()
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
LONG = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, 'some text to fill pages' FROM c"


def loop(function):
    """Marks a coroutine function as a test."""

    def run():
        asyncio.run(asyncio.wait_for(function(), 5 * PATIENCE))

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return test(run)


def connect(name="notes", on=service, **keywords):
    return sqlipc.aio.connect(name, bus=on.address, **{"timeout": PATIENCE} | keywords)


async def awaited(result):
    return await result


async def fails(kind, awaitable):
    try:
        result = await awaitable
    except kind as error:
        return error
    raise AssertionError(f"got {result!r}, expected {kind.__name__}")


@loop
async def programs_of_aiosqlite():
    """What aiosqlite has, as its programs use it"""
    for name in (
        "DatabaseError Error IntegrityError NotSupportedError OperationalError ProgrammingError Warning InterfaceError"
        " DataError InternalError Row register_adapter register_converter sqlite_version sqlite_version_info paramstyle"
    ).split():
        true(getattr(sqlipc.aio, name) is getattr(sqlipc, name), name)
    async with connect(iter_chunk_size=10, check_same_thread=False) as db:
        seen = []
        await db.set_trace_callback(seen.append)
        equal(await db.execute_insert("INSERT INTO note(text) VALUES (?)", ["a"]), (1,), "a rowid")
        equal(seen, ["BEGIN ", "INSERT INTO note(text) VALUES ('a')"], "what was traced")
        await db.set_trace_callback(None)
        db.row_factory = sqlipc.aio.Row
        row = await db.execute_insert(sql="INSERT INTO note(text) VALUES (:t)", parameters={"t": "b"})
        equal((row.keys(), tuple(row)), (["last_insert_rowid()"], (2,)), "a row")
        async with db.execute_insert("INSERT INTO note(text) VALUES ('c')") as row:
            equal(row[0], 3, "a rowid in a block")
        db.row_factory = None
        equal(await db.execute_fetchall("SELECT text FROM note WHERE id > ?", (1,)), [("b",), ("c",)], "rows")
        async with db.execute_fetchall("SELECT count(*) FROM note", None) as rows:
            equal(rows, [(3,)], "rows in a block")
        cursor = await db.cursor()
        await cursor.execute("SELECT id FROM note", None)
        equal([row async for row in cursor], [(1,), (2,), (3,)], "rows of a cursor that was awaited")
        async with db.cursor() as cursor:
            await cursor.executemany("INSERT INTO note(text) VALUES (?)", parameters=[("d",), ("e",)])
        for refused in (db.iterdump().__anext__(), db.backup(service.folder / "copy.sqlite")):
            error = await fails(sqlipc.NotSupportedError, refused)
            true("commit()" in str(error), error)
        with contextlib.suppress(sqlipc.NotSupportedError):
            db.isolation_level = None
            raise AssertionError("isolation_level = None in a transaction worked")
        await db.commit()
        db.isolation_level = None
        await db.execute("DELETE FROM note WHERE text = 'e'")
        equal(db.in_transaction, False, "a statement without a transaction")
        await db.interrupt()
        with contextlib.closing(service.connect()) as other:
            equal([line async for line in db.iterdump()], list(other.iterdump()), "the dump")
        await db.backup(service.folder / "copy.sqlite")
        with contextlib.closing(sqlite3.connect(service.folder / "copy.sqlite")) as copy:
            equal(copy.execute("SELECT count(*) FROM note").fetchone(), (4,), "rows of the copy")
            error = await fails(sqlipc.NotSupportedError, db.backup(copy))
            true("path" in str(error), error)
        with contextlib.suppress(sqlipc.NotSupportedError):
            await db.create_function("f", 0, int, deterministic=True)
            raise AssertionError("create_function() worked")
    service.empty()


@loop
async def dumps_that_end_early():
    """A dump that is not read to its end, or whose task is cancelled, leaves no thread and no connection"""
    async with connect("chinook") as db:
        lines = db.iterdump()
        equal(await lines.__anext__(), "BEGIN TRANSACTION;", "the first line")
        await lines.aclose()
        task = asyncio.create_task(awaited(db.backup(service.folder / "never.sqlite")))
        await asyncio.sleep(0)
        task.cancel()
        await fails(asyncio.CancelledError, task)
        equal(await db.execute_fetchall("SELECT count(*) FROM Artist"), [(275,)], "the connection works")

    def copying():
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("sqlipc-copy")]

    await asyncio.to_thread(wait_for, lambda: not copying(), "the threads have ended")
    equal((service.folder / "never.sqlite").exists(), False, "the copy exists")


@loop
async def queries():
    """execute, async for, fetchone, fetchmany, fetchall, row factories"""
    async with connect("chinook") as db:
        async with db.execute("SELECT ArtistId, Name FROM Artist WHERE ArtistId < ? ORDER BY 1", (4,)) as cursor:
            equal([column[0] for column in cursor.description], ["ArtistId", "Name"], "description")
            equal([row[0] async for row in cursor], [1, 2, 3], "rows")
        cursor = await db.execute("SELECT * FROM Track ORDER BY TrackId")
        equal((await cursor.fetchone())[0], 1, "fetchone()")
        equal([row[0] for row in await cursor.fetchmany(3)], [2, 3, 4], "fetchmany()")
        equal(len(await cursor.fetchall()), 3499, "fetchall()")
        equal(await cursor.fetchone(), None, "after the end")
        db.row_factory = sqlipc.Row
        row = await (await db.execute("SELECT :a AS one", {"a": 1})).fetchone()
        equal(row["ONE"], 1, "Row")
        await fails(sqlipc.OperationalError, db.execute("SELEC"))
    await fails(sqlipc.ProgrammingError, cursor.fetchone())
    raises(sqlipc.ProgrammingError, db.cursor)


@loop
async def writes():
    """Transactions, executemany, executescript; a block commits, or rolls back"""
    async with connect() as db:
        cursor = await db.execute("INSERT INTO note(text) VALUES ('a')")
        equal((cursor.rowcount, cursor.lastrowid, db.in_transaction), (1, 1, True), "after an INSERT")
        await db.commit()
        cursor = await db.executemany("INSERT INTO note(text) VALUES (?)", ((str(i),) for i in range(30000)))
        equal((cursor.rowcount, db.total_changes), (30000, 30001), "rowcount")
        await db.rollback()
        error = await fails(sqlipc.IntegrityError, db.executemany("INSERT INTO note(text) VALUES (?)", [("b",), ("a",)]))
        equal(error.sqlite_errorname, "SQLITE_CONSTRAINT_UNIQUE", "error")
        equal(await (await db.execute("SELECT text FROM note")).fetchall(), [("a",), ("b",)], "the row before stays")
        await db.rollback()
        await db.executescript("CREATE TABLE x(a); INSERT INTO x VALUES (1); DROP TABLE x;")
        await db.execute("INSERT INTO note(text) VALUES ('kept')")
    with contextlib.suppress(ZeroDivisionError):
        async with connect() as db:
            await db.execute("INSERT INTO note(text) VALUES ('dropped')")
            _ = 1 / 0
    async with connect(timeout=0.2) as db, connect() as other:
        rows = await (await db.execute("SELECT text FROM note ORDER BY id")).fetchall()
        equal(rows, [("a",), ("kept",)], "rows")
        await other.execute("BEGIN IMMEDIATE")
        error = await fails(sqlipc.OperationalError, db.execute("INSERT INTO note(text) VALUES ('x')"))
        equal(error.sqlite_errorname, "SQLITE_BUSY", "a transaction that is not begun in time")
    async with connect(timeout=0) as db, connect() as other:
        await db.execute("INSERT INTO note(text) VALUES ('x')")
        await db.rollback()
        await other.execute("BEGIN IMMEDIATE")
        error = await fails(sqlipc.OperationalError, db.execute("INSERT INTO note(text) VALUES ('x')"))
        equal((str(error), error.sqlite_errorname), ("database is locked", "SQLITE_BUSY"), "a lock, and no time to wait")
    service.empty()


@loop
async def many_at_once():
    """Tasks share a connection, and others go on while one waits"""
    async with connect("chinook") as db, connect("chinook") as other:
        cursors = await asyncio.gather(*(db.execute("SELECT ?", (i,)) for i in range(50)))
        equal([await cursor.fetchone() for cursor in cursors], [(i,) for i in range(50)], "answers")
        slow = asyncio.ensure_future(db.execute(ENDLESS).__aenter__())
        for i in range(20):
            equal(await (await other.execute("SELECT ?", (i,))).fetchone(), (i,), "answer meanwhile")
        equal(slow.done(), False, "whether the slow one still runs")
        db.interrupt()
        error = await fails(sqlipc.OperationalError, slow)
        equal(error.sqlite_errorname, "SQLITE_INTERRUPT", "interrupt()")


def runs(on=service):
    return on.counters()["NRuns"]


@loop
async def cancellation():
    """Cancelling a task ends its run at the service: before the first row, between rows, and a bulk write"""
    async with connect("chinook") as db:
        for sql, fetches in ((ENDLESS, False), (LONG, True)):

            async def work():
                async with db.execute(sql) as cursor:
                    while fetches:
                        await cursor.fetchmany(1000)

            task = asyncio.ensure_future(work())
            while runs() == 0:
                await asyncio.sleep(0.01)
            task.cancel()
            await fails(asyncio.CancelledError, task)
            while runs() > 0:
                await asyncio.sleep(0.01)
            equal(await (await db.execute("SELECT 1")).fetchone(), (1,), "the connection works on")
    async with connect() as db:

        def endless():
            n = 0
            while True:
                n += 1
                yield (str(n),)

        task = asyncio.ensure_future(db.executemany("INSERT INTO note(text) VALUES (?)", endless()).__aenter__())
        await asyncio.sleep(0.3)
        task.cancel()
        await fails(asyncio.CancelledError, task)
        await db.rollback()
        equal(await (await db.execute("SELECT count(*) FROM note")).fetchone(), (0,), "rows")
    with contextlib.suppress(TimeoutError):
        async with connect("chinook") as db:
            async with asyncio.timeout(0.1):
                await db.execute(ENDLESS)


@loop
async def cancelled_writes():
    """A write whose task is cancelled, or is out of time, while it waits for a lock is not written when the lock is gone"""
    insert = "INSERT INTO note(text) VALUES ('cancelled')"

    async def out_of_time(db):
        async with asyncio.timeout(0.1):
            await db.execute(insert)

    for kind, work in ((asyncio.CancelledError, lambda db: db.execute(insert)), (TimeoutError, out_of_time)):
        async with connect(autocommit=True) as db, connect() as holder:
            await holder.execute("INSERT INTO note(text) VALUES ('held')")
            while runs() > 0:  # of tests before
                await asyncio.sleep(0.01)
            task = asyncio.ensure_future(awaited(work(db)))
            while runs() == 0 and not task.done():
                await asyncio.sleep(0.01)
            if kind is asyncio.CancelledError:
                task.cancel()
            await fails(kind, task)
            await holder.rollback()
            await db.execute("INSERT INTO note(text) VALUES ('after')")
            rows = await (await db.execute("SELECT text FROM note ORDER BY id")).fetchall()
            equal(rows, [("after",)], f"rows after {kind.__name__}")
            service.empty()


@loop
async def cancelled_too_late():
    """CancelledError passes only if nothing was written, whenever the task is cancelled"""
    n = 0
    for i in range(40):
        text = f"late {i}"
        async with connect(autocommit=True) as db, connect() as holder:
            await holder.execute("INSERT INTO note(text) VALUES ('held')")
            task = asyncio.ensure_future(awaited(db.execute("INSERT INTO note(text) VALUES (?)", (text,))))
            for _ in range(1 + i % 5):
                await asyncio.sleep(0)
            if i == 0:  # the lock is not given back before the task has ended, so it is cancelled on each machine
                task.cancel()
                await asyncio.wait([task])
            end = asyncio.ensure_future(holder.rollback())
            for _ in range(i // 5):
                await asyncio.sleep(0.0005)
            task.cancel()
            try:
                await task
                written = True
            except asyncio.CancelledError:
                written = False
            except sqlipc.OperationalError as error:
                equal(error.service_error, "org.sqlipc1.Error.OutcomeUnknown", str(error))
                written = None
            await end
            cursor = await db.execute("SELECT count(*) FROM note WHERE text = ?", (text,))
            found = (await cursor.fetchone())[0]
            true(written is None or found == written, f"{found} rows, told {written}")
            n += written is False
    true(n > 0, "none was cancelled")
    service.empty()


UNKNOWN = "org.sqlipc1.Error.OutcomeUnknown"
WRITES = {
    "INSERT": lambda db: db.execute("INSERT INTO thing(a) VALUES (1)"),
    "slow INSERT": lambda db: db.execute(f"INSERT INTO thing(a) SELECT 1 WHERE {SLOWLY}"),
    "RETURNING": lambda db: db.execute("INSERT INTO thing(a) VALUES (1), (1), (1) RETURNING a"),
    "a load": lambda db: db.executemany("INSERT INTO thing(a) VALUES (?)", [(1,)] * 3),
    "row by row": lambda db: db.executemany("INSERT INTO thing(a) VALUES (?) RETURNING a", [(1,)] * 3),
    "several loads": lambda db: db.executemany("INSERT INTO thing(a) VALUES (?)", iter([(1,)] * 20001)),
}
N_ROWS = {"INSERT": 1, "slow INSERT": 1, "several loads": 20001}  # the others: 3


async def given_up(awaitable, i):
    """Cancels a task at one of many moments. True: it was finished; False: CancelledError; None: the outcome is unknown."""
    task = asyncio.ensure_future(awaited(awaitable))
    for _ in range(1 + i % 4):
        await asyncio.sleep(0)
    if i % 3 == 1:
        time.sleep(0.002 * i)  # noqa: ASYNC251 - the answer arrives, and the task does not see it before it is cancelled
    elif i % 3 == 2:
        await asyncio.sleep(0.0005 * i)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return False
    except sqlipc.OperationalError as error:
        equal(error.service_error, UNKNOWN, str(error))
        return None
    return True


async def rows_of(db):
    return (await (await db.execute("SELECT count(*) FROM thing")).fetchone())[0]


@loop
async def cancelled_in_a_transaction():
    """In each mode a program that repeats a write after CancelledError has it once"""
    seen = set()
    for mode in ({}, {"autocommit": False}, {"isolation_level": None}, {"autocommit": True}):
        explicit = None in mode.values()
        for name, write in WRITES.items():
            n = N_ROWS.get(name, 3)
            for i in range(15):
                service.empty()
                async with connect(**mode) as db:
                    if explicit:
                        await db.execute("BEGIN")
                    told = await given_up(write(db), i)
                    seen.add(told)
                    if told is None:
                        await db.rollback()
                        continue
                    if told is False:
                        try:
                            await write(db)
                        except sqlipc.OperationalError as error:  # the Cancel has rolled the transaction back
                            equal(error.sqlite_errorname, "SQLITE_ABORT_ROLLBACK", f"{mode}, {name}, {i}: {error}")
                            await db.rollback()
                            if explicit:
                                await db.execute("BEGIN")
                            await write(db)
                    await db.commit()
                    equal(await rows_of(db), n, f"{mode}, {name}, {i}: rows, told {told}")
    service.empty()
    true(False in seen, f"outcomes: {seen}")


@loop
async def cancelled_load_that_waits():
    """A load that waits for another writer when its task is cancelled, or interrupted, has written nothing, also later"""
    insert, rows = "INSERT INTO thing(a) VALUES (?)", [(1,)] * 3
    with PythonService(limits=PATIENT) as patient:
        async with connect(on=patient, isolation_level=None) as holder, connect(on=patient, autocommit=True) as db:
            for kind in (asyncio.CancelledError, sqlipc.OperationalError):
                await holder.execute("BEGIN IMMEDIATE")
                task = asyncio.ensure_future(awaited(db.executemany(insert, rows)))
                while runs(patient) == 0:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.1)  # so that all rows are sent, most likely; before that, it ends as well
                if kind is asyncio.CancelledError:
                    task.cancel()
                else:
                    db.interrupt()
                error = await fails(kind, task)
                equal(getattr(error, "sqlite_errorname", None) in (None, "SQLITE_INTERRUPT"), True, str(error))
                await holder.execute("ROLLBACK")
                equal(await rows_of(holder), 0, f"rows after {kind.__name__}")
            equal((await db.executemany(insert, rows)).rowcount, 3, "the next load")


@loop
async def interrupted_loads_of_an_iterator():
    """interrupt() of executemany() that has several loads: all is rolled back, so the outcome is not unknown"""
    rows = [(i,) for i in range(sqlipc._core.CHUNK_ROWS)]
    for within in (False, True):
        async with connect(isolation_level=None) as db:
            if within:
                await db.execute("BEGIN")
                await db.execute("INSERT INTO thing(a) VALUES ('before')")
            interrupt_load(db._core)
            insert = db.executemany("INSERT INTO thing(a) VALUES (?)", iter(rows))
            error = await fails(sqlipc.OperationalError, awaited(insert))
            equal((error.sqlite_errorname, error.service_error), ("SQLITE_INTERRUPT", None), str(error))
            equal((await rows_of(db), db.in_transaction), (within, within), "rows, in_transaction")
            await db.rollback()


@loop
async def cancelled_load_after_others():
    """A cancelled executemany() leaves what the transaction has written before it, and nothing of itself"""
    async with connect() as db:
        stop = asyncio.Event()

        def rows():
            yield from [(1,)] * 25000
            stop.set()
            yield from [(1,)] * 20000

        await db.execute("INSERT INTO thing(a) VALUES (0)")
        task = asyncio.ensure_future(awaited(db.executemany("INSERT INTO thing(a) VALUES (?)", rows())))
        await stop.wait()
        task.cancel()
        error = await fails((asyncio.CancelledError, sqlipc.OperationalError), task)
        if isinstance(error, asyncio.CancelledError):
            equal(await rows_of(db), 1, "rows in the transaction")
        await db.rollback()
    service.empty()


@loop
async def cancelled_commits():
    """A commit whose task is cancelled goes on: CancelledError arrives, and each later call waits for its end"""

    async def insert(db):
        await db.execute("INSERT INTO thing(b) VALUES (2)")
        await db.commit()

    calls = (
        lambda db: db.commit(),
        lambda db: db.rollback(),
        insert,
        lambda db: db.executemany("INSERT INTO thing(b) VALUES (?)", []),
        lambda db: db.executescript("SELECT 1"),
        lambda db: db.close(),
    )
    seen = set()
    for i in range(1, 50):
        call = calls[i % len(calls)]
        async with connect() as db:
            await db.execute("INSERT INTO thing(a) VALUES (1)")
            told = await given_up(db.commit(), i)
            seen.add(told)
            await call(db)
        async with connect() as db:
            n = (await (await db.execute("SELECT count(a) FROM thing")).fetchone())[0]
            equal(n, 1, f"{i}: rows, told {told}")
        service.empty()
    true(False in seen and None not in seen, f"outcomes: {seen}")


@loop
async def cancelled_commits_that_fail():
    """The same for a commit that fails: rollback() takes it back, and other calls raise its error"""
    checked = "CREATE TABLE thing(p REFERENCES p DEFERRABLE INITIALLY DEFERRED)"
    service.add("deferred", f"CREATE TABLE p(id INTEGER PRIMARY KEY); {checked}")
    seen = set()
    for i in range(1, 30):
        async with connect("deferred") as db:
            await db.execute("INSERT INTO thing VALUES (1)")
            try:
                seen.add(await given_up(db.commit(), i))
                if i % 3:
                    await (db.commit() if i % 2 else db.execute("SELECT 1"))
                    raise AssertionError("the error of the commit is lost")
            except sqlipc.IntegrityError as error:
                true("FOREIGN KEY" in str(error), str(error))
            await db.rollback()
            equal((db.in_transaction, await rows_of(db)), (False, 0), f"{i}: transaction, rows")
    equal(seen, {False}, "outcomes of commits that did not raise their error themselves")


@loop
async def cancelled_scripts():
    """CancelledError of executescript() means that none of its statements has taken effect"""
    script = "INSERT INTO thing(a) VALUES (1);" * 3 + f"INSERT INTO thing(a) SELECT 1 WHERE {SLOWLY};" * 3
    for i in range(15):
        async with connect(autocommit=True) as db:
            told = await given_up(db.executescript(script), i)
            found = await rows_of(db)
            true(told is None or found == 6 * told, f"{i}: {found} rows, told {told}")
        service.empty()


@loop
async def closed_while_it_writes():
    """If another task closes the connection during a write, the outcome is unknown, except in a transaction, which ends"""
    for mode, expected in (({"autocommit": True}, UNKNOWN), ({}, None)):
        async with connect() as holder:
            db = await connect(**mode)
            if not mode:
                await db.execute("INSERT INTO thing(a) VALUES (1)")
                write = db.execute(f"INSERT INTO thing(a) SELECT ({ENDLESS})")
            else:
                await holder.execute("INSERT INTO thing(a) VALUES (1)")
                write = db.execute("INSERT INTO thing(a) VALUES (1)")
            while runs() > 0:  # of tests before
                await asyncio.sleep(0.01)
            task = asyncio.ensure_future(awaited(write))
            while runs() == 0 and not task.done():
                await asyncio.sleep(0.01)
            await db.close()
            error = await fails(sqlipc.Error, task)
            equal(error.service_error, expected, f"{mode}: {error}")
            await holder.rollback()
            if not mode:
                equal(await rows_of(holder), 0, "rows of the transaction")
    service.empty()


@loop
async def killed_while_it_writes():
    """If the service is killed, and the task cancelled: CancelledError means that nothing was written, in each mode"""
    with PythonService(activation=True) as killed:
        for mode in ({}, {"autocommit": True}):
            for i in range(12):
                async with sqlipc.aio.connect("notes", bus=killed.address, timeout=PATIENCE, **mode) as db:
                    await rows_of(db)
                    task = asyncio.ensure_future(awaited(WRITES["slow INSERT"](db)))
                    await asyncio.sleep(0.001 * i)
                    pid = wait_for(lambda: owner_pid(killed), "the service is up")
                    os.kill(pid, signal.SIGKILL)
                    if i % 2:
                        await asyncio.sleep(0.001)
                    task.cancel()
                    told = True
                    try:
                        await task
                    except asyncio.CancelledError:
                        told = False
                    except sqlipc.OperationalError as error:
                        told = None if error.service_error == UNKNOWN else False
                    with contextlib.suppress(sqlipc.OperationalError):  # the transaction is lost, if it had begun
                        await db.commit()
                    await db.rollback()
                    found = await rows_of(db)
                    true(told is not False or found == 0, f"{mode}, {i}: {found} rows, told {told}")
                # The bus sends calls to the service until it has seen its end, and this connection may have a channel to its
                # worker.
                wait_for(lambda: owner_pid(killed) != pid, "the service has ended")
                async with sqlipc.aio.connect("notes", bus=killed.address, timeout=PATIENCE, autocommit=True) as db:
                    await db.execute("DELETE FROM thing")


async def reads(db):
    await db.execute(ENDLESS)


async def changes(db):
    async with db.watch("thing") as watch:
        async for _ in watch:
            pass


async def follows(db):
    async with db.live("SELECT rowid FROM thing") as live:
        async for _ in live:
            pass


async def loads(db):
    """The service computes the first row, so the pipe is full."""
    await db.executemany(f"INSERT INTO thing(a) SELECT ({ENDLESS}) WHERE length(?)", [("x" * 10000,)] * 1000)


async def turns_in_vain(work, which):
    """A descriptor of the connection becomes ready for ever. Returns what the task of `work` and the loop were told."""
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    db = await connect(autocommit=True)
    fd = db._core.link.fileno()
    if work is None:
        make_ready(fd, which)
        while not told:
            await asyncio.sleep(0.001)
        raises(sqlipc.ProgrammingError, db.cursor)
        return told
    task = asyncio.ensure_future(work(db))
    while not (own := [data for data in sets()[fd] if data > WAKE]):
        await asyncio.sleep(0.001)
    for data in own if which is None else [which]:
        make_ready(fd, data)
    return await fails(sqlipc.Error, task), told[0]


@test
def ready_for_ever():
    """A descriptor that is ready for ever, for nothing, closes the connection: the event loop does not spin"""
    for work in (None, reads, changes, follows, loads):
        for which in (BUS, WAKE, None) if work else (BUS, WAKE):
            if pid := os.fork():
                status = os.waitpid(pid, 0)[1]
                equal(status, signal.SIGABRT if INVARIANTS else 0, f"{work}, {which}")
                continue
            try:
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                errors = asyncio.run(asyncio.wait_for(turns_in_vain(work, which), 100))
                os._exit(0 if any("error of the library" in str(error) for error in errors) else 2)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)


@loop
async def no_update_is_lost():
    """Tasks read a number, add 1 and write it, in transactions of each kind, also if they are cancelled: none is lost"""
    for journal in ("wal", "delete"):
        service.add(f"sums-{journal}", "CREATE TABLE number(n); INSERT INTO number VALUES (0)", journal)

        async def add_one(db, how, begun):
            if how != "autocommit":
                await db.execute(how)
            (value,) = await (await db.execute("SELECT n FROM number")).fetchone()
            await asyncio.sleep(0)
            await db.execute("UPDATE number SET n = ?", (value + 1,))
            begun.append("commit")
            await db.commit()

        async def add(how, is_cancelled, name=f"sums-{journal}", add_one=add_one):
            """Returns how many it has written."""
            n = n_tries = 0
            async with connect(name, **{"autocommit": False} if how == "autocommit" else {"isolation_level": None}) as db:
                while n < 20:
                    n_tries, begun = n_tries + 1, []
                    task = asyncio.ensure_future(add_one(db, how, begun))
                    if is_cancelled and n_tries % 3 == 0:
                        for _ in range(n_tries % 7):
                            await asyncio.sleep(0.0005)
                        task.cancel()
                    try:
                        try:
                            await task
                        except asyncio.CancelledError:
                            if not begun:
                                raise
                            await db.commit()  # it goes on
                        n += 1
                        continue
                    except asyncio.CancelledError:
                        pass
                    except sqlipc.OperationalError as error:
                        busy = ("SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_ABORT_ROLLBACK")
                        known = (UNKNOWN, "org.sqlipc1.Error.LimitsExceeded")  # rollbacks of cancelled tasks are under way
                        true(error.service_error in known or error.sqlite_errorname in busy, repr(error))
                    await db.rollback()
            return n

        ways = ("BEGIN", "SAVEPOINT s", "autocommit", "BEGIN IMMEDIATE")
        results = await asyncio.gather(*(add(how, is_cancelled) for how in ways for is_cancelled in (False, True)))
        async with connect(f"sums-{journal}") as db:
            ((value,),) = await (await db.execute("SELECT n FROM number")).fetchall()
        equal(value, sum(results), f"{journal}: the number")


@loop
async def leaves_nothing():
    """Descriptors and references are gone after close(), also of connections that are only dropped"""

    async def once():
        async with connect("chinook") as db:
            await (await db.execute("SELECT * FROM Artist")).fetchone()

    await once()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        await once()
    gc.collect()
    equal(len(os.listdir("/proc/self/fd")), before, "descriptors")
    await asyncio.sleep(0)


@loop
async def killed_while_it_reads():
    """SELECT is repeated if the service is killed, and fails if that happens repeatedly; its outcome is never unknown"""
    with PythonService(activation=True) as killed:
        async with sqlipc.aio.connect("notes", bus=killed.address, timeout=PATIENCE) as db:
            killer = Killer(killed, 18)
            while killer.read_on():
                try:
                    equal(await (await db.execute(f"SELECT 6 * ? WHERE {SLOWLY}", (7,))).fetchall(), [(42,)], "rows")
                except sqlipc.OperationalError as error:
                    true(error.service_error != "org.sqlipc1.Error.OutcomeUnknown", str(error))
        equal(killer.n_killed, 36, "kills")


@test
def service_forgets():
    """The service has no run of ours any more"""
    wait_for(lambda: runs() == 0, "runs end")
    true(True, "")


main(service)
