#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipcctl and a program that only claims to be the service: each verb ends with an exit code and a sentence."""
import socket
import threading

from client import Gio, GLib
from harness import CHINOOK, CTL, PATIENCE, SANITIZED, Service, main
from raw_peer import Raw
from tap import cases, equal, test, true

OK, FAILED = 0, 1
VERBS = (
    ("list",), ("status",), ("status", "odd"), ("statements",), ("runs",), ("transactions",), ("channels",), ("clients",),
    ("watches",), ("reload",), ("cancel", "7"), ("security",), ("security", "odd"), ("top", "--count=1"),
)  # fmt: skip
REPLIES = {
    "ListDatabases": "(a(soa{sv})a{sv})",
    "ListStatements": "(a(tosa{sv})a{sv})",
    "ListRuns": "(a(tosa{sv})a{sv})",
    "ListTransactions": "(a(tosa{sv})a{sv})",
    "ListWatches": "(a(tosa{sv})a{sv})",
    "ListChannels": "(a(tosa{sv})a{sv})",
    "ListClients": "(a(sa{sv})a{sv})",
    "CancelRun": "(a{sv})",
    "Reload": "(a{sv})",
    "GetAll": "(a{sv})",
    "QueryRows": "(a(ssa{sv})aava{sv})",
}
HARMFUL = "red \x1b[2J\x1b]0;title\x07\x9b31m\u202e\n"
# Each key that sqlipcctl looks up, in turn as each of these.
KEYS = (
    "broken warnings databases truncated authorization description mode uid pid runs running statements channels sql state "
    "usec rows bytes worker-pid total-runs statement run channel client name object database path polkit immutable "
    "allow-users allow-groups expose since NRuns NStatements NChannels NParked NWorkers TotalRuns TotalRows TotalBytes "
    "DaemonVersion Features n-runs comm process rows-per-second bytes-per-second idle-usec transaction "
    "watch waits unread sequence tables"
).split()
VALUES = (
    GLib.Variant("s", HARMFUL), GLib.Variant("u", 0xFFFFFFFF), GLib.Variant("t", (1 << 64) - 1), GLib.Variant("x", -1),
    GLib.Variant("d", float("nan")), GLib.Variant("b", True), GLib.Variant("as", []), GLib.Variant("as", [HARMFUL] * 3),
    GLib.Variant("a{ss}", {HARMFUL: HARMFUL}), GLib.Variant("a{sv}", {}), GLib.Variant("aa{sv}", [{}, {}]),
    GLib.Variant("v", GLib.Variant("v", GLib.Variant("ay", b"\x00\xff"))), GLib.Variant("g", "a{sv}"),
    GLib.Variant("o", "/org/sqlipc1/database/_ff_fe"),
)  # fmt: skip
WRONG = ("()", "(s)", "(a{sv})", "(aa{sv}a{sv})", "(a(tosa{sv})as)", "(avaav)")

service = Service(start=False)
service.database("odd", Path=CHINOOK)


class Imposter:
    """Owns the service's name; `answer(method)` is a body, the name of an error and its body, bytes, or None for silence."""

    def __init__(self):
        self.raw = Raw(service.folder / "bus")
        request = GLib.Variant("(su)", ("org.sqlipc1", 0))
        bus = "org.freedesktop.DBus"
        self.raw.send(self.raw.blob("/org/freedesktop/DBus", bus, "RequestName", request, destination=bus))
        # The bus may see the end of the one before later than this request.
        while (message := self._message()).get_member() != "NameAcquired" or message.get_body().unpack() != ("org.sqlipc1",):
            pass
        self.answer = self.well_formed
        threading.Thread(target=self._serve, daemon=True).start()

    @staticmethod
    def well_formed(method):
        return empty(REPLIES[method])

    def _message(self):
        return Gio.DBusMessage.new_from_blob(self.raw.message(), Gio.DBusCapabilityFlags.NONE)

    def _serve(self):
        while True:
            try:
                call = self._message()
            except OSError:
                return
            if call.get_message_type() != Gio.DBusMessageType.METHOD_CALL:
                continue
            said = self.answer(call.get_member())
            if said is HANG_UP:
                self.raw.socket.shutdown(socket.SHUT_RDWR)
            elif said is not None:
                reply = call.new_method_error_literal(*said) if isinstance(said, tuple) else call.new_method_reply()
                if not isinstance(said, tuple):
                    reply.set_body(said)
                self.raw.send(bytes(reply.to_blob(Gio.DBusCapabilityFlags.NONE)))

    def close(self):
        self.raw.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread, which would keep the connection, and so the name
        self.raw.socket.close()


HANG_UP = object()


def empty(signature):
    """The smallest body of a signature of REPLIES."""
    return GLib.Variant.parse(GLib.VariantType(signature), {
        "(a{sv})": "({},)", "(a(ssa{sv})aava{sv})": "([], [], {})",
    }.get(signature, "([], {})"), None, None)  # fmt: skip


def ask(*arguments, code=None, timeout=f"{PATIENCE}s"):
    """Both streams of sqlipcctl, which must end by itself, with a sentence if it fails, and never drive the terminal."""
    command = [CTL, f"--address={service.address}", f"--config-dir={service.config_dir}", *arguments]
    # libsystemd's time limit of a call; a critical message of GLib is a bug of ours and ends the program
    done = service.run("env", f"SYSTEMD_BUS_TIMEOUT={timeout}", "G_DEBUG=fatal-criticals", *command)
    out, err = done.stdout.decode(), done.stderr.decode()
    true(done.returncode in (OK, FAILED), f"{arguments} ended with {done.returncode}, and said {err!r}")
    true(code is None or done.returncode == code, f"{arguments} ended with {done.returncode}, printed {out!r}, said {err!r}")
    true(done.returncode == OK or err.startswith("sqlipcctl: "), f"{arguments} failed and said {err!r}")
    for character in "\x1b\x07\x9b\u202e":
        true(character not in out + err, f"{arguments} let {character!r} through: {(out + err)[:500]!r}")
    return out, err


def calls_of(verb):
    """The methods that a verb calls, in their order."""
    called = []
    imposter.answer = lambda method: called.append(method) or full(method)
    ask(*verb)
    return list(dict.fromkeys(called))


def not_disconnected():
    """The bus took the replies of a test. It closes the connection of a peer that sends invalid ones."""
    imposter.answer = full
    ask("list", code=OK)


def full(method):
    """A well-formed body in which each list has an element, so that verbs ask for all that they may ask for."""
    return {
        "ListDatabases": GLib.Variant("(a(soa{sv})a{sv})", ([("odd", "/org/sqlipc1/database/odd", {})], {})),
        "QueryRows": GLib.Variant(
            "(a(ssa{sv})aava{sv})", ([("a", "", {})], [[GLib.Variant("s", "t"), GLib.Variant("s", "table")]], {})
        ),
    }.get(method, empty(REPLIES[method]))


imposter = Imposter()


@test
def wrong_signatures():
    """Each reply, for each verb, with other signatures: exit code 1 and a sentence, no signal"""
    tried = 0
    for verb in VERBS:
        for wrong in calls_of(verb):
            for signature in WRONG:
                body = sample(signature)
                if signature == REPLIES[wrong]:
                    continue
                imposter.answer = lambda method, wrong=wrong, body=body: body if method == wrong else full(method)
                err = ask(*verb)[1]
                tried += 1
                # security shows who may read by the files, so it goes on
                true("is not understood" in err or verb[0] == "security", f"{verb} with {wrong} as {signature}: {err!r}")
    cases("hostile", tried, "replies with another signature to sqlipcctl")


def sample(signature):
    """A body of a signature, with an element in each array."""
    values = {
        "()": (), "(s)": (HARMFUL,), "(a{sv})": ({"a": VALUES[0]},), "(aa{sv}a{sv})": ([{"a": VALUES[0]}], {}),
        "(a(tosa{sv})as)": ([(7, "/", "x", {})], ["y"]), "(avaav)": ([VALUES[0]], [[VALUES[0]]]),
    }  # fmt: skip
    return GLib.Variant(signature, values[signature])


@test
def values_of_dictionaries():
    """Every key that is looked up, with a value of every type, in every dictionary of every reply"""
    for value in VALUES:
        more = dict.fromkeys(KEYS, value)
        work = GLib.Variant("(a(tosa{sv})a{sv})", ([(7, "/org/sqlipc1/database/_ff", HARMFUL, more)] * 2, more))
        bodies = {
            "ListDatabases": GLib.Variant(
                "(a(soa{sv})a{sv})", ([("odd", "/", more), (HARMFUL, "/org/sqlipc1/database/_ff", more)], more)
            ),
            "ListStatements": work,
            "ListRuns": work,
            "ListTransactions": work,
            "ListChannels": work,
            "ListClients": GLib.Variant("(a(sa{sv})a{sv})", ([(HARMFUL, more), ("", more), ("", more)], more)),
            "QueryRows": GLib.Variant(
                "(a(ssa{sv})aava{sv})", ([(HARMFUL, HARMFUL, more)], [[], [value], [value, value], [value] * 3], more)
            ),
        }
        imposter.answer = lambda method, bodies=bodies, more=more: bodies.get(method, GLib.Variant("(a{sv})", (more,)))
        for verb in VERBS:
            ask(*verb, *(["--json"] if value is VALUES[0] else []))
    not_disconnected()


@test
def sizes():
    """Replies of nothing, of ten thousand elements, of a text of megabytes, and nested as deep as the bus allows"""
    imposter.answer = imposter.well_formed
    for verb in VERBS:
        ask(*verb, code=FAILED if verb == ("status", "odd") else OK)
    n, deep = 2000 if SANITIZED else 10000, GLib.Variant("s", HARMFUL)
    for _ in range(19):  # at 20 the bus closes the sender's connection
        deep = GLib.Variant("v", GLib.Variant("(v)", (deep,)))
    more = {"sql": GLib.Variant("s", "x" * 100), "state": GLib.Variant("s", "parked"), "bytes": GLib.Variant("t", 1)}
    huge = {
        "ListDatabases": GLib.Variant("(a(soa{sv})a{sv})", ([(f"n{i}", "/", {}) for i in range(n)], {})),
        "ListRuns": GLib.Variant("(a(tosa{sv})a{sv})", ([(i, "/", f":1.{i}", more) for i in range(n)], {})),
        "ListStatements": GLib.Variant("(a(tosa{sv})a{sv})", ([(1, "/", "x" * (4 << 20), {"sql": deep})], {})),
        "ListClients": GLib.Variant("(a(sa{sv})a{sv})", ([(f":1.{i}", more) for i in range(n)], {})),
        "Reload": GLib.Variant("(a{sv})", ({"warnings": GLib.Variant("as", ["x"] * n)},)),
    }
    imposter.answer = lambda method: huge.get(method, full(method))
    for verb in VERBS:
        ask(*verb)
    not_disconnected()


@test
def errors():
    """Errors of every kind, with and without a text, as the answer to any method: a sentence of ours"""
    bus = "org.freedesktop.DBus.Error."
    sentences = {
        "org.sqlipc1.ctl.ReplyType": "is not understood",
        "x.y": "an error that is not understood",
        f"{bus}ServiceUnknown": "the bus cannot start it: start sqlipcd",
        f"{bus}NameHasNoOwner": "the bus cannot start it: start sqlipcd",
        f"{bus}AccessDenied": "The bus does not let you call the service",
        f"{bus}NoReply": "The service ended before it answered: start sqlipcd",
        f"{bus}UnknownMethod": "The service does not know this call: install the same version",
        f"{bus}Spawn.Failed": "The bus could not start the service",
        f"{bus}Timeout": "The service does not answer",
        f"{bus}LimitsExceeded": "a limit of the bus is reached",
        f"{bus}Unheard": "The bus refused the call",
    }
    for name, sentence in sentences.items():
        for text in (HARMFUL, ""):
            imposter.answer = lambda method, name=name, text=text: (name, text)
            err = ask("list", code=FAILED)[1]
            true(sentence in err and bus not in err, f"{name}, {text!r}: {err!r}")
        for verb in VERBS:
            ask(*verb)
    for name in ("org.sqlipc1.Error.SQL", "org.sqlipc1.Error.Unheard"):
        imposter.answer = lambda method, name=name: (name, "no such table: t")
        equal(ask("list", code=FAILED)[1], "sqlipcctl: no such table: t\n", "a sentence of the service")


@test
def calls_that_never_began():
    """A verb repeats a call that no service got, and once one that changes nothing and was lost; no other"""
    bus = "org.freedesktop.DBus.Error."
    methods = {"list": "ListDatabases", "runs": "ListRuns", "reload": "Reload", "cancel": "CancelRun"}
    for verb, error, n_calls in (
        (("list",), f"{bus}NameHasNoOwner", 3), (("list",), f"{bus}Spawn.ChildSignaled", 3),
        (("list",), "org.sqlipc1.Error.ShuttingDown", 3), (("list",), f"{bus}NoReply", 2), (("runs",), f"{bus}NoReply", 2),
        (("reload",), "org.sqlipc1.Error.ShuttingDown", 3), (("cancel", "7"), "org.sqlipc1.Error.ShuttingDown", 3),
        (("reload",), f"{bus}NoReply", 1), (("cancel", "7"), f"{bus}NoReply", 1), (("list",), f"{bus}Timeout", 1),
        (("list",), f"{bus}ServiceUnknown", 1), (("list",), "org.sqlipc1.Error.Busy", 1),
    ):  # fmt: skip
        for n_errors in (n_calls - 1, n_calls):
            refused, called = methods[verb[0]], []

            def answer(method, refused=refused, called=called, error=error, n_errors=n_errors):
                called.append(method)
                failed = method == refused and called.count(method) <= n_errors
                return (error, "refused") if failed else full(method)

            imposter.answer = answer
            ask(*verb, code=FAILED if n_errors == n_calls else OK)
            equal(called.count(refused), n_calls, f"calls of {verb} with {n_errors} times {error}")


@test
def silence():
    """No answer at all: a call ends when its time is over"""
    global imposter  # pylint: disable=global-statement
    imposter.close()
    imposter = Imposter()
    imposter.answer = lambda method: None
    for verb in (("list",), ("runs",), ("status",), ("top", "--count=1"), ("security", "odd"), ("reload",)):
        ask(*verb, timeout="500ms")
    err = ask("list", code=FAILED, timeout="500ms")[1]
    true("does not answer" in err, f"what it says of silence: {err!r}")


@test
def disconnects():
    """The program leaves the bus with a call of each verb unanswered"""
    global imposter  # pylint: disable=global-statement
    for verb in VERBS:
        imposter.answer = lambda method: HANG_UP
        ask(*verb)
        imposter.close()
        imposter = Imposter()


main(service)
