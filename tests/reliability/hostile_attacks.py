# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attacks that last. Each is a context manager: entering it starts the attack and gives a function. This function is called
again and again and returns how many messages or statements it sent. Each attack checks the answers that it gets, and
raises if one is neither right nor a named error.

ATTACKS maps a name to Attack(function of the service, True if other clients of the same uid are promised their answers,
description).
"""
import contextlib
import fcntl
import os
import select
import socket
from collections import namedtuple

from channel import Channel
from client import DATABASE, MANAGER, MANAGER_PATH, Broken, Failure, GLib, object_path
from harness import UID_A
from raw_peer import MIB, QUERY_ROWS, Raw
from tap import true

ERROR = "org.sqlipc1.Error."
PENDING = 100  # dbus-daemon takes no more than 128 calls of a client whose replies are outstanding
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
SHORT = {"timeout-usec": 300000}
CHINOOK = object_path("chinook")

Attack = namedtuple("Attack", "begin same_uid what")
ATTACKS = {}


def attack(name, same_uid, what):
    def add(function):
        ATTACKS[name] = Attack(contextlib.contextmanager(function), same_uid, what)
        return function

    return add


def ours():
    return UID_A if os.geteuid() == 0 else None


def allowed(problem, *names):
    true(problem.name in [ERROR + name for name in names], f"{problem} is none of {names}")


@contextlib.contextmanager
def raw(service):
    peer = Raw(service.folder / "bus", ours())
    try:
        yield peer
    finally:
        peer.close()


def flood(peer, blob, names):
    """Sends PENDING calls and waits for their replies, each an error of `names` ("": none)."""
    peer.send(blob, PENDING)
    for _ in range(PENDING):
        name = peer.answer()
        true(name in names, f"{name} is none of {names}")
    return PENDING


@attack("calls", True, "one hundred calls at a time, without end")
def calls(service):
    with raw(service) as peer:
        blob = peer.blob(MANAGER_PATH, MANAGER, "ListDatabases", GLib.Variant("(a{sv})", ({},)))
        yield lambda: flood(peer, blob, ("",))


@attack("forged numbers", True, "statements and runs that do not exist are fetched, cancelled and finalized, by the hundred")
def forged_numbers(service):
    with raw(service) as peer:
        blobs = [
            peer.blob(CHINOOK, DATABASE, "Fetch", GLib.Variant("(tava{sv}a{sv})", (77, [], {}, {}))),
            peer.blob(CHINOOK, DATABASE, "Finalize", GLib.Variant("(ta{sv})", (77, {}))),
            peer.blob(CHINOOK, DATABASE, "Cancel", GLib.Variant("(ta{sv})", (77, {}))),
            peer.blob(CHINOOK, DATABASE, "NextRows", GLib.Variant("(ta{sv})", (77, {}))),
        ]
        names = (ERROR + "UnknownStatement", ERROR + "UnknownRun")
        yield lambda: sum(flood(peer, blob, names) for blob in blobs)


@attack("queries", False, "one hundred queries at a time, as D-Bus values, without end")
def queries(service):
    with raw(service) as peer:
        blob = peer.blob(*QUERY_ROWS)
        yield lambda: flood(peer, blob, ("", ERROR + "LimitsExceeded"))


@attack("unread replies", True, "a thousand calls at a time whose replies are not read")
def unread_replies(service):
    with contextlib.ExitStack() as stack:

        def step():
            peer = stack.enter_context(raw(service))
            peer.send(peer.blob(MANAGER_PATH, MANAGER, "ListDatabases", GLib.Variant("(a{sv})", ({},))), 1000)
            return 1000

        yield step


@attack("connections", True, "connections to the bus that call once and go, without reading")
def connections(service):
    def step():
        for _ in range(20):
            with raw(service) as peer:
                peer.send(peer.blob(*QUERY_ROWS))
        return 20

    yield step


@attack("half messages", True, "connections that send half a call, and nothing more")
def half_messages(service):
    with contextlib.ExitStack() as stack:
        held = []

        def step():
            peer = Raw(service.folder / "bus", ours())
            stack.callback(peer.close)
            blob = peer.blob(*QUERY_ROWS)
            peer.socket.sendall(blob[: 1 + len(held) % (len(blob) - 1)])
            held.append(peer)
            if len(held) > 100:
                held.pop(0).close()
            return 1

        yield step


@attack("large calls", True, "calls of 4 MiB, past what SQL may have")
def large_calls(service):
    with raw(service) as peer:
        sql = "SELECT '" + "x" * 4 * MIB + "'"
        blob = peer.blob(CHINOOK, DATABASE, "QueryRows", GLib.Variant("(sava{sv}a{sv})", (sql, [], {}, {})))

        def step():
            peer.send(blob)
            name = peer.answer()
            true(name == ERROR + "LimitsExceeded", f"it was answered by {name!r}")
            return 1

        yield step


def in_flight(service, n, *blobs):
    """Calls of connections of their own, one for each blob, with `n` of each always under way."""

    @contextlib.contextmanager
    def begin():
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(raw(service)) for _ in blobs]
            for peer, blob in zip(peers, blobs):
                peer.send(blob, n)

            def step():
                answered = 0
                for peer, blob in zip(peers, blobs):
                    while select.select([peer.socket], [], [], 0.002)[0]:
                        name = peer.answer()
                        true(name in ("", ERROR + "LimitsExceeded", ERROR + "ReaderTooSlow"), f"answered by {name!r}")
                        peer.send(blob)
                        answered += 1
                return answered

            yield step

    return begin()


@attack("long names", False, "queries and statements with a column name of nearly 1 MB, twenty at a time")
def long_names(service):
    sql = 'SELECT 1 AS "' + "x" * 990000 + '"'
    query = GLib.Variant("(sava{sv}a{sv})", (sql, [], {}, {}))
    with raw(service) as peer:
        blobs = [
            peer.blob(CHINOOK, DATABASE, "QueryRows", query),
            peer.blob(CHINOOK, DATABASE, "Prepare", GLib.Variant("(sa{sv})", (sql, {}))),
        ]
    with in_flight(service, 20, *blobs) as step:
        yield step


@attack("long lists", True, "the list and the tree of 5,000 databases, ten times at once")
def long_lists(service):
    folder = service.config_dir / "databases.d"
    text = (folder / "chinook.conf").read_text()
    files = [folder / f"published{i}.conf" for i in range(5000)]
    for file in files:
        file.write_text(text)
    service.driver.manager("Reload")
    introspect = ("/org/sqlipc1/database", "org.freedesktop.DBus.Introspectable", "Introspect", None)
    try:
        with raw(service) as peer:
            listed = peer.blob(MANAGER_PATH, MANAGER, "ListDatabases", GLib.Variant("(a{sv})", ({},)))
            blobs = [listed, peer.blob(*introspect)]
        with in_flight(service, 10, *blobs) as step:
            yield step
    finally:
        for file in files:
            file.unlink()
        service.driver.manager("Reload")


@attack("descriptors", True, "calls with 16 descriptors each, of which none means anything")
def descriptors(service):
    with raw(service) as peer, contextlib.ExitStack() as stack:
        pair = socket.socketpair()
        for end in pair:
            stack.callback(end.close)
        fds = [pair[0].fileno()] * 16
        blob = peer.blob(MANAGER_PATH, MANAGER, "ListDatabases", GLib.Variant("(a{sv})", ({},)), fds=fds)

        def step():
            for _ in range(20):
                peer.send_with(blob, fds)
            for _ in range(20):
                name = peer.answer()
                true(name in ("", "org.freedesktop.DBus.Error.LimitsExceeded"), f"it was answered by {name!r}")
            return 20

        yield step


def refused_run(client, sql, *names, options=None):
    """Runs what cannot come to its end; a killed worker breaks the pipe."""
    try:
        client.query("chinook", sql, options=options or SHORT).counted()
        raise AssertionError(f"it came to its end: {sql[:200]}")
    except Broken:
        return 1
    except Failure as problem:
        allowed(problem, *names)
        return 1


@contextlib.contextmanager
def client_of(service):
    client = service.client(ours())
    try:
        yield client
    finally:
        service.clients.remove(client)
        client.close()


def together(client, sql, n, names, options=None):
    """The same statement `n` times at once, to its end."""
    body = ("(sava{sv}a{sv})", sql, [], {}, client._options(options or SHORT))
    begun = [client.begin(CHINOOK, DATABASE, "QueryRows", *body) for _ in range(n)]
    for pending in begun:
        try:
            pending.result()
            raise AssertionError(f"it came to its end: {sql[:200]}")
        except Failure as problem:
            allowed(problem, *names)
    return n


def of_sql(name, what, sql, names, n=4, options=None):
    """An attack that is a statement, `n` at once."""

    def run(service):
        with client_of(service) as client:
            yield lambda: together(client, sql, n, names, options)

    attack(name, False, what)(run)


LEVELS = "".join(f", c{n}(x) AS (SELECT x FROM c{n - 1} UNION ALL SELECT x FROM c{n - 1})" for n in range(1, 21))

of_sql("endless queries", "queries that never end, up to their deadline", f"{ENDLESS}count(*) FROM n", ["TimedOut"])
of_sql(
    "stuck functions", "instr() of long strings, which hears no interrupt",
    "SELECT instr(hex(zeroblob(5000000)), hex(zeroblob(2500000)) || 'b')", ["TimedOut", "WorkerLost"], n=2,
)
of_sql(
    "long strings", "strings of hundreds of MB, several at once", "SELECT length(hex(zeroblob(400000000)))",
    ["OutOfMemory", "LimitsExceeded", "RowTooLarge", "TimedOut", "WorkerLost"], n=2,
)
of_sql(
    "long compiling", "nested CTEs that compile for seconds", f"WITH c0(x) AS (SELECT 1){LEVELS} SELECT count(*) FROM c20",
    ["OutOfMemory", "LimitsExceeded", "TimedOut", "WorkerLost"], n=2,
)
of_sql(
    "large sorts", "sorts that go to temporary files", f"SELECT x FROM ({ENDLESS}x, randomblob(500) AS y FROM n) ORDER BY y",
    ["LimitsExceeded", "TimedOut", "WorkerLost"], n=2,
)


@attack("stalled readers", True, "twenty results at a time of which no byte is read")
def stalled_readers(service):
    with contextlib.ExitStack() as stack:

        def step():
            client = stack.enter_context(client_of(service))
            for _ in range(20):
                try:
                    client.query("chinook", f"{ENDLESS}x, 'some text' FROM n")
                except Failure as problem:
                    allowed(problem, "LimitsExceeded", "Busy")
            if len(service.clients) > 4:
                stack.pop_all().close()
            return 20

        yield step


@attack("grown pipes", False, "pipes that their readers grow to 1 MiB and keep when all is over")
def grown_pipes(service):
    with contextlib.ExitStack() as stack:

        def step():
            client = stack.enter_context(client_of(service))
            for _ in range(16):
                try:
                    statement = client.prepare("chinook", "SELECT 1")
                    with contextlib.suppress(PermissionError):
                        fcntl.fcntl(statement.pipe, fcntl.F_SETPIPE_SZ, MIB)
                    client.finalize("chinook", statement.number)
                except Failure as problem:
                    allowed(problem, "LimitsExceeded", "UnknownStatement")  # the second: it was seen to have grown
            if len(service.clients) > 4:
                stack.pop_all().close()
            return 16

        yield step


@attack("channel requests", True, "eight channels, a hundred requests at a time on each")
def channel_requests(service):
    with client_of(service) as client, contextlib.ExitStack() as stack:
        channels = [stack.enter_context(contextlib.closing(Channel(client))) for _ in range(8)]

        def step():
            sent = [(channel, [channel.query("SELECT 6 * 7") for _ in range(100)]) for channel in channels]
            for channel, numbers in sent:
                for number in numbers:
                    true(channel.read(number).rows == [[42]], "the answer is not 42")
            return 800

        yield step


@attack("unread channels", True, "channels whose answers are not read, opened again and again")
def unread_channels(service):
    with client_of(service) as client:

        def step():
            with contextlib.ExitStack() as stack:
                for sent in range(1, 9):
                    try:
                        channel = stack.enter_context(contextlib.closing(Channel(client)))
                    except Failure as problem:
                        allowed(problem, "LimitsExceeded")
                        break
                    channel.query(f"{ENDLESS}x, 'some text' FROM n")
            return sent

        yield step
