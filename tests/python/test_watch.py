#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Watches and live queries of the Python package, also in an event loop."""

import asyncio
import contextlib
import gc
import os
import sqlite3
import threading

import sqlipc
import sqlipc.aio
from harness import PATIENCE, main
from python_service import SLOWLY, Killer, PythonService, raises
from tap import equal, test, true

service = PythonService()


def write(*statements):
    with contextlib.closing(service.connect(isolation_level=None)) as db:
        for sql in statements:
            db.execute(sql)


@test
def watch():
    """A watch reports changes of its tables by other programs, and those of the file's own writers, and no others"""
    with contextlib.closing(service.connect()) as db:
        with db.watch("note") as watched:
            equal(watched.wait(0), False, "before a change")
            before = watched.sequence
            write("INSERT INTO note(text) VALUES ('a')")
            equal(watched.wait(PATIENCE), True, "after a change")
            true(watched.sequence > before, "sequence")
            db.execute("INSERT INTO note(text) VALUES ('b')")
            db.commit()
            equal(next(watched) > before, True, "an iteration, after a change of its own connection")
        raises(sqlipc.ProgrammingError, watched.wait)
        raises(sqlipc.OperationalError, db.watch, "nothing")
        with db.watch() as everything:
            write("INSERT INTO thing VALUES (1, 2, 3)")
            equal(everything.wait(PATIENCE), True, "a watch of all tables")
    service.empty()


@test
def interrupted():
    """interrupt() ends the wait of a watch, which goes on"""
    with contextlib.closing(service.connect(check_same_thread=False)) as db, db.watch("note") as watched:
        failed = []

        def work():
            failed.append(raises(sqlipc.OperationalError, watched.wait))

        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            db.interrupt()
            thread.join(0.05)
        equal(failed[0].sqlite_errorname, "SQLITE_INTERRUPT", "name")
        write("INSERT INTO note(text) VALUES ('a')")
        equal(watched.wait(PATIENCE), True, "afterwards")
    service.empty()


@test
def live():
    """A live query reports rows that are added, changed, moved and removed, and keeps the list"""
    write("INSERT INTO note VALUES (1, 'b'), (2, 'c')")
    sql = "SELECT id, text FROM note WHERE id > ? ORDER BY text"
    with contextlib.closing(service.connect()) as db, db.live(sql, (0,)) as result:
        equal(result.settle(60), [(1, "b"), (2, "c")], "first result")
        equal(result.columns, ("id", "text"), "columns")
        equal(result.next(0), None, "without a change")
        write("INSERT INTO note VALUES (3, 'a')")
        change = result.next(60)
        equal((change.kind, change.position, change.row), ("added", 0, (3, "a")), "added")
        equal(result.settle(60), [(3, "a"), (1, "b"), (2, "c")], "rows")
        write("UPDATE note SET text = 'z' WHERE id = 3", "DELETE FROM note WHERE id = 1")
        while result.rows != [(2, "c"), (3, "z")]:
            true(result.settle(60) is not None, "the rows become those of the table")
        raises(sqlipc.OperationalError, db.live, "SELECT nothing FROM note")
        raises(sqlipc.ProgrammingError, db.live, "SELECT ?", ())
    service.empty()


@test
def in_a_loop():
    """Both in an event loop; cancelling a wait loses nothing"""

    async def work():
        async with sqlipc.aio.connect("notes", bus=service.address) as db:
            async with db.watch("note") as watched, db.live("SELECT id, text FROM note", key=(0,)) as result:
                equal(await result.settle(), [], "first result")
                waiting = asyncio.ensure_future(watched.wait())
                await asyncio.sleep(0.1)
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await waiting
                await asyncio.to_thread(write, "INSERT INTO note VALUES (1, 'a')")
                await watched.wait()
                equal(await result.settle(), [(1, "a")], "rows")
                await asyncio.to_thread(write, "DELETE FROM note")
                async for change in result:
                    equal(change.kind, "removed", "an iteration")
                    break

    asyncio.run(asyncio.wait_for(work(), 100))
    service.empty()


@test
def interrupted_in_a_loop():
    """In an event loop interrupt() ends the waits of watches and live queries, from any thread; they go on"""

    async def work():
        async with sqlipc.aio.connect("notes", bus=service.address) as db:
            async with db.watch("note") as watched, db.live("SELECT id, text FROM note", key=(0,)) as result:
                await result.settle()
                for interrupt in (db.interrupt, lambda: threading.Thread(target=db.interrupt).start()):
                    waiting = [asyncio.ensure_future(wait()) for wait in (watched.wait, watched.wait, result.next)]
                    await asyncio.sleep(0.1)
                    equal([one.done() for one in waiting], [False] * 3, "before")
                    interrupt()
                    for one in waiting:
                        try:
                            await one
                            true(False, "the wait returned")
                        except sqlipc.OperationalError as error:
                            equal(error.sqlite_errorname, "SQLITE_INTERRUPT", "name")
                await asyncio.to_thread(write, "INSERT INTO note VALUES (1, 'a')")
                await watched.wait()
                equal(await result.settle(), [(1, "a")], "rows")

    asyncio.run(asyncio.wait_for(work(), 100))
    service.empty()


@test
def nothing_left():
    """Watches and live queries that are only dropped leave no descriptor"""
    with contextlib.closing(service.connect()) as db:

        def once():
            db.watch("note")
            db.live("SELECT id FROM note").next(60)
            db.execute("SELECT 1").fetchall()

        for _ in range(3):
            once()
        gc.collect()
        descriptors = len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            once()
        gc.collect()
        equal(len(os.listdir("/proc/self/fd")), descriptors, "descriptors")


@test
def killed_under_a_live_query():
    """A live query goes on without an error while the service is killed again and again, and has the right rows"""
    n_killed, expected = 0, []
    with PythonService(activation=True) as killed, contextlib.closing(sqlite3.connect(killed.notes)) as file:
        for _ in range(8):  # a watch that is lost often is made again after pauses that grow
            with contextlib.closing(killed.connect()) as db:
                live = db.live(f"SELECT id, text FROM note WHERE {SLOWLY} ORDER BY id")
                killer = Killer(killed, 3)
                while killer.read_on():
                    expected.append((len(expected) + 1, f"text {len(expected)}"))
                    with file:
                        file.execute("INSERT INTO note VALUES (?, ?)", expected[-1])
                    while live.rows != expected:
                        true(live.settle(PATIENCE) is not None, "the live query goes on")
                n_killed += killer.n_killed
    equal(n_killed, 48, "kills")


main(service)
