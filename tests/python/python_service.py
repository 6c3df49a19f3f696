# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private bus with the service, for the tests of the Python package: "chinook" to read, "notes" to write."""

import contextlib
import sqlite3

import sqlipc
from harness import CHINOOK, PATIENCE, Service

SCHEMA = """
CREATE TABLE note(id INTEGER PRIMARY KEY, text UNIQUE);
CREATE TABLE thing(a, b, c);
"""


class PythonService(Service):
    """`notes` is the path of the file of the database "notes"."""

    def __init__(self, **keywords):
        super().__init__({"chinook": CHINOOK}, **keywords)
        self.notes = self.add("notes", SCHEMA)

    def add(self, name, schema="", journal="wal"):
        """Publishes a new database for writing, and returns the path of its file."""
        path = self.data / f"{name}.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(f"PRAGMA journal_mode = {journal}; {schema}")
        self.database(name, Path=path, Mode="read-write", WriteSchema="yes")
        self.driver.manager("Reload")
        return path

    def connect(self, name="notes", **keywords):
        return sqlipc.connect(name, bus=self.address, **{"timeout": PATIENCE} | keywords)

    def empty(self):
        """Empties the tables of "notes"."""
        with contextlib.closing(self.connect(isolation_level=None)) as db:
            db.execute("DELETE FROM note")
            db.execute("DELETE FROM thing")


def raises(kind, function, *arguments, **keywords):
    """Fails unless the call raises exactly this class; returns the exception."""
    try:
        result = function(*arguments, **keywords)
    except kind as error:
        if type(error) is not kind:
            raise AssertionError(f"got {error!r}, expected {kind.__name__}") from error
        return error
    raise AssertionError(f"got {result!r}, expected {kind.__name__}")
