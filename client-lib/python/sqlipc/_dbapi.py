# SPDX-License-Identifier: LGPL-2.1-or-later
"""Connections and cursors of PEP 249, with the habits of the module sqlite3."""

from _thread import RLock

from . import _adapters, _core
from ._core import LEGACY_TRANSACTION_CONTROL
from ._errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004
)


def _finish(coroutine):
    """Runs a coroutine of Core that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise InternalError("a call that waits was suspended")


def _unsupported(name, why):
    def method(self=None, *arguments, **keywords):
        if isinstance(self, Connection):
            self._check()
        raise NotSupportedError(f"{name}() is not possible: {why}")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Not supported: {why}."
    return method


_ELSEWHERE = "SQL runs in the service, which calls no code of its clients"
_NO_BLOB = "a value is read as a whole; use substr() to read a part"


def enable_shared_cache(do_enable, /):
    """Do nothing: the service manages the memory of its connections. Deprecated, as in sqlite3."""
    import warnings

    warnings.warn("enable_shared_cache is deprecated: it has no effect", DeprecationWarning, stacklevel=2)


class _Uninstantiable:
    """A class of which a program makes no objects."""

    def __new__(cls, *arguments, **keywords):
        raise TypeError(f"cannot create '{cls.__module__}.{cls.__name__}' instances")


class Blob(_Uninstantiable):
    """Exists so that programs can import it: blobopen() would make one, and is not supported."""


class _Statement(_Uninstantiable):
    """The result of a call of a connection. Nothing takes it, as in sqlite3."""


class _Unsupported:
    """The methods of connections of sqlite3 that raise NotSupportedError."""

    create_function = _unsupported("create_function", _ELSEWHERE)
    create_aggregate = _unsupported("create_aggregate", _ELSEWHERE)
    create_window_function = _unsupported("create_window_function", _ELSEWHERE)
    create_collation = _unsupported("create_collation", _ELSEWHERE)
    set_authorizer = _unsupported("set_authorizer", _ELSEWHERE)
    set_progress_handler = _unsupported("set_progress_handler", _ELSEWHERE + "; use interrupt() or set_run_timeout()")
    enable_load_extension = _unsupported("enable_load_extension", "the service loads no extensions")
    load_extension = _unsupported("load_extension", "the service loads no extensions")
    blobopen = _unsupported("blobopen", _NO_BLOB)
    serialize = _unsupported("serialize", "the file is the service's; use backup()")
    deserialize = _unsupported("deserialize", "the file is the service's")
    setconfig = _unsupported("setconfig", "connections in the service are shared")
    getconfig = _unsupported("getconfig", "connections in the service are shared")


class _InUse:
    """In the place of a run while executemany() runs, whose iterable may not use the cursor."""

    def close(self):
        raise ProgrammingError("Recursive use of cursors not allowed.")

    fetchone = close

    def fetchmany(self, size, rows):
        self.close()


_IN_USE = _InUse()


class Cursor:
    """Runs statements and returns their rows.

    arraysize: how many rows fetchmany() returns if it is not told. rowcount: the number of rows that the last INSERT,
    UPDATE, DELETE or REPLACE has changed, or -1. lastrowid: the rowid of the last row that the connection had inserted when
    the cursor's last statement ended. row_factory: None for tuples, or a callable with a cursor and a tuple, such as Row.
    """

    arraysize = 1
    rowcount = -1
    lastrowid = None
    _core = _run = _names = _description = None  # _names: of the columns, from which the description is made when asked
    _is_closed = False

    def __init__(self, connection, /):
        if not isinstance(connection, Connection):
            raise TypeError(f"Cursor() argument 1 must be sqlipc.Connection, not {type(connection).__name__}")
        connection._check()
        if self._run is not None:
            self._reset()
        self._core = connection._core
        self.connection = connection
        self.row_factory = connection.row_factory

    @property
    def description(self):
        """A tuple of seven for each column of the last query, of which only the name is set; None if there are no rows."""
        if self._description is None and self._names:
            self._description = _core.description_of(self._names)
        return self._description

    def _check(self):
        if self._core is None:
            raise ProgrammingError("Base Cursor.__init__ not called.")
        if self._is_closed:
            raise ProgrammingError("Cannot operate on a closed cursor.")
        self._core.link.check()

    def execute(self, sql, parameters=(), /):
        """Run one statement; values for its parameters come from a sequence or, by name, from a mapping. Returns the cursor.

        Raises a subclass of Error, see sqlite_errorcode and sqlite_errorname there.
        """
        core = self._core
        if self._run is not None:
            self._reset()
        elif core is None or self._is_closed:  # link.execute() and core.execute() check the connection
            self._check()
        statement = core.statements.get(sql) if type(sql) is str else None
        if (
            statement is not None
            and statement.is_query
            and core.transaction is None
            and not core.is_pending
            and core.lost is None
            and core.untold_loss is None
            and not core.may_have_pin
            and core.autocommit is not False
            and core.trace is None
            and not core.is_loading
        ):
            try:
                run, self.rowcount = core.link.execute(statement.native, parameters), -1
            except OperationalError as error:
                _core.name_lock(error)
                raise
        else:
            run, self.rowcount = self.connection._finish(core.execute(sql, parameters, self._configure))
        self.lastrowid = core.last_rowid
        self._description = None
        self._names = names = None if run is None else run.columns
        if not names:
            return self
        self._run = run
        self._configure(run)
        return self

    def _configure(self, run):
        """Has the run convert values as the connection says."""
        connection = self.connection
        if connection._detect_types or connection.text_factory is not str:
            self._names, converters = _core.conversions(run, connection._detect_types, _adapters.converters)
            run.configure(converters, None if connection.text_factory is str else connection.text_factory)

    def executemany(self, sql, seq_of_parameters, /):
        """Run an INSERT, UPDATE, DELETE or REPLACE for each item of an iterable. Returns the cursor.

        The rows go to the service through one pipe. All of them are written, or none.
        """
        self._reset()
        self._run = _IN_USE
        try:
            self.rowcount = self.connection._finish(self._core.executemany(sql, seq_of_parameters))
        finally:
            self._run = None
        return self

    def executescript(self, sql_script, /):
        """Run several statements, separated by semicolons; commits first what is open. Returns the cursor."""
        self._reset()
        self.connection._finish(self._core.executescript(sql_script))
        return self

    def _reset(self):
        self._check()
        if self._run is not None:
            self._run.close()
        self._run = self._names = self._description = None

    def fetchone(self):
        """Return the next row, or None at the end."""
        run = self._run
        if run is None or self._core.link.closed:
            self._check()
            return None
        row = run.fetchone()
        if row is None:
            self._run = None
            return None
        return row if self.row_factory is None else self.row_factory(self, row)

    def fetchmany(self, size=None):
        """Return a list of the next rows, at most `size` (by default `arraysize`); if that is negative, of all."""
        self._check()
        return self._fetch(max(self.arraysize if size is None else size, -1))

    def fetchall(self):
        """Return a list of all rows that are left."""
        self._check()
        return self._fetch(-1)

    def _fetch(self, size):
        if self._run is None:
            return []
        rows = self._run.fetchmany(size, [])
        if size < 0:
            self._run = None
        factory = self.row_factory
        return rows if factory is None else [factory(self, row) for row in rows]

    def __iter__(self):
        self._check()
        return self

    def __next__(self):
        run = self._run
        if run is None or self._core.link.closed:
            self._check()
            raise StopIteration
        row = run.fetchone()
        if row is None:
            self._run = None
            raise StopIteration
        return row if self.row_factory is None else self.row_factory(self, row)

    def close(self):
        """Close the cursor, and end its run."""
        if self._core is None:
            raise ProgrammingError("Base Cursor.__init__ not called.")
        self._core.link.check_thread()
        run, self._run = self._run, None
        if run is not None and not self._core.link.closed:
            run.close()
        self._is_closed = True

    def setinputsizes(self, sizes, /):
        """Does nothing, as PEP 249 permits."""

    def setoutputsize(self, size, column=None, /):
        """Does nothing, as PEP 249 permits."""


class Connection(_Unsupported):
    """A connection to one database of the service. connect() makes it, and says what the arguments mean."""

    DataError = DataError
    DatabaseError = DatabaseError
    Error = Error
    IntegrityError = IntegrityError
    InterfaceError = InterfaceError
    InternalError = InternalError
    NotSupportedError = NotSupportedError
    OperationalError = OperationalError
    ProgrammingError = ProgrammingError
    Warning = Warning  # noqa: A003
    _core = None  # until __init__() is called

    def __init__(
        self,
        database,
        timeout=5.0,
        detect_types=0,
        isolation_level="",
        check_same_thread=True,
        factory=None,
        cached_statements=128,
        uri=False,
        *,
        autocommit=LEGACY_TRANSACTION_CONTROL,
        bus=None,
        host=None,
    ):
        self._core = None
        place = _core.locate(database, bus, host, uri)
        self._core = _core.Core(place, True, check_same_thread, timeout, isolation_level, autocommit, cached_statements)
        self._detect_types = detect_types
        self._lock = RLock()
        self._place = place
        self.row_factory = None
        self.text_factory = str

    def _finish(self, coroutine):
        with self._lock:
            return _finish(coroutine)

    def _check(self):
        self._initialised().link.check()

    def _plain(self):
        """Returns another connection to the same database, for the same user."""
        name, bus, host = self._place
        return Connection(name, self._core.timeout, bus=bus, host=host)

    def _initialised(self):
        """Returns the Core, also of a connection that is closed."""
        if self._core is None:
            raise ProgrammingError("Base Connection.__init__ not called.")
        return self._core

    def __call__(self, sql=None, /):
        """Return the statement, as an object. The service compiles it when it runs."""
        self._check()
        text = self._finish(self._core.statement(sql)).native.text
        text.encode()  # raises an exception for text that is not Unicode, as in sqlite3
        return object.__new__(_Statement)

    # ---- cursors and their short forms ----

    def cursor(self, factory=Cursor):
        """Return a new cursor, of the class `factory`."""
        cursor = factory(self)
        if not issubclass(type(cursor), Cursor):
            raise TypeError(f"factory must return a cursor, not {type(cursor).__name__}")
        if self.row_factory is not None:
            cursor.row_factory = self.row_factory
        return cursor

    def execute(self, sql, parameters=(), /):
        """Run one statement with a new cursor, and return that."""
        return Cursor(self).execute(sql, parameters)

    def executemany(self, sql, seq_of_parameters, /):
        """Run a statement for each item of an iterable with a new cursor, and return that."""
        return Cursor(self).executemany(sql, seq_of_parameters)

    def executescript(self, sql_script, /):
        """Run several statements with a new cursor, and return that."""
        return Cursor(self).executescript(sql_script)

    # ---- transactions ----

    def commit(self):
        """Commit the open transaction, and wait until its changes are durable. Does nothing if autocommit is True."""
        self._check()
        if self._core.autocommit is not True:
            self._finish(self._core.end("COMMIT"))

    def rollback(self):
        """Roll the open transaction back. Does nothing if autocommit is True."""
        self._check()
        if self._core.autocommit is not True:
            self._finish(self._core.end("ROLLBACK"))

    @property
    def in_transaction(self):
        """True between BEGIN, also an implicit one, and its end."""
        core = self._initialised()
        return core.in_transaction or (core.autocommit is False and not core.link.closed)

    @property
    def isolation_level(self):
        """How transactions begin before INSERT, UPDATE, DELETE and REPLACE; None: they do not. See `autocommit`."""
        return self._initialised().isolation_level

    @isolation_level.setter
    def isolation_level(self, level):
        level = _core.check_level(level)
        if level is None:
            self._check()
        self._core.isolation_level = level
        if level is None:
            self._finish(self._core.end("COMMIT"))

    @property
    def autocommit(self):
        """True: no transaction begins by itself. False: one is always open, as PEP 249 says. LEGACY_TRANSACTION_CONTROL, the
        default: as `isolation_level` says."""
        return self._core.autocommit

    @autocommit.setter
    def autocommit(self, value):
        _core.check_autocommit(value)
        self._check()
        if value is True:
            self._finish(self._core.end("COMMIT"))
        self._core.autocommit = value

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, kind, value, trace):
        self._check()
        self._finish(self._core.end_block(kind is not None))
        return False

    # ---- watches ----

    def watch(self, *tables):
        """Begin to watch tables (none: all) for changes by any program, and return a Watch. No later change is missed."""
        from . import _follow

        self._check()
        return _follow.Watch(self, self._core.link.watch(tables))

    def live(self, sql, parameters=(), /, *, key=(0,), debounce=0.0):
        """Run a query now and after each change of its result, and return a Live, which tells the differences.

        key: the numbers of the columns, from 0, by whose values rows are the same; debounce: how many seconds to wait after
        a change for others.
        """
        from . import _follow

        self._check()
        statement = self._finish(self._core.statement(sql))
        return _follow.Live(self, self._core.link.live(statement.native, parameters, tuple(key), debounce))

    # ---- the rest ----

    def interrupt(self):
        """End everything in progress on this connection; its calls raise OperationalError. For any thread."""
        self._core.link.interrupt()

    def close(self):
        """Close the connection. An open transaction is rolled back."""
        core = self._initialised()
        try:
            if core.holds_lock():
                self._finish(core.free_lock())
        finally:
            core.close()

    @property
    def total_changes(self):
        """The number of rows that this connection has changed, with those of triggers and foreign keys."""
        core = self._initialised()
        self._check()
        self._finish(core.count())
        return core.total_changes

    def databases(self):
        """Return the databases that the user may use on this bus: a list of (name, description, mode)."""
        self._check()
        return self._core.link.databases()

    def getlimit(self, category, /):
        """Return a limit of this connection: SQLITE_LIMIT_SQL_LENGTH or SQLITE_LIMIT_VARIABLE_NUMBER. The service has its
        own, which the administrator sets."""
        self._check()
        return self._core.limit(category)

    def setlimit(self, category, limit, /):
        """Set one of these limits, unless `limit` is negative. Returns the one of before."""
        self._check()
        return self._core.limit(category, limit)

    def set_run_timeout(self, seconds, /):
        """End each later run at the service after this time. None: the service's limit alone."""
        self._core.link.set("run_timeout", 0 if seconds is None else seconds)

    def set_trace_callback(self, trace_callback, /):
        """Call a function with the text of each statement before it runs; None: no more."""
        self._check()
        self._core.trace = trace_callback

    def iterdump(self):
        """Return an iterator over the SQL that makes the database again."""
        from . import _copy

        self._check()
        return _copy.iterdump(self)

    def backup(self, target, *, pages=-1, progress=None, name="main", sleep=0.250):
        """Copy the database into `target`, a connection of the module sqlite3 or the path of a file, which is replaced.

        The copy is of one state of the database. `progress` is called with (status, remaining, total), in tables; `pages`
        is the number of tables between two calls.
        """
        from . import _copy

        self._check()
        _copy.backup(self, target, pages, progress, name, sleep)


def connect(database, *arguments, factory=None, **keywords):
    """Connect to a database that the service publishes, and return a Connection.

    database            its name
    timeout             seconds to wait for a lock of others; after that OperationalError
    detect_types        PARSE_DECLTYPES | PARSE_COLNAMES: convert values by the declared type, by the column's name
    isolation_level     "", "DEFERRED", "IMMEDIATE", "EXCLUSIVE" or None, as in sqlite3; only if autocommit is not set
    check_same_thread   False: other threads may use the connection, too
    factory             a subclass of Connection
    cached_statements   the number of statements that stay prepared
    uri                 database is sqlipc://user/NAME or sqlipc://system/NAME
    autocommit          True, False or LEGACY_TRANSACTION_CONTROL
    bus                 "user", "system" or a D-Bus address; None: $SQLIPC_BUS, or else the user's bus if its service has the
                        database, and then the system's (sqlipc_open(3))
    host                [USER@]HOST of another machine, reached over ssh; its system bus, or with bus="user" its user's

    It asks the services which of them has the database, or the one of the chosen bus if it has it. With an address or a host
    it does not wait: the first statement does. Raises OperationalError if the bus cannot be reached, or no service has the
    database; if another bus than the chosen one has it, the error says so.
    """
    factory = factory or (arguments[4] if len(arguments) > 4 else None) or Connection
    return factory(database, *arguments, **keywords)
