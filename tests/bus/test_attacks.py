#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages that pretend: an ordinary user's signals and replies in the words of the bus and of polkit change nothing.

sd-bus compares the sender of a match only where that is a unique name, so whatever is addressed to the service gets through.
"""
import os

from client import DATABASE, NAME, Gio, GLib, object_path
from fake_polkit import INTERFACE, PATH, FakePolkit
from harness import CHINOOK, UID_A, UID_B, Service, expect, main, wait_for
from tap import Skip, equal, test, true

ROOT = os.geteuid() == 0
BUS = "org.freedesktop.DBus"

service = Service({"chinook": CHINOOK, "accounts": {"Path": CHINOOK, "AllowUsers": "", "Polkit": "yes"}})
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
    """A forged NameOwnerChanged takes nothing from whose name it tells"""
    statement = victim.prepare("chinook", "SELECT count(*) FROM Genre")
    run = victim.query("chinook", "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT * FROM n")
    send_signal("/org/freedesktop/DBus", BUS, "NameOwnerChanged", GLib.Variant("(sss)", (victim.name(), victim.name(), "")))
    equal(statement.fetch().read().rows, [[25]], "rows of the victim's statement")
    equal(run.counted()[1], 100000, "rows of what it ran meanwhile")
    statement.close()


@test
def polkit_that_never_changed():
    """polkit's answer is kept through a Changed, and through the end of its name, that polkit did not send"""
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
    """A reply in polkit's place, whatever call of the service it claims to answer, lets nobody in"""
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


if __name__ == "__main__":
    main(service)
