#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Drives docs/examples/glib/browser.py on an X server without a screen, for test_glib.py.

usage: glib_browser.py BROWSER ADDRESS FILE [PICTURE]

With PICTURE, saves the picture of the window by ImageMagick.
"""
import importlib.util
import sqlite3
import subprocess
import sys
import time

import gi

gi.require_version("Gtk", "4.0")
gi.require_version("Sqlipc", "1")
from gi.repository import GLib, Gtk, Sqlipc  # noqa: E402

spec = importlib.util.spec_from_file_location("browser", sys.argv[1])
browser = importlib.util.module_from_spec(spec)
spec.loader.exec_module(browser)
context = GLib.MainContext.default()


def wait_for(condition, what):
    end = time.monotonic() + 120
    GLib.timeout_add(50, lambda: time.monotonic() < end + 1)
    while not condition():
        assert time.monotonic() < end, what
        context.iteration(True)


def labels(widget):
    """All labels that may be edited, from the top."""
    found, child = [], widget.get_first_child()
    while child:
        found += [child] if isinstance(child, Gtk.EditableLabel) else labels(child)
        child = child.get_next_sibling()
    return found


def texts(window):
    return [label.get_text() for label in labels(window.view) if label.get_mapped()]


def save(path):
    subprocess.run(["import", "-window", "root", "-crop", "720x480+0+0", "+repage", path], check=True)


def drive(window):
    other = sqlite3.connect(sys.argv[3], timeout=60)
    other.execute("PRAGMA busy_timeout = 60000")
    wait_for(lambda: window.status.get_text() == "1000 rows" and "name 1" in texts(window), "the first rows")

    # Another program changes, adds and removes rows.
    other.execute("UPDATE t SET name = 'changed elsewhere' WHERE id = 2")
    other.execute("DELETE FROM t WHERE id = 3")
    other.commit()
    wait_for(lambda: "changed elsewhere" in texts(window) and "name 3" not in texts(window), "changes of others")
    wait_for(lambda: window.status.get_text() == "999 rows", "their number")

    # The user edits a value.
    label = next(label for label in labels(window.view) if label.get_text() == "name 1")
    label.start_editing()
    label.set_text("edited here")
    label.stop_editing(True)
    edited = "SELECT count(*) FROM t WHERE name = 'edited here'"
    wait_for(lambda: other.execute(edited).fetchone() == (1,), "the edit")
    wait_for(lambda: "edited here" in texts(window), "the edit in the window")

    window.activate_action("win.sort", GLib.Variant("s", "id DESC"))
    wait_for(lambda: "name 1000" in texts(window), "the last row first")
    if len(sys.argv) > 4:
        wait_for(lambda: window.model.is_settled(), "the end")
        end = time.monotonic() + 1
        wait_for(lambda: time.monotonic() > end, "drawing")
        save(sys.argv[4])
    window.search.set_text("name 77")
    wait_for(lambda: window.status.get_text() == "11 rows" and "name 777" in texts(window), "the search")
    other.close()


def on_activate(application):
    connection = Sqlipc.Connection.new_for_address(sys.argv[2])
    window = browser.Browser(application, connection, "written", "t", "id")
    window.present()
    try:
        drive(window)
        application.verdict = 0
    finally:
        application.quit()


application = Gtk.Application()
application.verdict = 1
application.connect("activate", on_activate)
application.run([])
sys.exit(application.verdict)
