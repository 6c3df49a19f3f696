#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scrolls a live model of 1,000,000 rows, for test_glib.py. usage: glib_scroll.py ADDRESS

Prints the private memory before, after the rows were counted, and after scrolling, in KB.
"""
import pathlib
import re
import sys

import gi

gi.require_version("Sqlipc", "1")
from gi.repository import GLib, Sqlipc  # noqa: E402

N = 1000000
context = GLib.MainContext.default()


def memory():
    return int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1])


def settle(model):
    while not model.is_settled():
        context.iteration(True)
    assert model.get_error() is None


connection = Sqlipc.Connection.new_for_address(sys.argv[1])
before = memory()
model = Sqlipc.LiveModel.new_windowed(connection, "written", "SELECT * FROM many", None, ["id"], None)
settle(model)
assert model.get_n_items() == N, model.get_n_items()
counted = memory()
held = model.get_item(N // 2)
settle(model)
for position in range(0, N, N // 200):
    rows = [model.get_item(position + i) for i in range(30)]
    settle(model)
    assert [row.get_int64(0) for row in rows] == list(range(position + 1, position + 31))
    del rows
assert model.get_item(N // 2) is held and held.get_int64(0) == N // 2 + 1
scrolled = memory()
print(before, counted - before, scrolled - before)
assert scrolled - before < 16 * 1024, "memory grows with the rows"
