# SPDX-License-Identifier: LGPL-2.1-or-later
"""The dialect of SQLAlchemy 2 for databases of the service.

    engine = sqlalchemy.create_engine("sqlipc://user/chinook")

The host is the bus, "user" or "system"; without one the bus that has the database, as in sqlipc.connect(). Options of
sqlipc.connect() may follow as a query: timeout, detect_types, isolation_level, autocommit, cached_statements,
check_same_thread, host (of another machine), and bus, in place of the host: "user", "system" or a D-Bus address. Another
option is an error. In all else it is SQLAlchemy's dialect for SQLite, except that the service knows no functions of the
client: there is no REGEXP.

Isolation levels, of which an engine has the first one unless it is told otherwise:

SERIALIZABLE    autocommit=False. A transaction begins with its first statement, also with a SELECT. If others have committed
                since it has read, it cannot write: its statement fails at once with "database is locked" (SQLITE_BUSY or
                SQLITE_BUSY_SNAPSHOT). Roll back and repeat it.
READ COMMITTED  autocommit=legacy. A transaction begins before the first statement that writes. A SELECT before that takes no
                part, and costs less; an update of others in between is overwritten.
AUTOCOMMIT      autocommit=true, or isolation_level=None of connect(). No transaction begins by itself.

If the user has all transactions that TransactionsMax= permits, a SERIALIZABLE one may still read, each SELECT the state that
is committed then. get_isolation_level() tells that, and the transaction cannot write.
"""

from sqlalchemy import exc, pool, util
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from ._core import LEGACY_TRANSACTION_CONTROL
from ._errors import PIN_LOST

# Errors after which the connection is of no more use: a program that uses a pool then gets another one.
_LOST = ("Cannot operate on a closed database.", "belongs to the parent of this process")


def _autocommit_of(text):
    """Returns the value of the option autocommit."""
    return LEGACY_TRANSACTION_CONTROL if text.lower() == "legacy" else util.asbool(text)


# The options of a URL's query, with the functions that convert their text.
_OPTIONS = {
    "autocommit": _autocommit_of,
    "bus": str,
    "host": str,
    "timeout": float,
    "isolation_level": str,
    "detect_types": int,
    "check_same_thread": util.asbool,
    "cached_statements": int,
}


def _options_of(query):
    """Returns the options of a URL's query. An option that is unknown, repeated or malformed is an error: without it, the
    program could reach another database than the URL says."""
    options = {}
    for name, text in query.items():
        if name not in _OPTIONS:
            raise exc.ArgumentError(f"Invalid URL: unknown option {name!r}. The options are {', '.join(_OPTIONS)}.")
        if not isinstance(text, str):
            raise exc.ArgumentError(f"Invalid URL: option {name!r} is repeated.")
        try:
            options[name] = _OPTIONS[name](text)
        except ValueError as error:
            raise exc.ArgumentError(f"Invalid URL: option {name!r}: {error}") from None
    return options


class SQLiteDialect_sqlipc(SQLiteDialect_pysqlite):
    """SQLite behind the service sqlipcd."""

    driver = "sqlipc"
    supports_statement_cache = True

    @classmethod
    def import_dbapi(cls):
        """Return the module that connects."""
        import sqlipc

        return sqlipc

    @classmethod
    def get_pool_class(cls, url):
        """Return the kind of pool: connections are independent of each other."""
        return pool.QueuePool

    def _get_server_version_info(self, connection):
        """The version of the service's SQLite. No event or log of the engine sees the query, as with pysqlite."""
        text, = connection.connection.cursor().execute("SELECT sqlite_version()").fetchone()
        return tuple(int(part) for part in text.split("."))

    def on_connect(self):
        """Return None: no functions can be created."""
        return None

    def create_connect_args(self, url):
        """Return the arguments of sqlipc.connect() for a URL."""
        if not url.database or url.username or url.password or url.port or url.host not in (None, "", "user", "system"):
            raise exc.ArgumentError(f"Invalid URL: {url}. The form is sqlipc://user/DATABASE or sqlipc://system/DATABASE.")
        options = _options_of(url.query)
        if url.host:
            if "bus" in options:
                raise exc.ArgumentError(f"Invalid URL: {url} names two buses, {url.host!r} and {options['bus']!r}.")
            options["bus"] = url.host
        return [url.database], {"check_same_thread": False} | options

    def connect(self, *arguments, **keywords):
        """Return a connection. A SELECT belongs to the transaction, unless the program has chosen how transactions begin: if
        it did not, an UPDATE after it could overwrite what others have written in between."""
        if "isolation_level" not in keywords:
            keywords.setdefault("autocommit", False)
        connection = super().connect(*arguments, **keywords)
        connection._core.reads_beyond_limit = True
        return connection

    def is_disconnect(self, e, connection, cursor):
        """Return True if the connection is of no more use. One that has lost its TEMP tables could go on, but a pool
        must not tell that to the next user, who has never seen them."""
        if getattr(e, "service_error", None) == PIN_LOST:
            return True
        return isinstance(e, self.dbapi.ProgrammingError) and any(text in str(e) for text in _LOST)

    def get_isolation_level(self, dbapi_connection):
        """Return the isolation level of the transaction, or of the next one."""
        core = dbapi_connection._core
        if core.autocommit is False:
            return "READ COMMITTED" if core.has_read_outside else "SERIALIZABLE"
        return "AUTOCOMMIT" if core.autocommit is True or core.isolation_level is None else "READ COMMITTED"

    def set_isolation_level(self, dbapi_connection, level):
        """Set one of the isolation levels: the service has no READ UNCOMMITTED."""
        core = dbapi_connection._core
        if core.isolation_level is not None:
            dbapi_connection._level = core.isolation_level  # such as IMMEDIATE, which it has again after AUTOCOMMIT
        dbapi_connection.autocommit = False if level == "SERIALIZABLE" else LEGACY_TRANSACTION_CONTROL
        dbapi_connection.isolation_level = None if level == "AUTOCOMMIT" else getattr(dbapi_connection, "_level", "")

    def detect_autocommit_setting(self, dbapi_connection):
        """Return True if no transaction begins by itself."""
        return self.get_isolation_level(dbapi_connection) == "AUTOCOMMIT"

    def get_isolation_level_values(self, dbapi_connection):
        """Return the isolation levels."""
        return ["AUTOCOMMIT", "READ COMMITTED", "SERIALIZABLE"]


dialect = SQLiteDialect_sqlipc
