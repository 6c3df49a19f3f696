#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that call without pause, read no replies or want none: memory stays bounded, and others are served."""
import contextlib
import os
import re
import resource
import select
import signal

from client import DATABASE, MANAGER, MANAGER_PATH, NAME, Gio, GLib, object_path
from harness import CHINOOK, SANITIZED, UID_A, UID_B, Service, main, rss_anon, wait_for
from overheard import Overheard
from raw_peer import MIB, OPEN_CHANNEL, PREPARE, QUERY_ROWS, Raw
from sizes import size
from tap import Skip, at_most, equal, test, true

ROOT = os.geteuid() == 0
N = size("calls of floods")
PENDING = 100  # dbus-daemon takes no more than 128 calls of a client whose replies are outstanding
LIST_MAX = 4096

service = Service({"chinook": CHINOOK})
two = service.client(UID_B if ROOT else None)


@contextlib.contextmanager
def flooder():
    raw = Raw(service.folder / "bus", UID_A if ROOT else None)
    yield raw
    raw.close()
    wait_for(service.is_idle, "the flooder is forgotten")


@test
def without_descriptors():
    """A client to which the bus passes no descriptor gets no channel, and leaves none; other calls are answered"""
    before = service.counters()["TotalRuns"]
    one = Raw(service.folder / "bus", descriptors=False)
    try:
        one.send(one.blob(*OPEN_CHANNEL), 100)
        one.send(one.blob(*QUERY_ROWS))
        wait_for(lambda: service.counters()["TotalRuns"] > before, "its calls are served")
        wait_for(lambda: service.counters()["NChannels"] == 0, "channels that reached no client are closed")
        two.point()
    finally:
        one.close()
    wait_for(service.is_idle, "it is forgotten")


@test
def statements_without_end():
    """A user who asks for 30,000 statements gets its quota; further calls are refused at once, other users do not wait"""
    two.point()
    with flooder() as one:
        before, answered, behind, asked = rss_anon(service.pid()), 0, [], None
        blob, pending = one.blob(*PREPARE), 0

        def on_reply(connection, result):
            nonlocal asked
            true(not connection.send_message_with_reply_finish(result).to_gerror(), "the other client's query fails")
            behind.append(answered - asked)
            asked = None

        while answered < N:
            if pending < PENDING:
                one.send(blob, PENDING - pending)
                pending = PENDING
            if asked is None:
                message = Gio.DBusMessage.new_method_call(NAME, QUERY_ROWS[0], DATABASE, "QueryRows")
                message.set_body(QUERY_ROWS[3])
                asked = answered
                two.connection.send_message_with_reply(message, Gio.DBusSendMessageFlags.NONE, 60000, None, on_reply)
            if select.select([one.socket], [], [], 0.001)[0]:
                got = one.replies(PENDING)
                pending, answered = pending - got, answered + got
            while GLib.MainContext.default().iteration(False):
                pass
        equal(service.counters()["NStatements"], 256 if ROOT else min(256, N), "statements")
        if not SANITIZED:
            at_most(rss_anon(service.pid()) - before, 8 * MIB, "bytes more in the daemon")
        # Neither the bus nor we let a call wait for more than the calls before it, and a worker's few messages.
        true(len(behind) >= 10, f"the other client had only {len(behind)} answers")
        at_most(sorted(behind)[len(behind) // 2], 10 * PENDING, "calls that the other client mostly waited for")


@test
def replies_that_nobody_reads():
    """Unread replies collect at the bus, not in the service (sqlipcd(8) describes those with descriptors)"""
    with flooder() as one:
        before = rss_anon(service.pid())
        for call in ((MANAGER_PATH, MANAGER, "ListDatabases", GLib.Variant("(a{sv})", ({},))), QUERY_ROWS):
            one.send(one.blob(*call), N)
            two.point()
        if not SANITIZED:
            at_most(rss_anon(service.pid()) - before, 8 * MIB, "bytes more in the daemon")


@test
def queries_that_nobody_waits_for():
    """A query without a reply is not started"""
    with flooder() as one:
        before = service.counters()["TotalRuns"]
        silent = Gio.DBusMessageFlags.NO_REPLY_EXPECTED
        for method in ("Query", "QueryRows", "OpenRows"):
            one.send(one.blob(QUERY_ROWS[0], DATABASE, method, QUERY_ROWS[3], flags=silent), 100)
        two.point()
        one.send(one.blob(MANAGER_PATH, "org.freedesktop.DBus.Peer", "Ping"))
        equal(one.answer(), "", "the answer to the last call")
        wait_for(lambda: service.counters()["TotalRuns"] == before + 1, "the one query that was wanted is over")


@test
def long_lists():
    """A list that is too long for the bus, or takes too long, is marked as incomplete"""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4 * LIST_MAX + 4:
        raise Skip("needs more descriptors: the service gives a user's pipes a quarter of its own")
    # All are sent at once: the last ones wait for all others.
    with Service({"chinook": CHINOOK}, limits={"StatementsMax": 100000, "QueueTimeoutSec": 600}) as large:
        one = large.client()
        silent = Gio.DBusMessageFlags.NO_REPLY_EXPECTED

        def prepare(n):
            body = GLib.Variant("(sa{sv})", ("SELECT 1", {}))
            for _ in range(n):
                message = one.new_call(object_path("chinook"), DATABASE, "Prepare", body)
                message.set_flags(silent)
                one.connection.send_message(message, Gio.DBusSendMessageFlags.NONE)

        def listed():
            statements, info = one.manager("ListStatements")
            return len(statements), info

        prepare(LIST_MAX)
        wait_for(lambda: listed()[0] == LIST_MAX, "all are prepared")
        equal(listed(), (LIST_MAX, {}), "at the limit")
        prepare(1)
        wait_for(lambda: listed() == (LIST_MAX, {"truncated": True}), "one past it")


@test
def lists_of_many_databases():
    """ListDatabases, Databases and Introspect of 1,000 databases come in pieces: later calls are answered in between"""
    n_databases, n_lists, n_calls = 1000, 5, 20
    names = [f"published{i:04}" for i in range(n_databases)]
    with Service({name: CHINOOK for name in names}) as large:
        heard, pid = Overheard(large.address), large.pid()
        raw = Raw(large.folder / "bus", UID_A if ROOT else None)
        calls = [
            raw.blob(MANAGER_PATH, MANAGER, "ListDatabases", GLib.Variant("(a{sv})", ({},))),
            raw.blob("/org/sqlipc1/database", "org.freedesktop.DBus.Introspectable", "Introspect"),
            raw.blob(MANAGER_PATH, MANAGER, "GetDatabase", GLib.Variant("(sa{sv})", (names[7], {}))),
        ]
        raw.send(calls[2])  # the service knows who asks
        raw.answer()
        os.kill(pid, signal.SIGSTOP)  # all calls are there before the first is served
        try:
            heard.members.clear()
            first = raw.serial + 1
            raw.send(calls[0], n_lists)
            raw.send(calls[1], n_lists)
            raw.send(calls[2], n_calls)
            wait_for(lambda: heard.members.count("GetDatabase") >= n_calls, "the bus has passed them on")
        finally:
            os.kill(pid, signal.SIGCONT)
        replies = [Gio.DBusMessage.new_from_blob(raw.message(), 0) for _ in range(2 * n_lists + n_calls)]
        order = [reply.get_reply_serial() - first for reply in replies]
        equal(sorted(order), list(range(2 * n_lists + n_calls)), "calls that were answered")
        cheap = [at for at, number in enumerate(order) if number >= 2 * n_lists]
        # A turn of the loop has one piece and one call: a list takes sixteen turns.
        at_most(max(cheap), n_calls + 3, "place of the last of the short answers")
        bodies = {number: reply.get_body().unpack() for number, reply in zip(order, replies)}
        for number in range(n_lists):
            equal([name for name, *_ in bodies[number][0]], names, "databases listed")
            nodes = re.findall(r'<node name="(\w+)"/>', bodies[n_lists + number][0])
            equal(nodes, names, "databases in the tree")
        equal(large.client().databases(), [object_path(name) for name in names], "property Databases")
        raw.close()
        heard.close()


@test
def clients_that_leave_their_lists():
    """A client that leaves while its lists are built leaves nothing, and lists of one user are bounded"""
    with Service({f"published{i:04}": CHINOOK for i in range(300)}) as large:
        blob = Raw.blob(MANAGER_PATH, MANAGER, "ListDatabases", GLib.Variant("(a{sv})", ({},)))
        peers = [Raw(large.folder / "bus", UID_A if ROOT else None) for _ in range(4)]
        for peer in peers:
            peer.send(blob, PENDING)
        for peer in peers[1:]:
            peer.close()
        names = {peers[0].answer() for _ in range(PENDING)}
        true(names <= {"", "org.sqlipc1.Error.LimitsExceeded"}, f"answers: {names}")
        peers[0].close()
        wait_for(large.is_idle, "nothing is left")


if __name__ == "__main__":
    main(service)
