# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipc for asyncio: the same connections and cursors, whose methods are awaited.

    import sqlipc.aio

    async with sqlipc.aio.connect("chinook") as db:
        async with db.execute("SELECT Name FROM Artist") as cursor:
            async for name, in cursor:
                print(name)

The event loop watches the descriptors of the connection; only iterdump() and backup() run in a thread of their own. The
names of aiosqlite are here, so that its programs work after a change of the import and of connect(). If a task is cancelled
while it waits for rows, the run ends at the service, too. CancelledError, or the TimeoutError of asyncio.timeout(), then
means that the statement has written nothing: one that writes first waits until the service has said so, also in a
transaction. Otherwise OperationalError is raised in its place, whose service_error is "org.sqlipc1.Error.OutcomeUnknown":
roll the transaction back, or, outside of one, look at the data. SQLite may roll the transaction back with a write that is
cancelled; the next statement then says so, until rollback(). A commit that has begun goes on if its task is cancelled, and
the next call on the connection waits for its end first: rollback() does nothing if it has succeeded, and others raise its
error. A connection belongs to the event loop in which it was opened.
"""

import asyncio
import concurrent.futures
import contextlib
import functools
import itertools
import os
import time

from . import (  # noqa: F401 - what programs import from here
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Row,
    Warning,  # noqa: A004
    _adapters,
    _core,
    _dbapi,
    _follow,
    paramstyle,
    register_adapter,
    register_converter,
    sqlite_version,
    sqlite_version_info,
)
from ._core import LEGACY_TRANSACTION_CONTROL
from ._errors import NoProgressError

_DUMP_LINES = 1000  # that are read at a time


class _News:
    """Tells waiting tasks when the connection should be asked again."""

    def __init__(self, link):
        self.link, self.loop = link, asyncio.get_running_loop()
        self.waiting, self.timer = set(), None
        self.fd = link.fileno()
        self.loop.add_reader(self.fd, self.look)

    def look(self):
        """Lets the connection do what it can, and wakes the tasks."""
        if not self.link.closed:
            try:
                self.link.process()
            except NoProgressError as error:
                self._give_up(error)
            except Exception as error:  # noqa: BLE001 - the tasks that wait get it
                for future in self.waiting:
                    if not future.done():
                        future.set_exception(error)
        for future in self.waiting:
            if not future.done():
                future.set_result(None)
        self.waiting.clear()

    def _give_up(self, error):
        """Closes the connection, whose descriptor would keep the event loop busy. The tasks that wait learn of that."""
        self._forget()
        self.link.close()
        self.loop.call_exception_handler({"message": "A connection of sqlipc was closed.", "exception": error})

    def _forget(self):
        if self.fd is not None and not self.loop.is_closed():
            self.loop.remove_reader(self.fd)
        self.fd = None

    async def wait(self, deadline):
        """Waits for news. Raises TimeoutError after `deadline`, a value of time.monotonic() or None."""
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            raise TimeoutError
        delay = self.link.delay()
        if deadline is not None:
            delay = deadline - now if delay is None else min(delay, deadline - now)
        future = self.loop.create_future()
        self.waiting.add(future)
        timer = None if delay is None else self.loop.call_later(delay, self.look)
        try:
            await future
        finally:
            self.waiting.discard(future)
            if timer is not None:
                timer.cancel()

    def close(self):
        self._forget()
        self.look()


class _Result:
    """The result of execute() and the like: await it for the cursor, or use it in `async with`, which also closes that."""

    def __init__(self, coroutine):
        self._coroutine, self._object = coroutine, None

    def __await__(self):
        return self._coroutine.__await__()

    async def __aenter__(self):
        self._object = await self._coroutine
        return await self._object.__aenter__()

    async def __aexit__(self, *failure):
        return await self._object.__aexit__(*failure)


class _Value(_Result):
    """The same for a result that needs no close."""

    async def __aenter__(self):
        return await self._coroutine

    async def __aexit__(self, *failure):
        pass


class _Done:
    """The result of a function that does not wait, for programs that await it."""

    def __await__(self):
        return iter(())


class Cursor:
    """Runs statements and returns their rows; as sqlipc.Cursor, with awaited methods and `async for`."""

    def __init__(self, connection, /):
        self.connection = connection
        self._core = connection._core
        self.row_factory = connection.row_factory
        self.arraysize = 1
        self.rowcount = -1
        self.lastrowid = None
        self.description = None
        self._run = None
        self._is_closed = False

    def _check(self):
        if self._is_closed:
            raise ProgrammingError("Cannot operate on a closed cursor.")
        if self._core.link.closed:
            raise ProgrammingError("Cannot operate on a closed database.")

    def _reset(self):
        self._check()
        run, self._run = self._run, None
        self.description = None
        if run is not None:
            run.close()

    async def execute(self, sql, parameters=None):
        """Run one statement, and return the cursor."""
        self._reset()
        parameters = () if parameters is None else parameters
        run, self.rowcount = await self.connection._alone(self._core.execute(sql, parameters, self._configure))
        self.lastrowid = self._core.last_rowid
        if run is None or not run.columns:
            return self
        self._run, self.description = run, _core.description_of(self._configure(run))
        return self

    def _configure(self, run):
        """Has the run convert values as the connection says, and returns the names of its columns."""
        connection = self.connection
        names, converters = _core.conversions(run, connection._detect_types, _adapters.converters)
        run.configure(converters, None if connection.text_factory is str else connection.text_factory)
        return names

    async def executemany(self, sql, parameters):
        """Run an INSERT, UPDATE, DELETE or REPLACE for each item of an iterable, and return the cursor."""
        self._reset()
        self.rowcount = await self.connection._alone(self._core.executemany(sql, parameters))
        return self

    async def executescript(self, sql_script):
        """Run several statements, and return the cursor."""
        self._reset()
        await self.connection._alone(self._core.executescript(sql_script))
        return self

    async def fetchone(self):
        """Return the next row, or None at the end."""
        self._check()
        run = self._run
        if run is None:
            return None
        row = await self._guard(run.fetchone)
        if row is None:
            self._run = None
            return None
        return row if self.row_factory is None else self.row_factory(self, row)

    async def fetchmany(self, size=None):
        """Return a list of the next rows, at most `size` (by default `arraysize`); if that is negative, of all."""
        self._check()
        return await self._fetch(max(self.arraysize if size is None else size, -1))

    async def fetchall(self):
        """Return a list of all rows that are left."""
        self._check()
        return await self._fetch(-1)

    async def _fetch(self, size):
        rows = []
        if self._run is not None:
            await self._guard(self._run.fetchmany, size, rows)
        factory = self.row_factory
        return rows if factory is None else [factory(self, row) for row in rows]

    async def _guard(self, function, *arguments):
        """Ends the run if the task is cancelled: the rows that it had taken would be missing from the rest."""
        try:
            return await self._core.until(function, *arguments)
        except BaseException:
            run, self._run = self._run, None
            if run is not None and not self._core.link.closed:
                run.close()
            raise

    def __aiter__(self):
        self._check()
        return self

    async def __anext__(self):
        row = await self.fetchone()
        if row is None:
            raise StopAsyncIteration
        return row

    async def close(self):
        """Close the cursor, and end its run."""
        run, self._run = self._run, None
        if run is not None and not self._core.link.closed:
            run.close()
        self._is_closed = True

    def __await__(self):
        """Returns the cursor itself: cursor() need not be awaited, but may be."""
        return self
        yield  # this makes it a generator

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, trace):
        await self.close()


class Connection(_dbapi._Unsupported):
    """A connection to one database of the service. connect() makes it."""

    def __init__(self, place, timeout, detect_types, isolation_level, cached_statements, autocommit):
        self._core = _core.Core(place, False, True, timeout, isolation_level, autocommit, cached_statements)
        self._news = _News(self._core.link)
        self._core.news = self._news.wait
        self._detect_types = detect_types
        self._place = place
        self._lock = asyncio.Lock()
        self.row_factory = None
        self.text_factory = str

    async def _alone(self, coroutine):
        """Statements of several tasks go one after the other, so that each knows which transaction it belongs to."""
        async with self._lock:
            return await coroutine

    def _check(self):
        if self._core.link.closed:
            raise ProgrammingError("Cannot operate on a closed database.")

    def cursor(self):
        """Return a new cursor."""
        self._check()
        return Cursor(self)

    def execute(self, sql, parameters=None):
        """Run one statement with a new cursor: await it, or use it in `async with`."""
        return _Result(self.cursor().execute(sql, parameters))

    def executemany(self, sql, parameters):
        """Run a statement for each item of an iterable with a new cursor: await it, or use it in `async with`."""
        return _Result(self.cursor().executemany(sql, parameters))

    def executescript(self, sql_script):
        """Run several statements with a new cursor: await it, or use it in `async with`."""
        return _Result(self.cursor().executescript(sql_script))

    def execute_fetchall(self, sql, parameters=None):
        """Run one statement, and return a list of its rows: await it, or use it in `async with`."""

        async def fetch():
            async with self.execute(sql, parameters) as cursor:
                return await cursor.fetchall()

        return _Value(fetch())

    def execute_insert(self, sql, parameters=None):
        """Run one statement, and return a row with the rowid of the last row that the connection has inserted: await it, or
        use it in `async with`."""

        async def insert():
            async with self.execute(sql, parameters) as cursor:
                rowid = cursor.lastrowid
                if self.row_factory is None:
                    return (rowid,)
                await cursor.execute('SELECT ? AS "last_insert_rowid()"', (rowid,))
                return await cursor.fetchone()

        return _Value(insert())

    async def commit(self):
        """Commit the open transaction, and wait until its changes are durable. Does nothing if autocommit is True."""
        self._check()
        if self._core.autocommit is not True:
            await self._alone(self._core.end("COMMIT"))

    async def rollback(self):
        """Roll the open transaction back. Does nothing if autocommit is True."""
        self._check()
        if self._core.autocommit is not True:
            await self._alone(self._core.end("ROLLBACK"))

    def watch(self, *tables):
        """Begin to watch tables (none: all) for changes by any program. Await the AsyncWatch, or use it in `async with`."""

        async def make():
            native = self._core.link.watch(tables)
            await self._core.until(native.next, None)  # the watch has begun
            return _follow.AsyncWatch(self, native)

        self._check()
        return _Result(make())

    def live(self, sql, parameters=(), /, *, key=(0,), debounce=0.0):
        """Run a query now and after each change of its result. Await the AsyncLive, or use it in `async with`."""

        async def make():
            statement = await self._core.statement(sql)
            native = self._core.link.live(statement.native, parameters, tuple(key), debounce)
            return _follow.AsyncLive(self, native, await self._core.until(native.next, None))

        self._check()
        return _Result(make())

    @property
    def in_transaction(self):
        """True between BEGIN, also an implicit one, and its end."""
        return self._core.in_transaction or (self._core.autocommit is False and not self._core.link.closed)

    @property
    def isolation_level(self):
        """How transactions begin before INSERT, UPDATE, DELETE and REPLACE; None: they do not."""
        return self._core.isolation_level

    @isolation_level.setter
    def isolation_level(self, level):
        level = _core.check_level(level)
        if level is None and self._core.in_transaction:
            raise NotSupportedError("isolation_level = None would commit the open transaction: await commit() first.")
        self._core.isolation_level = level

    @property
    def autocommit(self):
        """True, False or LEGACY_TRANSACTION_CONTROL, as connect() was told."""
        return self._core.autocommit

    @property
    def total_changes(self):
        """The number of rows that this connection has changed."""
        return self._core.total_changes

    def interrupt(self):
        """End everything in progress on this connection, at once; it raises OperationalError there. May be awaited."""
        self._core.link.interrupt()
        return _Done()

    # ---- copies ----

    @contextlib.asynccontextmanager
    async def _aside(self, method):
        """Yields an executor of one thread, and a connection of sqlipc to the same database that belongs to it."""
        self._check()
        if self._core.in_transaction:
            raise NotSupportedError(
                f"{method}() uses a connection of its own, which does not see the open transaction: await commit() first."
            )
        executor = concurrent.futures.ThreadPoolExecutor(1, "sqlipc-copy")
        name, bus, host = self._place
        make = functools.partial(_dbapi.Connection, name, self._core.timeout, bus=bus, host=host)
        try:
            other = await asyncio.get_running_loop().run_in_executor(executor, make)
            try:
                yield executor, other
            finally:
                other.interrupt()  # if the task was cancelled, the thread still uses it
                executor.submit(other.close)
        finally:
            executor.shutdown(wait=False)

    async def iterdump(self):
        """Yield the SQL that makes the database again, by a connection and a thread of its own: not while a transaction is
        open."""
        async with self._aside("iterdump") as (executor, other):
            loop = asyncio.get_running_loop()
            lines = await loop.run_in_executor(executor, other.iterdump)
            try:
                while chunk := await loop.run_in_executor(executor, lambda: list(itertools.islice(lines, _DUMP_LINES))):
                    for line in chunk:
                        yield line
            finally:
                executor.submit(lines.close)

    async def backup(self, target, *, pages=-1, progress=None, name="main", sleep=0.250):
        """Copy the database into the file `target`, a path, as backup() of sqlipc, by a connection and a thread of its own,
        which calls `progress`: not while a transaction is open."""
        if not isinstance(target, (str, os.PathLike)):
            raise NotSupportedError("backup() writes in another thread than the target's: pass the path of a file.")
        async with self._aside("backup") as (executor, other):
            copy = functools.partial(other.backup, target, pages=pages, progress=progress, name=name, sleep=sleep)
            await asyncio.get_running_loop().run_in_executor(executor, copy)

    async def set_trace_callback(self, trace_callback):
        """Call a function with the text of each statement before it runs; None: no more."""
        self._check()
        self._core.trace = trace_callback

    async def close(self):
        """Close the connection. An open transaction is rolled back. If a commit goes on, wait for its end, and raise its
        error."""
        try:
            if self._core.commit_goes_on and not self._core.link.closed:
                await self._alone(self._core.settle_commit())
            elif not self._lock.locked() and self._core.holds_lock():  # otherwise close() ends what another task does
                await self._alone(self._core.free_lock())
        finally:
            self._close()

    def _close(self):
        if not self._core.link.closed:
            self._news.loop.remove_reader(self._news.fd)
            self._news.fd = None
            self._core.close()
        self._news.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, trace):
        """Closes the connection; commits before, or rolls back if the block has failed."""
        try:
            if not self._core.link.closed:
                await self._alone(self._core.end_block(kind is not None))
        finally:
            await self.close()


def connect(
    database,
    timeout=5.0,
    detect_types=0,
    isolation_level="",
    cached_statements=128,
    uri=False,
    *,
    autocommit=LEGACY_TRANSACTION_CONTROL,
    bus=None,
    host=None,
    check_same_thread=True,
    iter_chunk_size=64,
):
    """Connect to a database within a running event loop; the arguments are those of sqlipc.connect(), and of aiosqlite:
    check_same_thread and iter_chunk_size have no effect here.

    Await the result for a Connection, or use it in `async with`, which commits (or rolls back) and closes at its end.
    """

    async def make():
        # the loop must not wait until the services have answered
        place = await asyncio.to_thread(_core.locate, database, bus, host, uri)
        return Connection(place, timeout, detect_types, isolation_level, cached_statements, autocommit)

    return _Result(make())
