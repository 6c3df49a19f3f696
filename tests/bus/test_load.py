#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Load and Wait: pages of a client that become rows, every way in which a load ends, and hostile streams."""
import contextlib
import os
import random
import select
import signal
import sqlite3
import struct
import threading

from client import Failure
from gi.repository import GLib
from harness import SANITIZED, expect, main, rss_anon, wait_for
from load_stream import BIG_ROW, END, begin_load, columns, end, frame, row, rows, send, stream, wait_for_load
from tap import at_most, equal, test, true
from writers import DB, numbers, writable

ERRORS = "org.sqlipc1.Error."
INSERT = "INSERT INTO written(number) VALUES (?)"


def load(client, sql=INSERT, options=None):
    return begin_load(client, DB, sql, options)


def wait(client, run):
    return wait_for_load(client, DB, run)


def begin_wait(client, run):
    return client.begin(f"/org/sqlipc1/database/{DB}", "org.sqlipc1.Database", "Wait", "(ta{sv})", run, {})


def failure(client, run):
    try:
        wait(client, run)
    except Failure as f:
        return f.name.removeprefix(ERRORS), f.message
    raise AssertionError("the load has not failed")


@test
def load_and_wait():
    """END commits, and Wait answers before or after it"""
    with writable() as service:
        client = service.client()
        for before in (False, True):
            run, pipe = load(client)
            pending = begin_wait(client, run) if before else None
            send(pipe, stream([[n] for n in range(1000)]))
            changes = pending.result()[0].get_int64() if before else wait(client, run)[0]
            equal(changes, 1000, "changes")
            equal(len(numbers(service)), 2000 if before else 1000, "rows in the file")
            expect("UnknownRun", wait, client, run)
            client.drop(pipe)


@test
def all_types():
    """Each type arrives as it was sent, also a row larger than a page"""
    values = [1 << 40, -0.5, "tëxt\0x", b"\0\xff", None]
    with writable() as service:
        client = service.client()
        big = row([1, 2.5, "x" * 200000, bytes(100), None])
        with contextlib.closing(sqlite3.connect(service.written, timeout=120)) as db:
            db.execute("CREATE TABLE typed(a, b, c, d, e)")
        run, pipe = load(client, "INSERT INTO typed VALUES (?, ?, ?, ?, ?)")
        frames = columns(5) + rows([values])
        for at in range(0, len(big), 60000):
            part = big[at : at + 60000]
            frames += frame(BIG_ROW, part, flags=int(at + 60000 < len(big)))
        send(pipe, frames + end(2, frames))
        equal(wait(client, run)[0], 2, "changes")
        with contextlib.closing(sqlite3.connect(service.written, timeout=120)) as db:
            found = db.execute("SELECT * FROM typed ORDER BY a DESC").fetchall()
        equal(list(found[0]), values, "values")
        equal(len(found[1][2]), 200000, "the long value")


@test
def pages_of_a_query():
    """The bytes of a Query can be written into a load as they are"""
    with writable() as service:
        client = service.client()
        run, pipe = load(client)
        send(pipe, stream([[n] for n in range(5000)]))
        wait(client, run)
        values, fds = client.database(
            DB, "Query", "(sava{sv}a{sv})", "SELECT number + 10000 FROM written", [], {}, {}
        )
        source = fds[values[1].get_handle()]
        run, pipe = load(client)
        data = b""
        while not ends(data):
            data = os.read(source, 65536)
            send(pipe, data)
        equal(wait(client, run)[0], 5000, "changes")
        equal(len(numbers(service)), 10000, "rows")


def ends(data):
    """The last frame of a run is END: a header, and 56 bytes or, where more is known of the run, 72 or 80."""
    return any(data[-16 - size : -11 - size] == struct.pack("<IB", size, END) for size in (56, 72, 80))


@test
def one_error_takes_all_back():
    """An error names the row, the client gets EPIPE, and nothing is written"""
    with writable() as service:
        client = service.client()
        run, pipe = load(client, "INSERT INTO single VALUES (?)")
        send(pipe, columns(1) + rows([[1], [2], [1], [3]]))
        name, message = failure(client, run)
        equal(name, "Sql", "error")
        true("row 3" in message, message)
        with contextlib.suppress(BrokenPipeError):
            while True:
                os.write(pipe, bytes(4096))
        with contextlib.closing(sqlite3.connect(service.written, timeout=120)) as db:
            equal(db.execute("SELECT count(*) FROM single").fetchone(), (0,), "rows")
        expect("NotAllowed", load, client, "SELECT ?")
        expect("NotAllowed", load, client, INSERT + " RETURNING number")
        expect("NotAllowed", load, client, "CREATE TABLE y(x)")
        expect("ParameterCount", load, client, "DELETE FROM written")
        expect("SeveralStatements", load, client, INSERT + ";" + INSERT)
        run, pipe = load(client)
        send(pipe, stream([[1, 2]]))
        equal(failure(client, run)[0], "ParameterCount", "two values")


@test
def end_of_file():
    """A pipe that ends before END, a cancelled load, and a client that leaves the bus write nothing"""
    with writable() as service:
        client, other = service.client(), service.client()
        run, pipe = load(client)
        send(pipe, columns(1) + rows([[1], [2]]))
        client.drop(pipe)
        equal(failure(client, run)[0], "Cancelled", "end of file")
        run, pipe = load(client)
        send(pipe, columns(1) + rows([[1], [2]]))
        client.cancel(DB, run)
        equal(failure(client, run)[0], "Cancelled", "cancel")
        leaver = service.client()
        run, pipe = load(leaver)
        keeps = os.dup(pipe)
        send(pipe, columns(1) + rows([[1], [2]]))
        leaver.close()
        equal(other.execute(DB, INSERT, [9])[0], 1, "changes of the other")
        with contextlib.suppress(BrokenPipeError):
            while True:
                os.write(keeps, bytes(4096))
        os.close(keeps)
        equal(numbers(service), [9], "rows")


@test
def rights_and_others():
    """A load belongs to its client, and needs the right to write"""
    with writable() as service:
        client = service.client()
        run, pipe = load(client)
        expect("UnknownRun", wait, service.client(), run)
        first = begin_wait(client, run)
        expect("Busy", wait, client, run)
        send(pipe, stream([[1]]))
        equal(first.result()[0].get_int64(), 1, "changes")
        service.database(DB, Path=service.written)
        service.driver.manager("Reload")
        expect("ReadOnly", load, client)


@test
def silent_loads_delay_no_one():
    """A load without rows keeps no writer waiting, nor does one that stops for longer than TransactionIdleSec="""
    with writable(limits={"TransactionIdleSec": "1s"}) as service:
        client, other = service.client(), service.client()
        silent, _ = load(client)
        equal(other.execute(DB, INSERT, [1])[0], 1, "beside a silent load")
        stopped, pipe = load(client)
        send(pipe, columns(1) + rows([[5]]))
        equal(other.execute(DB, INSERT, [2])[0], 1, "beside a load that stopped")
        equal(failure(client, stopped)[0], "TransactionEnded", "error")
        client.cancel(DB, silent)
        equal(numbers(service), [1, 2], "rows")


@test
def in_a_transaction():
    """A load in a transaction is one statement of it"""
    with writable() as service:
        client = service.client()
        values, _ = client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
        t = values[0].get_uint64()
        inside = {"transaction": GLib.Variant("t", t)}
        client.execute(DB, INSERT, [100], options=inside)
        run, pipe = load(client, options=inside)
        send(pipe, stream([[1], [2]]))
        equal(wait(client, run)[0], 2, "changes")
        run, pipe = load(client, options=inside)
        send(pipe, columns(1) + rows([[3]]) + bytes(64))
        equal(failure(client, run)[0], "InvalidRequest", "error")
        equal(numbers(service), [], "before the commit")
        client.database(DB, "Commit", "(ta{sv})", t, {})
        equal(numbers(service), [1, 2, 100], "after it")


@test
def full_pipe():
    """A client that sends 100 MiB while another program has the lock fills the pipe, not the memory; all rows arrive"""
    n, text = 3200, "x" * 32768
    with writable(limits={"BusyTimeoutSec": 600, "TransactionTimeoutSec": 600}) as service:
        client, sent = service.client(), []
        with contextlib.closing(sqlite3.connect(service.written, timeout=120, isolation_level=None)) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            run, pipe = load(client, "INSERT INTO written(number, t) VALUES (?, ?)")
            (worker,) = service.workers()
            before = rss_anon(worker)

            def write():
                frames = [rows([[number, text]], 1) for number in range(n)]
                send(pipe, columns(2))
                for each in frames:
                    send(pipe, each)
                    sent.append(len(each))
                send(pipe, end(n, columns(2) + b"".join(frames)))

            writer = threading.Thread(target=write)
            writer.start()
            wait_for(lambda: sent and not select.select([], [pipe], [], 0.5)[1], "the pipe is full")
            at_most(sum(sent), 4 << 20, "bytes that were taken before the first row was written")
            at_most(rss_anon(worker) - before, 8 << 20, "memory of the worker")
            equal(foreign.execute("SELECT count(*) FROM written").fetchone(), (0,), "rows before its turn")
            foreign.execute("ROLLBACK")
            changes, results = wait(client, run)
            writer.join()
            equal((changes, results["rows"]), (n, n), "changes, rows")
            if not SANITIZED:  # sanitizers keep memory that was freed
                at_most(rss_anon(worker) - before, 32 << 20, "memory of the worker after it")
            sums = foreign.execute("SELECT count(*), sum(number), sum(length(t)), count(DISTINCT t) FROM written").fetchone()
            equal(sums, (n, n * (n - 1) // 2, n * len(text), 1), "what arrived")


@test
def lost_worker():
    """A worker that is killed in the middle of a load has written nothing"""
    with writable() as service:
        client = service.client()
        run, pipe = load(client)
        send(pipe, columns(1) + rows([[1], [2]]))
        for pid in service.workers():
            os.kill(pid, signal.SIGKILL)
        equal(failure(client, run)[0], "WorkerLost", "error")
        equal(numbers(service), [], "rows")


@test
def hostile_streams():
    """Streams with changed bytes end with an error, or are complete; the service goes on"""
    good = stream([[n] for n in range(20)])
    r = random.Random(1)
    with writable() as service:
        client = service.client()
        for _ in range(60):
            data = bytearray(good)
            for _ in range(r.randrange(1, 4)):
                data[r.randrange(len(data))] = r.randrange(256)
            data = data[: r.randrange(len(data) + 1)] if r.random() < 0.3 else data
            run, pipe = load(client)
            with contextlib.suppress(BrokenPipeError):
                send(pipe, bytes(data))
            client.drop(pipe)
            try:
                equal(wait(client, run)[0], 20, "changes")
            except Failure as f:
                name = f.name.removeprefix(ERRORS)
                true(name in ("InvalidRequest", "Cancelled", "ParameterCount", "RowTooLarge", "Sql"), str(f))
        equal(len(numbers(service)) % 20, 0, "rows of whole loads")


main()
