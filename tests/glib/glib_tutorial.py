#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the code of the tutorial of libsqlipc-glib, for system/inside_documents.py. usage: glib_tutorial.py TUTORIAL

The service has the databases "packages" with the table package(name, section, installed_size), and "notes" with the table
note(author, text). Prints what the code prints, then the text of the note, and the rows that the list shows.
"""
import pathlib
import sys

import gi

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from pages import blocks  # noqa: E402

gi.require_version("Gtk", "4.0")
from gi.repository import GLib, Gtk  # noqa: E402

assert Gtk.init_check(), "there is no screen"
code = blocks(pathlib.Path(sys.argv[1]))
context = GLib.MainContext.default()
lines, n_lines = [], 0  # that the code has printed, and that it prints: one in each block that prints


def tell(*values):
    lines.append(values)
    print(*values)


def run():
    while len(lines) < n_lines:
        context.iteration(True)


names = {"Gtk": Gtk, "print": tell}
GLib.MainLoop.run = lambda loop: run()  # the tutorial's own would run for ever
for block in code:
    n_lines += "print(" in block
    exec(compile(block, sys.argv[1], "exec"), names)  # noqa: S102
    run()
note = names["connection"].query("notes", "SELECT text FROM note", None, None).next(None).get_text(0)
while not names["model"].is_settled():
    context.iteration(True)
print(len(code), "blocks,", note + ",", names["model"].get_n_items(), "rows in", type(names["view"]).__name__)
