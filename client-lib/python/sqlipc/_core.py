# SPDX-License-Identifier: LGPL-2.1-or-later
"""The common part of sqlipc and sqlipc.aio: statements, transactions and bulk writes of one connection.

The functions are coroutines. A connection that waits in the native part never suspends one, so sqlipc runs it by a single
send(); sqlipc.aio awaits it, and its news() suspends until the connection should be asked again.
"""

import itertools
import operator
import os
import time

from . import _adapters, _native
from ._errors import (
    BUSY,
    LIMITS_EXCEEDED,
    OUTCOME_UNKNOWN,
    PIN_LOST,
    SQL_FAILED,
    TRANSACTION_ENDED,
    UNKNOWN_OPTION,
    DataError,
    Error,
    NotSupportedError,
    ProgrammingError,
    error_of_code,
    outcome_unknown,
)

LEGACY_TRANSACTION_CONTROL = -1
LEVELS = ("", "DEFERRED", "IMMEDIATE", "EXCLUSIVE")
PARSE_DECLTYPES, PARSE_COLNAMES = 1, 2
LOOK = "look at the data before you repeat it"
CANCEL_SECONDS = _native.CANCEL_SECONDS
MILLISECONDS_MAX = 2**31 - 1  # of PRAGMA busy_timeout
ROLLED_BACK = "a statement failed, which has rolled back the transaction"  # in the service's error for the next statement
SQL_LENGTH, VARIABLE_NUMBER = 1, 9
LIMITS = {SQL_LENGTH: 1_000_000_000, VARIABLE_NUMBER: 32766}  # those that a connection can keep, beside the service's
N_LIMITS = 12  # that SQLite has
COMMIT_ENDS = "SQLITE_CONSTRAINT", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM"
STATEMENT_ENDS = *COMMIT_ENDS, "SQLITE_INTERRUPT"
shows_tracebacks = False
CHUNK_ROWS = 10000  # rows of an iterator that are collected before they are sent


class Statement:
    """SQL that was analysed, with its native statement."""

    __slots__ = ("native", "analysis", "is_query")

    def __init__(self, link, sql, analysis):
        self.analysis = analysis
        if self.analysis.has_more:
            raise ProgrammingError("You can only execute one statement at a time.")
        self.native = _native.Sql(link, self.analysis.text, self.analysis.names)
        self.is_query = self.analysis.reads and self.analysis.verb in ("SELECT", "VALUES", "EXPLAIN")


def locate(database, bus, host, uri):
    """Returns name, bus and host of a database, from the arguments of connect(). Asks the services of this machine."""
    database = os.fsdecode(database)
    if uri:
        import urllib.parse

        url = urllib.parse.urlsplit(database)
        if url.scheme != "sqlipc" or url.netloc not in ("user", "system") or not url.path[1:] or url.query or url.fragment:
            raise ProgrammingError("A URI is sqlipc://user/DATABASE or sqlipc://system/DATABASE.")
        if bus is not None:
            raise ProgrammingError("The URI names the bus: leave the argument bus out.")
        database, bus = urllib.parse.unquote(url.path[1:]), url.netloc
    if host and bus not in (None, "user", "system"):
        raise ProgrammingError('On another host, bus is "user" or "system".')
    if host:
        bus = bus or "system"
    elif bus in (None, "user", "system"):
        bus = _native.find_bus(database, bus)
    return database, bus, host


def check_level(level):
    if level is None:
        return None
    if not isinstance(level, str):
        raise TypeError(f"isolation_level must be a string or None, not {type(level).__name__}")
    level = str.upper(level)  # as sqlite3 tells it
    if level not in LEVELS:
        raise ValueError("isolation_level string must be '', 'DEFERRED', 'IMMEDIATE', or 'EXCLUSIVE'")
    return level


def check_autocommit(value):
    if value is not True and value is not False and value != LEGACY_TRANSACTION_CONTROL:
        raise ValueError("autocommit must be True, False, or sqlipc.LEGACY_TRANSACTION_CONTROL")
    return value


def enable_callback_tracebacks(enable, /):
    """Pass exceptions of trace callbacks to sys.unraisablehook, which prints them. At first they are dropped."""
    global shows_tracebacks
    shows_tracebacks = bool(enable)


class Core:
    """The state of a connection. `news`: a coroutine function that waits, until a time at the latest; None: never called."""

    def __init__(self, place, waits, one_thread, timeout, isolation_level, autocommit, cached_statements, news=None):
        self.isolation_level = check_level(isolation_level)
        self.autocommit = check_autocommit(autocommit)
        self.timeout = timeout
        self.cached_statements = cached_statements
        self.link = _native.Link(*place, waits, one_thread)
        self.link.set("lock_wait", max(timeout, 0))
        self.begin_seconds = -1  # how long to wait for the answer to Begin; -1: the service knows how long to wait for locks
        self.news = news
        self.statements = {}
        self.dialect = None  # of the database; None: not known yet
        self.transaction = None  # of the service
        self.is_pending = False  # BEGIN was said; the first statement begins the transaction
        self.may_have_pin = False  # a statement may have got a connection of SQLite of its own, for TEMP tables or settings
        self.untold_loss = None  # PinLost that the program has not seen, because it came to a call of the package's own
        self.reads_beyond_limit = False  # if the user has all transactions of TransactionsMax=, one may read without a place
        self.has_read_outside = False  # it has done so: it cannot write, because its reads are of no snapshot
        self.savepoints = []  # those that are open
        self.is_opened_by_savepoint = False
        self.commit_goes_on = False  # the program has not waited for its end
        self.lost = None  # the error that ended the transaction, from the commit that failed until rollback()
        self.is_loading = False
        self.is_giving = False  # the load that is or was under way has not got all its rows
        self.trace = None
        self.limits = LIMITS
        self.total_changes = self.last_rowid = 0

    @property
    def in_transaction(self):
        return self.transaction is not None or self.is_pending or self.lost is not None

    async def until(self, function, *arguments, deadline=None):
        """Calls a native function, again and again until it need not wait."""
        while True:
            try:
                return function(*arguments)
            except BlockingIOError:
                if self.news is None:
                    raise
                await self.news(deadline)

    async def until_change(self, native):
        """Waits for the next change of a watch or live query. interrupt() ends it, but not in the library: there a call that
        never waits is not under way."""
        n_interrupts = self.link.n_interrupts
        while True:
            try:
                return native.next(None)
            except BlockingIOError:
                if self.link.n_interrupts != n_interrupts:
                    raise error_of_code("INTERRUPT", "interrupted") from None
                await self.news(None)

    # ---- transactions ----

    async def wait_open(self, transaction):
        """False: the transaction has not begun in time."""
        seconds = self.begin_seconds
        try:
            deadline = None if seconds < 0 else time.monotonic() + seconds
            return await self.until(transaction.wait, seconds, deadline=deadline)
        except TimeoutError:
            return False
        except Error as error:
            if error.service_error != BUSY:
                raise
            return False

    async def open(self, mode):
        """Begins a transaction at the service. Waits for locks as long as the connection's timeout says."""
        await self.until(self.link.drain)
        transaction = self.link.begin(mode)
        try:
            is_open = await self.wait_open(transaction)
        except BaseException as error:
            transaction.close()
            service_error = getattr(error, "service_error", None)
            if service_error == LIMITS_EXCEEDED and error.sqlite_errorname == "SQLITE_BUSY":  # programs look for its text
                error.args = (f"database is locked: {error}",)
            if self.begin_seconds >= 0 or service_error != UNKNOWN_OPTION:
                raise
        else:
            if not is_open:
                transaction.close()
                raise error_of_code("BUSY", "database is locked")
            self.transaction, self.is_pending = transaction, False
            return
        # A service that does not know the limit: the whole call is limited, although only a lock should count.
        self.link.set("lock_wait", -1)
        self.begin_seconds = max(self.timeout, 0)
        await self.open(mode)

    async def begin(self, level):
        if self.in_transaction:
            raise error_of_code("ERROR", "cannot start a transaction within a transaction")
        if level in ("IMMEDIATE", "EXCLUSIVE"):
            await self.open(_native.WRITE)
        else:
            self.is_pending = True

    def forget(self):
        """Drops the transaction; it is over, or rolled back by this."""
        if self.transaction is not None:
            self.transaction.close()
        self.transaction = self.lost = None
        self.is_pending = self.has_read_outside = self.commit_goes_on = False
        self.savepoints.clear()
        self.is_opened_by_savepoint = False

    def check_not_lost(self):
        """Refuses statements after a commit that failed. The library refuses those of a transaction that has ended until it
        has told the end to a commit; after that they would run on their own."""
        if self.lost is not None:
            text = f"The transaction has ended; rollback() leaves it. Its commit: {self.lost}"
            error = error_of_code("ABORT_ROLLBACK", text)
            error.service_error = self.lost.service_error
            raise error

    async def send_commit(self, advice):
        """Commits the transaction at the service. If the transaction is lost, all is refused until rollback(): a second
        commit() would return as if the changes were written. After an error of SQLite the program goes on as with sqlite3.

        advice: for a program that has given up the wait. None: the connection waits for the end before it does anything
        else, as sqlite3 would, so a CancelledError arrives."""
        transaction, self.commit_goes_on = self.transaction, advice is None
        try:
            await self.until(self.link.drain)
            await self.until(transaction.commit)
        except BaseException as error:
            if self.is_given_up(error):
                if advice is None and self.news is not None and not self.link.closed:
                    raise
                advice = advice or "call commit() again to learn its result"
                raise self.unknown(error, f"The commit goes on, but the program has not waited for its end: {advice}.")
            self.commit_goes_on = False
            ends = ends_transactions(error, COMMIT_ENDS)
            if (ends or isinstance(error, Error) and error.service_error is not None) and not transaction.open:
                self.forget()
                self.lost = None if ends else error
            raise
        self.transaction = None

    async def settle_commit(self):
        """Waits for the end of a commit for which the program has not waited, and raises its error."""
        if self.commit_goes_on:
            await self.send_commit(None)
            self.forget()

    def check_not_loading(self):
        """Refuses a call from within executemany(): it would wait for the end of the load, which waits for it."""
        if self.is_loading:
            raise ProgrammingError("Recursive use of cursors not allowed.")

    async def commit(self, advice=None):
        """Commits the transaction, if there is one."""
        self.check_not_loading()
        self.check_not_lost()
        if self.transaction is not None:
            await self.send_commit(advice)
        self.forget()

    async def rollback(self):
        """Rolls the transaction back, if there is one. One whose commit goes on is rolled back only if that fails."""
        self.check_not_loading()
        try:
            await self.settle_commit()
        except Error as error:
            if error.service_error == OUTCOME_UNKNOWN:
                self.forget()
                raise
        if self.transaction is not None:
            try:
                await self.until(self.transaction.rollback)
            except Error:
                if not self.transaction.open:
                    self.forget()
                raise
        self.forget()

    async def end(self, verb, *advice):
        """Does what a method of the connection says, COMMIT or ROLLBACK. A trace callback sees it as a statement."""
        if self.in_transaction:
            self.tell(verb)
        await (self.commit(*advice) if verb == "COMMIT" else self.rollback())

    async def prepare_transaction(self, analysis):
        """Sees to it that the transaction in which a statement belongs has begun."""
        if self.untold_loss is not None:
            error, self.untold_loss = self.untold_loss, None
            raise error
        self.may_have_pin = self.may_have_pin or analysis.needs_pin
        if not self.in_transaction:
            if self.autocommit is False:
                self.is_pending = True
            elif self.autocommit is not True and self.isolation_level is not None and analysis.is_dml:
                self.tell("BEGIN " + self.isolation_level)
                defers = self.may_have_pin and self.isolation_level in ("", "DEFERRED")  # see open_pending()
                await self.open(_native.DEFERRED if defers else _native.WRITE)
        if self.is_pending:
            await self.open_pending(analysis)
        # the service ends the statement before when its rows are read
        if self.transaction is not None or self.may_have_pin or not analysis.reads:
            await self.until(self.link.drain)

    def check_snapshot(self):
        """Refuses to write after reads beyond the limit: others may have written since, and their updates would be lost."""
        if self.has_read_outside:
            error = error_of_code(
                "BUSY_SNAPSHOT",
                "database is locked: the transaction has read while you had all transactions that TransactionsMax= permits, "
                "so it cannot write. Roll it back and repeat it.",
            )
            error.service_error = BUSY
            raise error

    async def open_pending(self, analysis):
        """Begins the transaction that was announced. One that writes first has read nothing, and waits for its turn as long
        as `timeout` says. But if it may write to a TEMP table, it must not keep others from the file."""
        if not analysis.reads:
            self.check_snapshot()
        if self.has_read_outside:
            return
        try:
            await self.open(_native.DEFERRED if analysis.reads or self.may_have_pin else _native.WRITE)
        except Error as error:
            if not (self.reads_beyond_limit and analysis.reads and error.service_error == LIMITS_EXCEEDED):
                raise
            self.has_read_outside = True

    # ---- statements ----

    async def read(self, name, sql):
        """Calls a function of _sql by the rules of the database, which is asked only if they matter."""
        from . import _sql  # not before the first statement: a program may import the package and not use it

        function = getattr(_sql, name)
        if self.dialect is None:
            found = function(sql, _sql.SQLITE)
            if found == function(sql, _sql.POSTGRESQL):
                return found
            self.check_not_loading()
            await self.settle_commit()
            await self.find_dialect()
        return function(sql, self.dialect)

    async def first_row(self, sql):
        """The first row of a query that has no parameters."""
        run = self.link.start(_native.Sql(self.link, sql, ()), ())
        try:
            await self.until(run.advance)
            return run.fetchone()
        finally:
            if not self.link.closed:
                run.close()

    async def find_dialect(self):
        """SQLite has no number that equals a text; PostgreSQL gives a literal the type that it is compared with."""
        from . import _sql

        is_equal = (await self.first_row("SELECT 1 = '1'"))[0]
        self.dialect = _sql.POSTGRESQL if is_equal else _sql.SQLITE

    async def count(self):
        """Takes the numbers of SQLite, which also count what triggers, foreign keys and failed statements have changed. If
        they are smaller, a server keeps the database, or the service was restarted: what statements have reported stays."""
        from . import _sql

        if self.is_loading:
            return
        try:
            if self.transaction is not None or self.may_have_pin:  # the next statement waits for the rows of the one before
                await self.until(self.link.drain)
            if self.dialect is None:
                await self.find_dialect()
            if self.dialect == _sql.SQLITE:
                total, rowid = await self.first_row("SELECT total_changes(), last_insert_rowid()")
                if total >= self.total_changes:
                    self.total_changes, self.last_rowid = total, rowid
        except Error as error:  # such as that of a transaction that has ended, which the next statement gets as well
            self.keep_loss(error)

    def keep_loss(self, error):
        """The library takes an error for one that the program sees, and tells it once that TEMP tables are lost. If the
        program does not see it, the next statement fails with it."""
        if error.service_error == PIN_LOST:
            self.untold_loss = error

    def limit(self, category, value=-1):
        """Sets a limit, unless the value is negative. Returns the one of before."""
        if not 0 <= category < N_LIMITS:
            raise ProgrammingError("'category' is out of bounds")
        if category not in LIMITS:
            raise NotSupportedError("The administrator sets this limit; yours are SQL_LENGTH and VARIABLE_NUMBER.")
        before = self.limits[category]
        if value >= 0:
            self.limits = self.limits | {category: min(value, LIMITS[category])}
        return before

    def check_size(self, sql):
        if self.limits is not LIMITS and len(sql.encode()) > self.limits[SQL_LENGTH]:
            raise DataError("query string is too large")

    async def statement(self, sql):
        statement = self.statements.get(sql)
        if statement is not None:
            return statement
        if not isinstance(sql, str):
            raise TypeError(f"execute() argument 1 must be str, not {type(sql).__name__}")
        self.check_size(sql)
        statement = Statement(self.link, sql, await self.read("analyse", sql))
        if self.limits is not LIMITS and len(statement.analysis.names) > self.limits[VARIABLE_NUMBER]:
            raise error_of_code("ERROR", "too many SQL variables")
        if self.cached_statements > 0:
            if len(self.statements) >= self.cached_statements:
                del self.statements[next(iter(self.statements))]
            self.statements[sql] = statement
        return statement

    async def execute(self, sql, parameters, configure=None):
        """Runs a statement to its first row or its end. Returns (run or None, number of changed rows or -1). configure(run)
        is called before rows are taken."""
        statement = await self.statement(sql)
        analysis = statement.analysis
        if self.link.closed:
            raise ProgrammingError("Cannot operate on a closed database.")
        self.check_not_loading()
        if analysis.verb is None:
            return None, -1
        if analysis.control is None or analysis.control.verb != "ROLLBACK":
            await self.settle_commit()
        if analysis.control is not None:
            self.tell(sql)
            await self.control(statement, parameters)
            return None, -1
        self.check_not_lost()
        await self.prepare_transaction(analysis)
        if self.trace is not None:
            self.tell_with_values(statement, parameters)
        return await self.run(statement, parameters, configure)

    def tell(self, sql):
        """Calls the trace callback."""
        if self.trace is not None:
            _native.trace(self.trace, sql, shows_tracebacks)

    def tell_with_values(self, statement, parameters):
        """The same, with the values as literals. If these are wrong the statement does not begin, and nothing is told."""
        from . import _sql

        text, names = statement.analysis.text, statement.analysis.names
        if names:
            try:
                is_mapping = isinstance(parameters, dict) or not hasattr(parameters, "__len__")
                values = [parameters[name] for name in names] if is_mapping else list(parameters)
                literals = [_sql.literal(_adapters.adapt_parameter(value)) for value in values]
            except Exception:  # noqa: BLE001 - of the program's objects, which the statement meets, too
                return
            if len(literals) != len(names):
                return
            text = _sql.expand(text, self.dialect or _sql.SQLITE, literals)
        self.tell(text)

    def told(self, statement, rows):
        """Yields the rows of executemany(), and tells each."""
        for row in rows:
            self.tell_with_values(statement, row)
            yield row

    async def run_in_order(self, statement, parameters):
        """Runs a statement about savepoints in the transaction in which it belongs."""
        self.check_not_lost()
        if self.is_pending:  # a savepoint does not write
            await self.open(_native.DEFERRED)
        await self.prepare_transaction(statement.analysis)
        await self.run(statement, parameters)

    def busy_timeout(self, analysis, row):
        """Keeps the timeout that a PRAGMA busy_timeout has set, by the row of its answer. Returns a native statement with
        the connection's timeout as its row; without a value the service tells its own."""
        if analysis.pragma.value is not None:
            self.timeout = row[0] / 1000
            self.link.set("lock_wait", self.timeout if self.begin_seconds < 0 else -1)
            self.begin_seconds = self.timeout if self.begin_seconds >= 0 else -1
        milliseconds = round(min(max(self.timeout, 0) * 1000, MILLISECONDS_MAX))
        return _native.Sql(self.link, f"PRAGMA busy_timeout = {milliseconds}", ())

    async def run(self, statement, parameters, configure=None):
        analysis, is_within = statement.analysis, self.transaction is not None
        run = self.link.start(statement.native, parameters)
        try:
            has_row = await self.until(run.advance)
            if has_row and analysis.pragma is not None and run.columns == ("timeout",):  # no other PRAGMA has this column
                native = self.busy_timeout(analysis, run.fetchone())
                run.close()
                run = self.link.start(native, ())
                has_row = await self.until(run.advance)
            if has_row and not analysis.reads:  # all of a RETURNING clause is in memory anyway; its end tells the changes
                if configure is not None:
                    configure(run)
                await self.until(run.drain)
        except BaseException as error:
            try:
                if not analysis.reads:
                    await self.settle(run, error, is_within)
            finally:
                if not self.link.closed:
                    run.close()
            await self.forget_if_rolled_back(error)
            name_lock(error)
            if not analysis.reads:  # a read would begin the snapshot of a transaction that has none yet
                await self.count_failure(error)
            raise
        if not analysis.writes_rows:
            return run, -1
        self.total_changes += run.changes
        self.last_rowid = run.last_rowid
        return run, run.changes

    async def count_failure(self, error):
        """A statement that has failed may have inserted rows before, and triggers have changed some."""
        if isinstance(error, Error) and error.service_error == SQL_FAILED and not self.link.closed:
            await self.count()

    async def forget_if_rolled_back(self, error):
        """Leaves the transaction if a failure has rolled it back, as in sqlite3: ON CONFLICT ROLLBACK, RAISE(ROLLBACK), a
        full disk, an interrupt. The service tells that to the next statement. A transaction that was lost otherwise waits
        for rollback()."""
        if self.transaction is None or not ends_transactions(error, STATEMENT_ENDS):
            return
        run = self.link.start(_native.Sql(self.link, "SELECT 1", ()), ())
        try:
            await self.until(run.advance)
        except Error as end:
            if end.service_error == TRANSACTION_ENDED and ROLLED_BACK in str(end):
                self.forget()
        finally:
            if not self.link.closed:
                run.close()

    # ---- writes that are given up ----

    def is_given_up(self, error, is_within=False):
        """True if the exception has ended the wait for a write, and tells nothing of its outcome: the task was cancelled, a
        signal handler has raised it, or the connection was closed, which rolls an open transaction back (`is_within`)."""
        if self.link.closed:
            return not is_within
        if self.news is None:  # MemoryError may be the service's answer
            return not isinstance(error, (Error, MemoryError))
        from asyncio import CancelledError  # sqlipc.aio has imported it

        return isinstance(error, CancelledError)

    def unknown(self, error, text):
        """Returns the exception to raise if `error` has ended the wait for a write that may have taken effect. The
        exception of a signal handler, such as KeyboardInterrupt, stays, because a program ends by it, and gets a cause."""
        unknown = outcome_unknown(text)
        if self.news is not None or isinstance(error, Error):
            unknown.__suppress_context__ = True
            return unknown
        error.__cause__ = unknown
        return error

    async def settle(self, run, error, is_within):
        """Cancels a run that may write, if the wait for it was given up. Raises an exception unless nothing was written."""
        if not self.is_given_up(error, is_within):
            return
        text = "The service has not said how the statement ended"
        if not self.link.closed:
            run.cancel()
            try:
                await self.until(run.drain)
                text = "The statement had taken effect before it could be cancelled"
            except Error as end:
                self.keep_loss(end)
                if end.service_error not in (None, OUTCOME_UNKNOWN):
                    return
            except BaseException:  # noqa: BLE001 - given up again
                pass
        advice = "roll the transaction back" if is_within else LOOK
        raise self.unknown(error, f"{text}: {advice}.")

    # ---- statements about transactions ----

    async def control(self, statement, parameters):
        """Does what a statement about transactions says."""
        verb, level, name, key = statement.analysis.control
        if verb == "BEGIN":
            await self.begin(level)
        elif verb == "SAVEPOINT":
            await self.savepoint(statement, parameters, key)
        elif name is not None and not self.in_transaction and self.autocommit is not False:
            raise error_of_code("ERROR", f"no such savepoint: {name}")  # the service would refuse the statement
        elif verb == "RELEASE":
            await self.release(statement, parameters, key)
        elif verb == "TO":
            await self.run_in_order(statement, parameters)
            self.cut_savepoints(key, keep=True)
        elif not self.in_transaction:
            raise error_of_code("ERROR", f"cannot {verb.lower()} - no transaction is active")
        else:
            await (self.rollback() if verb == "ROLLBACK" else self.commit())

    async def savepoint(self, statement, parameters, name):
        """Opens a savepoint; the first one may begin a transaction. It counts as open after the service has opened it."""
        self.check_not_lost()
        self.check_snapshot()
        begins = not self.in_transaction
        if begins:
            await self.open(_native.DEFERRED)
        try:
            await self.run_in_order(statement, parameters)
        except BaseException:
            if begins:  # the program has begun no transaction that it could roll back
                self.forget()
            raise
        if begins:
            self.is_opened_by_savepoint = self.autocommit is not False
        self.savepoints.append(name)

    def cut_savepoints(self, name, keep):
        """Removes the last savepoint of this name (unless it is kept) and those after it."""
        if name in self.savepoints:
            last = len(self.savepoints) - 1 - self.savepoints[::-1].index(name)
            del self.savepoints[last + keep :]

    async def release(self, statement, parameters, name):
        """Releases a savepoint, or commits if that savepoint has begun the transaction."""
        if self.is_opened_by_savepoint and self.savepoints.count(name) == 1 and self.savepoints[0] == name:
            await self.commit()
            return
        await self.run_in_order(statement, parameters)
        self.cut_savepoints(name, keep=False)

    # ---- many rows ----

    async def executemany(self, sql, rows):
        """Runs a statement for each row; returns the number of changed rows."""
        statement = await self.statement(sql)
        analysis = statement.analysis
        if self.link.closed:
            raise ProgrammingError("Cannot operate on a closed database.")
        self.check_not_loading()
        await self.settle_commit()
        if not analysis.writes_rows:
            raise ProgrammingError("executemany() can only execute DML statements.")
        self.check_not_lost()
        await self.prepare_transaction(analysis)
        if self.trace is not None:
            rows = self.told(statement, rows)
        if type(rows) in (list, tuple):  # others may have an __iter__ of their own
            return await self.write(statement, rows)
        return await self.write_chunks(statement, rows)

    async def write_chunks(self, statement, rows):
        """The iterator may use the connection, so no load is open while it runs. If it fails, the rows before stay."""
        iterator = iter(rows)

        def collect():
            chunk = []
            try:
                chunk.extend(itertools.islice(iterator, CHUNK_ROWS))
            except Exception as error:  # extend() has kept the rows before
                return chunk, error
            return chunk, None

        rows, failure = collect()

        async def write_all():
            nonlocal rows, failure
            n = 0
            while rows:
                n += await self.write(statement, rows)
                rows, failure = collect() if failure is None else ([], failure)
            return n

        n = await (write_all() if len(rows) < CHUNK_ROWS else self.whole(write_all))
        if failure is not None:
            raise failure
        return n

    def keeps_rows(self, error, transaction):
        """True if a row has failed: those before it stay, as with sqlite3. A write that is given up is taken back."""
        if self.link.closed or self.transaction is not transaction:
            return False
        if isinstance(error, (OverflowError, UnicodeError)):  # values that cannot be bound
            return True
        if not isinstance(error, Error):
            return isinstance(error, MemoryError)
        gives_up = error.sqlite_errorname == "SQLITE_INTERRUPT"
        return not gives_up and error.service_error not in (OUTCOME_UNKNOWN, TRANSACTION_ENDED)

    async def whole(self, write):
        """Awaits write(), of which nothing is written if it is given up: it gets a savepoint, or a transaction if none is
        open. If a row fails, those before it are written."""
        transaction, n_interrupts = self.transaction, self.link.n_interrupts
        if transaction is None:
            await self.open(_native.DEFERRED if self.may_have_pin else _native.WRITE)
            transaction = self.transaction
            try:
                n = await write()
            except BaseException as error:
                if self.keeps_rows(error, transaction):
                    try:
                        await self.commit(LOOK)
                    except BaseException:
                        self.forget()
                        raise
                    raise
                found = self.without_unknown(error, transaction, n_interrupts)
                self.forget()
                raise found  # noqa: B904
            try:
                await self.commit(LOOK)
            except BaseException:
                self.forget()  # the program has begun no transaction that it could roll back
                raise
            return n
        await self.run(await self.statement("SAVEPOINT sqlipc_whole"), ())
        try:
            n = await write()
            if self.transaction is transaction:  # an iterator may have ended it
                await self.run(await self.statement("RELEASE sqlipc_whole"), ())
        except BaseException as error:
            if self.keeps_rows(error, transaction):
                await self.run(await self.statement("RELEASE sqlipc_whole"), ())
                raise
            await self.undo(error, transaction)
            raise self.without_unknown(error, transaction, n_interrupts)  # noqa: B904
        return n

    def without_unknown(self, error, transaction, n_interrupts):
        """Returns what has ended the wait for a write, such as an interrupt() since `n_interrupts`, in place of an `error`
        that calls the outcome unknown, because all was rolled back in `transaction`, or with it."""
        if self.transaction is not transaction and not self.link.closed:  # an iterator has ended it
            return error
        if getattr(error.__cause__, "service_error", None) == OUTCOME_UNKNOWN:
            error.__cause__ = None
        if getattr(error, "service_error", None) != OUTCOME_UNKNOWN:
            return error
        context = error.__context__
        is_ours = self.news is not None and error.__suppress_context__  # of unknown()
        if is_ours and getattr(context, "service_error", None) != OUTCOME_UNKNOWN:
            return context
        if self.link.n_interrupts == n_interrupts:
            return error
        interrupted = error_of_code("INTERRUPT", "interrupted")
        interrupted.__suppress_context__ = True
        return interrupted

    async def undo(self, error, transaction):
        """Rolls back to the savepoint of whole(). Raises an exception unless that is certain."""
        if self.transaction is not transaction or self.link.closed or isinstance(error, GeneratorExit):
            return
        try:
            for sql in ("ROLLBACK TO sqlipc_whole", "RELEASE sqlipc_whole"):
                await self.run(await self.statement(sql), ())
        except BaseException:  # noqa: BLE001 - given up again, or refused
            if not self.link.closed and transaction.open:
                raise self.unknown(error, "Some of the rows may be in the transaction: roll it back.")  # noqa: B904

    async def write(self, statement, rows):
        analysis = statement.analysis
        if analysis.names and not analysis.returns and rows:
            return await self.load_all(statement, rows)
        return await self.write_each(statement, rows)

    async def write_each(self, statement, rows):
        async def write():
            n = 0
            for row in rows:
                _, changes = await self.run(statement, row)
                n += changes
            return n

        return await (write() if len(rows) < 2 else self.whole(write))

    async def load_all(self, statement, rows):
        """Loads the rows. If one fails, its load has written nothing, so the rows before it are loaded again, and it is run
        by itself: then it fails as with sqlite3. After any other failure no row is sent again."""
        n = 0
        while rows:
            transaction, iterator = self.transaction, iter(rows)
            try:
                return n + await self.load(statement, iterator)
            except NotSupportedError:  # a bus without descriptors; nothing was written
                return n + await self.write_each(statement, rows)
            except Exception as error:
                k, text = number_of_row(error)
                if k > 0:
                    error.args = (text,)
                if not self.keeps_rows(error, transaction):
                    raise
                is_ours = getattr(error, "service_error", None) is None and not isinstance(error, MemoryError)
                if is_ours:  # a value that cannot be bound, unless all rows were given: then they may be written
                    k = len(rows) - operator.length_hint(iterator) if self.is_giving else 0
                if not 0 < k <= len(rows):
                    raise
                n += await self.load_all(statement, rows[: k - 1])
                if is_ours:
                    raise
            n += (await self.run(statement, rows[k - 1]))[1]
            rows = rows[k:]
        return n

    async def load(self, statement, rows):
        """All rows in one load: all of them are written, or none."""
        load, is_within = self.link.load(statement.native), self.transaction is not None
        self.is_loading = self.is_giving = True
        try:
            if self.news is None:
                load.rows(rows)
            else:
                for row in rows:
                    await self.until(load.row, row)
            self.is_giving = False
            n = await self.finish(load, is_within)
        except BaseException as error:
            load.close()
            self.is_loading = False
            await self.forget_if_rolled_back(error)
            name_lock(error)
            await self.count_failure(error)
            raise
        finally:
            self.is_loading = False
        self.total_changes += n
        return n

    async def finish(self, load, is_within):
        """Waits for the end of a load. If the wait is given up, or interrupted, the service cancels the load, and says how
        it ended; not in a transaction, because that would end with the load."""
        n_interrupts = self.link.n_interrupts
        try:
            return await self.until(load.finish, -1)
        except BaseException as error:
            is_interrupted = self.link.n_interrupts != n_interrupts and isinstance(error, Error)
            is_interrupted = is_interrupted and error.service_error == OUTCOME_UNKNOWN
            if not (is_interrupted or self.is_given_up(error, is_within)):
                raise
            text = "The service has not said whether it has written the rows"
            if not (is_within or self.link.closed):
                load.cancel()
                try:
                    n = await self.until(load.finish, CANCEL_SECONDS, deadline=time.monotonic() + CANCEL_SECONDS)
                    if is_interrupted:  # too late
                        return n
                    text = "The rows had been written before the load could be cancelled"
                except Error as end:
                    if end.service_error not in (None, OUTCOME_UNKNOWN):  # nothing was written
                        if not is_interrupted:
                            self.keep_loss(end)
                        raise (end if is_interrupted else error)  # noqa: B904
                except BaseException:  # noqa: BLE001 - given up again
                    pass
            advice = "roll the transaction back" if is_within else LOOK
            raise self.unknown(error, f"{text}: {advice}.")

    async def executescript(self, script):
        if not isinstance(script, str):
            raise TypeError(f"executescript() argument must be str, not {type(script).__name__}")
        if "\0" in script:
            raise ValueError("embedded null character")
        self.check_size(script)
        if self.autocommit is LEGACY_TRANSACTION_CONTROL:
            await self.end("COMMIT")
        level, self.isolation_level = self.isolation_level, None
        try:
            self.dialect = None  # the database may have been moved to another server meanwhile
            has_written = False
            for sql in await self.read("split", script):
                analysis = (await self.statement(sql)).analysis
                try:
                    run, _ = await self.execute(sql, (None,) * len(analysis.names))
                except BaseException as error:
                    if has_written and self.is_given_up(error):
                        text = f"The first statements of the script have taken effect: {LOOK}."
                        raise self.unknown(error, text)  # noqa: B904
                    raise
                has_written = has_written or not (analysis.reads or analysis.control is not None)
                if run is not None:
                    run.close()
        finally:
            self.isolation_level = level

    async def end_block(self, failed):
        """Ends a `with` block: commits, or rolls back if it has failed."""
        if self.autocommit is True or not self.in_transaction:
            return
        if failed:
            await self.end("ROLLBACK")
            return
        try:
            await self.end("COMMIT", LOOK)
        except Error:
            self.forget()  # rolls back what is left
            raise

    def holds_lock(self):
        """True if close() would leave a transaction, whose end is on its way then, and may come late."""
        if self.link.closed or self.transaction is None or self.commit_goes_on or self.is_loading:
            return False
        self.link.check_thread()
        return True

    async def free_lock(self):
        """Rolls back before close(), so that no other connection meets the lock after it."""
        try:
            await self.until(self.transaction.rollback)
        except Error:  # it is over anyway
            pass

    def close(self):
        """Ends everything. An open transaction is rolled back."""
        if not self.link.closed:
            self.link.close()  # first: it may refuse
            self.forget()
            self.statements.clear()


def number_of_row(error):
    """The number of the row that has failed in a load, 0 if the service names none, and the error's text without it."""
    name, colon, text = str(error).partition(": ")
    is_named = colon and name.startswith("row ") and name[4:].isdecimal()
    is_named = is_named and (isinstance(error, MemoryError) or getattr(error, "sqlite_errorcode", None))
    return (int(name[4:]), text) if is_named else (0, str(error))


def name_lock(error):
    """Gives the error of a lock the text of sqlite3, for which programs look."""
    if isinstance(error, Error) and error.service_error == BUSY and "database is locked" not in str(error):
        error.args = ("database is locked",)


def ends_transactions(error, names):
    """True for an error of SQLite after which it may have rolled back a transaction."""
    if isinstance(error, MemoryError):
        return True
    name = isinstance(error, Error) and error.service_error != OUTCOME_UNKNOWN and error.sqlite_errorname
    return bool(name) and name.startswith(names)


def description_of(names):
    """Returns the description of a cursor, as PEP 249 says."""
    return tuple([(name, None, None, None, None, None, None) for name in names])


def conversions(run, detect_types, converters):
    """Returns the names of a run's columns, and a list with a converter or None for each of them, or None without any."""
    names, found = [], []
    for name, declared in zip(run.columns, run.types):
        converter = None
        if detect_types & PARSE_COLNAMES:
            name, bracket, rest = name.partition("[")
            if bracket:
                name = name.removesuffix(" ")
                converter = converters.get(rest.partition("]")[0].upper())
        if converter is None and detect_types & PARSE_DECLTYPES and declared:
            converter = converters.get(declared.partition("(")[0].split(" ")[0].upper())
        names.append(name)
        found.append(converter)
    return tuple(names), found if any(found) else None
