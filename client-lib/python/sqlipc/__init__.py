# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQLite databases that the service sqlipcd shares, with the interface of the module sqlite3 (PEP 249).

    import sqlipc

    with sqlipc.connect("chinook") as db:
        for name, in db.execute("SELECT Name FROM Artist WHERE ArtistId < ?", (10,)):
            print(name)

connect() takes the name of a database in place of a file. sqlipc.aio is the same for asyncio, and SQLAlchemy knows
sqlipc://user/chinook. The project's docs/python.md lists what differs from sqlite3.
"""

import collections.abc
import datetime
import sys
import time

from ._adapters import PrepareProtocol, adapt, adapters, converters, register_adapter, register_converter
from ._core import LEGACY_TRANSACTION_CONTROL, PARSE_COLNAMES, PARSE_DECLTYPES, enable_callback_tracebacks
from ._dbapi import Blob, Connection, Cursor, connect, enable_shared_cache
from ._errors import (
    CODES,
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
from ._native import Row, library_version

globals().update(CODES)
# Constants of functions that raise NotSupportedError, which programs may import nevertheless: set_authorizer(), setlimit().
_ACTIONS = (
    "CREATE_INDEX CREATE_TABLE CREATE_TEMP_INDEX CREATE_TEMP_TABLE CREATE_TEMP_TRIGGER CREATE_TEMP_VIEW CREATE_TRIGGER"
    " CREATE_VIEW DELETE DROP_INDEX DROP_TABLE DROP_TEMP_INDEX DROP_TEMP_TABLE DROP_TEMP_TRIGGER DROP_TEMP_VIEW DROP_TRIGGER"
    " DROP_VIEW INSERT PRAGMA READ SELECT TRANSACTION UPDATE ATTACH DETACH ALTER_TABLE REINDEX ANALYZE CREATE_VTABLE"
    " DROP_VTABLE FUNCTION SAVEPOINT RECURSIVE"
)
_LIMITS = (
    "LENGTH SQL_LENGTH COLUMN EXPR_DEPTH COMPOUND_SELECT VDBE_OP FUNCTION_ARG ATTACHED LIKE_PATTERN_LENGTH VARIABLE_NUMBER"
    " TRIGGER_DEPTH WORKER_THREADS"
)
globals().update({f"SQLITE_{name}": number for number, name in enumerate(_ACTIONS.split(), 1)})
globals().update({f"SQLITE_LIMIT_{name}": number for number, name in enumerate(_LIMITS.split())})
SQLITE_DENY, SQLITE_IGNORE, SQLITE_ROW, SQLITE_DONE = 1, 2, 100, 101
SQLITE_OK_LOAD_PERMANENTLY, SQLITE_OK_SYMLINK = 256, 512
collections.abc.Sequence.register(Row)

apilevel = "2.0"
paramstyle = "qmark"
threadsafety = 2  # threads may share the module and, with check_same_thread=False, connections
version = library_version()
version_info = tuple(int(part) for part in version.split("."))
# The oldest SQLite that a service can have, for programs that ask what SQL they may use. The service's own says
# SELECT sqlite_version().
sqlite_version = "3.40.0"
sqlite_version_info = (3, 40, 0)

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = memoryview


def DateFromTicks(ticks):
    """Return the date of a time in seconds since the epoch."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks):
    """Return the time of day of a time in seconds since the epoch."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks):
    """Return date and time of a time in seconds since the epoch."""
    return Timestamp(*time.localtime(ticks)[:6])


class _TypeObject(frozenset):
    """A type object of PEP 249: equal to the declared types of columns that it stands for."""

    def __eq__(self, other):
        return other in self if isinstance(other, str) else frozenset.__eq__(self, other)

    __hash__ = frozenset.__hash__


STRING = _TypeObject(("TEXT", "VARCHAR", "CHAR", "CLOB"))
BINARY = _TypeObject(("BLOB",))
NUMBER = _TypeObject(("INTEGER", "INT", "REAL", "NUMERIC", "FLOAT", "DOUBLE", "DECIMAL"))
DATETIME = _TypeObject(("DATE", "TIME", "DATETIME", "TIMESTAMP"))
ROWID = _TypeObject(("ROWID",))

_LATER = {"Change": "_follow", "Live": "_follow", "Watch": "_follow", "complete_statement": "_sql", "dbapi2": "dbapi2"}


def __getattr__(name):
    """Import what few programs use when it is first used."""
    if name == "OptimizedUnicode" and sys.version_info < (3, 12):
        import warnings

        warnings.warn("OptimizedUnicode is deprecated: use str", DeprecationWarning, stacklevel=2)
        return str
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module("." + _LATER[name], __name__)
    value = globals()[name] = module if name == "dbapi2" else getattr(module, name)
    return value


def __dir__():
    return sorted(globals() | _LATER)
