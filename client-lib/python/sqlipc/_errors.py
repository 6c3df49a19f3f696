# SPDX-License-Identifier: LGPL-2.1-or-later
"""The exceptions of PEP 249, and which failure of the service becomes which of them."""

import errno


class Warning(Exception):  # noqa: A001 - the name is PEP 249's
    """Raised for important warnings. The package itself raises none."""


class Error(Exception):
    """The base of all errors of this package.

    sqlite_errorcode: SQLite's extended result code; None if neither SQLite nor the service failed.
    sqlite_errorname: the name of that code, such as "SQLITE_CONSTRAINT_UNIQUE"; None likewise.
    service_error: the D-Bus name of the service's error, such as "org.sqlipc1.Error.Sql"; None if there is none.
    sql_offset: the offset of the error in the SQL, in bytes of UTF-8; None if it is not known.
    """

    sqlite_errorcode = None
    sqlite_errorname = None
    service_error = None
    sql_offset = None


class InterfaceError(Error):
    """The interface was used wrongly."""


class DatabaseError(Error):
    """An error of the database."""


class DataError(DatabaseError):
    """A value is too large, or out of range."""


class OperationalError(DatabaseError):
    """An error that the program need not have caused: the service is missing, the database locked, the SQL wrong."""


class IntegrityError(DatabaseError):
    """A constraint was violated."""


class InternalError(DatabaseError):
    """The service or SQLite has a bug."""


class ProgrammingError(DatabaseError):
    """The program made a mistake, such as a wrong number of parameters."""


class NotSupportedError(DatabaseError):
    """The service cannot do this."""


# SQLite's result codes: the primary ones, and the extended ones as a primary one with their numbers.
_PRIMARY = (
    "OK ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY"
    " SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB NOTICE WARNING"
).split()
_EXTENDED = {
    "ERROR": "MISSING_COLLSEQ RETRY SNAPSHOT",
    "ABORT": ". ROLLBACK",
    "BUSY": "RECOVERY SNAPSHOT TIMEOUT",
    "LOCKED": "SHAREDCACHE VTAB",
    "READONLY": "RECOVERY CANTLOCK ROLLBACK DBMOVED CANTINIT DIRECTORY",
    "IOERR": "READ SHORT_READ WRITE FSYNC DIR_FSYNC TRUNCATE FSTAT UNLOCK RDLOCK DELETE BLOCKED NOMEM ACCESS"
    " CHECKRESERVEDLOCK LOCK CLOSE DIR_CLOSE SHMOPEN SHMSIZE SHMLOCK SHMMAP SEEK DELETE_NOENT MMAP GETTEMPPATH CONVPATH"
    " VNODE AUTH BEGIN_ATOMIC COMMIT_ATOMIC ROLLBACK_ATOMIC DATA CORRUPTFS",
    "CORRUPT": "VTAB SEQUENCE INDEX",
    "CANTOPEN": "NOTEMPDIR ISDIR FULLPATH CONVPATH DIRTYWAL SYMLINK",
    "CONSTRAINT": "CHECK COMMITHOOK FOREIGNKEY FUNCTION NOTNULL PRIMARYKEY TRIGGER UNIQUE VTAB ROWID PINNED DATATYPE",
    "AUTH": "USER",
    "NOTICE": "RECOVER_WAL RECOVER_ROLLBACK",
    "WARNING": "AUTOINDEX",
}

CODES = {f"SQLITE_{name}": code for code, name in enumerate(_PRIMARY)}
CODES |= {
    f"SQLITE_{name}_{extension}": _PRIMARY.index(name) | number << 8
    for name, extensions in _EXTENDED.items()
    for number, extension in enumerate(extensions.split(), 1)
    if extension != "."
}
_NAMES = {code: name for name, code in CODES.items()}

# By SQLite's primary code; all others are DatabaseError.
_CLASSES = {
    "INTERNAL": InternalError,
    "NOTFOUND": InternalError,
    "NOMEM": MemoryError,
    "CORRUPT": DatabaseError,
    "TOOBIG": DataError,
    "CONSTRAINT": IntegrityError,
    "MISMATCH": IntegrityError,
    "MISUSE": InterfaceError,
    "RANGE": InterfaceError,
} | dict.fromkeys(
    "ERROR PERM ABORT BUSY LOCKED READONLY INTERRUPT IOERR FULL CANTOPEN PROTOCOL EMPTY SCHEMA".split(), OperationalError
)

# The service's errors (sqlipc_error in sqlipc.h) that come without a code of SQLite: the code that a program for sqlite3
# expects instead, or None; and the class, if it is not that of the code.
_SERVICE = {
    1: ("CANTOPEN", None),  # UNKNOWN_DATABASE
    6: (None, ProgrammingError),  # PARAMETER_COUNT
    7: (None, ProgrammingError),  # UNKNOWN_PARAMETER
    8: (None, ProgrammingError),  # PARAMETER_TYPE
    9: (None, ProgrammingError),  # EMPTY_STATEMENT
    10: (None, ProgrammingError),  # SEVERAL_STATEMENTS
    11: ("ERROR", None),  # SQL
    12: ("ERROR", None),  # MISSING_FUNCTION
    13: ("ERROR_MISSING_COLLSEQ", None),  # MISSING_COLLATION
    14: ("ERROR", None),  # MISSING_MODULE
    15: ("READONLY", None),  # READ_ONLY
    16: ("AUTH", None),  # NOT_ALLOWED
    17: ("CORRUPT", None),
    18: ("CANTOPEN", None),  # FILE_MISSING
    19: ("CANTOPEN", None),  # CANNOT_OPEN
    20: ("CANTOPEN", None),  # NEEDS_OWNER
    21: ("CANTOPEN", None),  # NEEDS_RECOVERY
    22: ("IOERR", None),  # INPUT_OUTPUT
    23: ("FULL", None),  # LIMITS_EXCEEDED
    24: ("TOOBIG", None),  # ROW_TOO_LARGE
    25: ("NOMEM", None),  # OUT_OF_MEMORY
    26: ("FULL", None),  # NO_SPACE
    27: ("BUSY", None),
    28: ("INTERRUPT", None),  # TIMED_OUT
    29: ("ABORT", None),  # READER_TOO_SLOW
    30: ("INTERRUPT", None),  # CANCELLED
    35: ("INTERNAL", None),
    36: ("CANTOPEN", None),  # ACCESS_DENIED
    38: (None, NotSupportedError),  # NO_DESCRIPTORS
    40: ("ABORT_ROLLBACK", None),  # TRANSACTION_ENDED
    41: ("CANTOPEN", None),  # SERVER_UNREACHABLE
    42: ("CANTOPEN", None),  # LOGIN_FAILED
    43: ("CONSTRAINT_FOREIGNKEY", None),  # COMMIT_REFUSED
    44: ("AUTH", None),  # NEEDS_PIN
    45: ("ABORT", None),  # PIN_LOST
}

class NoProgressError(OperationalError):
    """The descriptor of a connection is ready again and again, for nothing."""


OUTCOME_UNKNOWN = "org.sqlipc1.Error.OutcomeUnknown"
BUSY = "org.sqlipc1.Error.Busy"
SQL_FAILED = "org.sqlipc1.Error.Sql"
LIMITS_EXCEEDED = "org.sqlipc1.Error.LimitsExceeded"
TRANSACTION_ENDED = "org.sqlipc1.Error.TransactionEnded"
PIN_LOST = "org.sqlipc1.Error.PinLost"
UNKNOWN_OPTION = "org.sqlipc1.Error.UnknownOption"

# Failures of the library itself.
_ERRNO = {
    errno.ECANCELED: ("INTERRUPT", None),
    errno.ENOMEM: ("NOMEM", None),
    errno.EINVAL: (None, ProgrammingError),
    errno.ENOTCONN: (None, ProgrammingError),
    errno.ECHILD: (None, ProgrammingError),
    errno.EOPNOTSUPP: (None, NotSupportedError),
    errno.ELOOP: (None, NoProgressError),
}


def error_of_code(name, message):
    """Returns the exception that SQLite's result code `name`, such as "BUSY", becomes."""
    code = CODES["SQLITE_" + name]
    result = _CLASSES.get(_PRIMARY[code & 255], DatabaseError)(message)
    if isinstance(result, Error):
        result.sqlite_errorcode, result.sqlite_errorname = code, "SQLITE_" + name
    return result


def outcome_unknown(message):
    """Returns the exception for a statement that may have taken effect."""
    result = OperationalError(message)
    result.service_error = OUTCOME_UNKNOWN
    return result


def make_error(r, service_code, service_name, message, sqlite_code, sql_offset, strerror):
    """Returns the exception for a failure of libsqlipc, of which the native part passes the details."""
    text = message or strerror
    if sqlite_code and sqlite_code & 255 < len(_PRIMARY):
        name = _NAMES.get(sqlite_code, _NAMES[sqlite_code & 255]).removeprefix("SQLITE_")
        result = error_of_code(name, text)
        if isinstance(result, Error):
            result.sqlite_errorcode = sqlite_code
    else:
        name, kind = _SERVICE.get(service_code, (None, None)) if service_code else _ERRNO.get(-r, (None, None))
        result = error_of_code(name, text) if name else (kind or OperationalError)(text)
    if isinstance(result, Error):
        result.service_error = service_name
        result.sql_offset = sql_offset if sql_offset >= 0 else None
    return result
