# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipc for asyncio: the same connections and cursors, whose methods are awaited.

    import sqlipc.aio

    async with sqlipc.aio.connect("chinook") as db:
        async with db.execute("SELECT Name FROM Artist") as cursor:
            async for name, in cursor:
                print(name)

Nothing runs in another thread: the event loop watches the descriptors of the connection. If a task is cancelled while it
waits for rows, the run ends at the service, too. CancelledError, or the TimeoutError of asyncio.timeout(), then means that
the statement has written nothing: one that writes first waits until the service has said so, also in a transaction.
Otherwise OperationalError is raised in its place, whose service_error is "org.sqlipc1.Error.OutcomeUnknown": roll the
transaction back, or, outside of one, look at the data. SQLite may roll the transaction back with a write that is cancelled;
the next statement then says so, until rollback(). A commit goes on: await commit() again to learn its result. A connection
belongs to the event loop in which it was opened.
"""

import asyncio
import time

from . import _adapters, _core, _follow
from ._core import LEGACY_TRANSACTION_CONTROL
from ._errors import NoProgressError, ProgrammingError


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

    async def execute(self, sql, parameters=(), /):
        """Run one statement, and return the cursor."""
        self._reset()
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

    async def executemany(self, sql, seq_of_parameters, /):
        """Run an INSERT, UPDATE, DELETE or REPLACE for each item of an iterable, and return the cursor."""
        self._reset()
        self.rowcount = await self.connection._alone(self._core.executemany(sql, seq_of_parameters))
        return self

    async def executescript(self, sql_script, /):
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

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, trace):
        await self.close()


class Connection:
    """A connection to one database of the service. connect() makes it."""

    def __init__(self, place, timeout, detect_types, isolation_level, cached_statements, autocommit):
        self._core = _core.Core(place, False, True, timeout, isolation_level, autocommit, cached_statements)
        self._news = _News(self._core.link)
        self._core.news = self._news.wait
        self._detect_types = detect_types
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

    def execute(self, sql, parameters=(), /):
        """Run one statement with a new cursor: await it, or use it in `async with`."""
        return _Result(self.cursor().execute(sql, parameters))

    def executemany(self, sql, seq_of_parameters, /):
        """Run a statement for each item of an iterable with a new cursor: await it, or use it in `async with`."""
        return _Result(self.cursor().executemany(sql, seq_of_parameters))

    def executescript(self, sql_script, /):
        """Run several statements with a new cursor: await it, or use it in `async with`."""
        return _Result(self.cursor().executescript(sql_script))

    async def commit(self):
        """Commit the open transaction, and wait until its changes are durable. Does nothing if autocommit is True."""
        self._check()
        if self._core.autocommit is not True:
            await self._alone(self._core.commit())

    async def rollback(self):
        """Roll the open transaction back. Does nothing if autocommit is True."""
        self._check()
        if self._core.autocommit is not True:
            await self._alone(self._core.rollback())

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

    @property
    def autocommit(self):
        """True, False or LEGACY_TRANSACTION_CONTROL, as connect() was told."""
        return self._core.autocommit

    @property
    def total_changes(self):
        """The number of rows that this connection has changed."""
        return self._core.total_changes

    def interrupt(self):
        """End everything in progress on this connection; it raises OperationalError there."""
        self._core.link.interrupt()

    async def close(self):
        """Close the connection. An open transaction is rolled back."""
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
):
    """Connect to a database within a running event loop; the arguments are those of sqlipc.connect().

    Await the result for a Connection, or use it in `async with`, which commits (or rolls back) and closes at its end.
    """

    async def make():
        # the loop must not wait until the services have answered
        place = await asyncio.to_thread(_core.locate, database, bus, host, uri)
        return Connection(place, timeout, detect_types, isolation_level, cached_statements, autocommit)

    return _Result(make())
