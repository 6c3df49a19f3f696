# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of test_faults.py: actions of administrators, and events of processes and of polkit."""
import contextlib
import os
import select
import signal

from fault_stage import ENDLESS, SCAN, refused, scenario

from channel import Channel
from client import DATABASE, MANAGER, MANAGER_PATH, Broken, Failure, GLib, Text, object_path
from fake_polkit import FakePolkit
from harness import CHINOOK, UID_A, wait_for
from settled import send, stopped
from tap import equal, true

EXTRA = {"x-for-later": GLib.Variant("s", "is passed over")}


def runs_on_channels(client):
    # By their state: the SQL is missing if there was no memory for its excerpt.
    return [more for _, _, _, more in client.manager("ListChannels")[0] if more["state"] == "running"]


def is_readable(channel):
    return bool(select.select([channel.socket], [], [], 0)[0])


@scenario
def calls_at_once(stage, client):
    """A new peer that has sent other calls after its first one"""
    peer = stage.service.client()
    with stopped([stage.service.pid()]):
        calls = [peer.begin(MANAGER_PATH, MANAGER, "ListDatabases", "(a{sv})", {}) for _ in range(20)]
        peer.bus_call("GetId", "()")
    for call in calls:
        call.result()


@scenario
def lists(stage, client):
    """Everything that can be looked at"""
    statement = client.prepare("chinook", ENDLESS)
    run = statement.fetch()
    rows, _, _ = client.open_rows("chinook", ENDLESS)
    with contextlib.closing(Channel(client)) as c:
        scan = c.query(SCAN)
        wait_for(lambda: runs_on_channels(client) or is_readable(c), "it runs, or was refused")
        if is_readable(c):
            c.read(scan)
        for method in ("ListDatabases", "ListStatements", "ListRuns", "ListChannels", "ListClients"):
            client.manager(method)
        equal(len(client.manager("ListStatements")[0]), 1, "statements")
        path, _ = client.manager("GetDatabase", "(sa{sv})", "chinook")
        equal(path, object_path("chinook"), "path")
        client.manager("GetDatabase", "(sa{sv})", "chinook", options=EXTRA)
        client.properties("org.sqlipc1.Manager")
        true(path in client.databases(), "paths of databases")
        client.properties(DATABASE, path)
        true("chinook" in client.introspect("/org/sqlipc1/database"), "databases are introspected")
        true("Prepare" in client.introspect(path), "methods are introspected")
    client.cancel("chinook", rows)
    run.cancel()
    refused(run.read)
    statement.close()


def expect_both(client, heard):
    """A signal is no answer: one that is lost is in the log, and for the client as if it had come too late. In each turn of
    its loop the service tells one peer, of which there are few."""
    for _ in range(100):
        if {"DatabaseAdded", "DatabaseRemoved"} <= {name for name, *_ in heard()}:
            return
        client.raw(MANAGER_PATH, "org.freedesktop.DBus.Peer", "Ping", None)
    raise Failure("not announced")


@scenario
def reload(stage, client):
    """A reload that adds and takes away, with names that are looked up"""
    heard = client.signals()
    users, groups = "daemon root nobody-of-that-name", "root bin"
    extra = stage.service.database("extra", Path=CHINOOK, AllowUsers=users, AllowGroups=groups)
    try:
        client.manager("Reload")
        client.query("extra", "SELECT 1").read()
        channel_to_it = Channel(client, "extra")
        equal(channel_to_it.ask("SELECT 1"), [[1]], "rows")
        extra.unlink()
        client.manager("Reload")
        expect_both(client, heard)
        wait_for(channel_to_it.is_closed, "its channel is closed")
        channel_to_it.close()
    finally:
        with contextlib.suppress(FileNotFoundError):
            extra.unlink()
        with contextlib.suppress(Failure):  # else the next one that comes adds nothing
            client.manager("Reload")


@scenario
def reload_of_a_mess(stage, client):
    """A reload of files that are wrong, and by signal"""
    path = stage.service.database("mess", text="[Database]\nPath=relative\nMode=sideways\n[What]\n\\x\n")
    nowhere, no_folder = path.with_name("nowhere.conf"), path.with_name("chinook.conf.d")
    nowhere.symlink_to("/nonexistent")
    no_folder.write_text("a file where a folder is expected")
    try:
        client.manager("Reload")
    finally:
        for file in (path, nowhere, no_folder):
            file.unlink()
        with contextlib.suppress(Failure):
            client.manager("Reload")
    os.kill(stage.service.pid(), signal.SIGHUP)
    client.manager("Reload")


@scenario
def log_level(stage, client):
    """The log's level and target, read and set"""
    path, interface = "/org/freedesktop/LogControl1", "org.freedesktop.LogControl1"

    def put(name, value, by=client):
        by.raw(path, "org.freedesktop.DBus.Properties", "Set", "(ssv)", interface, name, GLib.Variant("s", value))

    client.properties(interface, path)
    refused(put, "LogLevel", "loud")
    refused(put, "LogTarget", "printer")
    refused(put, "LogLevel", "debug", stage.service.client(UID_A))
    try:
        put("LogLevel", "debug")
        put("LogTarget", "journal")
        client.query("chinook", "SELECT 1").read()
    finally:
        for name, value in (("LogTarget", "auto"), ("LogLevel", "info")):
            with contextlib.suppress(Failure):
                put(name, value)


@scenario
def worker_killed(stage, client):
    """A worker that is killed under a run, a statement, a reader of rows and a channel"""
    statement = client.prepare("chinook", "SELECT 1")
    run = client.query("chinook", ENDLESS)
    run.frame()
    rows, _, _ = client.open_rows("chinook", ENDLESS)
    with contextlib.closing(Channel(client)) as c:
        c.ask("SELECT 1")
        send(stage.service.workers(), signal.SIGKILL)
        with contextlib.suppress(Failure, Broken):
            run.counted()
            raise AssertionError("a run without an end ended")
        refused(lambda: [client.next_rows("chinook", rows) for _ in range(1000)])
        with contextlib.suppress(Failure, Broken):
            c.ask("SELECT 1")
    equal(statement.fetch().read().rows, [[1]], "a statement survives its worker")
    statement.close()


def manage(stage, authority, stranger):
    """Calls for an administrator by a user about whom polkit is asked: yes, no, after a password."""
    authority.rules["org.sqlipc1.manage"] = "yes"
    stranger.manager("Reload")
    authority.rules["org.sqlipc1.manage"] = ("challenge", "yes")
    with contextlib.suppress(Failure):
        stranger.manager("Reload")  # which does not allow a question to the user
    stranger.interactive = True
    stranger.manager("Reload")
    stranger.interactive = False
    authority.rules["org.sqlipc1.manage"] = "no"
    refused(stranger.manager, "CancelRun", "(ta{sv})", 12345)


@scenario
def polkit(stage, client):
    """A database about which polkit is asked: yes, no, after a password, never"""
    def ask(one):
        return one.query_rows("asked", "SELECT ? WHERE length(?) = 4", (7, b"blob"))[1]

    with contextlib.closing(FakePolkit(stage.service.address, {"asked": "yes"})) as authority:
        stranger = stage.service.client(UID_A)
        equal(ask(stranger), [[7]], "rows")
        authority.rules["asked"] = ("challenge", "yes")
        authority.changed()
        stranger.manager("ListDatabases")
        stranger.manager("GetDatabase", "(sa{sv})", "asked")
        refused(ask, stranger)
        stranger.interactive = True
        equal(ask(stranger), [[7]], "rows")
        blob = stranger.query_rows("asked", "SELECT ?, ?", (b"blob", "text"))[1]
        equal(blob, [[b"blob", Text(b"text")]], "rows of a call that was put aside")
        stranger.interactive = False
        for answer in ("no", "error"):
            authority.rules["asked"] = answer
            authority.changed()
            refused(ask, stranger)
        manage(stage, authority, stranger)
        authority.rules["asked"] = "hang"
        authority.changed()
        stranger.begin(object_path("asked"), DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT 1", [], {}, {})
        stranger.bus_call("GetId", "()")
        stranger.close()
