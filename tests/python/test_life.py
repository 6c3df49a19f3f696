#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Threads, signals, fork, garbage collection in any order, interpreters, leaks."""

import contextlib
import gc
import inspect
import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import threading
import time
import weakref

import sqlipc
from harness import PATIENT, SANITIZED, main, wait_for
from python_service import SLOWLY, PythonService, raises
from tap import at_most, equal, test, true

service = PythonService()
UNSUPPORTED = (
    "create_function create_aggregate create_window_function create_collation set_authorizer set_progress_handler"
    " enable_load_extension load_extension blobopen serialize deserialize setconfig getconfig"
).split()
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"


@test
def one_thread():
    """A connection belongs to its thread, unless check_same_thread is False"""
    with contextlib.closing(service.connect("chinook")) as db:
        found = []

        def other():
            found.append(raises(sqlipc.ProgrammingError, db.execute, "SELECT 1"))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        true("thread" in str(found[0]), found)


def thread_failures(module, db, cursor):
    """Calls all methods and attributes of a connection and of its cursor in another thread. Returns the names of those that
    are refused because of the thread, and of those that fail otherwise."""
    arguments = {
        "backup": ("/nowhere/copy",) if module is sqlipc else (module.connect(":memory:"),),
        "blobopen": ("note", "text", 1),
        "cursor": (),
        "execute": ("SELECT 1",),
        "executemany": ("INSERT INTO note(text) VALUES (?)", [("x",)]),
        "executescript": ("SELECT 1",),
        "create_aggregate": ("f", 1, object),
        "create_collation": ("f", lambda a, b: 0),
        "create_function": ("f", 0, int),
        "create_window_function": ("f", 1, object),
        "deserialize": (b"",),
        "enable_load_extension": (False,),
        "getlimit": (1,),
        "load_extension": ("x",),
        "setlimit": (1, -1),
        "set_authorizer": (None,),
        "set_progress_handler": (None, 1),
        "set_trace_callback": (None,),
        "setinputsizes": ([],),
        "setoutputsize": (1,),
        "__exit__": (None, None, None),
        "live": ("SELECT 1",),
        "set_run_timeout": (1,),
        "isolation_level": (None,),
        "autocommit": (True,),
    }
    refused, failed = set(), set()

    def call(thing, name):
        member = getattr(type(thing), name)
        if callable(member):
            outcome = getattr(thing, name)(*arguments.get(name, ()))
            if name == "iterdump":
                next(outcome)
        elif name in arguments:
            setattr(thing, name, *arguments[name])
        else:
            getattr(thing, name)

    def work():
        for thing in (cursor, db):
            names = {name for name in dir(type(thing)) if not name.startswith("_")} - {"interrupt"}  # for any thread
            names |= {"__next__"} if thing is cursor else {"__enter__", "__exit__"}
            for name in sorted(names, key=lambda name: name == "close"):
                if inspect.isclass(getattr(type(thing), name)):  # an exception
                    continue
                label = f"{'cursor' if thing is cursor else 'connection'}.{name}"
                try:
                    call(thing, name)
                except module.ProgrammingError as error:
                    (refused if "same thread" in str(error) else failed).add(label)
                except Exception:  # noqa: BLE001 - as in the test
                    failed.add(label)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return refused, failed


@test
def each_method_in_another_thread():
    """check_same_thread is enforced by each method that enforces it in sqlite3, and nothing has happened then"""
    with contextlib.closing(sqlite3.connect(":memory:")) as yardstick, contextlib.closing(service.connect()) as db:
        yardstick.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, text UNIQUE)")
        found = []
        for module, connection in ((sqlite3, yardstick), (sqlipc, db)):
            connection.execute("INSERT INTO note(text) VALUES ('a')")
            cursor = connection.execute("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3")
            equal(cursor.fetchone(), (1,), "row")
            found.append(thread_failures(module, connection, cursor))
            if module is sqlipc:  # the cursor of Python 3.13 refuses execute(), and has lost its rows by then
                equal(cursor.fetchall(), [(2,), (3,)], "the other rows")
            true(connection.in_transaction, "the transaction was ended")
            connection.rollback()
        (theirs, _), (ours, unsupported) = found
        true({"cursor.fetchone", "connection.cursor", "connection.rollback"} <= theirs, theirs)
        equal(sorted(theirs - ours - unsupported), [], "calls that only sqlite3 refuses")
        supported = {name for name in unsupported if name.partition(".")[2] not in UNSUPPORTED}
        equal(supported, set(), "calls that failed otherwise")


@test
def watches_in_another_thread():
    """Watches and live queries belong to the thread of their connection, also the first change and close()"""
    with contextlib.closing(service.connect()) as db, db.watch("note") as watched, db.live("SELECT 1") as live:
        calls = (lambda: watched.wait(0), lambda: watched.sequence, watched.close, lambda: live.next(0), live.close)
        found = []
        thread = threading.Thread(target=lambda: found.extend(raises(sqlipc.ProgrammingError, call) for call in calls))
        thread.start()
        thread.join()
        equal(["same thread" in str(error) for error in found], [True] * len(calls), found)
        equal(live.settle(), [(1,)], "rows")
        equal(watched.wait(0), False, "the watch goes on")
        live.close()
        true("closed" in str(raises(sqlipc.ProgrammingError, live.next)), "next() after close()")


@test
def closed_by_another_thread():
    """close() from another thread is refused, and disturbs nothing: neither the run that is read nor the transaction"""
    with contextlib.closing(service.connect()) as db:
        db.execute("INSERT INTO note(text) VALUES ('kept')")
        rows = db.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 99999) SELECT x FROM c")
        rows.fetchone()
        found = []
        thread = threading.Thread(target=lambda: found.append(raises(sqlipc.ProgrammingError, db.close)))
        thread.start()
        thread.join()
        true("thread" in str(found[0]), found)
        equal(len(rows.fetchall()), 99998, "the other rows")
        db.commit()
        equal(db.execute("SELECT text FROM note").fetchall(), [("kept",)], "rows")
    service.empty()


@test
def configured_while_it_is_configured():
    """A converter that is dropped by configure() may configure the run again, and each one is freed once"""

    class Converter:
        def __init__(self, is_last):
            self.is_last = is_last

        def __call__(self, data):
            return data

        def __del__(self):
            freed.append(self.is_last)
            if not self.is_last:
                run.configure([Converter(True)], Converter(True))

    freed = []
    link = service.connect("chinook")._core.link
    run = link.execute(sqlipc._native.Sql(link, "SELECT Name FROM Artist", ()), ())
    run.configure([Converter(False)], Converter(False))
    run.configure([Converter(False)], Converter(False))
    for _ in range(3):
        run.configure(None, None)
    equal((freed.count(False), freed.count(True)), (4, 8), "converters that were freed")
    equal(run.fetchone(), ("AC/DC",), "row")
    run.configure([lambda data: run.configure(None, None) or data.upper()], None)
    equal(run.fetchone(), (b"ACCEPT",), "row whose converter is dropped by its own call")
    link.close()


@test
def shared_connection():
    """Threads that share a connection get their own answers, while others read, write and drop cursors"""
    with contextlib.closing(service.connect(check_same_thread=False, isolation_level=None)) as db:
        failures = []

        def work(number):
            try:
                for i in range(60):
                    key = number * 1000 + i
                    equal(db.execute("SELECT ?, ?", (key, str(key))).fetchone(), (key, str(key)), "answer")
                    if i % 20 == number % 20:
                        db.execute("INSERT INTO thing VALUES (?, ?, NULL)", (number, i))
                    if i % 10 == 0:
                        db.execute(
                            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 9999) SELECT x FROM c"
                        )
                        rows = db.execute("SELECT * FROM thing")
                        rows.fetchone()
            except BaseException as error:  # noqa: BLE001 - reported by the main thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(failures, [], "failures")
        equal(db.execute("SELECT count(*) FROM thing").fetchone(), (18,), "rows")
    service.empty()


@test
def failure_kept_for_its_reader():
    """If an open cursor fails while a write reads its rows ahead, the write succeeds, and the cursor has the failure"""
    with contextlib.closing(service.connect(isolation_level=None)) as db:
        rows = db.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c")
        equal(rows.fetchone(), (1,), "first row")
        db.interrupt()
        # Looking an attribute up that is not in this cache clears an exception that is set.
        sys._clear_type_cache()
        equal(db.execute("INSERT INTO thing(a) VALUES (1)").rowcount, 1, "the write")
        error = raises(sqlipc.OperationalError, rows.fetchall)
        equal(error.sqlite_errorname, "SQLITE_INTERRUPT", "the failure of the cursor")
    service.empty()


@test
def releases_the_interpreter():
    """Other threads run while one waits for rows"""
    with contextlib.closing(service.connect("chinook", check_same_thread=False)) as db:
        thread = threading.Thread(target=lambda: raises(sqlipc.OperationalError, db.execute, ENDLESS))
        thread.start()
        # This loop would not turn if the waiting thread kept the interpreter.
        wait_for(lambda: service.counters()["NRuns"] > 0, "the run begins")
        for _ in range(1000):
            time.sleep(0)
        while thread.is_alive():
            db.interrupt()
            thread.join(0.05)


@test
def recursive_use():
    """A cursor that is used by its own row factory or converter refuses"""
    sqlipc.register_converter("again", lambda value: cursor.fetchone())
    with contextlib.closing(service.connect("chinook", detect_types=sqlipc.PARSE_COLNAMES)) as db:
        cursor = db.execute('SELECT 1 AS "x [again]" UNION ALL SELECT 2')
        raises(sqlipc.ProgrammingError, cursor.fetchone)
        equal(db.execute("SELECT 1").fetchone(), (1,), "the connection works on")


@test
def adapter_in_a_load():
    """An adapter that executemany() calls may not execute, commit or roll back: it gets an error, and nothing waits"""

    class Value:
        pass

    with contextlib.closing(service.connect()) as db:
        for call in (db.commit, db.rollback, lambda: db.execute("SELECT 1"), lambda: db.executescript("SELECT 1")):
            sqlipc.register_adapter(Value, lambda value, call=call: call())
            error = raises(sqlipc.ProgrammingError, db.executemany, "INSERT INTO thing(a) VALUES (?)", [(1,), (Value(),)])
            true("Recursive" in str(error), error)
            equal(db.execute("SELECT count(*) FROM thing").fetchone(), (1,), "rows: the one before")
            db.rollback()


@test
def signals():
    """Ctrl-C ends a query that computes, and a signal handler runs while a call waits"""
    with contextlib.closing(service.connect("chinook")) as db:
        handled = []
        signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
        timer = threading.Timer(0.3, lambda: (os.kill(os.getpid(), signal.SIGUSR1), os.kill(os.getpid(), signal.SIGINT)))
        timer.start()
        try:
            db.execute(ENDLESS)
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("no KeyboardInterrupt")
        timer.join()
        equal(handled, [1], "handler")
        equal(db.execute("SELECT 1").fetchone(), (1,), "afterwards")
        wait_for(lambda: service.counters()["NRuns"] == 0, "the run ends")


class HandlerError(Exception):
    """What the signal handler of a test raises, as a program does that limits the time of a call by alarm()."""


def signalled(db, write, kind, delay):
    """Calls write(db), and meanwhile has a signal handler raise an exception. Returns that, or None if the call was done."""

    def handle(_, frame):
        if frame.f_code.co_name == "until":  # not before or after the wait
            raise kind

    signal.signal(signal.SIGUSR1, handle)
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        write(db)
        return None
    except (KeyboardInterrupt, HandlerError) as error:
        return error
    finally:
        timer.join()


@test
def signals_during_writes():
    """If a signal handler raises an exception during a write, its cause says so if something may have been written"""
    writes = {
        "INSERT": (1, lambda db: db.execute(f"INSERT INTO thing(a) SELECT 1 WHERE {SLOWLY}")),
        "RETURNING": (1, lambda db: db.execute(f"INSERT INTO thing(a) SELECT 1 WHERE {SLOWLY} RETURNING a")),
        "a load": (9, lambda db: db.executemany(f"INSERT INTO thing(a) SELECT ? WHERE {SLOWLY}", [(1,)] * 9)),
        "row by row": (2, lambda db: db.executemany("INSERT INTO thing(a) VALUES (?) RETURNING a", [(1,)] * 2)),
        "two loads": (10001, lambda db: db.executemany("INSERT INTO thing(a) VALUES (?)", iter([(1,)] * 10001))),
    }
    seen = set()
    for autocommit, (name, (n, write)), i in itertools.product((True, False), writes.items(), range(12)):
        what = f"autocommit={autocommit}, {name}, {i}"
        with contextlib.closing(service.connect(autocommit=autocommit)) as db:
            error = signalled(db, write, (KeyboardInterrupt, HandlerError)[i % 2], 0.001 * i)
            told = "done" if error is None else "nothing" if error.__cause__ is None else error.__cause__.service_error
            seen.add(told)
            if told.endswith("OutcomeUnknown"):
                db.rollback()
            else:
                try:
                    db.commit()
                except sqlipc.OperationalError as failure:  # the Cancel has rolled the transaction back
                    equal((failure.sqlite_errorname, told), ("SQLITE_ABORT_ROLLBACK", "nothing"), what)
                    db.rollback()
                found = db.execute("SELECT count(*) FROM thing").fetchone()[0]
                equal(found, n if told == "done" else 0, f"{what}: rows, told {told}")
        service.empty()
    true("nothing" in seen, f"outcomes: {seen}")


@test
def signal_during_a_load_that_waits():
    """A load that waits for another writer when a signal handler ends it has written nothing, also later"""
    raised, stop = [], threading.Event()

    def handle(_, frame):
        if not raised and frame.f_code.co_name == "until" and frame.f_back.f_code.co_name == "finish":
            raised.append(frame)
            raise KeyboardInterrupt

    def signal_often():
        while not stop.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    signal.signal(signal.SIGUSR1, handle)
    with contextlib.ExitStack() as stack:
        patient = stack.enter_context(PythonService(limits=PATIENT))
        holder = stack.enter_context(contextlib.closing(patient.connect(isolation_level=None)))
        db = stack.enter_context(contextlib.closing(patient.connect(autocommit=True)))
        holder.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=signal_often)
        thread.start()
        try:
            error = raises(KeyboardInterrupt, db.executemany, "INSERT INTO thing(a) VALUES (?)", [(1,)] * 3)
        finally:
            stop.set()
            thread.join()
        equal(error.__cause__, None, "what is unknown")
        holder.execute("ROLLBACK")
        equal(holder.execute("SELECT count(*) FROM thing").fetchone(), (0,), "rows")
        equal(db.executemany("INSERT INTO thing(a) VALUES (?)", [(1,)] * 3).rowcount, 3, "the next load")


@test
def signals_during_commits():
    """A commit that a signal handler ends goes on, as the cause of the exception says; another one tells the result"""
    for i in range(20):
        with contextlib.closing(service.connect(autocommit=False)) as db:
            db.executemany("INSERT INTO thing(a) VALUES (?)", [("x" * 1000,)] * 3000)
            error = signalled(db, lambda db: db.commit(), KeyboardInterrupt, 0.0005 * i)
            true(error is None or error.__cause__.service_error.endswith("OutcomeUnknown"), f"{i}: {error!r}")
            db.commit()
            equal(db.execute("SELECT count(*) FROM thing").fetchone(), (3000,), f"{i}: rows")
        service.empty()


@test
def fork():
    """A child cannot use the connection of its parent, may drop it, and may open its own; the parent goes on"""
    db = service.connect("chinook")
    rows = db.execute("SELECT TrackId FROM Track ORDER BY 1")
    first = rows.fetchone()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            raises(sqlipc.ProgrammingError, db.execute, "SELECT 1")
            del rows
            db.close()
            gc.collect()
            with contextlib.closing(service.connect("chinook")) as own:
                equal(own.execute("SELECT count(*) FROM Track").fetchone(), (3503,), "rows in the child")
            code = 0
        finally:
            os._exit(code)
    equal(os.waitpid(child, 0)[1], 0, "exit status of the child")
    equal(first + rows.fetchmany(2)[1], (1, 3), "rows in the parent")
    equal(len(rows.fetchall()), 3500, "more rows in the parent")
    db.close()


@test
def any_order():
    """Connection, cursors and rows are freed in any order, also by the collector of cycles"""
    for order in itertools.permutations(range(4)):
        db = service.connect("chinook")
        db.row_factory = sqlipc.Row
        read = db.execute("SELECT * FROM Track")
        row = read.fetchone()
        unread = db.execute("SELECT * FROM Album")
        objects = [db, read, row, unread]
        del db, read, row, unread
        for i in order:
            objects[i] = None
    gone = []
    for _ in range(10):
        db = service.connect("chinook")
        cursor = db.execute("SELECT * FROM Track")
        cursor.fetchone()
        db.loop, cursor.loop = cursor, db
        db.text_factory = lambda text, db=db: text
        gone.append(weakref.ref(db))
        del db, cursor
    gc.collect()
    equal([reference() for reference in gone], [None] * 10, "connections in cycles")
    wait_for(lambda: service.counters()["NRuns"] == 0, "their runs end")


@test
def subinterpreter():
    """A subinterpreter is refused by a sentence"""
    code = f"import sys\nsys.path[:] = {sys.path!r}\nimport sqlipc"
    if sys.version_info >= (3, 13):  # which refuses by itself where interpreters share no lock
        kinds = {
            "'legacy'": "does not work in a subinterpreter",
            "'isolated'": "does not support loading in subinterpreters",
        }
        program = "import _interpreters as s; raise SystemExit(s.exec(s.create({}), {!r}).formatted)"
    else:
        kinds = {"": "does not work in a subinterpreter"}
        program = "import _xxsubinterpreters as s; s.run_string(s.create({}), {!r})"
    for kind, sentence in kinds.items():
        done = subprocess.run(
            [sys.executable, "-c", program.format(kind, code)], capture_output=True, text=True, check=False
        )
        true(done.returncode != 0 and sentence in done.stderr, f"{kind} {done.stderr}")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, sqlipc; del sys.modules['sqlipc._native']; import importlib; "
            "importlib.reload(sqlipc); print(sqlipc.version)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    equal(done.stdout.strip(), sqlipc.version, "version after importing twice")


@test
def end_of_process():
    """A process that ends with open connections, cursors and transactions ends cleanly"""
    program = f"""
import sqlipc, threading
db = sqlipc.connect("notes", bus={service.address!r})
db.execute("INSERT INTO note(text) VALUES ('x')")
cursor = db.execute("SELECT 1 UNION SELECT 2")
cursor.fetchone()
other = sqlipc.connect("chinook", bus={service.address!r}, check_same_thread=False)
threading.Thread(target=lambda: other.execute({ENDLESS!r}), daemon=True).start()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    equal((done.returncode, done.stderr), (0, ""), "end")
    wait_for(lambda: service.counters()["NRuns"] == 0, "its runs end")


def operations(db, reader):
    """What must leave nothing behind, by name; also what fails."""

    def fails(sql, values=()):
        with contextlib.suppress(sqlipc.Error):
            db.execute(sql, values).fetchall()

    def load():
        db.executemany("INSERT INTO note(text) VALUES (?)", [("a",), (sqlipc.Date(2026, 1, 2),), (memoryview(b"x"),)])
        db.rollback()

    def failing_load():
        with contextlib.suppress(sqlipc.Error):
            db.executemany("INSERT INTO note(text) VALUES (?)", [("b",), ("b",)])
        db.rollback()

    def row():
        one = sqlipc.Row(db.execute("SELECT 1 AS a"), (5,))
        equal((dict(one), one["A"], one[0:1], hash(one) == 0, one.keys()), ({"a": 5}, 5, (5,), False, ["a"]), "row")

    def connect():
        with contextlib.closing(service.connect()) as more:
            more.execute("SELECT 1").fetchone()

    def drain():
        rows = reader.execute("SELECT * FROM Genre")
        reader.execute("BEGIN")
        reader.execute("SELECT 1").fetchone()
        reader.rollback()
        equal(len(rows.fetchall()), 25, "rows")

    return {
        "part of a result": lambda: reader.execute("SELECT * FROM Album LIMIT 70").fetchone(),
        "a result": lambda: reader.execute("SELECT * FROM Genre").fetchall(),
        "parameters": lambda: list(reader.execute("SELECT ?, ?, ?, ?", (1, "text", 1.5, b"blob"))),
        "a wrong statement": lambda: fails("SELECT nothing"),
        "a wrong parameter": lambda: fails("SELECT ?", (object(),)),
        "a value that is not UTF-8": lambda: fails("SELECT CAST(x'ff' AS TEXT)"),
        "a load": load,
        "a load that fails": failing_load,
        "a row with names": row,
        "a connection": connect,
        "rows read ahead": drain,
        "a dump": lambda: list(db.iterdump()),
    }


def growth(operation, n):
    """How many blocks, objects, references to None and descriptors there are more, or fewer, after the operation."""

    def count():
        gc.collect()
        return sys.getallocatedblocks(), len(gc.get_objects()), sys.getrefcount(None), len(os.listdir("/proc/self/fd"))

    before = count()
    for _ in range(n):
        operation()
    return [after - first for after, first in zip(count(), before)]


@test
def leaks():
    """Nothing grows: objects, blocks of memory, references to constants, descriptors"""
    n = 200
    with contextlib.closing(service.connect()) as db, contextlib.closing(service.connect("chinook")) as reader:
        for name, operation in operations(db, reader).items():
            growth(operation, n // 2)
            # Python keeps some freed blocks for itself, and threads of other tests may end meanwhile. A leak would be one
            # for each time at least, and would come again.
            for _ in range(3):
                blocks, objects, none, descriptors = growth(operation, n)
                if blocks <= n * 3 // 4 and objects <= n // 4 and abs(none) <= n // 2 and descriptors == 0:
                    break
            at_most(blocks, n * 3 // 4, f"blocks more after {name}")
            at_most(objects, n // 4, f"objects more after {name}")
            at_most(abs(none), n // 2, f"references to None more or less after {name}")
            equal(descriptors, 0, f"descriptors more after {name}")


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory():
    """Reading a large result row by row, and many results, takes no more memory than before"""
    with contextlib.closing(service.connect("chinook")) as db:
        long = (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 60000) SELECT x, hex(zeroblob(300)) FROM c"
        )

        def read():
            for _ in db.execute(long):
                pass
            for _ in range(100):
                db.execute("SELECT * FROM Album").fetchall()

        read()
        before = resident()
        read()
        read()
        at_most(resident() - before, 8 << 20, "bytes more, of results of 36 MB")


if not SANITIZED:  # sanitizers keep freed memory
    test(memory)


@test
def limited_api():
    """The extension refers to no symbol of Python outside of the stable ABI that its name promises"""
    path = sqlipc._native.__file__
    true(path.endswith(".abi3.so"), path)
    symbols = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True, check=True).stdout
    used = {line.split()[-1].partition("@")[0] for line in symbols.splitlines()}
    true(
        not any(
            name.startswith("_Py")
            and name
            not in (
                "_Py_Dealloc",
                "_Py_NoneStruct",
                "_Py_TrueStruct",
                "_Py_FalseStruct",
                "_Py_NotImplementedStruct",
                "_PyArg_ParseTuple_SizeT",
                "_PyArg_ParseTupleAndKeywords_SizeT",
                "_Py_BuildValue_SizeT",
                "_PyObject_CallFunction_SizeT",
                "_PyObject_CallMethod_SizeT",
            )
            for name in used
        ),
        sorted(used),
    )
    true(sysconfig.get_config_var("Py_DEBUG") in (0, None), "a debug build has another ABI")


@test
def random_lives():
    """A random order of many operations, on several connections, crashes nothing and leaves nothing"""
    numbers = random.Random(1)
    live = []
    for _ in range(300):
        choice = numbers.random()
        if choice < 0.15 or not live:
            live.append((service.connect("chinook"), []))
        elif choice < 0.3:
            live.pop(numbers.randrange(len(live)))
        else:
            db, cursors = numbers.choice(live)
            with contextlib.suppress(sqlipc.ProgrammingError):
                if choice < 0.6:
                    cursors.append(db.execute(numbers.choice(("SELECT * FROM Track", "SELECT 1", "SELECT * FROM Album"))))
                elif choice < 0.8 and cursors:
                    numbers.choice(cursors).fetchmany(numbers.randrange(100))
                elif choice < 0.9 and cursors:
                    cursors.pop(numbers.randrange(len(cursors)))
                elif choice > 0.97:
                    db.close()
    live.clear()
    del db, cursors
    gc.collect()
    wait_for(service.is_idle, "the service is idle")


main(service)
