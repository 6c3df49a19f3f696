#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Values with terminal control sequences, and very large values: all of a value reaches the terminal only as text."""
import os
import re
import sqlite3
import threading

from pty_shell import ENTER, HOSTILE, Shell, generate  # finds what follows

from client import NAME, connect, own
from gi.repository import Gio, GLib
from harness import PATIENCE, SOURCE_ROOT, SANITIZED, Service, main, rss_anon, wait_for
from tap import at_most, equal, test, true

MODES = "table box qbox markdown column vertical line list csv tsv json jsonl html insert quote ascii tcl".split()
# Sequences of the shell itself: colours, and those of the line editor.
OURS = re.compile(rb"\x1b\[[0-9;?]*[mKJHABCDGhlPr@]")
# Characters without control functions in a terminal: printable characters, line ends and tabs.
HARMLESS = re.compile(r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*")

service = Service(start=False, limits={"RowSizeMax": "256M", "HeapMax": "512M"})
generate(service.data / "odd.sqlite")
service.database("odd", Path=service.data / "odd.sqlite")
service.start()


def shell_of(database="odd", pager="", **keywords):
    keywords["environment"] = {"PAGER": pager} | keywords.get("environment", {})
    return Shell(database, on=service, **keywords)


def written(shell, line):
    """Runs a line; returns the bytes that the shell wrote, without its own sequences."""
    shell.type(line)
    before = len(shell.raw)
    shell.send(ENTER)
    shell.wait_for(lambda: len(shell.raw) > before and shell.at_prompt(), "its answer")
    return OURS.sub(b"", shell.raw[before:])


def harmless(data, what):
    text = data.decode(errors="replace")
    match = HARMLESS.fullmatch(text.replace("\r", ""))
    true(match, f"{what} wrote {data!r}")


@test
def values():
    """Escape sequences as value, name, error text and plan are harmless in every mode, with and without colours"""
    for term in ("xterm-256color", "dumb"):
        with shell_of(environment={"TERM": term}) as shell:
            for mode in MODES:
                shell.run(f".mode {mode}")
                data = written(shell, "SELECT value FROM hostile;")
                true(b"red" in data, f"mode {mode} shows no value: {data!r}")
                harmless(data, f"mode {mode} on {term}")


@test
def values_in_the_pager():
    """The same values in the pager, which passes colours through"""
    with shell_of(pager="cat", size=(8, 80)) as shell:
        for mode in MODES:
            shell.run(f".mode {mode}")
            data = written(shell, "SELECT value FROM hostile, (SELECT 1 FROM big LIMIT 30);")
            true(b"red" in data, f"mode {mode} shows no value: {data!r}")
            harmless(data, f"mode {mode}")


@test
def names_and_complaints():
    """Escape sequences in a column's name, in wrong SQL and in the output of commands are harmless"""
    name = "t\x1b[31mred\x1b]0;title\x07"
    path = service.data / "names.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f'CREATE TABLE "{name}"("c\x1b]2;green\x07" TEXT DEFAULT \'\x1b]2;yellow\x07\')')
    connection.execute(f'CREATE INDEX "i\x1b]2;blue\x07" ON "{name}"("c\x1b]2;green\x07")')
    connection.close()
    service.database("names", Path=path, Description="a \x1b]2;description\x07")
    service.driver.manager("Reload")
    with shell_of("names") as shell:
        for mode in MODES:
            shell.run(f".mode {mode}")
            harmless(written(shell, "SELECT * FROM (SELECT 1) LEFT JOIN [t\\x] USING (x);"), mode)
        for line in (".tables", ".schema", ".indexes", ".describe", ".databases", ".dump", ".status", ".views"):
            harmless(written(shell, line), line)


class HostileService:
    """Owns the service's name on a bus, and answers HOSTILE in place of each string."""

    def __init__(self, address):
        self.context = GLib.MainContext.new()
        self.ready = threading.Event()
        threading.Thread(target=self._run, args=(address,), daemon=True).start()
        true(self.ready.wait(PATIENCE), "the hostile service is up")

    def _run(self, address):
        self.context.push_thread_default()
        connection = connect(address)
        for name, path in (("Manager", "/org/sqlipc1"), ("Database", "/org/sqlipc1/database/odd")):
            xml = (SOURCE_ROOT / f"dbus-interfaces/org.sqlipc1.{name}.xml").read_text()
            interface = Gio.DBusNodeInfo.new_for_xml(xml).interfaces[0]
            connection.register_object(path, interface, self._on_call, self._on_get, None)
        own(connection, NAME)
        self.ready.set()
        GLib.MainLoop.new(self.context, False).run()

    @staticmethod
    def _on_call(_connection, _sender, _path, _interface, method, _arguments, invocation):
        text = GLib.Variant("s", HOSTILE)
        work = [(1, "/", HOSTILE, {"uid": GLib.Variant("u", os.getuid()), "state": text, "sql": text})]
        if method == "GetDatabase":
            invocation.return_value(GLib.Variant("(oa{sv})", ("/org/sqlipc1/database/odd", {})))
        elif method == "ListDatabases":
            what = {"description": text, "mode": text}
            invocation.return_value(GLib.Variant("(a(soa{sv})a{sv})", ([(HOSTILE, "/", what), ("odd", "/", what)], {})))
        elif method.startswith("List"):
            invocation.return_value(GLib.Variant("(a(tosa{sv})a{sv})", (work, {})))
        elif method == "QueryRows":  # The answer is the same for every query.
            columns, row = [(HOSTILE, HOSTILE, {})] * 14, [text] * 14
            invocation.return_value(GLib.Variant("(a(ssa{sv})aava{sv})", (columns, [row], {})))
        else:
            invocation.return_dbus_error("org.sqlipc1.Error.SQL", HOSTILE)

    @staticmethod
    def _on_get(_connection, _sender, _path, _interface, name):
        return GLib.Variant("a{st}", {HOSTILE: 1}) if name == "Limits" else GLib.Variant("s", HOSTILE)


@test
def a_hostile_service():
    """A service that sends escape sequences in lists, rows, limits and errors cannot drive the terminal"""
    with Service(start=False) as bus:
        HostileService(bus.address)
        with Shell("--transport=dbus", "odd", on=bus) as shell:
            for line in (".databases", ".status", ".limit", ".tables", ".schema", ".describe x", ".dump", "SELECT 1;"):
                data = written(shell, line)
                true(b"red" in data or line in (".schema", ".dump"), f"{line} shows nothing of it: {data!r}")
                harmless(data, line)


@test
def many_columns():
    """A row of 2,000 columns, SQLite's limit, is shown; one of 10,000 is refused with SQLite's message"""
    many = "SELECT " + ", ".join(f"{i} AS c{i}" for i in range(2000)) + ";"
    with shell_of() as shell:
        (shell.home / "many.sql").write_text(many)
        (shell.home / "more.sql").write_text("SELECT " + ", ".join("1" for i in range(10000)) + ";")
        for mode in MODES:
            shell.run(f".mode {mode}")
            data = written(shell, ".read many.sql")
            true(b"1999" in data, f"mode {mode} shows no last column: {data[-300:]!r}")
            at_most(max(map(len, shell.lines())), 80, f"columns of mode {mode}")
        true(b"too many columns" in written(shell, ".read more.sql"), "what it says of 10,000")


@test
def a_large_cell():
    """A cell of 100 MB is cut on a terminal, with a notice, and complete in a file, in constant memory"""
    sql = "SELECT replace(hex(zeroblob(50000000)), '00', 'ab') AS value;"
    size = 100000000
    with shell_of() as shell:
        lines = "\n".join(shell.run(sql))
        true("abab" in lines and len(lines) < 10000, f"{len(lines)} characters, {lines[:200]!r}")
        true("100" in lines, f"its length is not told: {lines!r}")
        for mode, extra in (("csv", len("value\r\n\r\n")), ("list", len("value\n\n")), ("json", 40), ("insert", 60)):
            shell.run(f".mode {mode}")
            shell.run(f".once {mode}.out")
            shell.run(sql)
            got = (shell.home / f"{mode}.out").stat().st_size
            true(size <= got <= size + extra, f"mode {mode} wrote {got} bytes")
        if not SANITIZED:  # AddressSanitizer keeps freed memory.
            at_most(rss_anon(shell.process.pid), 16 << 20, "bytes of memory behind it")


@test
def nothing():
    """An empty result shows no row and then the prompt, in each mode"""
    with shell_of() as shell:
        for mode in MODES:
            shell.run(f".mode {mode}")
            lines = shell.run("SELECT * FROM empty;")
            true(len(lines) <= 7, f"mode {mode}: {lines}")
    wait_for(service.is_idle, "nothing is left")
    equal(service.counters()["NRuns"], 0, "runs")


main(service)
