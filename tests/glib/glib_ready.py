#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A descriptor of a connection of libsqlipc-glib that is ready for ever, for nothing: the main loop must not spin.

usage: glib_ready.py ADDRESS CALL DESCRIPTOR
"""
import pathlib
import resource
import sys

import gi

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
gi.require_version("Sqlipc", "1")
from gi.repository import GLib, Sqlipc  # noqa: E402
from readiness import BUS, WAKE, make_ready, sets  # noqa: E402

DB = "written"
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
context = GLib.MainContext.default()
ended = []


def on_end(source, result):
    ended.append(result)


def query(connection):
    connection.query_async(DB, ENDLESS, None, None, on_end)
    return connection.query_finish


def watch(connection):
    opened = connection.watch_tables(DB, ["many"])
    opened.next(None)  # it has begun
    opened.next_async(None, on_end)
    return opened.next_finish


def live(connection):
    opened = connection.live_query(DB, "SELECT id FROM t WHERE id < 4", None, None)
    while opened.next(None).get_kind() != Sqlipc.LiveKind.SETTLED:
        pass
    opened.next_async(None, on_end)
    return opened.next_finish


def load(connection):
    """The service computes the first row, so the pipe is full."""
    opened = connection.load(DB, f"INSERT INTO t (id) SELECT ({ENDLESS}) WHERE length(?)")
    rows = [GLib.Variant("(s)", ("x" * 10000,))] * 1000
    opened.add_rows_async(GLib.Variant.new_array(None, rows), None, on_end)
    return opened.add_rows_finish


def set_of(connection, before):
    """The epoll set in which the library of the connection has the wake-up descriptor."""
    return next(fd for fd, data in sets().items() if fd not in before and WAKE in data)


_, address, call, descriptor = sys.argv
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
before = sets()
connection = Sqlipc.Connection.new_for_address(address)
fd = set_of(connection, before)
finish = globals()[call](connection)
while not (own := [data for data in sets()[fd] if data > WAKE]):
    context.iteration(False)
    assert not ended
assert not ended
for data in own if descriptor == "own" else [{"bus": BUS, "wake": WAKE}[descriptor]]:
    make_ready(fd, data)
while not ended:
    context.iteration(True)
try:
    finish(ended[0])
except GLib.Error as error:
    print(error.message)
assert connection.is_closed()
for _ in range(100):
    context.iteration(False)
assert not context.pending()
