# SPDX-License-Identifier: LGPL-2.1-or-later
"""Copies of a whole database: as SQL, and into a file. SQL names the schema main: a TEMP table may have the same name."""

import contextlib
import os
import tempfile

import _sqlite3 as sqlite3  # A program may have put this package in the place of sqlite3.

from ._errors import CODES, NotSupportedError, OperationalError, ProgrammingError, error_of_code

_ROWS = 1000
_SCHEMA = "SELECT name, type, sql, tbl_name FROM main.sqlite_schema WHERE sql NOT NULL ORDER BY rowid"


def _identifier(name):
    return '"' + name.replace('"', '""') + '"'


def _is_of_object(error):
    """False for an error that would be the same for all objects, such as SQLITE_BUSY, SQLITE_INTERRUPT or a lost service."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # for one that the service did not tell, such as of text that is not UTF-8
        return getattr(error, "service_error", None) is None
    return code & 0xFF == CODES["SQLITE_ERROR"]


@contextlib.contextmanager
def _about(kind, name):
    """An error of the object in the block names it: one that cannot be copied must be told from all others."""
    try:
        yield
    except OperationalError as error:
        if _is_of_object(error):
            error.args = (f"{kind} {name}: {error}",)
        raise
    except sqlite3.OperationalError as error:
        ours = OperationalError(f"{kind} {name}: {error}" if _is_of_object(error) else str(error))
        ours.sqlite_errorcode = getattr(error, "sqlite_errorcode", None)
        ours.sqlite_errorname = getattr(error, "sqlite_errorname", None)
        raise ours from error


@contextlib.contextmanager
def _one_state(connection):
    """Everything in the block reads the same state: that of the open transaction, else of one on another connection."""
    core = connection._core
    if core.in_transaction:
        yield connection
        return
    other = connection._plain()
    try:
        other.execute("BEGIN")
        yield other
    finally:
        other.close()


def iterdump(connection):
    """Yields the statements of a dump, in the form of sqlite3. That of a virtual table is as sqlite3's shell writes it,
    because sqlite3.Connection.iterdump() writes statements that cannot be run."""
    with _one_state(connection) as source:
        yield "BEGIN TRANSACTION;"
        cursor = source.cursor()
        cursor.row_factory = None
        has_sequence, writable = False, False
        tables = cursor.execute(
            "SELECT name, type, sql FROM main.sqlite_master WHERE sql NOT NULL AND type == 'table' ORDER BY name"
        ).fetchall()
        for name, _, sql in tables:
            if name == "sqlite_sequence":
                has_sequence = True
                continue
            if name == "sqlite_stat1":
                yield 'ANALYZE "sqlite_master";'
            elif name.startswith("sqlite_"):
                continue
            elif sql.upper().startswith("CREATE VIRTUAL TABLE"):
                if not writable:
                    writable = True
                    yield "PRAGMA writable_schema=ON;"
                text = sql.replace("'", "''")
                quoted = name.replace("'", "''")
                yield (
                    "INSERT INTO sqlite_master(type,name,tbl_name,rootpage,sql)"
                    f"VALUES('table','{quoted}','{quoted}',0,'{text}');"
                )
                continue
            else:
                yield f"{sql};"
            with _about("table", name):
                yield from _inserts(cursor, name)
        others = "SELECT name, type, sql FROM main.sqlite_master WHERE sql NOT NULL AND type IN ('index', 'trigger', 'view')"
        for _, _, sql in cursor.execute(others).fetchall():
            yield f"{sql};"
        if has_sequence:  # at the end, because SQLite makes and fills the table when rows are inserted
            yield 'DELETE FROM "sqlite_sequence";'
            yield from _inserts(cursor, "sqlite_sequence")
        if writable:
            yield "PRAGMA writable_schema=OFF;"
        yield "COMMIT;"


def _inserts(cursor, table):
    info = "SELECT name FROM pragma_table_info(?, 'main')"
    columns = [column[0] for column in cursor.execute(info, (table,)).fetchall()]
    literal = table.replace("'", "''")
    values = ",".join(f"'||quote({_identifier(column)})||'" for column in columns)
    statement = f"INSERT INTO {_identifier(literal)} VALUES({values})"
    yield from (f"{row[0]};" for row in cursor.execute(f"SELECT '{statement}' FROM main.{_identifier(table)}"))


# ---- into a file ----


def _refuse(connection, target):
    """Raises an exception, because the target is a connection of this package."""
    if target is connection:
        raise ValueError("target cannot be the same connection instance")
    target._check()
    if target.in_transaction:
        raise error_of_code("ERROR", "target is in transaction")
    raise NotSupportedError("backup() writes a file; the target is a database of the service.")


def backup(connection, target, pages, progress, name, sleep):
    if name != "main":
        raise NotSupportedError("The service publishes a database as main; there is no other name.")
    if progress is not None and not callable(progress):
        raise TypeError("progress argument must be a callable")
    if isinstance(target, sqlite3.Connection):
        with _temporary(None) as path:
            _write_file(connection, path, pages, progress, sleep)
            with contextlib.closing(sqlite3.connect(path)) as source:
                source.backup(target)
    elif isinstance(target, (str, os.PathLike)):
        target = os.fspath(target)
        with _temporary(os.path.dirname(os.path.abspath(target))) as path:
            _write_file(connection, path, pages, progress, sleep)
            os.replace(path, target)
    elif hasattr(target, "_plain"):
        _refuse(connection, target)
    else:
        raise TypeError("backup() argument 'target' must be sqlite3.Connection or a path, not " + type(target).__name__)


@contextlib.contextmanager
def _temporary(folder):
    """A path for a new file, beside its destination so that it can be renamed; removed at the end if it is still there."""
    with tempfile.TemporaryDirectory(prefix=".sqlipc-backup-", dir=folder) as own:
        yield os.path.join(own, "copy.sqlite")


def _write_file(connection, path, pages, progress, sleep):
    with _one_state(connection) as source, contextlib.closing(sqlite3.connect(path, isolation_level=None)) as copy:
        read = source.cursor()
        read.row_factory = None
        _copy_properties(read, copy)
        copy.execute("PRAGMA synchronous = OFF")  # the file is synced once, at the end
        copy.execute("BEGIN")
        objects = read.execute(_SCHEMA).fetchall()
        virtual = {name for name, kind, sql, _ in objects if kind == "table" and sql.upper().startswith("CREATE VIRTUAL")}
        plain = [row for row in objects if row[1] == "table" and row[0] not in virtual and not row[0].startswith("sqlite_")]
        for name, _, sql, _ in plain:
            with _about("table", name):
                copy.execute(sql)
        tables = [row[0] for row in plain] + [row[0] for row in objects if row[0] == "sqlite_sequence"]
        for done, table in enumerate(tables, 1):
            with _about("table", table):
                _copy_table(read, copy, table)
            if progress is not None and (done == len(tables) or (pages > 0 and done % pages == 0)):
                progress(sqlite3.SQLITE_DONE if done == len(tables) else sqlite3.SQLITE_OK, len(tables) - done, len(tables))
        _copy_rest(copy, objects, virtual)
        copy.execute("COMMIT")
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _copy_properties(read, copy):
    for pragma in ("page_size", "encoding", "auto_vacuum", "user_version", "application_id"):
        try:
            ((value,),) = read.execute(f"SELECT {pragma} FROM pragma_{pragma}").fetchall()
        except Exception as error:  # the service may hide one
            if pragma in ("user_version", "application_id"):
                raise ProgrammingError(f"the database does not tell its {pragma}") from error
            continue
        copy.execute(f"PRAGMA {pragma} = '{value}'" if isinstance(value, str) else f"PRAGMA {pragma} = {value}")


def _copy_table(read, copy, table):
    """With rowids, which are part of the data if no column shows them, as bytes: text need not be UTF-8."""
    info = read.execute("SELECT name, hidden, pk, upper(type) FROM pragma_table_xinfo(?, 'main')", (table,)).fetchall()
    columns = [_identifier(name) for name, hidden, _, _ in info if hidden == 0]
    names = {name.lower() for name, *_ in info}
    rowid = next((word for word in ("rowid", "_rowid_", "oid") if word not in names), None)
    if table != "sqlite_sequence" and rowid is not None and _has_rowid(read, table, rowid):
        columns.insert(0, rowid)
    listed = ", ".join(columns)
    if table == "sqlite_sequence":
        copy.execute("DELETE FROM sqlite_sequence")
    insert = f"INSERT INTO {_identifier(table)}({listed}) VALUES ({', '.join('?' * len(columns))})"
    read.execute(f"SELECT {listed} FROM main.{_identifier(table)}")
    while rows := read.fetchmany(_ROWS):
        copy.executemany(insert, rows)


def _has_rowid(read, table, rowid):
    without = read.execute("SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", (table,)).fetchone()
    return not without or not without[0]


def _copy_rest(copy, objects, virtual):
    """Indexes, views and triggers; and virtual tables, whose rows are in tables of their own, which are copied already."""
    if virtual:
        copy.execute("PRAGMA writable_schema = ON")
        for name, _, sql, tbl_name in objects:
            if name in virtual:
                copy.execute(
                    "INSERT INTO sqlite_schema(type, name, tbl_name, rootpage, sql) VALUES ('table', ?, ?, 0, ?)",
                    (name, tbl_name, sql),
                )
        copy.execute("PRAGMA writable_schema = RESET")
    for kind in ("index", "view", "trigger"):
        for name, of_kind, sql, _ in objects:
            if of_kind == kind:
                with _about(kind, name):
                    copy.execute(sql)
