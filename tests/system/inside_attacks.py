# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attacks of users and of compromised workers on others, on a real bus and in the real unit."""
import subprocess

from machine import ADDRESS, Client, Failure, command, equal, main_pid, test, true, uid, wait_for, workers
from client import Gio, GLib, NAME

BUS = "org.freedesktop.DBus"


def forge(sender, name):
    """Sends a forged NameOwnerChanged, which says that `name` has left the bus."""
    message = Gio.DBusMessage.new_signal("/org/freedesktop/DBus", BUS, "NameOwnerChanged")
    message.set_destination(NAME)
    message.set_body(GLib.Variant("(sss)", (name, name, "")))
    sender.connection.send_message(message, Gio.DBusSendMessageFlags.NONE)
    sender.manager("ListDatabases")


@test
def forged_words_of_the_bus():
    """A user can neither forge the bus's NameOwnerChanged, nor own the name of the service or of polkit"""
    victim, attacker = Client(ADDRESS, uid("sqlipc-reader")), Client(ADDRESS, uid("sqlipc-other"))
    statement = victim.prepare("chinook", "SELECT count(*) FROM Genre")
    forge(attacker, victim.name())
    equal(statement.fetch().read().rows, [[25]], "rows of the other's statement")
    for name in (NAME, "org.freedesktop.PolicyKit1"):
        try:
            raise AssertionError(f"{name} is had: {attacker.bus_call('RequestName', '(su)', name, 7)}")
        except Failure as failure:
            equal(failure.name, f"{BUS}.Error.AccessDenied", "error")
    statement.close()


def as_neighbour(pid, *words):
    """Returns the command that runs `words` without privileges as the service's user, in the service's user namespace."""
    ids = [f"--setuid={uid('sqlipc')}", f"--setgid={uid('sqlipc')}"]
    return ["nsenter", f"--target={pid}", "--user", *ids, "--", *words]


def readable(pid, neighbour):
    """Returns which parts of a process another process beside `neighbour` may read."""
    files = {name: f"/proc/{pid}/{name}" for name in ("mem", "maps", "environ")}
    return [name for name, path in files.items() if command(*as_neighbour(neighbour, "head", "-c0", path)).returncode == 0]


@test
def memory_of_neighbours():
    """Processes of the service show their memory to no process of their user, such as a worker under attack"""
    client = Client(ADDRESS, uid("sqlipc-reader"))
    client.point()
    pid = main_pid()
    ours = [pid, *workers(pid)]
    true(len(ours) >= 2, f"{len(ours)} processes")
    equal({p: readable(p, pid) for p in ours}, {p: [] for p in ours}, "readable")
    with subprocess.Popen(as_neighbour(pid, "sleep", "60")) as any_other:
        wait_for(lambda: len(readable(any_other.pid, pid)) == 3, "any other process can be read")
        any_other.kill()
    client.point()
