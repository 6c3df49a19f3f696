#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""D-Bus messages written by hand: numbers that belong to other clients, calls in the wrong order and racing each other,
incomplete messages, descriptors of every kind, the bus's own limits. Neighbours are answered meanwhile (neighbours.py),
and afterwards the service is as before.

    test_hostile_bus.py [TEST]... [--seed N] [--races N]      N rounds of races
"""
import collections
import contextlib
import fcntl
import os
import random
import resource
import select
import socket
import struct
import tempfile
import time

import settled
from channel import Channel
from client import (
    DATABASE, END, ERROR, MANAGER, MANAGER_PATH, SECONDS, Failure, GLib, decode, effective_uid, object_path,
)
from harness import CHINOOK, SANITIZED, UID_A, UID_B, Service, expect, fds, main, rss_anon, wait_for
from neighbours import besieged
from raw_peer import QUERY_ROWS, Raw
from tap import at_most, cases, diagnose, equal, true
from writers import make_written

ROOT = os.geteuid() == 0
A, B = (UID_A, UID_B) if ROOT else (None, None)
OBJECT, WRITTEN = object_path("chinook"), object_path("written")
BUS_ERROR = "org.freedesktop.DBus.Error."
SERVICE_ERROR = "org.sqlipc1.Error."
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
MFD_ALLOW_SEALING, F_ADD_SEALS = 2, 1033


seed = settled.option("--seed", 1)
RACES = settled.option("--races", 60 if SANITIZED else 250)
CONNECTIONS_MAX = 256
service = Service(
    {"chinook": CHINOOK, "other": CHINOOK},
    limits=settled.QUICK | {"SQLSizeMax": 1000000},
    bus_limits={"max_connections_per_user": CONNECTIONS_MAX},
)
service.database(
    "written", Path=make_written(service.data / "written.sqlite", "wal"), Mode="read-write", AllowUsers="*", WriteUsers="*"
)
service.driver.manager("Reload")

# ---- numbers of others ----

BY_STATEMENT = {
    "Fetch": lambda client, database, number: client.database(
        database, "Fetch", "(tava{sv}a{sv})", number, [], {}, {}
    ),
    "Finalize": lambda client, database, number: client.finalize(database, number),
}
BY_RUN = {
    "Cancel": lambda client, database, number: client.cancel(database, number),
    "NextRows": lambda client, database, number: client.next_rows(database, number),
    "Wait": lambda client, database, number: client.database(database, "Wait", "(ta{sv})", number, {}),
}
BY_TRANSACTION = {
    "Commit": lambda client, database, number: client.database(database, "Commit", "(ta{sv})", number, {}),
    "Rollback": lambda client, database, number: client.database(database, "Rollback", "(ta{sv})", number, {}),
}
BY_NUMBER = ((BY_STATEMENT, "UnknownStatement"), (BY_RUN, "UnknownRun"), (BY_TRANSACTION, "TransactionEnded"))


class Victim:
    """Statements, runs of each kind and a channel of one client, and the results that they must have in the end."""

    def __init__(self):
        self.client = service.client(A)
        self.idle = self.client.prepare("chinook", settled.POINT)
        self.busy = self.client.prepare("chinook", "SELECT * FROM Track a, Track b LIMIT 5000")
        self.fetched = self.busy.fetch()
        self.query = self.client.query("chinook", "SELECT * FROM Track a, Track b LIMIT 5000")
        self.cursor = self.client.open_rows("chinook", "SELECT TrackId FROM Track")[0]
        self.channel = Channel(self.client)
        self.channel_run = self.channel.query("SELECT * FROM Track a, Track b LIMIT 5000")
        (self.channel_number,) = [number for number, *_ in self.client.manager("ListChannels")[0]]

    def numbers(self):
        return [
            self.idle.number, self.busy.number, self.fetched.number, self.query.number, self.cursor, self.channel_number,
            self.channel_run,
        ]

    def check(self):
        """Nothing was taken from it."""
        equal(self.idle.fetch().read().rows, settled.ANSWER, "rows of its statement")
        equal(self.fetched.counted()[1], 5000, "rows of its statement's run")
        equal(self.query.counted()[1], 5000, "rows of its query")
        rows, more = [], True
        while more:
            some, more, _ = self.client.next_rows("chinook", self.cursor)
            rows += some
        equal(len(rows), 3503, "rows of its cursor")
        equal(len(self.channel.read(self.channel_run).rows), 5000, "rows on its channel")
        self.channel.close()


@besieged(service, UID_B)
def forged_numbers():
    """Numbers of other users, and numbers that never existed, in every method, by every uid, on each object, name nothing"""
    victim, tried = Victim(), 0
    near = {number + step for number in victim.numbers() for step in range(-2, 3)}
    numbers = [number for number in sorted(near | {0, 1, 2**32, 2**53, 2**63, 2**64 - 1}) if 0 <= number < 2**64]
    for uid in (A, B, None):
        forger = service.client(uid)
        for database in ("chinook", "other"):
            for methods, error in BY_NUMBER:
                for method in methods.values():
                    for number in numbers:
                        expect(error, method, forger, database, number)
                        tried += 1
    for uid in (A, B) if ROOT else ():
        forger = service.client(uid)
        own = victim.numbers() if uid == A else []  # a user may cancel the runs of its own uid
        for number in set(numbers) - set(own):
            try:
                forger.manager("CancelRun", "(ta{sv})", number)
            except Failure as failure:
                equal(failure.name, SERVICE_ERROR + "AccessDenied", f"CancelRun of {number}")
            else:
                raise AssertionError(f"{number} was cancelled")
            tried += 1
    victim.check()
    cases("hostile bus", tried, "a foreign or unknown number, in a method, by a user")


@besieged(service, UID_B)
def numbers_of_another_kind():
    """Own numbers of the wrong kind name nothing: a run for a statement, a statement for a run, another database"""
    victim, tried = Victim(), 0
    runs = [victim.fetched.number, victim.query.number, victim.cursor, victim.channel_number, victim.channel_run]
    for number in runs:
        for method in BY_STATEMENT.values():
            expect("UnknownStatement", method, victim.client, "chinook", number)
            tried += 1
    for number in (victim.idle.number, victim.busy.number, victim.fetched.number, victim.query.number):
        expect("UnknownRun", BY_RUN["NextRows"], victim.client, "chinook", number)
        expect("UnknownRun", BY_RUN["Wait"], victim.client, "chinook", number)
        tried += 2
    for number in victim.numbers():
        for method in BY_TRANSACTION.values():
            expect("TransactionEnded", method, victim.client, "chinook", number)
            tried += 1
    for number in (victim.idle.number, victim.busy.number):
        expect("UnknownRun", BY_RUN["Cancel"], victim.client, "chinook", number)
        for method in BY_STATEMENT.values():
            expect("UnknownStatement", method, victim.client, "other", number)
        tried += 3
    expect("UnknownRun", BY_RUN["Cancel"], victim.client, "chinook", 0)  # no run of the statement that never ran
    for number in (victim.fetched.number, victim.query.number, victim.cursor):
        for method in BY_RUN.values():
            expect("UnknownRun", method, victim.client, "other", number)
            tried += 1
    victim.check()
    cases("hostile bus", tried, "a foreign or unknown number, in a method, by a user")


# ---- races ----

FETCHED = ("", "Busy", "UnknownStatement", "PipeClosed", "Cancelled", "LimitsExceeded")


class Racer:
    """One connection with a statement, on which calls race each other; each is answered once, and in the order of the bus
    a statement that was finalized stays so."""

    def __init__(self, client, chance):
        self.client, self.chance = client, chance
        self.sql = chance.choice([settled.POINT, "SELECT * FROM Track", ENDLESS])
        self.statement = client.prepare("chinook", self.sql)
        self.calls, self.dropped, self.outcomes = [], False, collections.Counter()

    def plan(self):
        """Kinds of calls, in order; runs are guessed, since numbers follow each other."""
        plan = [self.chance.choice(["fetch", "fetch", "cancel", "next", "drop"]) for _ in range(self.chance.randrange(6))]
        return plan + ["finalize"] + [self.chance.choice(["fetch", "cancel", "finalize"]) for _ in range(2)]

    def send(self, kind):
        number, guess = self.statement.number, self.statement.number + self.chance.randrange(1, 8)
        if kind == "drop":
            if not self.dropped:
                self.client.drop(self.statement.pipe)
                self.dropped = True
            return
        method, signature, values = {
            "fetch": ("Fetch", "(tava{sv}a{sv})", (number, [], {}, {})),
            "finalize": ("Finalize", "(ta{sv})", (number, {})),
            "cancel": ("Cancel", "(ta{sv})", (guess, {})),
            "next": ("NextRows", "(ta{sv})", (guess, {})),
        }[kind]
        self.calls.append((kind, self.client.begin(OBJECT, DATABASE, method, signature, *values)))

    def check(self):
        """Each call has its one answer, and each run that was begun its end."""
        runs, finalized = [], False
        for kind, call in self.calls:
            try:
                values, name = call.result(), ""
            except Failure as failure:
                values, name = [], failure.name.removeprefix(SERVICE_ERROR)
            self.outcomes[kind, name] += 1
            if kind == "finalize":
                equal(name, "UnknownStatement" if finalized else "", "what Finalize brings")
                finalized = True
            elif kind == "fetch":
                true(name in (FETCHED if not finalized else ("UnknownStatement",)), f"Fetch brings {name}")
                if not name:
                    runs.append(values[0].get_uint64())
            else:
                true(name in ("", "UnknownRun") if kind == "cancel" else name == "UnknownRun", f"{kind} brings {name}")
        if not self.dropped:
            self.read(set(runs))

    def read(self, runs):
        """Every run that was begun has its end in the pipe, whole, and there is nothing else."""
        frames, data, end = {run: [] for run in runs}, b"", time.monotonic() + SECONDS
        pipe = self.statement.pipe
        while runs:
            true(select.select([pipe], [], [], max(0, end - time.monotonic()))[0], f"runs {runs} have no end")
            piece = os.read(pipe, 1 << 20)
            true(piece, f"end of file, and runs {runs} have no end")
            data += piece
            while len(data) >= 16:
                size, kind, _, _, run = struct.unpack_from("<IBBHQ", data)
                whole = 16 + ((size + 7) & ~7)
                if len(data) < whole:
                    break
                true(run in runs, f"a frame of {run}, which is over or never was")
                frames[run].append(data[:whole])
                data = data[whole:]
                if kind in (END, ERROR):
                    runs.discard(run)
        equal(data, b"", "bytes behind the last end")
        for of_run in frames.values():
            with contextlib.suppress(Failure):
                decode(of_run[:1] + of_run[-1:] if len(of_run) > 1000 else of_run)
        self.client.drop(pipe)


@besieged(service, UID_B)
def races():
    """Fetch, Cancel, Finalize and a closed pipe race on four connections: each call has one answer, each run one end"""
    diagnose(f"--seed {seed} --races {RACES}")
    chance, outcomes = random.Random(seed), collections.Counter()
    clients = [service.client(uid) for uid in (A, A, B, None)]
    for _ in range(RACES):
        racers = [Racer(client, chance) for client in clients]
        plans = [(racer, kind) for racer in racers for kind in racer.plan()]
        # Shuffled between connections, in order on each.
        queues = {racer: [kind for other, kind in plans if other is racer] for racer in racers}
        order = [racer for racer, _ in plans]
        chance.shuffle(order)
        for racer in order:
            racer.send(queues[racer].pop(0))
        for racer in racers:
            racer.check()
            outcomes += racer.outcomes
    diagnose(f"outcomes: {dict(outcomes)}")
    for met in (("fetch", "Busy"), ("fetch", "PipeClosed"), ("fetch", "UnknownStatement"), ("cancel", "")):
        true(outcomes[met], f"no race was one: {met} never came")
    cases("hostile bus", outcomes.total(), "a call that races others on a statement: one answer, and a run one end")


@besieged(service, UID_B)
def left_in_the_midst():
    """Connections that leave the bus with calls under way, of each kind"""
    chance, tried = random.Random(seed), RACES // 2
    for _ in range(tried):
        client = service.client(A)
        racer = Racer(client, chance)
        for kind in racer.plan()[: chance.randrange(8)]:
            racer.send(kind)
        client.begin(OBJECT, DATABASE, "OpenRows", "(sava{sv}a{sv})", ENDLESS, [], {}, {})
        client.begin(OBJECT, DATABASE, "OpenChannel", "(a{sv})", {})
        service.clients.remove(client)
        client.connection.flush_sync(None)
        client.close()
    cases("hostile bus", tried, "a connection that leaves in the midst of calls")


# ---- half messages ----


@besieged(service, UID_B)
def half_messages():
    """A call, and the greeting, cut at each of its bytes, then silence; then all clients leave"""
    whole = Raw.blob(*QUERY_ROWS)
    greeting = b"\0AUTH EXTERNAL " + str(UID_A if ROOT else os.geteuid()).encode().hex().encode() + b"\r\nBEGIN\r\n"
    tried = 0
    for start in range(1, len(whole), 100):
        with contextlib.ExitStack() as stack:
            for size in range(start, min(start + 100, len(whole))):
                peer = Raw(service.folder / "bus", A)
                stack.callback(peer.close)
                peer.socket.sendall(whole[:size])
                tried += 1
            service.driver.point()
    with contextlib.ExitStack() as stack:
        for size in range(len(greeting)):
            peer = stack.enter_context(socket.socket(socket.AF_UNIX))
            with effective_uid(A):
                peer.connect(str(service.folder / "bus"))
                peer.sendall(greeting[:size])
            tried += 1
    cases("hostile bus", tried, "a call or greeting cut at a byte, then silence")


@besieged(service, UID_B)
def broken_messages():
    """A call with each byte altered in turn: the bus disconnects, or there is an answer; other clients do not notice"""
    whole, tried = Raw.blob(*QUERY_ROWS), 0
    for at in range(0, len(whole), 8 if SANITIZED else 2):
        for value in (0, 0xFF, whole[at] ^ 1):
            peer = Raw(service.folder / "bus", A)
            spoiled = bytearray(whole)
            struct.pack_into("<I", spoiled, 8, 77)
            spoiled[at] = value
            with contextlib.suppress(ConnectionError):
                peer.socket.sendall(spoiled)
                peer.socket.shutdown(socket.SHUT_WR)
                while True:
                    peer.message()
            peer.close()
            tried += 1
    cases("hostile bus", tried, "a call with a byte spoiled")


# ---- descriptors ----


@contextlib.contextmanager
def descriptors():
    """Name -> a descriptor of that kind."""
    with contextlib.ExitStack() as stack:

        def keep(fd):
            stack.callback(os.close, fd)
            return fd

        pair = [stack.enter_context(end) for end in socket.socketpair()]
        datagram = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind("\0sqlipc-test-" + str(os.getpid()))
        listening.listen()
        pipe = [keep(fd) for fd in os.pipe()]
        sealed = keep(os.memfd_create("sealed", MFD_ALLOW_SEALING))
        os.write(sealed, b"x" * 4096)
        fcntl.fcntl(sealed, F_ADD_SEALS, 0xF)
        file = stack.enter_context(tempfile.TemporaryFile())
        inner = stack.enter_context(select.epoll())
        outer = stack.enter_context(select.epoll())
        outer.register(inner.fileno())
        # A socket in whose queue its own other end lies: what the kernel alone can free.
        loop = [stack.enter_context(end) for end in socket.socketpair()]
        socket.send_fds(loop[0], [b"x"], [loop[1].fileno()])
        yield {
            "socket": pair[0].fileno(), "datagram": datagram.fileno(), "listening": listening.fileno(),
            "read end": pipe[0], "write end": pipe[1], "memfd": keep(os.memfd_create("open")), "sealed memfd": sealed,
            "folder": keep(os.open("/", os.O_RDONLY | os.O_DIRECTORY)), "O_PATH": keep(os.open("/", os.O_PATH)),
            "zero": keep(os.open("/dev/zero", os.O_RDWR)), "null": keep(os.open("/dev/null", os.O_RDWR)),
            "file": file.fileno(), "database": keep(os.open(CHINOOK, os.O_RDONLY)), "epoll": inner.fileno(),
            "epoll of epoll": outer.fileno(), "loop": loop[0].fileno(), "process": keep(os.pidfd_open(os.getpid())),
        }  # fmt: skip


def calls_of(sql, parameters, path=OBJECT, options=None):
    """Every method, with possible arguments."""
    options = options or {}
    statement = ("Fetch", "(tava{sv}a{sv})", (1, parameters, {}, options))
    query = (sql, parameters, {}, options)
    return [
        (path, DATABASE, name, GLib.Variant(signature, values))
        for name, signature, values in (
            ("Prepare", "(sa{sv})", (sql, options)), statement, ("Query", "(sava{sv}a{sv})", query),
            ("QueryRows", "(sava{sv}a{sv})", query), ("OpenRows", "(sava{sv}a{sv})", query),
            ("NextRows", "(ta{sv})", (1, options)), ("Execute", "(sava{sv}a{sv})", query),
            ("Load", "(sa{sv})", (sql, options)), ("Wait", "(ta{sv})", (1, options)),
            ("ExecuteBatch", "(a(sava{sv})a{sv})", ([(sql, parameters, {})], options)),
            ("Begin", "(a{sv})", (options,)), ("Commit", "(ta{sv})", (1, options)), ("Rollback", "(ta{sv})", (1, options)),
            ("Cancel", "(ta{sv})", (1, options)), ("Finalize", "(ta{sv})", (1, options)),
            ("OpenChannel", "(a{sv})", (options,)), ("Watch", "(asa{sv})", ([], options)),
            ("Unwatch", "(ta{sv})", (1, options)), ("WaitChange", "(asta{sv})", ([], 1, options)),
        )
    ] + [
        (MANAGER_PATH, MANAGER, name, GLib.Variant(signature, values))
        for name, signature, values in (
            ("ListDatabases", "(a{sv})", (options,)), ("GetDatabase", "(sa{sv})", ("chinook", options)),
            ("ListRuns", "(a{sv})", (options,)), ("ListStatements", "(a{sv})", (options,)),
            ("ListTransactions", "(a{sv})", (options,)), ("ListWatches", "(a{sv})", (options,)),
            ("ListChannels", "(a{sv})", (options,)), ("ListClients", "(a{sv})", (options,)),
            ("CancelRun", "(ta{sv})", (1, options)), ("Reload", "(a{sv})", (options,)),
        )
    ]  # fmt: skip


# One parameter too many, a number that is none, an owner that is not root: what the call brings without descriptors, too.
ANSWERS = {
    "", *(SERVICE_ERROR + name for name in ("UnknownStatement", "UnknownRun", "ParameterType", "ParameterCount")),
    SERVICE_ERROR + "AccessDenied", SERVICE_ERROR + "ReadOnly", BUS_ERROR + "AccessDenied", BUS_ERROR + "InvalidArgs",
    SERVICE_ERROR + "InvalidOption", SERVICE_ERROR + "TransactionEnded", SERVICE_ERROR + "NotAllowed",
}  # fmt: skip


@besieged(service, UID_B)
def descriptors_of_every_kind():
    """Descriptors of every kind with every call, used by a parameter or not: one answer each, and none is kept"""
    tried = 0
    with descriptors() as kinds:
        for kind, fd in kinds.items():
            peer = Raw(service.folder / "bus", A)
            for n in (1, 16):
                for parameters in ([], [GLib.Variant("h", 0)], [GLib.Variant("h", n - 1), GLib.Variant("h", 99)]):
                    for call in calls_of("SELECT 1", parameters):
                        peer.send_with(peer.blob(*call, fds=[fd] * n), [fd] * n)
                        name = peer.answer()
                        true(name in ANSWERS, f"{call[2]} with {n} of {kind}: {name}")
                        tried += 1
            peer.close()
    service.driver.point()
    left = [link for link in fds(service.pid()).values() if "memfd:sealed" in link or "zero" in link] if ROOT else []
    equal(left, [], "descriptors of the client that the service has")
    cases("hostile bus", tried, "a call with descriptors of some kind")


NOT_TAKEN = {
    BUS_ERROR + "InvalidArgs", BUS_ERROR + "AccessDenied", SERVICE_ERROR + "AccessDenied",
    *(SERVICE_ERROR + name for name in ("UnknownOption", "InvalidOption", "LimitsExceeded")),
    *(SERVICE_ERROR + name for name in ("UnknownStatement", "UnknownRun", "TransactionEnded")),
}  # fmt: skip


@besieged(service, UID_B)
def arguments_of_other_types():
    """Each method with arguments and options of other types is refused, also if the database can be written"""
    peer, tried = Raw(service.folder / "bus", A), 0
    others = [GLib.Variant(*each) for each in (
        ("()", ()), ("(v)", (GLib.Variant("s", ""),)), ("(aay)", ([b"x"],)), ("(a{ss})", ({"a": "b"},)), ("(tt)", (1, 2)),
    )]  # fmt: skip
    wrong = [GLib.Variant("ad", [0.5]), GLib.Variant("(sv)", ("x", GLib.Variant("a{sv}", {}))), GLib.Variant("as", ["x"])]
    options = [{key: value} for value in wrong for key in (
        "transaction", "mode", "timeout-usec", "error-details", "page-size", "describe", "x" * 1000,
    )]  # fmt: skip
    for path, interface, method, _ in calls_of("SELECT 1", [], WRITTEN):
        for arguments in others:
            peer.send_with(peer.blob(path, interface, method, arguments), [])
            equal(peer.answer(), BUS_ERROR + "InvalidArgs", f"{method}{arguments.get_type_string()}")
            tried += 1
    for each in options:
        for call in calls_of("DELETE FROM written", [], WRITTEN, each):
            peer.send_with(peer.blob(*call), [])
            name = peer.answer()
            true(name in NOT_TAKEN, f"{call[2]} with {each}: {name}")
            tried += 1
    peer.close()
    cases("hostile bus", tried, "arguments or options of other types, in a method")


@besieged(service, UID_B)
def huge_arguments():
    """Megabytes of SQL, statements and options in each method that takes them are refused"""
    peer, tried = Raw(service.folder / "bus", A), 0
    sql = "DELETE FROM written -- " + "x" * (4 << 20)
    # Made once, since Python takes a second for it. Options are the last argument of each method.
    many = GLib.Variant("a{sv}", {f"option-{i}": GLib.Variant("t", i) for i in range(20000)})
    statement = GLib.Variant("(sava{sv})", ("DELETE FROM written", [], {}))
    batch = GLib.Variant.new_tuple(GLib.Variant.new_array(None, [statement] * 50000), GLib.Variant("a{sv}", {}))
    calls = [call for call in calls_of(sql, [], WRITTEN) if call[3].get_size() > len(sql)]
    for *called, arguments in calls_of("DELETE FROM written", [], WRITTEN):
        others = [arguments.get_child_value(i) for i in range(arguments.n_children() - 1)]
        calls.append((*called, GLib.Variant.new_tuple(*others, many)))
    calls.append((WRITTEN, DATABASE, "ExecuteBatch", batch))
    for call in calls:
        peer.send_with(peer.blob(*call), [])
        name = peer.answer()
        true(name in NOT_TAKEN, f"{call[2]} with {call[3].get_size()} bytes: {name}")
        tried += 1
    peer.close()
    at_most(rss_anon(service.pid()), 64 << 20 if not SANITIZED else 1 << 30, "memory of the service")
    cases("hostile bus", tried, "huge arguments, in a method")


@besieged(service, UID_B)
def too_many_descriptors():
    """Two hundred descriptors in a message, more or fewer than it announces: the bus disconnects or refuses"""
    tried = 0
    with descriptors() as kinds:
        for announced, sent in ((200, 200), (1, 200), (200, 1), (1, 0), (0, 1), (17, 17)):
            for fd in kinds.values():
                peer = Raw(service.folder / "bus", A)
                with contextlib.suppress(ConnectionError):
                    blob = peer.blob(*QUERY_ROWS, fds=[fd] * announced)
                    if sent:
                        peer.send_with(blob, [fd] * sent)
                    else:
                        peer.send(blob)
                    peer.socket.shutdown(socket.SHUT_WR)
                    while True:
                        peer.message()
                peer.close()
                tried += 1
    cases("hostile bus", tried, "a call with descriptors of some kind")


# ---- the bus's own limits ----


TRIES_MAX = 2000  # more than any limit of the bus of these tests allows


def until_refused(step):
    """Calls `step` until the bus refuses; how often it went."""
    for n in range(TRIES_MAX):
        try:
            step(n)
        except ConnectionError:
            return n
        except Failure as failure:
            equal(failure.name, BUS_ERROR + "LimitsExceeded", "what the bus says at its limit")
            return n
    raise AssertionError(f"the bus has no limit, or {TRIES_MAX} do not reach it")


def driver(client, method, signature, *arguments):
    """Asks the bus itself."""
    bus = "org.freedesktop.DBus"
    client.message("/org/freedesktop/DBus", bus, method, GLib.Variant(signature, arguments), destination=bus)


@besieged(service, 3)
def limits_of_the_bus():
    """Two users with as many match rules, names, connections and open calls as the bus allows: a third user is served"""
    reached, whole = {}, 1000
    for uid in (A, B):
        client = service.client(uid)
        rule = "type='signal',arg0='n"
        reached[uid, "match rules"] = until_refused(lambda n: driver(client, "AddMatch", "(s)", f"{rule}{n}'"))
        name = f"org.example.of{uid}.n"
        reached[uid, "names"] = until_refused(lambda n: driver(client, "RequestName", "(su)", f"{name}{n}", 0))
        peer = Raw(service.folder / "bus", uid)
        options = {"timeout-usec": GLib.Variant("t", 10**6)}
        endless = GLib.Variant("(sava{sv}a{sv})", (ENDLESS + " WHERE x < 0", [], {}, options))
        # All calls come to the bus before the first is answered: else the service refuses as fast as the bus passes them on.
        with settled.stopped([service.pid()]):
            peer.send(peer.blob(OBJECT, DATABASE, "QueryRows", endless), whole)
            names = [peer.answer()]
        names += [peer.answer() for _ in range(whole - 1)]
        reached[uid, "open calls"] = whole - names.count(BUS_ERROR + "LimitsExceeded")
        true("" not in names, "an endless query had an answer")
        true(0 < reached[uid, "open calls"] < whole, f"{reached[uid, 'open calls']} of {whole} calls were taken")
        peer.close()
    with contextlib.ExitStack() as stack:
        for uid in (A, B):

            def connect(_, uid=uid):
                peer = Raw(service.folder / "bus", uid)
                stack.callback(peer.close)
                peer.send(peer.blob(*QUERY_ROWS))

            reached[uid, "connections"] = until_refused(connect)
        service.driver.point()
    diagnose(f"reached: {reached}")
    cases("hostile bus", len(reached), "a limit of the bus reached by a user")


@besieged(service, UID_B)
def replies_with_descriptors_that_nobody_reads():
    """Hundreds of pipes and channels requested without reading a reply: unread replies delay no client, and are dropped"""
    with Service({"chinook": CHINOOK}, bus_limits={"max_incoming_unix_fds": 250000000}) as another:
        prepare = (OBJECT, DATABASE, "Prepare", GLib.Variant("(sa{sv})", ("SELECT 1", {})))
        channel = (OBJECT, DATABASE, "OpenChannel", GLib.Variant("(a{sv})", ({},)))
        before = len(fds(another.pid())) if ROOT else 0
        peers = [Raw(another.folder / "bus", uid) for uid in (A, A, B)]
        for peer in peers:
            for call in (prepare, channel):
                peer.send(peer.blob(*call), 300)
        for _ in range(10):
            another.driver.point()
        at_most(another.counters()["NStatements"], 2 * 256, "statements")
        for peer in peers:
            peer.close()
        wait_for(another.is_idle, "they are forgotten")
        another.driver.point()
        wait_for(lambda: not ROOT or len(fds(another.pid())) <= before + 8, "their descriptors are closed")
    cases("hostile bus", 6, "a kind of reply with descriptors that a connection never reads")


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    main(service)
