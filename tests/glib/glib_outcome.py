#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cancelled writes from Python, with the functions that block: as glib-outcome.c. Another thread cancels.

usage: glib_outcome.py ADDRESS
"""
import sys
import threading
import time

import gi

gi.require_version("Sqlipc", "1")
from gi.repository import Gio, GLib, Sqlipc  # noqa: E402

DB = "written"
CANCELLED = (Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED)
UNKNOWN = (Sqlipc.error_quark(), Sqlipc.Error.OUTCOME_UNKNOWN)


def say(what):
    print(what, flush=True)
    assert sys.stdin.readline()


def rows(cursor):
    n = 0
    while cursor.next(None):
        n += 1
    return n


def execute(connection, sql):
    return lambda cancellable: 0 * connection.execute(DB, sql, None, cancellable)[0]


def query(connection, sql):
    return lambda cancellable: rows(connection.query(DB, sql, None, cancellable))


def statement(connection, sql):
    prepared = connection.prepare(DB, sql, None)
    return lambda cancellable: rows(prepared.query(cancellable))


def next_row(connection, sql):
    cursor = connection.query(DB, sql, None, None)
    assert cursor.next(None)
    return lambda cancellable: 1 + bool(cursor.next(cancellable)) + rows(cursor)


def next_rows(connection, sql):
    cursor = connection.query(DB, sql, None, None)
    assert cursor.next(None)

    def take(cancellable):
        block = cursor.next_rows(10, cancellable)
        return 1 + (block.get_n_rows() if block else 0) + rows(cursor)

    return take


def inside(connection, sql):
    transaction = connection.begin(DB, Sqlipc.TransactionMode.WRITE, None)
    return lambda cancellable: 0 * transaction.is_open() + query(connection, sql)(cancellable)


def commit(connection, sql):
    transaction = connection.begin(DB, Sqlipc.TransactionMode.WRITE, None)
    connection.execute(DB, sql, None, None)
    return lambda cancellable: 0 * transaction.commit(cancellable)


def complete(connection, sql):
    load = connection.load(DB, sql)
    load.add_rows(GLib.Variant("a(s)", [("x",)]), None)
    return lambda cancellable: 0 * load.complete(cancellable)[0]


CALLS = {
    "execute": execute,
    "query": query,
    "statement": statement,
    "next": next_row,
    "next_rows": next_rows,
    "inside": inside,
    "commit": commit,
    "complete": complete,
}


def result(function, cancellable):
    try:
        return f"done {function(cancellable)}"
    except GLib.Error as error:
        for known, name in ((CANCELLED, "cancelled"), (UNKNOWN, "unknown")):
            if error.matches(*known):
                return name
        return str(error)


def cancel(cancellable, moment):
    if moment.isdigit():
        time.sleep(int(moment) / 1e6)
    elif moment != "before":
        say("waiting")
    if moment != "never":
        cancellable.cancel()


for line in sys.stdin:
    name, moment, sql = line.rstrip("\n").split(" ", 2)
    function = CALLS[name](Sqlipc.Connection.new_for_address(sys.argv[1]), sql)
    cancellable = Gio.Cancellable()
    say("ready")
    canceller = threading.Thread(target=cancel, args=(cancellable, moment))
    canceller.start()
    if moment == "before":
        canceller.join()
    ended = result(function, cancellable)
    canceller.join()
    if moment == "before":
        say("waiting")
    say(ended)
    if ended == "unknown" and name in ("commit", "complete"):
        say(result(function, None))
    del function
