# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQLite databases that the service sqlipcd shares, with the interface of the module sqlite3 (PEP 249).

    import sqlipc

    with sqlipc.connect("chinook") as db:
        for name, in db.execute("SELECT Name FROM Artist WHERE ArtistId < ?", (10,)):
            print(name)

connect() takes the name of a database in place of a file. sqlipc.aio is the same for asyncio, and SQLAlchemy knows
sqlipc://user/chinook. The project's docs/python.md lists what differs from sqlite3.
"""

import datetime
import time
from collections.abc import Sequence

from ._adapters import PrepareProtocol, adapt, adapters, converters, register_adapter, register_converter
from ._core import LEGACY_TRANSACTION_CONTROL, PARSE_COLNAMES, PARSE_DECLTYPES, enable_callback_tracebacks
from ._dbapi import Connection, Cursor, connect
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
Sequence.register(Row)

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

_LATER = {"Change": "_follow", "Live": "_follow", "Watch": "_follow", "complete_statement": "_sql"}


def __getattr__(name):
    """Import what few programs use when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module("." + _LATER[name], __name__), name)
    return value


def __dir__():
    return sorted(globals() | _LATER)
