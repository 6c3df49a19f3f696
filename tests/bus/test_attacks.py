#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Forgeries: an ordinary user who acts as the bus or polkit, and a worker under an attacker's control.

sd-bus compares the sender of a match only if that is a unique name, so any message to the service gets through.
"""
import contextlib
import os
import pathlib
import signal
import subprocess

from client import DATABASE, MANAGER, MANAGER_PATH, NAME, Gio, GLib, object_path
from fake_polkit import INTERFACE, PATH, FakePolkit
from harness import (
    BUILD_ROOT, CHINOOK, PATIENT, SANITIZED, UID_A, UID_B, UID_DAEMON, Service, children, expect, main, rss_anon, wait_for,
)
from overheard import Overheard
from tap import Skip, at_most, equal, test, true

# Workers whose lies are in lying-worker.c.
TAKEN_OVER = BUILD_ROOT / "tests/bus/lying-worker"
ROOT = os.geteuid() == 0
NUMBERS = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT i FROM n"
MIB = 1024 * 1024
BUS = "org.freedesktop.DBus"

service = Service(
    {"chinook": CHINOOK, "accounts": {"Path": CHINOOK, "AllowUsers": "", "Polkit": "yes"}},
    limits=PATIENT | {"SQLSizeMax": 1000000},
)
victim, attacker = (service.client(uid if ROOT else None) for uid in (UID_A, UID_B))


def send(message, body):
    """To the service, from the attacker; returns when it was dispatched."""
    message.set_destination(NAME)
    message.set_body(body)
    attacker.connection.send_message(message, Gio.DBusSendMessageFlags.NONE)
    attacker.manager("ListDatabases")


def send_signal(path, interface, member, body):
    send(Gio.DBusMessage.new_signal(path, interface, member), body)


@test
def name_that_never_vanished():
    """A forged NameOwnerChanged takes nothing from the client that it names"""
    statement = victim.prepare("chinook", "SELECT count(*) FROM Genre")
    run = victim.query("chinook", NUMBERS)
    send_signal("/org/freedesktop/DBus", BUS, "NameOwnerChanged", GLib.Variant("(sss)", (victim.name(), victim.name(), "")))
    equal(statement.fetch().read().rows, [[25]], "rows of the victim's statement")
    equal(run.counted()[1], 100000, "rows of its run")
    statement.close()


@test
def polkit_that_never_changed():
    """polkit's answer is kept after a Changed signal and an end of polkit's name that polkit did not send"""
    if not ROOT:
        raise Skip("needs root: polkit is not asked about the daemon's own user")
    fake = FakePolkit(service.address, {"accounts": "yes"})
    try:
        victim.point("accounts")
        fake.forget()
        send_signal(PATH, INTERFACE, "Changed", GLib.Variant("()", ()))
        polkit = "org.freedesktop.PolicyKit1"
        send_signal("/org/freedesktop/DBus", BUS, "NameOwnerChanged", GLib.Variant("(sss)", (polkit, attacker.name(), "")))
        victim.point("accounts")
        true(victim.name() not in [q.client for q in fake.questions], "polkit was asked again")
        fake.forget()
        fake.changed()
        wait_for(lambda: victim.point("accounts") or fake.questions, "its own Changed counts")
    finally:
        fake.close()


@test
def answer_that_polkit_never_gave():
    """A forged reply of polkit admits no caller, to whichever call of the service it claims to answer"""
    if not ROOT:
        raise Skip("needs root: polkit is not asked about the daemon's own user")
    fake = FakePolkit(service.address, {"accounts": "hang"})
    try:
        pending = attacker.begin(
            object_path("accounts"), DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT 1", [], {}, {}
        )
        wait_for(lambda: fake.open, "polkit is asked")
        for serial in range(1, 500):
            reply = Gio.DBusMessage()
            reply.set_message_type(Gio.DBusMessageType.METHOD_RETURN)
            reply.set_reply_serial(serial)
            reply.set_destination(NAME)
            reply.set_body(GLib.Variant("((bba{ss}))", ((True, False, {}),)))
            attacker.connection.send_message(reply, Gio.DBusSendMessageFlags.NONE)
        service.driver.point()
        true(not pending.is_done(), "the call went on")
        fake.answer("no")
        expect("org.freedesktop.DBus.Error.UnknownObject", pending.result)
    finally:
        fake.close()


def large_calls():
    """The charge for large calls is given back, in whichever order they came and went"""
    sql = "SELECT '" + "x" * 12 * MIB + "'"
    attacker.manager("ListDatabases")
    before = rss_anon(service.pid())
    for size in (len(sql), MIB, len(sql) // 2, len(sql)):
        expect("LimitsExceeded", attacker.query_rows, "chinook", sql[:size])
        service.client().manager("ListDatabases")
    at_most(rss_anon(service.pid()) - before, 2 * MIB, "bytes more in the daemon")


if not SANITIZED:  # sanitizers keep memory
    test(large_calls)


def may_look_into(pid, uid):
    """True if a process of `uid` without privileges may open the memory or a descriptor of another."""
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        for name in ("mem", "fd/0", "maps"):
            with contextlib.suppress(OSError):
                os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
                os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


@test
def memory_of_neighbours():
    """A process of the daemon's user, such as a worker under attack, opens no memory or descriptor of the service"""
    if not ROOT:
        raise Skip("needs root, to be the daemon's user without being its parent")
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1, "WorkerIdleSec": 600}, uid=UID_DAEMON) as another:
        another.client().point()
        ours = [another.pid(), *another.workers()]
        true(len(ours) == 2, f"{len(ours)} processes")
        equal([pid for pid in ours if may_look_into(pid, UID_DAEMON)], [], "processes that can be looked into")
        with subprocess.Popen(["sleep", "60"], user=UID_DAEMON, group=UID_DAEMON, extra_groups=[]) as any_other:
            wait_for(lambda: may_look_into(any_other.pid, UID_DAEMON), "any other process can be")
            any_other.kill()


def sleeps(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


def lie(client, what, method="Query"):
    return client.begin(object_path("chinook"), DATABASE, method, "(sava{sv}a{sv})", what, [], {}, {})


@test
def worker_that_lies():
    """A worker that sends a forbidden message is killed, and only the clients that it served lose their queries"""
    with Service({"chinook": CHINOOK}, worker=TAKEN_OVER) as another:
        one = another.client()
        for what in ("early", "nonsense", "foreign", "pages", "gone"):
            expect("WorkerLost", lie(one, what, "QueryRows").result)
            expect("Sql", lie(one, "truth").result)
        wait_for(another.is_idle, "nothing is left")


@test
def worker_that_says_too_much():
    """A STARTED or ENDED message past the limits costs its worker's clients their query; the service stays on the bus"""
    with Service({"chinook": CHINOOK}, worker=TAKEN_OVER) as another:
        one, pid = another.client(), another.pid()
        for what in ("grow", "long"):
            for method in ("Query", "OpenRows", "QueryRows"):
                expect("WorkerLost", lie(one, what, method).result)
                expect("Sql", lie(one, "truth").result)
        equal(another.pid(), pid, "the process that owns the service's name")
        wait_for(another.is_idle, "nothing is left")


@test
def worker_that_talks():
    """A worker that sends many messages takes its turn with all others"""
    n_calls = 100  # dbus-daemon takes no more than 128 of a client whose replies are outstanding
    with Service({"chinook": CHINOOK}, limits={"WorkersMax": 1, "WorkerIdleSec": 600}, worker=TAKEN_OVER) as another:
        one, other, heard = another.client(), another.client(), Overheard(another.address)
        expect("Sql", lie(one, "truth").result)
        (worker,) = children(another.pid())
        os.kill(worker, signal.SIGSTOP)
        flood = lie(one, "flood")
        wait_for(another.states, "the worker has its job before it")
        os.kill(another.pid(), signal.SIGSTOP)  # so that all calls wait in its socket, however slow their caller is
        try:
            heard.members.clear()
            calls = [other.begin(MANAGER_PATH, MANAGER, "ListRuns", "(a{sv})", {}) for _ in range(n_calls)]
            wait_for(lambda: heard.members.count("ListRuns") >= n_calls, "the bus has passed them on")
            os.kill(worker, signal.SIGCONT)
            wait_for(lambda: sleeps(worker), "it has said what its socket takes")
        finally:
            os.kill(another.pid(), signal.SIGCONT)
        n_others = sum(bool(call.result()[0].unpack()) for call in calls)
        # Of 200 messages; a turn of the loop has one of them, if it is large, and one call.
        true(n_others >= 60, f"{n_others} calls of another were answered meanwhile")
        flood.result()
        heard.close()


if __name__ == "__main__":
    main(service)
