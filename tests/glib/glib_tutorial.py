#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the code of the tutorial of libsqlipc-glib, for test_glib.py. usage: glib_tutorial.py TUTORIAL

The service has the databases "packages" with the table package(name, section, installed_size), and "notes" with the table
note(author, text). Prints what the code prints, then the text of the note, and the rows that the list shows.
"""
import pathlib
import re
import sys
import textwrap

import gi

gi.require_version("Gtk", "4.0")
from gi.repository import GLib, Gtk  # noqa: E402

assert Gtk.init_check(), "there is no screen"
text = pathlib.Path(sys.argv[1]).read_text()
blocks = [textwrap.dedent(block) for block in re.findall(r"(?:^(?: {4}.*)?\n)+", text, re.M) if block.strip()]
names = {"Gtk": Gtk}
context = GLib.MainContext.default()


def run_for(msec):
    over = []
    GLib.timeout_add(msec, lambda: over.append(True))
    while not over:
        context.iteration(True)


GLib.MainLoop.run = lambda loop: run_for(100)  # the tutorial's own would run for ever
for block in blocks:
    exec(compile(block, sys.argv[1], "exec"), names)  # noqa: S102
    run_for(100)
note = names["connection"].query("notes", "SELECT text FROM note", None, None).next(None).get_text(0)
while not names["model"].is_settled():
    context.iteration(True)
print(len(blocks), "blocks,", note + ",", names["model"].get_n_items(), "rows in", type(names["view"]).__name__)
