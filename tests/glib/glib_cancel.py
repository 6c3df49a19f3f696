#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A cancellation at each place where a program of libsqlipc-glib waits, from Python: as glib-cancel.c.

usage: glib_cancel.py ADDRESS
"""
import sys

import gi

gi.require_version("Sqlipc", "1")
from gi.repository import Gio, GLib, Sqlipc  # noqa: E402

DB = "written"
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
INSERT = "INSERT INTO loaded VALUES(?, ?)"
MANY = GLib.Variant("a(is)", [(i, "x" * 100000) for i in range(100)])  # more than a pipe holds
context = GLib.MainContext.default()


def cursor(connection):
    opened = connection.query(DB, f"SELECT 1 UNION ALL SELECT * FROM ({ENDLESS})", None, None)
    opened.next(None)
    return opened


def live(connection):
    opened = connection.live_query(DB, "SELECT id FROM t WHERE id < 4", None, None)
    while opened.next(None).get_kind() != Sqlipc.LiveKind.SETTLED:
        pass
    return opened


def transaction(connection):
    begun = connection.begin(DB, Sqlipc.TransactionMode.WRITE, None)
    connection.execute(DB, "INSERT INTO loaded VALUES(1, 'x')", None, None)
    return begun


def load(connection):
    opened = connection.load(DB, INSERT)
    opened.add_rows(GLib.Variant("a(is)", [(1, "x")]), None)
    return opened


def loaded(connection):
    n = connection.query(DB, "SELECT count(*) FROM loaded", None, None).next(None).get_int64(0)
    connection.execute(DB, "DELETE FROM loaded", None, None)
    return n


def completed(load):
    """The outcome of a load: how many rows it has written."""
    try:
        return load.complete(None)[1]
    except GLib.Error as error:
        assert error.matches(Sqlipc.error_quark(), Sqlipc.Error.CANCELLED), error
        return 0


# The object that a call belongs to, its arguments, and a check for afterwards.
CALLS = {
    "Watch.next_async": (lambda c: c.watch_tables(DB, ["many"]), (), None),
    "Connection.begin_async": (None, (DB, Sqlipc.TransactionMode.WRITE), None),
    "Connection.execute_async": (None, (DB, ENDLESS, None), None),
    "Connection.list_databases_async": (None, (), None),
    "Connection.prepare_async": (None, (DB, "SELECT 1"), None),
    "Connection.query_async": (None, (DB, ENDLESS, None), None),
    "Cursor.next_async": (cursor, (), None),
    "Cursor.next_rows_async": (cursor, (0,), None),
    "LiveQuery.next_async": (live, (), None),
    "Load.add_rows_async": (load, (MANY,), lambda c, o: loaded(c) == 0),
    "Load.complete_async": (load, (), lambda c, o: completed(o) == loaded(c)),
    "Statement.query_async": (lambda c: c.prepare(DB, ENDLESS, None), (), None),
    "Transaction.commit_async": (transaction, (), lambda c, o: o.commit(None) and loaded(c) == 1),
    "Transaction.rollback_async": (transaction, (), lambda c, o: o.rollback(None) and loaded(c) == 0),
}


# These may have written, and the service is stopped, so that their outcome is unknown.
UNKNOWN = ("Load.complete_async", "Transaction.commit_async")


def tell(what, name):
    """Says something to the test, and runs the loop until it answers."""
    print(what, name, flush=True)
    here = []
    GLib.unix_fd_add_full(GLib.PRIORITY_DEFAULT, 0, GLib.IOCondition.IN, lambda *_: bool(here.append(True)))
    while not here:
        context.iteration(True)
    assert sys.stdin.readline()


def turn_for(msec):
    over = []
    GLib.timeout_add(msec, lambda: over.append(True))
    while not over:
        context.iteration(True)


for name, (make, arguments, check) in CALLS.items():
    connection = Sqlipc.Connection.new_for_address(sys.argv[1])
    target = make(connection) if make else connection
    start = name.split(".")[1]
    cancellable, results = Gio.Cancellable(), []
    tell("ready", name)
    getattr(target, start)(*arguments, cancellable, lambda _, result: results.append(result))
    turn_for(20)
    tell("waiting", name)
    assert not results, name
    cancellable.cancel()
    while not results:
        context.iteration(True)
    try:
        getattr(target, start.replace("_async", "_finish"))(results[0])
        raise AssertionError(f"{name}: no error")
    except GLib.Error as error:
        if name in UNKNOWN:
            assert error.matches(Sqlipc.error_quark(), Sqlipc.Error.OUTCOME_UNKNOWN), error
        else:
            assert error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), error
    tell("cancelled", name)
    assert not check or check(connection, target), name
    del target, connection
