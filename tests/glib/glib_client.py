#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every class of libsqlipc-glib from Python, for test_glib.py. usage: glib_client.py ADDRESS"""
import sys

import gi

gi.require_version("Sqlipc", "1")
from gi.repository import Gio, GLib, Sqlipc  # noqa: E402

DB = "written"
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
context = GLib.MainContext.default()
connection = Sqlipc.Connection.new_for_address(sys.argv[1])


def wait(start, finish, *arguments, cancellable=None):
    """Calls an asynchronous function and runs the loop until its result is there."""
    results = []
    start(*arguments, cancellable, lambda source, result: results.append(result))
    while not results:
        context.iteration(True)
    return finish(results[0])


def settle(model):
    context.iteration(False)
    while not model.is_settled():
        context.iteration(True)
    assert model.get_error() is None


# Connection, Cursor, Row
assert [name for name, _, _ in connection.list_databases(None).unpack()] == [DB]
listed = wait(connection.list_databases_async, connection.list_databases_finish)
assert listed.unpack() == [(DB, "", "read-write")]
parameters = GLib.Variant("(xdsay)", (2**62, 0.5, "täxt", b"\0\1"))
cursor = connection.query(DB, "SELECT ?1, ?2, ?3, ?4, NULL", parameters, None)
row = cursor.next(None)
assert row.to_variant().unpack() == [2**62, 0.5, "täxt", [0, 1], None]
assert [row.get_value(i) for i in (0, 1, 2, 4)] == [2**62, 0.5, "täxt", None]
assert row.dup_blob(3).get_data() == b"\0\1" and row.get_text(2) == "täxt" and row.is_null(4)
assert cursor.next(None) is None

# Rows
cursor = wait(connection.query_async, connection.query_finish, DB, "SELECT id, name FROM t ORDER BY id", None)
rows = wait(cursor.next_rows_async, cursor.next_rows_finish, 10)
assert rows.dup_int64s(0) == list(range(1, 11)) and rows.dup_strings(1)[9] == "name 10"
assert rows.dup_nulls(1) == [False] * 10 and rows.to_variant().unpack()[0] == [1, "name 1"]
assert wait(cursor.next_async, cursor.next_finish).get_int64(0) == 11

# Errors
try:
    connection.query(DB, "SELECT nothing FROM t", None, None)
    raise AssertionError("no error")
except GLib.Error as error:
    assert error.matches(Sqlipc.error_quark(), Sqlipc.Error.SQL), error
    assert connection.get_error_sql_offset() == 7 and connection.get_error_sqlite_code() == 1
    assert connection.get_error_name() == "org.sqlipc1.Error.Sql"

# Cancellation
cancellable = Gio.Cancellable()
GLib.timeout_add(20, cancellable.cancel)
try:
    wait(connection.query_async, connection.query_finish, DB, ENDLESS, None, cancellable=cancellable)
    raise AssertionError("no error")
except GLib.Error as error:
    assert error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), error

# Statement
statement = wait(connection.prepare_async, connection.prepare_finish, DB, "SELECT name FROM t WHERE id = ?")
statement.bind_value(1, 7)
assert statement.query(None).next(None).get_text(0) == "name 7"
statement.bind_variant(1, GLib.Variant("i", 8))
assert wait(statement.query_async, statement.query_finish).next(None).get_text(0) == "name 8"
assert statement.props.sql.startswith("SELECT")

# Transaction
transaction = wait(connection.begin_async, connection.begin_finish, DB, Sqlipc.TransactionMode.WRITE)
assert wait(connection.execute_async, connection.execute_finish, DB, "DELETE FROM t WHERE id = 1", None) == (True, 1, 0)
assert wait(transaction.rollback_async, transaction.rollback_finish)

# One that reads first, and is old when it writes
transaction = connection.begin(DB, Sqlipc.TransactionMode.DEFERRED, None)
assert connection.query(DB, "SELECT count(*) FROM loaded", None, None).next(None).get_int64(0) == 0
other = Sqlipc.Connection.new_for_address(sys.argv[1])
other.execute(DB, "UPDATE t SET name = name || '!' WHERE id = 1", None, None)
try:
    connection.execute(DB, "DELETE FROM t", None, None)
    raise AssertionError("no error")
except GLib.Error as error:
    assert error.matches(Sqlipc.error_quark(), Sqlipc.Error.BUSY), error
assert transaction.is_open() and transaction.rollback(None)
transaction = connection.begin(DB, Sqlipc.TransactionMode.DEFERRED, None)
assert connection.query(DB, "SELECT count(*) FROM loaded", None, None).next(None).get_int64(0) == 0
connection.execute(DB, "UPDATE t SET name = 'name 1' WHERE id = 1", None, None)
assert transaction.commit(None)

# Load
load = connection.load(DB, "INSERT INTO loaded VALUES(?, ?)")
assert wait(load.add_rows_async, load.add_rows_finish, GLib.Variant("a(is)", [(i, "x") for i in range(1000)]))
assert wait(load.complete_async, load.complete_finish) == (True, 1000)

# LiveModel
for make, arguments in ((Sqlipc.LiveModel.new, []), (Sqlipc.LiveModel.new_windowed, [["name"]])):
    model = make(connection, DB, "SELECT id, name FROM t WHERE id > ?", GLib.Variant("(i)", (900,)), ["id"], *arguments)
    settle(model)
    assert model.get_n_items() == 100 and model.dup_column_names() == ["id", "name"]
    row = model.get_item(40)
    versions = []
    row.connect("notify::version", lambda *_: versions.append(row.get_text(1)))
    connection.execute(DB, "UPDATE t SET name = name || '!' WHERE id > 900", None, None)
    model.refresh()
    settle(model)
    assert model.get_item(40) is row and versions == [row.get_text(1)] and versions[0].endswith("!")
    connection.execute(DB, "UPDATE t SET name = 'name ' || id WHERE id > 900", None, None)
    model.set_query(None, GLib.Variant("(i)", (990,)))
    settle(model)
    assert model.get_n_items() == 10
model.set_order(["id DESC"])
settle(model)
assert model.get_item(0).get_int64(0) == 1000

# Watch, LiveQuery, LiveChange: the model of the same file is current by a watch of its own
watch = connection.watch_tables(DB, ["loaded"])
changes = []
watch.connect("changed", changes.append)
watch.start()
while not watch.get_sequence():
    context.iteration(True)
connection.execute(DB, "DELETE FROM loaded", None, None)
while not changes:
    context.iteration(True)
watch.close()
live = connection.live_query(DB, "SELECT id, name FROM t WHERE id < ? ORDER BY id", GLib.Variant("(i)", (3,)), [0])
change = wait(live.next_async, live.next_finish)
assert change.get_kind() == Sqlipc.LiveKind.ADDED and change.get_row().to_variant().unpack() == [1, "name 1"]
assert [live.next(None).get_kind() for _ in range(2)] == [Sqlipc.LiveKind.ADDED, Sqlipc.LiveKind.SETTLED]
live.close()
connection.execute(DB, "INSERT INTO t(id, name) VALUES(2000, 'by a watch')", None, None)
while model.get_n_items() == 10 or not model.is_settled():
    context.iteration(True)
assert model.get_item(0).get_text(1) == "by a watch"

connection.close()
assert connection.is_closed()
